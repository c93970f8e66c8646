"""Records of the benchmark answer a configuration while its candidates, ours and competitors, are the same code."""

import pytest

from benchmarks import configurations, runner
from benchmarks.configurations import BenchmarkConfiguration
from benchmarks.interleaved import Policy
from benchmarks.shapes import Shape
from tests.support.edits import Copy

TINY = Shape("tiny", 64, 100, 5)
STEP = next(
    configuration for configuration in runner.configurations_of("step", True) if configuration.optimizer == "sgd"
)
CELLS = {
    "product": BenchmarkConfiguration("kernels", "csr_dense", TINY, 4),
    "fused": BenchmarkConfiguration("kernels", "adam_fused", TINY, 4),
    "step": STEP,
    "cuda": BenchmarkConfiguration("kernels", "csr_dense", TINY, 4, device="cuda", cache="warm"),
}


def hashes(code):
    return {name: configurations.source_hash(configuration, code) for name, configuration in CELLS.items()}


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    return Copy(tmp_path_factory.mktemp("copy"), hashes)


def test_each_file_of_a_configuration_is_in_its_hash_and_no_other(copy):
    used = {
        name: set(copy.code.files(configurations.roots_of(configuration), compiled=configuration.device == "cuda"))
        for name, configuration in CELLS.items()
    }
    for file in sorted(set().union(*used.values())):
        assert copy.changed(file) == {name for name, files in used.items() if file in files}, file
    for name, files in used.items():
        assert name not in copy.changed(*(copy.files() - files))


@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("kernels/vendor/scipy_sparse.py", {"product"}),
        ("benchmarks/competitors/torch_sparse.py", set(CELLS)),
        ("benchmarks/competitors/torch_cuda.py", {"cuda", "fused"}),
        ("benchmarks/competitors/torch_fused.py", {"fused"}),
        ("kernels/vector/lanes.py", set(CELLS)),
        ("kernels/products/csr_dense.cu", {"cuda"}),
        ("kernels/updates/adam.py", {"fused"}),
        ("kernels/updates/sgd.py", {"step"}),
        ("benchmarks/child.py", set(CELLS)),
        ("benchmarks/runner.py", set()),
        ("workbench/command/cli.py", set()),
        ("benchmarks/plots/roofline.py", set()),
    ],
)
def test_an_edited_file_makes_these_configurations_new(copy, file, names):
    assert copy.changed(copy.folder / file) == names


def test_a_key_is_of_what_the_code_runs_on(monkeypatch):
    before = configurations.key(CELLS["product"], Policy())
    assert configurations.key(CELLS["product"], Policy()) == before
    monkeypatch.setattr(configurations, "describe_stack", lambda *more: {"numpy": "0"})
    assert configurations.key(CELLS["product"], Policy()) != before
