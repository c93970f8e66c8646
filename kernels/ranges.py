"""Entries of a CSR matrix grouped by range of columns, for threads that each write to different columns."""

import numpy as np
from numba import prange

from kernels.threads import compiled_parallel, equal_count, parts

RANGE = 8
"""Entries that a row has in a range on average, at least: a loop over fewer takes longer to begin."""

SAMPLE = 1024
"""Entries that are looked at to cut the columns into ranges with as many entries each."""


def edges_of(indices: np.ndarray, ranges: int) -> np.ndarray:
    """Return the first columns of all ranges but the first [ranges - 1], so that ranges have about equal entries."""
    sample = np.sort(indices[:: indices.size // SAMPLE + 1])
    return sample[np.arange(1, ranges) * sample.size // ranges]


@compiled_parallel
def _split(starts, indices, edges, places, falls, bounds):
    """Write to places the entry at which each row enters each range of columns; counts rows that are not ascending."""
    for part in prange(bounds.size - 1):
        fallen = 0
        for r in range(bounds[part], bounds[part + 1]):
            start = starts[r]
            columns = indices[np.uint64(start) : np.uint64(starts[r + 1])]
            for k in range(columns.size - 1):
                fallen += columns[k + 1] < columns[k]
            places[0, r], places[edges.size + 1, r] = start, start + columns.size
            for number in range(edges.size):
                edge, below = edges[number], 0
                for k in range(columns.size):
                    below += columns[k] < edge
                places[number + 1, r] = start + below
        falls[part] = fallen


def split(starts: np.ndarray, indices: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return the first entry of each range in each row, [ranges + 1, R] (the last are row ends), and whether indices
    ascend.

    If indices of a row are not ascending, `group` must reorder the entries.
    """
    rows = starts.size - 1
    places, bounds = np.empty((edges.size + 2, rows), starts.dtype), equal_count(rows, parts())
    falls = np.empty(bounds.size - 1, np.int64)
    _split(starts, indices, edges, places, falls, bounds)
    return places, not falls.any()


@compiled_parallel
def _group(places, indices, values, edges, indices_out, values_out, bounds):
    """Write indices and values grouped by range of columns to indices_out, values_out; places has the cursors."""
    for part in prange(bounds.size - 1):
        cursors = np.empty(edges.size + 1, np.int64)  # [ranges]
        for r in range(bounds[part], bounds[part + 1]):
            cursors[:] = places[:-1, r]
            for k in range(np.uint64(places[0, r]), np.uint64(places[edges.size + 1, r])):
                range_number = 0
                for number in range(edges.size):
                    range_number += indices[k] >= edges[number]
                place = np.uint64(cursors[range_number])
                cursors[range_number] += 1
                indices_out[place] = indices[k]
                values_out[place] = values[k]


def group(
    places: np.ndarray, indices: np.ndarray, values: np.ndarray, edges: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return indices and values of each row reordered by range, at `places`; stable."""
    grouped = np.empty_like(indices), np.empty_like(values)
    _group(places, indices, values, edges, *grouped, equal_count(places.shape[1], parts()))
    return grouped
