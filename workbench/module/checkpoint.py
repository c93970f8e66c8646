"""One file with everything that a training needs to go on with the same bits: written whole, or not at all.

It holds the graph (JSON), the parameters (formats kept), the optimizer's state, the position, what the batches depended
on, and what the metric had gathered of the epoch. Where rows of parameters still have to catch up (`lazy="exact"`),
they are saved as they are, and once more up to date for whoever wants the model alone.
"""

import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench import formats, graph
from workbench.kvstore import read, written
from workbench.module.initialisers import ModuleError
from workbench.module.layout import Position
from workbench.optimizers import Updater

if TYPE_CHECKING:
    from workbench.graph import Graph
    from workbench.module.core import Module

KIND = "sparse-workbench module"
VERSION = 1


def save(self: "Module", path: str | os.PathLike) -> None:
    """Write a checkpoint to one file, in place of an older one there, which stays until the new one is complete."""
    self._need("initialised", "initialise(...)")
    arrays = {f"parameter:{name}": weight for name, weight in self.raw_weights().items()}
    arrays |= {f"current:{name}": weight for name, weight in self.weights().items()} if self._lags else {}
    if self.updater is not None:
        arrays |= {f"optimizer:{name}": array for name, array in written(self.updater.state_dict()).items()}
    if self.position.batch:
        gathered = self.gathered if self.metric is None else self.metric.state_dict()
        arrays |= {f"metric:{name}": array for name, array in (gathered or {}).items()}
    about = {
        "kind": KIND,
        "version": VERSION,
        "graph": self.layout.symbol.to_json(),
        "data_names": self.layout.data_names,
        "label_names": self.layout.label_names,
        "prediction": self.layout.prediction,
        "target": self.layout.target,
        "position": self.position,
        "trained_with": self.trained_with,
        "optimizer": None if self.updater is None else self.updater.settings,
    }
    text = np.frombuffer(json.dumps(about).encode(), np.uint8)
    formats.save(path, {"about": text, **arrays})


def restore(self: "Module", path: str | os.PathLike) -> "Module":
    """Go on from a checkpoint: a module that is bound is then as the one that was saved; returned.

    Where no optimizer is set it gets the one that was saved. Refused with nothing changed: a file of another kind or
    version, another graph (`ModuleError`), another optimizer (`OptimizerError`).
    """
    about, arrays = _read(path)
    self._need("bound", "bind(batches)")
    if about["graph"] != self.layout.symbol.to_json():
        raise ModuleError(f"{path} was saved with another graph; load_model(path) reads that one.")
    if self.updater is None and about["optimizer"] is not None:
        self._use(Updater.from_settings(about["optimizer"]))
    if self.updater is not None and about["optimizer"] is None:
        raise ModuleError(f"{path} was saved without an optimizer; restore it before set_optimizer.")
    _take(self, arrays["parameter"], arrays["optimizer"])
    self.initialised, self.state = True, "idle"
    self.position = Position(*about["position"])
    self.trained_with, self.metric = about["trained_with"], None
    self.gathered = arrays["metric"] or None
    return self


def _take(self: "Module", weights: dict[str, Any], optimizer: dict[str, Any]) -> None:
    """Put parameters and the optimizer's state where the module has them."""
    if self.store is not None:
        state = {f"value:{json.dumps(name)}": weight for name, weight in weights.items()}
        self.store.load_state_dict(state | {f"optimizer:{name}": array for name, array in optimizer.items()})
        self.version += 1
        return
    if self.updater is not None:
        self.updater.load_state_dict(read(optimizer))
    for name, weight in self.workers[0].weights.items():
        formats.assign(weight, weights[name])


def load_model(path: str | os.PathLike) -> tuple["Graph", dict[str, Any], dict[str, Any]]:
    """The graph, the parameters and the module's names of a checkpoint: what predictions need.

    `symbol, weights, names = load_model(path)` is followed by
    `Module(symbol, **names).bind(batches).initialise(values=weights)`.
    """
    about, arrays = _read(path)
    names = {key: about[key] for key in ("data_names", "label_names", "prediction", "target")}
    return graph.from_json(about["graph"]), arrays["current"] or arrays["parameter"], names


def _read(path: str | os.PathLike) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """What a checkpoint says, and its arrays by kind and name."""
    found = formats.load(path)
    try:
        about = json.loads(bytes(found.pop("about")))
        if about["kind"] != KIND:
            raise KeyError("kind")
    except (KeyError, TypeError, ValueError):
        raise ModuleError(f"{path} is no checkpoint of a module; those are written by Module.save.") from None
    if about["version"] != VERSION:
        raise ModuleError(f"{path} is a checkpoint of version {about['version']}; this program reads {VERSION}.")
    arrays: dict[str, dict[str, Any]] = {kind: {} for kind in ("parameter", "current", "optimizer", "metric")}
    for name, array in found.items():
        kind, _, rest = name.partition(":")
        arrays[kind][rest] = array
    return about, arrays
