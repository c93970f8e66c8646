"""X @ W of a SparseTensor, whose gradient holds the touched rows of W alone."""

from typing import Any

from workbench.bridges.tensorflow.library import tf


def sparse_product(x: tf.SparseTensor, w: Any, *, values_too: bool = False) -> tf.Tensor:
    """X @ W [R, N] of x [R, D] and w [D, N]; the gradient of w is IndexedSlices, each touched column of x once.

    `tf.sparse.sparse_dense_matmul` has a dense gradient of w, Keras' Dense one that is row-sparse but gathers entries
    times N numbers forward; here the forward pass is the former's, and the gradient its product too, of the batch with
    its columns numbered anew. With `values_too` there is a gradient towards the values of x as well, which takes z N
    numbers of memory; else none. Columns may come in any order, and twice. Works in `tf.function`. O(z N).
    """
    if not isinstance(x, tf.SparseTensor):
        raise TypeError(
            f"A {type(x).__name__} came; sparse_product takes a SparseTensor: to_sparse_tensor(x), and a model's "
            "Input(sparse=True)."
        )

    @tf.custom_gradient
    def product(values: tf.Tensor, table: tf.Tensor) -> Any:
        held = tf.SparseTensor(x.indices, values, x.dense_shape)

        def slopes(slope: tf.Tensor, variables: Any = None) -> Any:
            return _of_values(x, slope, table) if values_too else None, _of_table(held, slope, table)

        return tf.sparse.sparse_dense_matmul(held, table), slopes

    return product(x.values, tf.convert_to_tensor(w))


def _of_table(x: tf.SparseTensor, slope: tf.Tensor, table: tf.Tensor) -> tf.IndexedSlices:
    """X.T @ slope, of the touched rows alone."""
    rows, number = tf.unique(x.indices[:, 1], out_idx=tf.int64)
    places = tf.stack([number, x.indices[:, 0]], axis=1)
    shape = tf.stack([tf.size(rows, out_type=tf.int64), x.dense_shape[0]])
    touched = tf.sparse.sparse_dense_matmul(tf.SparseTensor(places, x.values, shape), slope)
    return tf.IndexedSlices(touched, rows, tf.shape(table, out_type=tf.int64))


def _of_values(x: tf.SparseTensor, slope: tf.Tensor, table: tf.Tensor) -> tf.Tensor:
    """For each entry the product of its row of the slope and its row of the table."""
    row, col = x.indices[:, 0], x.indices[:, 1]
    return tf.reduce_sum(tf.gather(slope, row) * tf.gather(table, col), axis=1)
