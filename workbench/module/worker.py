"""A worker: one executor with its own copies of the parameters, run on its slice of every batch."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.plan import BatchPlan
from workbench import executor, formats
from workbench.data.batches.slicing import FORMATS, slice_range
from workbench.graph import Facts, Graph, Symbol
from workbench.kvstore import Store
from workbench.module.initialisers import ModuleError
from workbench.ops.products import plan_of

# Rows of a parameter that a batch reads, found in the graph: what has to be pulled, or brought up to date, before it.
#
# A parameter that is only multiplied from the left by csr data is read in the columns of the batch, one that is
# looked up in the rows of the ids; row by row operators on the way change nothing, as in `square(v)`. Everything else
# reads all. Gradients are computed of the same rows.


ALIGNED = ("unary", "scalars", "binary")
"""Families whose result has in row i what the inputs have in row i."""
REDUCTIONS = ("sum", "mean", "norm", "square_sum", "max", "min", "prod")
KEPT = ("cast", "copy", "to_format", "stop_gradient", "identity")


@dataclass(frozen=True, order=True)
class Source:
    """Origin of the row indices that a parameter is read at: the `columns` of csr data, or the ids in dense data."""

    kind: str
    name: str

    def rows(self, arrays: Mapping[str, Any], plans: Mapping[str, BatchPlan]) -> np.ndarray:
        """Return the row indices for a batch, sorted and unique, int64; columns come from the batch plan if there is
        one.
        """
        if self.kind == "columns" and self.name in plans:
            return plans[self.name].columns
        array = arrays[self.name]
        if self.kind == "columns":  # data in another format is converted, or refused, by the executor
            array = formats.to_format(array, "csr").indices
        return np.unique(array).astype(np.int64, copy=False)


Reads = frozenset[Source]
NOTHING: Reads = frozenset()


def find(graph: Graph, facts: Mapping[Symbol, Facts], data: Sequence[str]) -> dict[str, Reads | None]:
    """Find, for each parameter, the origin of the row indices that the graph reads; None if it reads all rows."""
    needed: dict[Symbol, Reads | None] = dict.fromkeys(graph.heads)
    for node in reversed(graph.nodes()):
        for place, entry in enumerate(node.inputs):
            here = _of_input(node, place, needed[node], facts, data)
            before = needed.get(entry, NOTHING)
            needed[entry] = None if here is None or before is None else here | before
    return {name: needed[node] for name, node in graph.variables().items() if name not in data}


def rows(reads: Reads, arrays: Mapping[str, Any], plans: Mapping[str, BatchPlan] | None = None) -> np.ndarray:
    """Return the row indices that a batch reads, sorted and unique, int64."""
    parts = [source.rows(arrays, plans or {}) for source in sorted(reads)]
    return parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts)) if parts else np.empty(0, np.int64)


def _of_input(
    node: Symbol, place: int, needed: Reads | None, facts: Mapping[Symbol, Facts], data: Sequence[str]
) -> Reads | None:
    """Return the origins of the rows of input `place` that `node` reads to compute the rows `needed` of its result."""
    entry, params = node.inputs[place], node.params
    if node.kind == "dot" and place == 1 and not (params["transpose_a"] or params["transpose_b"]):
        return _columns(node.inputs[0], facts, data)
    if node.kind == "embedding" and place == 1:
        ids = node.inputs[0]
        return frozenset([Source("ids", ids.name)]) if ids.kind == "variable" and ids.given in data else None
    if node.kind == "dot" and place == 0 and not params["transpose_a"]:
        return needed
    if node.kind in ("softmax", "log_softmax") and len(facts[entry].complete.shape) == 1:
        return None
    same_rows = _rows_of(facts[entry]) == _rows_of(facts[node]) is not None
    if same_rows and (node.kind in KEPT or node.operator.family in ALIGNED) and _same_rank(node, entry, facts):
        return needed
    if node.kind in REDUCTIONS and _keeps_rows(params.get("axis"), len(facts[entry].complete.shape)):
        return needed
    return None


def _columns(x: Symbol, facts: Mapping[Symbol, Facts], data: Sequence[str]) -> Reads | None:
    """Return the csr data whose columns cover all entries of `x`, if `x` is that data or an elementwise function of
    it.
    """
    while x.op is not None and facts[x].format == "csr" and len(x.inputs) == 1:
        if x.op.family not in ("unary", "scalars") and x.kind not in KEPT:
            return None
        x = x.inputs[0]
    is_csr_data = x.kind == "variable" and x.given in data and facts[x].format == "csr"
    return frozenset([Source("columns", x.name)]) if is_csr_data else None


def _rows_of(facts: Facts) -> int | None:
    """Return the number of rows; None if unknown or for a scalar."""
    return facts.shape[0] if facts.shape else None


def _same_rank(node: Symbol, entry: Symbol, facts: Mapping[Symbol, Facts]) -> bool:
    """Return whether node and input have the same rank, so that broadcasting aligns rows with rows."""
    return len(facts[node].complete.shape) == len(facts[entry].complete.shape)


def _keeps_rows(axis: Any, rank: int) -> bool:
    """Return whether a reduction over `axis` of an array of this rank keeps the first axis."""
    if axis is None:
        return False
    axes = axis if isinstance(axis, tuple) else (axis,)
    return all(entry % rank for entry in axes)


Plans = Mapping[str, BatchPlan]


class Worker:
    """Runs the graph on slices of batches. With a store it pulls what a slice reads before reading it."""

    def __init__(
        self,
        symbol: Graph,
        arrays: Mapping[str, Any],
        weights: Mapping[str, Any],
        reads: Mapping[str, Reads | None],
        **options: Any,
    ) -> None:
        self.executor = executor.bind(symbol, {**arrays, **weights}, **options)
        self.weights, self.reads = dict(weights), dict(reads)
        self.whole: dict[str, int] = {}
        """Version of the store at which all rows of a parameter were pulled."""

    def plans(
        self, arrays: Mapping[str, Any], planned: Callable[[], BatchPlan | None] | None = None, always: bool = True
    ) -> Plans:
        """Return the batch plans (column indexes) that a slice needs, by argument; none for data that is converted
        first.

        `planned` returns an existing plan of the first array, or None. With `always` plans are computed even if the
        graph could do without.
        """
        known, first, plans = self.executor.known, next(iter(arrays)), {}
        for name in self.executor.reads_plan:
            kind = known[name].format, known[name].dtype
            if name in arrays and (formats.format_of(arrays[name]), arrays[name].dtype) == kind:
                plan = planned() if planned and name == first else None
                if plan is None:
                    x = formats.validate(arrays[name])[1]
                    plan = plan_of(x) if always else self.executor.new_plan(name, x)
                if plan is not None:
                    plan.in_order(arrays[name].data)
                    plans[name] = plan
        return plans

    def rows_read(self, name: str, arrays: Mapping[str, Any], plans: Plans | None) -> np.ndarray | None:
        """Return the row indices of a parameter that a slice reads, sorted and unique, int64; None for all rows."""
        sources = self.reads[name]
        return None if sources is None else rows(sources, arrays, plans)

    def forward(
        self,
        arrays: Mapping[str, Any],
        training: bool,
        plans: Plans | None,
        wanted: Sequence[int] | None,
        is_own: bool = False,
    ) -> list[Any]:
        """Compute the outputs of a slice, None for those not in `wanted`; overwritten by the next call. `is_own` as
        in `Executor`.
        """
        return self.executor.forward(training, plans, wanted=wanted, is_own=is_own, **arrays)

    def backward(self, heads: list[Any] | None = None) -> dict[str, Any]:
        """Return gradients by parameter; overwritten by the next call."""
        return self.executor.backward(heads)

    def pull(self, store: Store, arrays: Mapping[str, Any], plans: Plans | None, version: int) -> None:
        """Pull from the store the rows of each parameter that the slice reads; all rows only if their `version`
        changed.

        row_sparse parameters then store exactly the rows of the slice.
        """
        rows_read = {name: self.rows_read(name, arrays, plans) for name in self.weights}
        read = {name: rows for name, rows in rows_read.items() if rows is not None or self.whole.get(name) != version}
        store.pull_into({name: self.weights[name] for name in read}, {name: read[name] for name in read})
        self.whole |= {name: version for name in read if rows_read[name] is None}


def cut(
    arrays: Mapping[str, Any], borders: Sequence[tuple[int, int]], known: Mapping[str, Facts]
) -> list[dict[str, Any]]:
    """Cut arrays at pairs of row `borders`; slices are views.

    csc and coo arrays are cut through a csr copy and converted back if the graph takes them in their format.
    """
    parts: list[dict[str, Any]] = [{} for _ in borders]
    for name, array in arrays.items():
        own_format = formats.format_of(array)
        by_rows = own_format if own_format in FORMATS else "csr"
        source = formats.to_format(array, by_rows)
        for part, border in zip(parts, borders, strict=True):
            rows = slice_range(by_rows, source, *border)
            part[name] = formats.to_format(rows, own_format) if known[name].format == own_format != by_rows else rows
    return parts


def own_slices(rows: int, workers: int, store: Store | None) -> list[tuple[int, int]]:
    """Return the row ranges of this trainer's workers; with several trainers on one store each takes a different part.

    Raises ModuleError for a batch with fewer rows than there are workers in all.
    """
    if store is None and workers == 1:
        return [(0, rows)]
    trainer, trainers = (0, 1) if store is None else (store.trainer, store.trainers)
    slices = slices_of(rows, workers * trainers)
    if trainers > 1 and len(slices) < workers * trainers:
        raise ModuleError(
            f"A batch of {rows} rows cannot be shared by {trainers} trainers with {workers} workers each. Take larger "
            "batches, and last='pad' or last='discard' where the last one of an epoch is smaller."
        )
    return slices[trainer * workers : (trainer + 1) * workers]


def slices_of(rows: int, workers: int) -> list[tuple[int, int]]:
    """Return contiguous row ranges of nearly equal length; fewer than `workers` if there are fewer rows.

    >>> slices_of(3, 2), slices_of(2, 4)
    ([(0, 2), (2, 3)], [(0, 1), (1, 2)])
    """
    workers = min(workers, rows) or 1
    borders = [-(-rows * place // workers) for place in range(workers + 1)]
    return list(itertools.pairwise(borders))
