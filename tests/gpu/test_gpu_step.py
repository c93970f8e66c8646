"""The whole step on the emulated device against the CPU's kernels one by one; copies beside it, with no new arrays."""

from contextlib import nullcontext

import numpy as np
import pytest

import kernels
from kernels import KernelError, plan
from kernels.gpu.slots import STEPS_QUEUED, Capacity
from kernels.rules.rule import get_rule
from tests.support.cases import from_rows, random_case
from tests.support.emulated_session import EmulatedSession, OrderError
from tests.support.emulator.device import emulator
from tests.support.gpu_steps import (
    PAIRS,
    D,
    R,
    assert_steps_are_those_of_the_cpu,
    batches,
    dense_batches,
    dense_start,
    load,
    make_dense_step,
    make_step,
    numbers_at,
    start,
    targets_of,
)
from tests.support.implementations import same_bits
from tests.support.rounding_model import numbers_of as numbers_of_elements
from tests.support.rounding_model import rounded, widened

NUMBERS = get_rule("sgd").example


@pytest.mark.parametrize("width", [4, 5])
@pytest.mark.parametrize(("rule", "loss"), PAIRS)
def test_steps_change_weights_states_and_loss_as_the_cpu_does(session, rule: str, loss: str, width: int) -> None:
    """No array is made or read on the way, on the device or pinned."""
    assert_steps_are_those_of_the_cpu(session, rule, loss, width, session.nothing_made)


def after(session: EmulatedSession, is_dense: bool, order: str, slots: int = 2) -> list[np.ndarray]:
    """Weights and states after loads of batches, and runs, in that order."""
    if is_dense:
        step = make_dense_step(session, "sgd", dense_start("sgd", 4, "float64"), slots=slots)
        made = [batch for batch in dense_batches(4, "float64", "softmax") if len(batch[0])]
    else:
        step, made = make_step(session, "sgd", start("sgd", 4), slots=slots), batches(4)
    done = {"load": 0, "run": 0}
    for word in order.split():
        number, done[word] = done[word], done[word] + 1
        if word == "run":
            step.run(number % slots, *numbers_at("sgd", number + 1))
        elif is_dense:
            step.slots[number % slots].load(*made[number % len(made)])
        else:
            load(step, number % slots, "softmax", made[number])
    return step.read()


@pytest.mark.parametrize("is_dense", [False, True])
def test_a_slot_may_be_filled_again_while_its_step_is_queued(session, is_dense: bool) -> None:
    one_by_one = after(session, is_dense, "load run " * 6, slots=1)
    for order in ("load load " + "run load " * 4 + "run run", "load " + "load run " * 5 + "run"):
        np.testing.assert_array_equal(after(EmulatedSession(emulator), is_dense, order)[0], one_by_one[0])


SECOND, PINNED = "the second stream uses an array that the first one may be at", "the host has changed pinned memory"
MISSED = {
    "load waits for the zeros": ("load", "wait_for", 0, SECOND),
    "step waits for copies": ("load run", "wait_for", 1, "first stream uses an array that the second one may be at"),
    "load waits for the step": ("load run " * 3, "wait_for", 4, SECOND),
    "load waits for the graph": ("load run " * 5, "wait_for", 8, SECOND),
    "load waits for pinned memory": ("load load load", "until", 0, PINNED),
    "run waits for its settings": ("load load " + "run " * (STEPS_QUEUED + 1), "until", 0, PINNED),
}


@pytest.mark.parametrize("is_dense", [False, True])
@pytest.mark.parametrize("name", MISSED)
def test_a_wait_that_is_left_out_is_found(session, name: str, is_dense: bool) -> None:
    order, method, place, message = MISSED[name]
    after(EmulatedSession(emulator), is_dense, order)
    session.forget(method, [place])
    with pytest.raises(OrderError, match=message):
        after(session, is_dense, order)


@pytest.mark.parametrize("is_awaited", [True, False])
def test_memory_that_goes_back_while_the_other_stream_may_be_at_it_is_found(session, is_awaited: bool) -> None:
    with session.second_stream() as work:
        made = session.copy(np.arange(3.0), work)
    session.wait_for(work.marks["end"])
    session.device.clear(made)
    if is_awaited:
        session.finish()
    del made
    expected = pytest.raises(OrderError, match="the second stream takes memory again that the first one may be at")
    with nullcontext() if is_awaited else expected:
        session.mark()


def test_the_host_waits_for_pinned_memory_alone(session) -> None:
    step, case = make_step(session, "sgd", start("sgd", 4), slots=3), batches(4)[0]
    for number in range(3):
        load(step, number, "softmax", case)
    assert session.log.count("until") == 1  # of two buffers, for the third batch
    for number in range(STEPS_QUEUED):
        step.run(number % 3, *numbers_at("sgd", number + 1))
    assert session.log.count("until") == 1
    step.run(0, *numbers_at("sgd", STEPS_QUEUED + 1))
    assert session.log.count("until") == 2


def test_settings_are_sent_when_they_change(session) -> None:
    step, case = make_step(session, "sgd", start("sgd", 4)), batches(4)[0]
    load(step, 0, "softmax", case)
    before = session.log.count("fill")
    for number in (0, 0, 0, 1, 1, 0):
        step.run(0, *numbers_at("sgd", number + 1))
    assert session.log.count("fill") == before + 3


def test_a_batch_that_does_not_fit_is_refused(session) -> None:
    step = make_step(session, "sgd", start("sgd", 4), capacity=Capacity(R, 400, 20))
    with pytest.raises(KernelError, match=r"500 entries and 40 active columns came; there is room for 300, 400 and"):
        load(step, 0, "softmax", batches(4)[0])
    with pytest.raises(KernelError, match="with 301 rows"):
        load(step, 0, "softmax", random_case(R + 1, D, 20, 4, dtype=np.float64))
    with pytest.raises(KernelError, match=r"^Targets of shape \[300, 4\] came; this batch takes \[300\]\.$"):
        load(step, 0, "squared", batches(4)[2])
    with pytest.raises(KernelError, match=r"^Slot 0 has no batch; load one\.$"):
        step.run(0, *NUMBERS)


def test_targets_of_another_kind_are_refused_and_nothing_is_copied(session) -> None:
    step, case = make_step(session, "sgd", start("sgd", 4)), batches(4)[0]
    made = plan.build(case.indptr, case.indices, D)
    with pytest.raises(TypeError, match="Cannot cast"):
        step.slots[0].load(case.indptr, case.indices, case.data, np.zeros(R), made)
    assert "fill" not in session.log


@pytest.mark.parametrize("wrong", [4, -1])
def test_a_wrong_label_is_told_when_it_comes(session, wrong: int) -> None:
    step, case = make_step(session, "sgd", start("sgd", 4)), batches(4)[0]
    labels = targets_of("softmax", case)
    labels[5] = wrong
    made = plan.build(case.indptr, case.indices, D)
    with pytest.raises(KernelError, match=rf"labels\[5\] is {wrong}; scores have 4 columns, so labels are 0 to 3"):
        step.slots[0].load(case.indptr, case.indices, case.data, labels, made)


def test_batches_of_other_types_and_of_a_slice_are_taken(session) -> None:
    """int64 and read-only indices, rows that start above zero, values with gaps, small labels."""
    case, labels = batches(4)[0], targets_of("softmax", batches(4)[0])
    first, last = case.indptr[[100, 200]]
    indptr, indices = case.indptr[100:201].astype(np.int64), case.indices[first:last].astype(np.int64)
    values = np.repeat(case.data[first:last], 2)[::2]
    indptr.flags.writeable = indices.flags.writeable = False
    made, results = plan.build(indptr, indices, D), []
    for given in ((indptr, indices, values), (indptr - first, indices.astype(np.int32), values.copy())):
        step = make_step(EmulatedSession(emulator), "sgd", start("sgd", 4))
        step.slots[0].load(*given, labels[100:200].astype(np.uint8), made)
        step.run(0, *NUMBERS)
        results.append((*step.read(), step.loss()))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    assert results[0][1] == results[1][1] > 0


def test_nan_in_a_batch_reaches_its_columns_and_no_others(session) -> None:
    case, arrays = batches(4)[1], start("sgd", 4)
    step, values = make_step(session, "sgd", arrays, "squared"), case.data.copy()
    values[7] = np.nan
    made = plan.build(case.indptr, case.indices, D)
    step.slots[0].load(case.indptr, case.indices, values, targets_of("squared", case), made)
    step.run(0, *NUMBERS)
    row = np.searchsorted(case.indptr, 7, side="right") - 1
    hit = np.unique(case.indices[case.indptr[row] : case.indptr[row + 1]])
    assert np.isnan(step.loss())
    assert np.flatnonzero(np.isnan(step.read()[0]).any(axis=1)).tolist() == hit.tolist()


def test_unknown_loss_is_refused_with_those_there_are(session) -> None:
    with pytest.raises(KernelError, match=r"Unknown loss 'hinge'.*Expected one of: softmax, logistic, squared"):
        make_step(session, "sgd", start("sgd", 4), "hinge")


def test_the_bytes_of_a_step_are_those_of_its_arrays(session) -> None:
    one, two = (make_step(session, "sgd", start("sgd", 4), slots=count).nbytes for count in (1, 2))
    by_entry, by_row, by_column = 1000 * (4 + 8 + 4 + 8), 4 * (R + 1) + 8 * R, 8 * D + 4 * (D + 1)
    assert two - one == by_entry + by_row + by_column + 16
    assert one > two - one + 2 * R * 4 * 8


@pytest.mark.parametrize("name", ["csr_dense", "csr_dense_ones", "csr_t_dense"])
def test_entries_behind_the_last_row_play_no_part(name: str) -> None:
    """As in arrays with room for more; with NaN there, and a long row that ends where the entries do."""
    case = from_rows(np.repeat([0, 1, 3], [5, 200, 150]), np.arange(355) % 9, 4, 9, 4)
    kernel = kernels.get(name)
    starts, indices, *values, x, out = kernel.arguments(case)
    more = np.append(indices, np.full(40, 8)).astype(indices.dtype)
    padded = [np.append(v, np.full(40, np.nan)).astype(v.dtype) for v in values]
    expected, came = emulator.put(out), emulator.put(out)
    kernel.gpu(*map(emulator.put, (starts, indices, *values, x)), expected)
    kernel.gpu(*map(emulator.put, (starts, more, *padded, x)), came)
    np.testing.assert_array_equal(emulator.read(came), emulator.read(expected))


@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("kind", ["float16", "uint16"])
@pytest.mark.parametrize(("rule", "loss"), PAIRS[:4])
def test_narrow_weights_are_those_of_float32_rounded_after_every_step(
    session, rule: str, loss: str, kind: str, seed: int | None
) -> None:
    arrays = [array.astype(np.float32) for array in start(rule, 4)]
    arrays[0] = rounded(arrays[0], kind)
    narrow, numbers = make_step(session, rule, arrays, loss, seed=seed), get_rule(rule).example
    for number, size in enumerate((500, 0, 333), start=1):
        case = random_case(R, D, size, 4, seed=size)
        before, *states = narrow.read()
        wide = make_step(EmulatedSession(emulator), rule, [widened(before), *states], loss)
        for step in (narrow, wide):
            load(step, 0, loss, case)
            step.run(0, *numbers)
        random = None if seed is None else numbers_of_elements((D, 4), seed, number)
        touched, expected = np.unique(case.indices), before.copy()
        expected[touched] = rounded(wide.read()[0], kind, random)[touched]
        assert same_bits(narrow.read(), [expected, *wide.read()[1:]])
        assert narrow.loss() == wide.loss()
