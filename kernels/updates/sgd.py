"""Gradient descent with weight decay.

sgd_dense  w -= rate * (g + decay * w), for every row
sgd_lazy   w[rows] -= rate * (g + decay * w[rows]), the other rows unchanged
           Equal when decay = 0, or when every row is touched in every step

Arguments  weights float32|float64 [D, N]; rows int64 [U], sorted, unique; gradient same as weights [D, N] or [U, N];
           rate, decay numbers, rounded to the type of weights
Writes     weights; nothing else changes
Assumes    0 <= rows < D, none repeated
Cost       a row: 4*N flops, reads 2*N*value bytes (lazy: 8 more), writes N*value; lazy: nothing grows with D
Parallel   over rows or elements, in parts of equal size; same bits on every run and thread count
Limits     D*N < 2**63
Source     Robbins and Monro 1951; decay as an L2 penalty added to the gradient, not decoupled
"""

import numpy as np
from numba import prange

from kernels.contract import Case, Cost, Kernel, Sizes
from kernels.registry import register
from kernels.threads import compiled, compiled_parallel, equal_count, is_serial, parts


def reference_dense(weights, gradient, rate, decay):
    """The definition, in plain loops."""
    reference_lazy(weights, np.arange(weights.shape[0]), gradient, rate, decay)


def reference_lazy(weights, rows, gradient, rate, decay):
    """The definition, in plain loops."""
    for u, row in enumerate(rows):
        for n in range(weights.shape[1]):
            w = float(weights[row, n])
            weights[row, n] = w - rate * (float(gradient[u, n]) + decay * w)


@compiled
def _step(w, g, rate, decay):
    return w - rate * (g + decay * w)


@compiled
def _elements(weights, gradient, rate, decay):
    for k in range(weights.size):
        weights[k] = _step(weights[k], gradient[k], rate, decay)


@compiled
def _rows(weights, rows, gradient, rate, decay, first, last):
    for u in range(first, last):
        row = rows[u]
        for n in range(weights.shape[1]):
            weights[row, n] = _step(weights[row, n], gradient[u, n], rate, decay)


@compiled_parallel
def _elements_parallel(weights, gradient, rate, decay, bounds):
    for i in prange(bounds.size - 1):
        part = slice(bounds[i], bounds[i + 1])
        _elements(weights[part], gradient[part], rate, decay)


@compiled_parallel
def _rows_parallel(weights, rows, gradient, rate, decay, bounds):
    for part in prange(bounds.size - 1):
        _rows(weights, rows, gradient, rate, decay, bounds[part], bounds[part + 1])


def cpu_dense(weights, gradient, rate, decay):
    """On the cores of this machine."""
    as_type = weights.dtype.type
    flat = weights.reshape(-1), gradient.reshape(-1), as_type(rate), as_type(decay)
    if is_serial(weights.size):
        _elements(*flat)
    else:
        _elements_parallel(*flat, equal_count(weights.size, parts()))


def cpu_lazy(weights, rows, gradient, rate, decay):
    """On the cores of this machine."""
    as_type = weights.dtype.type
    if is_serial(gradient.size):
        _rows(weights, rows, gradient, as_type(rate), as_type(decay), 0, rows.size)
    else:
        _rows_parallel(weights, rows, gradient, as_type(rate), as_type(decay), equal_count(rows.size, parts()))


def cost_dense(s: Sizes) -> Cost:
    """Every row of weights and gradient moves once."""
    return Cost(4 * s.D * s.N, 3 * s.D * s.N * s.value)


def cost_lazy(s: Sizes) -> Cost:
    """Every touched row moves once."""
    return Cost(4 * s.U * s.N, s.U * (8 + 3 * s.N * s.value))


def arguments_dense(case: Case) -> tuple:
    """Weights and a gradient for all of them."""
    return case.dense(case.D, case.N), case.dense(case.D, case.N, salt=1), 0.25, 0.5


def arguments_lazy(case: Case) -> tuple:
    """Weights and a gradient for the columns that A touches."""
    rows = np.unique(case.indices).astype(np.int64)
    return case.dense(case.D, case.N), rows, case.dense(rows.size, case.N, salt=1), 0.25, 0.5


register(
    Kernel(
        name="sgd_dense",
        operands="weights:f[D,N] gradient:f[D,N] rate:s decay:s",
        reference=reference_dense,
        cpu=cpu_dense,
        gpu=None,
        cost=cost_dense,
        arguments=arguments_dense,
        writes=("weights",),
    )
)
register(
    Kernel(
        name="sgd_lazy",
        operands="weights:f[D,N] rows:l[U] gradient:f[U,N] rate:s decay:s",
        reference=reference_lazy,
        cpu=cpu_lazy,
        gpu=None,
        cost=cost_lazy,
        arguments=arguments_lazy,
        writes=("weights",),
    )
)
