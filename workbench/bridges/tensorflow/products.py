"""X @ W of a SparseTensor, which reads the active rows of W alone, and whose gradient holds no others."""

from typing import Any

from workbench.bridges.tensorflow.library import tf


def sparse_product(x: tf.SparseTensor, w: Any, *, values_too: bool = False) -> tf.Tensor:
    """X @ W [R, N] of x [R, D] and w [D, N]; the gradient of w is IndexedSlices with each active column of x once.

    `tf.sparse.sparse_dense_matmul` reads all of w and has a dense gradient of it, Keras' Dense has a row-sparse
    gradient, but its forward pass gathers entries times N numbers. Here the U active rows are gathered, and multiplied
    by the batch with its columns numbered anew: all of a variable would be copied, once an optimizer has written
    single rows of it. With `values_too` there is a gradient towards the values of x as well, which takes z N numbers
    of memory; else none. Columns may come in any order, and twice. Works in `tf.function`. O(z N), whatever D is.
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
        held = tf.SparseTensor(places, values, shape)

        def slopes(slope: tf.Tensor) -> Any:
            of_table = tf.sparse.sparse_dense_matmul(held, slope, adjoint_a=True)
            return _of_values(places, slope, table) if values_too else None, of_table

        return tf.sparse.sparse_dense_matmul(held, table), slopes

    return product(x.values, tf.gather(w, rows))


def _of_values(places: tf.Tensor, slope: tf.Tensor, table: tf.Tensor) -> tf.Tensor:
    """Return product, for each entry, of its row of the slope and its row of the table."""
    return tf.reduce_sum(tf.gather(slope, places[:, 0]) * tf.gather(table, places[:, 1]), axis=1)
