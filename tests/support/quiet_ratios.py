"""Ratios of two candidates whose undisturbed rounds of one run all agree, by formula: estimate and 95 % interval."""

import math
from typing import NamedTuple

from scipy import stats

USUAL, FREEDOM = 0.2, 10
"""Standard deviation of a round's log ratio before it is measured, and the degrees of freedom that it counts as."""
SHARED, UNKNOWN = 0.1, 30.0
"""Share of the noise that all rounds have in common, and the standard deviation of the prior of a log ratio."""


class Known(NamedTuple):
    """A ratio, and both ends of its interval."""

    value: float
    low: float
    high: float


def known(ratio: float, rounds: int) -> Known:
    """The posterior of a ratio that each of so many rounds shows exactly."""
    freedom = FREEDOM + rounds - 1
    noise = FREEDOM * USUAL**2 / freedom * (1 / rounds + SHARED)
    kept = UNKNOWN**2 / (UNKNOWN**2 + noise)
    half = stats.t.ppf(0.975, freedom) * math.sqrt(kept * noise)
    return Known(*(math.exp(kept * math.log(ratio) + sign * half) for sign in (0, -1, 1)))
