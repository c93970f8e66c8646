"""Gradient descent with weight decay.

sgd_dense  w -= rate * (g + decay * w), for every row
sgd_lazy   w[rows] -= rate * (g + decay * w[rows]), the other rows unchanged
           Equal when decay = 0, or when every row is touched in every step
sgd_fused  sgd_lazy with rows = columns and g = (A.T @ g)[columns], which never goes to memory

Arguments  weights float32|float64 [D, N]; rows int64 [U], sorted, unique; gradient same as weights [D, N] or [U, N];
           rate, decay numbers, rounded to the type of weights; the batch of a fused step as in csr_t_dense
Writes     weights; nothing else changes
Assumes    0 <= rows < D, none repeated
Cost       a row: 4*N flops, reads 2*N*value bytes (lazy: 8 more), writes N*value; lazy: nothing grows with D
Parallel   over rows or elements, in parts of equal size or cost; same bits on every run and thread count
Limits     D*N < 2**63
Source     Robbins and Monro 1951; decay as an L2 penalty added to the gradient, not decoupled
"""

from kernels.rules import Rule, register_kernels


def formula(w, g, rate, decay):
    """An element's step."""
    return (w - rate * (g + decay * w),)


register_kernels(Rule("sgd", formula, states=(), numbers=("rate", "decay"), example=(0.25, 0.5), flops=4))
