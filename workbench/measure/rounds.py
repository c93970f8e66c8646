"""Rounds, the unit of evidence: the number of a trial, the interval of a ratio, and when there are rounds enough.

Samples of one process agree far better than processes do: a trial's own interval says nothing of the next trial. So a
trial gives one number, a round measures the contenders of a comparison next to each other, and a ratio is known from
the rounds' own ratios, `log(dense / sparse)` of neighbours, by Student's t. Rounds are added until there is a decision;
that is looked for after `LOOKS` rounds only, and each look is held to more than 95 %, so that all together err in 5 %
(group sequential testing; Pocock 1977, Biometrika 64, 191). `workbench bench self` measures what comes of it.

>>> from workbench.measure.rounds import decide
>>> seconds = {("this run", round): 1.0 + 0.01 * round for round in range(4)}
>>> decision = decide({"csr": seconds}, {"dense": {place: 3 * value for place, value in seconds.items()}})
>>> decision.verdict, round(decision.ratio.value, 2), decision.rounds
('sparse', 3.0, 4)
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy import special

LOOKS = (4, 6, 9, 12)
"""Counted rounds after which a decision is looked for; below the first nothing is decided."""
SHARED = 16
"""The noise that all rounds of a run have in common has 1 / SHARED of the variance of a round."""
FLOOR = 0.01
"""The least standard deviation of a log ratio that is believed."""
LEVEL = 1.1
"""Two sides whose ratio is known to this factor, and that are not told apart, are level."""
TAIL = 0.01
"""Probability of each end of an interval at one look; several looks and both ends together err in about 5 %."""
DEVIATION = 0.3
"""Standard deviation of a round's log ratio that is usual on a shared host; quiet machines of one's own have 0.05."""
NUMBER = 0.25
"""The quantile of its samples that is a trial's number: what disturbs a sample makes it longer, so not the median."""

Rounds = Mapping[tuple[Hashable, int], float]
"""Seconds of one contender by (run, round)."""
Times = Mapping[Hashable, Rounds]
"""Rounds of several contenders, by contender."""


class Ratio(NamedTuple):
    """Ratio of the times of two contenders, with its interval, from so many `rounds` of so many `runs`."""

    value: float
    low: float
    high: float
    rounds: int = 0
    runs: int = 0

    @property
    def visible(self) -> float:
        """The smallest factor that as many rounds with as much noise would tell from 1; inf from one round."""
        return math.sqrt(self.high / self.low) if self.low > 0 else math.inf

    @property
    def verdict(self) -> str:
        """Better side where the ratio is dense / sparse: sparse, dense, level or undecided."""
        if self.rounds < LOOKS[0]:
            return "undecided"
        if self.low > 1:
            return "sparse"
        if self.high < 1:
            return "dense"
        return "level" if self.visible**2 < LEVEL else "undecided"


@dataclass(frozen=True)
class Decision:
    """The best sparse contender against the best dense one: their names, dense / sparse, and what comes of it.

    A side is None where none of it has a number; `ratio` is None where the two share no round. `verdict` is sparse,
    dense, level or undecided.
    """

    sparse: Hashable | None = None
    dense: Hashable | None = None
    ratio: Ratio | None = None

    @property
    def verdict(self) -> str:
        """Decision by the ratio; undecided without one."""
        return self.ratio.verdict if self.ratio else "undecided"

    @property
    def rounds(self) -> int:
        """Rounds that count: those in which both sides have a number."""
        return self.ratio.rounds if self.ratio else 0


def turned(contenders: Sequence, round: int) -> list:
    """The order of a round: turned by one every second round, and backwards in between, so that none is always first.

    >>> [turned("abc", round) for round in range(4)]
    [['a', 'b', 'c'], ['c', 'b', 'a'], ['b', 'c', 'a'], ['a', 'c', 'b']]
    """
    start = round // 2 % max(len(contenders), 1)
    order = [*contenders[start:], *contenders[:start]]
    return order[::-1] if round % 2 else order


def number(samples: Sequence[float]) -> float:
    """The number of a trial: the lower quartile of its samples, in their unit. ValueError without samples."""
    return float(np.quantile(np.asarray(samples, np.float64), NUMBER))


def ratio_interval(runs: Iterable[Sequence[float]], rivals: int = 1) -> Ratio:
    """The ratio whose logarithms are given, a sequence of rounds for each run, as `Ratio`.

    Within a run: mean of the n logarithms, half width t(n - 1) s sqrt(1 / n + 1 / SHARED). Runs are weighted by their
    variances, and the interval is widened by sqrt(chi2 / (runs - 1)) where they disagree. Runs of fewer than four
    rounds count only where there is no longer one, and then the longest alone. `rivals` is how many contenders the best
    was chosen of: the tail is divided among them from the third on. One round has no interval: 0 to inf. ValueError
    without a round.
    """
    logs = [np.asarray(run, np.float64) for run in runs]
    longest = max(logs, key=len, default=np.empty(0))
    if not longest.size:
        raise ValueError("A ratio needs a round that both contenders have; there is none.")
    logs = [run for run in logs if len(run) >= LOOKS[0]] or [longest]
    rounds = sum(map(len, logs))
    if rounds == 1:
        return Ratio(math.exp(longest[0]), 0.0, math.inf, 1, 1)
    means = np.array([run.mean() for run in logs])
    weights = np.array([1 / (max(run.std(ddof=1), FLOOR) ** 2 * (1 / len(run) + 1 / SHARED)) for run in logs])
    mean = float((weights * means).sum() / weights.sum())
    apart = float((weights * (means - mean) ** 2).sum()) / max(len(logs) - 1, 1)
    half = student_t(2 * TAIL / max(rivals, 2), rounds - len(logs)) * math.sqrt(max(apart, 1.0) / float(weights.sum()))
    low, value, high = (_exp(mean + sign * half) for sign in (-1, 0, 1))
    return Ratio(value, low, high, rounds, len(logs))


def ratio_of(first: Rounds, second: Rounds, rivals: int = 1) -> Ratio | None:
    """First / second from the rounds that both have, by (run, round); None where they share none."""
    runs: dict[Hashable, list[float]] = {}
    for place in sorted(first.keys() & second.keys(), key=str):
        runs.setdefault(place[0], []).append(math.log(first[place] / second[place]))
    return ratio_interval(runs.values(), rivals) if runs else None


def decide(sparse: Times, dense: Times, rivals: int = 1) -> Decision:
    """The best sparse contender against the best dense one; both choices are paid for by a wider interval.

    The best is the fastest of those that surely beat dense, else the fastest: with the wider interval each contender
    may be held against dense by itself. `rivals` is how many there are at least, where these are some of them.
    O(contenders * rounds).
    """
    baseline = fastest(dense)
    if baseline is None:
        return Decision(fastest(sparse))
    rivals = max(rivals, count_of(sparse), count_of(dense))
    against = {name: ratio_of(dense[baseline], seconds, rivals) for name, seconds in sparse.items()}
    known = {name: ratio for name, ratio in against.items() if ratio}
    if not known:
        return Decision(fastest(sparse), baseline)
    best = max(known, key=lambda name: (known[name].verdict == "sparse", known[name].value))
    return Decision(best, baseline, known[best])


def count_of(contenders: Times) -> int:
    """Number of contenders that have a round."""
    return sum(map(bool, contenders.values()))


def fastest(contenders: Times) -> Hashable | None:
    """The contender of the least time by its ratio to the first with most rounds; None where none has a round."""
    measured = {name: seconds for name, seconds in contenders.items() if seconds}
    longest = max(measured.values(), key=len, default={})  # of a race the others may have left
    against = ((name, ratio_of(seconds, longest)) for name, seconds in measured.items())
    ratios = {name: ratio.value for name, ratio in against if ratio}
    return min(ratios, key=lambda name: ratios[name], default=None)


def outpaced(contenders: Times) -> set[Hashable]:
    """The contenders that are surely slower than the fastest; a race lets them go by `racing.far_behind`, earlier.

    Before the first look noise is taken as usual (`DEVIATION`), and two standard deviations are asked for.

    >>> sorted(outpaced({"a": {("run", 0): 1.0}, "b": {("run", 0): 1.5}, "c": {("run", 0): 3.0}}))
    ['c']
    """
    leader = fastest(contenders)
    if leader is None:
        return set()
    rivals = count_of(contenders)
    against = {name: ratio_of(seconds, contenders[leader], rivals) for name, seconds in contenders.items()}
    return {name for name, ratio in against.items() if ratio and _least(ratio) > 1}


def _least(ratio: Ratio) -> float:
    """The lower end of a ratio; of few rounds by the usual noise."""
    if ratio.rounds >= LOOKS[0]:
        return ratio.low
    return ratio.value * math.exp(-2 * DEVIATION * math.sqrt(1 / ratio.rounds + 1 / SHARED))


def next_look(measured: int, most: int = LOOKS[-1]) -> int:
    """Number of rounds to add after `measured` of at most `most` up to the next look."""
    return max(min(next((look for look in LOOKS if look > measured), most), most) - measured, 0)


def rounds_due(decision: Decision, measured: int, most: int = LOOKS[-1]) -> int:
    """Number of rounds to add after `measured` of at most `most`: up to the next look, 0 where the end is reached.

    The end is a decision at a look, `most` rounds, a first look's rounds of which none counts, or of which a side has
    no number, since then there is nothing to decide.
    """
    counted = decision.rounds
    if not counted:
        return max(min(LOOKS[0], most) - measured, 0)
    if measured >= most:
        return 0
    if counted in LOOKS and decision.verdict != "undecided":
        return 0
    return min(next_look(counted, max(most, counted)), most - measured)


def mean_interval(values: Sequence[float]) -> Ratio:
    """The geometric mean of a cell's rounds in one run, with its 95 % interval, in the unit of the values.

    It holds for this run alone: another run, minutes later, may lie outside. ValueError without values.
    """
    logs = np.log(np.asarray(values, np.float64))
    if logs.size == 0:
        raise ValueError("A mean needs a value; none came.")
    value = _exp(float(logs.mean()))
    if logs.size == 1:
        return Ratio(value, value, value, 1, 1)
    half = student_t(0.025, logs.size - 1) * max(logs.std(ddof=1), FLOOR) * math.sqrt(1 / logs.size + 1 / SHARED)
    return Ratio(value, _exp(logs.mean() - half), _exp(logs.mean() + half), logs.size, 1)


def visible(rounds: int, deviation: float = DEVIATION) -> float:
    """The smallest factor that so many rounds of one run tell from 1, where log ratios have that standard deviation.

    inf where nothing is decided, below `LOOKS[0]` rounds.

    >>> round(visible(4), 2), round(visible(12), 2), round(visible(12, 0.05), 2), visible(3)
    (2.14, 1.37, 1.05, inf)
    """
    if rounds < LOOKS[0]:
        return math.inf
    return math.exp(student_t(TAIL, rounds - 1) * max(deviation, FLOOR) * math.sqrt(1 / rounds + 1 / SHARED))


@cache
def student_t(tail: float, freedom: float) -> float:
    """The number that Student's t of so many degrees of freedom exceeds with the probability `tail` (Student 1908).

    >>> round(student_t(0.025, 3), 3), round(student_t(0.025, 1e9), 3)
    (3.182, 1.96)
    """
    return -float(special.stdtrit(freedom, tail))


def _exp(logarithm: float) -> float:
    """exp, inf where it is too large: two rounds may say as little as that."""
    return math.exp(logarithm) if logarithm < 700 else math.inf
