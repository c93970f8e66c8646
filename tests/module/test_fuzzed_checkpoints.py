"""Damaged checkpoints, stores and optimizer states: taken whole and usable, or refused in words with every bit kept."""

import json

import numpy as np
import pytest

from tests.support import small_modules as small
from tests.support.mutations import damaged_arrays, damaged_json, draws, tried
from workbench import formats
from workbench.formats import FormatError, RowSparse
from workbench.graph import GraphError
from workbench.kvstore import LocalStore, StoreError
from workbench.metrics import MetricError
from workbench.module import Module, ModuleError, load_model
from workbench.ops import OpError
from workbench.optimizers import OptimizerError, Updater

MUTATIONS = 25
WORDS = (FormatError, GraphError, MetricError, ModuleError, OpError, OptimizerError, StoreError)
OPTIMIZERS = {
    "sgd": {"lazy": "exact", "decay": 0.01},
    "momentum": {"lazy": "exact"},
    "adam": {"lazy": "exact", "decay": 0.01},
    "ftrl": {"lazy": "exact", "l1": 0.01},
    "adagrad": {"lazy": "on"},
}
ROWS, WIDTH = 12, 3


def bits(arrays) -> dict[str, list[bytes]]:
    return {
        name: [part.tobytes() for part in ([x] if isinstance(x, np.ndarray) else [x.values, x.indices])]
        for name, x in arrays.items()
    }


def gradient(row):
    return RowSparse(np.ones((2, WIDTH)), [row, row + 3], (ROWS, WIDTH))


def trained(name, held):
    updater, weights = (
        Updater(name, learning_rate=0.05, **OPTIMIZERS[name]),
        formats.to_format(np.ones((ROWS, WIDTH)), held),
    )
    for row in (0, 4, 1, 0):
        updater.update({"w": weights}, {"w": gradient(row)})
    return updater, weights


@pytest.mark.parametrize("held", ["dense", "row_sparse"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_damaged_states_of_optimizers(name, held):
    updater, weights = trained(name, held)
    state, taken = updater.state_dict(), 0
    for _, source in draws(MUTATIONS):
        other, same = trained(name, held)
        before = bits(other.state_dict())
        try:
            other.load_state_dict(damaged_arrays(source, state))
        except WORDS:
            assert bits(other.state_dict()) == before
            continue
        taken += 1
        same = formats.copy(weights)
        try:
            other.update({"w": same}, {"w": gradient(2)})
            other.catch_up({"w": same}, {"w": np.arange(ROWS)})
            other.catch_up({"w": same})
        except WORDS:
            pass
    assert taken < tried(MUTATIONS)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_damaged_settings_of_optimizers(name):
    for _, source in draws(MUTATIONS):
        settings = damaged_json(source, trained(name, "dense")[0].settings)
        try:
            updater = Updater.from_settings(settings)
            updater.update({"w": np.ones((ROWS, WIDTH))}, {"w": gradient(2)})
        except WORDS:
            pass


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_damaged_stores(name):
    def fresh() -> LocalStore:
        store = LocalStore()
        for key, held in (("dense", "dense"), ("rows", "row_sparse")):
            store.init(key, formats.to_format(np.ones((ROWS, WIDTH)), held))
        store.set_optimizer(Updater(name, learning_rate=0.05, **OPTIMIZERS[name]))
        for row in (0, 4, 1):
            store.push_all({"dense": gradient(row), "rows": gradient(row + 1)})
        return store

    state = fresh().state_dict()
    for _, source in draws(MUTATIONS):
        store = fresh()
        before = bits(store.state_dict())
        try:
            store.load_state_dict(damaged_arrays(source, state))
        except WORDS:
            assert bits(store.state_dict()) == before
            continue
        try:
            store.catch_up()
            for key in list(store.values):
                store.push(key, gradient(5))
                store.row_sparse_pull(key, [1, 2])
        except WORDS:
            pass


def told(module) -> tuple:
    state = {} if module.updater is None else bits(module.updater.state_dict())
    raw = bits(module.raw_weights()) if module.initialised else None
    return raw, state, module.position, module.trained_with, module.gathered, module.updater is None


def damaged_checkpoint(source, about, arrays):
    """(arrays, about) with damaged arrays, or within what the checkpoint says."""
    if source.random() < 0.5:
        return damaged_arrays(source, arrays), about
    return arrays, damaged_json(source, json.loads(json.dumps(about)))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # weights of a damaged file may overflow
@pytest.mark.parametrize(("workers", "set_before"), [(1, False), (2, False), (1, True), (2, True)])
@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_damaged_checkpoints(name, set_before, workers, tmp_path):
    feed, settings = small.batches(), {"learning_rate": 0.05, "rescale": 0.1, **OPTIMIZERS[name]}
    module = small.module(None, feed, None, name, settings, workers=workers)
    for batch in range(4):
        module.forward(next(feed.epoch(0, batch)))
        module.backward()
        module.update()
    module.position = module.position._replace(batch=4)
    module.gathered = {"mse over samples": np.float64([1, 2])}
    module.save(tmp_path / "whole")
    saved, taken = formats.load_about(tmp_path / "whole"), 0

    def fresh() -> Module:
        made = Module(small.linear(), workers=workers).bind(feed)
        return made.initialise(seed=1).set_optimizer(name, **settings) if set_before else made

    other = fresh()
    for _, source in draws(MUTATIONS):
        try:
            formats.save(tmp_path / "damaged", *damaged_checkpoint(source, *saved))
        except FormatError:
            continue
        before = told(other)
        try:
            other.restore(tmp_path / "damaged")
        except WORDS:
            assert told(other) == before
            continue
        taken += 1
        try:
            other.predict(feed)
            other.fit(feed, epochs=1, metric="mse")
            other.weights()
        except WORDS:
            pass
        other = fresh()
    assert taken < tried(MUTATIONS)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_damaged_models_for_predictions(tmp_path):
    feed = small.batches()
    small.module(None, feed, None, "adam", {"learning_rate": 0.05, **OPTIMIZERS["adam"]}).save(tmp_path / "whole")
    saved = formats.load_about(tmp_path / "whole")
    for _, source in draws(2 * MUTATIONS):
        try:
            formats.save(tmp_path / "damaged", *damaged_checkpoint(source, *saved))
            symbol, weights, names = load_model(tmp_path / "damaged")
            Module(symbol, **names).bind(feed).initialise(values=weights).predict(feed)
        except WORDS:
            pass
