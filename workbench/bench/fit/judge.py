"""The one measure that all contenders of a case are held to, from their scores on rows held out."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special

from workbench import metrics, models
from workbench.bench.fit.contract import Rows, Scorer
from workbench.models.two_fields import pairs_of
from workbench.train import ranking

TOLERANCES = (0.003, 0.01, 0.03)
"""Shares of the best value within which a target lies, tightest first: a run gives the time to each, none decides."""
SCORES = 1 << 20
"""Scores of an order that are looked at: of more users than have so many with all items, so many are drawn."""


def _cross_entropy(scores: np.ndarray, labels: np.ndarray) -> float:
    return metrics.cross_entropy(scipy.special.softmax(scores.astype(np.float64), axis=1), labels)


LOSSES: dict[str, tuple[str, Callable[[np.ndarray, np.ndarray], float]]] = {
    "logistic": ("log loss", metrics.logit_loss),
    "softmax": ("cross-entropy", _cross_entropy),
    "squared": ("mean squared error", metrics.mse),
}
"""The name of what is measured, and the measure, by the loss that a model is trained on."""


def target_of(best: float, larger_is_better: bool, tolerance: float) -> float:
    """The value to reach if `best` is the best that was reached.

    >>> target_of(0.5, False, 0.01), target_of(0.5, True, 0.01)
    (0.505, 0.495)
    """
    return best * (1 - tolerance if larger_is_better else 1 + tolerance)


def is_reached(value: float, target: float, larger_is_better: bool) -> bool:
    """Whether a value is as good as the target; never where it is not a number."""
    return value >= target if larger_is_better else value <= target


@dataclass(frozen=True, eq=False)
class Judge:
    """Measures a scorer on rows held out: X csr [R, D] and `y`; what orders items is held to `x_trained`, too."""

    rows: Rows
    x: Any
    y: np.ndarray

    @property
    def model(self) -> models.Model:
        """The model that is trained."""
        return models.get(self.rows.model)

    @property
    def name(self) -> str:
        """Name of the measure: the model's quality where larger is better, else its loss."""
        return self.model.quality_name if self.larger_is_better else LOSSES[self.model.loss][0]

    @property
    def larger_is_better(self) -> bool:
        """Whether it is a quality, as of an order, and not a loss."""
        return self.model.rank is not None

    def value(self, scorer: Scorer) -> float:
        """The measure of a scorer on the held-out rows; infinite or NaN where its scores are. O(scores)."""
        if self.larger_is_better:
            return self._of_order(scorer)[self.name]
        with np.errstate(over="ignore", invalid="ignore"):
            return LOSSES[self.model.loss][1](self._scores(scorer), self.y)

    def measures(self, scorer: Scorer) -> dict[str, float]:
        """All measures of quality of the model by name."""
        if self.larger_is_better:
            return self._of_order(scorer)
        scores = self._scores(scorer)
        every = {self.model.quality_name: self.model.quality, **self.model.measures}
        return {name: float(measure(scores, self.y)) for name, measure in every.items()}

    def _scores(self, scorer: Scorer) -> np.ndarray:
        return np.asarray(scorer(self.x)).reshape(self.x.shape[0], -1)

    def _of_order(self, scorer: Scorer) -> dict[str, float]:
        every = {self.model.quality_name: self.model.quality, **self.model.measures}
        return ranking.measured(scorer, every, self.rows.facts["fields"], self.rows.x, self.x)


def some_users(x: Any, fields: Any, seed: int) -> Any:
    """The rows of X csr that are of users drawn by the seed, as many as have `SCORES`; all where there are no more."""
    user, most = pairs_of(x, fields)[0], max(1, SCORES // fields[1])
    users = np.unique(user)
    if users.size <= most:
        return x
    drawn = np.random.default_rng(seed).choice(users, most, replace=False)
    return x[np.flatnonzero(np.isin(user, drawn))]
