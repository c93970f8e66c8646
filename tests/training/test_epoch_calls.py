"""Epochs in few calls: the same training as step by step, in other hands; and a clear no where there is none."""

import re

import numpy as np
import pytest

from benchmarks.waits import synthetic
from kernels.epochs import calls
from tests.support.wrong_steps import with_wrong_weights
from tests.training.test_train import targets
from workbench import data, formats, optimizers, training
from workbench.optimizers import deferred_updates, parameter, schedules
from workbench.sweeps.check import check_step
from workbench.training import epoch_calls
from workbench.training.setup import complete_settings, with_epoch_calls

MODELS = ("linear", "logistic", "softmax", "multilabel")
FEW_MODELS = [
    pytest.param(name, marks=() if name in ("logistic", "softmax") else pytest.mark.exhaustive) for name in MODELS
]
"""The others compile loops of their own for the same lines of epochs."""


@pytest.fixture(scope="module")
def made() -> data.Dataset:
    return data.load("power_law", rows=90, features=40, density=0.15, classes=3, seed=1, cache=False)


def both(made: data.Dataset, model: str = "softmax", epochs: int = 2, **settings) -> list[training.Run]:
    """The run step by step and the one in calls, after some epochs, with their losses as `seen`."""
    y, width = targets(made, model, "float32")
    runs = []
    for execution in ("step", "epoch"):
        shared = {"batch_rows": 20, "optimizer": "adagrad", "options": {"decay": 0.01}} | settings
        run = training.Run(
            training.Setup(model=model, execution=execution, **shared), made.x.astype("float32"), y, width
        )
        events = list(run.events(epochs))
        run.seen = np.concatenate([[], *([e.loss] if e.losses is None else e.losses for e in events)])
        runs.append(run)
    return runs


def assert_same(step_by_step: training.Run, in_calls: training.Run) -> None:
    np.testing.assert_allclose(in_calls.seen, step_by_step.seen, rtol=2e-5)
    for run in (step_by_step, in_calls):
        run.catch_up()
    assert in_calls.step == step_by_step.step
    for name, array in step_by_step.arrays.items():
        np.testing.assert_allclose(in_calls.arrays[name], array, rtol=1e-4, atol=1e-5)
        states = zip(step_by_step.updater.states[name], in_calls.updater.states[name], strict=True)
        for one, other in states:
            np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-5)
    assert in_calls.updater.steps == step_by_step.updater.steps


@pytest.mark.parametrize("model", FEW_MODELS)
def test_a_training_in_calls_is_that_of_the_kernels(made, model):
    assert_same(*both(made, model))


@pytest.mark.parametrize(
    "settings",
    [{"optimizer": "adam"}, {"shuffle": False}, {"last": "pad"}, {"last": "discard"},
     {"intercept": False}, {"batch_rows": 1}, {"batch_rows": 500}],
    ids=str,
)  # fmt: skip
def test_batches_steps_and_options_are_those_of_the_kernels(made, settings):
    assert_same(*both(made, "logistic", epochs=3, **settings))


def test_the_weights_of_rows_count_as_step_by_step(made):
    runs, weights = both(made, epochs=1), np.random.default_rng(0).uniform(0, 3, 90).astype(np.float32)
    y, _ = targets(made, "softmax", "float32")
    for run in runs:
        run.take(made.x.astype("float32"), y, weights)
        run.seen = np.concatenate([[e.loss] if e.losses is None else e.losses for e in run.epoch(1)])
    assert_same(*runs)


def test_a_schedule_is_asked_for_every_step(made):
    y, width = targets(made, "softmax", "float32")
    runs = []
    for execution in ("step", "epoch"):
        run = training.Run(training.Setup(batch_rows=20, execution=execution), made.x.astype("float32"), y, width)
        run.updater.schedule = schedules.StepDecay(every=2, factor=0.5)
        run.seen = np.concatenate([[e.loss] if e.losses is None else e.losses for e in run.events(2)])
        runs.append(run)
    assert_same(*runs)


def test_calls_end_soon_at_whole_batches_and_tell_what_they_did(made, monkeypatch):
    monkeypatch.setattr(epoch_calls, "SECONDS_CALL", 8e-6)
    short = both(made, epochs=1)[1]
    events = list(short.epoch(1))
    assert [(event.step, event.rows, event.steps) for event in events] == [(7, 40, 2), (9, 40, 2), (10, 10, 1)]
    assert all(event.loss == pytest.approx(event.losses.mean()) for event in events)
    assert {phase for phase in training.PHASES if events[0].seconds[phase]} == {"slice", "batches"}
    monkeypatch.undo()
    short.calls.rows_most = 50
    assert [event.rows for event in short.epoch(2)] == [40, 40, 10]
    long = both(made, epochs=2)[1]
    list(long.epoch(2))
    np.testing.assert_array_equal(long.weights, short.weights)


OF_EPOCHS = {
    "csr": {},
    "csr, batches of one row": {"batch_rows": 1},
    "csr, one batch": {"batch_rows": 500},
    "csr, all rows updated": {"update": "standard"},
    "csr, stored order": {"shuffle": False},
    "csr, settings of each step": {"optimizer": "adam"},
    "dense": {"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard"},
    "dense, settings of each step": {
        "format": "dense", "engine": "dense", "gradient": "dense", "update": "standard", "optimizer": "adam"
    },
}  # fmt: skip


def short_epochs(made, **settings):
    y, width = targets(made, "softmax", "float32")
    chosen = {"batch_rows": 20, "execution": "epoch", "format": "csr", "shuffle": True, **settings}
    x = made.x.astype("float32")
    return training.Run(training.Setup(**chosen), x.toarray() if chosen["format"] == "dense" else x, y, width)


@pytest.mark.parametrize("settings", OF_EPOCHS.values(), ids=OF_EPOCHS)
def test_several_epochs_in_a_call_have_the_bits_of_single_ones(made, settings):
    one, several = (short_epochs(made, **settings) for _ in range(2))
    losses = np.concatenate([event.losses for event in one.events(7)])
    list(several.epoch(0))
    events = list(several.events_of_epochs(first=1, count=6))
    assert events[0].epochs > 1
    assert sum(event.epochs for event in events) == 6
    assert [events[-1].epoch, events[-1].step] == [6, one.step]
    steps = losses.size // 7
    np.testing.assert_array_equal(np.concatenate([event.losses for event in events]), losses[steps:])
    assert one.weights.tobytes() == several.weights.tobytes()
    assert {name: array.tobytes() for name, array in one.updater.state_dict().items()} == {
        name: array.tobytes() for name, array in several.updater.state_dict().items()
    }


def test_the_event_of_several_epochs_has_the_mean_loss_of_the_rows_of_each(made):
    one, several = (short_epochs(made) for _ in range(2))
    means = [sum(event.loss * event.rows for event in one.epoch(epoch)) / 90 for epoch in range(6)]
    first, event = several.events_of_epochs(count=6)
    assert (first.epochs, first.rows, event.epochs, event.rows, event.steps) == (1, 90, 5, 450, 25)
    np.testing.assert_allclose(event.losses_epochs, means[1:])
    assert event.loss == pytest.approx(np.mean(means[1:]))
    assert list(short_epochs(made).calls.losses_of_epochs(0, 6, at_once=6)) == pytest.approx(means)
    assert [one.epochs for one in short_epochs(made).calls.events_of_epochs(0, 6, 2)] == [1, 2, 2, 1]


DUAL = {"execution": "dual", "optimizer": "sgd", "update": "exact", "options": {"decay": 0.1}}


@pytest.mark.parametrize("settings", [{"update": "exact", "options": {"decay": 0.1}}, DUAL, {"last": "pad"}])
def test_epochs_that_something_happens_between_are_trained_one_by_one(made, settings):
    one, several = (short_epochs(made, **settings) for _ in range(2))
    list(one.events(4))
    assert [event.epochs for event in several.events_of_epochs(count=4)] == [1, 1, 1, 1]
    assert one.weights.tobytes() == several.weights.tobytes()


def test_calls_of_epochs_end_soon(made, monkeypatch):
    run = short_epochs(made)
    monkeypatch.setattr(epoch_calls, "SECONDS_EPOCHS", 3.5 * 90 * run.calls._seconds_row(run.batches.x, 20))
    events = run.events_of_epochs()
    assert [next(events).epochs for _ in range(3)] == [1, 3, 3]
    run.calls.rows_most = 50
    assert [next(events).rows for _ in range(3)] == [40, 40, 10]


@pytest.mark.parametrize("calls_epoch", [1, 3])
def test_the_rest_of_an_epoch_is_trained_by_the_loop_of_its_whole_batches(calls_epoch, monkeypatch):
    compiled = []
    make = calls.make_serial
    monkeypatch.setattr(calls, "make_serial", lambda *given: compiled.append(given) or make(*given))
    x, y = synthetic(2000, 5000, 20, seed=0)  # of which 16 rows are left over by batches of 32
    setup = training.Setup(model="logistic", optimizer="adagrad", format="csr", execution="epoch", batch_rows=32)
    run = training.make_run(setup, x, y[:, None].astype(np.float32), 1)
    run.calls.rows_most = None if calls_epoch == 1 else 700
    events = list(run.epoch(0))
    assert len(events) == calls_epoch
    assert sum(event.rows for event in events) == 2000
    assert len(set(compiled)) == 1


@pytest.mark.parametrize("model", FEW_MODELS)
def test_the_call_itself_is_checked_before_it_is_timed(made, model, monkeypatch):
    run = both(made, model, epochs=0)[1]
    assert check_step(run).reason == ""
    with_wrong_weights(monkeypatch, epoch_calls.EpochCalls, "call")
    assert "update by" in check_step(run).reason


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"format": "coo"}, "with format coo execution is step"),
        ({"ahead": True}, "nothing ahead; with ahead execution is step"),
        ({"device": "cuda", "intercept": False}, "with device cuda execution is step"),
        ({"update": "standard", "gradient": "dense"}, "with gradient dense execution is step"),
        ({"model": "factorization_machine"}, "are for linear, logistic, multilabel, softmax; for factor"),
    ],
    ids=str,
)
def test_what_goes_into_no_call_is_refused_with_what_does(settings, expected):
    reason = training.impossible_reason(training.Setup(execution="epoch", **settings))
    assert reason.startswith("Epochs in one call ")
    assert re.search(expected, reason)


def test_an_exact_update_that_misses_nothing_goes_into_calls(made):
    assert_same(*both(made, update="exact", optimizer="sgd", options={}))


UNTOUCHED = (
    ("exact", "sgd", {"decay": 0.1}),
    ("exact", "momentum", {"decay": 0.1}),
    ("exact", "ftrl", {"decay": 0.1}),
    ("exact", "adam", {}),
    ("standard", "adagrad", {"decay": 0.1}),
    ("standard", "group_adagrad", {"decay": 0.1}),
)
"""Each way in which rows that a batch does not touch are treated, by an optimizer that has it."""


@pytest.mark.parametrize(("update", "optimizer", "options"), UNTOUCHED)
def test_rows_that_a_batch_leaves_become_what_they_become_step_by_step(made, update, optimizer, options):
    assert_same(*both(made, epochs=3, batch_rows=4, update=update, optimizer=optimizer, options=options))


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "ftrl"])
def test_rows_catch_up_by_the_schedule_and_across_calls_and_full_records(made, optimizer, monkeypatch):
    for module in (deferred_updates, parameter, epoch_calls):
        monkeypatch.setattr(module, "STEPS", 32)
    y, width = targets(made, "softmax", "float32")
    runs = []
    for execution in ("step", "epoch"):
        setup = training.Setup(
            batch_rows=4, execution=execution, optimizer=optimizer, update="exact", options={"decay": 0.1}
        )
        run = training.Run(setup, made.x.astype("float32"), y, width)
        run.updater.schedule = schedules.StepDecay(every=3, factor=0.9)
        if run.calls:
            run.calls.rows_most = 28
        run.seen = np.concatenate([[e.loss] if e.losses is None else e.losses for e in run.events(3)])
        runs.append(run)
    assert_same(*runs)


@pytest.mark.parametrize("optimizer", ["momentum", "adam"])
def test_a_saved_state_with_rows_behind_goes_on_under_either_launch(made, optimizer):
    runs = both(made, epochs=1, batch_rows=4, update="exact", optimizer=optimizer, options={"decay": 0.1})
    states = [run.state_dict() for run in runs]
    for run, state in zip(runs, reversed(states), strict=True):
        run.load_state_dict(state)
        run.seen = np.concatenate([[e.loss] if e.losses is None else e.losses for e in run.epoch(1)])
    assert_same(*runs)


def test_a_norm_over_all_gradients_is_refused(made):
    run = both(made, epochs=1)[1]
    run.updater.clip_global_norm = 1.0
    with pytest.raises(optimizers.OptimizerError, match="no clip_global_norm"):
        list(run.epoch(1))


def test_what_is_not_said_is_completed_by_what_goes_into_calls():
    chosen, _ = complete_settings({"execution": "epoch"}, fastest=True)
    assert (chosen["gradient"], chosen["update"]) == ("row_sparse", "lazy")
    assert with_epoch_calls(training.Setup(gradient="fused")).execution == "epoch"
    assert with_epoch_calls(training.Setup(shuffle=False)).execution == "epoch"
    wide = training.Setup(format="coo")
    assert with_epoch_calls(wide) is wide


@pytest.mark.parametrize("wrong", [-1, 40, 2**31 - 1])
@pytest.mark.parametrize("settings", [{"optimizer": "sgd"}, {}, {"update": "exact"}, {"batch_rows": 1}], ids=str)
def test_a_column_written_out_of_range_is_refused_before_anything_changes(made, settings, wrong):
    y, width = targets(made, "softmax", "float32")
    shared = {"batch_rows": 20, "optimizer": "adagrad", "shuffle": False, "execution": "epoch"} | settings
    setup = training.Setup(model="softmax", **shared)
    run, before = (training.Run(setup, made.x.astype("float32"), y, width) for _ in range(2))
    for each in (run, before):
        list(each.epoch(0))
    x = run.batches.x
    place = int(x.indptr[47]) - 1
    assert place >= x.indptr[46]
    x.indices[place] = wrong
    with pytest.raises(formats.FormatError, match=rf"indices\[{place}\] is {wrong}, ") as refused:
        list(run.epoch(1))
    assert refused.value.__notes__ == ["This is data of the batches."]
    for name, array in before.arrays.items():
        np.testing.assert_array_equal(run.arrays[name], array)
