"""(indptr, indices, data) of the rows A[rows] in CSR form, in the order asked for; a row may be taken again.

Arguments  indptr int32|int64 [M+1] - row starts; indices same type [z]; data float32|float64 [z]; rows int64 [R]
Writes     nothing; returns new arrays indptr [R+1], indices [s], data [s]; index type of indptr, int64 if s needs it
Assumes    nothing of rows, and of the starts of those taken, which are checked; entries of a row keep their order
Cost       no flops; reads R*(2*index+8) + s*(index+value) bytes and writes as many; nothing grows with M
Parallel   over rows, in parts of equal cost; the result is unique
Limits     s < 2**63, the entries of the result; the int32 to int64 switch is tested with the limit lowered
Source     Definition of the compressed form
"""

import numpy as np
from numba import prange

from kernels import devices, reused
from kernels.contract import Case, Cost, KernelError, Sizes, register_kernel
from kernels.gpu import indices as on_device
from kernels.gpu.source import FLOATS, blocks, c_name, source
from kernels.plan import index_type
from kernels.threads import compiled, compiled_parallel, equal_cost, is_serial, parts
from kernels.vector.lanes import prefetch

AHEAD = 8
"""Rows between asking for a row and copying it."""

ASKED = 128
"""Entries of a row that are asked for; those of a longer one the processor finds itself."""

COPIES = 4
"""Entries that are copied in the time of a multiply-add of `threads.is_serial`, with a margin for a busy core."""


def reference(indptr, indices, data, rows):
    """Select the rows A[rows] of a CSR matrix in plain loops.

    indptr [M+1], indices [z] int32|int64, data float32|float64 [z]; rows int64 [R], in any order, repeated or not.
    Returns new arrays (indptr [R+1], indices [s], data [s]) in this order; entries of a row keep theirs.
    """
    entries = [k for r in rows for k in range(indptr[r], indptr[r + 1])]
    kind = index_type(len(entries), indptr.dtype)
    out_indptr = np.zeros(rows.size + 1, kind)
    for i, r in enumerate(rows):
        out_indptr[i + 1] = out_indptr[i] + indptr[r + 1] - indptr[r]
    return out_indptr, np.array([indices[k] for k in entries], kind), np.array([data[k] for k in entries], data.dtype)


@compiled
def row_starts(indptr, rows, entries, starts):
    """Write the row pointers of A[rows] to starts [R + 1].

    Return its count of entries, or -1 - i if rows[i] is invalid. A row is invalid if its index is out of range or its
    entries are not among the `entries` stored ones.
    """
    total = np.int64(0)
    starts[0] = 0
    for i in range(rows.size):
        r = rows[i]
        if r < 0 or r >= indptr.size - 1 or not 0 <= indptr[r] <= indptr[r + 1] <= entries:
            return np.int64(-1 - i)
        total += indptr[np.uint64(r) + np.uint64(1)] - indptr[np.uint64(r)]
        starts[i + 1] = total
    return total


@compiled
def _copy(indptr, indices, data, rows, starts, out_indices, out_data, first, last):
    """Copy the entries of A[rows[i]] to out_indices and out_data from starts[i] on, for first <= i < last.

    Rows in range. A is in CSR form (indptr, indices, data). Prefetches later rows, which is 1.4 times as fast.
    """
    final, one, line = np.uint64(rows.size - 1), np.uint64(1), np.uint64(16)
    for i in range(np.uint64(first), np.uint64(last)):
        coming = np.uint64(rows[min(i + np.uint64(AHEAD), final)])
        place, stop = np.uint64(indptr[coming]), np.uint64(indptr[coming + one])
        stop = min(stop, place + np.uint64(ASKED))
        while place < stop:
            prefetch(indices, place)
            prefetch(data, place)
            place += line
        prefetch(indices, stop)
        prefetch(data, stop)
        source, target, end = np.uint64(indptr[rows[i]]), np.uint64(starts[i]), np.uint64(starts[i + 1])
        for k in range(end - target):
            out_indices[target + k] = indices[source + k]
            out_data[target + k] = data[source + k]


@compiled_parallel
def _parallel(indptr, indices, data, rows, starts, out_indices, out_data, bounds):
    """Copy the entries of A[rows] on several threads, as `_copy`; part p does i from bounds[p] to bounds[p + 1] - 1.

    A is in CSR form (indptr, indices, data); starts [R + 1] are the row pointers of the results out_indices, out_data.
    """
    for part in prange(bounds.size - 1):
        _copy(indptr, indices, data, rows, starts, out_indices, out_data, bounds[part], bounds[part + 1])


def wrong_row(place: int, row: int, count: int) -> KernelError:
    """Return, without raising it, the error for rows[place] = `row`, out of range of `count` rows."""
    return KernelError(
        f"rows[{place}] is {row}; the matrix has the rows 0 to {count - 1}. "
        "Count from the start: negative numbers are not taken from the end."
    )


def wrong_starts(row: int, indptr: np.ndarray, entries: int) -> KernelError:
    """Return, without raising it, the error for invalid pointers of `row`: a matrix changed after validation."""
    return KernelError(
        f"indptr goes from {indptr[row]} to {indptr[row + 1]} at row {row}; starts of rows rise from 0 to {entries}, "
        "the number of stored entries. Build the matrix again from its parts."
    )


def cpu(indptr, indices, data, rows):
    """Select the rows A[rows] of a CSR matrix on the CPU.

    indptr [M+1], indices [z] int32|int64, data float32|float64 [z]; rows int64 [R], in any order, repeated or not.
    Returns new arrays (indptr [R+1], indices [s], data [s]) in this order; entries of a row keep theirs. Indices have
    the dtype of indptr, or int64 if s needs it. Raises KernelError for a row out of range.
    """
    starts = np.empty(rows.size + 1, indptr.dtype)
    stored = row_starts(indptr, rows, indices.size, starts)
    if stored < 0:
        if 0 <= (row := rows[-1 - stored]) < indptr.size - 1:
            raise wrong_starts(row, indptr, indices.size)
        raise wrong_row(-1 - stored, row, indptr.size - 1)
    if (kind := index_type(stored, indptr.dtype)) != starts.dtype:
        starts = np.empty(rows.size + 1, kind)
        row_starts(indptr, rows, indices.size, starts)
    out_indices, out_data = reused.empty(stored, kind), reused.empty(stored, data.dtype)
    if is_serial(stored // COPIES):
        _copy(indptr, indices, data, rows, starts, out_indices, out_data, 0, rows.size)
    else:
        _parallel(indptr, indices, data, rows, starts, out_indices, out_data, equal_cost(starts, parts()))
    return starts, out_indices, out_data


_CUDA = source(__file__, ["row_lengths", *[f"copy_rows<{value}>" for value in FLOATS]])


def gpu(indptr, indices, data, rows):
    """Select the rows A[rows] of a CSR matrix on a CUDA device.

    indptr [M+1], indices [z] int32|int64, data float32|float64 [z]; rows int64 [R], in any order, repeated or not.
    Returns new arrays (indptr [R+1], indices [s], data [s]) in this order; entries of a row keep theirs. Indices have
    the dtype of indptr, or int64 if s needs it. Raises KernelError for a row out of range.
    """
    device, count, wide = devices.device_of(data), rows.size, on_device.is_wide(indptr)
    lengths, wrong = device.empty(count, np.int64), device.zeros(1, np.int64)  # [R]
    device.launch(_CUDA, "row_lengths", blocks(count), indptr, wide, indptr.size - 1, rows, count, lengths, wrong)
    starts = on_device.scan(lengths, np.int64)
    if first := int(device.read(wrong)[0]):  # synchronize!
        place = count - first
        raise wrong_row(place, int(device.read(rows[place : place + 1])[0]), indptr.size - 1)
    stored = int(device.read(starts[count:])[0])
    kind = index_type(stored, indptr.dtype)
    out_indices, out_data = device.empty(stored, kind), device.empty(stored, data.dtype)
    results = out_indices, on_device.is_wide(out_indices), out_data, stored
    name = f"copy_rows<{c_name(data.dtype)}>"
    device.launch(_CUDA, name, blocks(stored), indptr, indices, wide, data, rows, count, starts, *results)
    return on_device.scan(lengths, kind) if kind != np.int64 else starts, out_indices, out_data


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of s.R rows taken with s.z entries."""
    work = ("row", s.R), ("pass", 2 * s.z)
    return Cost(0, 2 * s.z * (s.index + s.value) + s.R * (3 * s.index + 8), work=work)


def arguments(case: Case) -> tuple:
    """Build operands of a call from `case`: A and rows of it in random order, some of them twice."""
    rows = np.random.default_rng(case.seed).integers(0, max(case.R, 1), case.R)
    return case.indptr, case.indices, case.data, rows


register_kernel(
    __name__,
    "slice_rows",
    "indptr:i[M+1]^z indices:i[z]< data:f[z] rows:l[R]<M",
    writes=(),
)
