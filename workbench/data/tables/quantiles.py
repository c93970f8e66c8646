"""Quantiles and spread of numbers that come block by block, in memory that does not grow with them.

Numbers are held with their counts. Where too many differ, a summary of some of them stands for all: two of one level
are merged, pruned to as many, and are one of the next level (Agarwal et al. 2012, Mergeable Summaries).
"""

from collections.abc import Sequence
from typing import NamedTuple, final

import numpy as np

EXACT = 1 << 15
"""Different numbers of which all are held: up to so many, quantiles are exact."""
KEPT = 1 << 13
"""Numbers of a summary."""


class Counted(NamedTuple):
    """Different numbers, increasing, float64 [n], and how many rows each stands for, int64 [n]."""

    numbers: np.ndarray
    counts: np.ndarray


@final
class Quantiles:
    """Collects counted numbers; returns the bounds of ranges of them with about equally many rows.

    Ranks are exact up to `EXACT` different numbers, and off by at most levels / (2 * KEPT) of the rows beyond, with
    levels = log2(rows / EXACT) + 1: a thousandth of 10**9 rows. Memory is a MB and 128 KB a level.
    """

    def __init__(self) -> None:
        """Start without numbers."""
        self._pending: list[Counted] = []
        self._size = 0
        self._levels: list[Counted | None] = []

    def add(self, some: Counted) -> None:
        """Add numbers with their counts, in any order, repeats allowed; `some` is kept, not copied. O(n log n)."""
        self._pending.append(some)
        self._size += len(some.numbers)
        if self._size < 2 * EXACT:
            return
        joined = merge_counts(self._pending)
        self._pending, self._size = [joined], len(joined.numbers)
        if self._size > EXACT:
            self._pending, self._size = [], 0
            self._carry(prune(joined))

    def _carry(self, summary: Counted) -> None:
        """Add a summary to the levels in place: two of one level are merged, pruned and moved up."""
        for level, held in enumerate(self._levels):
            if held is None:
                self._levels[level] = summary
                return
            self._levels[level], summary = None, prune(merge_counts([held, summary]))
        self._levels.append(summary)

    def cuts(self, bins: int) -> np.ndarray:
        """Return at most `bins - 1` increasing numbers that cut all added ones into ranges of about equal row counts.

        Each is a number that was added, and above the smallest, so that no range is empty. The array is empty without
        numbers.

        >>> quantiles = Quantiles()
        >>> quantiles.add(Counted(np.array([0.0, 1, 2, 3, 4]), np.array([3, 1, 1, 1, 1])))
        >>> quantiles.cuts(4)
        array([1., 3.])
        """
        numbers, counts = merge_counts([*self._pending, *(held for held in self._levels if held is not None)])
        if not len(numbers):
            return numbers
        reached = np.cumsum(counts)
        ranks = np.arange(1, bins) * reached[-1] // bins
        cuts = np.unique(numbers[np.searchsorted(reached, ranks, side="right")])
        return cuts[cuts > numbers[0]]


def merge_counts(parts: Sequence[Counted]) -> Counted:
    """Return the numbers of all `parts` sorted and distinct, with the counts of equal ones added up."""
    if not any(len(part.numbers) for part in parts):
        return Counted(np.empty(0), np.empty(0, np.int64))
    counts = np.concatenate([part.counts for part in parts])
    numbers = np.concatenate([part.numbers for part in parts])
    if counts.sum() <= 2 * len(counts):  # most stand for one row: sorting alone is faster than sorting places
        numbers = np.sort(np.repeat(numbers, counts))
        counts = np.ones(len(numbers), np.int64)
    else:
        order = np.argsort(numbers)
        numbers, counts = numbers[order], counts[order]
    begins = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))
    return Counted(numbers[begins], np.add.reduceat(counts, begins))


def prune(summary: Counted) -> Counted:
    """Return at most `KEPT` numbers, the middle one of each range of about equal counts, with the range's count."""
    reached = np.cumsum(summary.counts)
    ends = np.arange(KEPT + 1) * int(reached[-1]) // KEPT
    chosen = np.searchsorted(reached, (ends[:-1] + ends[1:]) // 2, side="right")
    return merge_counts([Counted(summary.numbers[chosen], np.diff(ends))])


@final
class Spread:
    """Collects counted numbers: how many, the largest magnitude, and the deviation from their mean.

    Sums are of numbers divided by the largest, so that no square is infinite, and are combined as those of two samples
    are (Chan, Golub and LeVeque 1979).
    """

    def __init__(self) -> None:
        """Start without numbers: count, largest magnitude, scaled mean and squares are 0."""
        self.count, self.largest = 0, 0.0
        self._mean = self._squares = 0.0

    def add(self, some: Counted) -> None:
        """Update count, largest magnitude, mean and squared deviations with numbers and their counts. O(n)."""
        largest = float(np.abs(some.numbers).max(initial=self.largest))
        if not largest:
            self.count += int(some.counts.sum())
            return
        shrunk = self.largest / largest
        self._mean, self._squares, self.largest = self._mean * shrunk, self._squares * shrunk**2, largest
        count = int(some.counts.sum())
        if not count:
            return
        scaled = some.numbers / largest
        mean = float(scaled @ some.counts) / count
        total, apart = self.count + count, mean - self._mean
        self._squares += float((scaled - mean) ** 2 @ some.counts) + apart**2 * self.count * count / total
        self._mean += apart * count / total
        self.count = total

    def deviation(self) -> float:
        """Return the population standard deviation; 0.0 if all numbers are the same or none was added."""
        return self.largest * float(np.sqrt(self._squares / max(self.count, 1)))
