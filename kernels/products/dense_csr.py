"""out = x @ A, x dense, A in CSR form.

Arguments  x float32|float64 [N, R]; indptr int32|int64 [R+1] - row starts; indices same type [z]; data same as x [z]
Writes     out [N, D], overwritten; nothing else changes
Assumes    0 <= indices < D; duplicates are summed; columns may be unsorted
Cost       2*z*N flops; reads z*(index+value) + (R+1)*index + 3*R*N*value bytes, writes 3*D*N*value and U*N*value again
Parallel   as csr_t_dense_full; same bits on every run and thread count
Limits     z < 2**63, D*N < 2**63; the cost grows with D whatever the batch
Source     (A.T @ x.T).T: x and the result are transposed in memory, so that rows of vectors are summed
"""

import numpy as np

from kernels.contract import Case, Cost, Sizes, register_kernel
from kernels.gradients import csr_t_dense_full


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
