"""FTRL-Proximal, "follow the regularized leader", with L1 and L2 penalties; all operations by element.

ftrl_dense  n' = n + g * g;  z += g - (sqrt(n') - sqrt(n)) / rate * w;  n = n';
            w = 0 where |z| <= l1, else (sign(z) * l1 - z) / ((beta + sqrt(n)) / rate + l2), for every row
ftrl_lazy   the same with w[rows], z[rows] and n[rows], the other rows unchanged
            Equal when each w is what its z and n say, as it is after a step and where all three start at zero: then a
            row with g = 0 stays as it is
ftrl_fused  ftrl_lazy with rows = columns and g = (A.T @ g)[columns], which never goes to memory

Arguments  weights float32|float64 [D, N]; linear same, z; squares same, n, not negative; rows int64 [U], sorted,
           unique; gradient same as weights [D, N] or [U, N]; rate > 0, beta > 0, l1 >= 0, l2 >= 0 numbers, rounded to
           the type of weights; the batch of a fused step as in csr_t_dense
Writes     weights, linear, squares; nothing else changes
Assumes    0 <= rows < D, none repeated
Cost       a row: 15*N flops, reads 4*N*value bytes (lazy: 8 more), writes 3*N*value; lazy: nothing grows with D
Parallel   over rows or elements, in parts of equal size or cost; same bits on every run and thread count
Limits     D*N < 2**63
Source     McMahan et al. 2013, "Ad click prediction: a view from the trenches", algorithm 1
"""

from kernels.rules import Rule, register_kernels
from kernels.values import choose, magnitude, sqrt, with_sign


def formula(w, z, n, g, rate, beta, l1, l2):
    """An element's step."""
    root = sqrt(n)
    n = n + g * g
    new_root = sqrt(n)
    z = z + (g - (new_root - root) / rate * w)
    w = choose(magnitude(z) <= l1, 0.0, (with_sign(l1, z) - z) / ((beta + new_root) / rate + l2))
    return w, z, n


register_kernels(
    Rule(
        "ftrl",
        formula,
        states=("linear", "squares"),
        numbers=("rate", "beta", "l1", "l2"),
        example=(0.25, 1.0, 0.5, 0.125),
        flops=15,
        squares=("squares",),
    )
)
