"""The batch plan on a CUDA device: as `kernels.plan`, for arrays on the device, with the same result."""

from typing import Any

import numpy as np

from kernels import devices
from kernels.gpu import indices as on_device
from kernels.gpu.row_sums import PIECE, Lengths
from kernels.gpu.source import blocks, source
from kernels.plan import BatchPlan, index_type, row_length

_CUDA = source(__file__, ["longest_of", "length_keys"])

LONG_TAIL = 2
"""The longest result has so many times the mean number of entries, or more, where results are put in order. A guess:
not measured on a GPU."""


def build(indptr: Any, indices: Any, n_columns: int, in_order_of_length: bool = False) -> BatchPlan:
    """Compute the plan of a CSR batch: `indptr` [R + 1], `indices` [z] (int32 or int64), `n_columns` features.

    Its arrays are on the device. `indptr` must start at 0. With `in_order_of_length`, `row_order` and `column_order`
    are computed if lengths vary much: one more sort each, for batches that repeat. Waits for the device (five values
    are read). Raises ValueError for an index outside [0, n_columns) or inconsistent row pointers.
    """
    device, size, rows = devices.device_of(indices), indices.size, indptr.size - 1
    ends = int(device.read(indptr[:1])[0]), int(device.read(indptr[rows:])[0])  # synchronize!
    if ends[0] or ends[1] != size:
        raise ValueError(
            f"indptr goes from {ends[0]} to {ends[1]}, indices holds {size} entries; on a device the row starts of a "
            "batch begin with 0 and end with the number of its entries."
        )
    wrong, _, _ = on_device.survey(indices, n_columns)
    if wrong >= 0:
        column = int(device.read(indices[wrong : wrong + 1])[0])
        raise ValueError(f"Entry {wrong} has column {column}; allowed are 0 to {n_columns - 1}.")
    kind = index_type(max(size, rows + 1))
    ordered, permutation = on_device.sort(indices, n_columns, kind)
    columns, segments = on_device.runs(ordered, kind)
    rows_in_order = on_device.gathered(on_device.rows_of(indptr, size, kind), permutation)
    longest_row, longest_run = _longest(indptr, segments)
    orders = (_order(indptr, size, longest_row), _order(segments, size, longest_run)) if in_order_of_length else ()
    length, shape = row_length(rows, size, longest_row), (rows, int(n_columns))
    return BatchPlan(shape, columns, segments, rows_in_order, permutation, longest_run, length, longest_row, *orders)


def in_order(plan: BatchPlan, data: Any) -> Any:
    """Return the batch's values `data` [z] in column order."""
    return on_device.gathered(data, plan.permutation)


def lengths_of(starts: Any, in_order_of_length: bool = False) -> Lengths:
    """Return the Lengths of results whose entries start at `starts`, for repeated launches. Waits for the device."""
    rows = starts.size - 1
    size, (longest,) = int(devices.device_of(starts).read(starts[rows:])[0]), _longest(starts)  # synchronize!
    order = _order(starts, size, longest) if in_order_of_length else None
    return Lengths(row_length(rows, size, longest), longest, order)


def _longest(*each: Any) -> list[int]:
    """Return the largest difference of consecutive starts, of each array."""
    device = devices.device_of(each[0])
    most = device.zeros(len(each), np.int64)
    for place, starts in enumerate(each):
        count = starts.size - 1
        arguments = starts, on_device.is_wide(starts), count, most[place : place + 1]
        device.launch(_CUDA, "longest_of", blocks(count), *arguments)
    return list(map(int, device.read(most)))  # synchronize!


def _order(starts: Any, entries: int, longest: int) -> Any:
    """Return results in descending order of entries, int32; None if lengths are similar or int32 is too narrow."""
    device, count, limit = devices.device_of(starts), starts.size - 1, PIECE + 1
    if longest * count < LONG_TAIL * entries or longest < LONG_TAIL or index_type(count) != np.int32:
        return None
    keys = device.empty(count, np.int32)
    arguments = starts, on_device.is_wide(starts), count, np.int32(limit), keys
    device.launch(_CUDA, "length_keys", blocks(count), *arguments)
    return on_device.sort(keys, limit + 1, np.dtype(np.int32))[1]
