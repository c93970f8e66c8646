"""The part that compares the constants of the statistics with those estimated from recorded noise.

Estimates are by moments, from every second group of the recording; the simulations judge the constants on the others.
All are standard deviations or shares of the logarithm of the ratio of two candidates in a round, as in
`workbench.measure.posterior.Noise`.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from workbench.bench.self_trial.noise import Group, Noise
from workbench.bench.self_trial.trials import CONTENDERS, outcome
from workbench.measure.loads import QUIET
from workbench.measure.posterior import NOISE

FITTED, JUDGED = 0, 1
"""First group of those that constants are fitted to, and of those that they are judged on."""
PAIRS = tuple(combinations(range(len(CONTENDERS)), 2))
CONSTANTS = ("process", "shared", "wider", "bias", "unrest")


class Components(NamedTuple):
    """Variance of the log ratio of a pair: of rounds of one set, of sets of processes, of runs."""

    round: float
    process: float
    shared: float


def constants(noise: Noise) -> Iterator[dict[str, Any]]:
    """Yield an outcome for each constant: measured / in use, without a goal."""
    measured = estimates(noise.every_second(FITTED))
    for name in CONSTANTS:
        used, value = getattr(NOISE, name), measured[name]
        known: dict[str, Any] = {"status": "failed", "reason": "The recording does not show it."}
        if math.isfinite(value):
            known = {"ratio": value / used, "low": value / used, "high": value / used, "truth": value}
        yield outcome("constants", f"{name}: measured / in use", "half of the groups", **known)


def estimates(noise: Noise) -> dict[str, float]:
    """Return the constants by name, as this noise shows them; NaN for a constant that it does not show. O(rounds)."""
    quiet = mean_components([components(logs, group.sets) for group in noise.groups[QUIET] for logs in ratios(group)])
    total = quiet.round + quiet.process
    loaded = [group for load, groups in noise.groups.items() if load != QUIET for group in groups]
    rounds = [
        (components(*_rounds(logs, group, True)).round / quiet.round - 1) / _mean_severity(group) ** 2
        for group in loaded
        for logs in ratios(group)
    ]
    rounds = [one for one in rounds if math.isfinite(one)]
    wider = math.sqrt(max(1 + float(np.mean(rounds)), 0.0)) if rounds else math.nan
    return {
        "process": quiet.process / total,
        "shared": quiet.shared / total,
        "wider": wider,
        "bias": _bias(loaded, is_disturbed=True),
        "unrest": _bias(loaded, is_disturbed=False),
    }


def ratios(group: Group) -> Iterator[np.ndarray]:
    """Yield the log ratio of each pair of candidates, less its quiet mean, [rounds, halves]."""
    for first, second in PAIRS:
        yield group.logs[:, first] - group.logs[:, second]


def components(logs: np.ndarray, sets: np.ndarray) -> Components:
    """Return the variances that the log ratios of a pair [rounds, halves] are made of; `sets` [rounds] number the
    processes, which are other ones in each run. NaN if no set has two rounds.
    """
    own = [logs[sets == number] for number in dict.fromkeys(sets.tolist())]
    own = [one for one in own if len(one) > 1]
    if not own:
        return Components(math.nan, math.nan, math.nan)
    within = float(np.mean([one.var(0, ddof=1).mean() for one in own]))
    length = float(np.mean([len(one) for one in own]))
    means = np.array([one.mean(0) for one in own])
    process = max(float(means.var(1, ddof=1).mean()) - within / length, 0.0)
    among = float(means.mean(1).var(ddof=1)) if len(own) > 1 else math.nan
    return Components(within, process, max(among - process / 2 - within / length / 2, 0.0))


def mean_components(found: Sequence[Components]) -> Components:
    """Return the mean of variances that are known, NaN where none is."""
    known = ([one for one in column if math.isfinite(one)] for column in zip(*found, strict=True))
    return Components(*(float(np.mean(column)) if column else math.nan for column in known))


def _rounds(logs: np.ndarray, group: Group, is_disturbed: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the rounds of which all trials, or else none, were disturbed, with their sets."""
    trials = group.disturbed.reshape(len(group.disturbed), -1)
    chosen = trials.all(1) if is_disturbed else ~trials.any(1)
    return logs[chosen], group.sets[chosen]


def _bias(groups: Sequence[Group], is_disturbed: bool) -> float:
    """Return the standard deviation, over pairs and loads, of the shift of a log ratio by a load; NaN without rounds.

    That of disturbed rounds is by their severity. The variance of a mean of few rounds is taken out.
    """
    squares = []
    for group in groups:
        for logs in ratios(group):
            own, _ = _rounds(logs, group, is_disturbed)
            if len(own) > 1:
                means = own.mean(1)
                square = float(means.mean()) ** 2 - float(means.var(ddof=1)) / len(means)
                squares.append(square / _mean_severity(group) ** 2 if is_disturbed else square)
    return math.sqrt(max(float(np.mean(squares)), 0.0)) if squares else math.nan


def _mean_severity(group: Group) -> float:
    """Return the mean severity of the disturbed trials of a group, 1 without one."""
    return float(group.severity[group.disturbed].mean()) if group.disturbed.any() else 1.0
