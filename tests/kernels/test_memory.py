"""Memory: used again, never while somebody holds a part of it; and arrays that begin at a cache line."""

import threading

import numpy as np
import psutil
import pytest

from kernels import aligned, reused

SIZE = reused.SMALL


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def test_a_block_is_used_again_once_nobody_holds_a_part_of_it() -> None:
    first = reused.empty(SIZE, np.float32)
    place, part = address(first), first[5:7].reshape(1, 2)
    del first
    other = reused.empty(SIZE, np.int32)
    assert address(other) != place
    del part
    assert address(reused.empty(SIZE, np.int32)) == place


def test_arrays_that_are_held_share_no_memory() -> None:
    held = [reused.empty(SIZE + 100 * number, np.float64) for number in range(3 * reused.MOST_BLOCKS)]
    for number, array in enumerate(held):
        array[...] = number
    assert all((array == number).all() for number, array in enumerate(held))


def test_a_small_array_takes_no_large_block() -> None:
    large = reused.empty(16 * SIZE, np.uint8)
    place = address(large)
    del large
    assert address(reused.empty(SIZE, np.uint8)) != place


def test_a_thread_never_gets_what_another_one_has() -> None:
    first = reused.empty(SIZE, np.float32)
    places: list[int] = []
    thread = threading.Thread(target=lambda: places.append(address(reused.empty(SIZE, np.float32))))
    thread.start()
    thread.join()
    assert places != [address(first)]


def test_arrays_begin_at_a_line_and_have_the_type_asked_for() -> None:
    for size, dtype in ((0, np.int64), (3, np.float32), (SIZE, np.float64)):
        array = reused.empty(size, dtype)
        assert (array.size, array.dtype) == (size, dtype)
        assert size < SIZE or address(array) % 64 == 0


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
