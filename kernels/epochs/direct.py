"""The step of a batch without sums of its gradient: each entry steps the weights of its column at once.

For rules that are linear in the gradient and leave weights alone where it is zero: SGD without decay. Steps by the
entries of a column one after the other then come to the step by their sum. On several threads each one owns a range of
columns, and has the entries of all rows of the batch there, found by bisection in rows whose columns rise; so the
entries of a column are taken in the order of the rows on any number of threads, and the bits are the same.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kernels.aligned import LINE
from kernels.code_cache import inlined
from kernels.epochs.programs import Programs
from kernels.rules.rule import Rule
from kernels.vector.lanes import emit_row

SAMPLED = 4096
"""Entries of X, about, by which the columns are shared out."""


class Direct(NamedTuple):
    """`bounds` int64 [P + 1]: the columns from `bounds[p]` to `bounds[p + 1]` belong to part p."""

    bounds: np.ndarray


@inlined
def direct_of(parts):
    """A `Direct` of its bare parts."""
    return Direct(*parts)


def suits(rule: Rule, settings: np.ndarray, is_unchanged: bool) -> bool:
    """Whether all steps of these settings [S, K] may be done so; `is_unchanged`: the gradient is not scaled or clipped.

    O(S).
    """
    if not (rule.is_linear and is_unchanged) or rule.coast is None:
        return False
    kept = rule.coast(*settings.T)
    return kept is not None and bool(np.all(np.asarray(kept[0]) == 1))


def direct_for(parts: int, indices: np.ndarray, weights: np.ndarray) -> Direct:
    """Columns of each part, for weights [D, N]: about as many entries each, by a sample, and whole lines of memory."""
    columns, unit = len(weights), max(LINE // (weights.shape[1] * weights.itemsize), 1)
    sample = np.sort(indices[:: max(indices.size // SAMPLED, 1)])
    places = sample.size * np.arange(1, parts) // parts
    inner = sample[places].astype(np.int64) // unit * unit if sample.size else np.zeros(parts - 1, np.int64)
    return Direct(np.concatenate(([0], inner, [columns])))


@inlined
def own_entries(indices, start, stop, low, high):
    """(first, last) of the entries of a row in the columns from `low` to `high`; (-1, -1) if its columns do not rise.

    One pass over the row, a vector at a time: rows are read from a near cache.
    """
    below = within = falls = np.int64(0)
    for k in range(start, stop):
        below += indices[k] < low
        within += indices[k] < high
    for k in range(start + np.uint64(1), stop):
        falls += indices[k] <= indices[k - np.uint64(1)]
    if falls:
        return np.int64(-1), np.int64(-1)
    return np.int64(start) + below, np.int64(start) + within


def make_pass(forward: Callable) -> Callable:
    """Scores and slopes of the rows `order[first:last]`; there is nothing to sum."""

    def one_pass(part, rows, order, first, last, share, arrays, added, is_far, scratch, store, is_summed):
        return forward(rows, order, first, last, share, arrays, added, is_far, scratch)

    return inlined(one_pass)


def make_step(programs: Programs, is_parallel: bool) -> Callable:
    """The step by the entries of a batch in the columns of an owner."""
    entries = programs.entries_at

    def step_all(owner, parts, stepped, settings, at, store, batch):
        rows, order, slope = batch
        width = slope.shape[1]
        for place in range(order.size):
            row = np.uint64(order[place])
            start, stop = np.int64(rows.indptr[row]), np.int64(rows.indptr[row + np.uint64(1)])
            emit_row(entries, start, width, (stop, *stepped, rows.indices, rows.data, slope, place, settings, at))

    def step_own(owner, parts, stepped, settings, at, store, batch):
        rows, order, slope = batch
        indices, width, low, high = rows.indices, slope.shape[1], store.bounds[owner], store.bounds[owner + 1]
        for place in range(order.size):
            row = np.uint64(order[place])
            start, stop = np.uint64(rows.indptr[row]), np.uint64(rows.indptr[row + np.uint64(1)])
            first, last = own_entries(indices, start, stop, low, high)
            # One call in a loop for both cases: all entries of a row that rises, else its own ones one by one.
            k, end, length = (first, last, last - first) if first >= 0 else (np.int64(start), np.int64(stop), 1)
            while k < end:
                if first >= 0 or low <= indices[k] < high:
                    operands = (k + length, *stepped, indices, rows.data, slope, place, settings, at)
                    emit_row(entries, k, width, operands)
                k += length

    return inlined(step_own if is_parallel else step_all)
