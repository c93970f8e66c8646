"""A case: a data set and a model, named as a sweep's configuration names them, and the rows held out.

How to add one: a line.
"""

import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.special

from benchmarks.fit.candidates import Rows, Scorer
from benchmarks.shapes import BenchError
from workbench import data, metrics, models
from workbench.models.two_fields import pairs_of
from workbench.sweeps.grid import setup_of
from workbench.sweeps.problem import HELD_OUT, facts_of, join_held_out, make_problem, split_held_out, targets
from workbench.sweeps.spec import Configuration
from workbench.training import training

# The one measure that all candidates of a case are held to, from their scores on rows held out.


TOLERANCE = 0.01
"""Share of the best value within which a target lies."""
SCORES = 1 << 20
"""Scores of an order that are looked at: of more users than have so many with all items, so many are drawn."""


def _cross_entropy(scores: np.ndarray, labels: np.ndarray) -> float:
    """Return the mean cross-entropy of scores [rows, classes] against class indices [rows]."""
    return metrics.cross_entropy(scipy.special.softmax(scores.astype(np.float64), axis=1), labels)


LOSSES: dict[str, tuple[str, Callable[[np.ndarray, np.ndarray], float]]] = {
    "logistic": ("log loss", metrics.logit_loss),
    "softmax": ("cross-entropy", _cross_entropy),
    "squared": ("mean squared error", metrics.mse),
}
"""The name of what is measured, and the measure, by the loss that a model is trained on."""


def target_of(best: float, larger_is_better: bool, tolerance: float) -> float:
    """Return the value to reach: `best` made worse by the fraction `tolerance`.

    >>> target_of(0.5, False, 0.01), target_of(0.5, True, 0.01)
    (0.505, 0.495)
    """
    return best * (1 - tolerance if larger_is_better else 1 + tolerance)


def is_reached(value: float, target: float, larger_is_better: bool) -> bool:
    """Return whether a value is at least as good as the target; False for NaN."""
    return value >= target if larger_is_better else value <= target


@dataclass(frozen=True, eq=False)
class Judge:
    """Measures a scorer on rows held out: X csr [R, D] and `y`; what orders items is held to `x_trained`, too."""

    rows: Rows
    x: Any
    y: np.ndarray

    @property
    def model(self) -> models.Model:
        """The registered model that the case trains."""
        return models.get(self.rows.model)

    @property
    def name(self) -> str:
        """Name of the measure: the model's quality if larger is better, else its loss."""
        return self.model.quality_name if self.larger_is_better else LOSSES[self.model.loss][0]

    @property
    def larger_is_better(self) -> bool:
        """Whether the measure is a ranking quality (larger is better), not a loss."""
        return self.model.rank is not None

    def value(self, scorer: Scorer) -> float:
        """Return the measure of a scorer on the held-out rows; infinite or NaN if its scores are. O(scores)."""
        if self.larger_is_better:
            return self._ranking_measures(scorer)[self.name]
        with np.errstate(over="ignore", invalid="ignore"):
            return LOSSES[self.model.loss][1](self._scores(scorer), self.y)

    def measures(self, scorer: Scorer) -> dict[str, float]:
        """Return {name: value} of all the model's quality measures on the held-out rows."""
        if self.larger_is_better:
            return self._ranking_measures(scorer)
        scores = self._scores(scorer)
        every = {self.model.quality_name: self.model.quality, **self.model.measures}
        return {name: float(measure(scores, self.y)) for name, measure in every.items()}

    def _scores(self, scorer: Scorer) -> np.ndarray:
        """Return the scores of the held-out rows, [rows, outputs]."""
        return np.asarray(scorer(self.x)).reshape(self.x.shape[0], -1)

    def _ranking_measures(self, scorer: Scorer) -> dict[str, float]:
        """Return {name: value} of the ranking measures of a scorer on the held-out ratings."""
        every = {self.model.quality_name: self.model.quality, **self.model.measures}
        return training.ranking_measures(scorer, every, self.rows.facts["fields"], self.rows.x, self.x)


def some_users(x: Any, fields: Any, seed: int) -> Any:
    """Return the rows of X csr that belong to randomly chosen users, so few that their scores number about 2**20.

    All rows if there are not more users. `fields` are the counts of users and items.
    """
    user, most = pairs_of(x, fields)[0], max(1, SCORES // fields[1])
    users = np.unique(user)
    if users.size <= most:
        return x
    sampled = np.random.default_rng(seed).choice(users, most, replace=False)
    return x[np.flatnonzero(np.isin(user, sampled))]


def best_value(rows: Sequence[Mapping[str, Any]]) -> tuple[float | None, bool]:
    """Return (the value that targets are relative to, whether larger is better) from the records of all settings.

    It is the best of all; if one side, the project or the competitors, does not come within `TOLERANCE` of it, the best
    that both sides reach. None without any.
    """
    known = [row for row in rows if row["value_best"] is not None]
    larger = any(row["larger_is_better"] for row in known)
    better, worse = (max, min) if larger else (min, max)
    each = [
        better(row["value_best"] for row in known if row["side"] == side)
        for side in dict.fromkeys(row["side"] for row in known)
    ]
    if not each:
        return None, larger
    best, common = better(each), worse(each)
    return (best if is_reached(common, target_of(best, larger, TOLERANCE), larger) else common), larger


def reached_at(points: Sequence[Sequence[Any]], target: float, larger_is_better: bool) -> Sequence[Any] | None:
    """Return the first point (seconds, value, number) that is at least as good as the target; None if none is."""
    return next(
        (point for point in points if point[1] is not None and is_reached(point[1], target, larger_is_better)), None
    )


@dataclass(frozen=True)
class Case:
    """Case to train, by the `settings` of a configuration; `held_out` is a share of the rows, or the path of a file."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    held_out: float | str = HELD_OUT

    @property
    def configuration(self) -> Configuration:
        """The sweep configuration with the `settings` of this case; a new one at each access."""
        return Configuration(**self.settings)

    @property
    def model(self) -> str:
        """Name of the model that the case trains."""
        return self.configuration.model

    def columns(self) -> dict[str, Any]:
        """Return the columns of the data, the model and the rows held out."""
        one = self.configuration
        known = {"dataset": one.dataset, "path": one.path, "model": one.model, "seed": one.seed}
        return known | {"held_out": str(self.held_out)}


def judge_of(case: Case, threads: int) -> Judge:
    """Return the judge of a case, which holds the training rows and the held-out rows; loads the data.

    Raises DataError or ModelError if the data does not suit the model, BenchError for rows stored on disk.
    """
    configuration, model = case.configuration, models.get(case.model)
    problem = make_problem(configuration)
    if isinstance(problem.x, data.StoredRows):
        raise BenchError("Candidates take rows in memory; stored rows are read from disk: give the file they are from.")
    trained, rest, facts = _parts(case, problem.dataset)
    rows = Rows(
        model=case.model,
        x=trained.x,
        y=targets(trained, model, problem.width, "float32"),
        width=problem.width,
        has_intercept=setup_of(configuration).has_intercept,
        threads=threads,
        settings=dict(case.settings),
        facts=facts,
        seed=configuration.seed,
    )
    model.given(
        trained.features, problem.width, configuration.model_options, rows.facts
    )  # which refuses data that lacks a fact
    judge = Judge(rows, rest.x, targets(rest, model, problem.width, "float32"))
    if judge.larger_is_better:
        return Judge(rows, some_users(rest.x, rows.facts["fields"], configuration.seed), judge.y)
    return judge


def _parts(case: Case, whole: data.Dataset) -> tuple[data.Dataset, data.Dataset, dict[str, Any]]:
    """Return (training data, held-out data, facts): a share of the rows is held out, or another file is read.

    A file is read as the first one was. Raises BenchError for a graph model with a file. `whole` is the data set of the
    case.
    """
    if isinstance(case.held_out, str):
        if "graph" in models.get(case.model).needs:
            raise BenchError(f"The model {case.model} holds out a share of the nodes of its graph; a file came.")
        return whole, data.load(whole.name, like=whole, path=case.held_out), facts_of(whole)
    together = join_held_out(whole, case.held_out, case.configuration.seed)
    trained, rest = split_held_out(together)
    assert rest is not None
    return trained, rest, facts_of(together)


def case_of(settings: Mapping[str, Any], held_out: str) -> Case:
    """Return the case of a user's data; `held_out` is a fraction such as "0.2" or a file path.

    Raises BenchError if it is neither, or the fraction is not between 0 and 1.
    """
    path = settings.get("path")
    what = os.path.basename(str(path)) if path else str(settings.get("dataset"))
    name = f"{what}, {settings['model']}"
    try:
        share = float(held_out)
    except ValueError:
        file = os.path.expanduser(held_out)
        if not os.path.exists(file):
            raise BenchError(f"held-out is {held_out!r}; it is a share of the rows, or a file that exists.") from None
        return Case(name, settings, file)
    if not 0 < share < 1:
        raise BenchError(f"held-out is {held_out}; a share is above 0 and below 1, such as 0.2.")
    return Case(name, settings, share)


_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
QUICK = tuple(_TABLE["quick"])
CASES = tuple(Case(name, _TABLE["data"][one.pop("data")] | one) for name, one in _TABLE["cases"].items())
