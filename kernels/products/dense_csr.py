"""out = x @ A, x dense, A in CSR form.

Arguments  x float32|float64 [N, R]; indptr int32|int64 [R+1] - row starts; indices same type [z]; data same as x [z]
Writes     out [N, D], overwritten; nothing else changes
Assumes    0 <= indices < D; duplicates are summed; columns may be unsorted
Cost       2*z*N flops; reads z*(index+value) + (R+1)*index + 3*R*N*value bytes, writes 3*D*N*value and U*N*value again
Parallel   as csr_t_dense_full; same bits on every run and thread count
Limits     z < 2**63, D*N < 2**63; the cost grows with D whatever the batch
Source     (A.T @ x.T).T: x and the result are transposed in memory, so that rows of vectors are summed
"""

from typing import Any

import numpy as np

from kernels import devices
from kernels.contract import Case, Cost, Sizes, register_kernel
from kernels.gpu.source import FLOATS, c_name, grid, source
from kernels.gradients import csr_t_dense_full

SIDE = 32
"""Rows and columns of a square, as in `transpose.cu`."""

_CUDA = source(__file__, [f"transpose<{value}>" for value in FLOATS], "transpose.cu", "transpose")


def transpose(x: Any, out: Any = None) -> Any:
    """Return x.T [N, R] of device array `x` [R, N], in C order; written to `out` if given, else to a new array."""
    device, (rows, columns) = devices.device_of(x), x.shape
    if out is None:
        out = device.empty((columns, rows), x.dtype)
    squares = -(-rows // SIDE) * -(-columns // SIDE)
    if squares:
        device.launch(_CUDA, f"transpose<{c_name(x.dtype)}>", grid(squares), x, out, rows, columns)
    return out


def reference(x, indptr, indices, data, out):
    """Compute out = x @ A in plain loops.

    x [N, R]; A in CSR form: indptr [R+1] and indices [z] int32|int64, data [z], shape [R, D]. out [N, D],
    float32|float64 as x and data, is overwritten. Duplicates are summed.
    """
    out[...] = 0
    for r in range(indptr.size - 1):
        for k in range(indptr[r], indptr[r + 1]):
            for n in range(out.shape[0]):
                out[n, indices[k]] += x[n, r] * data[k]


def cpu(x, indptr, indices, data, out):
    """Compute out = x @ A on the CPU.

    x [N, R]; A in CSR form: indptr [R+1] and indices [z] int32|int64, data [z], shape [R, D]. out [N, D],
    float32|float64 as x and data, is overwritten. Duplicates are summed.
    """
    turned = np.empty(out.shape[::-1], out.dtype)  # [D, N]
    csr_t_dense_full.cpu(indptr, indices, data, np.ascontiguousarray(x.T), turned)
    out[...] = turned.T


def gpu(x, indptr, indices, data, out):
    """Compute out = x @ A on a CUDA device.

    x [N, R]; A in CSR form: indptr [R+1] and indices [z] int32|int64, data [z], shape [R, D]. out [N, D],
    float32|float64 as x and data, is overwritten. Duplicates are summed.
    """
    turned = devices.device_of(out).empty(out.shape[::-1], out.dtype)  # [D, N]
    csr_t_dense_full.gpu(indptr, indices, data, transpose(x), turned)
    transpose(turned, out)


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a call with sizes `s`: x is read, its transpose written and read.

    The result is written, its transpose written and read.
    """
    fixed = s.z * (s.index + s.value) + (s.R + 1) * s.index + 3 * s.R * s.N * s.value
    return Cost(2 * s.z * s.N, fixed + (3 * s.D + 2 * s.U) * s.N * s.value, s.z * s.N * s.value)


def arguments(case: Case) -> tuple:
    """Build operands of a call from `case`: a dense x, A, and a result to overwrite."""
    return case.dense(case.N, case.R), case.indptr, case.indices, case.data, case.garbage(case.N, case.D)


register_kernel(__name__, "dense_csr", "x:f[N,R] indptr:i[R+1]^z indices:i[z]<D data:f[z] out:f[N,D]")
