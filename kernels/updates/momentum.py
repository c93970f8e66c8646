"""Gradient descent with momentum and weight decay; all operations by element, v the step, clip as in sgd.

momentum_dense  v = beta * v - learning_rate * (clip(rescale * g) + decay * w);  w += v, for every row
momentum_lazy   the same with w[rows] and v[rows], the other rows unchanged
                Equal when every row is touched in every step; else the dense rule goes on moving a row by its velocity
momentum_fused  momentum_lazy with rows = columns and g = (A.T @ g)[columns], which never goes to memory

Arguments  weights float32|float64 [D, N]; velocity same, v; rows int64 [U], sorted, unique; gradient same as weights
           [D, N] or [U, N]; learning_rate, decay, 0 <= beta < 1, rescale, clip >= 0, infinite for none, numbers,
           rounded to the type of weights; the batch of a fused step as in csr_t_dense
Writes     weights, velocity; nothing else changes
Assumes    0 <= rows < D, none repeated
Cost       a row: 9*N flops, reads 3*N*value bytes (lazy: 8 more), writes 2*N*value; lazy: nothing grows with D
Parallel   over rows or elements, in parts of equal size or cost; same bits on every run and thread count
Limits     D*N < 2**63
Source     Polyak 1964; the learning_rate is inside the velocity, so that a new learning_rate acts on later gradients
           alone
"""

from kernels.formula import clipped
from kernels.rules.rule import register_rule


def formula(w, v, g, learning_rate, decay, beta, rescale, clip):
    """Return (w, v): new weight and velocity of one element after a step by its gradient g.

    v = beta * v - learning_rate * (clip(rescale * g) + decay * w); w += v; clip limits to [-clip, clip]. Works on
    floats and on `Float`s of generated code.
    """
    v = beta * v - learning_rate * (clipped(rescale * g, clip) + decay * w)
    return w + v, v


def closed_form(learning_rate, decay, beta, rescale, clip):
    """Return (a, b, c, d): a zero-gradient step makes (w, v) = (a * w + b * v, c * w + d * v).

    They depend on learning_rate, decay and beta; rescale and clip are unused.
    """
    return 1 - learning_rate * decay, beta, -learning_rate * decay, beta


register_rule(__name__, ("velocity",), example=(0.25, 0.5, 0.75, 0.5, 0.5), flops=9)
