"""Gradients on their way to an optimizer of Keras: still row-sparse, and each row once."""

from collections.abc import Iterable
from typing import Any

from workbench.bridges.contracts import Breach, ContractError
from workbench.bridges.gradients import Framework, became_dense, row_breaches
from workbench.bridges.tensorflow.library import tf


def summed(gradient: Any) -> Any:
    """IndexedSlices with each row once, repeated ones summed; any other gradient as it is. O(rows * N).

    Optimizers of Keras step repeated rows wrongly, without a word: they take the sum of squares for the square of the
    sum. `keras.layers.Embedding` has such a gradient wherever an id comes twice in a batch.
    """
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    rows, number = tf.unique(gradient.indices)
    values = tf.math.unsorted_segment_sum(gradient.values, number, tf.size(rows))
    return tf.IndexedSlices(values, rows, gradient.dense_shape)


def require_row_sparse(gradients: Iterable[Any], names: Iterable[str]) -> None:
    """`ContractError` for gradients that are dense, that repeat a row, or name one that there is not; eager only.

    A regularizer of a layer's weight, for one, makes its gradient dense.
    """
    found: list[Breach] = []
    for gradient, name in zip(gradients, names, strict=True):
        if isinstance(gradient, tf.IndexedSlices):
            count = None if gradient.dense_shape is None else int(gradient.dense_shape[0])
            found += row_breaches(name, gradient.indices.numpy(), count, TENSORFLOW)
        else:
            found.append(became_dense(name, TENSORFLOW))
    if found:
        raise ContractError(found)


TENSORFLOW = Framework(
    "IndexedSlices",
    "Call summed(gradient)",
    "Adagrad, Adam, Ftrl and RMSprop of Keras step wrongly, without a word",
    "Adam drops such rows without a word",
)
