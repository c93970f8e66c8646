"""AdaGrad with L2 weight decay; rate r, decay l, history h.

Dense      g <- g + l w;  h <- h + g^2;  w <- w - r g / (sqrt(h) + epsilon), every row
Lazy       the same for the touched rows; the others stay as they are
Equal when l = 0: a row with g = 0 changes neither h nor w
Source     Duchi, Hazan and Singer 2011
"""

import kernels
from workbench.optimizers import Optimizer, in_column_order, register


def dense(weights, states, gradient, step, *, rate, decay, epsilon):
    """Every row of `weights` [D, N] by `gradient` [D, N]."""
    kernels.get("adagrad_dense").cpu(weights, *states, gradient, rate, decay, epsilon)


def lazy(weights, states, gradient, step, *, rate, decay, epsilon):
    """The rows that `gradient` (row_sparse) holds."""
    kernels.get("adagrad_lazy").cpu(weights, *states, gradient.indices, gradient.values, rate, decay, epsilon)


def fused(weights, states, plan, data, slope, step, *, rate, decay, epsilon):
    """The rows that a batch touches, by its gradient X.T @ slope."""
    batch = in_column_order(plan, data, slope)
    kernels.get("adagrad_fused").cpu(weights, *states, *batch, rate, decay, epsilon)


register(Optimizer("adagrad", ("history",), {"rate": 0.1, "decay": 0.0, "epsilon": 1e-7}, dense, lazy, fused))
