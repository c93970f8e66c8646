"""Rows of a parameter that a batch reads, found in the graph: what has to be pulled, or brought up to date, before it.

A parameter that is only multiplied from the left by csr data is read in the columns of the batch, one that is looked up
in the rows of the ids; row by row operators on the way change nothing, as in `square(v)`. Everything else reads all.
Gradients are computed of the same rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.plan import BatchPlan
from workbench import formats
from workbench.graph import Facts, Graph, Symbol

ALIGNED = ("unary", "scalars", "binary")
"""Families whose result has in row i what the inputs have in row i."""
REDUCTIONS = ("sum", "mean", "norm", "square_sum", "max", "min", "prod")
KEPT = ("cast", "copy", "to_format", "stop_gradient", "identity")


@dataclass(frozen=True, order=True)
class Source:
    """Rows read: the `columns` that csr data has entries in, or the ids in dense data, as they are."""

    kind: str
    name: str

    def rows(self, arrays: Mapping[str, Any], plans: Mapping[str, BatchPlan]) -> np.ndarray:
        """Their numbers for a batch, sorted and unique, int64; a batch plan knows its columns already."""
        if self.kind == "columns" and self.name in plans:
            return plans[self.name].columns
        array = arrays[self.name]
        if self.kind == "columns":  # data in another format is converted, or refused, by the executor
            array = formats.to_format(array, "csr").indices
        return np.unique(array).astype(np.int64, copy=False)


Reads = frozenset[Source]
NOTHING: Reads = frozenset()


def find(graph: Graph, facts: Mapping[Symbol, Facts], data: Sequence[str]) -> dict[str, Reads | None]:
    """Find, for each variable but `data`, where the numbers of the rows come from; None where all rows are read."""
    needed: dict[Symbol, Reads | None] = dict.fromkeys(graph.heads)
    for node in reversed(graph.nodes()):
        for place, entry in enumerate(node.inputs):
            here = _of_input(node, place, needed[node], facts, data)
            before = needed.get(entry, NOTHING)
            needed[entry] = None if here is None or before is None else here | before
    return {name: needed[node] for name, node in graph.variables().items() if name not in data}


def rows(reads: Reads, arrays: Mapping[str, Any], plans: Mapping[str, BatchPlan] | None = None) -> np.ndarray:
    """The rows that a batch reads, sorted and unique, int64."""
    parts = [source.rows(arrays, plans or {}) for source in sorted(reads)]
    return parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts)) if parts else np.empty(0, np.int64)


def _of_input(
    node: Symbol, place: int, needed: Reads | None, facts: Mapping[Symbol, Facts], data: Sequence[str]
) -> Reads | None:
    """Rows of that input that the node reads to give the rows that are needed of itself."""
    entry, params = node.inputs[place], node.params
    if node.kind == "dot" and place == 1 and not (params["transpose_a"] or params["transpose_b"]):
        return _columns(node.inputs[0], facts, data)
    if node.kind == "embedding" and place == 1:
        ids = node.inputs[0]
        return frozenset([Source("ids", ids.given)]) if ids.kind == "variable" and ids.given in data else None
    if node.kind == "dot" and place == 0 and not params["transpose_a"]:
        return needed
    if node.kind in ("softmax", "log_softmax") and len(facts[entry].shape) == 1:
        return None
    same_rows = _rows_of(facts[entry]) == _rows_of(facts[node]) is not None
    if same_rows and (node.kind in KEPT or node.op.family in ALIGNED) and _same_rank(node, entry, facts):
        return needed
    if node.kind in REDUCTIONS and _keeps_rows(params.get("axis"), len(facts[entry].shape)):
        return needed
    return None


def _columns(x: Symbol, facts: Mapping[Symbol, Facts], data: Sequence[str]) -> Reads | None:
    """The data whose columns hold all entries of `x`, where `x` is csr data or made of it entry by entry."""
    while x.op is not None and facts[x].format == "csr" and len(x.inputs) == 1:
        if x.op.family not in ("unary", "scalars") and x.kind not in KEPT:
            return None
        x = x.inputs[0]
    is_csr_data = x.kind == "variable" and x.given in data and facts[x].format == "csr"
    return frozenset([Source("columns", x.given)]) if is_csr_data else None


def _rows_of(facts: Facts) -> int | None:
    return facts.shape[0] if facts.shape else None


def _same_rank(node: Symbol, entry: Symbol, facts: Mapping[Symbol, Facts]) -> bool:
    """Broadcasting aligns the last axes: rows meet rows where the ranks are the same."""
    return len(facts[node].shape) == len(facts[entry].shape)


def _keeps_rows(axis: Any, rank: int) -> bool:
    if axis is None:
        return False
    axes = axis if isinstance(axis, tuple) else (axis,)
    return all(entry % rank for entry in axes)
