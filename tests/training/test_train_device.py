"""Training on a device, on the host emulator: the losses, weights and phases of the training on the CPU."""

import gc

import numpy as np
import pytest

from tests.support.emulated_session import EmulatedSession, OrderError
from tests.support.emulator.device import emulator
from workbench import data, training
from workbench.sweeps.check import check_step
from workbench.training.device import DeviceRun

CSR = {"format": "csr", "engine": "ours"}
WAYS = {
    "fused": CSR | {"gradient": "fused", "update": "lazy"},
    "lazy": CSR | {"gradient": "row_sparse", "update": "lazy"},
    "rows, standard": CSR | {"gradient": "row_sparse", "update": "standard"},
    "full gradient": CSR | {"gradient": "dense", "update": "standard"},
    "coo fused": {"format": "coo", "engine": "ours", "gradient": "fused", "update": "lazy"},
    "coo, full gradient": {"format": "coo", "engine": "ours", "gradient": "dense", "update": "standard"},
    "dense": {"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard"},
}
WIDTHS = {"softmax": 3, "logistic": 1, "linear": 3}


def both(model: str = "softmax", **settings) -> tuple[training.Run, DeviceRun]:
    """The same training on the CPU and on the emulated device."""
    made = data.load("uniform", rows=50, features=30, density=0.2, classes=3, seed=0)
    settings = {"batch_rows": 16, "dtype": "float64", "model": model, "intercept": False, **settings}
    x = made.x.astype(settings["dtype"])
    x = x.toarray() if settings.get("format") == "dense" else x
    y = data.with_labels(made, model, WIDTHS[model], settings["dtype"])
    here = training.Run(training.Setup(**settings), x, y, WIDTHS[model])
    session = EmulatedSession(emulator)
    return here, DeviceRun(training.Setup(**settings, device="cuda"), x, y, WIDTHS[model], session)


def assert_same_training(here: training.Run, there: DeviceRun, epochs: int = 2) -> None:
    expected, came = ([event.loss for event in run.events(epochs)] for run in (here, there))
    np.testing.assert_allclose(came, expected, rtol=1e-9)
    assert expected[-1] < expected[0]
    np.testing.assert_allclose(there.read_rows(np.arange(30)), here.weights, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_every_way_trains_as_on_the_cpu(way: dict, shuffle: bool) -> None:
    assert_same_training(*both(**way, shuffle=shuffle, optimizer="adagrad"))


@pytest.mark.parametrize("model", WIDTHS)
@pytest.mark.parametrize("optimizer", ["sgd", "adam", "group_adagrad", "ftrl"])
def test_models_and_optimizers_train_as_on_the_cpu(model: str, optimizer: str) -> None:
    assert_same_training(*both(model, **WAYS["fused"], optimizer=optimizer), epochs=1)


def test_the_next_batch_is_copied_ahead_and_trains_the_same() -> None:
    here, there = both(**WAYS["fused"], ahead=True)
    assert_same_training(here, there)
    assert there.session.log.index("wait") > there.session.log.index("copy")


def test_a_step_that_does_not_wait_for_its_batch_is_found() -> None:
    _, there = both(**WAYS["fused"], ahead=True)
    there.session.wait_for = lambda mark: None
    with pytest.raises(OrderError, match="the first stream uses an array that the second one may be at"):
        next(there.events())


@pytest.mark.parametrize("execution", ["step", "cuda_graph"])
def test_a_run_that_ends_early_gives_back_no_memory_that_copies_are_at(execution: str) -> None:
    _, there = both(**WAYS["fused"], ahead=True)
    session, setup = there.session, training.Setup(**{**vars(there.setup), "execution": execution})
    run = DeviceRun(setup, there.batches.x, there.batches.y, 3, session)
    steps = run.events()
    next(steps)
    steps.close()
    del run, steps
    gc.collect()
    session.mark()  # tells what was given back too early


def test_predictions_and_quality_are_those_of_the_cpu() -> None:
    here, there = both(**WAYS["lazy"])
    for run in (here, there):
        list(run.events(1))
    x = here.batches.x
    np.testing.assert_allclose(there.predict(x), here.predict(x), rtol=1e-9)
    y = np.zeros(50, np.int64)
    assert there.quality(x, y) == here.quality(x, y)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_the_check_before_timing_passes_and_leaves_the_run_as_new(way: dict) -> None:
    _, there = both(**way, optimizer="adagrad", dtype="float32")
    checked = check_step(there)
    assert checked.reason == ""
    assert there.step == 0
    assert not there.read_rows(np.arange(30)).any()


def test_the_check_finds_a_wrong_step(monkeypatch: pytest.MonkeyPatch) -> None:
    _, there = both(**WAYS["lazy"])
    real = DeviceRun.backward

    def wrong(self):
        gradients = real(self)
        gradients["w"].values.host[...] *= 1.01
        return gradients

    monkeypatch.setattr(DeviceRun, "backward", wrong)
    assert "gradient by 0.01" in check_step(there).reason


def test_phases_tell_copies_in_the_step_from_those_ahead() -> None:
    _, there = both(**WAYS["lazy"])
    event = next(there.events())
    assert all(event.seconds[phase] > 0 for phase in training.PHASES if phase not in ("wait", "graph", "batches"))
    assert event.seconds["wait"] == 0
    assert event.seconds_prepare == pytest.approx(
        sum(event.seconds[phase] for phase in ("slice", "convert", "transfer", "plan"))
    )
    _, there = both(**WAYS["lazy"], ahead=True)
    event = next(there.events())
    assert event.seconds["slice"] == event.seconds["convert"] == event.seconds["plan"] == 0
    assert event.seconds["wait"] > 0
    assert event.seconds_prepare > 0


def test_batches_that_repeat_are_copied_once() -> None:
    _, there = both(**WAYS["fused"], shuffle=False)
    list(there.events(1))
    copies = there.session.log.count("copy")
    assert copies == 4 * 4  # four batches of three arrays and targets
    last = list(there.events(2))[-1]
    assert there.session.log.count("copy") == copies
    assert last.seconds["slice"] == last.seconds["plan"] == last.seconds_prepare == 0


def test_bytes_on_the_device_are_counted() -> None:
    _, there = both(**WAYS["fused"], shuffle=False, optimizer="adagrad")
    weights = 30 * 3 * 8
    buffers = 2 * 16 * 3 * 8
    assert there.bytes_device_held == 2 * weights + buffers
    assert there.watch() > 0
    kept = sum(batch.nbytes for batch in there.kept.values())
    assert kept > there.batches.x.nnz * (8 + 4)
    assert there.bytes_device_held == 2 * weights + buffers + kept
    assert there.step == 0


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"format": "csc"}, "On cuda no csc trains by engine ours; there is: coo by ours, csr by ours, csr by vendor"),
        ({"update": "exact"}, "An exact update keeps what rows have missed on the host: it runs on cpu"),
        ({"device": "tpu"}, "Unknown device 'tpu'. Did you mean 'cpu'? Expected one of: cpu, cuda."),
    ],
)
def test_what_does_not_run_there_is_refused_in_words(settings: dict, expected: str) -> None:
    made = data.load("uniform", rows=20, features=10, density=0.2, classes=3, seed=0)
    with pytest.raises(training.SetupError) as raised:
        training.make_run(training.Setup(**{"device": "cuda", **settings}), made.x, made.y, 3)
    assert str(raised.value).startswith(expected)


def test_without_cupy_the_install_line_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from kernels import devices

    monkeypatch.setattr(devices.importlib.util, "find_spec", lambda name: None)
    made = data.load("uniform", rows=20, features=10, density=0.2, classes=3, seed=0)
    with pytest.raises(ImportError, match=r"pip install 'sparse-workbench\[cuda12\]'"):
        training.make_run(training.Setup(device="cuda"), made.x, made.y, 3)
