"""Partition of rows or items into parts of equal cost for the threads of a call."""

import numpy as np

from kernels.threads import compiled

ROW_COST = 4
"""What starting a row costs, in stored entries; used to cut rows into parts of equal cost."""


@compiled
def _equal_cost(starts, count, per_row, bounds):
    """Write to bounds [count + 1] the rows at which parts of equal cost begin: entries plus `per_row` a row."""
    rows = starts.size - 1
    total = starts[rows] - starts[0] + per_row * rows
    for part in range(count + 1):
        target = total * part // count
        low, high = 0, rows
        while low < high:
            middle = (low + high) // 2
            if starts[middle] - starts[0] + per_row * middle < target:
                low = middle + 1
            else:
                high = middle
        bounds[part] = low


def equal_cost(starts: np.ndarray, count: int, per_row: int = ROW_COST) -> np.ndarray:
    """Cut rows with row pointers `starts` [rows + 1] into `count` parts of equal cost; return bounds int64 [count + 1].

    A row costs its entries plus `per_row`. Rows are never cut. Two binary searches per part.
    """
    bounds = np.empty(count + 1, np.int64)
    _equal_cost(starts, count, per_row, bounds)
    return bounds


@compiled
def _equal_count(size, bounds):
    """Write to bounds [parts + 1] the positions that divide `size` items into parts of equal count."""
    for part in range(bounds.size):
        bounds[part] = size * part // (bounds.size - 1)


def equal_count(size: int, count: int) -> np.ndarray:
    """Cut `size` items of equal cost into `count` parts; return bounds int64 [count + 1]."""
    bounds = np.empty(count + 1, np.int64)
    _equal_count(size, bounds)
    return bounds
