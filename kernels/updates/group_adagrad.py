"""AdaGrad with one history a row, known as group AdaGrad and as row-wise AdaGrad, and weight decay; clip as in sgd.

group_adagrad_dense  d = clip(rescale * g);  h += mean over the row of d * d;
                     w -= learning_rate * (d / sqrt(h + epsilon) + decay * w), for every row
group_adagrad_lazy   the same with w[rows] and h[rows], the other rows unchanged
                     Equal when decay = 0: a row that is not touched has d = 0, which changes neither h nor w
group_adagrad_fused  group_adagrad_lazy with rows = columns and g = (A.T @ g)[columns], which never goes to memory

Arguments  weights float32|float64 [D, N]; history same [D], h, not negative; rows int64 [U], sorted, unique; gradient
           same as weights [D, N] or [U, N]; learning_rate, decay, epsilon > 0, rescale, clip >= 0, infinite for none,
           numbers, rounded to the type of weights; the batch of a fused step as in csr_t_dense
Writes     weights, history; nothing else changes
Assumes    0 <= rows < D, none repeated
Cost       a row: 11*N flops, reads 2*N*value + value bytes (lazy: 8 more), writes N*value + value; lazy: nothing grows
           with D; fused: where a row is wider than its tile, its gradient is summed twice
Parallel   over rows, in parts of equal size or cost; same bits on every run and thread count
Limits     D*N < 2**63
Source     Mudigere et al. 2022, https://arxiv.org/abs/2104.05158, "row-wise AdaGrad"; epsilon inside the root
"""

from kernels.formula import clipped, sqrt
from kernels.rules.rule import register_rule


def square(w, g, learning_rate, decay, epsilon, rescale, clip):
    """Return clip(rescale * g) ** 2 of one element, limited to [-clip, clip] first, to be averaged over the row.

    w, learning_rate, decay and epsilon are unused.
    """
    d = clipped(rescale * g, clip)
    return d * d


def formula(w, h, g, mean, learning_rate, decay, epsilon, rescale, clip):
    """Return (w, h): new weight and the row's new history, after a step of one element by gradient g.

    `mean` is the mean of `square` over the row. h += mean; w -= learning_rate * (clip(rescale * g) / sqrt(h + epsilon)
    + decay * w); clip limits to [-clip, clip]. Works on floats and on `Float`s of generated code.
    """
    h = h + mean
    return w - learning_rate * (clipped(rescale * g, clip) / sqrt(h + epsilon) + decay * w), h


def closed_form(learning_rate, decay, epsilon, rescale, clip):
    """Return (1 - learning_rate * decay,): the factor of the weights in a zero-gradient step.

    The history does not change. epsilon, rescale and clip are unused.
    """
    return (1 - learning_rate * decay,)


register_rule(
    __name__, ("history",), example=(0.25, 0.5, 1e-2, 0.5, 0.5), flops=11, squares=("history",), average=square
)
