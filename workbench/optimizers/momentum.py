"""Gradient descent with momentum and L2 weight decay; rate r, decay l, velocity v.

Dense      v <- b v + g + l w;  w <- w - r v, every row
Lazy       the same for the touched rows; velocities of the other rows do not decay
Equal when every row is touched in every step
Source     Polyak 1964; Sutskever et al. 2013
"""

import kernels
from workbench.optimizers import Optimizer, in_column_order, register


def dense(weights, states, gradient, step, *, rate, decay, beta):
    """Every row of `weights` [D, N] by `gradient` [D, N]."""
    kernels.get("momentum_dense").cpu(weights, *states, gradient, rate, decay, beta)


def lazy(weights, states, gradient, step, *, rate, decay, beta):
    """The rows that `gradient` (row_sparse) holds."""
    kernels.get("momentum_lazy").cpu(weights, *states, gradient.indices, gradient.values, rate, decay, beta)


def fused(weights, states, plan, data, slope, step, *, rate, decay, beta):
    """The rows that a batch touches, by its gradient X.T @ slope."""
    batch = in_column_order(plan, data, slope)
    kernels.get("momentum_fused").cpu(weights, *states, *batch, rate, decay, beta)


register(Optimizer("momentum", ("velocity",), {"rate": 0.1, "decay": 0.0, "beta": 0.9}, dense, lazy, fused))
