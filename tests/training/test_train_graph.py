"""Training with the whole step as one launch, on the host emulator: as on the CPU, and as kernel by kernel."""

import numpy as np
import pytest

from workbench import data, training
from workbench.sweeps.check import check_step
from workbench.training import device_graph
from workbench.training.device import DeviceRun
from workbench.training.device_graph import most_entries

emulator_build = pytest.importorskip("tests.support.emulator.build")
if emulator_build.compiler() is None:
    pytest.skip("g++, which compiles the CUDA sources for the host, is not installed", allow_module_level=True)

from tests.support.emulated_session import EmulatedSession, OrderError  # noqa: E402
from tests.support.emulator.device import emulator  # noqa: E402
from tests.training.test_train_device import WAYS, WIDTHS, assert_same_training, both  # noqa: E402

GRAPH = WAYS["fused"] | {"launch": "graph"}


def in_graph(model: str = "softmax", **settings) -> tuple[training.Run, DeviceRun]:
    """The same training on the CPU, and on the emulated device as a graph: batches of 16, 16, 16 and 2 rows."""
    here, there = both(model, **WAYS["fused"], **settings)
    setup = training.Setup(**{**vars(there.setup), "launch": "graph"})
    return here, DeviceRun(setup, there.batches.x, there.batches.y, WIDTHS[model], EmulatedSession(emulator))


@pytest.mark.parametrize("ahead", [True, False])
@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("last", ["keep", "discard", "pad"])
def test_batches_of_every_kind_train_as_on_the_cpu(shuffle: bool, ahead: bool, last: str) -> None:
    assert_same_training(*in_graph(shuffle=shuffle, ahead=ahead, last=last, optimizer="adagrad"), epochs=3)


@pytest.mark.covering(goals=lambda case: {case["model"], case["optimizer"]})
@pytest.mark.parametrize("model", WIDTHS)
@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam", "group_adagrad", "ftrl"])
def test_models_and_optimizers_train_as_on_the_cpu(model: str, optimizer: str) -> None:
    assert_same_training(*in_graph(model, optimizer=optimizer), epochs=1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_graph_trains_as_its_kernels_one_by_one(dtype: str) -> None:
    """To the bit: its sums have the same order."""
    runs = [both(**WAYS["fused"], dtype=dtype)[1], in_graph(dtype=dtype)[1]]
    losses = [[event.loss for event in run.events(3)] for run in runs]
    assert losses[0] == losses[1]
    np.testing.assert_array_equal(*(run.read_rows(np.arange(30)) for run in runs))


def test_more_rows_a_batch_than_there_are() -> None:
    for last in ("keep", "pad"):
        here, there = in_graph(batch_rows=70, last=last)
        assert [event.rows for event in there.events(1)] == [50 if last == "keep" else 70]
        there.reset()
        assert_same_training(here, there)


def test_rows_without_entries_and_a_batch_of_them() -> None:
    x = data.load("uniform", rows=50, features=30, density=0.2, classes=3, seed=0).x.astype(np.float64).tolil()
    x[:20] = 0
    setup = {**GRAPH, "batch_rows": 16, "dtype": "float64", "shuffle": False, "intercept": False}
    y = np.arange(50) % 3
    run = DeviceRun(training.Setup(**setup, device="cuda"), x.tocsr(), y, 3, EmulatedSession(emulator))
    there = [event.loss for event in run.events(2)]
    here = training.Run(training.Setup(**{**setup, "launch": "kernels"}), x.tocsr(), y, 3)
    np.testing.assert_allclose(there, [event.loss for event in here.events(2)], rtol=1e-12)
    assert there[0] == np.log(3)


def test_the_next_batch_is_copied_beside_the_step_and_no_wait_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    _, there = in_graph(ahead=True)
    list(there.events(3))
    _, there = in_graph(ahead=True)
    real = there.session.wait_for
    monkeypatch.setattr(there.session, "wait_for", lambda mark: there.session.stream == "second" and real(mark))
    with pytest.raises(OrderError, match="the first stream uses an array that the second one may be at"):
        list(there.events(3))


def test_phases_are_those_of_the_host_the_copies_and_one_launch() -> None:
    _, there = in_graph()
    event = next(there.events())
    assert tuple(event.seconds) == training.PHASES
    used = {"slice", "convert", "transfer", "plan", "graph"}
    assert {phase for phase in training.PHASES if event.seconds[phase] > 0} == used
    parts = sum(event.seconds[phase] for phase in ("slice", "convert", "transfer", "plan"))
    assert event.seconds_prepare == pytest.approx(parts)
    _, there = in_graph(ahead=True)
    event = next(there.events())
    assert {phase for phase in training.PHASES if event.seconds[phase] > 0} == {"wait", "transfer", "graph"}
    assert event.seconds_prepare > 0


def test_batches_that_repeat_have_a_slot_each_and_are_copied_once() -> None:
    _, there = in_graph(shuffle=False, optimizer="adam")
    held = there.bytes_device_held
    list(there.events(1))
    assert len(there.launching.made.slots) == 4
    fills = there.session.log.count("fill")
    last = list(there.events(2))[-1]
    assert there.session.log.count("fill") == fills + 8  # the settings, which change with every step of Adam
    assert last.seconds["slice"] == last.seconds["plan"] == last.seconds_prepare == 0
    assert there.bytes_device_held == held


def test_many_batches_that_repeat_are_copied_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_graph, "MOST_KEPT", 3)
    here, there = in_graph(shuffle=False, optimizer="adagrad")
    assert_same_training(here, there)
    assert len(there.launching.made.slots) == 2
    assert not there.kept


def test_nothing_is_made_on_the_device_after_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args):
        raise AssertionError(f"an array was made: {args}")

    _, there = in_graph(ahead=True)
    with monkeypatch.context() as patch:
        for method in ("empty", "zeros", "put"):
            patch.setattr(emulator, method, refuse)
        patch.setattr(there.session, "pinned", refuse)
        list(there.events(2))
        there.reset()


def test_a_training_that_was_left_or_reset_starts_again() -> None:
    here, there = in_graph(ahead=True, optimizer="adam")
    expected = [event.loss for event in here.events(1)]
    for steps in (1, 3):
        events = there.events()
        for _ in range(steps):
            next(events)
        events.close()
        there.reset()
        assert there.step == 0
        assert not there.read_rows(np.arange(30)).any()
    np.testing.assert_allclose([event.loss for event in there.events(1)], expected, rtol=1e-9)


@pytest.mark.parametrize("shuffle", [True, False])
def test_the_check_passes_and_leaves_the_run_as_new(shuffle: bool) -> None:
    here, there = in_graph(optimizer="adagrad", shuffle=shuffle)
    checked = check_step(there)
    assert checked.reason == ""
    assert set(checked.errors) == {"forward", "loss", "update"}
    assert there.watch() > 0
    assert there.step == 0
    assert there.densified() == []
    assert_same_training(here, there)


def test_the_check_finds_a_wrong_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    _, there = in_graph()
    made = there.launching.made
    real = made.run
    monkeypatch.setattr(made, "run", lambda slot, rate, *more: real(slot, 1.01 * rate, *more))
    assert "update by" in check_step(there).reason


def test_predictions_are_those_of_the_cpu() -> None:
    here, there = in_graph()
    for run in (here, there):
        list(run.events(1))
    np.testing.assert_allclose(there.predict(here.batches.x), here.predict(here.batches.x), rtol=1e-9)


@pytest.mark.covering
@pytest.mark.parametrize("last", ["keep", "discard", "pad", "roll_over"])
@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("rows", [1, 7, 16, 50, 120])
def test_there_is_room_for_every_batch(rows: int, shuffle: bool, last: str) -> None:
    if last == "discard" and rows > 50:
        return
    x = data.load("uniform", rows=50, features=30, density=0.2, classes=3, seed=0).x
    batches = data.Batches(x, None, rows, shuffle=shuffle, last=last)
    most = most_entries(np.diff(x.indptr), batches)
    came = [batch.x.nnz for epoch in range(4) for batch in batches.epoch(epoch)]
    assert max(came) <= most
    if not shuffle and last == "keep":
        assert max(came) == most


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"device": "cpu"}, "A step in one graph runs on a CUDA device; on cpu launch is kernels."),
        ({"format": "coo"}, "A step in one graph has format csr or dense; with format coo launch is kernels."),
        ({"gradient": "row_sparse"}, "A step in one graph of format csr has gradient fused; with gradient row_sparse"),
        (
            {"gradient": "dense", "update": "standard"},
            "A step in one graph of format csr has gradient fused, update lazy; with gradient dense launch is kernels.",
        ),
        ({"launch": "magic"}, "Unknown launch 'magic'. Expected one of: kernels, graph, epoch, dual."),
    ],
)
def test_what_is_no_graph_is_refused_in_words(settings: dict, told: str) -> None:
    assert training.impossible_reason(training.Setup(**{**GRAPH, "device": "cuda", **settings})).startswith(told)


def test_a_loss_that_no_graph_has_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training.setup, "LOSSES", ("squared", "logistic"))
    told = training.impossible_reason(training.Setup(**GRAPH, device="cuda"))
    assert told == "A step in one graph has the loss squared, logistic; for softmax, launch is kernels."
