"""out = x @ A.T, x dense, A in CSR form.

Arguments  x float32|float64 [N, D]; indptr int32|int64 [R+1] - row starts; indices same type [z]; data same as x [z]
Writes     out [N, R], overwritten; nothing else changes
Assumes    0 <= indices < D; duplicates are summed; columns may be unsorted
Cost       2*z*N flops; reads z*(index+value) + (R+1)*index + 2*D*N*value + U*N*value bytes, writes 3*R*N*value
Parallel   over rows of A, in parts of equal cost; same bits on every run and thread count
Limits     z < 2**63, D*N < 2**63; the cost grows with D, as x does
Source     (A @ x.T).T: x and the result are transposed in memory, so that rows of vectors are summed
"""

import numpy as np

from kernels import devices
from kernels.contract import Case, Cost, Sizes, register_kernel
from kernels.products import csr_dense
from kernels.products.dense_csr import transpose


def reference(x, indptr, indices, data, out):
    """Compute out = x @ A.T in plain loops.

    x [N, D]; A in CSR form: indptr [R+1] and indices [z] int32|int64, data [z], shape [R, D]. out [N, R],
    float32|float64 as x and data, is overwritten. Duplicates are summed.
    """
    out[...] = 0
    for r in range(indptr.size - 1):
        for k in range(indptr[r], indptr[r + 1]):
            for n in range(out.shape[0]):
                out[n, r] += x[n, indices[k]] * data[k]


def cpu(x, indptr, indices, data, out):
    """Compute out = x @ A.T on the CPU.

    x [N, D]; A in CSR form: indptr [R+1] and indices [z] int32|int64, data [z], shape [R, D]. out [N, R],
    float32|float64 as x and data, is overwritten. Duplicates are summed.
    """
    turned = np.empty(out.shape[::-1], out.dtype)  # [R, N]
    csr_dense.cpu(indptr, indices, data, np.ascontiguousarray(x.T), turned)
    out[...] = turned.T


def gpu(x, indptr, indices, data, out):
    """Compute out = x @ A.T on a CUDA device.

    x [N, D]; A in CSR form: indptr [R+1] and indices [z] int32|int64, data [z], shape [R, D]. out [N, R],
    float32|float64 as x and data, is overwritten. Duplicates are summed.
    """
    turned = devices.device_of(out).empty(out.shape[::-1], out.dtype)  # [R, N]
    csr_dense.gpu(indptr, indices, data, transpose(x), turned)
    transpose(turned, out)


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a call with sizes `s`: x is read, its transpose written, its distinct rows read.

    The result's transpose is written and read.
    """
    fixed = s.z * (s.index + s.value) + (s.R + 1) * s.index + 3 * s.R * s.N * s.value
    return Cost(2 * s.z * s.N, fixed + (2 * s.D + s.U) * s.N * s.value, s.z * s.N * s.value)


def arguments(case: Case) -> tuple:
    """Build operands of a call from `case`: a dense x, A, and a result to overwrite."""
    return case.dense(case.N, case.D), case.indptr, case.indices, case.data, case.garbage(case.N, case.R)


register_kernel(__name__, "dense_csr_t", "x:f[N,D] indptr:i[R+1]^z indices:i[z]<D data:f[z] out:f[N,R]")
