"""Sparse training with changing patterns: weights of small magnitude are dropped, as many others are grown.

set     grown at random; fraction f (Mocanu et al. 2018, algorithm 2); differs: by steps instead of epochs, and dropped
        by magnitude, not the smallest positive and the largest negative ones separately
rigl    grown at the largest gradient of the dense matrix; fraction f / 2 (1 + cos(pi t / T)) in step t < T, which
        changes no weight otherwise (Evci et al. 2020, algorithm 1)

A dropped position may be grown again at once. Grown weights start at zero. Ties go to the first position.

>>> Moves("rigl", fraction=0.3, every=100, until=1000).fraction_at(500)
0.15
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

RULES = ("fixed", "set", "rigl")
BYTES_BLOCK = 1 << 24
"""Bytes of the dense gradient that are formed at once."""


@dataclass(frozen=True)
class Moves:
    """Changes of a pattern: by `rule` of `RULES`, a `fraction` of it `every` so many steps, before step `until`."""

    rule: str
    fraction: float
    every: int
    until: int

    @property
    def by_gradient(self) -> bool:
        """Whether grown positions are chosen by the dense gradient, in a step that changes no weight otherwise."""
        return self.rule == "rigl"

    def is_due(self, step: int) -> bool:
        """Return whether the pattern changes in this step, counted from 1."""
        return self.rule != "fixed" and step % self.every == 0 and step < self.until

    def fraction_at(self, step: int) -> float:
        """Return the fraction of the weights that is replaced in this step."""
        decay = 0.5 * (1 + math.cos(math.pi * step / self.until)) if self.by_gradient else 1.0
        return self.fraction * decay


def smallest(values: np.ndarray, count: int) -> np.ndarray:
    """Return the mask of the `count` values [z] of smallest magnitude, bool [z]. O(z)."""
    dropped = np.zeros(values.size, bool)
    if count:
        dropped[_first(np.abs(values), count)] = True
    return dropped


def largest(
    rows_of: Callable[[int, int], np.ndarray],
    shape: tuple[int, int],
    taken: np.ndarray,
    count: int,
    bytes_block: int = BYTES_BLOCK,
) -> np.ndarray:
    """Return the keys (row * N + column, ascending) of the `count` elements of largest magnitude of a matrix [D, N].

    Keys in `taken` are excluded. `rows_of(low, high)` returns rows [high - low, N], at most `bytes_block` bytes in
    float64 (at least one row) at once. O(D N) time, O(block + count) memory. NaN counts as zero.
    """
    rows, width = shape
    at_once = max(bytes_block // (8 * max(width, 1)), 1)
    keys, negative = np.zeros(0, np.int64), np.zeros(0)
    for low in range(0, rows if count else 0, at_once):
        high = min(low + at_once, rows)
        block = np.abs(rows_of(low, high)).reshape(-1)
        np.negative(np.fmax(block, 0, out=block), out=block)
        first, end = np.searchsorted(taken, (low * width, high * width))
        block[taken[first:end] - low * width] = np.inf
        here = _first(block, count)
        here = here[block[here] <= 0]
        keys = np.concatenate([keys, here + low * width])
        negative = np.concatenate([negative, block[here]])
        chosen = _first(negative, count)
        keys, negative = keys[chosen], negative[chosen]
    return keys


def _first(values: np.ndarray, count: int) -> np.ndarray:
    """Return the positions of the `count` smallest values, ascending; the first ones of ties."""
    if count >= values.size:
        return np.arange(values.size)
    last = np.partition(values, count - 1)[count - 1]
    chosen = values < last
    chosen[np.flatnonzero(values == last)[: count - np.count_nonzero(chosen)]] = True
    return np.flatnonzero(chosen)
