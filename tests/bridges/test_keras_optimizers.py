"""Our optimizers in Keras: the rows of a gradient alone, by the very formulas of our kernels; saved and resumed."""

import numpy as np
import pytest
import scipy.sparse

from tests.support.of_tensorflow import Late, frameworks
from workbench import data, optimizers
from workbench.bridges.contracts import class_name
from workbench.formats import RowSparse
from workbench.optimizers import OptimizerError, Updater

tf, keras = frameworks()
bridge, tensors = Late("workbench.bridges.keras"), Late("workbench.bridges.tensorflow")

SHAPE = (7, 3)
OPTIONS = {"decay": 0.01, "rescale": 0.5, "clip": 0.4}


def gradients() -> list[tuple[np.ndarray, np.ndarray]]:
    generator = np.random.default_rng(0)
    return [(np.sort(generator.choice(7, 3, replace=False)), generator.normal(size=(3, 3))) for _ in range(4)]


def given(rule: str, **options):
    known = optimizers.get(rule).options
    return getattr(bridge, class_name(rule))(0.125, **{k: v for k, v in options.items() if k in known})


@pytest.mark.parametrize("lazy", ["on", "off"])
@pytest.mark.parametrize("rule", optimizers.names())
def test_steps_are_those_of_our_kernels(rule, lazy):
    first = np.random.default_rng(1).normal(size=SHAPE)
    known = optimizers.get(rule).options
    own = {"learning_rate": 0.125} | {name: value for name, value in OPTIONS.items() if name in known}
    updater, weights = Updater(rule, lazy=lazy, **own), {"w": first.copy()}
    variable, optimizer = tf.Variable(first), given(rule, **OPTIONS)
    for rows, values in gradients():
        updater.update(weights, {"w": RowSparse(values, rows, SHAPE)})
        slices = tf.IndexedSlices(tf.constant(values), tf.constant(rows), tf.constant(SHAPE, tf.int64))
        optimizer.apply([slices if lazy == "on" else tf.convert_to_tensor(slices)], [variable])
    np.testing.assert_allclose(variable, weights["w"], rtol=1e-10, atol=1e-12)
    assert not np.allclose(variable, first)


def test_keras_adam_moves_rows_without_gradient_and_ours_does_not():
    moved = {}
    for name, optimizer in (("keras", keras.optimizers.Adam(0.1)), ("ours", bridge.LazyAdam(0.1))):
        variable = tf.Variable(np.zeros(SHAPE, np.float32))
        for row in (1, 2):
            optimizer.apply([tf.IndexedSlices(tf.ones((1, 3)), tf.constant([row]), tf.constant(SHAPE))], [variable])
        moved[name] = variable.numpy()[1, 0]
    assert moved["keras"] < moved["ours"] - 0.01


def test_rows_that_come_twice_are_summed_as_keras_does_not():
    twice = tf.IndexedSlices(tf.ones((2, 1)), tf.constant([1, 1]), tf.constant([3, 1]))
    results = {}
    for name, optimizer in (("keras", keras.optimizers.Adagrad(0.1)), ("ours", bridge.LazyAdagrad(0.1))):
        for kind, gradient in (("slices", twice), ("dense", tf.convert_to_tensor(twice))):
            variable = tf.Variable(np.ones((3, 1), np.float32))
            optimizer_of = type(optimizer).from_config(optimizer.get_config())
            optimizer_of.apply([gradient], [variable])
            results[name, kind] = variable.numpy()[1, 0]
    assert results["ours", "slices"] == pytest.approx(results["ours", "dense"])
    assert results["keras", "slices"] != pytest.approx(results["keras", "dense"])


LIMITS = [{"global_clipnorm": 0.7}, {"clipnorm": 0.4}, {"clipvalue": 0.3}]


def repeated_rows():
    """Return (gradients of two variables with row 1 four times, the same with each row once, the same dense)."""
    rows, values = np.array([1, 4, 1, 1, 0, 1]), np.random.default_rng(2).normal(size=(6, 3))
    slices = tf.IndexedSlices(tf.constant(values), tf.constant(rows), tf.constant(SHAPE, tf.int64))
    dense, other = tf.convert_to_tensor(slices), tf.constant(np.linspace(-1, 1, 3))
    once = tf.IndexedSlices(tf.gather(dense, [0, 1, 4]), tf.constant([0, 1, 4]), tf.constant(SHAPE, tf.int64))
    return [slices, other], [once, other], [dense, other]


def steps_with(optimizer, gradients):
    variables = [tf.Variable(np.ones(SHAPE)), tf.Variable(np.ones(3))]
    for _ in range(3):
        optimizer.apply(gradients, variables)
    return np.concatenate([variable.numpy().ravel() for variable in variables])


@pytest.mark.covering(targets=lambda case: {case["rule"], str(case["limit"])})  # no rule has its own code for a limit
@pytest.mark.parametrize("limit", LIMITS, ids=str)
@pytest.mark.parametrize("rule", optimizers.names())
def test_gradients_are_clipped_after_repeated_rows_are_summed(rule, limit):
    slices, once, _ = repeated_rows()
    found, expected = (steps_with(getattr(bridge, class_name(rule))(0.1, **limit), each) for each in (slices, once))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("limit", LIMITS, ids=str)
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("LazySGD", {}), ("LazyMomentum", {"momentum": 0.5}), ("LazyNesterov", {"momentum": 0.5, "nesterov": True})],
)
def test_clipped_steps_are_those_of_keras_on_the_dense_gradient(ours, theirs, limit):
    slices, _, dense = repeated_rows()
    momentum = {"beta": 0.5} if theirs else {}
    found = steps_with(getattr(bridge, ours)(0.125, **momentum, **limit), slices)
    np.testing.assert_allclose(found, steps_with(keras.optimizers.SGD(0.125, **theirs, **limit), dense), rtol=1e-12)


def test_a_step_of_repeated_ids_is_as_long_as_the_global_norm_allows():
    ids = np.array([[1, 1, 1, 2], [1, 1, 2, 1], [1, 3, 1, 1]])
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.layers.Embedding(6, 3), keras.layers.Flatten(), keras.layers.Dense(1)])
    model.build(ids.shape)
    model.compile(bridge.LazySGD(1.0, global_clipnorm=0.5), "mse")
    before = [weight.numpy() for weight in model.trainable_variables]
    model.fit(ids, np.full((3, 1), 5.0), batch_size=3, verbose=0)
    steps = [(weight.numpy() - old).ravel() for weight, old in zip(model.trainable_variables, before, strict=True)]
    assert np.linalg.norm(np.concatenate(steps)) == pytest.approx(0.5, rel=1e-5)


def made(optimizer):
    rows = keras.Input((40,), sparse=True)
    model = keras.Model(rows, bridge.SparseDense(1, kernel_initializer="zeros")(rows))
    model.compile(optimizer, keras.losses.BinaryCrossentropy(from_logits=True))
    return model


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # Keras, while it loads
def test_a_model_that_was_saved_goes_on_as_if_it_had_not_been(tmp_path):
    train = data.load("uniform", rows=200, features=40, density=0.2, cache=False)
    feed = tensors.batches(train, rows=50)
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.9)
    model = made(bridge.LazyAdam(schedule, beta_1=0.8, clipnorm=1.0))
    model.fit(feed, shuffle=False, verbose=0)
    model.save(tmp_path / "model.keras")
    read = keras.saving.load_model(tmp_path / "model.keras")
    assert type(read.optimizer) is bridge.LazyAdam
    assert read.optimizer.get_config() == model.optimizer.get_config()
    for one in (model, read):
        one.fit(feed, shuffle=False, verbose=0)
    np.testing.assert_allclose(model.weights[0], read.weights[0], rtol=1e-4, atol=1e-5)  # TensorFlow sums in any order
    assert model.optimizer.options["beta1"] == 0.8


def test_unknown_names_list_the_known_ones():
    with pytest.raises(OptimizerError, match=r"no option \['momentum'\]"):
        bridge.LazyAdam(0.1, momentum=0.9)
    with pytest.raises(AttributeError, match="LazyAdagrad"):
        _ = bridge.LazyAdm
    with pytest.raises(OptimizerError, match="LazyAdam"):
        bridge.LazyOptimizer(0.1)
    assert set(dir(bridge)) >= {class_name(rule) for rule in optimizers.names()}


def test_what_makes_a_model_dense_is_told_before_it_trains():
    def result(model) -> list[str]:
        return [breach.contract for breach in bridge.check_model(model, 40)]

    rows, dense = keras.Input((40,), sparse=True), keras.Input((40,))
    inner = keras.Sequential([keras.layers.Dense(2)])
    assert result(made("adam")) == []
    assert result(keras.Model(rows, keras.layers.Dense(2)(rows))) == []
    assert result(keras.Model(dense, keras.layers.Dense(2)(dense))) == ["sparse"], "Keras says nothing"
    assert result(keras.Sequential([keras.layers.Dense(2)])) == ["sparse"]
    assert result(keras.Model(rows, inner(rows))) == ["sparse"]
    found = bridge.check_model(keras.Model(dense, keras.layers.Dense(2)(dense)), 40, batch_rows=100)
    assert "16,000 bytes for each batch of 100" in found[0].came
    assert result(keras.Model(rows, keras.layers.Dense(2, kernel_regularizer="l2")(rows))) == ["sparse"]
    narrow = bridge.check_model(made("adam"), 41)
    assert "refuses sparse rows of 41 columns" in narrow[0].came


def test_layers_that_refuse_or_enlarge_sparse_rows_in_training_are_told():
    layers, rows = keras.layers, keras.Input((40,), sparse=True)
    for noise in (layers.Dropout(0.5), layers.GaussianNoise(0.5)):
        (found,) = bridge.check_model(keras.Model(rows, layers.Dense(1)(noise(rows))), 40)
        assert found.severity == "error"
        assert "in fit: " in found.came
        assert type(noise).__name__ in found.came
    ids = keras.Input((1000,), sparse=True, dtype="int64")
    (found,) = bridge.check_model(keras.Model(ids, layers.Embedding(50, 8)(ids)), 1000, batch_rows=100)
    assert found.severity == "error"
    assert "3,200,000 bytes for each batch of 100" in found.came


def test_models_of_several_inputs_are_checked_as_they_are():
    layers = keras.layers
    rows, more = keras.Input((40,), sparse=True, name="rows"), keras.Input((40,), sparse=True)
    numbers = keras.Input((2,), name="numbers")
    mixed = keras.Model([rows, numbers], layers.Dense(1)(layers.Concatenate()([layers.Dense(3)(rows), numbers])))
    assert bridge.check_model(mixed, 40) == []
    by_name = keras.Model({"rows": rows, "numbers": numbers}, mixed([rows, numbers]))
    assert bridge.check_model(by_name, 40) == []
    (found,) = bridge.check_model(mixed, 41)
    assert "its sparse inputs have 40 columns" in found.came
    for kind in (layers.Dense, bridge.SparseDense):
        shared = kind(1)
        model = keras.Model([rows, more], layers.Subtract()([shared(rows), shared(more)]))
        model.compile("adagrad", "mse")
        (found,) = bridge.check_model(model, 40)
        assert (found.severity, found.contract) == ("warning", "duplicates")
        assert "LazyAdagrad" in found.advice
        model.compile(bridge.LazyAdagrad(0.1), "mse")
        assert bridge.check_model(model, 40) == []


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_one_layer_on_two_inputs_trains_as_a_dense_one_by_our_optimizer():
    generator, kernels = np.random.default_rng(0), []
    x = [(generator.random((30, 6)) < 0.4) * generator.standard_normal((30, 6)).astype(np.float32) for _ in range(2)]
    y = generator.integers(0, 2, 30).astype(np.float32)
    for kind, is_sparse in ((keras.layers.Dense, False), (bridge.SparseDense, True)):
        layer = kind(1, kernel_initializer="ones")
        inputs = [keras.Input((6,), sparse=is_sparse) for _ in x]
        model = keras.Model(inputs, keras.layers.Subtract()([layer(each) for each in inputs]))
        model.compile(bridge.LazyAdagrad(0.1), "mse")
        given = [scipy.sparse.csr_array(each) if is_sparse else each for each in x]
        model.fit(given, y, batch_size=30, epochs=3, shuffle=False, verbose=0)
        kernels.append(layer.kernel.numpy())
    np.testing.assert_allclose(*kernels, rtol=1e-4)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("buckets", [None, 16])
def test_an_exported_model_predicts_the_same_of_dense_rows(tmp_path, buckets):
    rows = keras.Input((40,), sparse=True)
    model = keras.Model(rows, bridge.SparseDense(2, "softmax", buckets=buckets)(rows))
    x = scipy.sparse.random_array((5, 40), density=0.2, dtype=np.float32, rng=0, format="csr")
    model.export(tmp_path / "served", verbose=False)
    loaded = tf.saved_model.load(tmp_path / "served")
    served = loaded.serve(x.toarray())
    np.testing.assert_allclose(served, model.predict(x, verbose=0), rtol=1e-5)
