"""out = (A.T @ g)[columns]: the gradient of a weight on the touched rows, through the batch plan.

Arguments  segments int32|int64 [U+1], rows same type [z], permutation same type [z] - the plan's; data float32|float64
           [z] - the batch's values in the batch's own order; g same [R, N]
Writes     out [U, N], overwritten; row u is the gradient of column plan.columns[u]; nothing else changes
Assumes    the plan is that of the batch whose values these are; duplicates are summed
Cost       2*z*N flops; reads z*(2*index+value) + (U+1)*index + R*N*value bytes, writes U*N*value; nothing grows with D
Parallel   over touched columns, in parts of equal cost; a column has one thread, rows ascending: same bits always
Limits     z < 2**63; one column with most of the entries stays on one thread
Source     Gustavson 1978 on A.T in CSR form, restricted to the rows that are not empty
"""

import numpy as np
from numba import prange

from kernels import plan
from kernels.contract import Case, Cost, Kernel, Sizes
from kernels.registry import register
from kernels.threads import compiled, compiled_parallel, equal_cost, is_serial, parts


def reference(segments, rows, permutation, data, g, out):
    """The definition, in plain loops."""
    out[...] = 0
    for u in range(out.shape[0]):
        for k in range(segments[u], segments[u + 1]):
            for n in range(out.shape[1]):
                out[u, n] += data[permutation[k]] * g[rows[k], n]


@compiled
def _columns(segments, rows, permutation, data, g, out, first, last):
    for u in range(first, last):
        out[u, :] = 0
        for k in range(segments[u], segments[u + 1]):
            value, row = data[np.uint64(permutation[k])], np.uint64(rows[k])
            for n in range(out.shape[1]):
                out[u, n] += value * g[row, n]


@compiled
def _column_sums(segments, rows, permutation, data, g, out, first, last):
    """`_columns` for N = 1: the sum stays in a register."""
    for u in range(first, last):
        total = data.dtype.type(0)
        for k in range(np.uint64(segments[u]), np.uint64(segments[u + 1])):
            total += data[np.uint64(permutation[k])] * g[np.uint64(rows[k])]
        out[u] = total


@compiled_parallel
def _columns_parallel(segments, rows, permutation, data, g, out, bounds):
    for part in prange(bounds.size - 1):
        _columns(segments, rows, permutation, data, g, out, bounds[part], bounds[part + 1])


@compiled_parallel
def _column_sums_parallel(segments, rows, permutation, data, g, out, bounds):
    for part in prange(bounds.size - 1):
        _column_sums(segments, rows, permutation, data, g, out, bounds[part], bounds[part + 1])


def cpu(segments, rows, permutation, data, g, out):
    """On the cores of this machine."""
    serial, parallel = _columns, _columns_parallel
    work = data.size * g.shape[1]
    if g.shape[1] == 1:
        serial, parallel, g, out = _column_sums, _column_sums_parallel, g.reshape(-1), out.reshape(-1)
    if is_serial(work):
        serial(segments, rows, permutation, data, g, out, 0, out.shape[0])
    else:
        parallel(segments, rows, permutation, data, g, out, equal_cost(segments, parts()))


gpu = None


def cost(s: Sizes) -> Cost:
    """Each row of g moves once."""
    fixed = s.z * (2 * s.index + s.value) + (s.U + 1) * s.index + s.U * s.N * s.value
    return Cost(2 * s.z * s.N, fixed + s.R * s.N * s.value, s.z * s.N * s.value)


def arguments(case: Case) -> tuple:
    """The plan of A, its values, a dense g, and a result to overwrite."""
    batch = plan.build(case.indptr, case.indices, case.D)
    g, out = case.dense(case.R, case.N), case.garbage(batch.touched, case.N)
    return batch.segments, batch.rows, batch.permutation, case.data, g, out


register(
    Kernel(
        name="csr_t_dense",
        operands="segments:i[U+1] rows:i[z] permutation:i[z] data:f[z] g:f[R,N] out:f[U,N]",
        reference=reference,
        cpu=cpu,
        gpu=gpu,
        cost=cost,
        arguments=arguments,
    )
)
