"""The batch plan on a CUDA device: `kernels.plan` for arrays that live there, with the same result."""

from typing import Any

import numpy as np

from kernels import devices
from kernels.gpu import indices as on_device
from kernels.gpu.source import blocks, source
from kernels.plan import BatchPlan, index_type

_CUDA = source(__file__, ["longest_run", "row_length"])


def build(indptr: Any, indices: Any, n_columns: int) -> BatchPlan:
    """The plan of the CSR batch (`indptr` [R + 1], `indices` [z], int32 or int64) with `n_columns` features.

    Its arrays live where the batch does; the sort takes as many digits as `n_columns` has. `indptr` must start at 0.
    Three values are read back: waits for the device. Raises `ValueError` for an index outside `0..n_columns - 1`, and
    where the row starts speak of another number of entries.
    """
    device, size, rows = devices.of(indices), indices.size, indptr.size - 1
    ends = int(device.read(indptr[:1])[0]), int(device.read(indptr[rows:])[0])  # synchronize!
    if ends[0] or ends[1] != size:
        raise ValueError(
            f"indptr goes from {ends[0]} to {ends[1]}, indices holds {size} entries; on a device the row starts of a "
            "batch begin with 0 and end with the number of its entries."
        )
    wrong, _, _ = on_device.survey(indices, n_columns)
    if wrong >= 0:
        came = int(device.read(indices[wrong : wrong + 1])[0])
        raise ValueError(f"Entry {wrong} has column {came}; allowed are 0 to {n_columns - 1}.")
    kind = index_type(max(size, rows + 1))
    ordered, permutation = on_device.sort(indices, n_columns, kind)
    columns, segments = on_device.runs(ordered, kind)
    of_entry = on_device.rows_of(indptr, size, kind)
    lengths = device.zeros(2, np.int64)
    starts = segments, on_device.is_wide(segments), columns.size
    device.launch(_CUDA, "longest_run", blocks(columns.size), *starts, lengths)
    device.launch(_CUDA, "row_length", blocks(rows), indptr, on_device.is_wide(indptr), rows, lengths)
    longest, differing = map(int, device.read(lengths))  # synchronize!
    length = -1 if rows == 0 or differing else size // rows
    rows_in_order = on_device.gathered(of_entry, permutation)
    return BatchPlan((rows, int(n_columns)), columns, segments, rows_in_order, permutation, longest, length)


def in_order(plan: BatchPlan, data: Any) -> Any:
    """The batch's values `data` [z] in column order."""
    return on_device.gathered(data, plan.permutation)
