"""Records of the benchmark answer a configuration while its candidates, ours and competitors, are the same code."""

import dataclasses

import pytest

from benchmarks import configurations, tables
from benchmarks.configurations import BenchmarkConfiguration
from benchmarks.harness import Run
from benchmarks.kernel_contest import POLICY
from benchmarks.kernel_suites import configurations_of
from benchmarks.shapes import Shape
from tests.support.edits import Copy
from workbench.measure import machine

TINY = Shape("tiny", 64, 100, 5)
STEP = next(one for one in configurations_of("step", True) if one.optimizer == "sgd")
CELLS = {
    "product": BenchmarkConfiguration("kernels", "csr_dense", TINY, 4),
    "fused": BenchmarkConfiguration("kernels", "adam_fused", TINY, 4),
    "step": STEP,
    "cuda": BenchmarkConfiguration("kernels", "csr_dense", TINY, 4, device="cuda", cache="warm"),
}


def hashes(code):
    return {
        name: code.digest(configurations.roots_of(one), compiled=one.device == "cuda") for name, one in CELLS.items()
    }


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
        ("benchmarks/contest.py", set(CELLS)),
        ("benchmarks/suites.py", set()),
        ("workbench/command/cli.py", set()),
        ("benchmarks/page.py", set()),
    ],
)
def test_an_edited_file_makes_these_configurations_new(copy, file, names):
    assert copy.changed(copy.folder / file) == names


def test_a_key_is_of_settings_way_of_measuring_and_what_the_code_runs_on(monkeypatch, tmp_path):
    run, one = Run(tables.KERNELS, tmp_path), CELLS["product"]
    key = lambda case=one, rounds=POLICY.rounds: run.about(case, {"benchmarks.contest"}, (), rounds)["key"]  # noqa: E731
    assert key() == key()
    others = {key(dataclasses.replace(one, width=8)), key(rounds=1)}
    monkeypatch.setattr(machine, "describe_stack", lambda *more: {"numpy": "0"})
    assert len({key(), *others}) == 3
