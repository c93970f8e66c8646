"""AdaGrad with weight decay; all operations by element, clip as in sgd.

adagrad_dense  d = clip(rescale * g);  h += d * d;  w -= learning_rate * (d / sqrt(h + epsilon) + decay * w), for every
               row
adagrad_lazy   the same with w[rows] and h[rows], the other rows unchanged
               Equal when decay = 0: a row that is not touched has d = 0, which changes neither h nor w
adagrad_fused  adagrad_lazy with rows = columns and g = (A.T @ g)[columns], which never goes to memory

Arguments  weights float32|float64 [D, N]; history same, h, not negative; rows int64 [U], sorted, unique; gradient same
           as weights [D, N] or [U, N]; learning_rate, decay, epsilon > 0, rescale, clip >= 0, infinite for none,
           numbers, rounded to the type of weights; the batch of a fused step as in csr_t_dense
Writes     weights, history; nothing else changes
Assumes    0 <= rows < D, none repeated
Cost       a row: 11*N flops, reads 3*N*value bytes (lazy: 8 more), writes 2*N*value; lazy: nothing grows with D
Parallel   over rows or elements, in parts of equal size or cost; same bits on every run and thread count
Limits     D*N < 2**63
Source     Duchi, Hazan and Singer 2011, diagonal form; epsilon inside the root, decay outside of the history
"""

from kernels.formula import clipped, sqrt
from kernels.rules.rule import register_rule


def formula(w, h, g, learning_rate, decay, epsilon, rescale, clip):
    """Return (w, h): new weight and history of one element after a step by its gradient g.

    d = clip(rescale * g); h += d * d; w -= learning_rate * (d / sqrt(h + epsilon) + decay * w); clip limits to [-clip,
    clip]. Works on floats and on `Float`s of generated code.
    """
    d = clipped(rescale * g, clip)
    h = h + d * d
    return w - learning_rate * (d / sqrt(h + epsilon) + decay * w), h


def closed_form(learning_rate, decay, epsilon, rescale, clip):
    """Return (1 - learning_rate * decay,): the factor of the weights in a zero-gradient step.

    The history does not change. epsilon, rescale and clip are unused.
    """
    return (1 - learning_rate * decay,)


register_rule(__name__, ("history",), example=(0.25, 0.5, 1e-2, 0.5, 0.5), flops=11, squares=("history",))
