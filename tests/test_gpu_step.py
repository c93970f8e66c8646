"""The whole step on the emulated device against the CPU's kernels one by one; batch after batch, with no new arrays."""

from contextlib import contextmanager

import numpy as np
import pytest
from cases import from_rows, random_case
from gpu_steps import PAIRS, D, R, assert_steps_are_those_of_the_cpu, batches, load, start, targets_of

import kernels
from kernels import KernelError, plan
from kernels.gpu.step import Room, Step
from kernels.rules import get_rule

emulator_build = pytest.importorskip("emulator.build")
if emulator_build.compiler() is None:
    pytest.skip("g++, which compiles the CUDA sources for the host, is not installed", allow_module_level=True)

from emulator.device import emulator  # noqa: E402


@pytest.mark.parametrize("width", [4, 5])
@pytest.mark.parametrize(("rule", "loss"), PAIRS)
def test_steps_change_weights_states_and_loss_as_the_cpu_does(rule: str, loss: str, width: int, monkeypatch) -> None:
    def refuse(*args):
        raise AssertionError(f"a step made or read an array: {args}")

    @contextmanager
    def nothing_made_or_read():
        with monkeypatch.context() as patch:
            for method in ("empty", "zeros", "read"):
                patch.setattr(emulator, method, refuse)
            yield

    assert_steps_are_those_of_the_cpu(emulator, rule, loss, width, nothing_made_or_read)


def test_next_batch_may_be_loaded_before_the_step_of_this_one() -> None:
    one, other = batches(4)[:2]
    results = []
    for order in ("load load run run", "load run load run"):
        step, done = Step(emulator, "sgd", start("sgd", 4), Room(R, 1000, D)), {"load": 0, "run": 0}
        for word in order.split():
            slot, done[word] = done[word], done[word] + 1
            if word == "load":
                load(step, slot, "softmax", (one, other)[slot])
            else:
                step.run(slot, *get_rule("sgd").example)
        results.append(step.read()[0])
    np.testing.assert_array_equal(results[0], results[1])


def test_a_batch_that_does_not_fit_is_refused() -> None:
    step = Step(emulator, "sgd", start("sgd", 4), Room(R, 400, 20))
    with pytest.raises(KernelError, match=r"500 entries and 40 touched columns came; there is room for 400 entries"):
        load(step, 0, "softmax", batches(4)[0])
    with pytest.raises(KernelError, match="with 7 rows"):
        load(step, 0, "squared", random_case(7, D, 20, 4, dtype=np.float64))


def test_a_wrong_label_is_told_with_the_loss() -> None:
    step, case = Step(emulator, "sgd", start("sgd", 4), Room(R, 1000, D)), batches(4)[0]
    labels = targets_of("softmax", case)
    labels[5] = 4
    step.slots[0].load(case.indptr, case.indices, case.data, labels, plan.build(case.indptr, case.indices, D))
    step.run(0, *get_rule("sgd").example)
    with pytest.raises(KernelError, match="not in 0 to 3; number the classes from 0"):
        step.loss()


def test_unknown_loss_is_refused_with_those_there_are() -> None:
    with pytest.raises(KernelError, match="There is no loss 'hinge'; there is softmax, logistic, squared"):
        Step(emulator, "sgd", start("sgd", 4), Room(R, 1000, D), "hinge")


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
