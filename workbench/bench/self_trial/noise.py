"""Recorded noise: what the trials of contenders next to each other do while nothing changes.

A recording is rows of trials in rounds: the contenders of a group there and back, so that each has two trials a round,
its halves. The `key` of a row ends with the name of its half.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.bench.self_trial.groups import CONTENDERS, contender_of, group_of, split_key
from workbench.bench.self_trial.outcomes import SelfTrialError
from workbench.measure import rounds

Row = Mapping[str, Any]

HALVES = ("there", "back")
LEAST = rounds.LOOKS[-1]
"""Whole rounds of a group below which a recording of it is no base for a simulation."""


@dataclass(frozen=True)
class Noise:
    """Residuals of a recording: for each group log seconds [rounds, contenders, halves] less the contender's mean.

    Rounds are in the order of the recording; one in which a trial is missing or was disturbed is left out. Residuals
    are sqrt(n / (n - 1)) times as large as they were found, since their own mean was taken from n rounds.
    """

    groups: tuple[np.ndarray, ...]

    def pair_sd(self, first: int, second: int) -> float:
        """Standard deviation of the log ratio of two contenders in one half of a round, over all groups."""
        logs = [(residuals[:, first] - residuals[:, second]).ravel() for residuals in self.groups]
        return math.sqrt(float(np.mean([log.var() for log in logs])))

    def scaled(self, factor: float) -> "Noise":
        """The same noise, `factor` times as large."""
        return Noise(tuple(factor * residuals for residuals in self.groups))


def noise_of(rows: Iterable[Row]) -> Noise:
    """The noise of recorded rows; `SelfTrialError` where no group has `LEAST` whole rounds. O(rows)."""
    trials: dict[tuple, dict[tuple, dict[tuple, float]]] = {}
    for row in rows:
        if row["status"] == "ok" and row["seconds_step"]:
            name = contender_of(row), HALVES.index(split_key(row["key"])[1])
            found = trials.setdefault(group_of(row), {}).setdefault((row["run"], row["round"]), {})
            found[name] = math.log(row["seconds_step"])
    kept = [_whole(by_round) for by_round in trials.values()]
    kept = [logs for logs in kept if len(logs) >= LEAST]
    if not kept:
        most = max((len(_whole(by_round)) for by_round in trials.values()), default=0)
        raise SelfTrialError(
            f"Simulations need noise of this machine: a group with {LEAST} recorded rounds, all trials of which were "
            f"left alone; there is one with {most}. Record more first: workbench bench self record"
        )
    return Noise(tuple(residuals_of(logs) for logs in kept))


def residuals_of(logs: np.ndarray) -> np.ndarray:
    """Residuals of log seconds [rounds, contenders, halves] of one group, as large as those of an unknown mean."""
    n = len(logs)
    return (logs - logs.mean((0, 2), keepdims=True)) * math.sqrt(n / (n - 1))


def _whole(by_round: Mapping[tuple, Mapping[tuple, float]]) -> np.ndarray:
    """Log seconds [rounds, contenders, halves] of the rounds that have all trials."""
    places = [(name, half) for name in CONTENDERS for half in range(len(HALVES))]
    logs = [[found[place] for place in places] for _, found in sorted(by_round.items()) if len(found) == len(places)]
    return np.array(logs).reshape(len(logs), len(CONTENDERS), len(HALVES))
