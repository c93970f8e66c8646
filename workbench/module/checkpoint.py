"""Checkpoint files, written atomically, with everything that training needs to continue with the same bits.

A checkpoint has the graph (JSON), parameters (in their formats), the optimizer's state, the position, a description of
the batches, and the metric accumulated in the current epoch. If rows of parameters are behind (`lazy="exact"`), they
are saved as they are and, for readers that want the model alone, once more up to date.
"""

import functools
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from workbench import formats, graph
from workbench.data.batches.feed import Batch
from workbench.graph import Facts, Graph, Symbol
from workbench.graph.inference import Declared
from workbench.json_text import Fields, are_texts, are_whole, check_document, is_object, is_optional, is_text, is_whole
from workbench.module.initialisers import ModuleError
from workbench.ops.losses import OUTPUT_LAYERS
from workbench.optimizers import Multiplier, Updater

# Roles of a graph's arguments: data, labels, parameters; and what is known of them from a batch.


class Position(NamedTuple):
    """The next batch: its epoch and its index in the epoch, from 0."""

    epoch: int
    batch: int


@dataclass(frozen=True, eq=False)
class Prepared:
    """A batch cut into slices for workers: arrays and column indexes (batch plans) of each slice, and its share of
    rows.

    `rows` is the slice of the batch that the parts make up together: the whole batch unless other trainers take the
    rest.
    """

    batch: Batch
    parts: list[dict[str, Any]]
    plans: list[Mapping[str, Any] | None]
    shares: list[float]
    rows: slice
    is_own: bool = False
    """Whether the arrays were cut for it of checked ones, and nobody else holds them."""


@dataclass(frozen=True, eq=False)
class Layout:
    """A graph with the names of its data and label arguments; all other arguments are parameters."""

    symbol: Graph
    data_names: tuple[str, ...]
    label_names: tuple[str, ...]
    prediction: int
    target: str | None

    def __post_init__(self) -> None:
        """Validate the names and the prediction's position; the target defaults to the first label.

        Raises ModuleError.
        """
        arguments = self.symbol.arguments()
        for kind, names in (("data_names", self.data_names), ("label_names", self.label_names)):
            if unknown := [name for name in names if name not in arguments]:
                raise ModuleError(f"{kind} has {', '.join(unknown)}; the graph's arguments are {', '.join(arguments)}.")
        if both := sorted(set(self.data_names) & set(self.label_names)):
            raise ModuleError(f"{both[0]!r} is among data_names and label_names; it is one of the two.")
        if self.target is None and self.label_names:
            object.__setattr__(self, "target", self.label_names[0])
        count = len(self.symbol.heads)
        if not -count <= self.prediction < count:
            raise ModuleError(f"prediction is {self.prediction}; the graph has {count} outputs, counted from 0.")

    @property
    def parameters(self) -> list[str]:
        """Names of the parameters, in the order of the graph's arguments."""
        return [name for name in self.symbol.arguments() if name not in (*self.data_names, *self.label_names)]

    def arrays(self, batch: Batch, known: Mapping[str, Facts] | None = None) -> dict[str, Any]:
        """Return {argument: array} of data and labels of a batch; additional labels are ignored.

        If `known` facts are given, missing labels are filled with zeros. Raises ModuleError for missing or unknown
        data.
        """
        missing = [name for name in self.data_names if name not in batch.data]
        if missing or len(batch.data) > len(self.data_names):
            batch_names, own_names = ", ".join(batch.data) or "none", ", ".join(self.data_names) or "none"
            raise ModuleError(f"The batch has the data {batch_names}; the module takes {own_names}. Name them alike.")
        arrays = {name: batch.data[name] for name in self.data_names}
        for name in self.label_names:
            if name in batch.labels:
                arrays[name] = batch.labels[name]
            elif known is not None and not batch.labels:
                format, shape, dtype = known[name].complete
                arrays[name] = formats.zeros((len(batch.rows_index), *shape[1:]), format, dtype)
            else:
                batch_names = ", ".join(batch.labels) or "none"
                raise ModuleError(
                    f"The batch has the labels {batch_names}; the module takes {', '.join(self.label_names)}."
                )
        return arrays

    @functools.cached_property
    def without_labels(self) -> list[int]:
        """Positions of the outputs computable without labels, which output layers read only for the gradient."""
        return [place for place, head in enumerate(self.symbol.heads) if not self._reads_label(head)]

    def _reads_label(self, head: Symbol) -> bool:
        """Return whether an output depends on a label other than through the loss of an output layer."""
        reads: dict[Symbol, bool] = {}
        for node in head.nodes():
            read = node.inputs[:1] if node.kind in OUTPUT_LAYERS else node.inputs
            reads[node] = (
                node.given in self.label_names if node.kind == "variable" else any(reads[entry] for entry in read)
            )
        return reads[head]

    def known(self, arrays: Mapping[str, Any], dtype: DTypeLike | None, convert: bool) -> Declared:
        """Return shapes, dtypes and formats by argument: of the arrays, or if `convert` as the graph declares.

        An undeclared dtype of a parameter is `dtype`, or that of the first floating-point data, else float32.
        """
        floats = [arrays[name].dtype for name in self.data_names if arrays[name].dtype.kind == "f"]
        chosen = np.dtype(dtype or (floats[0] if floats else np.float32))
        variables = self.symbol.variables()
        undeclared = [name for name, node in variables.items() if node.attributes["dtype"] is None]
        own = {name: chosen for name in self.parameters if name in undeclared}
        dtypes = {name: array.dtype for name, array in arrays.items() if not convert or name in undeclared}
        return {
            "shapes": {name: array.shape for name, array in arrays.items()},
            "dtypes": dtypes | own,
            "formats": {} if convert else {name: formats.format_of(array) for name, array in arrays.items()},
        }

    def per_row(self, known: Declared) -> list[bool]:
        """Return for each output whether it has one row per row of the batch."""
        more = known.copy()
        more["shapes"] = {name: ((shape[0] or 0) + 1, *shape[1:]) for name, shape in known["shapes"].items()}
        before, after = self.symbol.infer(**known), self.symbol.infer(**more)
        return [one.shape != two.shape for one, two in zip(before.outputs, after.outputs, strict=True)]

    def multipliers(self, names: list[str]) -> dict[str, Multiplier]:
        """Return {parameter: rate and decay multipliers} that the variables declare, if they differ from 1."""
        variables = self.symbol.variables()
        multipliers = {}
        for name in names:
            declared = variables[name].attributes
            if (declared["rate_multiplier"], declared["decay_multiplier"]) != (1.0, 1.0):
                multipliers[name] = Multiplier(declared["rate_multiplier"], declared["decay_multiplier"])
        return multipliers


if TYPE_CHECKING:
    from workbench.module import Module

KIND = "sparse-workbench module"
VERSION = 1


def save(self: "Module", path: str | os.PathLike) -> None:
    """Write a checkpoint to one file, atomically; an older file at `path` stays until the new one is complete.

    Parameters
    ----------
    path : str or os.PathLike
        File to write.
    """
    self._need("initialised", "initialise(...)")
    arrays = {f"parameter:{name}": weight for name, weight in self.raw_weights().items()}
    arrays |= {f"current:{name}": weight for name, weight in self.weights().items()} if self.lags else {}
    if self.updater is not None:
        arrays |= {f"optimizer:{name}": array for name, array in self.optimizer_state().items()}
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
    formats.save(path, arrays, about)


def restore(self: "Module", path: str | os.PathLike) -> "Module":
    """Continue from a checkpoint.

    Parameters
    ----------
    path : str or os.PathLike
        File written by `save`.

    Returns
    -------
    Module
        The module itself. Without an optimizer it gets the saved one.

    Raises
    ------
    ModuleError
        If the file is not a checkpoint of this version, or has another graph, other parameters or another optimizer.
    OptimizerError
        If the optimizer's state is invalid. Nothing has changed after an error.
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
        steps = updater.read_state(arrays["optimizer"])
        updater.check_fit(steps, {name: weights[name] for name in self.trained})
    if updater is not None and updater is not self.updater:
        self._use(updater)
    _take(self, weights, steps, arrays["optimizer"])
    self.initialised, self.state = True, "idle"
    self.position = Position(*about["position"])
    self.trained_with, self.metric = about["trained_with"], None
    self.gathered = arrays["metric"] or None
    return self


def _check_weights(path: str | os.PathLike, weights: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """Raise ModuleError if saved parameters differ from `own` in names, formats, dtypes or shapes."""
    if set(weights) != set(own):
        raise ModuleError(f"{path} has the parameters {sorted(weights)}; the module's are {sorted(own)}.")
    for name, weight in own.items():
        actual, expected = (f"{formats.format_of(x)} {x.dtype} {tuple(x.shape)}" for x in (weights[name], weight))
        if actual != expected:
            raise ModuleError(f"{path} has the parameter {name} as {actual}; the module's is {expected}.")


def _take(self: "Module", weights: dict[str, Any], steps: dict[str, Any] | None, optimizer: dict[str, Any]) -> None:
    """Load validated parameters and the optimizer's state into the module or its store, in place.

    `steps` is the parsed state, `optimizer` the saved arrays for a store.
    """
    if self.store is not None:
        state = {f"value:{json.dumps(name)}": weight for name, weight in weights.items()}
        self.store.load_state_dict(state | {f"optimizer:{name}": array for name, array in optimizer.items()})
        self.version += 1
        return
    if self.updater is not None and steps is not None:
        self.updater.take_state(steps)
    for name, weight in self.workers[0].weights.items():
        formats.assign(weight, weights[name])


def load_model(path: str | os.PathLike) -> tuple["Graph", dict[str, Any], dict[str, Any]]:
    """Read the graph, the parameters and the argument names of a checkpoint: what predictions need.

    Parameters
    ----------
    path : str or os.PathLike
        File written by `Module.save`.

    Returns
    -------
    symbol : Graph
        The graph.
    weights : dict of str to array
        Parameters by name, up to date.
    names : dict
        Keyword arguments of `Module`.

    Raises
    ------
    ModuleError, GraphError, FormatError
        If the file was not written by a module.

    Notes
    -----
    Continue with `Module(symbol, **names).bind(batches).initialise(values=weights)`.
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


WORDS: Fields = {
    "graph": (is_text, "a graph as JSON"),
    "data_names": (are_texts, "a list of names"),
    "label_names": (are_texts, "a list of names"),
    "prediction": (lambda value: is_whole(value, -(2**31), 2**31), "the number of an output"),
    "target": (is_optional(is_text), "a name or null"),
    "position": (lambda value: are_whole(value) and len(value) == 2, "an epoch and a batch, from 0"),
    "trained_with": (is_optional(is_object), "an object or null"),
    "optimizer": (is_optional(is_object), "an object or null"),
}
"""What a checkpoint says: how it is right, in code and in words."""


def _read(path: str | os.PathLike) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return (JSON description, {kind: {name: array}}) of a checkpoint.

    ModuleError if it is not valid, or another version.
    """
    said, contents = formats.load_about(path)
    try:
        about = check_document(said, KIND, VERSION, WORDS)
    except ValueError as error:
        raise ModuleError(f"{path} is no checkpoint that Module.save wrote: {error}.") from None
    arrays: dict[str, dict[str, Any]] = {kind: {} for kind in ("parameter", "current", "optimizer", "metric")}
    for name, array in contents.items():
        kind, _, rest = name.partition(":")
        if kind not in arrays:
            raise ModuleError(
                f"{path} holds {name!r}; its names begin with {', '.join(f'{kind}:' for kind in arrays)}."
            )
        arrays[kind][rest] = array
    return about, arrays
