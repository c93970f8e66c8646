"""FTRL-Proximal with L1 and L2 penalties; rate r, linear z, squares n.

Dense      n' <- n + g^2;  z <- z + g - (sqrt(n') - sqrt(n)) / r w;  n <- n';
           w <- 0 where |z| <= l1, else (sign(z) l1 - z) / ((beta + sqrt(n)) / r + l2), every row
Lazy       the same for the touched rows; the others stay as they are
Equal when weights start at zero: a row with g = 0 is what its z and n say already
Source     McMahan et al. 2013
"""

import kernels
from workbench.optimizers import Optimizer, in_column_order, register


def dense(weights, states, gradient, step, *, rate, beta, l1, l2):
    """Every row of `weights` [D, N] by `gradient` [D, N]."""
    kernels.get("ftrl_dense").cpu(weights, *states, gradient, rate, beta, l1, l2)


def lazy(weights, states, gradient, step, *, rate, beta, l1, l2):
    """The rows that `gradient` (row_sparse) holds."""
    kernels.get("ftrl_lazy").cpu(weights, *states, gradient.indices, gradient.values, rate, beta, l1, l2)


def fused(weights, states, plan, data, slope, step, *, rate, beta, l1, l2):
    """The rows that a batch touches, by its gradient X.T @ slope."""
    batch = in_column_order(plan, data, slope)
    kernels.get("ftrl_fused").cpu(weights, *states, *batch, rate, beta, l1, l2)


register(Optimizer("ftrl", ("linear", "squares"), {"rate": 0.1, "beta": 1.0, "l1": 0.0, "l2": 0.0}, dense, lazy, fused))
