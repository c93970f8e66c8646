"""RMSProp with weight decay as an L2 penalty; all operations by element, n the mean of squares, clip as in sgd.

rmsprop_dense   d = clip(rescale * g + decay * w);  n = gamma * n + (1 - gamma) * d * d;
                w = clip_w(w - learning_rate * d / sqrt(n + epsilon)), for every row; clip_w keeps w within clip_weights
rmsprop_lazy    the same with w[rows] and n[rows], the other rows unchanged
                Equal when every row is touched in every step; else the dense rule lets n decay, and w where decay > 0,
                and keeps w within clip_weights also in other rows
rmsprop_fused   rmsprop_lazy with rows = columns and g = (A.T @ g)[columns], which never goes to memory
rmsprop_step_by_step  for each of `rows`, the steps of `table` from `since` on, with g = 0: what the row missed

Arguments  weights float32|float64 [D, N]; squares same, n, not negative; rows int64 [U], sorted, unique; gradient same
           as weights [D, N] or [U, N]; learning_rate, decay, 0 <= gamma < 1, epsilon > 0, rescale, clip_weights >= 0
           and clip >= 0, infinite for none, numbers, rounded to the type of weights after 1 - gamma is computed; the
           batch of a fused step as in csr_t_dense; table, since as in kernels.rules.rule
Writes     weights, squares; nothing else changes
Assumes    0 <= rows < D, none repeated
Cost       a row: 15*N flops, reads 3*N*value bytes (lazy: 8 more), writes 2*N*value; lazy: nothing grows with D;
           step_by_step: the flops once for each missed step
Parallel   over rows or elements, in parts of equal size or cost; same bits on every run and thread count
Limits     D*N < 2**63
Source     Tieleman and Hinton 2012, lecture 6.5; epsilon inside the root
"""

import math

from kernels.formula import clipped, sqrt
from kernels.rules.rule import register_rule


def settings(learning_rate, decay, gamma, epsilon, clip_weights, rescale, clip):
    """Return the parameters in order with rest = 1 - gamma after gamma: the settings of `formula` for one step."""
    return learning_rate, decay, gamma, 1 - gamma, epsilon, clip_weights, rescale, clip


def formula(w, n, g, learning_rate, decay, gamma, rest, epsilon, clip_weights, rescale, clip):
    """Return (w, n): new weight and mean square of one element after a step by its gradient g.

    d = clip(rescale * g + decay * w); n = gamma * n + rest * d * d; w - learning_rate * d / sqrt(n + epsilon) is
    limited to [-clip_weights, clip_weights]; clip limits to [-clip, clip]. Works on floats and on `Float`s of generated
    code.
    """
    d = clipped(rescale * g + decay * w, clip)
    n = gamma * n + rest * (d * d)
    return clipped(w - learning_rate * d / sqrt(n + epsilon), clip_weights), n


def closed_form(learning_rate, decay, gamma, rest, epsilon, clip_weights, rescale, clip):
    """Return (1, 0, 0, gamma) of a zero-gradient step: (w, n) = (w, gamma * n).

    None if decay is not 0 or clip_weights is finite: the step is then not linear. Other parameters are unused.
    """
    return (1.0, 0.0, 0.0, gamma) if decay == 0 and math.isinf(clip_weights) else None


register_rule(
    __name__,
    ("squares",),
    example=(0.25, 0.5, 0.75, 1e-2, 1.0, 0.5, 0.5),
    flops=15,
    squares=("squares",),
    step_by_step=True,
)
