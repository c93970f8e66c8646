"""Drift: how much slower the whole machine was in one run than in another, taken out before they are compared.

Sentinels are, the first that there are: cells whose code, versions and settings are the same in both runs; the fixed
work that every trial times beside its own (`seconds_sentinel`); none, and then DRIFT is allowed for in every interval.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from workbench.analysis.intervals import values_of
from workbench.analysis.pairs import Pair, Pairs
from workbench.measure.rounds import FLOOR

LEAST = 4
"""Cells of the same code whose median is believed."""
DRIFT = 0.12
"""Standard deviation of the logarithm by which whole runs of one machine differ, where nothing tells by how much.

Medians over the same cells of 52 pairs of runs of one quiet two-core machine, minutes to hours apart: 0.11; most 0.27.
"""
UNLIKE = 0.05
"""Share by which a cell slows down more or less than the fixed work beside it."""
NORMAL = 1.4826
"""Standard deviation of a normal distribution by its median absolute deviation."""


class Difference(Protocol):
    """The logarithm of after / before of a pair."""

    @property
    def pair(self) -> Pair:
        """The cells of both runs that are compared."""

    @property
    def value(self) -> float:
        """Natural logarithm of seconds after / seconds before."""


class Drift(NamedTuple):
    """The logarithm of after / before that cells share, its standard deviation, and which sentinels tell it.

    `kind` is cells, work, none or machines (of two machines nothing is taken out); `sentinels` is how many.
    """

    value: float
    deviation: float
    kind: str
    sentinels: int = 0

    @property
    def factor(self) -> float:
        """Ratio of what everything takes in the second run to the first."""
        return math.exp(self.value)


def drift_of(steps: Sequence[Difference], pairs: Pairs) -> Drift:
    """The drift between two runs; `steps` are the differences in the time of a step."""
    if not pairs.is_one_machine:
        return Drift(0.0, DRIFT, "machines")
    same = np.array([one.value for one in steps if one.pair.is_same_code])
    if same.size >= LEAST:
        middle = float(np.median(same))
        scatter = max(NORMAL * float(np.median(np.abs(same - middle))), FLOOR)
        return Drift(middle, math.sqrt(math.pi / 2 / same.size) * scatter, "cells", same.size)
    works = [_work([pair.before for pair in pairs.timed]), _work([pair.after for pair in pairs.timed])]
    if all(work.size for work in works):
        error = math.sqrt(sum(float(work.var()) / work.size for work in works))
        value = float(np.median(works[1]) - np.median(works[0]))
        return Drift(value, math.hypot(error, UNLIKE), "work", sum(work.size for work in works))
    return Drift(0.0, DRIFT, "none")


def _work(rows: Iterable[Any]) -> np.ndarray:
    """Logarithms of the seconds of the fixed work beside every round."""
    seconds = (value for row in rows for value in values_of(row, "seconds_sentinel").values())
    return np.log([value for value in seconds if value > 0])
