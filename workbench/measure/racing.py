"""Races: which contenders may still be the fastest after few rounds, and which is the one to take.

What one trial says of the next is noise: the standard deviation of a round's log ratio, one for all contenders of a
comparison. Before there are rounds it is `DEVIATION`, what is usual; the more rounds there are, the more it is what
they show (the mean of a variance whose prior counts as `PRIOR` degrees of freedom). So a quiet machine lets contenders
go early, and a noisy one keeps them.

>>> from workbench.measure.racing import far_behind
>>> sorted(far_behind({"a": {("run", 0): 1.0}, "b": {("run", 0): 1.5}, "c": {("run", 0): 3.0}}))
['c']
"""

import math
from collections.abc import Hashable, Mapping

import numpy as np

from workbench.measure.rounds import DEVIATION, FLOOR, LOOKS, SHARED, Ratio, Rounds, Times, fastest, ratio_of

PRIOR = 4.0
"""Degrees of freedom that the usual noise counts as."""
BEHIND = 2.0
"""Standard deviations behind the fastest at which a contender leaves a race."""
FAR = 3.0
"""Standard deviations apart at which fewer rounds than a decision takes tell two sides apart."""


def deviation(contenders: Times) -> float:
    """The standard deviation of a round's log ratio that these rounds make likely. O(contenders * rounds)."""
    leader = fastest(contenders)
    if leader is None:
        return DEVIATION
    squares, freedom = PRIOR * DEVIATION**2, PRIOR
    for name, seconds in contenders.items():
        for logs in _log_ratios(seconds, contenders[leader]) if name != leader else ():
            squares += float(((logs - logs.mean()) ** 2).sum())
            freedom += len(logs) - 1
    return max(math.sqrt(squares / freedom), FLOOR)


def _log_ratios(first: Rounds, second: Rounds) -> list[np.ndarray]:
    """Logarithms of first / second in the rounds that both have, an array for each run."""
    runs: dict[Hashable, list[float]] = {}
    for place in first.keys() & second.keys():
        runs.setdefault(place[0], []).append(math.log(first[place] / second[place]))
    return [np.array(run) for run in runs.values()]


def usual(ratio: Ratio, times: float = BEHIND, noise: float = DEVIATION) -> Ratio:
    """The ratio with the interval that `times` standard deviations of that noise leave; its rounds are its own.

    >>> from workbench.measure.rounds import Ratio
    >>> [round(end, 2) for end in usual(Ratio(3.0, 0.0, float("inf"), 1, 1))[:3]]
    [3.0, 1.62, 5.57]
    """
    factor = math.exp(times * noise * math.sqrt(1 / max(ratio.rounds, 1) + 1 / SHARED))
    return ratio._replace(low=ratio.value / factor, high=ratio.value * factor)


def believed(ratio: Ratio) -> Ratio:
    """The ratio with its own interval where it has the rounds of a decision, else with that of the usual noise."""
    return ratio if ratio.rounds >= LOOKS[0] else usual(ratio)


def far_behind(contenders: Times) -> set[Hashable]:
    """The contenders that are `BEHIND` the fastest, and may leave a race. O(contenders * rounds)."""
    leader = fastest(contenders)
    if leader is None:
        return set()
    noise = deviation(contenders)
    against = {name: ratio_of(seconds, contenders[leader]) for name, seconds in contenders.items()}
    return {name for name, ratio in against.items() if ratio and usual(ratio, BEHIND, noise).low > 1}


def is_open(contenders: Times) -> bool:
    """Whether one of several contenders may still be faster than the one that is fastest now, by more than a tenth."""
    leader = fastest(contenders)
    if leader is None:
        return False
    others = (seconds for name, seconds in contenders.items() if seconds and name != leader)
    ratios = (ratio_of(seconds, contenders[leader]) for seconds in others)
    return any(ratio is None or ratio.verdict == "undecided" for ratio in ratios)


def side_of(ratio: Ratio | None) -> str:
    """Side that wins where the ratio is dense / sparse: by the rounds of a decision, or by fewer that are far apart.

    >>> from workbench.measure.rounds import Ratio
    >>> side_of(Ratio(20.0, 0.0, float("inf"), 1, 1)), side_of(Ratio(1.5, 0.0, float("inf"), 1, 1))
    ('sparse', 'undecided')
    """
    if ratio is None or ratio.rounds >= LOOKS[0]:
        return ratio.verdict if ratio else "undecided"
    known = usual(ratio, FAR)
    return "sparse" if known.low > 1 else "dense" if known.high < 1 else "undecided"


def least_expected(contenders: Times) -> Hashable | None:
    """The contender whose expected time is least; None where none has a round.

    The time of a contender is lognormal: its expectation is exp(mean + variance / 2) of what its rounds say of it,
    against the first with most rounds, so one that was measured less must be faster by more. Who left a race early was
    far behind: only contenders with at least half of the most rounds are looked at. O(contenders * rounds).
    """
    most = max(map(len, contenders.values()), default=0)
    able = {name: seconds for name, seconds in contenders.items() if seconds and 2 * len(seconds) >= most}
    if not able:
        return None
    expected = _expected(able, deviation(able))
    return min(expected, key=lambda name: expected[name])


def _expected(contenders: Times, noise: float) -> Mapping[Hashable, float]:
    """Logarithms of expected times against the first contender with most rounds; inf where the two share none."""
    longest = max(contenders.values(), key=len)
    found = {}
    for name, seconds in contenders.items():
        ratio = ratio_of(seconds, longest)
        found[name] = math.log(ratio.value) + noise**2 / ratio.rounds / 2 if ratio else math.inf
    return found
