"""A sentinel: fixed work that every trial times beside its own, so that what the machine does is told from the code.

The work is sums over an array that stays in a cache, on one thread, by NumPy alone: no code of this project is in it.
What it takes longer in one run than in another, all of that run takes longer.

>>> from workbench.measure.sentinel import Sentinel
>>> Sentinel().seconds() > 0
True
"""

from time import perf_counter
from typing import final

import numpy as np

from workbench.measure.rounds import trial_statistic

VALUES = 2**16
REPEATS = 15


@final
class Sentinel:
    """The arrays of the work, 1 MiB; make it before memory is looked at."""

    def __init__(self) -> None:
        self.values, self.sums = np.ones(VALUES), np.ones(VALUES)
        self.times: list[float] = []

    def begin(self) -> None:
        """Forget the times so far."""
        self.times.clear()

    def seconds(self) -> float:
        """Do the work some times, about 3 ms; the lower quartile of all its seconds since `begin`."""
        for _ in range(REPEATS):
            start = perf_counter()
            np.cumsum(self.values, out=self.sums)
            self.times.append(perf_counter() - start)
        return trial_statistic(self.times)
