"""Training by dense batches with the whole step as one launch, on the host emulator: as on the CPU, and by kernels."""

import numpy as np
import pytest

from workbench import data, training
from workbench.sweeps.check import check_step
from workbench.training import device_graph
from workbench.training.completion import complete_settings
from workbench.training.device import DeviceRun

emulator_build = pytest.importorskip("tests.support.emulator.build")
if emulator_build.compiler() is None:
    pytest.skip("g++, which compiles the CUDA sources for the host, is not installed", allow_module_level=True)

from tests.support.emulated_session import EmulatedSession, OrderError  # noqa: E402
from tests.support.emulator.device import emulator  # noqa: E402
from tests.training.test_train_device import WAYS, WIDTHS, assert_same_training, both  # noqa: E402

GRAPH = WAYS["dense"] | {"launch": "graph"}


def in_graph(model: str = "softmax", **settings) -> tuple[training.Run, DeviceRun]:
    """The same training on the CPU, and on the emulated device as a graph: batches of 16, 16, 16 and 2 rows."""
    here, there = both(model, **WAYS["dense"], **settings)
    setup = training.Setup(**{**vars(there.setup), "launch": "graph"})
    return here, DeviceRun(setup, there.batches.x, there.batches.y, WIDTHS[model], EmulatedSession(emulator))


@pytest.mark.parametrize("ahead", [True, False])
@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("last", ["keep", "discard", "pad"])
def test_batches_of_every_kind_train_as_on_the_cpu(shuffle: bool, ahead: bool, last: str) -> None:
    assert_same_training(*in_graph(shuffle=shuffle, ahead=ahead, last=last, optimizer="adagrad"), epochs=3)


@pytest.mark.parametrize("model", WIDTHS)
@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam", "group_adagrad", "ftrl"])
def test_models_and_optimizers_train_as_on_the_cpu(model: str, optimizer: str) -> None:
    assert_same_training(*in_graph(model, optimizer=optimizer), epochs=1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam", "group_adagrad"])
def test_a_graph_trains_as_its_kernels_one_by_one(optimizer: str, dtype: str) -> None:
    """To the bit, the last batch of an epoch too, which has fewer rows."""
    runs = [both(**WAYS["dense"], dtype=dtype, optimizer=optimizer)[1], in_graph(dtype=dtype, optimizer=optimizer)[1]]
    losses = [[event.loss for event in run.events(3)] for run in runs]
    assert losses[0] == losses[1]
    np.testing.assert_array_equal(*(run.read_rows(np.arange(30)) for run in runs))


@pytest.mark.parametrize("rows", [1, 7, 70])
def test_batches_of_one_row_and_of_more_than_there_are(rows: int) -> None:
    here, there = in_graph(batch_rows=rows, optimizer="adagrad")
    assert_same_training(here, there)


def test_sparse_data_is_made_dense_batch_by_batch() -> None:
    here, dense = in_graph()
    x = data.load("uniform", rows=50, features=30, density=0.2, classes=3, seed=0).x.astype(np.float64)
    there = DeviceRun(dense.setup, x, dense.batches.y, 3, EmulatedSession(emulator))
    assert_same_training(here, there)
    assert there.densified() == [{"op": "batch from csr", "shape": [16, 30], "bytes": 16 * 30 * 8}]


def test_the_graphs_of_an_epoch_are_those_of_full_batches_and_of_the_last() -> None:
    _, there = in_graph()
    list(there.events(4))
    graphs = there.launching.made.graphs
    assert {rows for _, rows in graphs} == {16, 2}
    calls = ["matmul", "softmax<double, 8, 2>", "sum_all", "matmul transposed", "dense_live<double, 2>"]
    assert all(graph.calls == calls for graph in graphs.values())


def test_the_next_batch_is_copied_beside_the_step_and_no_wait_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    _, there = in_graph(ahead=True)
    list(there.events(3))
    _, there = in_graph(ahead=True)
    real = there.session.wait_for
    monkeypatch.setattr(there.session, "wait_for", lambda mark: there.session.stream == "second" and real(mark))
    with pytest.raises(OrderError, match="the first stream uses an array that the second one may be at"):
        list(there.events(3))


def test_phases_are_those_of_the_host_the_copies_and_one_launch() -> None:
    _, there = in_graph(ahead=True)
    event = next(there.events())
    assert {phase for phase in training.PHASES if event.seconds[phase] > 0} == {"wait", "transfer", "graph"}
    assert event.seconds_prepare > 0
    _, there = in_graph()
    event = next(there.events())
    assert {phase for phase in training.PHASES if event.seconds[phase] > 0} >= {"slice", "transfer", "graph"}
    assert event.seconds["forward"] == event.seconds["update"] == 0


def test_batches_that_repeat_have_a_slot_each_and_are_copied_once() -> None:
    _, there = in_graph(shuffle=False, optimizer="adam")
    held = there.bytes_device_held
    list(there.events(1))
    assert len(there.launching.made.slots) == 4
    fills = there.session.log.count("fill")
    list(there.events(2))
    assert there.session.log.count("fill") == fills + 8  # the settings, which change with every step of Adam
    assert there.bytes_device_held == held
    assert held > 4 * 16 * 30 * 8


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
        list(there.events(3))
        there.reset()


@pytest.mark.parametrize("shuffle", [True, False])
def test_the_check_passes_and_leaves_the_run_as_new(shuffle: bool) -> None:
    here, there = in_graph(optimizer="adagrad", shuffle=shuffle)
    checked = check_step(there)
    assert checked.reason == ""
    assert set(checked.errors) == {"forward", "loss", "gradient", "update"}
    assert there.watch() > 0
    assert there.step == 0
    assert_same_training(here, there)


@pytest.mark.parametrize("method", ["run", "backward"])
def test_the_check_finds_a_wrong_graph(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    _, there = in_graph()
    made = there.launching.made
    real = getattr(made, method)

    def wrong(slot, *numbers):
        if method == "run":
            return real(slot, 1.01 * numbers[0], *numbers[1:])
        real(slot).host[...] *= 1.01
        return made.gradient

    monkeypatch.setattr(made, method, wrong)
    assert {"run": "update by", "backward": "gradient by 0.01"}[method] in check_step(there).reason


def test_a_training_that_was_left_or_reset_starts_again() -> None:
    here, there = in_graph(ahead=True, optimizer="adam")
    expected = [event.loss for event in here.events(1)]
    for steps in (1, 3):
        events = there.events()
        for _ in range(steps):
            next(events)
        events.close()
        there.reset()
    np.testing.assert_allclose([event.loss for event in there.events(1)], expected, rtol=1e-9)


def test_labels_out_of_range_are_refused_before_they_are_copied() -> None:
    _, there = in_graph()
    with pytest.raises(ValueError, match=r"labels\[3\] is 9; scores have 3 columns, so labels are 0 to 2"):
        there.launching.prepare(np.zeros((16, 30)), np.where(np.arange(16) == 3, 9, 0), training.events.PhaseTimer())
    assert "fill" not in there.session.log


def test_predictions_are_those_of_the_cpu() -> None:
    here, there = in_graph()
    for run in (here, there):
        list(run.events(1))
    np.testing.assert_allclose(there.predict(here.batches.x), here.predict(here.batches.x), rtol=1e-9)


def test_engine_gradient_and_update_of_a_dense_graph_are_completed() -> None:
    assert complete_settings({"launch": "graph", "device": "cuda", "format": "dense"})[0] == GRAPH | {"device": "cuda"}
    assert training.impossible_reason(training.Setup(**GRAPH, device="cuda")) == ""
    reason = training.impossible_reason(training.Setup(**GRAPH, intercept=False))
    assert reason.startswith("A step in one graph runs on a CUDA")
