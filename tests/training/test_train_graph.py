"""Training with the whole step as one launch, by sparse and by dense batches, on the host emulator: as on the CPU, and
as kernel by kernel."""

import numpy as np
import pytest

from tests.support.emulated_session import EmulatedSession, OrderError
from tests.support.emulator.device import emulator
from tests.support.small_sets import possible_batches
from tests.training.test_train_device import WAYS, WIDTHS, assert_same_training, both
from workbench import data, training
from workbench.data.batches.feed import LAST
from workbench.sweeps.check import check_step
from workbench.training import device
from workbench.training.device import DeviceRun, most_entries
from workbench.training.setup import complete_settings

GRAPH = {way: WAYS[way] | {"execution": "cuda_graph"} for way in ("fused", "dense")}
both_ways = pytest.mark.parametrize("way", GRAPH)


def in_graph(way: str, model: str = "softmax", **settings) -> tuple[training.Run, DeviceRun]:
    """The same training on the CPU, and on the emulated device as a graph: batches of 16, 16, 16 and 2 rows."""
    here, there = both(model, **WAYS[way], **settings)
    setup = training.Setup(**{**vars(there.setup), "execution": "cuda_graph"})
    return here, DeviceRun(setup, there.batches.x, there.batches.y, WIDTHS[model], EmulatedSession(emulator))


@pytest.mark.parametrize("ahead", [True, False])
@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("last", ["keep", "discard", "pad"])
@both_ways
def test_batches_of_every_kind_train_as_on_the_cpu(way: str, shuffle: bool, ahead: bool, last: str) -> None:
    assert_same_training(*in_graph(way, shuffle=shuffle, ahead=ahead, last=last, optimizer="adagrad"), epochs=3)


@pytest.mark.covering(targets=lambda case: {(case["way"], case["model"]), (case["way"], case["optimizer"])})
@both_ways
@pytest.mark.parametrize("model", WIDTHS)
@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam", "group_adagrad", "ftrl"])
def test_models_and_optimizers_train_as_on_the_cpu(model: str, optimizer: str, way: str) -> None:
    assert_same_training(*in_graph(way, model, optimizer=optimizer), epochs=1)


@pytest.mark.covering
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam", "group_adagrad"])
@both_ways
def test_a_graph_trains_as_its_kernels_one_by_one(way: str, optimizer: str, dtype: str) -> None:
    """To the bit, the last batch of an epoch too, which has fewer rows: its sums have the same order."""
    settings = {"dtype": dtype, "optimizer": optimizer}
    runs = [both(**WAYS[way], **settings)[1], in_graph(way, **settings)[1]]
    losses = [[event.loss for event in run.events(3)] for run in runs]
    assert losses[0] == losses[1]
    np.testing.assert_array_equal(*(run.read_rows(np.arange(30)) for run in runs))


@pytest.mark.parametrize("last", ["keep", "pad"])
def test_more_rows_a_batch_than_there_are(last: str) -> None:
    here, there = in_graph("fused", batch_rows=70, last=last)
    assert [event.rows for event in there.events(1)] == [50 if last == "keep" else 70]
    there.reset()
    assert_same_training(here, there)


@pytest.mark.parametrize("rows", [1, 7, 70])
def test_dense_batches_of_one_row_and_of_more_than_there_are(rows: int) -> None:
    assert_same_training(*in_graph("dense", batch_rows=rows, optimizer="adagrad"))


def test_sparse_data_is_made_dense_batch_by_batch() -> None:
    here, dense = in_graph("dense")
    x = data.load("uniform", rows=50, features=30, density=0.2, classes=3, seed=0).x.astype(np.float64)
    there = DeviceRun(dense.setup, x, dense.batches.y, 3, EmulatedSession(emulator))
    assert_same_training(here, there)
    assert there.densified() == [{"op": "batch from csr", "shape": [16, 30], "bytes": 16 * 30 * 8}]


def test_the_dense_graphs_of_an_epoch_are_those_of_full_batches_and_of_the_last() -> None:
    _, there = in_graph("dense")
    list(there.events(4))
    graphs = there.launching.made.graphs
    assert {rows for _, rows in graphs} == {16, 2}
    calls = ["matmul", "softmax<double, 8, 2>", "sum_all", "matmul transposed", "dense_live<double, 2>"]
    assert all(graph.calls == calls for graph in graphs.values())


def test_rows_without_entries_and_a_batch_of_them() -> None:
    x = data.load("uniform", rows=50, features=30, density=0.2, classes=3, seed=0).x.astype(np.float64).tolil()
    x[:20] = 0
    setup = {**GRAPH["fused"], "batch_rows": 16, "dtype": "float64", "shuffle": False, "intercept": False}
    y = np.arange(50) % 3
    run = DeviceRun(training.Setup(**setup, device="cuda"), x.tocsr(), y, 3, EmulatedSession(emulator))
    there = [event.loss for event in run.events(2)]
    here = training.Run(training.Setup(**{**setup, "execution": "step"}), x.tocsr(), y, 3)
    np.testing.assert_allclose(there, [event.loss for event in here.events(2)], rtol=1e-12)
    assert there[0] == np.log(3)


@both_ways
def test_the_next_batch_is_copied_beside_the_step_and_no_wait_is_missing(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, there = in_graph(way, ahead=True)
    list(there.events(3))
    _, there = in_graph(way, ahead=True)
    real = there.session.wait_for
    monkeypatch.setattr(there.session, "wait_for", lambda mark: there.session.stream == "second" and real(mark))
    with pytest.raises(OrderError, match="the first stream uses an array that the second one may be at"):
        list(there.events(3))


@both_ways
def test_phases_are_those_of_the_host_the_copies_and_one_launch(way: str) -> None:
    _, there = in_graph(way)
    event = next(there.events())
    assert tuple(event.seconds) == training.PHASES
    used, host = {phase for phase in training.PHASES if event.seconds[phase] > 0}, ("slice", "convert", "plan")
    if way == "fused":
        assert used == {*host, "transfer", "graph"}
        assert event.seconds_prepare == pytest.approx(sum(event.seconds[phase] for phase in (*host, "transfer")))
    else:
        assert used >= {"slice", "transfer", "graph"}
        assert event.seconds["forward"] == event.seconds["update"] == 0
    _, there = in_graph(way, ahead=True)
    event = next(there.events())
    assert {phase for phase in training.PHASES if event.seconds[phase] > 0} == {"wait", "transfer", "graph"}
    assert event.seconds_prepare > 0


@both_ways
def test_batches_that_repeat_have_a_slot_each_and_are_copied_once(way: str) -> None:
    _, there = in_graph(way, shuffle=False, optimizer="adam")
    held = there.bytes_device_held
    list(there.events(1))
    assert len(there.launching.made.slots) == 4
    fills = there.session.log.count("fill")
    last = list(there.events(2))[-1]
    assert there.session.log.count("fill") == fills + 8  # the settings, which change with every step of Adam
    assert last.seconds["slice"] == last.seconds["plan"] == last.seconds_prepare == 0
    assert there.bytes_device_held == held
    assert way == "fused" or held > 4 * 16 * 30 * 8


@both_ways
def test_many_batches_that_repeat_are_copied_anew(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "MOST_KEPT", 3)
    here, there = in_graph(way, shuffle=False, optimizer="adagrad")
    assert_same_training(here, there)
    assert len(there.launching.made.slots) == 2
    assert not there.kept


@both_ways
def test_nothing_is_made_on_the_device_after_the_start(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args):
        raise AssertionError(f"an array was made: {args}")

    _, there = in_graph(way, ahead=True)
    with monkeypatch.context() as patch:
        for method in ("empty", "zeros", "put"):
            patch.setattr(emulator, method, refuse)
        patch.setattr(there.session, "pinned", refuse)
        list(there.events(3))
        there.reset()


@both_ways
def test_a_training_that_was_left_or_reset_starts_again(way: str) -> None:
    here, there = in_graph(way, ahead=True, optimizer="adam")
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
@both_ways
def test_the_check_passes_and_leaves_the_run_as_new(way: str, shuffle: bool) -> None:
    here, there = in_graph(way, optimizer="adagrad", shuffle=shuffle)
    checked = check_step(there)
    assert checked.reason == ""
    assert set(checked.errors) == {"forward", "loss", "update"} | ({"gradient"} if way == "dense" else set())
    assert there.watch() > 0
    assert there.step == 0
    assert way == "dense" or there.densified() == []
    assert_same_training(here, there)


@both_ways
def test_the_check_finds_a_wrong_update_of_a_graph(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, there = in_graph(way)
    made = there.launching.made
    real = made.run
    monkeypatch.setattr(made, "run", lambda slot, rate, *more: real(slot, 1.01 * rate, *more))
    assert "update by" in check_step(there).reason


def test_the_check_finds_a_wrong_gradient_of_a_dense_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    _, there = in_graph("dense")
    made = there.launching.made
    real = made.backward

    def wrong(slot):
        real(slot).host[...] *= 1.01
        return made.gradient

    monkeypatch.setattr(made, "backward", wrong)
    assert "gradient by 0.01" in check_step(there).reason


def test_labels_out_of_range_are_refused_before_they_are_copied() -> None:
    _, there = in_graph("dense")
    with pytest.raises(ValueError, match=r"labels\[3\] is 9; scores have 3 columns, so labels are 0 to 2"):
        there.launching.prepare(np.zeros((16, 30)), np.where(np.arange(16) == 3, 9, 0), training.training.PhaseTimer())
    assert "fill" not in there.session.log


@both_ways
def test_predictions_are_those_of_the_cpu(way: str) -> None:
    here, there = in_graph(way)
    for run in (here, there):
        list(run.events(1))
    np.testing.assert_allclose(there.predict(here.batches.x), here.predict(here.batches.x), rtol=1e-9)


@pytest.mark.covering
@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize(("last", "rows"), possible_batches(LAST, [1, 7, 16, 50, 120], 50))
def test_there_is_room_for_every_batch(last: str, rows: int, shuffle: bool) -> None:
    x = data.load("uniform", rows=50, features=30, density=0.2, classes=3, seed=0).x
    batches = data.Batches(x, None, rows, shuffle=shuffle, last=last)
    most = most_entries(np.diff(x.indptr), batches)
    came = [batch.x.nnz for epoch in range(4) for batch in batches.epoch(epoch)]
    assert max(came) <= most
    if not shuffle and last == "keep":
        assert max(came) == most


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"device": "cpu"}, "A step in one graph runs on a CUDA device; on cpu execution is step."),
        ({"format": "coo"}, "A step in one graph has format csr or dense; with format coo execution is step."),
        ({"gradient": "row_sparse"}, "A step in one graph of format csr has gradient fused; with gradient row_sparse"),
        (
            {"gradient": "dense", "update": "standard"},
            "A step in one graph of format csr has gradient fused, update lazy; with gradient dense execution is step.",
        ),
        ({"execution": "magic"}, "Unknown execution 'magic'. Expected one of: step, cuda_graph, epoch, dual."),
    ],
)
def test_what_is_no_graph_is_refused_in_words(settings: dict, expected: str) -> None:
    setup = training.Setup(**{**GRAPH["fused"], "device": "cuda", **settings})
    assert training.impossible_reason(setup).startswith(expected)


def test_engine_gradient_and_update_of_a_dense_graph_are_completed() -> None:
    graph = GRAPH["dense"]
    assert complete_settings({"execution": "cuda_graph", "device": "cuda", "format": "dense"})[0] == graph | {
        "device": "cuda"
    }
    assert training.impossible_reason(training.Setup(**graph, device="cuda")) == ""
    reason = training.impossible_reason(training.Setup(**graph, intercept=False))
    assert reason.startswith("A step in one graph runs on a CUDA")


def test_a_loss_that_no_graph_has_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training.setup, "LOSSES", ("squared", "logistic"))
    text = training.impossible_reason(training.Setup(**GRAPH["fused"], device="cuda"))
    assert text == "A step in one graph has the loss squared, logistic; for softmax, execution is step."
