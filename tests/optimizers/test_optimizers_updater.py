"""`Updater`: gradients and weights in every format and rank, numbers of a step, clipping, and what is refused."""

import numpy as np
import pytest
import scipy.sparse

from tests.support import rules_by_hand
from workbench import optimizers
from workbench.formats import RowSparse, to_format
from workbench.ops.products import Unsummed, make_plan
from workbench.optimizers import Multiplier, OptimizerError, Updater, schedules

every_rule = pytest.mark.parametrize("name", optimizers.names())
D, N = 12, 5
"""In float64 and of that width, whose code tests of kernels have compiled."""
RATES = {"adam": 0.05, "adamw": 0.05, "rmsprop": 0.02, "centered_rmsprop": 0.02}
OPTIONS = {"decay": 0.1, "rescale": 0.5, "clip": 0.7}


def random(seed):
    return np.random.default_rng(seed)


def sparse_gradients(count, seed=0, shape=(D, N), dtype=np.float64):
    """Of a few rows each, one of them empty, one with a row of zeros, one with every row."""
    rng, made = random(seed), []
    for number in range(count):
        stored = min(shape[0], {1: 0, 4: shape[0]}.get(number, int(rng.integers(1, 4))))
        rows = np.sort(rng.choice(shape[0], stored, replace=False)).astype(np.int64)
        values = rng.standard_normal((stored, *shape[1:])).astype(dtype)
        values[: number == 2] = 0
        made.append(RowSparse(values, rows, shape))
    return made


def make(name, lazy="on", **options):
    return Updater(name, lazy=lazy, **({"learning_rate": RATES.get(name, 0.1)} | OPTIONS | options))


def train(updater, weights, gradients):
    """Weights and states, dense, after the gradients; rows caught up."""
    for gradient in gradients:
        updater.update({"w": weights}, {"w": gradient})
    updater.catch_up({"w": weights})
    return [x if isinstance(x, np.ndarray) else x.toarray() for x in (weights, *updater.states["w"])]


def weights_of(shape=(D, N), dtype=np.float64):
    return random(9).standard_normal(shape).astype(dtype)


def by_hand(updater, weights, gradients):
    """The dense rule in NumPy."""
    w = weights.copy()
    states = updater.optimizer.new_states(w)
    for step, gradient in enumerate(gradients, 1):
        numbers = {n: step if n == "step" else updater.options[n] for n in updater.optimizer.rule.numbers}
        g = gradient if isinstance(gradient, np.ndarray) else gradient.toarray()
        w, *states = rules_by_hand.step(updater.optimizer.name, w, states, g, numbers)
    return [w, *states]


def assert_near(came, expected, rtol=1e-11):
    for one, other in zip(came, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=rtol, atol=1e-13)


@every_rule
@pytest.mark.parametrize("held", ["dense", "row_sparse"])
def test_off_is_the_dense_rule(name, held):
    gradients, updater = sparse_gradients(8), make(name, "off")
    came = train(updater, to_format(weights_of(), held), gradients)
    assert_near(came, by_hand(updater, weights_of(), gradients))
    assert updater.steps == {"w": 8}


@every_rule
@pytest.mark.parametrize("lazy", optimizers.LAZY)
def test_a_dense_gradient_gets_the_dense_rule_whatever_lazy_is(name, lazy):
    gradients, updater = [g.toarray() for g in sparse_gradients(4)], make(name, lazy)
    assert_near(train(updater, weights_of(), gradients), by_hand(updater, weights_of(), gradients))


@every_rule
def test_on_changes_the_rows_of_the_gradient_and_no_others(name):
    gradient = RowSparse(np.zeros((2, N)), [3, 7], (D, N))
    updater, weights = make(name), weights_of()
    expected = by_hand(updater, weights, [gradient])[0]
    came = train(updater, weights, [gradient])[0]
    np.testing.assert_allclose(came[[3, 7]], expected[[3, 7]], rtol=1e-12)
    others = np.delete(np.arange(D), [3, 7])
    np.testing.assert_array_equal(came[others], weights_of()[others])
    assert (came[[3, 7]] != weights_of()[[3, 7]]).all()  # a stored row of zeros counts as touched


@every_rule
@pytest.mark.parametrize("lazy", optimizers.LAZY)
def test_row_sparse_weights_that_lack_rows_train_as_dense_ones(name, lazy):
    dense = weights_of()
    dense[[0, 2, 5, 11]] = 0
    sparse, gradients = RowSparse.from_dense(dense), sparse_gradients(9, seed=3)[:1] + sparse_gradients(9)[5:]
    assert sparse.nnz < dense.size
    expected = train(make(name, lazy), dense, gradients)
    updater = make(name, lazy)
    assert_near(train(updater, sparse, gradients), expected)
    touched = np.unique(np.concatenate([sparse.indices, *(g.indices for g in gradients)]))
    assert sparse.indices.tolist() == touched.tolist()
    for state in updater.states["w"]:
        assert state.indices.tolist() == touched.tolist()


def test_row_sparse_weights_without_rows_gain_those_of_the_gradient():
    weights = RowSparse(np.empty((0, 2), np.float32), [], (5, 2))
    Updater("sgd", learning_rate=1.0).update({"w": weights}, {"w": RowSparse([[1.0, 2.0]], [3], (5, 2))})
    assert weights == RowSparse([[-1.0, -2.0]], [3], (5, 2))


def test_row_sparse_weights_may_get_other_rows_between_steps():
    updater, gradient = make("momentum"), RowSparse(np.ones((1, N)), [2], (D, N))
    weights = RowSparse.from_dense(weights_of())
    updater.update({"w": weights}, {"w": gradient})
    weights = RowSparse(np.ones((1, N)), [5], (D, N))
    updater.update({"w": weights}, {"w": gradient})
    assert {2, 5} <= set(weights.indices.tolist())
    assert all(np.array_equal(state.indices, weights.indices) for state in updater.states["w"])


@every_rule
@pytest.mark.covering
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(D,), (D, 1), (D, 2, 3), (1, 6), (D, 2, 1, 3)])  # 6 numbers have the code of N
def test_weights_of_any_rank_and_type_train_as_the_table_of_their_rows(name, shape, dtype):
    gradients, width = sparse_gradients(5, shape=shape, dtype=dtype)[:4], int(np.prod(shape[1:]))
    flat = [RowSparse(g.values.reshape(len(g.indices), width), g.indices, (shape[0], width)) for g in gradients]
    came = train(make(name, "exact"), weights_of(shape, dtype), gradients)
    expected = train(make(name, "exact"), weights_of(shape, dtype).reshape(shape[0], width), flat)
    for one, other in zip(came, expected, strict=True):
        assert one.dtype == dtype
        np.testing.assert_array_equal(one.reshape(other.shape), other)
    assert came[0].shape == shape


@pytest.mark.parametrize("shape", [(), (0, 3), (3, 0), (0,)])
def test_weights_without_rows_columns_or_axes(shape):
    weights, updater = np.ones(shape), Updater("adam", lazy="exact", learning_rate=0.1)
    updater.update({"w": weights}, {"w": np.ones(shape)})
    assert weights.shape == shape
    np.testing.assert_allclose(weights, 0.9, rtol=1e-6)
    if shape:
        updater.update({"w": weights}, {"w": RowSparse(np.ones((0, *shape[1:])), [], shape)})
    assert updater.steps == {"w": 1 + bool(shape)}
    again = Updater("adam", lazy="exact", learning_rate=0.1)
    again.load_state_dict(updater.state_dict())
    assert again.states["w"][0].shape == shape


@every_rule
@pytest.mark.covering
@pytest.mark.parametrize("lazy", optimizers.LAZY)
@pytest.mark.parametrize("held", ["dense", "row_sparse"])
def test_unsummed_gradients_train_as_their_sums(name, lazy, held):
    unsummed = []
    for seed in range(4):
        x = scipy.sparse.random_array((5, D), density=0.2, format="csr", rng=random(seed))
        unsummed.append(Unsummed(x, random(seed).standard_normal((5, N)), make_plan(x), (D, N)))
    starts = [RowSparse.from_dense(np.where(np.arange(D)[:, None] % 2, weights_of(), 0)) for _ in range(2)]
    starts = [to_format(x, held) for x in starts]
    came = train(make(name, lazy), starts[0], unsummed)
    assert_near(came, train(make(name, lazy), starts[1], [g.compute() for g in unsummed]), rtol=1e-9)


def test_weights_with_gaps_change_in_place():
    roomy = np.ones((2 * D, 2 * N))
    weights = roomy[::2, ::2]
    gradients = sparse_gradients(3)
    expected = train(make("adam"), weights.copy(), gradients)[0]
    train(make("adam"), weights, gradients)
    np.testing.assert_array_equal(roomy[::2, ::2], expected)
    assert (roomy[1::2] == 1).all()


def test_read_only_gradients_are_taken():
    gradient = RowSparse(np.ones((2, N)), [1, 2], (D, N))
    frozen = gradient.copy()
    frozen.values.flags.writeable = frozen.indices.flags.writeable = False
    one, two = weights_of(), weights_of()
    train(make("adam"), one, [gradient])
    train(make("adam"), two, [frozen])
    np.testing.assert_array_equal(one, two)


# Numbers of a step


def test_multipliers_are_for_the_parameters_they_name():
    updater = Updater(
        "sgd", learning_rate=0.5, decay=0.1, multipliers={"bias": Multiplier(learning_rate=2.0, decay=0.0)}
    )
    weights = {name: np.ones(2) for name in ("bias", "w_bias", "gamma")}
    updater.update(weights, {name: np.zeros(2) for name in weights})
    assert [w[0] for w in weights.values()] == [1.0, 0.95, 0.95]
    updater.update(weights, {"bias": np.ones(2)})
    assert weights["bias"].tolist() == [0.0, 0.0]
    assert updater.steps == {"bias": 2, "w_bias": 1, "gamma": 1}


def test_decoupled_decay_has_the_multiplier_too():
    weights = np.ones(2)
    updater = Updater("signum", learning_rate=0.5, decoupled=0.1, multipliers={"w": Multiplier(decay=0.0)})
    updater.update({"w": weights}, {"w": np.zeros(2)})
    assert weights.tolist() == [1.0, 1.0]


def test_each_parameter_has_its_own_step():
    updater = Updater("sgd", learning_rate=1.0, schedule=schedules.StepDecay(1, 0.5))
    weights = {"a": np.zeros(1), "b": np.zeros(1)}
    for gradients in ({"a": np.ones(1)}, {"a": np.ones(1), "b": np.ones(1)}):
        updater.update(weights, gradients)
    assert (weights["a"].item(), weights["b"].item()) == (-1.5, -1.0)


@pytest.mark.parametrize("lazy", optimizers.LAZY)
def test_global_norm_is_that_of_all_gradients_in_every_form(lazy):
    x = scipy.sparse.csr_array(np.array([[0, 2.0, 0], [0, 1.0, 3.0]]))
    gradients = {
        "dense": np.array([3.0]),
        "rows": RowSparse(np.array([[4.0, 0.0]]), [1], (3, 2)),
        "unsummed": Unsummed(x, np.array([[1.0], [2.0]]), make_plan(x), (3, 1)),
    }
    norm = np.sqrt(9 + 16 + 4**2 + 6**2)
    weights = {"dense": np.zeros(1), "rows": np.zeros((3, 2)), "unsummed": np.zeros((3, 1))}
    updater = Updater("sgd", lazy=lazy, learning_rate=1.0, rescale=0.5, clip_global_norm=2.0)
    updater.update(weights, gradients)
    np.testing.assert_allclose(weights["dense"], -3 * 2 / norm, rtol=1e-12)
    np.testing.assert_allclose(weights["rows"][1, 0], -4 * 2 / norm, rtol=1e-12)
    np.testing.assert_allclose(weights["unsummed"][:, 0], [0, -4 * 2 / norm, -6 * 2 / norm], rtol=1e-12)


def test_a_small_norm_is_left_alone_and_elements_are_clipped_after():
    weights = {"w": np.zeros(2)}
    updater = Updater("sgd", learning_rate=1.0, clip=0.5, clip_global_norm=5.0)
    updater.update(weights, {"w": np.array([0.1, 3.0])})
    assert weights["w"].tolist() == [-0.1, -0.5]
    updater.update(weights, {"w": np.zeros(2)})
    assert weights["w"].tolist() == [-0.1, -0.5]


def test_a_norm_that_is_not_finite_is_refused_before_anything_changes():
    weights, updater = {"a": np.zeros(2), "b": np.zeros(2)}, Updater("sgd", clip_global_norm=1.0)
    with pytest.raises(OptimizerError, match=r"gradients of \['b'\] have no finite norm"):
        updater.update(weights, {"a": np.ones(2), "b": np.array([1.0, np.nan])})
    assert weights["a"].tolist() == [0.0, 0.0]
    assert updater.steps == {}


# What is refused


WRONG = [
    (lambda w: {"v": w}, r"Unknown weights 'v'.*Expected one of: a, w"),
    (lambda w: {"w": w[:1]}, rf"gradient of w has shape \(1, {N}\) and type float32; the weights have \({D}, {N}\)"),
    (lambda w: {"w": w.astype(np.float64)}, "type float64; the weights have .* float32"),
    (lambda w: {"w": to_format(w, "csr")}, "gradient of w is a csr_array; it is dense, row_sparse or Unsummed"),
    (lambda w: {"w": w.tolist()}, "gradient of w is a list"),
]


@pytest.mark.parametrize(("gradients", "words"), WRONG)
def test_gradients_that_do_not_fit_are_refused_before_anything_changes(gradients, words):
    weights, updater = np.ones((D, N), np.float32), Updater("sgd")
    with pytest.raises(OptimizerError, match=words):
        updater.update({"w": weights, "a": weights}, {"a": np.ones_like(weights), **gradients(weights)})
    assert (weights == 1).all()


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (scipy.sparse.csr_array((2, 2)), "w are a csr_array of float64; they are dense or row_sparse"),
        (np.ones(2, np.int64), "w are a ndarray of int64; they are dense or row_sparse, float32 or float64"),
        (np.ones((2, 2, 4))[..., ::2], "w have 3 axes and gaps"),
    ],
)
def test_weights_that_cannot_be_trained_are_refused(weights, words):
    with pytest.raises(OptimizerError, match=words):
        Updater("sgd").update({"w": weights}, {"w": np.ones(weights.shape)})


@pytest.mark.parametrize("optimizer", optimizers.names())
@pytest.mark.parametrize("shape", [(3,), (4, 2), (2, 3, 2)], ids=str)
def test_steps_by_a_gradient_in_the_same_array_have_the_bits_of_others(optimizer, shape):
    rng = np.random.default_rng(0)
    start, gradients = rng.standard_normal(shape), rng.standard_normal((5, *shape))
    same, weights, fresh = np.empty(shape), start.copy(), start.copy()
    one, other = Updater(optimizer), Updater(optimizer)
    for step, gradient in enumerate(gradients):
        if step == 3:
            weights, one.options["rescale"], other.options["rescale"] = weights.copy(), 0.5, 0.5
        same[...] = gradient
        one.update({"b": weights}, {"b": same}, is_own=True)
        other.update({"b": fresh}, {"b": gradient.copy()}, is_own=True)
        assert weights.tobytes() == fresh.tobytes()
        assert [a.tobytes() for a in one.states["b"]] == [a.tobytes() for a in other.states["b"]]


@pytest.mark.parametrize("name", ["adam", "sgd"])
def test_steps_share_their_settings_with_an_intercept_of_the_same_numbers_alone(name: str) -> None:
    weights, intercept = np.zeros((D, 1)), np.zeros((1, 1))
    others = {"w": Multiplier(), "b": Multiplier(), "c": Multiplier(learning_rate=0.5)}
    updater = Updater(name, learning_rate=0.1, multipliers=others)
    first = updater.begin_steps("w", weights, 3)
    assert updater.begin_steps("b", intercept, 3, whole=True, other=first).settings is first.settings
    of_others = updater.begin_steps("c", intercept, 3, whole=True, other=first).settings
    assert of_others.tolist() == Updater(name, learning_rate=0.05).begin_steps("c", intercept, 3).settings.tolist()
    assert of_others.tolist() != first.settings.tolist()
    updater.schedule = schedules.StepDecay(2)
    changed = updater.begin_steps("b", intercept, 3, whole=True, other=first).settings
    assert changed[-1].tolist() != first.settings[-1].tolist()
