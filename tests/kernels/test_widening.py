"""Rows of smaller types, widened: every value there is, exactly."""

import numpy as np
import pytest

from kernels import KernelError, threads
from kernels.reused import widen_rows
from tests.support.thread_counts import TWO_AT_MOST, share_out

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
