"""AdaGrad with weight decay; all operations by element.

adagrad_dense  d = g + decay * w;  h += d * d;  w -= rate * d / (sqrt(h) + epsilon), for every row
adagrad_lazy   the same with w[rows] and h[rows], the other rows unchanged
               Equal when decay = 0: a row that is not touched has d = 0, which changes neither h nor w

Arguments  weights float32|float64 [D, N]; history same, h, not negative; rows int64 [U], sorted, unique; gradient same
           as weights [D, N] or [U, N]; rate, decay, epsilon > 0 numbers, rounded to the type of weights
Writes     weights, history; nothing else changes
Assumes    0 <= rows < D, none repeated
Cost       a row: 8*N flops, reads 3*N*value bytes (lazy: 8 more), writes 2*N*value; lazy: nothing grows with D
Parallel   over rows or elements, in parts of equal size; same bits on every run and thread count
Limits     D*N < 2**63
Source     Duchi, Hazan and Singer 2011, diagonal form; differs: epsilon outside the root, as most libraries have it
"""

import math

import numpy as np
from numba import prange

from kernels.contract import Case, Cost, Kernel, Sizes
from kernels.registry import register
from kernels.threads import compiled, compiled_parallel, equal_count, is_serial, parts


def reference_dense(weights, history, gradient, rate, decay, epsilon):
    """The definition, in plain loops."""
    reference_lazy(weights, history, np.arange(weights.shape[0]), gradient, rate, decay, epsilon)


def reference_lazy(weights, history, rows, gradient, rate, decay, epsilon):
    """The definition, in plain loops."""
    for u, row in enumerate(rows):
        for n in range(weights.shape[1]):
            w = float(weights[row, n])
            d = float(gradient[u, n]) + decay * w
            h = float(history[row, n]) + d * d
            history[row, n] = h
            weights[row, n] = w - rate * d / (math.sqrt(h) + epsilon)


@compiled
def _step(w, h, g, rate, decay, epsilon):
    """(weight, history) after the step."""
    d = g + decay * w
    h = h + d * d
    return w - rate * d / (math.sqrt(h) + epsilon), h


@compiled
def _elements(weights, history, gradient, rate, decay, epsilon):
    for k in range(weights.size):
        weights[k], history[k] = _step(weights[k], history[k], gradient[k], rate, decay, epsilon)


@compiled
def _rows(weights, history, rows, gradient, rate, decay, epsilon, first, last):
    for u in range(first, last):
        row = rows[u]
        for n in range(weights.shape[1]):
            w, h = _step(weights[row, n], history[row, n], gradient[u, n], rate, decay, epsilon)
            weights[row, n], history[row, n] = w, h


@compiled_parallel
def _elements_parallel(weights, history, gradient, rate, decay, epsilon, bounds):
    for i in prange(bounds.size - 1):
        part = slice(bounds[i], bounds[i + 1])
        _elements(weights[part], history[part], gradient[part], rate, decay, epsilon)


@compiled_parallel
def _rows_parallel(weights, history, rows, gradient, rate, decay, epsilon, bounds):
    for part in prange(bounds.size - 1):
        _rows(weights, history, rows, gradient, rate, decay, epsilon, bounds[part], bounds[part + 1])


def cpu_dense(weights, history, gradient, rate, decay, epsilon):
    """On the cores of this machine."""
    numbers = map(weights.dtype.type, (rate, decay, epsilon))
    flat = (weights.reshape(-1), history.reshape(-1), gradient.reshape(-1), *numbers)
    if is_serial(4 * weights.size):
        _elements(*flat)
    else:
        _elements_parallel(*flat, equal_count(weights.size, parts()))


def cpu_lazy(weights, history, rows, gradient, rate, decay, epsilon):
    """On the cores of this machine."""
    numbers = tuple(map(weights.dtype.type, (rate, decay, epsilon)))
    if is_serial(4 * gradient.size):
        _rows(weights, history, rows, gradient, *numbers, 0, rows.size)
    else:
        _rows_parallel(weights, history, rows, gradient, *numbers, equal_count(rows.size, parts()))


def cost_dense(s: Sizes) -> Cost:
    """Every row of weights, history and gradient moves once."""
    return Cost(8 * s.D * s.N, 5 * s.D * s.N * s.value)


def cost_lazy(s: Sizes) -> Cost:
    """Every touched row moves once."""
    return Cost(8 * s.U * s.N, s.U * (8 + 5 * s.N * s.value))


def arguments_dense(case: Case) -> tuple:
    """Weights, a history, and a gradient for all of them."""
    history = np.square(case.dense(case.D, case.N, salt=2))
    return case.dense(case.D, case.N), history, case.dense(case.D, case.N, salt=1), 0.25, 0.5, 1e-2


def arguments_lazy(case: Case) -> tuple:
    """Weights, a history, and a gradient for the columns that A touches."""
    weights, history, _, *numbers = arguments_dense(case)
    rows = np.unique(case.indices).astype(np.int64)
    return weights, history, rows, case.dense(rows.size, case.N, salt=1), *numbers


register(
    Kernel(
        name="adagrad_dense",
        operands="weights:f[D,N] history:f[D,N] gradient:f[D,N] rate:s decay:s epsilon:s",
        reference=reference_dense,
        cpu=cpu_dense,
        gpu=None,
        cost=cost_dense,
        arguments=arguments_dense,
        writes=("weights", "history"),
    )
)
register(
    Kernel(
        name="adagrad_lazy",
        operands="weights:f[D,N] history:f[D,N] rows:l[U] gradient:f[U,N] rate:s decay:s epsilon:s",
        reference=reference_lazy,
        cpu=cpu_lazy,
        gpu=None,
        cost=cost_lazy,
        arguments=arguments_lazy,
        writes=("weights", "history"),
    )
)
