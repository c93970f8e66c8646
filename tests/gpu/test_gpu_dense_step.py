"""The whole dense step on the emulated device: the bits of its kernels one by one, and the calls of its graphs."""

import numpy as np
import pytest

from kernels import KernelError
from kernels.rules.rule import get_rule
from tests.support.emulated_session import EmulatedSession
from tests.support.emulator.device import EmulatorError, emulator
from tests.support.gpu_steps import (
    PAIRS,
    D,
    R,
    assert_dense_steps_are_those_of_kernels,
    dense_batches,
    dense_start,
    dense_step_by_kernels,
    make_dense_step,
    numbers_at,
)


def softmax_step(session, slots: int = 2, width: int = 4, dtype: str = "float64"):
    return make_dense_step(session, "sgd", dense_start("sgd", width, dtype), slots=slots)


def full(number: int = 0, width: int = 4, dtype: str = "float64"):
    """Batches that fill a slot."""
    return [batch for batch in dense_batches(width, dtype, "softmax") if len(batch[0]) == R][number]


@pytest.mark.parametrize("width", [4, 5])
@pytest.mark.parametrize(("rule", "loss"), PAIRS)
def test_steps_have_the_bits_of_their_kernels_one_by_one(session, rule: str, loss: str, width: int) -> None:
    """With batches of fewer rows than there is room for, of one row and of none; nothing is made on the way."""
    assert_dense_steps_are_those_of_kernels(session, rule, loss, width, "float64", session.nothing_made)


@pytest.mark.parametrize("loss", ["softmax", "logistic", "squared"])
@pytest.mark.parametrize("width", [1, 2, 3, 7, 16, 33, 64])
def test_every_width_has_the_bits_of_its_kernels_in_float32(session, width: int, loss: str) -> None:
    assert_dense_steps_are_those_of_kernels(session, "adam", loss, width, "float32", session.nothing_made)


PRODUCTS = {"softmax": "softmax<double, 8, 2>", "logistic": "logistic<double>", "squared": "squared<double>"}


@pytest.mark.parametrize(("rule", "loss"), PAIRS)
def test_a_graph_holds_two_products_the_loss_and_the_update_in_order(session, rule: str, loss: str) -> None:
    step = make_dense_step(session, rule, dense_start(rule, 4, "float64"), loss)
    for number in range(4):
        step.slots[number % 2].load(*dense_batches(4, "float64", loss)[0])
        step.run(number % 2, *numbers_at(rule, number + 1))
    assert set(step.graphs) == {(0, R), (1, R)}
    update = "rows_live<double, 2, 4>" if get_rule(rule).average else "dense_live<double, 2>"
    for graph in step.graphs.values():
        assert graph.calls == ["matmul", PRODUCTS[loss], "sum_all", "matmul transposed", update]


def test_each_slot_has_a_graph_for_every_number_of_rows_and_captures_it_once(session, monkeypatch) -> None:
    step, captured = softmax_step(session), []
    real = emulator.capture
    monkeypatch.setattr(emulator, "capture", lambda work: captured.append(1) or real(work))
    for number, rows in enumerate([R, R, 1, R, 1, R, 1, 1] * 3):
        x, labels = full()
        step.slots[number % 2].load(x[:rows], labels[:rows])
        step.run(number % 2, *numbers_at("sgd", 1))
    assert set(step.graphs) == {(0, R), (1, R), (0, 1), (1, 1)}
    assert len(captured) == 4


def test_the_first_step_by_so_many_rows_is_no_graph_for_it_compiles_the_kernels(session) -> None:
    step = softmax_step(session)
    step.slots[0].load(*full())
    step.run(0, *numbers_at("sgd", 1))
    assert not step.graphs
    step.known.add(1)  # as if a step by one row had run
    step.slots[0].load(*(array[:1] for array in full()))
    with pytest.raises(EmulatorError, match=r"matmul was called for the first time while a graph is captured: \(\(1, "):
        step.run(0, *numbers_at("sgd", 1))


def test_a_replay_computes_from_what_the_slot_has_then(session) -> None:
    """The same graph by other batches, rates, and weights."""
    step, there = softmax_step(session, slots=1), list(map(emulator.put, dense_start("sgd", 4, "float64")))
    graphs = []
    for number in range(3):
        step.slots[0].load(*full(number))
        step.run(0, *numbers_at("sgd", number + 1))
        graphs += step.graphs.values()
        expected = dense_step_by_kernels(session, "sgd", "softmax", there, full(number), numbers_at("sgd", number + 1))
        assert step.loss() == expected
    assert graphs[0] is graphs[1]
    step.device.clear(step.arrays[0])
    step.run(0, *numbers_at("sgd", 1))
    assert step.loss() == pytest.approx(np.log(4), rel=1e-12)


def test_rows_of_the_batch_before_play_no_part(session) -> None:
    """Of a slot that was full of NaN, and of scores and slopes of it."""
    step, (x, labels) = softmax_step(session, slots=1), full()
    weights = step.arrays[0]
    step.slots[0].load(np.full_like(x, np.nan), labels)
    step.run(0, *numbers_at("sgd", 1))
    assert np.isnan(step.loss())
    for _ in range(2):  # by kernels, and as a graph
        emulator.assign(weights, emulator.put(dense_start("sgd", 4, "float64")[0]))
        step.slots[0].load(x[:7], labels[:7])
        step.run(0, *numbers_at("sgd", 1))
        assert np.isfinite(step.loss())
        assert np.isfinite(step.read()[0]).all()


def test_a_batch_is_one_copy_beside_its_targets_and_settings_are_sent_when_they_change(session) -> None:
    step = softmax_step(session)
    step.slots[0].load(*full())
    assert session.log.count("fill") == 2
    for number in (1, 1, 1, 2, 2, 1):
        step.run(0, *numbers_at("sgd", number))
    assert session.log.count("fill") == 2 + 3
    before = session.copied
    step.slots[1].load(*(array[:7] for array in full()))
    assert session.copied - before == 7 * D * 8 + 7 * 8  # no more than the rows that there are


def test_a_batch_that_does_not_fit_is_refused(session) -> None:
    step, (x, labels) = softmax_step(session), full()
    wide, more = np.zeros((R, D + 1)), np.zeros((R + 1, D))
    with pytest.raises(KernelError, match=rf"shape \[{R}, {D + 1}\] came; there is room for {R} rows of {D} columns"):
        step.slots[0].load(wide, labels)
    with pytest.raises(KernelError, match=rf"A dense batch of shape \[{R + 1}, {D}\] came"):
        step.slots[0].load(more, np.zeros(R + 1, np.int64))
    with pytest.raises(KernelError, match=rf"^Targets of shape \[{R - 1}\] came; this batch takes \[{R}\]\.$"):
        step.slots[0].load(x, labels[1:])
    for wrong in (4, -1):
        with pytest.raises(KernelError, match=rf"labels\[5\] is {wrong}; scores have 4 columns, so labels are 0 to 3"):
            step.slots[0].load(x, np.where(np.arange(R) == 5, wrong, labels))
    with pytest.raises(TypeError, match="Cannot cast"):
        step.slots[0].load(x, labels.astype(np.float64))
    assert "fill" not in session.log
    with pytest.raises(KernelError, match=r"^Slot 0 has no batch; load one\.$"):
        step.run(0, *numbers_at("sgd", 1))
    with pytest.raises(KernelError, match="Weights of float16 came; dense steps take float32 and float64"):
        make_dense_step(session, "sgd", dense_start("sgd", 4, "float16"))


def test_batches_of_other_types_and_with_gaps_are_taken(session) -> None:
    (x, labels), results = full(dtype="float32"), []
    gaps = np.repeat(x, 2, axis=1)[:, ::2]
    gaps.flags.writeable = False
    for values, targets in (
        (x.astype(np.float64), labels),
        (gaps, labels.astype(np.uint8)),
        (np.asfortranarray(x), labels),
    ):
        step = softmax_step(EmulatedSession(emulator), dtype="float32")
        step.slots[0].load(values, targets)
        step.run(0, *numbers_at("sgd", 1))
        results.append(step.read()[0])
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_the_bytes_of_a_step_are_those_of_its_arrays(session) -> None:
    one, two = (softmax_step(session, slots).nbytes for slots in (1, 2))
    assert two - one == R * D * 8 + R * 8
    assert one > two - one + 2 * R * 4 * 8 + D * 4 * 8
