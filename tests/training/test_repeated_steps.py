"""Steps on batches of dense rows that are copied to the same memory: the same bits as steps on any batch."""

import numpy as np
import pytest

from kernels import KernelError
from workbench import data, models, training
from workbench.optimizers import OptimizerError
from workbench.sweeps import problem
from workbench.training.repeated_steps import RepeatedSteps
from workbench.training.run import Run

ROWS = 90
DENSE = {"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard", "shuffle": True}
MODELS = [name for name in models.names() if not models.get(name).needs]


@pytest.fixture(scope="module")
def made() -> data.Dataset:
    return data.load("power_law", rows=ROWS, features=40, density=0.15, classes=3, seed=1, cache=False)


def new_run(made: data.Dataset, model: str = "logistic", rows: int = 20, dtype: str = "float32", **settings) -> Run:
    setup = training.Setup(**{**DENSE, "model": model, "batch_rows": rows, "dtype": dtype, "seed": 3, **settings})
    width = next(width for width in (3, 1) if models.get(model).allows(width))
    y = problem.targets(made, models.get(model), width, np.dtype(dtype))
    return Run(setup, made.x.toarray().astype(dtype), y, width)


def one_by_one(run: Run, epoch: int) -> list[float]:
    """Losses of an epoch whose batches are new arrays each."""
    return [run.do_step(run.prepare(batch), epoch, {}, 0.0).loss for batch in run.batches.epoch(epoch)]


def repeated(run: Run, epoch: int) -> list[float]:
    return [event.loss for event in run.epoch(epoch)]


def repeats(run: Run) -> bool:
    """Whether the next batches of each size are done by the same calls as those before."""
    steps = run.repeated.steps_of(run)
    return isinstance(steps, RepeatedSteps) and all(held.fits(run.updater) for held in steps.batches.values())


def assert_same(run: Run, other: Run) -> None:
    for name, array in run.arrays.items():
        np.testing.assert_array_equal(array, other.arrays[name], err_msg=name)
    for name, states in run.updater.states.items():
        for state, its in zip(states, other.updater.states[name], strict=True):
            np.testing.assert_array_equal(state, its, err_msg=name)


@pytest.mark.parametrize("last", ["keep", "pad", "roll_over", "discard"])
@pytest.mark.parametrize("model", MODELS)
def test_they_have_the_bits_of_steps_on_new_arrays(made, model, last):
    one, other = (new_run(made, model, last=last, optimizer="adam", options={"decay": 0.01}) for _ in range(2))
    for epoch in range(3):
        assert repeated(one, epoch) == one_by_one(other, epoch)
    assert_same(one, other)
    assert one.step == other.step
    assert repeats(one) is not bool(one.patterned or one.reads_others)


@pytest.mark.parametrize("optimizer", ["sgd", "adagrad", "group_adagrad", "ftrl"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [1, 30, ROWS - 1])
def test_every_rule_type_and_size(made, optimizer, dtype, rows):
    one, other = (new_run(made, "softmax", rows, dtype, optimizer=optimizer) for _ in range(2))
    for epoch in range(2):
        assert repeated(one, epoch) == one_by_one(other, epoch)
    assert_same(one, other)
    assert repeats(one)


def test_a_smaller_last_batch_is_done_by_its_own_calls(made):
    run = new_run(made)
    assert repeated(run, 0)
    steps = run.repeated.steps_of(run)
    bound = {rows: (held.passes, held.updates) for rows, held in steps.batches.items()}
    assert sorted(bound) == [10, 20]
    assert repeated(run, 1)
    assert {rows: (held.passes, held.updates) for rows, held in steps.batches.items()} == bound
    assert all(held.fits(run.updater) for held in steps.batches.values())


def test_large_rows_are_copied_by_the_kernel():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((300, 90)).astype(np.float32), rng.random((300, 1)).astype(np.float32)
    one, other = (Run(training.Setup(**DENSE, model="logistic", batch_rows=128), x, y, 1) for _ in range(2))
    for epoch in range(2):
        assert repeated(one, epoch) == one_by_one(other, epoch)
    assert_same(one, other)


def interrupted(run: Run, epoch: int, do, steps) -> list[float]:
    """An epoch by `steps`, and what is done between it and the next by `do`."""
    losses = steps(run, epoch)
    do(run)
    return losses


def forward_of_another_batch(run: Run) -> None:
    run.forward(run.prepare(run.batches.of_rows(np.arange(20))))
    run.backward()


def another_rate(run: Run) -> None:
    run.updater.options["learning_rate"] = 0.5


def other_rows(run: Run) -> None:
    run.take(run.batches.x[::-1].copy(), run.batches.y[::-1].copy())


def other_heads(run: Run) -> None:
    run.forward(run.prepare(run.batches.of_rows(np.arange(20))))
    run.executor.backward(heads=np.float32(3.0))


@pytest.mark.parametrize(
    "do",
    [
        forward_of_another_batch,
        another_rate,
        other_rows,
        other_heads,
        Run.reset,
        lambda run: run.load_state_dict(run.state_dict()),
        lambda run: run.predict(run.batches.x),
        lambda run: run.write_rows(np.arange(3), np.ones((3, 1), np.float32)),
    ],
    ids=["batch", "rate", "rows", "heads", "reset", "state", "predict", "weights"],
)
def test_what_is_done_in_between_is_obeyed(made, do):
    one, other = (new_run(made, optimizer="adam") for _ in range(2))
    for epoch in range(3):
        assert interrupted(one, epoch, do, repeated) == interrupted(other, epoch, do, one_by_one)
    assert_same(one, other)
    assert one.updater.steps == other.updater.steps


def test_an_epoch_that_is_left_goes_on_with_other_batches(made):
    run = new_run(made)
    first = next(run.epoch(0)).loss
    assert repeated(run, 1)
    run.reset()
    assert next(run.epoch(0)).loss == first


def test_a_wrong_label_names_the_step(made):
    run = new_run(made, "softmax", 30)
    assert repeated(run, 0)
    assert repeats(run)
    run.batches.y[:] = 7
    with pytest.raises(KernelError, match="labels are 0 to 2") as raised:
        repeated(run, 1)
    assert "the step loss" in raised.value.__notes__[0]


def test_weights_that_became_read_only_are_refused(made):
    run = new_run(made)
    assert repeated(run, 0)
    run.arrays["w"].flags.writeable = False
    with pytest.raises(OptimizerError, match="read-only"):
        repeated(run, 1)


@pytest.mark.parametrize(
    "settings",
    [
        {"shuffle": False},
        {"ahead": True},
        {"format": "csr", "engine": "ours"},
        {"format": "csr", "engine": "ours", "gradient": "row_sparse"},
    ],
    ids=["kept", "ahead", "csr", "row_sparse"],
)
def test_other_batches_are_done_as_they_were(made, settings):
    run = new_run(made, **settings)
    assert repeated(run, 0)
    assert run.repeated.steps_of(run) is None


def test_the_phases_of_a_step_are_all_of_it(made):
    run = new_run(made)
    events = [*run.epoch(0)]
    assert {phase for phase, seconds in events[2].seconds.items() if seconds} == {
        *("slice", "forward", "loss", "gradient", "update")
    }
    assert events[2].seconds_prepare == events[2].seconds["slice"]
    assert [event.step for event in events] == [1, 2, 3, 4, 5]
    assert [event.rows for event in events] == [20, 20, 20, 20, 10]
