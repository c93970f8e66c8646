"""A case: a data set and a model, named as a sweep's configuration names them, and the rows held out.

How to add one: a line.
"""

import math
import os
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.special

from benchmarks.fit.candidates import Candidate, Rows, Scorer
from benchmarks.shapes import BenchError
from kernels.registry import unknown_name
from workbench import data, metrics, models
from workbench.measure.rounds import MOST, ratio_of
from workbench.models.two_fields import pairs_of
from workbench.sweeps.grid import setup_of
from workbench.sweeps.problem import HELD_OUT, facts_of, join_held_out, make_problem, split_held_out, targets
from workbench.sweeps.spec import Configuration
from workbench.training import training

# Choices among trainings that were tried: the targets, the setting that is soonest there, who runs rounds.


# The one measure that all candidates of a case are held to, from their scores on rows held out.


TOLERANCES = (0.003, 0.01, 0.03)
"""Shares of the best value within which a target lies, tightest first: a run gives the time to each, none decides."""
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


COMPETITORS = 4
"""Competitors that run rounds to a target: those that were soonest there when settings were tried."""
ROUNDS_MOST = MOST
NARROW = 1.5
"""The ends of the interval of a ratio, by each other, from which on no further rounds are run for it."""
NEARLY = 1.25
"""Seconds by those of the soonest of a side, up to which another may turn out to be the soonest."""

Row = dict[str, Any]
Best = tuple[float, Row, float]
"""Seconds to the target, the setting, and the number of the point."""


@dataclass
class Training:
    """Result of one training, as its process reported it."""

    number: int
    points: list[list[float]] = field(default_factory=list)
    columns: Row = field(default_factory=lambda: {"status": "ok", "reason": ""})


def curve_columns(training: Training, facts: Row) -> Row:
    """Return the record columns of a training with `curve` (NaN as None) and `value_best` (None without a value)."""
    curve = [[seconds, value if is_finite(value) else None, number] for seconds, value, number in training.points]
    best = max if facts.get("larger_is_better") else min
    value_best = best((point[1] for point in curve if point[1] is not None), default=None)
    return training.columns | {"curve": curve, "value_best": value_best}


def is_finite(value: float | None) -> bool:
    """Return whether a value is neither None, NaN nor infinite."""
    return value is not None and math.isfinite(value)


def is_end(row: Row) -> bool:
    """Return whether no further setting of the candidate is tried after this record.

    It did not fit in memory, is unsupported, or failed or timed out before its first point.
    """
    return row["status"] in ("memory", "unsupported") or (row["status"] in ("timeout", "failed") and not row["curve"])


def targets_of_records(rows: Sequence[Row]) -> tuple[dict[float, float], bool]:
    """Return ({tolerance: value to reach}, whether larger is better) from the records of all settings.

    Targets are relative to the best value of all. If one side, ours or the competitors, does not come within the
    tightest tolerance of it, they are relative to the best value that both sides reach. NaN without any record.
    """
    known = [row for row in rows if row["value_best"] is not None]
    larger = any(row["larger_is_better"] for row in known)
    better, worse = (max, min) if larger else (min, max)
    sides = {row["side"] for row in known}
    each = [better(row["value_best"] for row in known if row["side"] == side) for side in sides]
    best = better(each, default=float("nan"))
    common = worse(each, default=float("nan"))
    is_shared = is_reached(common, target_of(best, larger, TOLERANCES[0]), larger)
    reached = best if is_shared else common
    return {tolerance: target_of(reached, larger, tolerance) for tolerance in TOLERANCES}, larger


def reached_at(points: Sequence[Sequence[float]], target: float, larger_is_better: bool) -> Sequence[float] | None:
    """Return the first point (seconds, value, number) that is at least as good as the target; None if none is."""
    return next(
        (point for point in points if point[1] is not None and is_reached(point[1], target, larger_is_better)), None
    )


def candidates_for_rounds(best: Mapping[str, Best], is_ours: Mapping[str, bool]) -> list[str]:
    """Return the candidates that run rounds: all of ours, and the four competitors fastest to the target.

    `best` is {candidate: (seconds, setting, point index)} of the candidates that reached the target.
    """
    competitors = sorted((name for name in best if not is_ours[name]), key=lambda name: best[name][0])
    return [name for name in best if is_ours[name] or name in competitors[:COMPETITORS]]


@dataclass(frozen=True)
class Job:
    """Training of each round: a candidate with one setting, to the targets of the tolerances it is the best for.

    `numbers` are those of the points at which the targets were reached when settings were tried, by tolerance.
    """

    name: str
    value: Row
    numbers: Mapping[float, float]

    def only(self, tolerances: Collection[float]) -> "Job":
        """Return the job with the targets of `tolerances` only."""
        return Job(self.name, self.value, {each: number for each, number in self.numbers.items() if each in tolerances})


def jobs_of(best: Mapping[float, Mapping[str, Best]], is_ours: Mapping[str, bool]) -> list[Job]:
    """Return the trainings of a round; targets that a candidate reaches fastest by one setting share a training.

    `best` is {tolerance: {candidate: (seconds, setting, point index)}}.

    >>> slow, fast = {"rate": 1.0}, {"rate": 3.0}
    >>> best = {0.01: {"a": (2.0, slow, 8)}, 0.03: {"a": (1.0, slow, 4), "b": (1.0, fast, 2)}}
    >>> [(job.name, job.numbers) for job in jobs_of(best, {"a": True, "b": False})]
    [('a', {0.01: 8, 0.03: 4}), ('b', {0.03: 2})]
    """
    found: dict[str, list[tuple[Row, dict[float, float]]]] = {}
    for tolerance, each in best.items():
        for name in candidates_for_rounds(each, is_ours):
            _, value, number = each[name]
            settings = found.setdefault(name, [])
            numbers = next((known for other, known in settings if other == value), None)
            if numbers is None:
                settings.append((value, {tolerance: number}))
            else:
                numbers[tolerance] = number
    return [Job(name, value, numbers) for name, settings in found.items() for value, numbers in settings]


def candidates_for_more_rounds(seconds: Mapping[str, Mapping[int, float]], is_ours: Mapping[str, bool]) -> list[str]:
    """Return the candidates that run another round: those near the fastest of either side, while that is undecided.

    `seconds` is {candidate: {round: seconds}}. [] once the bounds of the ratio are within a factor of 1.5, after
    `ROUNDS_MOST` rounds, or if a side has no time.

    >>> is_ours = {"ours": True, "slow": False, "fast": False}
    >>> known = {"ours": {0: 1.0, 1: 1.1}, "slow": {0: 9.0, 1: 9.0}, "fast": {0: 3.0, 1: 2.0}}
    >>> candidates_for_more_rounds(known, is_ours)
    ['ours', 'fast']
    >>> candidates_for_more_rounds({name: dict.fromkeys(range(6), each[0]) for name, each in known.items()}, is_ours)
    []
    """
    medians = {name: float(np.median(list(each.values()))) for name, each in seconds.items() if each}
    sides = [[name for name in medians if is_ours[name] == side] for side in (True, False)]
    if not all(sides):
        return []
    ours, competitor = (min(names, key=lambda name: medians[name]) for names in sides)
    first, second = ({("", number): value for number, value in seconds[name].items()} for name in (competitor, ours))
    ratio = ratio_of(first, second)
    if ratio is not None and (ratio.high <= NARROW * ratio.low or ratio.rounds >= ROUNDS_MOST):
        return []
    near = {ours: NEARLY * medians[ours], competitor: NEARLY * medians[competitor]}
    return [name for name in medians if medians[name] <= near[ours if is_ours[name] else competitor]]


def fastest_to_target(rows: Sequence[Row], target: float, larger_is_better: bool) -> Best | None:
    """Return (seconds, setting, point index) of the record that reached the target first; None if none did.

    `rows` are the records of a candidate's settings.
    """
    found = [(reached_at(row["curve"] or [], target, larger_is_better), row["setting"]) for row in rows]
    reached = [(point[0], setting, point[2]) for point, setting in found if point]
    return min(reached, key=lambda each: each[0]) if reached else None


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


def choose_cases(names: tuple[str, ...] = (), quick: bool = False) -> list[Case]:
    """Return the cases with these names, or without names all or the `quick` ones; BenchError for an unknown name."""
    known = [case.name for case in CASES]
    for name in names:
        if name not in known:
            raise BenchError(unknown_name("case", name, known))
    wanted = names or (QUICK if quick else tuple(known))
    return [case for case in CASES if case.name in wanted]


# Requests to the processes of a case: settings of a candidate.


@dataclass(frozen=True)
class TrainingRequest:
    """Request to a process: a candidate of a case, settings by number, and where there is one the target.

    `before` are the points that are known of a setting, by number, where a training is begun anew for each.
    """

    case: Case
    candidate: Candidate
    values: Sequence[tuple[int, dict[str, float]]]
    seconds: float
    target: float | None = None
    ladder: Sequence[int] = ()
    before: Mapping[int, Sequence[Sequence[float]]] = field(default_factory=dict)
