"""FTRL-Proximal, "follow the regularized leader", with L1 and L2 penalties; all operations by element, clip as in sgd.

ftrl_dense  d = clip(rescale * g);  n' = n + d * d;  z += d - (sqrt(n') - sqrt(n)) / learning_rate * w;  n = n';
            w = 0 where |z| <= l1, else (sign(z) * l1 - z) / ((beta + sqrt(n)) / learning_rate + decay), for every row
ftrl_lazy   the same with w[rows], z[rows] and n[rows], the other rows unchanged
            Equal when each w is what its z and n say, as it is after a step and where all three start at zero: then a
            row with g = 0 stays as it is
ftrl_fused  ftrl_lazy with rows = columns and g = (A.T @ g)[columns], which never goes to memory

Arguments  weights float32|float64 [D, N]; linear same, z; squares same, n, not negative; rows int64 [U], sorted,
           unique; gradient same as weights [D, N] or [U, N]; learning_rate > 0, beta > 0, l1 >= 0, decay >= 0, rescale,
           clip >= 0, infinite for none, numbers, rounded to the type of weights; the batch of a fused step as in
           csr_t_dense
Writes     weights, linear, squares; nothing else changes
Assumes    0 <= rows < D, none repeated
Cost       a row: 18*N flops, reads 4*N*value bytes (lazy: 8 more), writes 3*N*value; lazy: nothing grows with D
Parallel   over rows or elements, in parts of equal size or cost; same bits on every run and thread count
Limits     D*N < 2**63
Source     McMahan et al. 2013, "Ad click prediction: a view from the trenches", algorithm 1; decay is its lambda 2
"""

from kernels.formula import choose, clipped, magnitude, sqrt, with_sign
from kernels.rules.rule import register_rule


def formula(w, z, n, g, learning_rate, decay, beta, l1, rescale, clip):
    """Return (w, z, n): new weight and states of one element after a step by its gradient g.

    d = clip(rescale * g); n' = n + d * d; z += d - (sqrt(n') - sqrt(n)) / learning_rate * w; w = 0 if |z| <= l1, else
    (sign(z) * l1 - z) / ((beta + sqrt(n')) / learning_rate + decay); clip limits to [-clip, clip]. Works on floats and
    on `Float`s of generated code.
    """
    d = clipped(rescale * g, clip)
    root = sqrt(n)
    n = n + d * d
    new_root = sqrt(n)
    z = z + (d - (new_root - root) / learning_rate * w)
    w = choose(magnitude(z) <= l1, 0.0, (with_sign(l1, z) - z) / ((beta + new_root) / learning_rate + decay))
    return w, z, n


register_rule(
    __name__,
    ("linear", "squares"),
    example=(0.25, 0.125, 1.0, 0.5, 0.5, 0.5),
    flops=18,
    squares=("squares",),
    last_step=True,
)
