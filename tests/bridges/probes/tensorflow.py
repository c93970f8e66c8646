"""Probes of TensorFlow: what each fact of `workbench/bridges/facts/tensorflow.toml` says, on the installed release."""

import numpy as np
import tensorflow as tf

from tests.support.probes import refusal, right

TWICE = tf.SparseTensor([[0, 1], [0, 1]], [1.0, 2.0], [1, 3])
UNSORTED = tf.SparseTensor([[1, 0], [0, 1]], [3.0, 2.0], [2, 3])
SORTED = tf.SparseTensor([[0, 1], [1, 0]], [2.0, 3.0], [2, 3])
InvalidArgument = tf.errors.InvalidArgumentError


def gradient_of_concat():
    values = tf.Variable([2.0, 3.0])
    with tf.GradientTape() as tape:
        x = tf.SparseTensor(SORTED.indices, values * 1.0, SORTED.dense_shape)
        loss = tf.sparse.reduce_sum(tf.sparse.concat(0, [x, x]))
    return "wrong" if tape.gradient(loss, values) is None else "sparse"


def maximum_of_repeats():
    squares = tf.reduce_sum(tf.sparse.map_values(tf.square, TWICE).values)
    return right([tf.sparse.reduce_max(TWICE), squares, tf.sparse.reduce_sum(TWICE)], [3.0, 9.0, 3.0])


def dense_of_repeats():
    return refusal(lambda: tf.sparse.to_dense(TWICE), InvalidArgument, text="repeated")


def dense_of_repeats_unchecked():
    return right(tf.sparse.to_dense(TWICE, validate_indices=False), [[0.0, 3.0, 0.0]])


def dense_of_unsorted():
    within = tf.SparseTensor([[0, 2], [0, 1]], [3.0, 2.0], [2, 3])
    return refusal(lambda: tf.sparse.to_dense(within), InvalidArgument, text="out of order")


def rows_out_of_order():
    return refusal(lambda: tf.sparse.to_dense(UNSORTED), InvalidArgument, text="out of order")


def not_a_number():
    x = tf.SparseTensor([[0, 0]], [float("nan")], [1, 2])
    product = tf.sparse.sparse_dense_matmul(x, tf.ones((2, 1)))
    return "wrong" if np.isnan(product.numpy()).all() else "sparse"


def gradient_kind(loss_of):
    w = tf.Variable(tf.ones((3, 2)))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(loss_of(w))
    return "sparse" if isinstance(tape.gradient(loss, w), tf.IndexedSlices) else "densifies"


def gradient_of_product():
    return gradient_kind(lambda w: tf.sparse.sparse_dense_matmul(SORTED, w))


def gradient_of_lookup():
    ids = tf.SparseTensor([[0, 0], [1, 0]], tf.constant([1, 2], tf.int64), [2, 1])
    return gradient_kind(lambda w: tf.nn.embedding_lookup_sparse(w, ids, None, combiner="sum"))


def sum_of_two():
    calls = (lambda: SORTED + SORTED, lambda: tf.matmul(SORTED, tf.ones((3, 1))), lambda: tf.reduce_sum(SORTED))
    outcomes = {refusal(call, TypeError, ValueError) for call in calls}
    return outcomes.pop() if len(outcomes) == 1 else f"differs: {outcomes}"


def sum_with_a_dense_tensor():
    return "sparse" if isinstance(tf.sparse.add(SORTED, tf.ones((2, 3))), tf.SparseTensor) else "densifies"


def gradient_of_maximum():
    values = tf.Variable([2.0, 3.0])
    with tf.GradientTape() as tape:
        loss = tf.sparse.reduce_max(tf.SparseTensor(SORTED.indices, values * 1.0, SORTED.dense_shape))
    return refusal(lambda: tape.gradient(loss, values), LookupError)


def indices_of_a_tensor():
    made = tf.SparseTensor(np.int32([[0, 1]]), [1.0], [1, 3])
    return "costly" if made.indices.dtype == tf.int64 else "sparse"
