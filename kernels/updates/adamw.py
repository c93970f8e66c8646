"""Adam with decoupled weight decay; all operations by element, t the step, counted from 1, clip as in sgd.

adamw_dense   d = clip(rescale * g);  m = beta1 * m + (1 - beta1) * d;  v = beta2 * v + (1 - beta2) * d * d;
              w -= rate_t * m / (sqrt(v) + epsilon) + learning_rate * decay * w, with rate_t as in adam, for every row
adamw_lazy    the same with w[rows], m[rows] and v[rows], the other rows unchanged; t counts all steps, touched or not
              Equal when every row is touched in every step; else the dense rule goes on moving a row by its old mean
adamw_fused   adamw_lazy with rows = columns and g = (A.T @ g)[columns], which never goes to memory
adamw_step_by_step  for each of `rows`, the steps of `table` from `since` on, with g = 0: what the row missed

Arguments  weights float32|float64 [D, N]; mean same, m; variance same, v, not negative; rows int64 [U], sorted, unique;
           gradient same as weights [D, N] or [U, N]; numbers as in adam; the batch of a fused step as in csr_t_dense;
           table, since as in kernels.rules.rule
Writes     weights, mean, variance; nothing else changes
Assumes    0 <= rows < D, none repeated
Cost       a row: 16*N flops, reads 4*N*value bytes (lazy: 8 more), writes 3*N*value; lazy: nothing grows with D;
           step_by_step: the flops once for each missed step
Parallel   over rows or elements, in parts of equal size or cost; same bits on every run and thread count
Limits     D*N < 2**63
Source     Loshchilov and Hutter 2019; the decay is scaled by the learning_rate, as in PyTorch
"""

from kernels.formula import clipped, sqrt
from kernels.rules.rule import register_rule
from kernels.updates.adam import corrected


def settings(learning_rate, decay, beta1, beta2, epsilon, rescale, clip, step):
    """Return (rate_t, shrink, beta1, rest1, beta2, rest2, epsilon, rescale, clip), the settings of one step.

    rate_t is the bias-corrected learning_rate, shrink = learning_rate * decay, rest = 1 - beta. `step` counts from 1
    (KernelError below); with an array of steps rate_t is an array.
    """
    rate_t = corrected(learning_rate, beta1, beta2, step)
    return rate_t, learning_rate * decay, beta1, 1 - beta1, beta2, 1 - beta2, epsilon, rescale, clip


def formula(w, m, v, g, rate_t, shrink, beta1, rest1, beta2, rest2, epsilon, rescale, clip):
    """Return (w, m, v): new weight, mean and variance of one element after a step by its gradient g.

    d = clip(rescale * g); m = beta1 * m + rest1 * d; v = beta2 * v + rest2 * d * d; w -= rate_t * m / (sqrt(v) +
    epsilon) + shrink * w; clip limits to [-clip, clip]. Works on floats and on `Float`s of generated code.
    """
    d = clipped(rescale * g, clip)
    m = beta1 * m + rest1 * d
    v = beta2 * v + rest2 * (d * d)
    return w - (rate_t * m / (sqrt(v) + epsilon) + shrink * w), m, v


def at_rest(rate_t, shrink, beta1, rest1, beta2, rest2, epsilon, rescale, clip):
    """Return 1 - shrink, the factor of a weight whose mean and variance are zero in a step without gradient."""
    return 1 - shrink


register_rule(
    __name__,
    ("mean", "variance"),
    example=(0.25, 0.5, 0.75, 0.875, 1e-2, 0.5, 0.5, 3),
    flops=16,
    squares=("variance",),
    step_by_step=True,
)
