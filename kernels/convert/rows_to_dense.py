"""out[i] = A[rows[i]], dense, from A in CSR form: a batch made dense in memory that held another one before.

Arguments  indptr int32|int64 [M+1] - row starts; indices same type [z]; data float32|float64 [z]; rows int64 [R];
           held int64 [R] - the row of the same A that each row of out holds, -1 if it holds anything else
Writes     out [R, D], overwritten; held becomes rows
Assumes    0 <= indices < D; of rows, and of the starts of those taken, nothing: they are checked; a row may be taken
           again; duplicates are summed in their order; columns may be unsorted
Cost       z flops, z entries in the rows taken; reads R*(2*index+16) + z*(index+value) bytes, writes R*D*value; of a
           row that is held and has few entries those alone are cleared, so less is written
Parallel   over rows, in parts of equal cost; same bits on every run and thread count
Limits     z < 2**63, R*D < 2**63
Source     Definition of the compressed form
"""

import numpy as np
from numba import prange

from kernels import devices
from kernels.contract import Case, Cost, Sizes, register_kernel
from kernels.convert.slice_rows import row_starts, wrong_row, wrong_starts
from kernels.gpu import indices as on_device
from kernels.gpu.source import FLOATS, blocks, c_name, source
from kernels.threads import ROW_COST, compiled, compiled_parallel, equal_cost, is_serial, parts
from kernels.vector.lanes import prefetch

AHEAD = 4
"""Rows between asking for the entries of a row and adding them: a line is asked for as one is added, so that memory has
few to bring at once."""

SCATTERED = 64
"""Values that are cleared one after the other in the time of one at a place that an index names."""

CLEARED = 16
"""Values that are cleared one after the other in the time of a multiply-add of `threads.is_serial`."""


def reference(indptr, indices, data, rows, held, out):
    """Write rows of A in dense form, out[i] = A[rows[i]], in plain loops.

    A in CSR form: indptr [M+1] and indices [z] int32|int64, data [z]. rows int64 [R]. out [R, D], float32|float64 as
    data, is overwritten; held int64 [R] becomes rows. Duplicates are summed.
    """
    out[...] = 0
    for i, r in enumerate(rows):
        for k in range(indptr[r], indptr[r + 1]):
            out[i, indices[k]] += data[k]
    held[:] = rows


@compiled
def _clear(indptr, indices, was, row):
    """Zero `row` [D] of the result in place, which has row `was` of A (-1: other contents).

    Only at the entries of that row if these are few.
    """
    if 0 <= was < indptr.size - 1:
        start, stop = indptr[was], indptr[was + 1]
        if 0 <= start <= stop <= indices.size and (stop - start) * SCATTERED < row.size:
            for k in range(np.uint64(start), np.uint64(stop)):
                row[np.uint64(indices[k])] = 0
            return
    row[:] = 0


@compiled
def _fill(indptr, indices, data, rows, held, out, first, last):
    """Write A[rows[i]] to out[i] and rows[i] to held[i] for first <= i < last; duplicates are summed, rows in range.

    A is in CSR form (indptr, indices, data). Clears what out[i] had first, by held[i]; prefetches later rows.
    """
    final, one, line = np.uint64(rows.size - 1), np.uint64(1), np.uint64(16)
    for i in range(np.uint64(first), np.uint64(last)):
        coming, r, row = np.uint64(rows[min(i + np.uint64(AHEAD), final)]), np.uint64(rows[i]), out[i]
        asked, end = np.uint64(indptr[coming]), np.uint64(indptr[coming + one])
        _clear(indptr, indices, held[i], row)
        place, stop = np.uint64(indptr[r]), np.uint64(indptr[r + one])
        while place < stop or asked < end:
            if asked < end:
                prefetch(indices, asked)
                prefetch(data, asked)
                asked += line
            upto = min(place + line, stop)
            for k in range(place, upto):
                row[np.uint64(indices[k])] += data[k]
            place = upto
        held[i] = rows[i]


@compiled_parallel
def _parallel(indptr, indices, data, rows, held, out, bounds):
    """Write all rows of out on several threads, as `_fill`; part p does i from bounds[p] to bounds[p + 1] - 1.

    A is in CSR form (indptr, indices, data); out [R, D] and held [R] are changed.
    """
    for part in prange(bounds.size - 1):
        _fill(indptr, indices, data, rows, held, out, bounds[part], bounds[part + 1])


def cpu(indptr, indices, data, rows, held, out):
    """Write rows of A in dense form, out[i] = A[rows[i]], on the CPU.

    A in CSR form: indptr [M+1] and indices [z] int32|int64, data [z]. rows int64 [R]. held int64 [R]: the row of the
    same A that out[i] has already (-1: other contents), so that only its entries are cleared. out [R, D],
    float32|float64 as data, is overwritten; held becomes rows. Duplicates are summed. Raises KernelError for a row out
    of range.
    """
    starts = np.empty(rows.size + 1, np.int64)
    stored = row_starts(indptr, rows, indices.size, starts)
    if stored < 0:
        if 0 <= (row := rows[-1 - stored]) < indptr.size - 1:
            raise wrong_starts(row, indptr, indices.size)
        raise wrong_row(-1 - stored, row, indptr.size - 1)
    if is_serial(stored + out.size // CLEARED):
        _fill(indptr, indices, data, rows, held, out, 0, rows.size)
    else:
        bounds = equal_cost(starts, parts(), per_row=ROW_COST + out.shape[1] // CLEARED)
        _parallel(indptr, indices, data, rows, held, out, bounds)


_CUDA = source(__file__, [f"rows_to_dense<{value}>" for value in FLOATS])


def gpu(indptr, indices, data, rows, held, out):
    """Write rows of A in dense form, out[i] = A[rows[i]], on a CUDA device; waits for it.

    A is in CSR form (indptr, indices, data), rows int64 [R], all on the device; rows of out [R, D] are cleared whole,
    and held [R] becomes rows. Raises KernelError for a row out of range.
    """
    device, (count, columns) = devices.device_of(out), out.shape
    name, wrong = f"rows_to_dense<{c_name(out.dtype)}>", device.zeros(1, np.int64)
    matrix = indptr, indices, on_device.is_wide(indptr), data, indptr.size - 1
    device.launch(_CUDA, name, blocks(32 * count), *matrix, rows, held, out, count, columns, wrong)
    if first := int(device.read(wrong)[0]):  # synchronize!
        place = count - first
        raise wrong_row(place, int(device.read(rows[place : place + 1])[0]), indptr.size - 1)


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of s.R rows taken, each zeroed and filled."""
    filled = s.R * s.D * s.value
    return Cost(s.z, s.z * (s.index + s.value) + s.R * (2 * s.index + 16) + filled, work=(("row", s.R), ("pass", s.z)))


def arguments(case: Case) -> tuple:
    """Build operands from `case`: A, rows of it in random order, some twice, and a result that has none of them."""
    rows = np.random.default_rng(case.seed).integers(0, max(case.R, 1), case.R)
    return case.indptr, case.indices, case.data, rows, np.full(case.R, -1), case.garbage(case.R, case.D)


register_kernel(
    __name__,
    "rows_to_dense",
    "indptr:i[M+1]^z indices:i[z]<D data:f[z] rows:l[R]<M held:l[R] out:f[R,D]",
    writes=("held", "out"),
)
