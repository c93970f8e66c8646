"""The quick check of every kernel says yes where the slow one does, and to nothing that the slow one refuses."""

import itertools
import traceback
from collections.abc import Callable, Iterator
from fractions import Fraction

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


def positions_of_numbers(kernel: kernels.Kernel) -> list[tuple[int, str]]:
    """Return position and name of each operand that is a number."""
    return [(place, name) for place, (name, kind, _) in enumerate(kernel.parsed) if kind == "s"]


NUMBERS = {name: numbers for name in NAMES if (numbers := positions_of_numbers(kernels.get(name)))}


def positions_of_shared(kernel: kernels.Kernel) -> list[tuple[int, int]]:
    """Return the positions of each array that the kernel writes and of another that may be the same one by its type."""
    args = kernel.arguments(CASE)
    places = [place for place, (_, kind, _) in enumerate(kernel.parsed) if kind != "s"]
    written = [place for place in places if kernel.parsed[place][0] in kernel.writes]
    return [
        (place, other)
        for place, other in itertools.product(written, places)
        if other != place and args[place].dtype == args[other].dtype and args[place].shape == args[other].shape
    ]


SHARED = {name: pairs for name in NAMES if (pairs := positions_of_shared(kernels.get(name)))}


@pytest.mark.parametrize("name", SHARED)
def test_a_written_array_that_is_another_operand_is_refused(name: str) -> None:
    """Each pair that may be one array by type and shape, as the same object and as another view of the memory."""
    kernel = kernels.get(name)
    for place, other in SHARED[name]:
        args = list(kernel.arguments(CASE))
        for shared in (args[other], args[other][:], args[other].view()):
            args[place] = shared
            kept = shared.copy()
            with pytest.raises(KernelError, match=f"{name}: .* share memory, and the call writes"):
                kernel.cpu(*args)
            assert (shared == kept).all()


def test_memory_is_shared_by_bounds_and_not_by_owner() -> None:
    """Halves of one array are two operands; a part of it and the whole are not, nor a read-only view of it."""
    kernel, owner = kernels.get("squared"), np.arange(12.0)
    targets = np.ones((2, 3))
    scores, gradient = owner[:6].reshape(2, 3), owner[6:].reshape(2, 3)
    kernel.cpu(scores, targets, gradient)
    alone = np.empty((2, 3))
    kernel.cpu(scores.copy(), targets, alone)
    assert (gradient == alone).all()
    assert alone.any()
    with pytest.raises(KernelError, match=r"gradient and scores share memory.*\n?.*Pass scores.copy\(\)"):
        kernel.cpu(scores, targets, owner[3:9].reshape(2, 3))
    with pytest.raises(KernelError, match="share memory"):
        kernel.cpu(read_only_view(scores), targets, scores)
    with pytest.raises(KernelError, match="share memory"):
        kernel.cpu(scores, targets, np.frombuffer(memoryview(owner), count=6).reshape(2, 3))


def read_only_view(array: np.ndarray) -> np.ndarray:
    made = array.view()
    made.flags.writeable = False
    return made


def test_the_same_input_twice_is_allowed() -> None:
    same, out = np.ones((2, 3)), np.full((2, 3), 7.0)
    assert kernels.get("squared").cpu(same, same, out) == 0
    assert not out.any()


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("wrong", [None, "0.1", 1j, np.zeros(1), [0.1], b"1"], ids=repr)
def test_what_is_no_number_is_refused(name: str, wrong: object) -> None:
    kernel = kernels.get(name)
    for place, number in NUMBERS[name]:
        args = list(kernel.arguments(CASE))
        args[place] = wrong if type(wrong) is not np.ndarray else np.zeros(2)
        with pytest.raises(KernelError, match=f"{name}: {number} is .*; expected a?.*Pass .*, for example"):
            kernel.cpu(*args)


OUT_OF_RANGE = {
    "learning_rate": (np.nan, np.inf, -0.1),
    "decay": (np.nan, np.inf, -1, np.float32(-1)),
    "decoupled": (np.nan, -1.0),
    "rescale": (np.nan, np.inf, -np.inf),
    "beta": (np.nan, np.inf, -1.0),
    "beta1": (np.nan, 1, -0.5),
    "beta2": (np.nan, 1.0, 2),
    "gamma": (np.nan, 1.0, -1.0),
    "clip": (np.nan, -1.0),
    "clip_weights": (np.nan, -1.0),
    "epsilon": (np.nan, np.inf, -1e-9),
    "l1": (np.nan, -1.0),
    **dict.fromkeys(("weight_scale", "weight_shift", "target_scale", "target_shift"), (np.nan, np.inf, -np.inf)),
    "steps": (-1, 2.5, np.nan),
    "first": (-1, 2.5, np.nan),
    "step": (0, 2.5, np.nan),
    "n_rows": (-1, 7.5, np.nan),
    "n_columns": (-1, 11.5, np.inf),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_out_of_its_range_is_refused_and_nothing_written(name: str) -> None:
    kernel = kernels.get(name)
    for place, number in NUMBERS[name]:
        for wrong in OUT_OF_RANGE[number]:
            args = list(kernel.arguments(CASE))
            args[place] = wrong
            if number == "step" and wrong == 0 and not name.startswith("adam"):
                continue
            before = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
            with pytest.raises(KernelError, match=f"{number} is "):
                kernel.cpu(*args)
            assert all((a == b).all() for a, b in zip(args, before, strict=True) if isinstance(a, np.ndarray))


def test_numbers_of_other_types_work_as_before() -> None:
    """Integers, NumPy's numbers of any precision, fractions and arrays without axes."""
    kernel = kernels.get("sgd_dense")
    for rate in (1, True, np.float16(1), np.float32(1), np.int8(1), Fraction(1), np.array(1.0)):
        weights = np.zeros((1, 1))
        kernel.cpu(weights, np.ones((1, 1)), rate, 0, 1, np.inf)
        assert weights[0, 0] == -1
