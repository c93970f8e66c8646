"""out = A.T @ g, A in CSR form, g dense: the gradient of a weight with all its rows.

Arguments  indptr int32|int64 [R+1] - row starts; indices same type [z]; data float32|float64 [z]; g same [R, N]
Writes     out [D, N], overwritten; nothing else changes
Assumes    0 <= indices < D; duplicates are summed; columns may be unsorted
Cost       2*z*N flops; reads z*(index+value) + (R+1)*index + R*N*value bytes, writes D*N*value and U*N*value again
Parallel   over ranges of features, each with one thread; serial where columns of a row are unsorted and rows of g
           shorter than a cache line. An element is summed in the order of the entries: same bits on every run and
           thread count
Limits     z < 2**63, D*N < 2**63; the cost grows with D whatever the batch
Source     A in CSR form is A.T in CSC form: the kernel csc_dense
"""

from kernels.contract import Case, Cost, Sizes, register_kernel
from kernels.products import csc_dense


def reference(indptr, indices, data, g, out):
    """Compute out = A.T @ g in plain loops.

    A in CSR form: indptr [R+1] and indices [z] int32|int64, data [z], shape [R, D]. g [R, N], out [D, N]
    float32|float64 as data; out, the gradient of a weight with all its rows, is overwritten. Duplicates are summed.
    """
    out[...] = 0
    for r in range(indptr.size - 1):
        for k in range(indptr[r], indptr[r + 1]):
            for n in range(out.shape[1]):
                out[indices[k], n] += data[k] * g[r, n]


def cpu(indptr, indices, data, g, out):
    """Compute out = A.T @ g on the CPU.

    A in CSR form: indptr [R+1] and indices [z] int32|int64, data [z], shape [R, D]. g [R, N], out [D, N]
    float32|float64 as data; out, the gradient of a weight with all its rows, is overwritten. Duplicates are summed.
    """
    csc_dense.cpu(indptr, indices, data, g, out)


def gpu(indptr, indices, data, g, out):
    """Compute out = A.T @ g on a CUDA device.

    A in CSR form: indptr [R+1] and indices [z] int32|int64, data [z], shape [R, D]. g [R, N], out [D, N]
    float32|float64 as data; out, the gradient of a weight with all its rows, is overwritten. Duplicates are summed.
    """
    csc_dense.gpu(indptr, indices, data, g, out)


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a call with sizes `s`: each row of g moves once.

    Out is zeroed, and its active rows are read and written again.
    """
    fixed = s.z * (s.index + s.value) + (s.R + 1) * s.index + s.R * s.N * s.value
    return Cost(2 * s.z * s.N, fixed + (s.D + 2 * s.U) * s.N * s.value, s.z * s.N * s.value)


def arguments(case: Case) -> tuple:
    """Build operands of a call from `case`: A, a dense g, and a result to overwrite."""
    return case.indptr, case.indices, case.data, case.dense(case.R, case.N), case.garbage(case.D, case.N)


register_kernel(__name__, "csr_t_dense_full", "indptr:i[R+1]^z indices:i[z]<D data:f[z] g:f[R,N] out:f[D,N]")
