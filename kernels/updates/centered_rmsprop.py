"""RMSProp by the variance of the gradient instead of its square, with momentum; n, q, v by element, clip as in sgd.

centered_rmsprop_dense   d = clip(rescale * g + decay * w);  n = gamma * n + (1 - gamma) * d * d;
                         q = gamma * q + (1 - gamma) * d;  v = beta * v - learning_rate * d / sqrt(n - q * q + epsilon);
                         w = clip_w(w + v), for every row; clip_w keeps w within clip_weights
centered_rmsprop_lazy    the same with w[rows] and the states' rows, the other rows unchanged
                         Equal when every row is touched in every step; else the dense rule goes on moving a row by v,
                         and keeps w within clip_weights also in other rows
centered_rmsprop_fused   centered_rmsprop_lazy with rows = columns and g = (A.T @ g)[columns], never in memory
centered_rmsprop_step_by_step  for each of `rows`, the steps of `table` from `since` on, with g = 0: what it missed

Arguments  weights float32|float64 [D, N]; squares, mean, velocity same: n, not below q * q, q and v; rows int64 [U],
           sorted, unique; gradient same as weights [D, N] or [U, N]; learning_rate, decay, 0 <= gamma < 1, 0 <= beta <
           1, epsilon > 0, rescale, clip_weights >= 0 and clip >= 0, infinite for none, numbers, rounded to the type of
           weights after 1 - gamma is computed; the batch of a fused step as in csr_t_dense; table, since as in
           kernels.rules.rule
Writes     weights, squares, mean, velocity; nothing else changes
Assumes    0 <= rows < D, none repeated
Cost       a row: 22*N flops, reads 5*N*value bytes (lazy: 8 more), writes 4*N*value; lazy: nothing grows with D;
           step_by_step: the flops once for each missed step
Parallel   over rows or elements, in parts of equal size or cost; same bits on every run and thread count
Limits     D*N < 2**63
Source     Graves 2013, https://arxiv.org/abs/1308.0850, equations 38 to 45; epsilon inside the root
"""

import math

from kernels.formula import clipped, sqrt
from kernels.rules.rule import register_rule


def settings(learning_rate, decay, gamma, beta, epsilon, clip_weights, rescale, clip):
    """Return the parameters in order with rest = 1 - gamma after gamma: the settings of `formula` for one step."""
    return learning_rate, decay, gamma, 1 - gamma, beta, epsilon, clip_weights, rescale, clip


def formula(w, n, q, v, g, learning_rate, decay, gamma, rest, beta, epsilon, clip_weights, rescale, clip):
    """Return (w, n, q, v): new weight and states of one element after a step by its gradient g.

    d = clip(rescale * g + decay * w); n = gamma * n + rest * d * d; q = gamma * q + rest * d; v = beta * v -
    learning_rate * d / sqrt(n - q * q + epsilon); w + v is limited to [-clip_weights, clip_weights]; clip limits to
    [-clip, clip]. Works on floats and on `Float`s of generated code.
    """
    d = clipped(rescale * g + decay * w, clip)
    n = gamma * n + rest * (d * d)
    q = gamma * q + rest * d
    v = beta * v - learning_rate * d / sqrt(n - q * q + epsilon)
    return clipped(w + v, clip_weights), n, q, v


def at_rest(learning_rate, decay, gamma, rest, beta, epsilon, clip_weights, rescale, clip):
    """Return 1.0: without a gradient a weight whose states are zero stays.

    None if decay is not 0 or clip_weights is finite.
    """
    return 1.0 if decay == 0 and math.isinf(clip_weights) else None


register_rule(
    __name__,
    ("squares", "mean", "velocity"),
    example=(0.25, 0.5, 0.75, 0.5, 16.0, 1.0, 0.5, 0.5),
    flops=22,
    squares=("squares",),
    step_by_step=True,
)
