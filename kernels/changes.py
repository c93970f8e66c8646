"""Changes of some rows of a table against a base copy: found, subtracted, and added to the base again.

Copies of a table that train apart keep a base each, what all of them had when they were last the same. A copy that has
changed rows sends `subtract`; `add` of what all copies send, in one order, makes the bases the same bits again. Where
most rows have changed, copies send the rows themselves, and `add_copies` does both.

>>> base, table = np.zeros((3, 2), np.float32), np.float32([[0, 0], [1, 2], [0, 0]])
>>> rows = marked(np.array([0, 1], np.int32), np.array([1], np.int32), np.array([0]), np.zeros(3, np.uint8))
>>> changes = np.empty((1, 2), np.float32)
>>> subtract(table, base, rows, changes, 0)
>>> add(base, rows, changes, 0)
>>> rows.tolist(), changes.tolist(), bool((base == table).all())
([1], [[1.0, 2.0]], True)
"""

import math

import numpy as np

from kernels.structure import plain
from kernels.threads import compiled


@compiled
def _mark(starts, columns, rows, marks):
    """Set marks [D] to 1 at the columns of the entries of `rows` [R] of a CSR matrix, in place."""
    for place in range(rows.size):
        row = rows[place]
        for k in range(starts[row], starts[row + 1]):
            marks[columns[k]] = 1


def marked(starts: np.ndarray, columns: np.ndarray, rows: np.ndarray, marks: np.ndarray) -> np.ndarray:
    """Return the sorted columns in which `rows` of a CSR matrix have entries, int64 [U].

    `starts` and `columns` are its valid row pointers and indices, `rows` int64 [R] in range, `marks` uint8 [D] zeros,
    which are zeros again afterwards. O(entries + D / 8).
    """
    _mark(plain(starts), plain(columns), plain(rows), marks)
    found = np.flatnonzero(marks)
    marks[found] = 0
    return found


@compiled
def subtract(table, base, rows, changes, first):
    """Write table - base of `rows` int64 [U], both [D, N], to changes[:, first : first + N], in place. O(U N)."""
    for place in range(rows.size):
        row = rows[place]
        for n in range(table.shape[1]):
            changes[place, first + n] = table[row, n] - base[row, n]


@compiled
def add(base, rows, changes, first):
    """Add changes[:, first : first + N] to `rows` int64 [U] of base [D, N], in place. O(U N)."""
    for place in range(rows.size):
        row = rows[place]
        for n in range(base.shape[1]):
            base[row, n] += changes[place, first + n]


@compiled
def add_scaled(base, rows, changes, before, after):
    """Add changes[:, : N] to `rows` int64 [U] of base [D, N], in place, each times sqrt(own / after). O(U N).

    `before` [U, N] and `after` [D, N] are sums of squares before and after the changes of all copies; own is `before` +
    changes[:, N :], those of this copy.
    """
    width = base.shape[1]
    for place in range(rows.size):
        row = rows[place]
        for n in range(width):
            if after[row, n] > 0:
                own = before[place, n] + changes[place, width + n]
                base[row, n] += changes[place, n] * math.sqrt(own / after[row, n])


@compiled
def add_scaled_copies(base, copies, squares, after, out):
    """Do as `add_copies`, with each copy's difference times sqrt(squares / after). O(C D N).

    `squares` [C, D, N] are the sums of squares of each copy, `after` [D, N] those with the changes of all.
    """
    for row in range(base.shape[0]):
        for n in range(base.shape[1]):
            before = total = base[row, n]
            if after[row, n] > 0:
                for number in range(copies.shape[0]):
                    total += (copies[number, row, n] - before) * math.sqrt(squares[number, row, n] / after[row, n])
            out[row, n] = total


@compiled
def add_copies(base, copies, out):
    """Write base + the sum of (copy - base), in the order of the `copies` [C, D, N], to out [D, N]. O(C D N)."""
    for row in range(base.shape[0]):
        for n in range(base.shape[1]):
            before = total = base[row, n]
            for number in range(copies.shape[0]):
                total += copies[number, row, n] - before
            out[row, n] = total


@compiled
def copy(base, rows, table):
    """Copy `rows` int64 [U] of base [D, N] to those of table [D, N], in place. O(U N)."""
    for place in range(rows.size):
        row = rows[place]
        for n in range(base.shape[1]):
            table[row, n] = base[row, n]
