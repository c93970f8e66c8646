"""A sentinel: fixed work that every trial times beside its own, so that what the machine does is inferred from the
code.

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
    """The reference workload, with its arrays of 1 MiB; create it before memory is measured."""

    def __init__(self) -> None:
        self.values, self.sums = np.ones(VALUES), np.ones(VALUES)
        self.times: list[float] = []

    def begin(self) -> None:
        """Discard the times so far."""
        self.times.clear()

    def seconds(self) -> float:
        """Run the workload a few times (about 3 ms); return the lower quartile of its seconds since `begin`."""
        for _ in range(REPEATS):
            start = perf_counter()
            np.cumsum(self.values, out=self.sums)
            self.times.append(perf_counter() - start)
        return trial_statistic(self.times)
