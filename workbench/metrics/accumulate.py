"""Metrics that gather batches, with the averaging stated."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from workbench.metrics import measures, ranking

AVERAGES = ("samples", "batches")


@dataclass(frozen=True)
class Kind:
    """`sums(scores, targets, **options)` of a batch, float64; `value(sums)`; `merge(sums, sums)` of two batches.

    Sums are two, or where it `is_wide` two for each column, class or, where it `keeps_all`, score: what was gathered
    is then joined when it is asked for.
    """

    sums: Callable[..., np.ndarray]
    value: Callable[[np.ndarray], float] = measures.mean
    merge: Callable[[np.ndarray, np.ndarray], np.ndarray] = np.add
    is_wide: bool = False
    keeps_all: bool = False

    @property
    def options(self) -> tuple[str, ...]:
        """Names of its options."""
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
    """Gathers batches into one number or, if it is made of several, a dict of numbers."""

    @abstractmethod
    def update(self, scores: Any, targets: Any) -> None:
        """Add a batch; one without rows changes nothing."""

    @property
    @abstractmethod
    def value(self) -> float | dict[str, float]:
        """Value of the measure over all batches so far; NaN before the first."""

    @abstractmethod
    def reset(self) -> None:
        """Set everything back to before the first batch."""

    @abstractmethod
    def fresh(self) -> "Accumulator":
        """Another one of the same kind, before its first batch."""

    @abstractmethod
    def state_dict(self) -> dict[str, np.ndarray]:
        """Sums gathered so far, as arrays by name."""

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from there; names that do not fit are refused (`MetricError`)."""


@final
class Metric(Accumulator):
    """The metric called `name`, averaged over `samples` or over `batches`; `options` as its function takes them."""

    def __init__(self, name: str, average: str = "samples", **options: float) -> None:
        if name not in KINDS:
            raise measures.MetricError(f"There is no metric {name!r}; there are {', '.join(KINDS)}.")
        if average not in AVERAGES:
            raise measures.MetricError(f"average is {average!r}; it is one of {', '.join(AVERAGES)}.")
        self.kind, self.name, self.average, self.options = KINDS[name], name, average, options
        if unknown := sorted(set(options) - set(self.kind.options)):
            raise measures.MetricError(f"{name} has no option {unknown}; its options are {list(self.kind.options)}.")
        self.gathered: list[np.ndarray] = []

    def update(self, scores: Any, targets: Any) -> None:
        """Add a batch: scores and targets as the table in this module says."""
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
        """The sums of two parts together."""
        return one + two if self.average == "batches" else self.kind.merge(one, two)

    @property
    def sums(self) -> np.ndarray | None:
        """Sums gathered so far, None before the first batch."""
        if len(self.gathered) > 1:
            self.gathered = [np.concatenate(self.gathered)]
        return self.gathered[0] if self.gathered else None

    @property
    def value(self) -> float:
        """The metric of all samples, or the mean over batches."""
        sums = self.sums
        if sums is None:
            return measures.NAN
        return measures.mean(sums) if self.average == "batches" else self.kind.value(sums)

    def reset(self) -> None:
        """Set everything back to before the first batch."""
        self.gathered = []

    def fresh(self) -> "Metric":
        """A metric of the same kind, before its first batch."""
        return Metric(self.name, self.average, **self.options)

    def state_dict(self) -> dict[str, np.ndarray]:
        """The sums gathered, under a name that says of what."""
        sums = self.sums
        return {f"{self.name} over {self.average}": np.zeros(0) if sums is None else sums.copy()}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from the sums given."""
        (name,) = self.state_dict()
        if set(state) != {name}:
            raise measures.MetricError(f"The state is of {sorted(state)}; this metric is {name!r}.")
        self.gathered = self._checked(state[name])

    def _checked(self, sums: Any) -> list[np.ndarray]:
        """A copy of sums that were saved, none of those before the first batch; other arrays are a `MetricError`."""
        is_wide = self.average == "samples" and self.kind.is_wide
        fits = isinstance(sums, np.ndarray) and sums.dtype == np.float64 and sums.ndim == 1
        if not fits or sums.size % 2 or (sums.size > 2 and not is_wide):
            actual = f"{sums.dtype} {sums.shape}" if isinstance(sums, np.ndarray) else type(sums).__name__
            raise measures.MetricError(f"The state of {self.name} is {actual}; it is a few sums, float64, or none.")
        return [sums.copy()] if sums.size else []

    def __repr__(self) -> str:
        return f"{self.name} over {self.average}: {self.value:.6g}"


@final
class Composite(Accumulator):
    """Several metrics of the same scores and targets; the value is a dict, by the names of the metrics."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self.metrics = tuple(metrics)
        names = [metric.name for metric in self.metrics]
        if not names or len(set(names)) < len(names):
            raise measures.MetricError(f"A composite has one or more metrics, each once; these came: {names}.")

    def update(self, scores: Any, targets: Any) -> None:
        """Add a batch to each."""
        for metric in self.metrics:
            metric.update(scores, targets)

    @property
    def value(self) -> dict[str, float]:
        """The value of each, by name."""
        return {metric.name: metric.value for metric in self.metrics}

    def reset(self) -> None:
        """Each as before the first batch."""
        for metric in self.metrics:
            metric.reset()

    def fresh(self) -> "Composite":
        """A composite of the same metrics, before their first batch."""
        return Composite(metric.fresh() for metric in self.metrics)

    def state_dict(self) -> dict[str, np.ndarray]:
        """The sums of each."""
        return {name: sums for metric in self.metrics for name, sums in metric.state_dict().items()}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from the sums given."""
        if set(state) != set(known := self.state_dict()):
            raise measures.MetricError(f"The state is of {sorted(state)}; these metrics are {sorted(known)}.")
        for metric in self.metrics:
            metric.load_state_dict({name: state[name] for name in metric.state_dict()})


def create(
    metric: str | Accumulator | Sequence[str | Metric], average: str = "samples", **options: float
) -> Accumulator:
    """The metric of that name, or one of several; a ready one is returned as it is.

    >>> create(["mse", "mae"]).value
    {'mse': nan, 'mae': nan}
    """
    if isinstance(metric, Accumulator):
        return metric
    if isinstance(metric, str):
        return Metric(metric, average, **options)
    return Composite(one if isinstance(one, Metric) else Metric(one, average, **options) for one in metric)
