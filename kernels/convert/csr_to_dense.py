"""out = A, dense, from A in CSR form.

Arguments  indptr int32|int64 [R+1] - row starts; indices same type [z]; data float32|float64 [z]
Writes     out [R, D], overwritten; nothing else changes
Assumes    0 <= indices < D; duplicates are summed in their order; columns may be unsorted
Cost       z flops; reads z*(index+value) + (R+1)*index bytes, writes R*D*value
Parallel   over rows, in parts of equal cost; same bits on every run and thread count
Limits     z < 2**63, R*D < 2**63
Source     Definition of the compressed form
"""

import numpy as np
from numba import prange

from kernels import devices
from kernels.contract import Case, Cost, Sizes, register_kernel
from kernels.gpu.source import FLOATS, blocks, c_name, source
from kernels.threads import compiled, compiled_parallel, equal_cost, is_serial, parts


def reference(indptr, indices, data, out):
    """Write A in dense form to out in plain loops.

    A in CSR form: indptr [R+1] and indices [z] int32|int64, data [z]. out [R, D] float32|float64 as data is
    overwritten; duplicates are summed.
    """
    out[...] = 0
    for r in range(out.shape[0]):
        for k in range(indptr[r], indptr[r + 1]):
            out[r, indices[k]] += data[k]


@compiled
def _rows(indptr, indices, data, out, first, last):
    """Overwrite rows first to last - 1 of out [R, D] by those of A; duplicates are summed.

    A is in CSR form (indptr, indices, data).
    """
    for r in range(first, last):
        row = out[r]
        row[:] = 0
        for k in range(np.uint64(indptr[r]), np.uint64(indptr[r + 1])):
            row[np.uint64(indices[k])] += data[k]


@compiled_parallel
def _parallel(indptr, indices, data, out, bounds):
    """Overwrite out [R, D] by A on several threads; part p does rows bounds[p] to bounds[p + 1] - 1.

    A is in CSR form (indptr, indices, data).
    """
    for part in prange(bounds.size - 1):
        _rows(indptr, indices, data, out, bounds[part], bounds[part + 1])


def cpu(indptr, indices, data, out):
    """Write A in dense form to out on the CPU.

    A in CSR form: indptr [R+1] and indices [z] int32|int64, data [z]. out [R, D] float32|float64 as data is
    overwritten; duplicates are summed.
    """
    if is_serial(data.size + out.size):
        _rows(indptr, indices, data, out, 0, out.shape[0])
    else:
        _parallel(indptr, indices, data, out, equal_cost(indptr, parts(), per_row=out.shape[1]))


_CUDA = source(__file__, [f"csr_to_dense<{value}>" for value in FLOATS])


def gpu(indptr, indices, data, out):
    """Write A in dense form to out on a CUDA device.

    A in CSR form: indptr [R+1] and indices [z] int32|int64, data [z]. out [R, D] float32|float64 as data is
    overwritten; duplicates are summed.
    """
    rows, columns = out.shape
    name, wide = f"csr_to_dense<{c_name(out.dtype)}>", indptr.dtype.itemsize == 8
    devices.device_of(out).launch(_CUDA, name, blocks(32 * rows), indptr, indices, wide, data, out, rows, columns)


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a call with sizes `s`: the result is filled once and added to in the cache."""
    return Cost(s.z, s.z * (s.index + s.value) + (s.R + 1) * s.index + s.R * s.D * s.value)


def arguments(case: Case) -> tuple:
    """Build operands of a call from `case`: A and a result to overwrite."""
    return case.indptr, case.indices, case.data, case.garbage(case.R, case.D)


register_kernel(__name__, "csr_to_dense", "indptr:i[R+1]^z indices:i[z]<D data:f[z] out:f[R,D]")
