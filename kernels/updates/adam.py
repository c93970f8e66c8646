"""Adam with weight decay; all operations by element, t the step, counted from 1.

adam_dense  d = g + decay * w;  m = beta1 * m + (1 - beta1) * d;  v = beta2 * v + (1 - beta2) * d * d;
            w -= rate_t * m / (sqrt(v) + epsilon), with rate_t = rate * sqrt(1 - beta2^t) / (1 - beta1^t), for every row
adam_lazy   the same with w[rows], m[rows] and v[rows], the other rows unchanged; t counts all steps, touched or not
            Equal when every row is touched in every step; else the dense rule goes on moving a row by its old mean

Arguments  weights float32|float64 [D, N]; mean same, m; variance same, v, not negative; rows int64 [U], sorted, unique;
           gradient same as weights [D, N] or [U, N]; rate, decay, epsilon > 0, 0 <= beta1 < 1, 0 <= beta2 < 1 numbers;
           step int >= 1; numbers are rounded to the type of weights after rate_t and 1 - beta are computed
Writes     weights, mean, variance; nothing else changes
Assumes    0 <= rows < D, none repeated
Cost       a row: 13*N flops, reads 4*N*value bytes (lazy: 8 more), writes 3*N*value; lazy: nothing grows with D
Parallel   over rows or elements, in parts of equal size; same bits on every run and thread count
Limits     D*N < 2**63
Source     Kingma and Ba 2015, the efficient form of section 2; differs: lazy rows, decay as an L2 penalty
"""

import math

import numpy as np
from numba import prange

from kernels.contract import Case, Cost, Kernel, KernelError, Sizes
from kernels.registry import register
from kernels.threads import compiled, compiled_parallel, equal_count, is_serial, parts


def reference_dense(weights, mean, variance, gradient, rate, decay, beta1, beta2, epsilon, step):
    """The definition, in plain loops."""
    rows = np.arange(weights.shape[0])
    reference_lazy(weights, mean, variance, rows, gradient, rate, decay, beta1, beta2, epsilon, step)


def reference_lazy(weights, mean, variance, rows, gradient, rate, decay, beta1, beta2, epsilon, step):
    """The definition, in plain loops."""
    rate_t = rate * math.sqrt(1 - beta2**step) / (1 - beta1**step)
    for u, row in enumerate(rows):
        for n in range(weights.shape[1]):
            w = float(weights[row, n])
            d = float(gradient[u, n]) + decay * w
            m = beta1 * float(mean[row, n]) + (1 - beta1) * d
            v = beta2 * float(variance[row, n]) + (1 - beta2) * d * d
            mean[row, n], variance[row, n] = m, v
            weights[row, n] = w - rate_t * m / (math.sqrt(v) + epsilon)


@compiled
def _step(w, m, v, g, numbers):
    """(weight, mean, variance) after the step."""
    rate, decay, beta1, rest1, beta2, rest2, epsilon = numbers
    d = g + decay * w
    m = beta1 * m + rest1 * d
    v = beta2 * v + rest2 * (d * d)
    return w - rate * m / (math.sqrt(v) + epsilon), m, v


@compiled
def _elements(weights, mean, variance, gradient, numbers):
    for k in range(weights.size):
        weights[k], mean[k], variance[k] = _step(weights[k], mean[k], variance[k], gradient[k], numbers)


@compiled
def _rows(weights, mean, variance, rows, gradient, numbers, first, last):
    for u in range(first, last):
        row = rows[u]
        for n in range(weights.shape[1]):
            w, m, v = _step(weights[row, n], mean[row, n], variance[row, n], gradient[u, n], numbers)
            weights[row, n], mean[row, n], variance[row, n] = w, m, v


@compiled_parallel
def _elements_parallel(weights, mean, variance, gradient, numbers, bounds):
    for i in prange(bounds.size - 1):
        part = slice(bounds[i], bounds[i + 1])
        _elements(weights[part], mean[part], variance[part], gradient[part], numbers)


@compiled_parallel
def _rows_parallel(weights, mean, variance, rows, gradient, numbers, bounds):
    for part in prange(bounds.size - 1):
        _rows(weights, mean, variance, rows, gradient, numbers, bounds[part], bounds[part + 1])


def _numbers(dtype: np.dtype, rate, decay, beta1, beta2, epsilon, step) -> tuple:
    """What an element's step needs, in the type of the weights: a float64 number would promote float32 arithmetic."""
    if step < 1:
        raise KernelError(f"adam: step is {step}; it counts from 1, for the bias correction divides by 1 - beta1^step.")
    rate_t = rate * math.sqrt(1 - beta2**step) / (1 - beta1**step)
    return tuple(map(dtype.type, (rate_t, decay, beta1, 1 - beta1, beta2, 1 - beta2, epsilon)))


def cpu_dense(weights, mean, variance, gradient, rate, decay, beta1, beta2, epsilon, step):
    """On the cores of this machine."""
    numbers = _numbers(weights.dtype, rate, decay, beta1, beta2, epsilon, step)
    flat = weights.reshape(-1), mean.reshape(-1), variance.reshape(-1), gradient.reshape(-1), numbers
    if is_serial(4 * weights.size):
        _elements(*flat)
    else:
        _elements_parallel(*flat, equal_count(weights.size, parts()))


def cpu_lazy(weights, mean, variance, rows, gradient, rate, decay, beta1, beta2, epsilon, step):
    """On the cores of this machine."""
    numbers = _numbers(weights.dtype, rate, decay, beta1, beta2, epsilon, step)
    if is_serial(4 * gradient.size):
        _rows(weights, mean, variance, rows, gradient, numbers, 0, rows.size)
    else:
        _rows_parallel(weights, mean, variance, rows, gradient, numbers, equal_count(rows.size, parts()))


def cost_dense(s: Sizes) -> Cost:
    """Every row of weights, mean, variance and gradient moves once."""
    return Cost(13 * s.D * s.N, 7 * s.D * s.N * s.value)


def cost_lazy(s: Sizes) -> Cost:
    """Every touched row moves once."""
    return Cost(13 * s.U * s.N, s.U * (8 + 7 * s.N * s.value))


def arguments_dense(case: Case) -> tuple:
    """Weights, both moments, and a gradient for all of them."""
    mean, variance = case.dense(case.D, case.N, salt=2), np.square(case.dense(case.D, case.N, salt=3))
    gradient = case.dense(case.D, case.N, salt=1)
    return case.dense(case.D, case.N), mean, variance, gradient, 0.25, 0.5, 0.75, 0.875, 1e-2, 3


def arguments_lazy(case: Case) -> tuple:
    """Weights, both moments, and a gradient for the columns that A touches."""
    weights, mean, variance, _, *numbers = arguments_dense(case)
    rows = np.unique(case.indices).astype(np.int64)
    return weights, mean, variance, rows, case.dense(rows.size, case.N, salt=1), *numbers


_STATE = "weights:f[D,N] mean:f[D,N] variance:f[D,N]"
_NUMBERS = "rate:s decay:s beta1:s beta2:s epsilon:s step:s"
register(
    Kernel(
        name="adam_dense",
        operands=f"{_STATE} gradient:f[D,N] {_NUMBERS}",
        reference=reference_dense,
        cpu=cpu_dense,
        gpu=None,
        cost=cost_dense,
        arguments=arguments_dense,
        writes=("weights", "mean", "variance"),
    )
)
register(
    Kernel(
        name="adam_lazy",
        operands=f"{_STATE} rows:l[U] gradient:f[U,N] {_NUMBERS}",
        reference=reference_lazy,
        cpu=cpu_lazy,
        gpu=None,
        cost=cost_lazy,
        arguments=arguments_lazy,
        writes=("weights", "mean", "variance"),
    )
)
