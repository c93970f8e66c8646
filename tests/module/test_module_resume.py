"""A training that is stopped anywhere and resumed from its file has the bits of one that ran through."""

import os

import numpy as np
import pytest

from tests.support import small_modules as small
from workbench import formats, graph, ops
from workbench.formats import FormatError
from workbench.kvstore import LocalStore
from workbench.metrics import MetricError
from workbench.module import Module, ModuleError, Position, StopTraining, load_model
from workbench.optimizers import OptimizerError, Updater, schedules

EPOCHS = 3
POINTS = [(0, 1), (0, 6), (1, 0), (1, 3), (2, 5)]
"""Epoch and batches of it done; (1, 0) is saved at the end of an epoch."""

OPTIMIZERS = {
    "sgd": {"optimizer": "sgd"},
    "momentum": {"optimizer": "momentum"},
    "momentum, exact": {"optimizer": "momentum", "lazy": "exact", "decay": 0.01},
    "momentum, off": {"optimizer": "momentum", "lazy": "off", "decay": 0.01},
    "adam": {"optimizer": "adam"},
    "adam, exact": {"optimizer": "adam", "lazy": "exact"},
    "adagrad, clipped": {"optimizer": "adagrad", "clip_global_norm": 0.5},
    "ftrl": {"optimizer": "ftrl", "l1": 0.001},
    "adam, schedule": {"optimizer": "adam", "schedule": "step"},
}


def module_for(feed, optimizer, **options) -> Module:
    settings = {"learning_rate": 0.05, "rescale": 0.1, **OPTIMIZERS[optimizer]}
    if "schedule" in settings:
        settings["schedule"] = schedules.StepDecay(every=4, factor=0.5)
    return small.module(None, feed, None, settings.pop("optimizer"), settings, **options)


def fit(module, feed, **options) -> list:
    history = module.fit(feed, epochs=EPOCHS, metric=["mse", "r2"], average="batches", **options)
    return [ended.metric for ended in history]


def stop_at(point, path):
    """Callbacks that save the module at that point, once, and end the training."""

    def batch_end(event):
        if (event.epoch, event.batch + 1) == point:
            event.module.save(path)
            raise StopTraining

    def epoch_end(event):
        if (event.epoch + 1, 0) == point:
            event.module.save(path)
            raise StopTraining

    return {"batch_end": batch_end, "epoch_end": epoch_end}


def resumed(path, point, feed, make) -> tuple[Module, list]:
    """A module that was trained to the point, saved, and taken up by another one."""
    first = fit(make(), feed, **stop_at(point, path))
    module = make()
    module.restore(path)
    assert module.position == Position(*point)
    return module, first + fit(module, feed)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("point", POINTS)
def test_resumed_training_has_the_same_bits(tmp_path, optimizer, point):
    feed = small.batches(shuffle=True, seed=9)
    through = module_for(feed, optimizer)
    errors = fit(through, feed)
    module, same_errors = resumed(tmp_path / "saved", point, feed, lambda: module_for(feed, optimizer))
    assert same_errors == errors
    assert small.same(module.weights(), through.weights())
    assert module.updater.steps == through.updater.steps
    assert errors[-1]["mse"] < errors[0]["mse"]


def test_a_training_may_be_stopped_again_and_again(tmp_path):
    feed, path = small.batches(shuffle=True, seed=3), tmp_path / "saved"
    through, messages = module_for(feed, "adam"), []
    errors = fit(through, feed, batch_end=lambda event: messages.append((event.epoch, event.batch)))
    module, seen, gathered = module_for(feed, "adam"), [], []
    for point in [(0, 2), (0, 3), (1, 1), (1, 6), (2, 4), (9, 9)]:
        stop = stop_at(point, path)["batch_end"]
        calls = [lambda event: seen.append((event.epoch, event.batch)), stop]
        gathered += fit(module, feed, batch_end=calls)
        if point[0] < EPOCHS:
            module = module_for(feed, "adam").restore(path)
    assert seen == messages
    assert gathered == errors
    assert small.same(module.weights(), through.weights())


@pytest.mark.parametrize("last", ["keep", "discard", "pad"])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("workers", [1, 3])
def test_however_batches_are_cut_and_over_a_store(tmp_path, last, shuffle, workers):
    feed = small.batches(last=last, shuffle=shuffle, rows=8)

    def make():
        return module_for(feed, "momentum, exact", workers=workers)

    through = make()
    errors = fit(through, feed)
    module, same_errors = resumed(tmp_path / "saved", (1, 4), feed, make)
    assert same_errors == errors
    assert small.same(module.weights(), through.weights())


def test_saving_changes_nothing(tmp_path):
    feed = small.batches(shuffle=True)
    quiet, saved = (module_for(feed, "momentum, exact") for _ in range(2))
    errors = fit(quiet, feed)
    assert fit(saved, feed, batch_end=lambda event: event.module.save(tmp_path / "saved")) == errors
    assert small.same(saved.weights(), quiet.weights())


def test_the_optimizer_comes_back_with_its_settings(tmp_path):
    feed = small.batches(shuffle=True)
    through = module_for(feed, "adam, schedule")
    errors = fit(through, feed)
    first = fit(module_for(feed, "adam, schedule"), feed, **stop_at((1, 2), tmp_path / "saved"))
    module = Module(small.linear()).bind(feed).restore(tmp_path / "saved")
    assert module.updater.settings == through.updater.settings
    assert first + fit(module, feed) == errors
    assert small.same(module.weights(), through.weights())


@pytest.mark.parametrize("optimizer", ["momentum", "momentum, exact"])
def test_a_checkpoint_holds_the_model_for_predictions(tmp_path, optimizer):
    feed = small.batches(shuffle=True)
    module = module_for(feed, optimizer)
    fit(module, feed, **stop_at((1, 4), tmp_path / "saved"))
    symbol, weights, names = load_model(tmp_path / "saved")
    assert formats.format_of(weights["weight"]) == "row_sparse"
    assert small.same(weights, module.weights())
    another = Module(symbol, **names).bind(feed).initialise(values=weights)
    np.testing.assert_allclose(another.predict(feed), module.predict(feed), rtol=1e-12)


def test_row_sparse_parameters_come_back_with_the_rows_that_they_have(tmp_path):
    feed = small.batches()
    few = formats.RowSparse(np.ones((2, 2)), [3, 5], (small.FEATURES, 2))
    module = Module(small.linear()).bind(feed).initialise(values={"weight": few})
    module.save(tmp_path / "saved")
    again = Module(small.linear()).bind(feed).restore(tmp_path / "saved")
    assert again.weights()["weight"] == few


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    feed, path = small.batches(), tmp_path / "saved"
    module = small.module(feed=feed)
    module.save(path)
    before = path.read_bytes()
    module.fit(feed, epochs=1)

    def full(*arguments):
        raise OSError("no space left on the device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no space left"):
        module.save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["saved"]


def edited(path, **changes) -> None:
    """The checkpoint with other words in it."""
    about, arrays = formats.load_about(path)
    formats.save(path, arrays, about | changes)


def test_another_version_and_other_files_are_refused(tmp_path):
    path, feed = tmp_path / "saved", small.batches()
    module = small.module(feed=feed)
    module.save(path)
    edited(path, version=2)
    with pytest.raises(ModuleError, match="its version is 2; this program reads 1"):
        module.restore(path)
    with pytest.raises(ModuleError, match="its version is 2"):
        load_model(path)
    edited(path, version=1, kind="another")
    with pytest.raises(ModuleError, match="it is no sparse-workbench module"):
        module.restore(path)
    formats.save(path, {"x": np.ones(2)})
    with pytest.raises(ModuleError, match="it is no sparse-workbench module"):
        module.restore(path)
    path.write_bytes(b"nothing")
    with pytest.raises(FormatError, match="is no file of arrays, or is damaged"):
        module.restore(path)
    with pytest.raises(FileNotFoundError):
        module.restore(tmp_path / "none")


def test_what_does_not_fit_the_module_is_refused_and_changes_nothing(tmp_path):
    path, feed = tmp_path / "saved", small.batches()
    small.module(feed=feed, optimizer="adam").save(path)
    module = small.module(feed=feed, optimizer="momentum")
    module.fit(feed, epochs=1)
    before = module.weights()
    with pytest.raises(OptimizerError, match="adam"):
        module.restore(path)
    other = small.module(small.linear("dense"), feed)
    with pytest.raises(ModuleError, match=r"was saved with another graph; load_model\(path\) reads that one"):
        other.restore(path)
    with pytest.raises(ModuleError, match=r"not bound yet; call bind\(batches\) first"):
        Module(small.linear()).restore(path)
    Module(small.linear()).bind(feed).initialise().save(path)
    with pytest.raises(ModuleError, match="was saved without an optimizer; restore it before set_optimizer"):
        module.restore(path)
    assert small.same(module.weights(), before)
    assert module.position == Position(1, 0)


def test_other_batches_and_other_metrics_than_before_are_refused(tmp_path):
    path, feed = tmp_path / "saved", small.batches(shuffle=True, seed=1)
    fit(module_for(feed, "sgd"), feed, **stop_at((1, 2), path))
    module = module_for(feed, "sgd").restore(path)
    with pytest.raises(
        ModuleError, match=r"was trained to .*batch=2.* with batches of .*'seed': 1.*; these are .*'seed': 2"
    ):
        fit(module, small.batches(shuffle=True, seed=2))
    with pytest.raises(MetricError, match="The state is of"):
        module.fit(feed, epochs=2, metric="mae")
    with pytest.raises(ModuleError, match=r"amid an epoch with the metric \['mse over batches', 'r2 over batches'\]"):
        module.fit(feed, epochs=2)
    assert len(fit(module, feed)) == EPOCHS - 1


def test_a_graph_with_constants_and_an_updater_of_ones_own_are_saved_too(tmp_path):
    feed = small.batches()
    x, label = graph.variable("data", format="csr"), graph.variable("label")
    shift = graph.constant(np.float64([0.5, -0.5]))
    symbol = ops.linear_regression_output(ops.dot(x, graph.variable("w", shape=(small.FEATURES, 2))) + shift, label)

    def make() -> Module:
        module = Module(symbol, store=LocalStore()).bind(feed).initialise("normal", seed=3)
        return module.set_optimizer(Updater("nesterov", learning_rate=0.01, rescale=0.1))

    through = make()
    errors = fit(through, feed)
    module, same_errors = resumed(tmp_path / "saved", (2, 1), feed, make)
    assert same_errors == errors
    assert small.same(module.weights(), through.weights())
