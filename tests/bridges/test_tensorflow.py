"""TensorFlow: matrices to tensors and back, data for tf.data, the product and its gradient, gradients of others."""

import doctest
import importlib
import pkgutil

import numpy as np
import pytest
import scipy.sparse

from tests.support.of_tensorflow import Late, frameworks
from tests.support.stale_flags import FAULTS, KINDS, stale
from tests.support.torch_rows import dense, drawn
from workbench import bridges, data
from workbench.bridges.contracts import ContractError

tf, keras = frameworks()
bridge = Late("workbench.bridges.tensorflow")
MODULES = [module.name for module in pkgutil.iter_modules([f"{folder}/tensorflow" for folder in bridges.__path__])]


@pytest.mark.parametrize("name", ["tensorflow", *(f"tensorflow.{module}" for module in MODULES), "keras"])
def test_examples(name):
    module = importlib.import_module(f"workbench.bridges.{name}")
    assert not doctest.testmod(module, extraglobs={"scipy": scipy, "np": np}).failed


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tensors_are_in_order_with_duplicates_summed(index, dtype):
    x = drawn(index=index, dtype=dtype)
    before = x.indices.copy()
    tensor = bridge.to_sparse_tensor(x)
    assert tensor.dtype == dtype
    assert tensor.shape == x.shape
    places = tensor.indices.numpy()
    assert (np.lexsort((places[:, 1], places[:, 0])) == np.arange(len(places))).all()
    assert len(np.unique(places, axis=0)) == len(places)
    np.testing.assert_allclose(tf.sparse.to_dense(tensor).numpy(), dense(x), rtol=1e-6)
    np.testing.assert_array_equal(x.indices, before)
    np.testing.assert_allclose(bridge.from_sparse_tensor(tensor).toarray(), dense(x), rtol=1e-6)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_tensor_has_what_the_matrix_holds_whatever_scipy_remembers(kind, fault):
    x, true = stale(kind, fault, np.float32)
    tensor = bridge.to_sparse_tensor(x)
    places = tensor.indices.numpy()
    assert (np.diff(places[:, 0] * 40 + places[:, 1]) > 0).all()
    np.testing.assert_allclose(tf.sparse.to_dense(tensor).numpy(), true.toarray(), rtol=1e-6)


@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
def test_every_format_without_rows_or_entries_is_handed_over(format):
    for shape in ((0, 5), (3, 5), (1, 1)):
        x = scipy.sparse.coo_array(shape, dtype=np.float32).asformat(format)
        assert bridge.to_sparse_tensor(x).shape == shape


def test_what_tensorflow_takes_in_silence_is_refused():
    x = drawn()
    with pytest.raises(ContractError, match="width"):
        bridge.to_sparse_tensor(x, width=29)
    x.data[0] = np.nan
    with pytest.raises(ContractError, match="finite"):
        bridge.to_sparse_tensor(x)
    outside = tf.SparseTensor([[0, 7]], np.float32([1]), [2, 5])
    with pytest.raises(ContractError, match="range"):
        bridge.from_sparse_tensor(outside)
    with pytest.raises(TypeError, match=r"two: tf\.sparse\.reshape"):
        bridge.from_sparse_tensor(tf.SparseTensor([[0]], [1.0], [2]))


@pytest.mark.parametrize("wrapped", [lambda call: call, lambda call: tf.function(call)], ids=["eager", "graph"])
def test_gradient_of_the_product_has_each_touched_row_once(wrapped):
    x, rng = drawn(), np.random.default_rng(0)
    w, slope = rng.standard_normal((30, 4)).astype(np.float32), rng.standard_normal((8, 4)).astype(np.float32)
    row = np.repeat(np.arange(8), np.diff(x.indptr))
    tensor = tf.SparseTensor(np.stack([row, x.indices], 1).astype(np.int64), x.data, x.shape)  # repeated, unsorted
    table = tf.Variable(w)

    @wrapped
    def step():
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(tensor.values)
            scores = bridge.sparse_product(tensor, table, values_too=True)
            loss = tf.reduce_sum(scores * slope)
        return scores, tape.gradient(loss, table), tape.gradient(loss, tensor.values)

    scores, gradient, of_values = step()
    np.testing.assert_allclose(scores, dense(x) @ w, rtol=1e-4, atol=1e-5)
    assert isinstance(gradient, tf.IndexedSlices)
    assert sorted(gradient.indices.numpy()) == sorted(set(x.indices.tolist()))
    np.testing.assert_allclose(tf.convert_to_tensor(gradient), dense(x).T @ slope, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(of_values, (slope[row] * w[x.indices]).sum(1), rtol=1e-4, atol=1e-5)


def test_batches_of_a_file_by_its_path(tmp_path):
    (tmp_path / "x.svm").write_text("1 1:0.5 3:2\n0 2:1\n")
    ((rows, y),) = bridge.batches(tmp_path / "x.svm")
    assert (tuple(rows.shape), rows.values.numpy().tolist(), y.numpy().tolist()) == ((2, 3), [0.5, 2, 1], [1, 0])


def test_the_product_takes_no_dense_batch():
    with pytest.raises(TypeError, match="takes a SparseTensor"):
        bridge.sparse_product(tf.zeros([2, 3]), tf.zeros([3, 1]))


def test_batches_are_those_of_the_feed_epoch_after_epoch():
    made = data.load("uniform", rows=50, features=20, density=0.2, cache=False)
    feed = data.Batches(made.x, made.y, rows=16, shuffle=True, seed=3)
    found = bridge.batches(feed)
    assert found.cardinality().numpy() == 4
    assert found.element_spec[0].shape.as_list() == [None, 20]
    for epoch in range(2):
        for (rows, labels), batch in zip(found, feed.epoch(epoch), strict=True):
            np.testing.assert_array_equal(bridge.from_sparse_tensor(rows).toarray(), batch.x.toarray())
            np.testing.assert_array_equal(labels, batch.y)


def test_a_feed_without_labels_gives_rows_alone():
    x = scipy.sparse.eye_array(5, dtype=np.float32, format="csr")
    (only,) = bridge.batches(data.Batches(x, rows=8))
    np.testing.assert_array_equal(tf.sparse.to_dense(only), np.eye(5))
    with pytest.raises(data.DataError, match=r"takes a data\.Feed"):
        bridge.batches(x)
    with pytest.raises(data.DataError, match="labels of this feed are sparse"):
        bridge.batches(data.Batches(x, x, rows=2))


def test_examples_are_batched_by_tensorflow():
    x, y = drawn(), np.arange(8)
    found = list(bridge.examples(x, y).batch(3))
    assert [rows.shape.as_list() for rows, _ in found] == [[3, 30], [3, 30], [2, 30]]
    np.testing.assert_allclose(np.concatenate([tf.sparse.to_dense(rows) for rows, _ in found]), dense(x), rtol=1e-6)
    with pytest.raises(data.DataError, match="7 entries for 8 rows"):
        bridge.examples(x, y[:7])


def test_columns_are_folded_alike_everywhere():
    x = drawn(columns=1000)
    tensor = bridge.to_sparse_tensor(x)
    folded = bridge.hashed(tensor, 7)
    columns = tensor.indices.numpy()[:, 1]
    with np.errstate(over="ignore"):
        mixed = columns * np.int64(bridge.MULTIPLIER)
    expected = (mixed ^ (mixed >> 32)) % 7
    np.testing.assert_array_equal(folded.indices.numpy()[:, 1], expected)
    assert folded.shape.as_list() == [8, 7]
    assert len(set(expected)) > 2
    with pytest.raises(ValueError, match="buckets is 0"):
        bridge.hashed(tensor, 0)


def test_repeated_rows_are_summed_before_an_optimizer_steps_them():
    repeated = tf.IndexedSlices(tf.ones([2, 1]), tf.constant([1, 1]), tf.constant([3, 1]))
    found = {}
    for name, gradient in {"repeated": repeated, "summed": bridge.summed(repeated), "dense": [[0.0], [2], [0]]}.items():
        weight = tf.Variable(tf.ones([3, 1]))
        gradient = gradient if isinstance(gradient, tf.IndexedSlices) else tf.constant(gradient)
        keras.optimizers.Adagrad(0.1).apply([gradient], [weight])
        found[name] = float(weight[1, 0])
    assert found["summed"] == pytest.approx(found["dense"], rel=1e-5)
    assert found["repeated"] != pytest.approx(found["dense"], rel=1e-3), "Keras has mended this; say so"
    assert bridge.summed(weight) is weight


def test_gradients_that_are_not_row_sparse_any_more_are_refused():
    sound = tf.IndexedSlices(tf.ones([2, 1]), tf.constant([1, 2]), tf.constant([3, 1]))
    bridge.require_row_sparse([sound], ["kernel"])
    wrong = {
        "is dense": tf.ones([3, 1]),
        "repeats 1 row": tf.IndexedSlices(tf.ones([2, 1]), tf.constant([1, 1]), tf.constant([3, 1])),
        "does not say how many rows": tf.IndexedSlices(tf.ones([1, 1]), tf.constant([1])),
        "names rows outside": tf.IndexedSlices(tf.ones([1, 1]), tf.constant([3]), tf.constant([3, 1])),
    }
    for text, gradient in wrong.items():
        with pytest.raises(ContractError, match=text):
            bridge.require_row_sparse([gradient], ["kernel"])
