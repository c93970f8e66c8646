"""Adam with weight decay; all operations by element, t the step, counted from 1.

adam_dense  d = g + decay * w;  m = beta1 * m + (1 - beta1) * d;  v = beta2 * v + (1 - beta2) * d * d;
            w -= rate_t * m / (sqrt(v) + epsilon), with rate_t = rate * sqrt(1 - beta2^t) / (1 - beta1^t), for every row
adam_lazy   the same with w[rows], m[rows] and v[rows], the other rows unchanged; t counts all steps, touched or not
            Equal when every row is touched in every step; else the dense rule goes on moving a row by its old mean
adam_fused  adam_lazy with rows = columns and g = (A.T @ g)[columns], which never goes to memory

Arguments  weights float32|float64 [D, N]; mean same, m; variance same, v, not negative; rows int64 [U], sorted, unique;
           gradient same as weights [D, N] or [U, N]; rate, decay, epsilon > 0, 0 <= beta1 < 1, 0 <= beta2 < 1 numbers;
           step int >= 1; numbers are rounded to the type of weights after rate_t and 1 - beta are computed; the batch
           of a fused step as in csr_t_dense
Writes     weights, mean, variance; nothing else changes
Assumes    0 <= rows < D, none repeated
Cost       a row: 13*N flops, reads 4*N*value bytes (lazy: 8 more), writes 3*N*value; lazy: nothing grows with D
Parallel   over rows or elements, in parts of equal size or cost; same bits on every run and thread count
Limits     D*N < 2**63
Source     Kingma and Ba 2015, the efficient form of section 2; differs: lazy rows, decay as an L2 penalty
"""

import math

from kernels.contract import KernelError
from kernels.rules import Rule, register_kernels
from kernels.values import sqrt


def settings(rate, decay, beta1, beta2, epsilon, step):
    """What an element's step needs: the bias corrections are in the rate."""
    if step < 1:
        raise KernelError(f"adam: step is {step}; it counts from 1, for the bias correction divides by 1 - beta1^step.")
    rate_t = rate * math.sqrt(1 - beta2**step) / (1 - beta1**step)
    return rate_t, decay, beta1, 1 - beta1, beta2, 1 - beta2, epsilon


def formula(w, m, v, g, rate_t, decay, beta1, rest1, beta2, rest2, epsilon):
    """An element's step."""
    d = g + decay * w
    m = beta1 * m + rest1 * d
    v = beta2 * v + rest2 * (d * d)
    return w - rate_t * m / (sqrt(v) + epsilon), m, v


register_kernels(
    Rule(
        "adam",
        formula,
        states=("mean", "variance"),
        numbers=("rate", "decay", "beta1", "beta2", "epsilon", "step"),
        example=(0.25, 0.5, 0.75, 0.875, 1e-2, 3),
        flops=13,
        squares=("variance",),
        settings=settings,
    )
)
