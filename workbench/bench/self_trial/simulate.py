"""Simulated comparisons: their noise is taken from recorded rounds, their truth is known, their end is the design's.

A round of recorded residuals is followed by the next of the recording, or, once in `BLOCK` rounds, by one at a random
place (the stationary bootstrap; Politis and Romano 1994, JASA 89, 1303). So neighbours in time stay neighbours, spells
and two-peaked rounds stay as they were, and twelve rounds are no fixed half of a recording of twenty-four.

`ends` decides all simulated sweeps at once; a test holds it against `rounds.decide` and `rounds.rounds_due`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.bench.self_trial.noise import Noise
from workbench.measure import rounds

BLOCK = 4
"""Mean length of the spells of consecutive recorded rounds."""
VERDICTS = ("undecided", "sparse", "dense", "level")
"""What the codes of `Ends.verdict` mean."""


@dataclass(frozen=True)
class Added:
    """Noise beyond what was recorded, as natural logarithms of seconds; each contender has its own.

    `run` is the standard deviation of what all rounds of a run share, as a share of the recorded one of a trial;
    `drift` that of the step of a random walk from round to round, `slope` that of the change of the whole machine's
    speed within a round; `bursts` is the share of trials that take `factor` times as long.
    """

    run: float = 0.0
    drift: float = 0.0
    slope: float = 0.0
    bursts: float = 0.0
    factor: float = 1.5


@dataclass(frozen=True)
class Ends:
    """Ends of simulated sweeps, arrays [sweeps]: places of both sides, counted rounds, ratio, code of the verdict."""

    sparse: np.ndarray
    dense: np.ndarray
    rounds: np.ndarray
    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    verdict: np.ndarray

    def covers(self, truth: float) -> np.ndarray:
        """Whether each interval holds the true ratio, flags [sweeps]."""
        return (self.low <= truth) & (truth <= self.high)

    def decided(self, verdict: str) -> np.ndarray:
        """Whether each sweep ended with this verdict, flags [sweeps]."""
        return self.verdict == VERDICTS.index(verdict)


def draw(
    noise: Noise, slots: Sequence[tuple[int, int]], sweeps: int, seed: int, added: Added | None = None
) -> np.ndarray:
    """Log seconds [sweeps, slots, rounds] with mean zero: a slot is a (contender, half) of the recording.

    A spell takes both halves of all contenders as they were, or swapped. O(sweeps * slots * rounds).
    """
    random, most = np.random.default_rng(seed), rounds.LOOKS[-1]
    group = random.integers(len(noise.groups), size=sweeps)
    drawn = np.empty((sweeps, len(slots), most))
    contender, half = (np.array(part) for part in zip(*slots, strict=True))
    for number, residuals in enumerate(noise.groups):
        mine = np.flatnonzero(group == number)
        place, is_swapped = _places(random, len(mine), most, len(residuals))
        side = half ^ is_swapped[..., None]
        drawn[mine] = residuals[place[..., None], contender, side].transpose(0, 2, 1)
    return drawn if added is None else drawn + _more(random, drawn, added)


def _places(random: np.random.Generator, sweeps: int, most: int, recorded: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of recorded rounds, and whether halves are swapped, [sweeps, most] each."""
    starts = random.random((sweeps, most)) < 1 / BLOCK
    starts[:, 0] = True
    fresh, swaps = random.integers(recorded, size=starts.shape), random.integers(2, size=starts.shape)
    begun = np.maximum.accumulate(np.where(starts, np.arange(most), 0), axis=1)
    first = np.take_along_axis(fresh, begun, 1)
    return (first + np.arange(most) - begun) % recorded, np.take_along_axis(swaps, begun, 1)


def _more(random: np.random.Generator, drawn: np.ndarray, added: Added) -> np.ndarray:
    """The noise that is added, [sweeps, slots, rounds]."""
    sweeps, slots, most = shape = drawn.shape
    more = added.drift * random.standard_normal(shape).cumsum(2)
    more += added.run * _own_sd(drawn) * random.standard_normal((sweeps, slots, 1))
    more += math.log(added.factor) * (random.random(shape) < added.bursts)
    position = np.array([np.argsort(rounds.turned(range(slots), number)) for number in range(most)]).T / slots
    return more + added.slope * random.standard_normal((sweeps, 1, 1)) * position


def _own_sd(drawn: np.ndarray) -> float:
    """Standard deviation of what a trial has of its own, not in common with its neighbours of the same round."""
    if drawn.shape[1] < 2:
        return 0.0
    return float((drawn - drawn.mean(1, keepdims=True)).std() * math.sqrt(drawn.shape[1] / (drawn.shape[1] - 1)))


def ends(sparse: np.ndarray, dense: np.ndarray) -> Ends:
    """The end of each sweep: the first look with a decision, or the last; log seconds [sweeps, contenders, rounds].

    O(sweeps * contenders * rounds * looks).
    """
    sweeps = len(sparse)
    found = {name: np.zeros(sweeps) for name in ("value", "low", "high")}
    kept = {name: np.zeros(sweeps, np.int64) for name in ("sparse", "dense", "rounds", "verdict")}
    going = np.arange(sweeps)
    for look in rounds.LOOKS:
        seen = _look(sparse[going, :, :look], dense[going, :, :look])
        for name, values in (found | kept).items():
            values[going] = seen[name]
        going = going[seen["verdict"] == 0]
    return Ends(**found, **kept)


def _look(sparse: np.ndarray, dense: np.ndarray) -> dict[str, np.ndarray]:
    """Decision of `rounds.decide` after these rounds, for every sweep."""
    count, rivals = sparse.shape[2], max(sparse.shape[1], dense.shape[1])
    each = np.arange(len(sparse))
    baseline = dense.mean(2).argmin(1)
    logs = dense[each, baseline][:, None] - sparse
    means = logs.mean(2)
    quantile = rounds.student_t(2 * rounds.TAIL / max(rivals, 2), count - 1)
    halves = quantile * np.maximum(logs.std(2, ddof=1), rounds.FLOOR) * math.sqrt(1 / count + 1 / rounds.SHARED)
    is_sure = means > halves
    best = np.where(is_sure | ~is_sure.any(1, keepdims=True), means, -np.inf).argmax(1)
    mean, half = means[each, best], halves[each, best]
    low, high = np.exp(mean - half), np.exp(mean + half)
    verdict = np.select([low > 1, high < 1, high / low < rounds.LEVEL], [1, 2, 3], 0)
    return {
        "sparse": best,
        "dense": baseline,
        "rounds": np.full(len(sparse), count),
        "value": np.exp(mean),
        "low": low,
        "high": high,
        "verdict": verdict,
    }
