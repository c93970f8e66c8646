"""Rounds, the unit of evidence: the statistic of a trial, the best of each side, and when there are rounds enough.

Samples of one process agree far better than processes do: a trial's own interval says nothing of the next trial. So a
trial gives one number, a round measures the candidates of a comparison next to each other, and `posterior` says what
the rounds together make likely. Rounds are added until what can be gained by more of them is less than `LOSS`.

>>> from workbench.measure.posterior import Trial
>>> from workbench.measure.rounds import decide_comparison
>>> seconds = {"a": 1.0, "b": 3.0}
>>> trials = [Trial(name, seconds[name], "this run", round) for round in range(4) for name in seconds]
>>> decision = decide_comparison(trials, dense={"b"})
>>> decision.sparse, decision.verdict, decision.rounds
('a', 'sparse', 4)
"""

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from time import perf_counter
from typing import Any, final

import numpy as np

from workbench.measure.clock import MOST_ROUNDS
from workbench.measure.posterior import (
    DEVIATION,
    MIN_LOG_SD,
    NOISE,
    Posterior,
    Ratio,
    Scatter,
    Trial,
    exp_or_inf,
    posterior,
)

MOST = MOST_ROUNDS
"""Rounds of a comparison, unless others are asked for."""
INTERIM_ANALYSES = (4, 6, 9, 12)
"""Rounds after which two versions of the same code are compared; below the first nothing is decided."""
BETWEEN_RUN_VARIANCE_RATIO = 16
"""The noise that all rounds of a run have in common has 1 / BETWEEN_RUN_VARIANCE_RATIO of the variance of a round."""
NUMBER = 0.25
"""The quantile of its samples that is a trial's number: what disturbs a sample makes it longer, so not the median."""
FIRST = 2
"""Rounds that a comparison has at least, so that a single wild trial cannot decide it."""
ALONE = 4
"""Rounds of candidates that have no other side to be compared with."""
LOSS = 0.01
"""Expected loss, as a share of the least time, below which a choice needs no more rounds."""
CERTAIN = 0.995
"""Probability of a side from which on no more rounds are spent on it."""
NARROW = 1.6
"""A ratio known to this factor is known well enough for a table or a chart."""

Rounds = Mapping[tuple[Any, int], float]
"""Seconds of one candidate by (run, round)."""


@dataclass(frozen=True)
class Decision:
    """The best sparse candidate against the best dense one: their names, dense / sparse, and what comes of it.

    A side is None if none of it has a trial; `ratio` is None if the two were measured in no run together. `loss` is
    the expected loss of taking the better of the two instead of the best of all candidates.
    """

    sparse: Hashable | None = None
    dense: Hashable | None = None
    ratio: Ratio | None = None
    loss: float = math.inf

    @property
    def verdict(self) -> str:
        """Verdict of the ratio: "sparse", "dense", "level" or "inconclusive", the last also without a ratio."""
        return self.ratio.verdict if self.ratio else "inconclusive"

    @property
    def rounds(self) -> int:
        """Number of rounds that measured both sides; 0 without a ratio."""
        return self.ratio.rounds if self.ratio else 0

    @property
    def is_settled(self) -> bool:
        """Whether taking the better of the two has an expected loss below `LOSS`, 1 % of the time."""
        return self.ratio is not None and self.loss < LOSS

    @property
    def is_narrow(self) -> bool:
        """Whether the side is certain or level, and the ratio's bounds are within a factor of 1.6."""
        if self.ratio is None:
            return False
        sure = max(self.ratio.probability, 1 - self.ratio.probability) > CERTAIN or self.verdict == "level"
        return sure and self.ratio.high < NARROW * self.ratio.low


def counterbalanced_order(candidates: Sequence, round: int) -> list:
    """Return the candidates as a new list in the order for round `round` (from 0), so that none is always first.

    The order is rotated every second round and reversed in between.
    """
    start = round // 2 % max(len(candidates), 1)
    order = [*candidates[start:], *candidates[:start]]
    return order[::-1] if round % 2 else order


def trial_statistic(samples: Sequence[float]) -> float:
    """Return the summary statistic of a trial: the lower quartile of its samples. Raises ValueError without samples."""
    return float(np.quantile(np.asarray(samples, np.float64), NUMBER))


def ratio_of(first: Rounds, second: Rounds, scatter: Scatter | None = None) -> Ratio | None:
    """Return the ratio first / second over common rounds, each {(run, round): seconds}; None without one."""
    shared = first.keys() & second.keys()
    if not shared:
        return None
    sides = ((name, rounds) for name, rounds in enumerate((first, second)))
    trials = [Trial(name, rounds[place], *place) for name, rounds in sides for place in sorted(shared, key=str)]
    return posterior(trials, scatter=scatter).ratio(0, 1)


def decide_comparison(
    trials: Iterable[Trial],
    dense: Collection[Hashable],
    predictions: Mapping[Hashable, float] | None = None,
    scatter: Scatter | None = None,
) -> Decision:
    """Return the decision on the best sparse candidate against the best of `dense`, each by least expected loss.

    Its ratio is None if a side is missing or both were not measured in a common run. `dense` names the dense
    candidates, `predictions` are seconds by candidate, `scatter` that of a round's log ratio.
    """
    found = posterior(trials, predictions, scatter)
    sides = [found.best([name for name in found.names if (name in dense) == is_dense]) for is_dense in (False, True)]
    sparse, baseline = sides
    losses = found.losses()
    loss = min((losses[side] for side in sides if side is not None), default=math.inf)
    if sparse is None or baseline is None or not share_a_run(found, sparse, baseline):
        return Decision(sparse, baseline, None, loss)
    dense_names = [name for name in found.names if name in dense]
    ratio = found.ratio(baseline, sparse, dense_names, [name for name in found.names if name not in dense])
    return Decision(sparse, baseline, ratio, loss)


def rounds_due(decision: Decision, measured: int, most: int = MOST, is_race: bool = False) -> int:
    """Return how many rounds to add after `measured` of at most `most`: 0 once the answer is known.

    In a race the choice has to be settled as well, and one round is enough to begin. `decision` is the one on the
    `measured` rounds.
    """
    first = 1 if is_race else FIRST
    if measured < first or measured >= most:
        return max(min(first, most) - measured, 0)
    if decision.ratio is None:
        is_open = is_race and LOSS <= decision.loss < math.inf
        return int(is_open) if is_race else max(min(ALONE, most) - measured, 0)
    return int(not (decision.is_narrow and (decision.is_settled or not is_race)))


def share_a_run(found: Posterior, first: Hashable, second: Hashable) -> bool:
    """Return whether two candidates have trials in a common run, or one has none, so that times are comparable.

    `found` is the posterior that holds their trials.
    """
    runs = [{trial.run for trial in found.trials if trial.candidate == name} for name in (first, second)]
    return bool(runs[0] & runs[1]) or not all(runs)


def mean_interval(values: Sequence[float]) -> Ratio:
    """Return the geometric mean of a configuration's rounds in one run, with its 95 % interval, in their unit.

    It holds for this run alone: another run, minutes later, may lie outside. ValueError without values.
    """
    logs = np.log(np.asarray(values, np.float64))
    if logs.size == 0:
        raise ValueError("A mean needs a value; none came.")
    value = exp_or_inf(float(logs.mean()))
    if logs.size == 1:
        return Ratio(value, value, value, 1, 1)
    half = (
        student_t(0.025, logs.size - 1)
        * max(logs.std(ddof=1), MIN_LOG_SD)
        * math.sqrt(1 / logs.size + 1 / BETWEEN_RUN_VARIANCE_RATIO)
    )
    return Ratio(value, exp_or_inf(logs.mean() - half), exp_or_inf(logs.mean() + half), logs.size, 1)


def minimum_detectable_ratio(rounds: int, deviation: float = DEVIATION) -> float:
    """Return the smallest factor that `rounds` rounds of one run distinguish from 1.

    `deviation` is the standard deviation of a round's log ratio.
    """
    scatter = Scatter().shrunk((rounds - 1) * deviation**2, rounds - 1)
    half = student_t(0.025, scatter.freedom) * scatter.deviation
    return math.exp(half * math.sqrt(1 / rounds + NOISE.shared))


@cache
def student_t(tail: float, freedom: float) -> float:
    """Return the quantile of Student's t distribution with upper tail probability `tail` (Student 1908)."""
    from scipy import special  # late: see `measure.clock`

    return -float(special.stdtrit(freedom, tail))


# A reference workload: fixed work that every trial times next to its own, so that the speed of the machine is told
# apart from that of the code.
#
# The work is sums over an array that stays in a cache, on one thread, by NumPy alone: no code of this project is in
# it. What it takes longer in one run than in another, all of that run takes longer.
#
# >>> from workbench.measure.rounds import ReferenceWorkload
# >>> ReferenceWorkload().seconds() > 0
# True

VALUES = 2**16
REPEATS = 15


@final
class ReferenceWorkload:
    """The reference workload, with its arrays of 1 MiB; create it before memory is measured."""

    def __init__(self) -> None:
        """Allocate the two arrays of the workload (512 KiB each); no times are taken yet."""
        self.values, self.sums = np.ones(VALUES), np.ones(VALUES)
        self.times: list[float] = []

    def begin(self) -> None:
        """Discard the times taken so far, so that the next statistic is that of a new trial."""
        self.times.clear()

    def seconds(self) -> float:
        """Run the workload 15 times (about 3 ms); return the lower quartile of its seconds since `begin`."""
        for _ in range(REPEATS):
            start = perf_counter()
            np.cumsum(self.values, out=self.sums)
            self.times.append(perf_counter() - start)
        return trial_statistic(self.times)
