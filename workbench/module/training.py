"""Loops over batches: training with callbacks, scores, predictions. Methods of `Module`."""

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels.plan import BatchPlan
from workbench import executor, formats, metrics
from workbench.data.batches.feed import Batch, Feed, Ready
from workbench.data.batches.feed import steps as steps_of
from workbench.data.batches.in_memory import Batches
from workbench.data.batches.slicing import FORMATS, slice_range
from workbench.graph import Facts, Graph, Symbol
from workbench.kvstore import Store
from workbench.metrics import Accumulator
from workbench.module.checkpoint import Position, Prepared
from workbench.module.initialisers import ModuleError
from workbench.ops.products import plan_of

# A worker: one executor with its own copies of the parameters, run on its slice of every batch.


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
        """Return the row indices for a batch, sorted and unique, int64; columns come from a plan if there is one."""
        if self.kind == "columns" and self.name in plans:
            return plans[self.name].columns
        array = arrays[self.name]
        if self.kind == "columns":  # data in another format is converted, or refused, by the executor
            array = formats.to_format(array, "csr").indices
        return np.unique(array).astype(np.int64, copy=False)


Reads = frozenset[Source]
NOTHING: Reads = frozenset()


def find(graph: Graph, facts: Mapping[Symbol, Facts], data: Sequence[str]) -> dict[str, Reads | None]:
    """Return {parameter: origins of the row indices that the graph reads}; None if it reads all rows."""
    needed: dict[Symbol, Reads | None] = dict.fromkeys(graph.heads)
    for node in reversed(graph.nodes()):
        for place, entry in enumerate(node.inputs):
            here = _of_input(node, place, needed[node], facts, data)
            before = needed.get(entry, NOTHING)
            needed[entry] = None if here is None or before is None else here | before
    return {name: needed[node] for name, node in graph.variables().items() if name not in data}


def rows(reads: Reads, arrays: Mapping[str, Any], plans: Mapping[str, BatchPlan] | None = None) -> np.ndarray:
    """Return the row indices that a batch reads of a parameter, sorted and unique, int64.

    `reads` are the sources of the rows, `arrays` the batch's inputs by name, `plans` their column indexes, if known.
    """
    parts = [source.rows(arrays, plans or {}) for source in sorted(reads)]
    return parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts)) if parts else np.empty(0, np.int64)


def _of_input(
    node: Symbol, place: int, needed: Reads | None, facts: Mapping[Symbol, Facts], data: Sequence[str]
) -> Reads | None:
    """Return the origins of the rows of input `place` that `node` reads for rows `needed`; None for all."""
    entry, params = node.inputs[place], node.params
    if node.kind == "dot" and place == 1 and not (params["transpose_a"] or params["transpose_b"]):
        return _columns(node.inputs[0], facts, data)
    if node.kind == "embedding" and place == 1:
        ids = node.inputs[0]
        return frozenset([Source("ids", ids.name)]) if ids.kind == "variable" and ids.given in data else None
    if node.kind == "dot" and place == 0 and not params["transpose_a"]:
        return needed
    rank = len(facts[entry].complete.shape)
    if node.kind in ("softmax", "log_softmax") and rank == 1:
        return None
    same_rows = _rows_of(facts[entry]) == _rows_of(facts[node]) is not None and rank == len(facts[node].complete.shape)
    if same_rows and (node.kind in KEPT or node.operator.family in ALIGNED):
        return needed
    if node.kind in REDUCTIONS and _keeps_rows(params.get("axis"), rank):
        return needed
    return None


def _columns(x: Symbol, facts: Mapping[Symbol, Facts], data: Sequence[str]) -> Reads | None:
    """Return the csr data whose columns cover the entries of `x` (it, or elementwise of it); None if not so."""
    while x.op is not None and facts[x].format == "csr" and len(x.inputs) == 1:
        if x.op.family not in ("unary", "scalars") and x.kind not in KEPT:
            return None
        x = x.inputs[0]
    is_csr_data = x.kind == "variable" and x.given in data and facts[x].format == "csr"
    return frozenset([Source("columns", x.name)]) if is_csr_data else None


def _rows_of(facts: Facts) -> int | None:
    """Return the number of rows; None if unknown or for a scalar."""
    return facts.shape[0] if facts.shape else None


def _keeps_rows(axis: Any, rank: int) -> bool:
    """Return whether a reduction over `axis` of an array of this rank keeps the first axis; None reduces all axes."""
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
        """Bind the graph to example `arrays` and to `weights`, shared; `reads` names the rows it reads of each."""
        self.executor = executor.bind(symbol, {**arrays, **weights}, **options)
        self.weights, self.reads = dict(weights), dict(reads)
        self.whole: dict[str, int] = {}
        """Version of the store at which all rows of a parameter were pulled."""
        self.announced: tuple[Any, dict[Any, np.ndarray | None]] = None, {}
        """The slice whose rows the store was asked for ahead, and the rows by parameter."""

    def plans(
        self, arrays: Mapping[str, Any], planned: Callable[[], BatchPlan | None] | None = None, always: bool = True
    ) -> Plans:
        """Return the column indexes (batch plans) that a slice needs, by argument.

        None for data that is converted first. `planned` returns an existing plan of the first array, or None. With
        `always` plans are computed even if the graph could do without.
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
        """Return the row indices of a parameter that a slice reads, sorted, unique int64; None for all rows."""
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
        """Return the outputs of a slice, None for those not in `wanted` (None: all); overwritten by the next call."""
        return self.executor.forward(training, plans, wanted=wanted, is_own=is_own, **arrays)

    def backward(self, heads: list[Any] | None = None) -> dict[str, Any]:
        """Return {parameter: gradient}, overwritten by the next call; `heads` are output gradients (None: ones)."""
        return self.executor.backward(heads)

    def pull(self, store: Store, arrays: Mapping[str, Any], plans: Plans | None, version: int) -> None:
        """Pull the rows of each parameter that the slice reads from the store, in place.

        All rows only if `version` is new. row_sparse parameters then store exactly the rows of the slice.
        """
        is_known = arrays is self.announced[0]
        rows_read = self.announced[1] if is_known else self._rows_of_all(arrays, plans)
        read = {name: rows for name, rows in rows_read.items() if rows is not None or self.whole.get(name) != version}
        store.pull_into({name: self.weights[name] for name in read}, {name: read[name] for name in read})
        self.whole |= {name: version for name in read if rows_read[name] is None}

    def announce(self, store: Store, arrays: Mapping[str, Any], plans: Plans | None) -> None:
        """Ask the store ahead for the rows that the next slice reads."""
        self.announced = arrays, self._rows_of_all(arrays, plans)
        store.ask_ahead(self.announced[1])

    def _rows_of_all(self, arrays: Mapping[str, Any], plans: Plans | None) -> dict[Any, np.ndarray | None]:
        """Return the rows that a slice reads of each parameter; None for all."""
        return {name: self.rows_read(name, arrays, plans) for name in self.weights}


def cut(
    arrays: Mapping[str, Any], borders: Sequence[tuple[int, int]], known: Mapping[str, Facts]
) -> list[dict[str, Any]]:
    """Return one {name: array} per pair of row `borders`, as views.

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
    """Return the row ranges of this trainer's workers; several trainers on one store take different parts.

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


if TYPE_CHECKING:
    from workbench.module import Module

Value = float | dict[str, float] | None
MetricLike = str | Sequence[str] | Accumulator | None


EVERY = slice(None)


class StopTraining(Exception):  # noqa: N818 - it is no error
    """Raised by a callback to end `fit` after this batch or epoch; `fit` returns the epochs so far."""


@dataclass(frozen=True)
class BatchEnd:
    """Event after a training batch: epoch, batch index, `batches` of the epoch, and the metric of the epoch so far."""

    module: "Module"
    epoch: int
    batch: int
    batches: int
    rows: int
    metric: Accumulator | None


@dataclass(frozen=True)
class EpochEnd:
    """Event after an epoch: the training metric, computed on every batch before its update, and the validation
    metric.
    """

    module: "Module"
    epoch: int
    metric: Value
    validation: Value


Callbacks = Callable[[Any], None] | Sequence[Callable[[Any], None]]


def fit(
    self: "Module",
    train: Feed,
    validation: Feed | None = None,
    *,
    epochs: int,
    metric: MetricLike = None,
    average: str = "samples",
    batch_end: Callbacks = (),
    epoch_end: Callbacks = (),
    ahead: bool = False,
) -> list[EpochEnd]:
    """Train until `epochs` epochs are done in total, from the current position.

    A restored module continues in the middle of an epoch; a module trained for 3 epochs does 2 more with `epochs=5`.

    Parameters
    ----------
    train : Feed
        Training batches. Rows that pad a batch are trained on but excluded from metrics.
    validation : Feed, optional
        Batches that are scored after each epoch.
    epochs : int
        Total number of epochs.
    metric : str, sequence or Accumulator, optional
        Metric accumulated over each epoch.
    average : {"samples", "batches"}, default "samples"
        How a metric given by name is averaged.
    batch_end, epoch_end : callable or sequence of callable
        Called with a `BatchEnd` after each update and an `EpochEnd` after each epoch; may save the module, and end
        training
        by raising StopTraining.
    ahead : bool, default False
        Cut and index the next batch on another thread. Results do not change.

    Returns
    -------
    list of EpochEnd
        One entry per epoch of this call.

    Raises
    ------
    ModuleError
        If there is no optimizer, or a restored module is given other batches than it was trained with.
    """
    if self.updater is None:
        raise ModuleError("fit needs an optimizer; call set_optimizer('sgd', learning_rate=0.1) first.")
    _check_feed(self, train)
    gathered = _metric(self, metric, average)
    callbacks = _as_list(batch_end), _as_list(epoch_end)
    history: list[EpochEnd] = []
    try:
        while self.position.epoch < epochs:
            _epoch(self, train, gathered, callbacks[0], ahead)
            history.append(_end_of_epoch(self, validation, gathered))
            for call in callbacks[1]:
                call(history[-1])
    except StopTraining:
        pass
    finally:
        self.gathered = gathered.state_dict() if gathered is not None and self.position.batch else None
    return history


def prepare(
    self: "Module", batch: Batch, plans: bool = True, whole: bool = False, once: bool = False, is_own: bool = False
) -> Prepared:
    """Cut a batch into this trainer's slices (all if `whole`), with their column indexes if `plans`.

    `once` states that the batch is used for one step, so an index may be omitted if that is faster; `is_own` that
    nobody else holds it, so that slices of validated rows are not validated again. Raises ModuleError before `bind`.
    """
    self._need("bound", "bind(batches)")
    arrays = self.layout.arrays(batch, self.workers[0].executor.known)
    rows, is_own = len(batch.rows_index), is_own and batch.is_copy
    has_own_rows = self.share == "rows" and self.store is not None and not whole
    borders = own_slices(rows, self.count, None if whole or has_own_rows else self.store)
    parts = [arrays] if borders == [(0, rows)] else cut(arrays, borders, self.workers[0].executor.known)
    planned = batch.planned if is_own and parts[0] is arrays else None
    plans, always = plans or planned is not None, self.store is not None or self.lags or (plans and not once)
    each = zip(self.workers, parts, strict=False)
    worker_plans = [worker.plans(part, planned, always) if plans or always else None for worker, part in each]
    all_rows = rows * (self.store.trainers if has_own_rows and self.store is not None else 1)
    shares = [(stop - start) / all_rows if rows else 1.0 for start, stop in borders]
    return Prepared(batch, parts, worker_plans, shares, slice(borders[0][0], borders[-1][1]), is_own)


def _epoch(self: "Module", train: Feed, metric: Accumulator | None, callbacks: list[Callable], ahead: bool) -> None:
    """Train the rest of the current epoch; update `metric`, `position`, and call `callbacks` after each update."""
    epoch, first = self.position
    is_own = type(train) is Batches  # which hands each batch out once, to us
    prepare = functools.partial(self.prepare, plans=ahead, once=True, is_own=is_own)
    batches = train.count(epoch) if callbacks else 0

    def step(ready: Ready) -> int:
        """Train on a prepared batch, add the outputs before the update to the metric, and return its rows."""
        batch, outputs = ready.value.batch, self.forward(ready.value)
        self.backward()
        self.update()
        if metric is not None and ready.value.rows.start < batch.real_rows:
            metric.update(*prediction_and_target(self, batch, outputs, ready.value.rows))
        return batch.real_rows

    store = self.store if self.store is not None and self.store.trainers > 1 and self.count == 1 else None
    waiting: list[Ready] = []

    def step_before(ready: Ready) -> int | None:
        """Train on the batch before this one, whose rows travel meanwhile; return its rows, None for the first."""
        waiting.append(ready)
        if len(waiting) == 1:
            return None
        self.following = ready.value
        return step(waiting.pop(0))

    def step_of_each() -> Iterator[int]:
        """Yield the rows of each batch after training on it."""
        batches = train.epoch(epoch, first)
        if store is None:
            yield from steps_of(batches, prepare, step, int(ahead), train.at_once)
            return
        try:
            done = steps_of(batches, prepare, step_before, int(ahead), train.at_once)
            yield from (rows for rows in done if rows is not None)
            yield from map(step, waiting)
        finally:
            self.following = None
            store.drop_ahead()  # what a callback has ended

    for number, rows in enumerate(step_of_each(), first):
        self.position = Position(epoch, number + 1)
        for call in callbacks:
            call(BatchEnd(self, epoch, number, batches, rows, metric))


def _end_of_epoch(self: "Module", validation: Feed | None, metric: Accumulator | None) -> EpochEnd:
    """Return the event with training and validation metrics; reset the metric and move to the next epoch."""
    epoch = self.position.epoch
    checked = None
    if validation is not None and metric is not None:
        checked = self.score(validation, metric.fresh())
    ended = EpochEnd(self, epoch, None if metric is None else metric.value, checked)
    if metric is not None:
        metric.reset()
    self.position = Position(epoch + 1, 0)
    return ended


def _metric(self: "Module", metric: MetricLike, average: str) -> Accumulator | None:
    """Return the accumulator for `fit`, continued if a restored module is within an epoch, else reset; None without.

    Raises ModuleError if such an epoch was begun with a metric and none is given.
    """
    accumulator = None if metric is None else metrics.create(metric, average)
    if accumulator is not None:
        if self.gathered is not None and self.position.batch:
            accumulator.load_state_dict(self.gathered)
        else:
            accumulator.reset()
    elif self.gathered:
        raise ModuleError(f"The training stopped amid an epoch with the metric {sorted(self.gathered)}; give it again.")
    self.gathered, self.metric = None, accumulator
    return accumulator


def _check_feed(self: "Module", train: Feed) -> None:
    """Set `trained_with` to the batches' settings; ModuleError if they differ from it within a training."""
    settings = train.settings()
    if self.trained_with is not None and self.position != (0, 0) and self.trained_with != settings:
        raise ModuleError(
            f"The module was trained to {self.position} with batches of {self.trained_with}; these are {settings}. "
            "Go on with the same, or set module.position = Position(0, 0) to start over with these."
        )
    self.trained_with = settings


def _as_list(calls: Callbacks) -> list[Callable[[Any], None]]:
    """Return one callback or several as a list."""
    return list(calls) if isinstance(calls, Sequence) else [calls]


def prediction_and_target(self: "Module", batch: Batch, outputs: list[Any], rows: slice = EVERY) -> tuple[Any, Any]:
    """Return (prediction, target) of a batch without padding rows; outputs cover its slice `rows`.

    Raises ModuleError if the batch has no target, or the prediction has no row per row.
    """
    target = self.layout.target
    if target is None or target not in batch.labels:
        names = ", ".join(batch.labels) or "none"
        raise ModuleError(f"A metric compares with the label {target!r}; the batch has the labels {names}.")
    real = range(*rows.indices(batch.real_rows))
    return _prediction(self, outputs, len(real)), batch.labels[target][real.start : real.stop]


def _prediction(self: "Module", outputs: list[Any], rows: int) -> Any:
    """Return the first `rows` rows of the output that is scored; ModuleError if it is not per row."""
    place = self.layout.prediction
    if not self.per_row[place]:
        raise ModuleError(
            f"The prediction is output {place}, {self.layout.symbol.outputs()[place]}, which has no row for each row "
            "of a batch; name another one: Module(..., prediction=...)."
        )
    return outputs[place][:rows]


def _select_prediction(self: "Module", batch: Batch) -> list[Any]:
    """Return the outputs of a batch, of which only the prediction is computed, the others None.

    Raises ModuleError if it needs labels that the batch lacks.
    """
    self._need("initialised", "initialise(...)")
    place = self.layout.prediction % len(self.layout.symbol.heads)
    if not batch.labels and self.layout.label_names and place not in self.layout.without_labels:
        raise ModuleError(
            f"The prediction is output {place}, {self.layout.symbol.outputs()[place]}, which is computed from labels; "
            "the batch has none. Give labels, or name another one: Module(..., prediction=...)."
        )
    return self.run(self.prepare(batch, plans=False, whole=True), training=False, wanted=[place])


def score(self: "Module", batches: Feed, metric: MetricLike, average: str = "samples") -> Value:
    """Compute a metric over one pass through the batches (epoch 0), without padding rows.

    Parameters
    ----------
    batches : Feed
        Batches with targets.
    metric : str, sequence or Accumulator
        Metric; a given accumulator is reset first.
    average : {"samples", "batches"}, default "samples"
        How a metric given by name is averaged.

    Returns
    -------
    float or dict of str to float
        Value, or values by name.
    """
    if metric is None:
        raise ModuleError("score needs a metric, such as 'accuracy'.")
    gathered = metrics.create(metric, average)
    gathered.reset()
    for batch in batches.epoch(0):
        gathered.update(*prediction_and_target(self, batch, _select_prediction(self, batch)))
    return gathered.value


def predictions(self: "Module", batches: Feed) -> Iterator[tuple[Batch, Any]]:
    """Iterate over batches with the prediction for their rows, copied and without padding rows.

    Parameters
    ----------
    batches : Feed
        Batches; labels may be missing.

    Yields
    ------
    tuple of (Batch, array)
        The batch and the predicted output. Other outputs are not computed.
    """
    for batch in batches.epoch(0):
        yield batch, formats.copy(_prediction(self, _select_prediction(self, batch), batch.real_rows))


def predict(self: "Module", batches: Feed) -> np.ndarray:
    """Compute the predictions for all rows.

    Parameters
    ----------
    batches : Feed
        Batches; labels may be missing.

    Returns
    -------
    ndarray
        Predictions, dense, in the order of the batches.
    """
    parts = [formats.to_format(output, "dense") for _, output in self.predictions(batches)]
    if not parts:
        raise ModuleError("There is no batch, so there is nothing to predict; give batches of at least one row.")
    return np.concatenate(parts)
