"""The quick check of every kernel says yes where the slow one does, and to nothing that the slow one refuses."""

import traceback
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import kernels
from kernels import KernelError
from kernels.contract import check_operands, guarded
from tests.support.cases import CASES

NAMES = [name for name in kernels.names() if kernels.get(name).cpu is not None]
CASE = CASES["plain"]


class Child(np.ndarray):
    pass


def unaligned(array: np.ndarray) -> np.ndarray:
    room = np.zeros(array.nbytes + 1, np.uint8)
    made = room[1:].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


def read_only(array: np.ndarray) -> np.ndarray:
    made = array.copy()
    made.flags.writeable = False
    return made


def changes(array: np.ndarray) -> Iterator[object]:
    """What may come in place of an operand."""
    yield from (array.tolist(), None, array.view(Child), array[..., None], array.ravel()[0], read_only(array))
    yield from (array.astype(kind) for kind in ("i2", "i4", "i8", "f2", "f4", "f8", ">f4"))
    yield np.repeat(array, 2, axis=-1)[..., ::2]
    for axis, length in enumerate(array.shape):
        yield np.concatenate([array, array.take([0], axis)], axis) if length else array
        yield array.take(range(length - 1), axis) if length else array
        yield array.take([], axis)


def accepted(kernel: kernels.Kernel, args: tuple) -> bool:
    try:
        return check_operands(kernel, args)
    except KernelError:
        return False


def check_of(kernel: kernels.Kernel) -> Callable[[tuple], bool]:
    call = guarded(kernel.parsed, lambda *args: len(args) == len(kernel.parsed), lambda args: False)
    return lambda args: call(*args)


@pytest.mark.parametrize("name", NAMES)
def test_it_agrees_with_the_slow_check(name: str) -> None:
    kernel = kernels.get(name)
    args = kernel.arguments(CASE)
    is_right = check_of(kernel)
    assert is_right(args)
    assert not is_right(args[1:])
    seen = set()
    for place, (_, kind, _) in enumerate(kernel.parsed):
        if kind == "s":
            assert is_right((*args[:place], None, *args[place + 1 :]))
            continue
        for other in changes(args[place]):
            changed = (*args[:place], other, *args[place + 1 :])
            seen.add(accepted(kernel, changed))
            assert is_right(changed) == accepted(kernel, changed)
        assert not is_right((*args[:place], unaligned(args[place]), *args[place + 1 :]))
    assert False in seen


def test_traceback_shows_the_line_of_the_check() -> None:
    kernel = kernels.get("csr_dense")
    call = guarded(kernel.parsed, lambda *args: 1 / 0, lambda args: False)
    with pytest.raises(ZeroDivisionError) as caught:
        call(*kernel.arguments(CASE))
    shown = "".join(traceback.format_exception(caught.value))
    assert "<check of indptr indices data x out>" in shown
    assert "return right(array_0, array_1, array_2, array_3, array_4, )" in shown


def test_a_row_just_past_the_last_is_refused_even_if_what_follows_in_memory_would_pass():
    longer = np.array([0, 1, 3, 3], np.int32)
    indices, data = np.array([0, 0, 1], np.int32), np.ones(3, np.float32)
    with pytest.raises(KernelError, match="the matrix has the rows 0 to 1"):
        kernels.get("slice_rows").trusted(longer[:3], indices, data, np.array([1, 2], np.int64))
