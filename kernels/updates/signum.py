"""Signum: steps of one size by the sign of the momentum; all operations by element, m the momentum, clip as in sgd.

signum_dense   m = beta * m - (1 - beta) * (clip(rescale * g) + decay * w);
               w = (1 - learning_rate * decoupled) * w + learning_rate * sign(m), for every row
signum_lazy    the same with w[rows] and m[rows], the other rows unchanged
               Equal when every row is touched in every step; else the dense rule goes on moving a row by the sign of m
signum_fused   signum_lazy with rows = columns and g = (A.T @ g)[columns], which never goes to memory
signum_step_by_step  for each of `rows`, the steps of `table` from `since` on, with g = 0: what the row missed

Arguments  weights float32|float64 [D, N]; momentum same, m; rows int64 [U], sorted, unique; gradient same as weights
           [D, N] or [U, N]; learning_rate, decay, decoupled, 0 <= beta < 1, rescale, clip >= 0, infinite for none,
           numbers, rounded to the type of weights after the products and differences of numbers are computed; the batch
           of a fused step as in csr_t_dense; table, since as in kernels.rules.rule
Writes     weights, momentum; nothing else changes
Assumes    0 <= rows < D, none repeated; sign(0) = 0
Cost       a row: 13*N flops, reads 3*N*value bytes (lazy: 8 more), writes 2*N*value; lazy: nothing grows with D;
           step_by_step: the flops once for each missed step
Parallel   over rows or elements, in parts of equal size or cost; same bits on every run and thread count
Limits     D*N < 2**63
Source     Bernstein et al. 2018, https://arxiv.org/abs/1802.04434; beta = 0 is their signSGD
"""

from kernels.formula import clipped, sign
from kernels.rules.rule import register_rule


def settings(learning_rate, decay, decoupled, beta, rescale, clip):
    """Return (learning_rate, decay, kept, beta, rest, rescale, clip): the settings of `formula` for one step.

    rest = 1 - beta, kept = 1 - learning_rate * decoupled, the factor of the decoupled weight decay.
    """
    return learning_rate, decay, 1 - learning_rate * decoupled, beta, 1 - beta, rescale, clip


def formula(w, m, g, learning_rate, decay, kept, beta, rest, rescale, clip):
    """Return (w, m): new weight and momentum of one element after a step by its gradient g.

    m = beta * m - rest * (clip(rescale * g) + decay * w); w = kept * w + learning_rate * sign(m); clip limits to
    [-clip, clip]. Works on floats and on `Float`s of generated code.
    """
    m = beta * m - rest * (clipped(rescale * g, clip) + decay * w)
    return kept * w + learning_rate * sign(m), m


def at_rest(learning_rate, decay, kept, beta, rest, rescale, clip):
    """Return kept, the factor of a weight whose momentum is zero in a step without gradient; None if decay is not 0."""
    return kept if decay == 0 else None


register_rule(__name__, ("momentum",), example=(0.25, 0.5, 0.125, 0.75, 0.5, 0.5), flops=13, step_by_step=True)
