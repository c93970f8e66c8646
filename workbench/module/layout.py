"""Roles of a graph's arguments: data, labels, parameters; and what is known of them from a batch."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from workbench import formats
from workbench.data.batches.feed import Batch
from workbench.graph import Facts, Graph, Symbol
from workbench.module.initialisers import ModuleError
from workbench.ops.losses import OUTPUT_LAYERS
from workbench.optimizers import Multiplier


class Position(NamedTuple):
    """The batch that comes next: its epoch and its number in the epoch, from 0."""

    epoch: int
    batch: int


@dataclass(frozen=True, eq=False)
class Prepared:
    """A batch cut for its workers: the arrays of each slice, their batch plans, and its share of the rows.

    `rows` are the rows of the batch that the slices are together: all of them, but where other trainers have others.
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
    """A graph with the names of its data and labels; all other arguments are parameters."""

    symbol: Graph
    data_names: tuple[str, ...]
    label_names: tuple[str, ...]
    prediction: int
    target: str | None

    def __post_init__(self) -> None:
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
        """Data and labels of a batch by argument. Where shapes are `known`, labels that are missing are zeros, to give
        the arguments their shapes; what reads them is not computed.

        Missing and unknown data are refused (`ModuleError`); other labels are left out.
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
                facts = known[name]
                arrays[name] = formats.zeros((len(batch.rows_index), *facts.shape[1:]), facts.format, facts.dtype)
            else:
                batch_names = ", ".join(batch.labels) or "none"
                raise ModuleError(
                    f"The batch has the labels {batch_names}; the module takes {', '.join(self.label_names)}."
                )
        return arrays

    @functools.cached_property
    def without_labels(self) -> list[int]:
        """The places of the outputs that are computed without a label: output layers read it for the gradient alone."""
        return [place for place, head in enumerate(self.symbol.heads) if not self._reads_label(head)]

    def _reads_label(self, head: Symbol) -> bool:
        reads: dict[Symbol, bool] = {}
        for node in head.nodes():
            read = node.inputs[:1] if node.kind in OUTPUT_LAYERS else node.inputs
            reads[node] = node.given in self.label_names if node.kind == "variable" else any(map(reads.get, read))
        return reads[head]

    def known(self, arrays: Mapping[str, Any], dtype: DTypeLike | None, convert: bool) -> dict[str, dict[str, Any]]:
        """Shapes, dtypes and formats by argument, those of the arrays; with `convert` what is declared comes first.

        A dtype that is not declared is that of `Module.bind`. Formats are always declared.
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

    def per_row(self, known: Mapping[str, Mapping[str, Any]]) -> list[bool]:
        """Find for each output whether it has a row for each row of a batch: whether one row more makes it longer."""
        more = {name: (shape[0] + 1, *shape[1:]) for name, shape in known["shapes"].items()}
        before, after = (self.symbol.infer(**{**known, "shapes": shapes}) for shapes in (known["shapes"], more))
        return [one.shape != two.shape for one, two in zip(before.outputs, after.outputs, strict=True)]

    def multipliers(self, names: list[str]) -> dict[str, Multiplier]:
        """Multipliers that the variables declare for the optimizer, where they are not 1."""
        variables = self.symbol.variables()
        multipliers = {}
        for name in names:
            declared = variables[name].attributes
            if (declared["rate_multiplier"], declared["decay_multiplier"]) != (1.0, 1.0):
                multipliers[name] = Multiplier(declared["rate_multiplier"], declared["decay_multiplier"])
        return multipliers
