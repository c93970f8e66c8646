"""Adam with weight decay as an L2 penalty; all operations by element, t the step, counted from 1, clip as in sgd.

adam_dense   d = clip(rescale * g + decay * w);  m = beta1 * m + (1 - beta1) * d;
             v = beta2 * v + (1 - beta2) * d * d;  w -= rate_t * m / (sqrt(v) + epsilon),
             with rate_t = learning_rate * sqrt(1 - beta2^t) / (1 - beta1^t), for every row
adam_lazy    the same with w[rows], m[rows] and v[rows], the other rows unchanged; t counts all steps, touched or not
             Equal when every row is touched in every step; else the dense rule goes on moving a row by its old mean
adam_fused   adam_lazy with rows = columns and g = (A.T @ g)[columns], which never goes to memory
adam_step_by_step  for each of `rows`, the steps of `table` from `since` on, with g = 0: what the row missed

Arguments  weights float32|float64 [D, N]; mean same, m; variance same, v, not negative; rows int64 [U], sorted, unique;
           gradient same as weights [D, N] or [U, N]; learning_rate, decay, epsilon > 0, 0 <= beta1 < 1, 0 <= beta2 < 1,
           rescale, clip >= 0, infinite for none, numbers; step int >= 1; numbers are rounded to the type of weights
           after rate_t and 1 - beta are computed; the batch of a fused step as in csr_t_dense; table, since as in
           kernels.rules.rule
Writes     weights, mean, variance; nothing else changes
Assumes    0 <= rows < D, none repeated
Cost       a row: 16*N flops, reads 4*N*value bytes (lazy: 8 more), writes 3*N*value; lazy: nothing grows with D;
           step_by_step: the flops once for each missed step
Parallel   over rows or elements, in parts of equal size or cost; same bits on every run and thread count
Limits     D*N < 2**63
Source     Kingma and Ba 2015, the efficient form of section 2; differs: lazy rows, decay as an L2 penalty
"""

import math

import numpy as np

from kernels.contract import KernelError
from kernels.formula import clipped, sqrt
from kernels.rules.rule import register_rule

NEGLIGIBLE = 60 * math.log(2)
"""Powers below exp(-NEGLIGIBLE) leave 1 - power at 1, in float64."""


def rest_of_power(beta, step):
    """Return 1 - beta^step, for several steps if `step` is an array; the exponent ends where the result is 1.

    A power too small for a normal float64 takes 80 to 230 ns, others 4: with one row a batch, a sixth of an epoch.
    """
    if isinstance(step, np.ndarray) and 0 < beta < 1:
        step = np.minimum(step, math.ceil(NEGLIGIBLE / -math.log(beta)))
    return 1 - beta**step


def corrected(learning_rate, beta1, beta2, step):
    """Return learning_rate * sqrt(1 - beta2^step) / (1 - beta1^step), a float, or an array if `step` is one.

    Raises KernelError for a step below 1.
    """
    if (step if isinstance(step, int) else step.min()) < 1:
        raise KernelError(f"adam: step is {step}; it counts from 1, for the bias correction divides by 1 - beta1^step.")
    return learning_rate * rest_of_power(beta2, step) ** 0.5 / rest_of_power(beta1, step)


def settings(learning_rate, decay, beta1, beta2, epsilon, rescale, clip, step):
    """Return (rate_t, decay, beta1, rest1, beta2, rest2, epsilon, rescale, clip), the settings of one step.

    rate_t is the bias-corrected learning_rate, rest = 1 - beta. `step` counts from 1 (KernelError below); with an array
    of steps rate_t is an array.
    """
    rate_t = corrected(learning_rate, beta1, beta2, step)
    return rate_t, decay, beta1, 1 - beta1, beta2, 1 - beta2, epsilon, rescale, clip


def formula(w, m, v, g, rate_t, decay, beta1, rest1, beta2, rest2, epsilon, rescale, clip):
    """Return (w, m, v): new weight, mean and variance of one element after a step by its gradient g.

    d = clip(rescale * g + decay * w); m = beta1 * m + rest1 * d; v = beta2 * v + rest2 * d * d; w -= rate_t * m /
    (sqrt(v) + epsilon); clip limits to [-clip, clip]. Works on floats and on `Float`s of generated code.
    """
    d = clipped(rescale * g + decay * w, clip)
    m = beta1 * m + rest1 * d
    v = beta2 * v + rest2 * (d * d)
    return w - rate_t * m / (sqrt(v) + epsilon), m, v


def at_rest(rate_t, decay, beta1, rest1, beta2, rest2, epsilon, rescale, clip):
    """Return 1.0: without a gradient a weight whose mean and variance are zero stays; None if decay is not 0."""
    return 1.0 if decay == 0 else None


register_rule(
    __name__,
    ("mean", "variance"),
    example=(0.25, 0.5, 0.75, 0.875, 1e-2, 0.5, 0.5, 3),
    flops=16,
    squares=("variance",),
    step_by_step=True,
)
