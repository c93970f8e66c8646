"""Sparse matrices as SparseTensor and back, in the order and the types that all of TensorFlow takes."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse

from workbench import formats
from workbench.bridges.contracts import ContractError, Violation, require, require_sound
from workbench.bridges.gradients import Framework, dense_gradient_violation, find_row_violations
from workbench.bridges.tensorflow.library import tf
from workbench.formats.parts import Parts

# Gradients on their way to an optimizer of Keras: still row-sparse, and each row once.


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
    """Raise ContractError for gradients that are dense, repeat a row or have an index out of range; eager only.

    A regularizer of a layer's weight, for one, makes its gradient dense.
    """
    found: list[Violation] = []
    for gradient, name in zip(gradients, names, strict=True):
        if isinstance(gradient, tf.IndexedSlices):
            count = None if gradient.dense_shape is None else int(gradient.dense_shape[0])
            found += find_row_violations(name, gradient.indices.numpy(), count, TENSORFLOW)
        else:
            found.append(dense_gradient_violation(name, TENSORFLOW))
    if found:
        raise ContractError(found)


TENSORFLOW = Framework(
    "IndexedSlices",
    "Call summed(gradient)",
    "Adagrad, Adam, Ftrl and RMSprop of Keras step wrongly, without a word",
    "Adam drops such rows without a word",
)


MULTIPLIER = np.uint64(0x9E3779B97F4A7C15).astype(np.int64).item()
"""2**64 / golden ratio, odd: consecutive columns land far apart (Knuth 1973, multiplicative hashing)."""


def to_sparse_tensor(x: Any, *, width: int | None = None) -> tf.SparseTensor:
    """Return the SparseTensor [R, D] of a matrix in any format: int64 indices in row-major order, duplicates summed.

    Values keep their type, float32 or float64. Whatever TensorFlow or Keras would compute with in silence is refused
    (`ContractError`): NaN, columns out of range, other columns than `width`. O(nnz), 16 bytes of indices an entry.

    >>> to_sparse_tensor(scipy.sparse.csr_array(np.float32([[0, 2], [3, 0]]))).indices.numpy().tolist()
    [[0, 1], [1, 0]]
    """
    if isinstance(x, tf.SparseTensor):
        raise TypeError("A SparseTensor came where a matrix is to be handed to TensorFlow. Use it as it is.")
    require_sound(x, "matrix -> tensor")
    x = formats.to_format(x, "csr")
    require(x, for_="tensorflow", boundary="matrix -> tensor", width=width)
    if not x.has_canonical_format:
        x = x.copy()
        x.sum_duplicates()
    places = np.empty((x.nnz, 2), np.int64)
    places[:, 0] = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
    places[:, 1] = x.indices
    return tf.SparseTensor(places, x.data, x.shape)


def from_sparse_tensor(tensor: tf.SparseTensor) -> scipy.sparse.csr_array:
    """Return the csr_array of a SparseTensor of two dimensions, rows in any order; invalid ones are refused. O(nnz)."""
    if len(tensor.shape) != 2:
        raise TypeError(f"A SparseTensor of {len(tensor.shape)} dimensions came; a matrix has two: tf.sparse.reshape.")
    shape = tuple(int(length) for length in tensor.dense_shape.numpy())
    row, col = np.ascontiguousarray(tensor.indices.numpy().T)
    parts = Parts("coo", shape, {"row": row, "col": col, "data": tensor.values.numpy()})
    require(parts, for_="pytorch", boundary="tensor -> matrix")  # whose order is free, as that of a tensor is
    return formats.to_format(scipy.sparse.coo_array((parts.arrays["data"], (row, col)), shape=shape), "csr")


def hashed(x: tf.SparseTensor, buckets: int) -> tf.SparseTensor:
    """Return the same rows with D columns folded into so many `buckets`; columns that meet stand twice, and are summed
    later.

    A table of `buckets` rows then serves any number of columns (Weinberger et al. 2009, without the sign). Works in
    `tf.function`, and is the same in every process.
    """
    if buckets < 1:
        raise ValueError(f"buckets is {buckets}; it is the number of rows of the table, 1 or more.")
    mixed = x.indices[:, 1] * MULTIPLIER  # wraps around
    mixed = tf.bitwise.bitwise_xor(mixed, tf.bitwise.right_shift(mixed, tf.constant(32, tf.int64)))
    columns = tf.math.floormod(mixed, buckets)
    shape = tf.stack([x.dense_shape[0], buckets])
    folded = tf.SparseTensor(tf.stack([x.indices[:, 0], columns], axis=1), x.values, shape)
    folded._dense_shape_default = tf.TensorShape([x.shape[0], buckets])
    return folded
