"""One file with everything that a training needs to go on with the same bits: written whole, or not at all.

It holds the graph (JSON), the parameters (formats kept), the optimizer's state, the position, what the batches depended
on, and what the metric had gathered of the epoch. Where rows of parameters still have to catch up (`lazy="exact"`),
they are saved as they are, and once more up to date for whoever wants the model alone.
"""

import json
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench import formats, graph
from workbench.json_text import is_whole, parsed
from workbench.module.initialisers import ModuleError
from workbench.module.layout import Layout, Position
from workbench.optimizers import Updater
from workbench.optimizers.saved import read, written

if TYPE_CHECKING:
    from workbench.graph import Graph
    from workbench.module.core import Module

KIND = "sparse-workbench module"
VERSION = 1


def save(self: "Module", path: str | os.PathLike) -> None:
    """Write a checkpoint to one file, in place of an older one there, which stays until the new one is complete."""
    self._need("initialised", "initialise(...)")
    arrays = {f"parameter:{name}": weight for name, weight in self.raw_weights().items()}
    arrays |= {f"current:{name}": weight for name, weight in self.weights().items()} if self.lags else {}
    if self.updater is not None:
        arrays |= {f"optimizer:{name}": array for name, array in written(self.optimizer_state()).items()}
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
    version, another graph, parameters of other names, shapes, types or formats (`ModuleError`), another optimizer, and
    an optimizer's state that no training leaves (`OptimizerError`).
    """
    about, arrays = _read(path)
    self._need("bound", "bind(batches)")
    if about["graph"] != self.layout.symbol.to_json():
        raise ModuleError(f"{path} was saved with another graph; load_model(path) reads that one.")
    if self.updater is not None and about["optimizer"] is None:
        raise ModuleError(f"{path} was saved without an optimizer; restore it before set_optimizer.")
    updater = self.updater
    if updater is None and about["optimizer"] is not None:
        updater = Updater.from_settings(about["optimizer"])
        updater.check_names(self.trained)
    weights = arrays["parameter"]
    _check_weights(path, weights, self.workers[0].weights)
    steps = None
    if updater is not None:
        steps = updater.read_state(read(arrays["optimizer"]))
        updater.check_fit(steps, {name: weights[name] for name in self.trained})
    if updater is not self.updater:
        self._use(updater)
    _take(self, weights, steps, arrays["optimizer"])
    self.initialised, self.state = True, "idle"
    self.position = Position(*about["position"])
    self.trained_with, self.metric = about["trained_with"], None
    self.gathered = arrays["metric"] or None
    return self


def _check_weights(path: str | os.PathLike, weights: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    if set(weights) != set(own):
        raise ModuleError(f"{path} has the parameters {sorted(weights)}; the module's are {sorted(own)}.")
    for name, weight in own.items():
        actual, expected = (f"{formats.format_of(x)} {x.dtype} {tuple(x.shape)}" for x in (weights[name], weight))
        if actual != expected:
            raise ModuleError(f"{path} has the parameter {name} as {actual}; the module's is {expected}.")


def _take(self: "Module", weights: dict[str, Any], steps: dict[str, Any] | None, optimizer: dict[str, Any]) -> None:
    """Put parameters and the optimizer's state, all checked, where the module has them."""
    if self.store is not None:
        state = {f"value:{json.dumps(name)}": weight for name, weight in weights.items()}
        self.store.load_state_dict(state | {f"optimizer:{name}": array for name, array in optimizer.items()})
        self.version += 1
        return
    if self.updater is not None:
        self.updater.take_state(steps)
    for name, weight in self.workers[0].weights.items():
        formats.assign(weight, weights[name])


def load_model(path: str | os.PathLike) -> tuple["Graph", dict[str, Any], dict[str, Any]]:
    """The graph, the parameters and the module's names of a checkpoint: what predictions need.

    `symbol, weights, names = load_model(path)` is followed by
    `Module(symbol, **names).bind(batches).initialise(values=weights)`. Errors: `ModuleError`, `GraphError` and
    `FormatError` for files that no module wrote.
    """
    about, arrays = _read(path)
    names = {key: about[key] for key in ("data_names", "label_names", "prediction", "target")}
    symbol, weights = graph.from_json(about["graph"]), arrays["current"] or arrays["parameter"]
    layout = Layout(
        symbol, tuple(about["data_names"]), tuple(about["label_names"]), names["prediction"], names["target"]
    )
    if set(weights) != set(layout.parameters):
        raise ModuleError(f"{path} has the parameters {sorted(weights)}; its graph's are {sorted(layout.parameters)}.")
    return symbol, weights, names


# What the file says


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _is_position(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(is_whole, value))


WORDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "graph": (lambda value: isinstance(value, str), "a graph as JSON"),
    "data_names": (_are_names, "a list of names"),
    "label_names": (_are_names, "a list of names"),
    "prediction": (lambda value: is_whole(value, -(2**31), 2**31), "the number of an output"),
    "target": (lambda value: value is None or isinstance(value, str), "a name or null"),
    "position": (_is_position, "an epoch and a batch, from 0"),
    "trained_with": (lambda value: value is None or isinstance(value, dict), "an object or null"),
    "optimizer": (lambda value: value is None or isinstance(value, dict), "an object or null"),
}
"""What a checkpoint says: how it is right, in code and in words."""


def _read(path: str | os.PathLike) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Read a checkpoint: what it says, and its arrays by kind and name."""
    contents = formats.load(path)
    about = _about(contents.pop("about", None))
    if about is None or about.get("kind") != KIND:
        raise ModuleError(f"{path} is no checkpoint of a module; those are written by Module.save.")
    if about.get("version") != VERSION:
        raise ModuleError(f"{path} is a checkpoint of version {about.get('version')}; this program reads {VERSION}.")
    for key, (is_right, allowed) in WORDS.items():
        if key not in about or not is_right(about[key]):
            raise ModuleError(f"{path} says that {key} is {about.get(key)!r:.80}; it should be {allowed}.")
    arrays: dict[str, dict[str, Any]] = {kind: {} for kind in ("parameter", "current", "optimizer", "metric")}
    for name, array in contents.items():
        kind, _, rest = name.partition(":")
        if kind not in arrays:
            raise ModuleError(
                f"{path} holds {name!r}; its names begin with {', '.join(f'{kind}:' for kind in arrays)}."
            )
        arrays[kind][rest] = array
    return about, arrays


def _about(text: Any) -> dict[str, Any] | None:
    """The object that an array holds as JSON, None where it holds none."""
    try:
        about = parsed(text.tobytes()) if isinstance(text, np.ndarray) else None
    except ValueError:
        return None
    return about if isinstance(about, dict) else None
