"""Gradient descent with momentum and weight decay; all operations by element, v the velocity.

momentum_dense  d = g + decay * w;  v = beta * v + d;  w -= rate * v, for every row
momentum_lazy   the same with w[rows] and v[rows], the other rows unchanged
                Equal when every row is touched in every step; else the dense rule goes on moving a row by its velocity
momentum_fused  momentum_lazy with rows = columns and g = (A.T @ g)[columns], which never goes to memory

Arguments  weights float32|float64 [D, N]; velocity same; rows int64 [U], sorted, unique; gradient same as weights
           [D, N] or [U, N]; rate, decay, 0 <= beta < 1 numbers, rounded to the type of weights; the batch of a fused
           step as in csr_t_dense
Writes     weights, velocity; nothing else changes
Assumes    0 <= rows < D, none repeated
Cost       a row: 6*N flops, reads 3*N*value bytes (lazy: 8 more), writes 2*N*value; lazy: nothing grows with D
Parallel   over rows or elements, in parts of equal size or cost; same bits on every run and thread count
Limits     D*N < 2**63
Source     Polyak 1964; Sutskever et al. 2013 without the look-ahead; the rate is outside the velocity, as in PyTorch
"""

from kernels.rules import Rule, register_kernels


def formula(w, v, g, rate, decay, beta):
    """An element's step."""
    v = beta * v + (g + decay * w)
    return w - rate * v, v


NUMBERS = ("rate", "decay", "beta")
register_kernels(Rule("momentum", formula, ("velocity",), NUMBERS, example=(0.25, 0.5, 0.75), flops=6))
