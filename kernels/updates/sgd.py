"""Gradient descent with weight decay; all operations by element, clip(x) = min(max(x, -clip), clip).

sgd_dense  w -= learning_rate * (clip(rescale * g) + decay * w), for every row
sgd_lazy   the same with w[rows], the other rows unchanged
           Equal when decay = 0, or when every row is touched in every step
sgd_fused  sgd_lazy with rows = columns and g = (A.T @ g)[columns], which never goes to memory

Arguments  weights float32|float64 [D, N]; rows int64 [U], sorted, unique; gradient same as weights [D, N] or [U, N];
           learning_rate, decay, rescale, clip >= 0, infinite for none, numbers, rounded to the type of weights; the
           batch of a fused step as in csr_t_dense
Writes     weights; nothing else changes
Assumes    0 <= rows < D, none repeated
Cost       a row: 7*N flops, reads 2*N*value bytes (lazy: 8 more), writes N*value; lazy: nothing grows with D
Parallel   over rows or elements, in parts of equal size or cost; same bits on every run and thread count
Limits     D*N < 2**63
Source     Robbins and Monro 1951; decay as an L2 penalty that clipping does not see
"""

from kernels.formula import clipped
from kernels.rules.rule import register_rule


def formula(w, g, learning_rate, decay, rescale, clip):
    """Return (w,): the new weight of one element after a step by its gradient g.

    w -= learning_rate * (clip(rescale * g) + decay * w); clip limits to [-clip, clip]. Works on floats and on `Float`s
    of generated code.
    """
    return (w - learning_rate * (clipped(rescale * g, clip) + decay * w),)


def closed_form(learning_rate, decay, rescale, clip):
    """Return (1 - learning_rate * decay,): the factor of the weights in a zero-gradient step.

    `rescale` and `clip` are unused.
    """
    return (1 - learning_rate * decay,)


register_rule(__name__, (), example=(0.25, 0.5, 0.5, 0.5), flops=7, is_linear=True)
