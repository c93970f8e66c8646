"""What is known of the numbers of entries changes what is launched and in which order, and not a bit of the results."""

import numpy as np
import pytest

import kernels
from kernels import Case
from kernels.gpu import indices as gpu_plan
from kernels.gpu import updates
from kernels.gpu.row_sums import PIECE, UNKNOWN, Lengths
from kernels.gpu.slots import Capacity
from kernels.products import csr_dense, csr_dense_ones
from kernels.rules.rule import get_rule
from tests.support.cases import CASES, from_rows
from tests.support.emulated_session import EmulatedSession
from tests.support.emulator.device import emulator
from tests.support.gpu_implementations import GPU_CASES, LONG, run_on
from tests.support.gpu_steps import D, R, load, make_step, start
from tests.support.implementations import assert_close, run, same_bits
from tests.support.kernel_targets import CORE_CUDA, WIDTHS_CUDA, targets_of

pytestmark = pytest.mark.usefixtures("ascending")

PRODUCTS = {"csr_dense": csr_dense.on_device, "csr_dense_ones": csr_dense_ones.on_device}


def alike(length: int, rows: int = 9, N: int = 5, D: int = 7, **types) -> Case:
    """Rows of one length, columns repeated and in no order."""
    columns = np.random.default_rng(length).integers(0, D, rows * length)
    return from_rows(np.repeat(np.arange(rows), length), columns, rows, D, N, **types)


ALIKE = {f"rows of {length}": alike(length) for length in (0, 1, 2, 39, PIECE, PIECE + 1, 300)}
ALIKE |= {"one row": alike(4, rows=1), "64 bits": alike(130, N=6, dtype=np.float64, index=np.int64)}
EVERY = {**GPU_CASES, **ALIKE}


def planned(case: Case) -> tuple[list, object]:
    """The batch and its plan on the device, results in order of their length where that is worth it."""
    there = [emulator.put(array) for array in (case.indptr, case.indices, case.data)]
    return there, gpu_plan.build(*there[:2], case.D, in_order_of_length=True)


def forced(starts: np.ndarray) -> Lengths:
    """All that can be known, whether it is worth it or not."""
    lengths = np.diff(starts)
    order = np.argsort(-np.minimum(lengths, PIECE + 1), kind="stable").astype(np.int32)
    return Lengths(longest=int(lengths.max(initial=0)), order=emulator.put(order))


every_case = pytest.mark.covering(targets=targets_of(EVERY, CORE_CUDA, WIDTHS_CUDA))


@every_case
@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("case", EVERY.values(), ids=EVERY)
def test_products_are_the_same_bits(name: str, case: Case) -> None:
    kernel, (_, plan) = kernels.get(name), planned(case)
    args = kernel.arguments(case)
    expected = run_on(emulator, kernel.gpu, args)
    assert_close(case, expected, run(kernel.reference, args))
    for emulator.seed, lengths in enumerate((Lengths.of_rows(plan), forced(case.indptr), Lengths(longest=10**6))):
        came = run_on(emulator, lambda *there, lengths=lengths: PRODUCTS[name](*there, lengths), args)
        assert same_bits(came, expected)


@every_case
@pytest.mark.parametrize("name", ["sgd_fused", "adam_fused", "group_adagrad_fused"])
@pytest.mark.parametrize("case", EVERY.values(), ids=EVERY)
def test_gradients_and_fused_updates_are_the_same_bits(name: str, case: Case) -> None:
    rule, kernel, (_, plan) = get_rule(name.removesuffix("_fused")), kernels.get(name), planned(case)
    arrays, batch, settings = rule.split(kernel.arguments(case))
    host = tuple(np.array(array) for array in (*arrays, *batch))
    expected = run_on(emulator, lambda *there: updates.fused(rule, *_split(there, arrays), settings), host)
    for emulator.seed, lengths in enumerate((Lengths.of_columns(plan), forced(batch[1]))):
        call = lambda *there, lengths=lengths: updates.fused(rule, *_split(there, arrays), settings, lengths)  # noqa: E731
        assert same_bits(run_on(emulator, call, host), expected)


def _split(there: tuple, arrays: tuple) -> tuple[tuple, tuple]:
    return there[: len(arrays)], there[len(arrays) :]


@pytest.mark.parametrize("name", ["rows of 1", "rows of 39", "rows of 300", "one row"])
def test_starts_of_rows_of_one_length_are_not_read(name: str) -> None:
    case = ALIKE[name]
    args = kernels.get("csr_dense").arguments(case)
    expected = run_on(emulator, kernels.get("csr_dense").gpu, args)
    there = [emulator.put(array) for array in args]
    there[0] = emulator.put(np.full_like(case.indptr, 10**6))
    csr_dense.on_device(*there, Lengths(constant=case.indptr[1]))
    assert same_bits([emulator.read(there[-1])], expected[-1:])


@pytest.mark.parametrize(("longest", "launches"), [(-1, 1), (PIECE, 0), (PIECE + 1, 1)])
def test_a_second_launch_is_for_what_may_be_cut(longest: int, launches: int, monkeypatch) -> None:
    monkeypatch.setattr(emulator, "launches", {})
    args = kernels.get("csr_dense").arguments(alike(20, rows=20))
    run_on(emulator, lambda *there: csr_dense.on_device(*there, Lengths(longest=longest)), args)
    assert sum(count for name, count in emulator.launches.items() if name.startswith("add_pieces")) == launches


def test_order_is_descending_and_made_where_some_are_much_longer() -> None:
    for case in LONG.values():
        (indptr, _, _), plan = planned(case)
        for starts, order in ((indptr, plan.row_order), (plan.segments, plan.column_order)):
            lengths = np.minimum(np.diff(emulator.read(starts)), PIECE + 1)
            if order is not None:
                order = emulator.read(order)
                assert order.dtype == np.int32
                assert sorted(order) == list(range(lengths.size))
                assert (np.diff(lengths[order]) <= 0).all()
    assert planned(LONG["long rows"])[1].row_order is not None
    assert planned(LONG["hot columns"])[1].column_order is not None
    assert planned(LONG["hot columns"])[1].row_order is None  # rows of one to three entries
    assert planned(ALIKE["rows of 39"])[1].row_order is None
    there = planned(LONG["long rows"])[0]
    assert gpu_plan.build(*there[:2], 50).row_order is None  # not asked for


@pytest.mark.parametrize("case_name", ["plain", "no rows", "no entries", "nothing", "many rows", "64 bits"])
def test_lengths_are_found_of_starts_alone(case_name: str) -> None:
    case = CASES[case_name]
    found, lengths = gpu_plan.lengths_of(emulator.put(case.indptr), True), np.diff(case.indptr)
    assert found.longest == lengths.max(initial=0)
    assert found.constant == (lengths[0] if lengths.size and (lengths == lengths[0]).all() else -1)
    assert gpu_plan.lengths_of(emulator.put(np.array([0, 4, 8], np.int32))) == Lengths(4, 4)


def test_nothing_known_is_the_default() -> None:
    assert (UNKNOWN.pieces(PIECE), UNKNOWN.pieces(PIECE + 1), Lengths(longest=0).pieces(10**9)) == (0, 2, 0)


@pytest.mark.parametrize("length", [1, 7, PIECE])
def test_a_step_for_rows_of_one_length_is_the_same_bits_and_a_launch_less(length: int, monkeypatch) -> None:
    """Also for a batch of fewer rows than there is room for, after one that filled it."""
    made = []
    for lengths in (UNKNOWN, Lengths(length, length)):
        monkeypatch.setattr(emulator, "launches", {})
        capacity = Capacity(R, R * length, D, lengths)
        step = make_step(EmulatedSession(emulator), "adagrad", start("adagrad", 4), "squared", capacity=capacity)
        for rows in (R, 30, 0):
            load(step, 0, "squared", alike(length, rows, N=4, D=D, dtype=np.float64))
            step.run(0, *get_rule("adagrad").example)
            made.append([*step.read(), np.array(step.loss())])
        pieces = sum(count for name, count in emulator.launches.items() if name.startswith("add_pieces"))
        assert (pieces > 0) == (lengths is UNKNOWN)
    for one, other in zip(made[:3], made[3:], strict=True):
        assert same_bits(one, other)
