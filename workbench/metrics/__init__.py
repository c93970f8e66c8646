"""Measures of predictions: numbers from scores and targets, of one batch or gathered over many.

`mse(scores, targets)` is the number of one batch. `create("mse")` gathers batches: over `samples`, which gives the
number of all of them as if they were one batch, or over `batches`, the mean of the batches' numbers, whatever their
sizes, which is what many programs print as the metric of an epoch.

| name            | of one batch                                                 | scores      | targets             |
|-----------------|--------------------------------------------------------------|-------------|---------------------|
| accuracy        | share of rows whose largest score is their class             | [R, N]      | [R]                 |
| binary_accuracy | share of scores on the right side of `threshold`             | any shape   | as scores, 0 and 1  |
| mse, mae, rmse  | mean squared and absolute error, root of the first           | any shape   | as scores           |
| r2              | 1 - squared error / squared deviation from the mean          | [R, N], [R] | as scores           |
| auc             | chance that a score of a 1 is above one of a 0               | any shape   | as scores, 0 and 1  |
| f1_micro        | F1 of all classes together                                   | [R, N]      | [R] or [R, N]       |
| f1_macro        | mean of the F1 of each class                                 | [R, N]      | [R] or [R, N]       |
| precision_at    | share of the `k` largest scores of a row whose target is 1   | [R, N]      | as scores, 0 and 1  |
| recall_at       | share of a row's targets of 1 among its `k` largest scores   | [R, N]      | as scores, 0 and 1  |
| ndcg_at         | discounted gain of a row's `k` largest scores, of the best   | [R, N]      | as scores, 0 or more|
| cross_entropy   | mean of -log of the probability of the class                 | [R, N]      | [R]                 |
| log_loss        | mean of -log of the probability of what came                 | any shape   | as scores, 0 and 1  |
| logit_loss      | log_loss of log odds                                         | any shape   | as scores, 0 and 1  |

Targets [R] go with scores [R, 1]; sparse targets are read as the dense array they stand for. Probabilities count as
`epsilon` at least. Gathered over samples each is that of all samples at once; `auc` keeps all scores for that, 16 bytes
each. Rows without a target above 0 play no part in the means of precision_at, recall_at and ndcg_at.

`constant_quality` is what the best answer gets that ignores the input, in terms of any of these.

>>> import numpy as np
>>> metric = create("mse", average="batches")
>>> metric.update(np.float32([1, 2]), np.float32([0, 0]))
>>> metric.update(np.float32([3]), np.float32([0]))
>>> metric.value  # (2.5 + 9) / 2; over samples it is 14 / 3
5.75
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from kernels.registry import unknown_name
from workbench.metrics import measures, ranking
from workbench.metrics.measures import (
    MetricError,
    accuracy,
    binary_accuracy,
    constant_quality,
    constant_scores,
    cross_entropy,
    f1_macro,
    f1_micro,
    log_loss,
    logit_loss,
    mae,
    mse,
    r2,
    rmse,
)
from workbench.metrics.ranking import auc, ndcg_at, precision_at, recall_at

# Metrics accumulated over batches, averaged over samples or over batches.

AVERAGES = ("samples", "batches")


@dataclass(frozen=True)
class Kind:
    """A metric as three functions of sums that can be added over batches.

    `sums(scores, targets, **options)` returns the sums of a batch, float64; `value(sums)` the metric; `merge(a, b)` the
    sums of two batches. There are two sums, or two per column or class (`is_wide`), or two per score (`keeps_all`); the
    last are concatenated when the value is read.
    """

    sums: Callable[..., np.ndarray]
    value: Callable[[np.ndarray], float] = measures.mean
    merge: Callable[[np.ndarray, np.ndarray], np.ndarray] = np.add
    is_wide: bool = False
    keeps_all: bool = False

    @property
    def options(self) -> tuple[str, ...]:
        """Return the names of the options of `sums`: its parameters behind scores and targets."""
        return tuple(inspect.signature(self.sums).parameters)[2:]


KINDS = {
    "accuracy": Kind(measures.of_accuracy),
    "auc": Kind(ranking.of_auc, ranking.area, is_wide=True, keeps_all=True),
    "binary_accuracy": Kind(measures.of_binary_accuracy),
    "cross_entropy": Kind(measures.of_cross_entropy),
    "f1_macro": Kind(measures.of_f1, measures.of_each, is_wide=True),
    "f1_micro": Kind(measures.of_f1, measures.of_all, is_wide=True),
    "log_loss": Kind(measures.of_log_loss),
    "logit_loss": Kind(measures.of_logit_loss),
    "mae": Kind(measures.of_mae),
    "mse": Kind(measures.of_mse),
    "ndcg_at": Kind(ranking.of_ndcg_at),
    "precision_at": Kind(ranking.of_precision_at),
    "r2": Kind(measures.of_r2, measures.one_minus_ratio, measures.add_deviations, is_wide=True),
    "recall_at": Kind(ranking.of_recall_at),
    "rmse": Kind(measures.of_mse, measures.root),
}


class Accumulator(ABC):
    """Accumulates batches into one value, or a dict of values if it is composed of several metrics."""

    @abstractmethod
    def update(self, scores: Any, targets: Any) -> None:
        """Add a batch of scores and targets in place; a batch without rows changes nothing.

        Raises MetricError if scores and targets do not fit each other or the metric.
        """

    @property
    @abstractmethod
    def value(self) -> float | dict[str, float]:
        """Return the metric of all batches so far, or a dict of them by name; NaN before the first batch."""

    @abstractmethod
    def reset(self) -> None:
        """Discard in place what was gathered of all batches, so that the metric begins anew."""

    @abstractmethod
    def fresh(self) -> "Accumulator":
        """Return an accumulator of the same kind and options without batches; this one stays as it is."""

    @abstractmethod
    def state_dict(self) -> dict[str, np.ndarray]:
        """Return copies of the accumulated sums, float64 vectors by name; empty ones before the first batch."""

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Replace the accumulated sums by copies of those of `state_dict`.

        Raises MetricError for names or arrays that do not fit this accumulator.
        """


@final
class Metric(Accumulator):
    """One metric by name, accumulated over batches.

    Parameters
    ----------
    name : str
        Name from the table of `workbench.metrics`.
    average : {"samples", "batches"}, default "samples"
        Value of all samples at once, or mean of the values of batches.
    **options : float
        Options of the metric's function, such as `threshold` or `k`.

    Raises
    ------
    MetricError
        If the name, the average or an option is unknown.

    Examples
    --------
    >>> metric = Metric("mse")
    >>> metric.update(np.array([1.0]), np.array([3.0]))
    >>> metric.value
    4.0
    """

    def __init__(self, name: str, average: str = "samples", **options: float) -> None:
        """Look the metric up and begin without batches. Raises MetricError for an unknown name, average or option."""
        if name not in KINDS:
            raise measures.MetricError(unknown_name("metric", name, KINDS))
        if average not in AVERAGES:
            raise measures.MetricError(f"average is {average!r}; it is one of {', '.join(AVERAGES)}.")
        self.kind, self.name, self.average, self.options = KINDS[name], name, average, options
        if unknown := sorted(set(options) - set(self.kind.options)):
            raise measures.MetricError(f"{name} has no option {unknown}; its options are {list(self.kind.options)}.")
        self.gathered: list[np.ndarray] = []

    def update(self, scores: Any, targets: Any) -> None:
        """Add a batch in place; shapes of scores and targets are in the table of `workbench.metrics`.

        A batch without rows changes nothing. Raises MetricError if shapes or values do not fit, or if the batch has
        another number of columns or classes than those before it.
        """
        sums = self.kind.sums(scores, targets, **self.options)
        if len(scores) == 0:
            return
        if self.average == "batches":
            sums = np.array([self.kind.value(sums), 1], np.float64)
        elif self.kind.keeps_all:
            self.gathered.append(sums)
            return
        elif self.gathered and len({len(self.gathered[0]), len(sums), 2}) > 2:
            before = len(self.gathered[0])
            raise measures.MetricError(f"{self.name} has gathered {before} sums; this batch gives {len(sums)}.")
        self.gathered = [self.merged(self.gathered[0], sums) if self.gathered else sums]

    def merged(self, one: np.ndarray, two: np.ndarray) -> np.ndarray:
        """Return the sums of two parts together, float64 of their shape; neither part is changed."""
        return one + two if self.average == "batches" else self.kind.merge(one, two)

    @property
    def sums(self) -> np.ndarray | None:
        """Return the accumulated sums, a float64 vector, not a copy; None before the first batch.

        Parts that a metric of all scores has kept apart are joined into one array, which is kept.
        """
        if len(self.gathered) > 1:
            self.gathered = [np.concatenate(self.gathered)]
        return self.gathered[0] if self.gathered else None

    @property
    def value(self) -> float:
        """Return the metric of all samples, or the mean over batches; NaN before the first batch."""
        sums = self.sums
        if sums is None:
            return measures.NAN
        return measures.mean(sums) if self.average == "batches" else self.kind.value(sums)

    def reset(self) -> None:
        """Discard in place what was gathered of all batches, so that the metric begins anew."""
        self.gathered = []

    def fresh(self) -> "Metric":
        """Return a metric of the same name, average and options without batches."""
        return Metric(self.name, self.average, **self.options)

    def state_dict(self) -> dict[str, np.ndarray]:
        """Return a copy of the accumulated sums, float64, under the one name "NAME over AVERAGE".

        The vector is empty before the first batch.
        """
        sums = self.sums
        return {f"{self.name} over {self.average}": np.zeros(0) if sums is None else sums.copy()}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Replace the accumulated sums by a copy of those of `state_dict`.

        Raises MetricError if the name is of another metric or average, or the array does not fit.
        """
        (name,) = self.state_dict()
        if set(state) != {name}:
            raise measures.MetricError(f"The state is of {sorted(state)}; this metric is {name!r}.")
        self.gathered = self._checked(state[name])

    def _checked(self, sums: Any) -> list[np.ndarray]:
        """Return saved sums as a list of one copy, or [] if they are empty, as before the first batch.

        Raises MetricError unless they are a float64 vector of even length, of 2 for metrics that are not wide.
        """
        is_wide = self.average == "samples" and self.kind.is_wide
        fits = isinstance(sums, np.ndarray) and sums.dtype == np.float64 and sums.ndim == 1
        if not fits or sums.size % 2 or (sums.size > 2 and not is_wide):
            actual = f"{sums.dtype} {sums.shape}" if isinstance(sums, np.ndarray) else type(sums).__name__
            raise measures.MetricError(f"The state of {self.name} is {actual}; it is a few sums, float64, or none.")
        return [sums.copy()] if sums.size else []

    def __repr__(self) -> str:
        """Return name, average and present value, with six digits."""
        return f"{self.name} over {self.average}: {self.value:.6g}"


@final
class Composite(Accumulator):
    """Several metrics of the same scores and targets.

    Parameters
    ----------
    metrics : iterable of Metric
        Metrics with different names.

    Examples
    --------
    >>> Composite([Metric("mse"), Metric("mae")]).value
    {'mse': nan, 'mae': nan}
    """

    def __init__(self, metrics: Iterable[Metric]) -> None:
        """Keep the metrics. Raises MetricError if there is none, or a name comes twice."""
        self.metrics = tuple(metrics)
        names = [metric.name for metric in self.metrics]
        if not names or len(set(names)) < len(names):
            raise measures.MetricError(f"A composite has one or more metrics, each once; these came: {names}.")

    def update(self, scores: Any, targets: Any) -> None:
        """Add a batch to each metric in place. Raises MetricError where one refuses it; those before it keep it."""
        for metric in self.metrics:
            metric.update(scores, targets)

    @property
    def value(self) -> dict[str, float]:
        """Return the values of the metrics by name; NaN before the first batch."""
        return {metric.name: metric.value for metric in self.metrics}

    def reset(self) -> None:
        """Discard all batches of each metric, in place."""
        for metric in self.metrics:
            metric.reset()

    def fresh(self) -> "Composite":
        """Return a composite of the same metrics without batches."""
        return Composite(metric.fresh() for metric in self.metrics)

    def state_dict(self) -> dict[str, np.ndarray]:
        """Return copies of the sums of each metric, float64 vectors by "NAME over AVERAGE"."""
        return {name: sums for metric in self.metrics for name, sums in metric.state_dict().items()}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Replace the sums of each metric by copies of those of `state_dict`.

        Raises MetricError if the names are not exactly those of `state_dict`, or an array does not fit.
        """
        if set(state) != set(known := self.state_dict()):
            raise measures.MetricError(f"The state is of {sorted(state)}; these metrics are {sorted(known)}.")
        for metric in self.metrics:
            metric.load_state_dict({name: state[name] for name in metric.state_dict()})


def create(
    metric: str | Accumulator | Sequence[str | Metric], average: str = "samples", **options: float
) -> Accumulator:
    """Create a metric by name, or a composite of several.

    Parameters
    ----------
    metric : str, Accumulator, or sequence of str or Metric
        Name or names; an Accumulator is returned as it is.
    average : {"samples", "batches"}, default "samples"
        How batches are averaged.
    **options : float
        Options of the metric's function.

    Returns
    -------
    Accumulator
        A `Metric` or a `Composite`.

    Raises
    ------
    MetricError
        If a name or option is unknown.

    Examples
    --------
    >>> create(["mse", "mae"]).value
    {'mse': nan, 'mae': nan}
    """
    if isinstance(metric, Accumulator):
        return metric
    if isinstance(metric, str):
        return Metric(metric, average, **options)
    return Composite(one if isinstance(one, Metric) else Metric(one, average, **options) for one in metric)


__all__ = [
    "Accumulator",
    "Composite",
    "Metric",
    "MetricError",
    "accuracy",
    "auc",
    "binary_accuracy",
    "constant_quality",
    "constant_scores",
    "create",
    "cross_entropy",
    "f1_macro",
    "f1_micro",
    "log_loss",
    "logit_loss",
    "mae",
    "mse",
    "ndcg_at",
    "precision_at",
    "r2",
    "recall_at",
    "rmse",
]
