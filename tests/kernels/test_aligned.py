"""Arrays that begin at a cache line."""

import numpy as np
import psutil
import pytest

from kernels import aligned

SHAPES = [(), (0,), (0, 5), (1,), (3, 16), (70, 33), (2, 3, 4), (100_003, 5)]
DTYPES = ["float32", "float64", np.int64, np.uint16]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("make", [aligned.empty, aligned.zeros])
def test_they_are_plain_and_begin_at_a_line(make, shape, dtype) -> None:
    made = make(shape, dtype)
    assert (made.shape, made.dtype) == (shape, np.dtype(dtype))
    assert made.flags.carray
    assert made.size == 0 or made.ctypes.data % aligned.LINE == 0
    assert make is aligned.empty or not made.any()
    made[...] = 3
    assert (made == 3).all()


def test_a_copy_has_the_values_and_its_own_memory() -> None:
    source = np.arange(24.0).reshape(4, 6)[:, ::2]
    copy = aligned.copy(source)
    assert copy.flags.carray
    assert copy.dtype == source.dtype
    assert not np.shares_memory(copy, source)
    assert (copy == source).all()


def test_a_copy_may_be_of_another_type() -> None:
    source = np.float64([0.1, 1e300])
    with np.errstate(over="ignore"):
        assert aligned.copy(source, np.float32).tobytes() == source.astype(np.float32).tobytes()


def test_zeros_take_no_memory_before_they_are_written() -> None:
    before = psutil.Process().memory_info().rss
    held = aligned.zeros((2**27,), np.float64)  # a GiB
    assert held[-1] == 0
    assert psutil.Process().memory_info().rss - before < 2**26
