"""TensorFlow: sparse rows as SparseTensor, data for `tf.data`, a product whose gradient stays row-sparse.

A loop of logistic regression on sparse rows; `workbench.bridges.keras` has the layer for `model.fit`.

>>> import tensorflow as tf
>>> from workbench import data
>>> from workbench.bridges.tensorflow import batches, sparse_product
>>> train = data.load("uniform", rows=400, features=60, density=0.1, cache=False)
>>> w, losses = tf.Variable(tf.zeros([train.features, 1])), []
>>> for rows, labels in batches(train, rows=50, shuffle=True):
...     with tf.GradientTape() as tape:
...         scores = sparse_product(rows, w)[:, 0]
...         labels = tf.cast(labels, tf.float32)
...         loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels, scores))
...     gradient = tape.gradient(loss, w)
...     _ = w.scatter_sub(tf.IndexedSlices(0.5 * gradient.values, gradient.indices))
...     losses.append(float(loss))
>>> type(gradient).__name__, losses[-1] < losses[0]
('IndexedSlices', True)

`to_sparse_tensor` and `from_sparse_tensor` hand matrices over and check what TensorFlow would take without a word.
`batches` are those of a `data.Feed` or `data.Dataset`, converted once a batch; `examples` are single rows that
`tf.data` batches itself. `summed` gives IndexedSlices each row once, which Keras' optimizers take for granted, and
`require_row_sparse` refuses gradients that became dense on their way to the optimizer. `hashed` folds columns.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse

from workbench import data, formats
from workbench.bridges.contracts import Framework, Source, feed_of, require, require_row_gradients, require_sound
from workbench.formats.parts import Parts

try:
    import tensorflow as tf
except ImportError as error:
    raise ImportError(
        "workbench.bridges.tensorflow needs TensorFlow: pip install 'sparse-workbench[peers]'."
    ) from error


# Gradients on their way to an optimizer of Keras: still row-sparse, and each row once.


def summed(gradient: Any) -> Any:
    """Return IndexedSlices with each row once, repeated ones summed; any other gradient as it is. O(rows * N).

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

    A regularizer of a layer's weight, for one, makes its gradient dense. `names` are as many as gradients. O(U log U).
    """
    require_row_gradients(gradients, names, TENSORFLOW, _rows_of)


def _rows_of(gradient: Any) -> tuple[np.ndarray, int | None] | None:
    """Return the row indices, int [U], of IndexedSlices and the count of rows of the weight, None if unknown.

    None in place of both is for a dense gradient.
    """
    if not isinstance(gradient, tf.IndexedSlices):
        return None
    return gradient.indices.numpy(), None if gradient.dense_shape is None else int(gradient.dense_shape[0])


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

    Values keep their type, float32 or float64. Raises ContractError for what TensorFlow or Keras would compute with in
    silence: NaN, columns out of range, other columns than `width`, of which None allows any; TypeError for a
    SparseTensor. O(nnz), 16 bytes of indices an entry.

    >>> to_sparse_tensor(scipy.sparse.csr_array(np.float32([[0, 2], [3, 0]]))).indices.numpy().tolist()
    [[0, 1], [1, 0]]
    """
    if isinstance(x, tf.SparseTensor):
        raise TypeError("A SparseTensor came where a matrix is to be handed to TensorFlow. Use it as it is.")
    require_sound(x, "matrix -> tensor")
    x = formats.to_format(x, "csr")
    require(x, for_="tensorflow", boundary="matrix -> tensor", width=width)
    x = formats.arrays.canonical(x)
    places = np.empty((x.nnz, 2), np.int64)
    places[:, 0] = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
    places[:, 1] = x.indices
    return tf.SparseTensor(places, x.data, x.shape)


def from_sparse_tensor(tensor: tf.SparseTensor) -> scipy.sparse.csr_array:
    """Return the csr_array of a SparseTensor of two dimensions, rows in any order. O(nnz).

    Raises ContractError for an invalid one, TypeError for other dimensions.
    """
    if len(tensor.shape) != 2:
        raise TypeError(f"A SparseTensor of {len(tensor.shape)} dimensions came; a matrix has two: tf.sparse.reshape.")
    shape = tuple(int(length) for length in tensor.dense_shape.numpy())
    row, col = np.ascontiguousarray(tensor.indices.numpy().T)
    parts = Parts("coo", shape, {"row": row, "col": col, "data": tensor.values.numpy()})
    require(parts, for_="pytorch", boundary="tensor -> matrix")  # whose order is free, as that of a tensor is
    return formats.to_format(scipy.sparse.coo_array((parts.arrays["data"], (row, col)), shape=shape), "csr")


def hashed(x: tf.SparseTensor, buckets: int) -> tf.SparseTensor:
    """Return the same rows with D columns folded into so many `buckets`, as a new SparseTensor [R, buckets].

    Columns that meet stand twice, and are summed later. A table of `buckets` rows then serves any number of columns
    (Weinberger et al. 2009, without the sign). Works in `tf.function`, and is the same in every process. Raises
    ValueError for fewer than one bucket.
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


# X @ W of a SparseTensor, which reads the active rows of W alone, and whose gradient holds no others.


def sparse_product(x: tf.SparseTensor, w: Any, *, values_too: bool = False) -> tf.Tensor:
    """Return X @ W [R, N] of x [R, D] and w [D, N]; w's gradient is IndexedSlices with each active column of x once.

    `tf.sparse.sparse_dense_matmul` reads all of w and has a dense gradient of it; here the U active rows are gathered,
    and multiplied by the batch with its columns numbered anew. With `values_too` there is a gradient towards the values
    of x as well, which takes z N numbers of memory; else none. Columns may come in any order, and twice. Works in
    `tf.function`; raises TypeError unless x is a SparseTensor. O(z N), whatever D is.
    """
    if not isinstance(x, tf.SparseTensor):
        raise TypeError(
            f"A {type(x).__name__} came; sparse_product takes a SparseTensor: to_sparse_tensor(x), and a model's "
            "Input(sparse=True)."
        )
    rows, number = tf.unique(x.indices[:, 1], out_idx=tf.int64)
    places = tf.stack([x.indices[:, 0], number], axis=1)
    shape = tf.stack([x.dense_shape[0], tf.size(rows, out_type=tf.int64)])

    @tf.custom_gradient
    def product(values: tf.Tensor, table: tf.Tensor) -> Any:
        """Return the product [R, N] of values [z] and gathered rows of w [U, N], and its gradients' function."""
        matrix = tf.SparseTensor(places, values, shape)

        def gradients(grad_scores: tf.Tensor) -> Any:
            """Return the gradients of the values [z], None unless asked for, and of the gathered rows [U, N]."""
            of_table = tf.sparse.sparse_dense_matmul(matrix, grad_scores, adjoint_a=True)
            if not values_too:
                return None, of_table
            products = tf.gather(grad_scores, places[:, 0]) * tf.gather(table, places[:, 1])
            return tf.reduce_sum(products, axis=1), of_table

        return tf.sparse.sparse_dense_matmul(matrix, table), gradients

    return product(x.values, tf.gather(w, rows))


# Data for `tf.data`: the batches of a feed, converted once a batch, and single rows.


def batches(
    source: Source, *, rows: int = 256, shuffle: bool = False, seed: int = 0, last: str = "keep", first_epoch: int = 0
) -> tf.data.Dataset:
    """Return the batches of a `data.Feed` as (SparseTensor [R, D], labels), for `tf.data`.

    Of a `data.Dataset` or a path they are cut here: a file, read as `data.guess` says, or a folder `X.sparse`, which
    may be larger than memory. Each pass over the result is the next epoch, from `first_epoch` on; what comes follows
    from the feed and the number of the epoch alone. Width and types are known to the graph, so that Keras builds on
    them; the number of batches is known where the first two epochs have as many. Labels are as in the feed, absent
    where it has none; raises DataError for sparse ones.
    """
    feed = feed_of(source, "batches", rows=rows, shuffle=shuffle, seed=seed, last=last)
    begun = iter(range(first_epoch, 2**62))
    first = next(feed.epoch(first_epoch))
    width, is_labelled = first.x.shape[1], bool(first.labels)

    def generate() -> Iterator[Any]:
        """Yield the converted batches of the next epoch, with labels if there are any."""
        for batch in feed.epoch(next(begun)):
            x = to_sparse_tensor(batch.x, width=width)
            yield (x, batch.y) if is_labelled else x

    found = tf.data.Dataset.from_generator(generate, output_signature=_signature(first, width))
    is_even = feed.count(first_epoch) == feed.count(first_epoch + 1)
    return found.apply(tf.data.experimental.assert_cardinality(feed.count(first_epoch))) if is_even else found


def _signature(batch: data.Batch, width: int) -> Any:
    """Return the types and shapes of a batch, of any number of rows. Raises DataError for sparse labels."""
    rows = tf.SparseTensorSpec((None, width), batch.x.dtype)
    if not batch.labels:
        return rows
    if not isinstance(batch.y, np.ndarray):
        raise data.DataError("The labels of this feed are sparse; give dense ones: y.toarray().")
    return rows, tf.TensorSpec((None, *batch.y.shape[1:]), batch.y.dtype)


def examples(x: Any, y: Any = None) -> tf.data.Dataset:
    """Return single rows of a matrix as SparseTensors [D], with labels: what `shuffle` and `batch` of `tf.data` take.

    Batched they are SparseTensors [R, D]; nothing is made dense. All of x is converted at once: for data that is large
    use `batches`, which is faster too. Raises DataError for another count of labels, ContractError for an invalid x.
    """
    rows = to_sparse_tensor(x)
    if y is not None and len(y) != rows.shape[0]:
        raise data.DataError(f"y has {len(y)} entries for {rows.shape[0]} rows of x; it needs one for each.")
    return tf.data.Dataset.from_tensor_slices(rows if y is None else (rows, y))


__all__ = [
    "batches",
    "examples",
    "from_sparse_tensor",
    "hashed",
    "require_row_sparse",
    "sparse_product",
    "summed",
    "to_sparse_tensor",
]
