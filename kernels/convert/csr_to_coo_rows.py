"""row[k] = the row that entry k of a CSR matrix stands in.

Arguments  indptr int32|int64 [R+1] - row starts, the first one 0
Writes     nothing; returns row, type of indptr [z]
Assumes    indptr does not decrease and starts at 0
Cost       no flops; reads (R+1)*index bytes, writes z*index
Parallel   over rows, in parts of equal cost; the result is unique
Limits     z < 2**63, R within the index type
Source     Definition of the coordinate form
"""

import numpy as np
from numba import prange

from kernels import devices
from kernels.contract import Case, Cost, Sizes, register_kernel
from kernels.gpu import indices
from kernels.threads import compiled, compiled_parallel, equal_cost, is_serial, parts


def reference(indptr):
    """Compute the row of each stored entry in plain loops.

    indptr int32|int64 [R+1], row pointers from 0. Returns a new array [z] of its dtype.
    """
    return np.array([r for r in range(indptr.size - 1) for _ in range(indptr[r], indptr[r + 1])], indptr.dtype)


@compiled
def _rows(indptr, row, first, last):
    """Write r to row[indptr[r]:indptr[r + 1]] for the rows first <= r < last."""
    for r in range(first, last):
        for k in range(np.uint64(indptr[r]), np.uint64(indptr[r + 1])):
            row[k] = r


@compiled_parallel
def _parallel(indptr, row, bounds):
    """Write the row of each entry to row [z] on several threads; part p does rows bounds[p] to bounds[p + 1] - 1."""
    for part in prange(bounds.size - 1):
        _rows(indptr, row, bounds[part], bounds[part + 1])


def cpu(indptr):
    """Compute the row of each stored entry on the CPU.

    indptr int32|int64 [R+1], row pointers from 0. Returns a new array [z] of its dtype.
    """
    row = np.empty(indptr[-1], indptr.dtype)
    if is_serial(row.size // 8):  # eight entries are written in the time of a multiply-add
        _rows(indptr, row, 0, indptr.size - 1)
    else:
        _parallel(indptr, row, equal_cost(indptr, parts()))
    return row


def gpu(indptr):
    """Compute the row of each stored entry on a CUDA device.

    indptr int32|int64 [R+1], row pointers from 0. Returns a new array [z] of its dtype.
    """
    size = int(devices.device_of(indptr).read(indptr[indptr.size - 1 :])[0])  # synchronize!
    return indices.rows_of(indptr, size, indptr.dtype)


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a call with sizes `s`: row pointers are read, rows are written."""
    return Cost(0, (s.R + 1 + s.z) * s.index, work=(("row", s.R), ("pass", s.z)))


def arguments(case: Case) -> tuple:
    """Build operands of a call from `case`: the row pointers of A."""
    return (case.indptr,)


register_kernel(__name__, "csr_to_coo_rows", "indptr:i[R+1]^", writes=())
