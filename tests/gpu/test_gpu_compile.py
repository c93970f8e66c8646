"""Every CUDA source, with each variant that launchers name, compiles for three GPU generations; no driver needed."""

import hashlib
import importlib
import pkgutil
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import kernels
import kernels.gpu
from kernels import devices
from kernels.gpu.source import Source, sources
from tests.support import nvrtc

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
CACHE = Path(__file__).parents[2] / ".pytest_cache" / "nvrtc"
ROOT = Path(kernels.__file__).parent
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


def problem(source: Source, architecture: str) -> str:
    """What the compiler says against a source, or ''; kept by its text, for it takes seconds."""
    names, options = variants(source, architecture), (*devices.OPTIONS, f"--gpu-architecture={architecture}")
    key = hashlib.sha256("\n".join((str(nvrtc.version()), source.text, *names, *options)).encode())
    known = CACHE / f"{source.title}-{architecture}-{key.hexdigest()[:20]}"
    if known.exists():
        return ""
    try:
        nvrtc.machine_code(source.text, names, options)
    except nvrtc.CompileError as error:
        return str(error)
    CACHE.mkdir(parents=True, exist_ok=True)
    known.touch()
    return ""


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
