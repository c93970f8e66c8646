"""Loops in plain Numba, as written by hand without vector code of our own: what that code has to be worth.

numba.csr_dense      out = A @ x, A in CSR form
numba.adagrad_fused  adagrad_fused: the sum over a column's entries in a buffer of N numbers, then the step

Arguments  as those of csr_dense, adagrad_fused
Writes     out, or weights and history; nothing else changes
Assumes    indices in range, as ours do
Cost       flops and bytes as of the kernel that each competes with
Parallel   over rows or columns, in the parts of equal cost and on the threads of the kernel that each competes with
Limits     z < 2**63
Source     The same loops in Python, compiled: sums of one column in a register, of more in the row of the result
"""

import numpy as np
from numba import prange

from benchmarks.competitors import register_competitor
from kernels.rules.rule import get_rule
from kernels.threads import call_parallel, compiled, compiled_parallel, equal_cost, parts
from kernels.vector.gather import work_of


@compiled
def _add_rows(indices, data, x, first, last, total):
    """Overwrite total [N] by the sum of data[k] * x[indices[k]] over first <= k < last."""
    total[:] = 0
    for k in range(np.uint64(first), np.uint64(last)):
        value, row = data[k], x[np.uint64(indices[k])]
        for n in range(total.size):
            total[n] += value * row[n]


@compiled
def _add_numbers(indices, data, x, first, last):
    """Return the sum of data[k] * x[indices[k], 0] over first <= k < last."""
    total = data.dtype.type(0)
    for k in range(np.uint64(first), np.uint64(last)):
        total += data[k] * x[np.uint64(indices[k]), 0]
    return total


@compiled
def _sum(indices, data, x, first, last, total):
    """Overwrite total [N] by the sum of data[k] * x[indices[k]] over first <= k < last."""
    if total.size == 1:
        total[0] = _add_numbers(indices, data, x, first, last)
    else:
        _add_rows(indices, data, x, first, last, total)


@compiled_parallel
def _products(indptr, indices, data, x, out, bounds):
    """Overwrite out [R, N] by A @ x on several threads; part p does rows bounds[p] to bounds[p + 1] - 1.

    A is in CSR form (indptr, indices, data), x [D, N].
    """
    for part in prange(bounds.size - 1):
        for r in range(bounds[part], bounds[part + 1]):
            _sum(indices, data, x, indptr[r], indptr[r + 1], out[r])


def csr_dense(indptr, indices, data, x, out):
    """Compute out = A @ x by plain loops of Numba on all threads; out [R, N] is overwritten.

    A is in CSR form (indptr, indices, data), x [D, N].
    """
    work = work_of(data.size, x.shape[1], out.shape[0])
    call_parallel(_products, work, indptr, indices, data, x, out, equal_cost(indptr, parts()))


@compiled
def _step(weights, history, g, learning_rate, decay, epsilon, rescale, clip):
    """Take a step of AdaGrad on one row of weights [N] and history [N] in place, by its gradient g [N].

    d = clip(rescale * g), limited to [-clip, clip]; history += d * d; weights -= learning_rate * (d / sqrt(history +
    epsilon) + decay * weights).
    """
    for n in range(weights.size):
        d = rescale * g[n]
        if clip < d:
            d = clip
        if d < -clip:
            d = -clip
        history[n] += d * d
        weights[n] -= learning_rate * (d / np.sqrt(history[n] + epsilon) + decay * weights[n])


@compiled_parallel
def _steps(weights, history, columns, segments, rows, values, g, settings, bounds):
    """Take a step of AdaGrad on the rows `columns` of weights and history in place by (A.T @ g)[columns], in parallel.

    columns, segments, rows, values are the batch in column order, `settings` the last five parameters of `_step`; part
    p does columns bounds[p] to bounds[p + 1] - 1.
    """
    for part in prange(bounds.size - 1):
        total = np.empty(g.shape[1], g.dtype)  # [N]
        for u in range(bounds[part], bounds[part + 1]):
            column = np.uint64(columns[u])
            _sum(rows, values, g, segments[u], segments[u + 1], total)
            _step(weights[column], history[column], total, *settings)


def adagrad_fused(weights, history, columns, segments, rows, values, g, learning_rate, decay, epsilon, rescale, clip):
    """Take a lazy step of AdaGrad by the gradient (A.T @ g)[columns] in plain Numba; weights and history in place.

    columns, segments, rows, values: the batch in column order; g [R, N]. learning_rate, decay, epsilon, rescale, clip
    are as in `_step`.
    """
    rule, kind = get_rule("adagrad"), weights.dtype.type
    settings = tuple(map(kind, (learning_rate, decay, epsilon, rescale, clip)))
    width = g.shape[1]
    work = work_of(rows.size, width, columns.size) + rule.work(columns.size, width)
    operands = weights, history, columns, segments, rows, values, g
    call_parallel(_steps, work, *operands, settings, equal_cost(segments, parts(), rule.row_cost))


for _cpu in (csr_dense, adagrad_fused):
    register_competitor("numba", _cpu.__name__, _cpu)
