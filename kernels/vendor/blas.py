"""The dense products of a model that knows no sparsity, by the BLAS that NumPy is linked with.

blas.dense_dense    out = x @ w
blas.dense_t_dense  out = x.T @ g, without a transposed copy

Arguments  x float32|float64 [R, D]; w same [D, N]; g same [R, N]
Writes     out [R, N] or [D, N], overwritten; nothing else changes
Assumes    C order; BLAS gets x with its transposed flag set
Cost       2*R*D*N flops; reads R*D*value bytes and the other operand, writes the result
Parallel   as BLAS does, on the threads that threadpoolctl sets for it, not Numba's; the order of sums is its own
Limits     memory: R*D*value bytes for x
Source     numpy.matmul with out: gemm, or gemv for N = 1
"""

import numpy as np

from kernels.contract import Case, Cost, Kernel, Sizes
from kernels.registry import register


def reference_dense_dense(x, w, out):
    """Compute out = x @ w in plain loops; x [R, D], w [D, N]; out [R, N] is overwritten."""
    out[...] = 0
    for r in range(x.shape[0]):
        for d in range(x.shape[1]):
            for n in range(out.shape[1]):
                out[r, n] += x[r, d] * w[d, n]


def reference_dense_t_dense(x, g, out):
    """Compute out = x.T @ g in plain loops; x [R, D], g [R, N]; out [D, N] is overwritten."""
    out[...] = 0
    for r in range(x.shape[0]):
        for d in range(x.shape[1]):
            for n in range(out.shape[1]):
                out[d, n] += x[r, d] * g[r, n]


def cpu_dense_dense(x, w, out):
    """Compute out = x @ w by NumPy's BLAS; x [R, D], w [D, N], float32|float64; out [R, N] is overwritten."""
    np.matmul(x, w, out=out)


def cpu_dense_t_dense(x, g, out):
    """Compute out = x.T @ g by NumPy's BLAS; x [R, D], g [R, N]; out [D, N] is overwritten."""
    np.matmul(x.T, g, out=out)


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of either product: each of the operands [R, D], [D, N], [R, N] moves once."""
    return Cost(2 * s.R * s.D * s.N, (s.R * s.D + s.D * s.N + s.R * s.N) * s.value)


def arguments_dense_dense(case: Case) -> tuple:
    """Build operands of a call from `case`: A in dense form, a dense w, and a result to overwrite."""
    return _dense(case), case.dense(case.D, case.N), case.garbage(case.R, case.N)


def arguments_dense_t_dense(case: Case) -> tuple:
    """Build operands of a call from `case`: A in dense form, a dense g, and a result to overwrite."""
    return _dense(case), case.dense(case.R, case.N), case.garbage(case.D, case.N)


def _dense(case: Case) -> np.ndarray:
    """Return the CSR matrix of a case as a dense array [R, D] of its dtype; duplicates are summed."""
    dense = np.zeros((case.R, case.D), case.dtype)
    np.add.at(dense, (np.repeat(np.arange(case.R), np.diff(case.indptr)), case.indices), case.data)
    return dense


register(
    Kernel(
        name="blas.dense_dense",
        operands="x:f[R,D] w:f[D,N] out:f[R,N]",
        reference=reference_dense_dense,
        cpu=cpu_dense_dense,
        gpu=None,
        cost=cost,
        arguments=arguments_dense_dense,
    )
)
register(
    Kernel(
        name="blas.dense_t_dense",
        operands="x:f[R,D] g:f[R,N] out:f[D,N]",
        reference=reference_dense_t_dense,
        cpu=cpu_dense_t_dense,
        gpu=None,
        cost=cost,
        arguments=arguments_dense_t_dense,
    )
)
