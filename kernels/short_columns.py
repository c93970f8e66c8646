"""Sums over the entries of short columns, one number each: four columns at a time, and no branch where one ends.

No processor guesses how long the next column is, and a wrong guess takes as long as twenty entries. Here four streams
go through columns of their own, entry by entry, and add each to its column in memory; whether the column has ended is
a number that is added to the column's. A stream that has done its columns takes the next ones. A column is summed in
the order of its entries: same bits on every run and thread count.

Measured on one core of an EPYC 9004, 4,096 rows: 1.0 to 1.2 ns an entry, while `kernels.vector` takes 3 ns a column
whose entries are a `head`, 13 ns one of seven entries in the mean.
"""

import numpy as np

from kernels._compat.numba_internals import each_part, layer
from kernels.code_cache import inlined
from kernels.products.csr_dense import MOST_ALONE
from kernels.threads import ALONE, compiled, equal_cost, is_forced_parallel, share

COLUMNS = 128
"""Columns that a stream takes at once, at most."""

LEAST_ENTRIES = 4096
"""Entries below which it is not looked how long columns are."""

SAMPLE = 256
"""Columns whose lengths are looked at."""

NS_ENTRY, NS_ENTRY_OF_LOOP, NS_COLUMN, NS_WRONG = 1.15, 0.1, 2.2, 14.0
"""Nanoseconds of an entry here; in a row loop those of an entry, of a column, and of one longer than its head."""

WORK = 5
"""What an entry counts for in the measure of `threads.is_serial`."""


@compiled
def _longer(segments, head):
    """Return how many of 256 columns, sampled at equal distances, have more than `head` entries; segments [U + 1]."""
    columns, longer = segments.size - 1, 0
    for number in range(SAMPLE):
        u = np.uint64(columns * number // SAMPLE)
        longer += segments[u + np.uint64(1)] - segments[u] > head
    return longer


@inlined
def _take(segments, at, last):
    """Return (first entry, first column, entries, next column) of the next columns from `at` on, before `last`.

    All uint64. At most 128 columns, fewer near the end; no entries if all are taken.
    """
    few = np.uint64(8) + ((last - at) >> np.uint64(3))  # fewer at the end, where a stream alone takes longest
    after, first = min(at + min(few, np.uint64(COLUMNS)), last), np.uint64(segments[at])
    return first, at, np.uint64(segments[after]) - first, after


@inlined
def _add(k, u, segments, rows, values, g, out):
    """Add values[k] * g[rows[k]] of entry `k` to out[u] in place; return (next entry, its column).

    `values` None counts as 1; columns are not empty.
    """
    slope, one = g[np.uint64(rows[k])], np.uint64(1)
    if values is None:
        out[u] += slope
    else:
        out[u] += values[k] * slope
    k += one
    return k, u + np.uint64(np.uint64(segments[u + one]) <= k)


@inlined
def _part(part, bounds, segments, rows, values, g, out):
    """Overwrite out[u] by the sum of values[k] * g[rows[k]] of each column of part `part`, four columns at a time.

    The part has columns bounds[part] to bounds[part + 1] - 1; g [R] and out [U] are 1-d, `values` None counts as 1.
    """
    at, last = np.uint64(bounds[part]), np.uint64(bounds[part + 1])
    out[at:last] = 0
    k0, u0, left0, at = _take(segments, at, last)
    k1, u1, left1, at = _take(segments, at, last)
    k2, u2, left2, at = _take(segments, at, last)
    k3, u3, left3, at = _take(segments, at, last)
    while left0 and left1 and left2 and left3:
        count = min(min(left0, left1), min(left2, left3))
        for _ in range(count):
            k0, u0 = _add(k0, u0, segments, rows, values, g, out)
            k1, u1 = _add(k1, u1, segments, rows, values, g, out)
            k2, u2 = _add(k2, u2, segments, rows, values, g, out)
            k3, u3 = _add(k3, u3, segments, rows, values, g, out)
        left0, left1, left2, left3 = left0 - count, left1 - count, left2 - count, left3 - count
        if not left0:
            k0, u0, left0, at = _take(segments, at, last)
        if not left1:
            k1, u1, left1, at = _take(segments, at, last)
        if not left2:
            k2, u2, left2, at = _take(segments, at, last)
        if not left3:
            k3, u3, left3, at = _take(segments, at, last)
    for k, u, left in ((k0, u0, left0), (k1, u1, left1), (k2, u2, left2), (k3, u3, left3)):
        for _ in range(left):
            k, u = _add(k, u, segments, rows, values, g, out)


@compiled
def _parts(bounds, segments, rows, values, g, out):
    """Run `_part` for all parts between `bounds`, on the layer's threads; overwrites out [U].

    segments [U + 1], rows, values [z] (None: ones) are the entries in column order, g [R].
    """
    each_part(_part, bounds.size - 1, (bounds, segments, rows, values, g, out))


def suits(segments: np.ndarray, entries: int, width: int, head: int) -> bool:
    """Return whether sums over short columns are faster here than in a row loop.

    `segments` [U + 1] are the column starts, `entries` all entries, `width` the values of a row (only 1 qualifies),
    `head` that of `kernels.vector.tiles`.
    """
    if width != 1 or entries < LEAST_ENTRIES:
        return False
    share, mean = _longer(segments, head) / SAMPLE, entries / (segments.size - 1)
    return mean * NS_ENTRY < NS_COLUMN + share * NS_WRONG + mean * NS_ENTRY_OF_LOOP


def add(segments: np.ndarray, rows: np.ndarray, values: np.ndarray | None, g: np.ndarray, out: np.ndarray) -> None:
    """Overwrite out [U, 1] by the sum over the entries of column u of values * g[rows, 0], g [R, 1], as `csr_t_dense`.

    `values` [z] None: all are 1. On several threads if that is faster.
    """
    work = WORK * rows.size
    is_little = work <= MOST_ALONE and not is_forced_parallel()
    parts, choices = ALONE if is_little else share(work)
    bounds = np.array((0, segments.size - 1)) if parts == 1 else equal_cost(segments, parts, 0)
    layer()  # code is linked with its functions
    _parts(bounds, segments, rows, values, g.reshape(-1), out.reshape(-1))
    if choices is not None:
        choices.ended()
