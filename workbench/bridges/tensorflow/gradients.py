"""Gradients on their way to an optimizer of Keras: still row-sparse, and each row once."""

from collections.abc import Iterable
from typing import Any

from workbench.bridges.contracts import ERROR, Breach, ContractError
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
    breaches = [breach for gradient, name in zip(gradients, names, strict=True) for breach in _breaches(gradient, name)]
    if breaches:
        raise ContractError(breaches)


def _breaches(gradient: Any, name: str) -> list[Breach]:
    boundary = "gradient -> optimizer"
    if not isinstance(gradient, tf.IndexedSlices):
        came, advice = f"The gradient of {name} is dense", "Take regularizers and dense terms off this weight"
        return [Breach("sparse", boundary, ERROR, came, "IndexedSlices, the touched rows", advice)]
    rows, found = gradient.indices, []
    repeated = int(tf.size(rows) - tf.size(tf.unique(rows)[0]))
    if repeated:
        came, advice = f"The gradient of {name} repeats {repeated} rows", "Call summed(gradient)"
        found.append(Breach("duplicates", boundary, ERROR, came, "each row once", advice))
    if gradient.dense_shape is None:
        came = f"The gradient of {name} does not say how many rows there are"
        found.append(Breach("shape", boundary, ERROR, came, "a dense_shape", "Give IndexedSlices one; Adam needs it"))
    elif bool(tf.reduce_any((rows < 0) | (rows >= tf.cast(gradient.dense_shape[0], rows.dtype)))):
        came, count = f"The gradient of {name} names rows outside of the weight", int(gradient.dense_shape[0])
        advice = "Check the columns of the batch; Adam drops such rows without a word"
        found.append(Breach("range", boundary, ERROR, came, f"0 to {count - 1}", advice))
    return found
