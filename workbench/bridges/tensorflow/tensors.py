"""Sparse matrices as SparseTensor and back, in the order and the types that all of TensorFlow takes."""

from typing import Any

import numpy as np
import scipy.sparse

from workbench import formats
from workbench.bridges.contracts import require, require_sound
from workbench.bridges.tensorflow.library import tf
from workbench.formats.parts import Parts

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15).astype(np.int64).item()
"""2**64 / golden ratio, odd: consecutive columns land far apart (Knuth 1973, multiplicative hashing)."""


def to_sparse_tensor(x: Any, *, width: int | None = None) -> tf.SparseTensor:
    """The SparseTensor [R, D] of a matrix in any format: int64 indices in row-major order, duplicates summed.

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
    """The csr_array of a SparseTensor of two dimensions, rows in any order; malformed ones are refused. O(nnz)."""
    if len(tensor.shape) != 2:
        raise TypeError(f"A SparseTensor of {len(tensor.shape)} dimensions came; a matrix has two: tf.sparse.reshape.")
    shape = tuple(int(length) for length in tensor.dense_shape.numpy())
    row, col = np.ascontiguousarray(tensor.indices.numpy().T)
    parts = Parts("coo", shape, {"row": row, "col": col, "data": tensor.values.numpy()})
    require(parts, for_="pytorch", boundary="tensor -> matrix")  # whose order is free, as that of a tensor is
    return formats.to_format(scipy.sparse.coo_array((parts.arrays["data"], (row, col)), shape=shape), "csr")


def hashed(x: tf.SparseTensor, buckets: int) -> tf.SparseTensor:
    """The same rows with D columns folded into so many `buckets`; columns that meet stand twice, and are summed later.

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
