"""`import workbench as wb`: what it costs, what it lists."""

import json
import subprocess
import sys

import pytest

import workbench as wb

LISTED = {
    "advise",
    "compare",
    "lab",
    "load",
    "open",
    "profile",
    "runs",
    "sweep",
    "train",
    "Dataset",
    "SparseClassifier",
    "SparseClassifierCV",
}
ORDERS = (
    ("training", "sweeps", "advising", "api.training"),
    ("sweeps.runner", "training.setup"),
    (),
)
"""Submodules that are imported first, in a process each."""


def run(code: str, *flags: str, folder=None) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *flags, "-c", code], capture_output=True, text=True, cwd=folder, check=False)


def test_import_workbench_as_wb_loads_no_numpy_and_few_modules():
    code = "import sys; before = set(sys.modules); import workbench; print(*sorted(set(sys.modules) - before))"
    loaded = run(code).stdout.split()
    assert "workbench" in loaded
    assert not {"numpy", "typing", "re", "tokenize"} & set(loaded)
    assert len(loaded) < 25


def test_dir_lists_the_front_door_and_little_else():
    assert set(dir(wb)) >= LISTED
    assert len(dir(wb)) < 30
    for name in dir(wb):
        assert getattr(wb, name) is not None, name


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(AttributeError, match=r"no attribute 'lod'; expected one of: .*load"):
        wb.lod  # noqa: B018


FUNCTIONS = """
import importlib, json, os, sys
import kernels, matplotlib.figure, numba, pandas, pydantic, scipy.sparse, scipy.special, sklearn.linear_model
for names in json.loads(sys.argv[1]):
    sys.stdout.flush()
    if child := os.fork():
        os.waitpid(child, 0)
        continue
    assert "workbench" not in sys.modules
    for name in names:
        importlib.import_module(f"workbench.{name}")
    import workbench as wb
    for verb in (wb.train, wb.sweep, wb.advise):
        try:
            verb()
        except TypeError as error:
            assert "'X'" in str(error), error
        else:
            raise AssertionError(verb)
    print(*names, flush=True)
    os._exit(0)
"""
"""Prints a line for each order in which the functions are themselves; a process each, forked with other packages."""


@pytest.fixture(scope="module")
def orders() -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", FUNCTIONS, json.dumps(ORDERS)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("names", ORDERS, ids=lambda names: " ".join(names) or "none")
def test_train_sweep_and_advise_are_functions_in_every_order_of_imports(names, orders):
    assert " ".join(names) in orders.stdout.split("\n")[:-1], orders.stderr
