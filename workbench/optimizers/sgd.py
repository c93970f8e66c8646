"""Stochastic gradient descent with L2 weight decay; rate r, decay l.

Dense      w <- w - r (g + l w), every row
Lazy       the same for the touched rows; the others stay as they are
Equal when l = 0
Source     Robbins and Monro 1951
"""

import kernels
from workbench.optimizers import Optimizer, in_column_order, register


def dense(weights, states, gradient, step, *, rate, decay):
    """Every row of `weights` [D, N] by `gradient` [D, N]."""
    kernels.get("sgd_dense").cpu(weights, gradient, rate, decay)


def lazy(weights, states, gradient, step, *, rate, decay):
    """The rows that `gradient` (row_sparse) holds."""
    kernels.get("sgd_lazy").cpu(weights, gradient.indices, gradient.values, rate, decay)


def fused(weights, states, plan, data, slope, step, *, rate, decay):
    """The rows that a batch touches, by its gradient X.T @ slope."""
    batch = in_column_order(plan, data, slope)
    kernels.get("sgd_fused").cpu(weights, *states, *batch, rate, decay)


register(Optimizer("sgd", (), {"rate": 0.1, "decay": 0.0}, dense, lazy, fused))
