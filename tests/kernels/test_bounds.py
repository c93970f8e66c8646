"""The debug build: accesses outside of arrays are caught in both kinds of compiled code, in any thread.

`pytest --bounds` runs other tests with it; here it runs in processes of its own, on accesses that are wrong by purpose.
"""

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from kernels import bounds
from tests.support.clocks import SECONDS

ROOT = Path(__file__).parents[2]
HERE = {**os.environ, "PYTHONPATH": str(ROOT)}
HEAD = """
import sys
import numpy as np
from kernels import bounds
if sys.argv[1:] == ["checked"]:
    bounds.switch_on()
from numba import prange
from kernels.code_cache import njit
from kernels.vector.gather import RowLoop
from kernels.vector.tiles import cut_elements

FLAGS = {"nogil": True, "error_model": "numpy"}
ROWS = np.arange(9)
PARTS = np.array([0, 3, 6, 9])

@njit(**FLAGS)
def numba_writes(bounds_, place, x):
    x[0, place] = 1

@njit(**FLAGS, parallel=True)
def prange_writes(bounds_, place, x):
    for part in prange(bounds_.size - 1):
        x[part, place] = 1

def row(lane, u, rows, x):
    lane.blocks(lambda j, _: x.row(rows[u], j).store(x.row(rows[u], j).load()))

def place(lane, u, rows, x):
    x[rows[u]] = lane.number(2)

row_loop, place_loop = RowLoop(row, cut=cut_elements)[16, 8], RowLoop(place, cut=cut_elements)[16, 8]
x = np.ones((12, 16))

def call(name, *args):
    try:
        bounds.with_bounds_check(globals()[name], name)(*args)
        print(name, "passes")
    except bounds.BoundsError as error:
        print(error)
"""

PLANTED = {
    "numba_writes": (
        "PARTS, 15, x",
        "PARTS, 16, x",
        "numba_writes: __main__.numba_writes: an element at 16, where there are 16.",
    ),
    "prange_writes": ("PARTS, 15, x", "PARTS, -17, x", "prange_writes: .*an element at -1, where there are 16."),
    "row_loop": (
        "3, 9, 16, ROWS, x",
        "3, 9, 16, ROWS + 4, x",
        "row_loop: __main__.row: load of a row of x at 12, where there are 12.",
    ),
    "place_loop": (
        "1, 9, 16, ROWS, x",
        "1, 9, 16, ROWS + 184, x",
        "place_loop: __main__.place: store of x at 192, where there are 192.",
    ),
}  # fmt: skip


@pytest.fixture
def output(tmp_path: Path) -> Callable:
    """Gives what a fresh process prints that has the functions of `HEAD` from a file: code on disk needs one."""

    def run(code: str, *arguments: str) -> list[str]:
        file = tmp_path / "planted.py"
        file.write_text(HEAD + textwrap.dedent(code))
        command = [sys.executable, str(file), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, cwd=ROOT, env=HERE)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run


def test_planted_accesses_outside_of_arrays_are_caught(output) -> None:
    code = "\n".join(f"call({name!r}, {right})\ncall({name!r}, {wrong})" for name, (right, wrong, _) in PLANTED.items())
    lines = output(code, "checked")
    for name, right, wrong in zip(PLANTED, lines[::2], lines[1::2], strict=True):
        assert right == f"{name} passes"
        assert re.fullmatch(PLANTED[name][2], wrong)


def test_kernel_that_is_given_an_index_out_of_range_raises_from_every_thread_count(output) -> None:
    code = """
        import kernels
        for rows in (3, 20_000):
            indptr, indices = np.arange(rows + 1), np.zeros(rows, np.int64)
            out, x = np.zeros((rows, 16)), np.ones((5, 16))
            kernels.get("csr_dense").trusted(indptr, indices, np.ones(rows), x, out)
            print(out.sum() == out.size)
            indices[-1] = 5
            try: kernels.get("csr_dense").trusted(indptr, indices, np.ones(rows), x, out)
            except bounds.BoundsError as error: print(error)
    """
    error = "csr_dense: kernels.products.csr_dense._row: load of a row of x at 5, where there are 5."
    assert output(code, "checked") == ["True", error] * 2


def test_code_with_checks_and_without_are_kept_apart(output) -> None:
    code = """
        from kernels.code_cache import digest_of
        print(digest_of(numba_writes.py_func, numba_writes._cache.options))
    """
    assert output(code) != output(code, "checked")


def test_switch_that_comes_too_late_is_refused(output) -> None:
    code = """
        numba_writes(PARTS, 0, x)
        try: bounds.switch_on()
        except RuntimeError as error: print(error)
    """
    assert output(code)[0].startswith("kernels.bounds.switch_on() came too late: numba_writes is compiled without")
    assert output(code, "checked") == []


def test_names_that_compilers_mangled_are_read() -> None:
    assert bounds._readable("_ZN7kernels5radix5_workB2v1B.x: an element") == "kernels.radix._work.x: an element"


@pytest.mark.skipif("config.getoption('--bounds')")
def test_nothing_is_watched_without_the_switch() -> None:
    assert bounds.with_bounds_check(len, "len") is len
