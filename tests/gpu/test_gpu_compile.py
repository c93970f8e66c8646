"""Every CUDA source, with each variant that launchers name, compiles for three GPU generations; no driver needed.

Compiling all of them takes minutes. A source whose text, variants, options and compiler are those of the table in the
results, by a digest of it all, compiled as the table says; only what has changed since is compiled anew.
"""

import dataclasses
import functools
import hashlib
import importlib
import json
import pkgutil
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import kernels
import kernels.gpu
from kernels import devices
from kernels.gpu.source import Source, sources
from tests.support import cuda_resources, nvrtc
from tests.support.cuda_resources import Resources

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
ROOT = Path(kernels.__file__).parent
RESULTS = Path(__file__).parents[2] / "results"
DISTINCT = ("adagrad.update", "group_adagrad.update")

kernels.names()  # registers every source that kernels have
for module in pkgutil.iter_modules(kernels.gpu.__path__):
    importlib.import_module(f"kernels.gpu.{module.name}")  # and the others

needs_nvrtc = pytest.mark.skipif(
    nvrtc.library_path() is None, reason="NVRTC is not installed: pip install 'sparse-workbench[dev]'"
)


def variants(source: Source, architecture: str) -> tuple[str, ...]:
    """All of them, on the first GPU and for the two update rules whose states differ in shape; else fewer.

    Other rules differ from these in their formula alone, and tiles of a kernel in loop bounds and in the width of their
    loads: of those rules, and on further GPUs, one of each kernel and its types, that with the widest tile; of those
    rules on further GPUs one of each kernel. The host's compiler sees every variant, see `test_gpu_emulated.py`.
    """
    is_alike, is_further = bool(source.before) and source.title not in DISTINCT, architecture != "sm_90"
    if is_alike and is_further:
        return tuple({name.partition("<")[0]: name for name in source.names}.values())
    if is_alike or is_further:
        return tuple({re.sub(r", \d+", "", name): name for name in source.names}.values())
    return source.names


@functools.cache
def recorded() -> dict[tuple[str, str], dict[str, Resources]]:
    """What variants take by the table in the results, by the digest and the architecture of their compilation."""
    found: dict[tuple[str, str], dict[str, Resources]] = {}
    for line in (RESULTS / "cuda-registers.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        of_all = found.setdefault((row["digest"], row["architecture"]), {})
        of_all[row["kernel"]] = Resources(**{name: row[name] for name in Resources.__dataclass_fields__})
    return found


def digest(source: Source, architecture: str) -> str:
    """Of all that a compilation is made from."""
    parts = str(nvrtc.version()), source.text, *variants(source, architecture), *options_for(architecture)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:20]


def options_for(architecture: str) -> tuple[str, ...]:
    """Those of the compiler."""
    return *devices.OPTIONS, f"--gpu-architecture={architecture}"


@functools.cache
def compiled(source: Source, architecture: str) -> dict[str, Resources]:
    """What each variant takes, compiled now; `CompileError` says what the compiler says."""
    return nvrtc.resources(source.text, variants(source, architecture), options_for(architecture))


def known(source: Source, architecture: str) -> dict[str, Resources]:
    """What each variant takes, by the table where it is of this source."""
    return recorded().get((digest(source, architecture), architecture)) or compiled(source, architecture)


def problem(source: Source, architecture: str) -> str:
    """What the compiler says against a source, or ''."""
    try:
        known(source, architecture)
    except nvrtc.CompileError as error:
        return str(error)
    return ""


def table() -> list[dict]:
    """What every variant takes, a row each."""
    return [
        cuda_resources.row(name, kernel, architecture, found) | {"digest": digest(sources[name], architecture)}
        for architecture in ARCHITECTURES
        for name in sorted(sources)
        for kernel, found in known(sources[name], architecture).items()
    ]


@pytest.fixture(scope="module")
def problems() -> dict:
    pairs = [(name, architecture) for architecture in ARCHITECTURES for name in sources]
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(pairs, pool.map(lambda pair: problem(sources[pair[0]], pair[1]), pairs), strict=True))


@needs_nvrtc
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", sorted(sources))
def test_source_compiles(name: str, architecture: str, problems: dict) -> None:
    assert problems[name, architecture] == ""


@needs_nvrtc
def test_no_kernel_spills_registers(problems: dict) -> None:
    assert [one for one in table() if one["bytes_spilled"]] == []


@needs_nvrtc
def test_the_table_in_the_results_is_of_these_sources(problems: dict) -> None:
    kept = [json.loads(line) for line in (RESULTS / "cuda-registers.jsonl").read_text("utf-8").splitlines()]
    if kept[0]["nvrtc"] != list(nvrtc.version()):
        pytest.skip(f"the table is of NVRTC {kept[0]['nvrtc']}, this is {nvrtc.version()}")
    found = [{"nvrtc": list(nvrtc.version())} | one for one in table()]
    assert kept == found, "write it anew: python -m tests.support.cuda_resources results"


@needs_nvrtc
def test_a_source_compiles_as_the_table_says_and_one_that_changes_is_not_taken_from_it() -> None:
    source = sources["scan"]
    assert compiled(source, "sm_90") == known(source, "sm_90")
    changed = dataclasses.replace(source, before="// changed\n")
    assert (digest(changed, "sm_90"), "sm_90") not in recorded()


@needs_nvrtc
def test_spills_and_shared_memory_are_seen(tmp_path: Path) -> None:
    (tmp_path / "spills.cu").write_text(
        """__global__ void __launch_bounds__(1024, 2) spills(float* x) {
            __shared__ float shared[300];
            float own[64];
            for (int k = 0; k < 64; k++) own[k] = x[k * 1024 + threadIdx.x];
            shared[threadIdx.x % 300] = own[0];
            __syncthreads();
            for (int turn = 0; turn < 9; turn++)
                for (int k = 0; k < 64; k++) own[k] = own[k] * own[(k * 7 + 1) % 64] + shared[k];
            for (int k = 0; k < 64; k++) x[k * 1024 + threadIdx.x] = own[k];
        }""",
        encoding="utf-8",
    )
    found = compiled(Source(tmp_path / "spills.cu", ("spills",)), "sm_90")["spills"]
    assert (found.registers, found.bytes_shared) == (32, 1200)
    assert found.bytes_spilled > 0


@pytest.mark.parametrize(
    ("registers", "shared", "warps"),
    [(16, 0, 64), (32, 0, 64), (33, 0, 48), (46, 0, 40), (64, 0, 32), (255, 0, 8), (32, 48 * 1024, 16)],
)
def test_warps_are_those_of_nvidias_rule(registers: int, shared: int, warps: int) -> None:
    assert Resources(registers, 0, 0, shared).warps("sm_90") == warps


def test_every_cuda_file_is_a_source_of_some_launcher() -> None:
    assert {source.file for source in sources.values()} == set(ROOT.rglob("*.cu"))


@pytest.mark.parametrize("name", sorted(sources))
def test_line_numbers_are_those_of_the_files(name: str) -> None:
    texts = {file.name: file.read_text(encoding="utf-8").splitlines() for file in ROOT.rglob("*.cu*")}
    checked, file, line = set(), "", 0
    for text in sources[name].text.splitlines():
        if text.startswith("#line "):
            _, number, quoted = text.split()
            file, line = quoted.strip('"'), int(number)
            continue
        if text and file in texts:  # else it was made
            assert texts[file][line - 1] == text, f"{file}:{line}"
            checked.add(file)
        line += 1
    assert {sources[name].file.name, "device.cuh"} <= checked


def test_assembly_is_in_one_header() -> None:
    files = [file.name for file in ROOT.rglob("*.cu*") if "asm" in file.read_text(encoding="utf-8")]
    assert files == ["device.cuh"]


@needs_nvrtc
def test_compile_check_can_fail(tmp_path: Path) -> None:
    (tmp_path / "wrong.cu").write_text('__global__ void wrong() { asm("no.such.instruction;"); }', encoding="utf-8")
    assert "ptxas" in problem(Source(tmp_path / "wrong.cu", ("wrong",)), "sm_90")
    (tmp_path / "wrong.cu").write_text("__global__ void wrong() { int x = }", encoding="utf-8")
    assert "wrong.cu(1): error: expected an expression" in problem(Source(tmp_path / "wrong.cu", ("wrong",)), "sm_90")
    (tmp_path / "right.cu").write_text("template <class T> __global__ void right(T*) {}", encoding="utf-8")
    assert "absent" in problem(Source(tmp_path / "right.cu", ("absent<float>",)), "sm_90")
