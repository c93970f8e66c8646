"""SparseDense of Keras: sparse batches, a row-sparse gradient, training, saving, and what it refuses."""

import numpy as np
import pytest

from tests.support.of_tensorflow import Late, frameworks
from tests.support.torch_rows import dense, drawn
from workbench import data

tf, keras = frameworks()
bridge, layers = Late("workbench.bridges.tensorflow"), Late("workbench.bridges.keras")


@pytest.fixture(scope="module")
def made() -> data.Dataset:
    return data.load("uniform", rows=600, features=40, density=0.2, cache=False)


def model_of(features, layer, *, sparse=True):
    rows = keras.Input((features,), sparse=sparse)
    return keras.Model(rows, layer(rows))


def test_it_computes_what_dense_does_with_a_row_sparse_gradient():
    x = drawn()
    layer = layers.SparseDense(3, activation="tanh")
    model = model_of(30, layer)
    tensor = bridge.to_sparse_tensor(x)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(tensor) ** 2)
    kernel, bias = (weight.numpy() for weight in model.weights)
    np.testing.assert_allclose(model(tensor), np.tanh(dense(x) @ kernel + bias), rtol=1e-4, atol=1e-6)
    gradients = tape.gradient(loss, model.trainable_variables)
    bridge.require_row_sparse(gradients[:1], ["kernel"])
    assert set(gradients[0].indices.numpy()) == set(x.indices.tolist())


def test_only_the_touched_rows_of_the_kernel_are_read():
    model = model_of(30, layers.SparseDense(2, use_bias=False))
    graph = tf.function(model).get_concrete_function(tf.SparseTensorSpec((None, 30), tf.float32)).graph
    kinds = {operation.type for operation in graph.get_operations()}
    assert "ResourceGather" in kinds
    assert "ReadVariableOp" not in kinds, "all of it is copied then, once single rows were written"


@pytest.mark.parametrize(
    "optimizer",
    ["sgd", "adam", *(pytest.param(name, marks=pytest.mark.exhaustive) for name in ("adagrad", "ftrl", "rmsprop"))],
)
def test_it_trains_as_a_dense_layer_on_dense_rows_does(made, optimizer):
    kernels = []
    for is_sparse in (True, False):
        layer = layers.SparseDense(1, "sigmoid", kernel_initializer="zeros") if is_sparse else keras.layers.Dense(
            1, "sigmoid", kernel_initializer="zeros"
        )  # fmt: skip
        model = model_of(40, layer, sparse=is_sparse)
        model.compile(optimizer, "binary_crossentropy")
        if is_sparse:
            model.fit(bridge.batches(made, rows=100), epochs=2, shuffle=False, verbose=0)
        else:
            model.fit(made.x.toarray(), made.y, batch_size=100, shuffle=False, epochs=2, verbose=0)
        kernels.append(model.weights[0].numpy())
    np.testing.assert_allclose(kernels[0], kernels[1], rtol=1e-3, atol=1e-5)
    assert kernels[0].any()


def test_logistic_regression_by_a_loop_is_that_by_fit(made):
    w, rate = tf.Variable(tf.zeros([40, 1])), 0.5
    for _ in range(2):
        for rows, labels in bridge.batches(made, rows=100):
            with tf.GradientTape() as tape:
                scores = bridge.sparse_product(rows, w)[:, 0]
                loss = tf.reduce_mean(
                    tf.nn.sigmoid_cross_entropy_with_logits(tf.cast(labels, tf.float32), scores)
                )  # fmt: skip
            gradient = tape.gradient(loss, w)
            w.scatter_sub(tf.IndexedSlices(rate * gradient.values, gradient.indices))
    model = model_of(40, layers.SparseDense(1, use_bias=False, kernel_initializer="zeros"))
    model.compile(keras.optimizers.SGD(rate), keras.losses.BinaryCrossentropy(from_logits=True))
    model.fit(bridge.batches(made, rows=100), epochs=2, shuffle=False, verbose=0)
    np.testing.assert_allclose(w, model.weights[0], rtol=1e-4, atol=1e-6)


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # Keras, while it loads
@pytest.mark.parametrize("buckets", [None, 16])
def test_a_saved_model_is_the_same_and_stays_sparse(made, tmp_path, buckets):
    model = model_of(40, layers.SparseDense(3, "softmax", buckets=buckets))
    model.compile("adagrad", "sparse_categorical_crossentropy")
    model.fit(bridge.batches(made, rows=100), shuffle=False, verbose=0)
    model.save(tmp_path / "model.keras")
    read = keras.saving.load_model(tmp_path / "model.keras")
    assert read.inputs[0].sparse
    assert read.layers[-1].get_config() == model.layers[-1].get_config()
    rows = bridge.to_sparse_tensor(made.x)
    np.testing.assert_allclose(read.predict(rows, verbose=0), model.predict(rows, verbose=0), rtol=1e-5, atol=1e-7)
    assert model.weights[0].shape == (buckets or 40, 3)


def test_batches_of_another_width_are_refused_also_once_traced(made):
    model = model_of(40, layers.SparseDense(1))
    model.compile("sgd", "mse")
    model.fit(bridge.batches(made, rows=100), shuffle=False, verbose=0)
    wider = tf.data.Dataset.from_tensors((tf.SparseTensor([[0, 49]], [1.0], [1, 50]), tf.zeros([1, 1])))
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError)):
        model.fit(wider, shuffle=False, verbose=0)
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError)):
        model.layers[-1](tf.SparseTensor([[0, 49]], [1.0], [1, 50]))


def test_dense_batches_and_wrong_sizes_are_refused():
    with pytest.raises(TypeError, match="sparse=True"):
        model_of(5, layers.SparseDense(1), sparse=False)(np.zeros((2, 5), np.float32))
    for wrong in ({"units": 0}, {"units": "2"}, {"units": 2, "buckets": 0}):
        with pytest.raises(ValueError, match="whole number from 1 on"):
            layers.SparseDense(**wrong)
    with pytest.raises(ValueError, match="columns known"):
        model_of(None, layers.SparseDense(1))


def test_rows_without_entries_and_batches_without_rows():
    model = model_of(5, layers.SparseDense(2, bias_initializer="ones"))
    empty = tf.SparseTensor(np.zeros((0, 2), np.int64), np.zeros(0, np.float32), [3, 5])
    np.testing.assert_array_equal(model(empty), np.ones((3, 2)))
    none = tf.SparseTensor(np.zeros((0, 2), np.int64), np.zeros(0, np.float32), [0, 5])
    assert model(none).shape == (0, 2)
