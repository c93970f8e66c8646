"""Sparsity patterns of weight matrices: initial ones, densities, and changes.

>>> import numpy as np
>>> pattern = drawn((3, 4), 5, np.random.default_rng(0))
>>> pattern.nnz, pattern.matrix(np.ones(5, np.float32)).shape
(5, (3, 4))
>>> counts([(100, 50), (50, 10)], 0.1, "uniform")
[500, 50]
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from workbench.formats.compressed import assemble, index_dtype

NEW = -1
"""Where a place that was not there before comes from."""


@dataclass(frozen=True, eq=False)
class Pattern:
    """Positions of a matrix of `shape` (D, N) in CSR order: `indptr` [D + 1] and `indices` [z], sorted, read-only."""

    indptr: np.ndarray
    indices: np.ndarray
    shape: tuple[int, int]

    @property
    def nnz(self) -> int:
        """Number of positions z."""
        return self.indices.size

    @property
    def nbytes(self) -> int:
        """Bytes of both index arrays of the pattern."""
        return self.indptr.nbytes + self.indices.nbytes

    @cached_property
    def rows(self) -> np.ndarray:
        """Row of each position, int64 [z]; cached."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))

    @property
    def keys(self) -> np.ndarray:
        """Each position as row * N + column, ascending, int64 [z]."""
        return self.rows * self.shape[1] + self.indices

    def matrix(self, values: np.ndarray) -> Any:
        """Return the values [z] at these positions as a csr array [D, N] that shares their memory."""
        return assemble("csr", self.indptr, self.indices, values, self.shape)

    def on_rows(self, rows: np.ndarray) -> tuple["Pattern", np.ndarray]:
        """Return (pattern of these sorted rows, index of each of its positions in this one, int64)."""
        starts, lengths = self.indptr[rows].astype(np.int64), np.diff(self.indptr)[rows]
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        places = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], lengths)
        kind = self.indices.dtype
        return Pattern(indptr.astype(kind), self.indices[places], (rows.size, self.shape[1])), places

    def moved(self, dropped: np.ndarray, grown: np.ndarray) -> tuple["Pattern", np.ndarray]:
        """Return (pattern without `dropped`, bool [z], and with the keys `grown`, origin of each position int64).

        Keys are row * N + column. The origin is the index in this pattern, int64, `NEW` for grown positions. O(z log
        z).
        """
        kept = np.flatnonzero(~dropped)
        keys = np.concatenate([self.keys[kept], grown])
        order = np.argsort(keys, kind="stable")
        origin = np.concatenate([kept, np.full(grown.size, NEW)])[order]
        return of_keys(keys[order], self.shape), origin


def of_keys(keys: np.ndarray, shape: tuple[int, int]) -> Pattern:
    """Return the pattern of the keys row * N + column, int64 [z], ascending and unique."""
    kind = index_dtype(*shape, keys.size)
    rows, columns = np.divmod(keys, shape[1])
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=shape[0]))]).astype(kind)
    return fixed(indptr, columns.astype(kind), shape)


def fixed(indptr: np.ndarray, indices: np.ndarray, shape: tuple[int, int]) -> Pattern:
    """Return a pattern over these index arrays, which are set read-only."""
    for array in (indptr, indices):
        array.setflags(write=False)
    return Pattern(indptr, indices, shape)


# How many, and which at the start


def counts(shapes: Sequence[tuple[int, int]], density: float, spread: str) -> list[int]:
    """Return the number of positions of each matrix [D, N], for a total density.

    `spread` "uniform" gives each the same density; "erdos_renyi" a density proportional to (D + N) / (D N), at most 1
    (Mocanu et al. 2018, section 2; Evci et al. 2020, section 3): what exceeds a small matrix goes to the others.
    """
    sizes, sums = np.array([d * n for d, n in shapes]), np.array([d + n for d, n in shapes])
    wanted = density * sizes
    full = np.zeros(len(shapes), bool)
    while spread == "erdos_renyi" and not full.all():
        share = (density * sizes.sum() - sizes[full].sum()) / sums[~full].sum()
        wanted = np.where(full, sizes, share * sums)
        if not (over := ~full & (wanted > sizes)).any():
            break
        full |= over
    return [int(count) for count in np.clip(np.round(wanted), 1, sizes)]


def drawn(shape: tuple[int, int], count: int, generator: np.random.Generator) -> Pattern:
    """Return a uniformly random pattern of `count` positions in a matrix of `shape`."""
    return of_keys(absent(np.zeros(0, np.int64), shape[0] * shape[1], count, generator), shape)


def absent(taken: np.ndarray, size: int, count: int, generator: np.random.Generator) -> np.ndarray:
    """Return `count` random keys below `size` that are not in `taken` (int64), ascending int64.

    O(n log n) time and O(n) memory for n taken and drawn keys: a sparse matrix is never enumerated.
    """
    if 2 * (taken.size + count) > size:
        free = np.delete(np.arange(size), taken)
        return np.sort(generator.choice(free, count, replace=False))
    found = np.zeros(0, np.int64)
    while found.size < count:
        fresh = generator.integers(0, size, 2 * (count - found.size) + 16)
        fresh = np.concatenate([found, fresh[~np.isin(fresh, taken)]])
        _, first = np.unique(fresh, return_index=True)
        found = fresh[np.sort(first)][:count]
    return np.sort(found)


# Sparse training with changing patterns: weights of small magnitude are dropped, as many others are grown.
#
# set     grown at random; fraction f (Mocanu et al. 2018, algorithm 2); differs: by steps instead of epochs, and
#         dropped by magnitude, not the smallest positive and the largest negative ones separately
# A dropped position may be grown again at once. Grown weights start at zero. Ties go to the first position.

RULES = "fixed", "set"


@dataclass(frozen=True)
class Moves:
    """Changes of a pattern: by `rule` of `RULES`, a `fraction` of it `every` so many steps, before step `until`."""

    rule: str
    fraction: float
    every: int
    until: int

    def is_due(self, step: int) -> bool:
        """Return whether the pattern changes in step `step`, counted from 1."""
        return self.rule != "fixed" and step % self.every == 0 and step < self.until


def smallest(values: np.ndarray, count: int) -> np.ndarray:
    """Return a mask, bool [z], of the `count` values [z] of smallest magnitude. O(z)."""
    dropped = np.zeros(values.size, bool)
    if count:
        dropped[_first(np.abs(values), count)] = True
    return dropped


def _first(values: np.ndarray, count: int) -> np.ndarray:
    """Return the indices of the `count` smallest values, ascending; the first ones of ties. O(n)."""
    if count >= values.size:
        return np.arange(values.size)
    last = np.partition(values, count - 1)[count - 1]
    chosen = values < last
    chosen[np.flatnonzero(values == last)[: count - np.count_nonzero(chosen)]] = True
    return np.flatnonzero(chosen)
