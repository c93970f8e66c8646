"""Loops over batches: training with callbacks, scores, predictions. Methods of `Module`."""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from workbench import formats, metrics
from workbench.data.batches.feed import Batch, Feed
from workbench.data.batches.feed import prefetch as loaded_ahead
from workbench.data.batches.in_memory import Batches
from workbench.metrics import Accumulator
from workbench.module.checkpoint import Position, Prepared
from workbench.module.initialisers import ModuleError
from workbench.module.worker import cut, own_slices

if TYPE_CHECKING:
    from workbench.module.core import Module

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
    callbacks = _listed(batch_end), _listed(epoch_end)
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
    """Cut a batch into the slices of this trainer, or all slices if `whole`, and compute their column indexes if
    `plans`.

    `once` states that the batch is used for one step, so an index may be omitted if that is faster; `is_own` that
    nobody else holds it, so that slices of validated rows are not validated again.
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
    """Train one epoch from the current batch on, accumulating `metric` and calling `callbacks` after each update."""
    epoch, first = self.position
    is_own = type(train) is Batches  # which hands each batch out once, to us
    prepare = functools.partial(self.prepare, plans=ahead, once=True, is_own=is_own)
    prepared = loaded_ahead(train.epoch(epoch, first), prepare, int(ahead), train.at_once)
    batches = train.count(epoch) if callbacks else 0
    number = first - 1
    for ready in prepared:
        number, batch = number + 1, ready.value.batch
        outputs = self.forward(ready.value)
        self.backward()
        self.update()
        if metric is not None and ready.value.rows.start < batch.real_rows:  # of the outputs before the update
            metric.update(*scored(self, batch, outputs, ready.value.rows))
        self.position = Position(epoch, number + 1)
        for call in callbacks:
            call(BatchEnd(self, epoch, number, batches, batch.real_rows, metric))
        del ready, batch  # the memory of a batch may serve the next one


def _end_of_epoch(self: "Module", validation: Feed | None, metric: Accumulator | None) -> EpochEnd:
    """Advance the position to the next epoch and return the event with training and validation metrics."""
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
    """Return the accumulator for `fit`, with what a restored module had accumulated of its epoch."""
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
    """Raise ModuleError if the batches of a restored module differ from the batches it was trained with."""
    settings = train.settings()
    if self.trained_with is not None and self.position != (0, 0) and self.trained_with != settings:
        raise ModuleError(
            f"The module was trained to {self.position} with batches of {self.trained_with}; these are {settings}. "
            "Go on with the same, or set module.position = Position(0, 0) to start over with these."
        )
    self.trained_with = settings


def _listed(calls: Callbacks) -> list[Callable[[Any], None]]:
    """Return one callback or several as a list."""
    return list(calls) if isinstance(calls, Sequence) else [calls]


def scored(self: "Module", batch: Batch, outputs: list[Any], rows: slice = EVERY) -> tuple[Any, Any]:
    """Return prediction and target of a batch without padding rows; `rows` is the slice of the batch that outputs
    cover.

    Raises ModuleError if the batch has no target.
    """
    target = self.layout.target
    if target is None or target not in batch.labels:
        names = ", ".join(batch.labels) or "none"
        raise ModuleError(f"A metric compares with the label {target!r}; the batch has the labels {names}.")
    real = range(*rows.indices(batch.real_rows))
    return _prediction(self, outputs, len(real)), batch.labels[target][real.start : real.stop]


def _prediction(self: "Module", outputs: list[Any], rows: int) -> Any:
    """Return the output that is scored, its first `rows` rows."""
    place = self.layout.prediction
    if not self.per_row[place]:
        raise ModuleError(
            f"The prediction is output {place}, {self.layout.symbol.outputs()[place]}, which has no row for each row "
            "of a batch; name another one: Module(..., prediction=...)."
        )
    return outputs[place][:rows]


def _predicted(self: "Module", batch: Batch) -> list[Any]:
    """Compute only the predicted output of a batch; the other outputs are None."""
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
        gathered.update(*scored(self, batch, _predicted(self, batch)))
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
        yield batch, formats.copy(_prediction(self, _predicted(self, batch), batch.real_rows))


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


# Progress in a terminal, for who wants it: `fit(..., batch_end=shown.batch_end, epoch_end=shown.epoch_end)`.


@final
class Shown:
    """Progress display: a bar for the current epoch and a line per finished epoch; only lines if output is not a
    terminal.
    """

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console()
        columns = (TextColumn("epoch {task.fields[epoch]}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        metric = TextColumn("{task.fields[metric]}")
        self.progress = Progress(*columns, metric, console=self.console, transient=True, refresh_per_second=4)
        self.task: TaskID | None = None

    def batch_end(self, event: BatchEnd) -> None:
        """Advance the progress bar."""
        if not self.console.is_terminal:
            return
        if self.task is None:
            self.progress.start()
            self.task = self.progress.add_task("", total=event.batches, epoch=event.epoch, metric="")
        said = "" if event.metric is None else in_words(event.metric.value)
        self.progress.update(self.task, completed=event.batch + 1, metric=said)

    def epoch_end(self, event: EpochEnd) -> None:
        """Print the line of the epoch."""
        if self.task is not None:
            self.progress.stop()
            self.progress.remove_task(self.task)
            self.task = None
        said = [f"epoch {event.epoch}", in_words(event.metric)]
        if event.validation is not None:
            said.append(f"validation {in_words(event.validation)}")
        self.console.print("  ".join(part for part in said if part), highlight=False)


def in_words(value: Value) -> str:
    """Return the value of a metric as text.

    >>> in_words(0.25), in_words({"mse": 2.0, "mae": 1.5}), in_words(None)
    ('0.25', 'mse 2, mae 1.5', '')
    """
    if value is None:
        return ""
    if isinstance(value, dict):
        return ", ".join(f"{name} {number:.6g}" for name, number in value.items())
    return f"{value:.6g}"
