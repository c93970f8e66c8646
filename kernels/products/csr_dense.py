"""out = A @ x, A in CSR form, x dense.

Arguments  indptr int32|int64 [R+1] - row starts; indices same type [z]; data float32|float64 [z]; x same [D, N]
Writes     out [R, N], overwritten; nothing else changes
Assumes    0 <= indices < D; duplicates are summed; columns may be unsorted
Cost       2*z*N flops; reads z*(index+value) + (R+1)*index + U*N*value bytes, writes R*N*value
Parallel   over rows, in parts of equal cost; same bits on every run and thread count
Limits     z < 2**63, R*N < 2**63
Source     Gustavson 1978, row-wise form; differs: the result is dense, so columns are not merged
"""

import numpy as np
from numba import prange

from kernels.contract import Case, Cost, Kernel, Sizes
from kernels.registry import register
from kernels.threads import compiled, compiled_parallel, equal_cost, is_serial, parts


def reference(indptr, indices, data, x, out):
    """The definition, in plain loops."""
    out[...] = 0
    for r in range(out.shape[0]):
        for k in range(indptr[r], indptr[r + 1]):
            for n in range(out.shape[1]):
                out[r, n] += data[k] * x[indices[k], n]


@compiled
def _rows(indptr, indices, data, x, out, first, last):
    for r in range(first, last):
        out[r, :] = 0
        for k in range(indptr[r], indptr[r + 1]):
            value, column = data[k], np.uint64(indices[k])
            for n in range(out.shape[1]):
                out[r, n] += value * x[column, n]


@compiled
def _row_sums(indptr, indices, data, x, out, first, last):
    """`_rows` for N = 1: four sums at a time, since each multiply-add has to wait for the one before it."""
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    for r in range(first, last):
        a = b = c = d = data.dtype.type(0)
        k, end = np.uint64(indptr[r]), np.uint64(indptr[r + 1])
        while k + four <= end:
            a += data[k] * x[np.uint64(indices[k])]
            b += data[k + one] * x[np.uint64(indices[k + one])]
            c += data[k + two] * x[np.uint64(indices[k + two])]
            d += data[k + three] * x[np.uint64(indices[k + three])]
            k += four
        while k < end:
            a += data[k] * x[np.uint64(indices[k])]
            k += one
        out[r] = (a + b) + (c + d)


@compiled_parallel
def _rows_parallel(indptr, indices, data, x, out, bounds):
    for part in prange(bounds.size - 1):
        _rows(indptr, indices, data, x, out, bounds[part], bounds[part + 1])


@compiled_parallel
def _row_sums_parallel(indptr, indices, data, x, out, bounds):
    for part in prange(bounds.size - 1):
        _row_sums(indptr, indices, data, x, out, bounds[part], bounds[part + 1])


def cpu(indptr, indices, data, x, out):
    """On the cores of this machine."""
    serial, parallel = _rows, _rows_parallel
    work = data.size * x.shape[1]
    if x.shape[1] == 1:
        serial, parallel, x, out = _row_sums, _row_sums_parallel, x.reshape(-1), out.reshape(-1)
    if is_serial(work):
        serial(indptr, indices, data, x, out, 0, out.shape[0])
    else:
        parallel(indptr, indices, data, x, out, equal_cost(indptr, parts()))


gpu = None


def cost(s: Sizes) -> Cost:
    """Each distinct row of x moves once."""
    fixed = s.z * (s.index + s.value) + (s.R + 1) * s.index + s.R * s.N * s.value
    return Cost(2 * s.z * s.N, fixed + s.U * s.N * s.value, s.z * s.N * s.value)


def arguments(case: Case) -> tuple:
    """A, a dense x, and a result to overwrite."""
    return case.indptr, case.indices, case.data, case.dense(case.D, case.N), case.garbage(case.R, case.N)


register(
    Kernel(
        name="csr_dense",
        operands="indptr:i[R+1] indices:i[z] data:f[z] x:f[D,N] out:f[R,N]",
        reference=reference,
        cpu=cpu,
        gpu=gpu,
        cost=cost,
        arguments=arguments,
    )
)
