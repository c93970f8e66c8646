"""Probes of Keras: what each fact of `workbench/bridges/facts/keras.toml` says, on the installed release."""

import keras
import numpy as np
import scipy.sparse
import tensorflow as tf
from keras import layers

from tests.support.probes import refusal, right, small

SPARSE = tf.SparseTensor([[0, 1], [1, 0]], [2.0, 3.0], [2, 3])
InvalidArgument = tf.errors.InvalidArgumentError


def model():
    rows = keras.Input((5,), sparse=True)
    made = keras.Model(rows, layers.Dense(1, kernel_initializer="ones")(rows))
    made.compile("sgd", "mse", run_eagerly=True)
    return made


def kept(made):
    return "sparse" if made.inputs[0].sparse else "densifies"


def clone_of_a_sparse_model():
    return kept(keras.models.clone_model(model()))


def saved_model():
    made = model()
    return kept(keras.Model.from_config(made.get_config()))


def embedding_on_sparse_rows():
    ids = tf.SparseTensor([[0, 2]], tf.constant([3], tf.int64), [1, 4])
    layer = layers.Embedding(5, 2)
    found = layer(ids)
    is_row_0 = np.allclose(found[0, 0], layer.embeddings[0]) and np.allclose(found[0, 2], layer.embeddings[3])
    return "densifies" if found.shape == (1, 4, 2) and is_row_0 else "sparse"


def trained(optimizer, is_sparse):
    """The kernel of one Dense after two steps on two inputs, sparse or dense, of the same numbers."""
    layer = layers.Dense(1, kernel_initializer="ones", use_bias=False)
    layer.build((None, 5))
    first, second = small().toarray(), small(seed=1).toarray()
    batches = [tf.sparse.from_dense(each) if is_sparse else tf.constant(each) for each in (first, second)]
    optimizer.build([layer.kernel])
    for _ in range(2):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(layer(batches[0]) - 2.0 * layer(batches[1]) - 1.0))
        optimizer.apply([tape.gradient(loss, layer.kernel.value)], [layer.kernel])
    return layer.kernel.numpy()


def one_dense_on_two_inputs():
    kinds = (keras.optimizers.Adagrad, keras.optimizers.Adam, keras.optimizers.RMSprop, keras.optimizers.Ftrl)
    outcomes = {right(trained(kind(0.1), True), trained(kind(0.1), False)) for kind in kinds}
    return outcomes.pop() if len(outcomes) == 1 else f"differs: {outcomes}"


def one_dense_on_two_inputs_sgd():
    return right(*(trained(keras.optimizers.SGD(0.1), is_sparse) for is_sparse in (True, False)))


def gradient_of_dense():
    layer = layers.Dense(2)
    layer.build((None, 3))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(SPARSE))
    gradient = tape.gradient(loss, layer.kernel.value)
    if not isinstance(gradient, tf.IndexedSlices):
        return "densifies"
    return right(sorted(gradient.indices.numpy()), [0, 1])


def dropout_on_sparse_rows():
    layer = layers.Dropout(0.5)
    assert isinstance(layer(SPARSE, training=False), tf.SparseTensor)
    return refusal(lambda: layer(SPARSE, training=True), ValueError, TypeError)


def cosine_of_sparse_rows():
    results = {isinstance(call(SPARSE), tf.SparseTensor) for call in (keras.ops.cos, keras.ops.exp)}
    return "densifies" if results == {False} else "sparse"


def relu_of_sparse_rows():
    calls = (keras.ops.relu, layers.Activation("relu"), layers.BatchNormalization(), layers.Rescaling(2.0))
    outcomes = {refusal(lambda: call(SPARSE), ValueError, TypeError) for call in calls}  # noqa: B023
    return outcomes.pop() if len(outcomes) == 1 else f"differs: {outcomes}"


def prediction(x):
    return refusal(lambda: model().predict(x, verbose=0, batch_size=4), InvalidArgument, text="RowPartition")


def columns_first():
    blocks = scipy.sparse.csr_array(small(rows=30, columns=6)).tobsr((2, 2))
    rows = keras.Input((6,), sparse=True)
    wide = keras.Model(rows, layers.Dense(1)(rows))
    of_blocks = refusal(lambda: wide.predict(blocks, verbose=0, batch_size=4), InvalidArgument, text="RowPartition")
    outcomes = {prediction(small().tocsc()), of_blocks}
    return outcomes.pop() if len(outcomes) == 1 else f"differs: {outcomes}"


def rows_out_of_order():
    return prediction(scipy.sparse.coo_array((np.float32([1, 2]), ([1, 0], [0, 1])), shape=(2, 5)))


def no_rows():
    return refusal(lambda: model().predict(small()[:0], verbose=0), UnboundLocalError, ValueError, KeyError)


def not_a_number():
    x = small()
    x.data[:] = np.nan
    return "wrong" if np.isnan(model().predict(x, verbose=0)).any() else "sparse"


def clipped_gradients():
    kinds = [lambda limit=limit: keras.optimizers.SGD(0.1, **{limit: 0.05}) for limit in CLIPS]
    kinds += [lambda kind=kind: kind(0.1) for kind in (keras.optimizers.AdamW, keras.optimizers.Nadam)]
    outcomes = {right(trained(make(), True), trained(make(), False)) for make in kinds}
    return outcomes.pop() if len(outcomes) == 1 else f"differs: {outcomes}"


CLIPS = ("clipnorm", "global_clipnorm", "clipvalue")


def sequential_without_an_input():
    made = keras.Sequential([layers.Dense(1)])
    made.compile("sgd", "mse", run_eagerly=True)
    made.predict(small(), verbose=0)
    return kept(made)


def product_of_dense():
    layer = layers.Dense(4)
    layer.build((None, 5))
    traced = tf.function(lambda rows: layer(rows)).get_concrete_function(tf.SparseTensorSpec((None, 5), tf.float32))
    kinds = {operation.type for operation in traced.graph.get_operations()}
    return "costly" if {"GatherV2", "SegmentSum"} <= kinds and "SparseTensorDenseMatMul" not in kinds else "sparse"
