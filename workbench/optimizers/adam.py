"""Adam with L2 weight decay; rate r, decay l, mean m, variance v, step t from 1.

Dense      g <- g + l w;  m <- b1 m + (1 - b1) g;  v <- b2 v + (1 - b2) g^2;
           w <- w - r sqrt(1 - b2^t) / (1 - b1^t) m / (sqrt(v) + epsilon), every row
Lazy       the same for the touched rows, t counting all steps; means of the other rows do not decay
Equal when every row is touched in every step
Source     Kingma and Ba 2015; differs: epsilon is added before the bias correction, as in the last form of section 2
"""

import kernels
from workbench.optimizers import Optimizer, in_column_order, register


def dense(weights, states, gradient, step, *, rate, decay, beta1, beta2, epsilon):
    """Every row of `weights` [D, N] by `gradient` [D, N]; `step` counts from 1."""
    kernels.get("adam_dense").cpu(weights, *states, gradient, rate, decay, beta1, beta2, epsilon, step)


def lazy(weights, states, gradient, step, *, rate, decay, beta1, beta2, epsilon):
    """The rows that `gradient` (row_sparse) holds; `step` counts from 1."""
    rows, values = gradient.indices, gradient.values
    kernels.get("adam_lazy").cpu(weights, *states, rows, values, rate, decay, beta1, beta2, epsilon, step)


def fused(weights, states, plan, data, slope, step, *, rate, decay, beta1, beta2, epsilon):
    """The rows that a batch touches, by its gradient X.T @ slope; `step` counts from 1."""
    batch = in_column_order(plan, data, slope)
    kernels.get("adam_fused").cpu(weights, *states, *batch, rate, decay, beta1, beta2, epsilon, step)


register(
    Optimizer(
        "adam",
        ("mean", "variance"),
        {"rate": 0.001, "decay": 0.0, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8},
        dense,
        lazy,
        fused,
    )
)
