"""TensorFlow's updates of touched rows: SGD is a scatter, AdaGrad TensorFlow's own sparse update."""

from typing import Any

from kernels.rivals.tensorflow_sparse import tensorflow


def sgd(weights: Any, gradient: Any, rows: Any, rate: float) -> None:
    """`weights` [D, N] less `rate` times the gradient [U, N] of these rows, each once."""
    weights.scatter_sub(tensorflow().IndexedSlices(rate * gradient, rows))


def adagrad(weights: Any, history: Any, gradient: Any, rows: Any, rate: float, epsilon: float) -> None:
    """AdaGrad on these rows, each once; `history` [D, N] has the sums of squares."""
    tables = {"var": weights.handle, "accum": history.handle}
    numbers = {"lr": rate, "epsilon": epsilon}
    tensorflow().raw_ops.ResourceSparseApplyAdagradV2(**tables, grad=gradient, indices=rows, **numbers)
