"""TensorFlow and Keras: products by SparseTensor, a gradient, and a Dense layer on a sparse input."""

from typing import Any

import numpy as np

from benchmarks.libraries import Calls, Data, Operation

OPERATIONS: list[Operation] = []


def tensors(data: Data) -> tuple[Any, Any, Any]:
    """Return X as a SparseTensor, X and W as tensors."""
    import tensorflow as tf

    coo = data.csr.tocoo()
    x = tf.SparseTensor(np.stack([coo.row, coo.col], 1).astype(np.int64), coo.data, coo.shape)
    return x, tf.constant(data.dense), tf.constant(data.w)


def product(data: Data) -> Calls:
    """Return sparse_dense_matmul with 64 columns, compiled."""
    import tensorflow as tf

    x, dense, w = tensors(data)
    sparse = tf.function(lambda: tf.sparse.sparse_dense_matmul(x, w))
    full = tf.function(lambda: tf.matmul(dense, w))
    return lambda: sparse().numpy(), lambda: full().numpy()


def gradient(data: Data) -> Calls:
    """Return the gradient of W by sparse_dense_matmul, compiled."""
    import tensorflow as tf

    x, dense, w = tensors(data)

    def made(multiply: Any, x: Any) -> Any:
        """Return the compiled gradient of the sum of squared scores."""

        @tf.function
        def step(w: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(w)
                loss = tf.reduce_sum(tf.square(multiply(x, w)))
            return tape.gradient(loss, w)

        return step

    sparse, full = made(tf.sparse.sparse_dense_matmul, x), made(tf.matmul, dense)
    return lambda: sparse(w).numpy(), lambda: full(w).numpy()


def layer(data: Data) -> Calls:
    """Return the outputs of a Dense layer of 64 units."""
    import keras

    x, dense, _ = tensors(data)
    units = keras.layers.Dense(64, use_bias=False)
    units.build((None, dense.shape[1]))
    units.set_weights([data.w])
    return lambda: np.asarray(units(x)), lambda: np.asarray(units(dense))


OPERATIONS.append(Operation("TensorFlow", "sparse_dense_matmul, 64 columns", product, "tensorflow-cpu"))
OPERATIONS.append(Operation("TensorFlow", "sparse_dense_matmul and gradient", gradient, "tensorflow-cpu"))
OPERATIONS.append(Operation("Keras", "Dense(64) on a SparseTensor", layer, "keras"))
