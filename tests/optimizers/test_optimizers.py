"""Optimizers: registry, options, lazy against dense where they are equal and where they are not."""

import numpy as np
import pytest
import scipy.sparse

from workbench import optimizers
from workbench.formats import RowSparse
from workbench.ops import products

RNG = np.random.default_rng(5)


def gradients(steps: int, touched: list[list[int]]) -> list[RowSparse]:
    return [RowSparse(RNG.standard_normal((len(rows), 3)), np.int64(rows), (6, 3)) for rows in touched][:steps]


def run(name: str, kind: str, grads: list[RowSparse], **options) -> np.ndarray:
    """The weights."""
    return run_whole(name, kind, grads, **options)[0]


def run_whole(name: str, kind: str, grads: list[RowSparse], **options) -> list[np.ndarray]:
    """Weights and states."""
    weights = np.arange(18, dtype=np.float64).reshape(6, 3) / 10
    if name == "ftrl":  # its weights follow from its states, which start at zero
        weights[...] = 0
    options = {option: value for option, value in options.items() if option in optimizers.get(name).options}
    updater = optimizers.Updater(name, lazy={"lazy": "on", "dense": "off"}[kind], **options)
    for gradient in grads:
        updater.update({"w": weights}, {"w": gradient})
    return [weights, *updater.states.get("w", [])]


@pytest.mark.parametrize("name", optimizers.names())
def test_lazy_equals_dense_when_every_row_is_touched(name):
    grads = gradients(3, [[0, 1, 2, 3, 4, 5]] * 3)
    np.testing.assert_allclose(run(name, "lazy", grads, decay=0.1), run(name, "dense", grads, decay=0.1), rtol=1e-12)


def test_adagrad_steps_as_far_by_small_gradients_as_by_large_ones():
    large = gradients(2, [[0, 2], [2, 5]])
    small = [RowSparse(1e-5 * one.values, one.indices, one.shape) for one in large]
    np.testing.assert_allclose(run("adagrad", "lazy", small), run("adagrad", "lazy", large), atol=1e-3)


@pytest.mark.parametrize("name", ["sgd", "adagrad", "group_adagrad", "ftrl"])
def test_lazy_equals_dense_without_decay_for_rules_without_momentum(name):
    grads = gradients(3, [[0, 2], [2, 5], [0]])
    np.testing.assert_allclose(run(name, "lazy", grads), run(name, "dense", grads), rtol=1e-12)


LAZY_DIFFERS = [
    *((name, {}) for name in ("adam", "adamw", "momentum", "nesterov", "rmsprop", "centered_rmsprop", "signum")),
    *((name, {"decay": 0.1}) for name in ("sgd", "adagrad", "group_adagrad")),
]


@pytest.mark.parametrize(("name", "options"), LAZY_DIFFERS)
def test_lazy_leaves_untouched_rows_alone_and_dense_does_not(name, options):
    grads = gradients(3, [[0, 2], [2, 5], [0]])
    start = run(name, "lazy", [])
    lazy, dense = run(name, "lazy", grads, **options), run(name, "dense", grads, **options)
    np.testing.assert_array_equal(lazy[[1, 3, 4]], start[[1, 3, 4]])
    assert np.abs(lazy - dense).max() > 1e-5


@pytest.mark.parametrize("name", optimizers.names())
def test_every_option_matters(name):
    grads = gradients(3, [[0, 1], [1, 2], [1]])
    usual = run_whole(name, "lazy", grads)
    for option, value in optimizers.get(name).options.items():
        other = (
            0.1
            if option.startswith("clip")
            else value / 2
            if option in ("beta1", "beta2", "gamma")
            else value * 2 or 0.3
        )
        changed = run_whole(name, "lazy", grads, **{option: other})
        assert any((one != other).any() for one, other in zip(changed, usual, strict=True)), option


@pytest.mark.parametrize("name", optimizers.names())
def test_fused_step_is_the_lazy_one_by_the_gradient_of_the_batch(name):
    x = scipy.sparse.random_array((8, 6), density=0.3, format="csr", rng=np.random.default_rng(1))
    plan, slope = products.make_plan(x), RNG.standard_normal((8, 3))
    gradient = RowSparse((x.T @ slope)[plan.columns], plan.columns, (6, 3))
    after = [run_whole(name, "lazy", [g]) for g in (gradient, products.Unsummed(x, slope, plan, (6, 3)))]
    for one, other in zip(*after, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_state_by_row_has_one_number_a_row():
    weights = np.zeros((6, 3), np.float32)
    assert [state.shape for state in optimizers.get("group_adagrad").new_states(weights)] == [(6,)]
    assert [state.shape for state in optimizers.get("ftrl").new_states(weights)] == [(6, 3), (6, 3)]


def test_unknown_names_and_options_list_the_known():
    known = "adagrad, adam, adamw, centered_rmsprop, ftrl, group_adagrad, momentum, nesterov, rmsprop, sgd, signum"
    with pytest.raises(optimizers.OptimizerError, match=rf"Unknown optimizer 'sdg'.*Expected one of: {known}"):
        optimizers.get("sdg")
    options = r"\['clip', 'decay', 'learning_rate', 'rescale'\]"
    with pytest.raises(optimizers.OptimizerError, match=rf"no option \['lr'\]; its options are {options}"):
        optimizers.get("sgd").resolve({"lr": 1})


@pytest.mark.parametrize(
    ("name", "option", "value", "words"),
    [
        ("adam", "beta2", 1.0, "0 or more and below 1"),
        ("rmsprop", "gamma", -0.1, "0 or more and below 1"),
        ("sgd", "clip", -1.0, "0 or more, None for none"),
        ("rmsprop", "clip_weights", -1.0, "0 or more, None for none"),
        ("adagrad", "epsilon", -1e-8, "a finite number, 0 or more"),
        ("ftrl", "l1", -1, "a finite number, 0 or more"),
        ("sgd", "learning_rate", float("nan"), "a finite number, 0 or more"),
        ("sgd", "learning_rate", "0.1", "a finite number, 0 or more"),
        ("sgd", "learning_rate", -1.0, "a finite number, 0 or more"),
        ("adam", "learning_rate", float("inf"), "a finite number, 0 or more"),
        ("sgd", "decay", -1.0, "a finite number, 0 or more"),
        ("adamw", "decay", float("inf"), "a finite number, 0 or more"),
        ("signum", "decoupled", -0.5, "a finite number, 0 or more"),
        ("sgd", "rescale", float("inf"), "a finite number"),
    ],
)
def test_options_out_of_range_are_refused(name, option, value, words):
    with pytest.raises(optimizers.OptimizerError, match=f"{name}: {option} is {value!r}; it is {words}"):
        optimizers.get(name).resolve({option: value})


def test_no_clip_is_infinity():
    assert optimizers.get("sgd").resolve({"clip": None})["clip"] == np.inf


@pytest.mark.parametrize("name", optimizers.names())
def test_headers_say_when_lazy_is_equal_and_how_rows_catch_up(name):
    header = optimizers.get(name).formulas
    for heading in ("Dense", "Lazy", "Equal when", "Exact", "Source"):
        assert f"\n{heading} " in header


@pytest.mark.parametrize("kind", ["lazy", "dense"])
@pytest.mark.parametrize("name", ["rmsprop", "centered_rmsprop"])
def test_weights_are_clipped_after_the_step_where_it_is_asked_for(name, kind):
    """Weights start at 0 to 1.7; NaN stays, so that it is seen."""
    grads = gradients(3, [[0, 2, 5], [2, 5], [0, 5]])
    free, none = (
        run(name, kind, grads, learning_rate=0.05),
        run(name, kind, grads, learning_rate=0.05, clip_weights=None),
    )
    np.testing.assert_array_equal(none, free)
    clipped = run(name, kind, grads, learning_rate=0.05, clip_weights=0.5)
    touched = [0, 2, 5] if kind == "lazy" else list(range(6))
    assert np.abs(clipped[touched]).max() == 0.5 < np.abs(free[touched]).max()
    if kind == "lazy":
        np.testing.assert_array_equal(clipped[[1, 3, 4]], free[[1, 3, 4]])
    grads[-1].values[0, 0] = np.nan
    assert np.isnan(run(name, kind, grads, clip_weights=0.5)[0, 0])
    assert not run(name, kind, grads[:1], clip_weights=0.0)[[0, 2, 5]].any()


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("name", ["rmsprop", "centered_rmsprop"])
def test_exact_updates_clip_rows_that_no_gradient_touched(name, decay):
    grads = gradients(4, [[0, 2], [2, 5], [0], [1, 2]])
    weights, results = np.arange(18, dtype=np.float64).reshape(6, 3) / 10, []
    for lazy in ("off", "exact"):
        made, options = weights.copy(), {"learning_rate": 0.05, "clip_weights": 0.7, "decay": decay}
        updater = optimizers.Updater(name, lazy=lazy, **options)
        for gradient in grads:
            updater.update({"w": made}, {"w": gradient})
        updater.catch_up({"w": made})
        results.append(made)
    np.testing.assert_array_equal(results[1], results[0])
    assert (np.abs(results[1]) <= 0.7).all()
    assert np.abs(weights).max() > 1
