"""Batches made dense in memory that held other ones, which never show; rows of smaller types, widened exactly."""

import numpy as np
import pytest

import kernels
from kernels import KernelError, threads
from kernels.reused import widen_rows
from tests.support.cases import CASES, random_case
from tests.support.implementations import get
from tests.support.thread_counts import TWO_AT_MOST, share_out


def dense(case, rows) -> np.ndarray:
    out = np.zeros((len(rows), case.D), case.dtype)
    for i, r in enumerate(rows):
        for k in range(case.indptr[r], case.indptr[r + 1]):
            out[i, case.indices[k]] += case.data[k]
    return out


@pytest.mark.parametrize("count", [1, TWO_AT_MOST])
@pytest.mark.parametrize(("columns", "entries"), [(40, 600), (500, 600), (900, 30), (900, 0)])
def test_batch_after_batch_is_what_its_rows_are(columns, entries, count, kept_threads, monkeypatch):
    share_out(monkeypatch)
    threads.set_threads(count)
    case, generator = random_case(50, columns, entries, 3), np.random.default_rng(0)
    out, held = case.garbage(9, columns), np.full(9, -1)
    for _ in range(20):
        rows = generator.integers(0, 50, 9)
        get("rows_to_dense").cpu(case.indptr, case.indices, case.data, rows, held, out)
        np.testing.assert_array_equal(out, dense(case, rows))
        np.testing.assert_array_equal(held, rows)


def test_few_entries_of_a_row_that_is_held_are_all_that_is_cleared():
    """What nobody wrote is left alone: the words of the caller about what `out` holds are taken."""
    case = random_case(5, 900, 20, 3)
    out, held = np.full((2, 900), 7, case.dtype), np.array([0, -1])
    rows = np.array([1, 2])
    kernels.get("rows_to_dense").cpu(case.indptr, case.indices, case.data, rows, held, out)
    own = {*case.indices[case.indptr[0] : case.indptr[2]].tolist()}
    assert {*np.flatnonzero(out[0] == 7).tolist()} == {*range(900)} - own
    np.testing.assert_array_equal(out[1], dense(case, rows)[1])


@pytest.mark.parametrize("was", [-2, 5, 2**40, -(2**63)])
def test_a_row_that_is_none_is_held_by_nobody(was):
    case = random_case(5, 900, 20, 3)
    out = case.garbage(1, 900)
    kernels.get("rows_to_dense").cpu(case.indptr, case.indices, case.data, np.array([3]), np.array([was]), out)
    np.testing.assert_array_equal(out, dense(case, [3]))


@pytest.mark.parametrize("wrong", [-1, 2**40])
def test_a_row_that_is_not_there_is_refused_and_nothing_is_written(wrong):
    case = CASES["plain"]
    *matrix, rows, held, out = get("rows_to_dense").arguments(case)
    rows[-1] = wrong
    with pytest.raises(KernelError, match=rf"rows\[{rows.size - 1}\] is {wrong}; the matrix has the rows 0 to"):
        get("rows_to_dense").trusted(*matrix, rows, held, out)
    assert (held == -1).all()
    assert (out == 7.25).all()


def test_starts_that_do_not_rise_are_refused():
    *matrix, rows, held, out = get("rows_to_dense").arguments(CASES["plain"])
    matrix[0] = matrix[0].copy()
    matrix[0][rows[0] + 1] = matrix[1].size + 1
    with pytest.raises(KernelError, match="starts of rows rise from 0"):
        get("rows_to_dense").trusted(*matrix, rows, held, out)


EVERY_HALF = np.arange(2**16, dtype=np.uint16).view(np.float16).reshape(64, 1024)
EVERY_BYTE = np.arange(256, dtype=np.uint8).reshape(8, 32)


@pytest.mark.covering
@pytest.mark.parametrize("count", [1, TWO_AT_MOST])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("source", [EVERY_HALF, EVERY_BYTE], ids=["float16", "uint8"])
def test_every_value_is_exact(source, dtype, count, kept_threads, monkeypatch):
    share_out(monkeypatch)
    threads.set_threads(count)
    rows = np.random.default_rng(0).permutation(len(source))
    out = np.full((len(rows), source.shape[1]), 7.25, dtype)
    widen_rows(source, rows, out)
    expected = source[rows].astype(dtype)
    np.testing.assert_array_equal(out, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(out[numbers]), np.signbit(expected[numbers]))


@pytest.mark.parametrize("wrong", [-1, 8, 2**40])
def test_a_row_that_is_not_there_is_refused(wrong):
    with pytest.raises(KernelError, match=f"rows has {wrong}; the matrix has the rows 0 to 7"):
        widen_rows(EVERY_BYTE, np.array([0, wrong]), np.empty((2, 32), np.float32))


def test_other_types_and_shapes_are_refused():
    with pytest.raises(KernelError, match="uint8 or float16"):
        widen_rows(EVERY_BYTE.astype(np.int32), np.array([0]), np.empty((1, 32), np.float32))
    with pytest.raises(KernelError, match=r"out \[3, 32\]"):
        widen_rows(EVERY_BYTE, np.array([0]), np.empty((3, 32), np.float32))
