"""Memory that is used again: never while somebody holds a part of it."""

import threading

import numpy as np

from kernels import reused

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
