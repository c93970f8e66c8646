"""Optimizers: registry, options, lazy against dense where they are equal and where they are not."""

import numpy as np
import pytest
import scipy.sparse

from workbench import optimizers
from workbench.formats import RowSparse
from workbench.ops import dot as dots

RNG = np.random.default_rng(5)


def gradients(steps: int, touched: list[list[int]]) -> list[RowSparse]:
    return [RowSparse(RNG.standard_normal((len(rows), 3)), np.int64(rows), (6, 3)) for rows in touched][:steps]


def run(name: str, kind: str, grads: list[RowSparse], **options) -> np.ndarray:
    optimizer = optimizers.get(name)
    weights = np.arange(18, dtype=np.float64).reshape(6, 3) / 10
    if name == "ftrl":  # its weights follow from its states, which start at zero
        weights[...] = 0
    options = {option: value for option, value in options.items() if option in optimizer.options}
    states, options = optimizer.new_states(weights), optimizer.resolve(options)
    for step, gradient in enumerate(grads, 1):
        if kind == "lazy":
            optimizer.lazy(weights, states, gradient, step, **options)
        else:
            optimizer.dense(weights, states, optimizers.full(gradient, np.empty((6, 3))), step, **options)
    return weights


@pytest.mark.parametrize("name", optimizers.names())
def test_lazy_equals_dense_when_every_row_is_touched(name):
    grads = gradients(3, [[0, 1, 2, 3, 4, 5]] * 3)
    np.testing.assert_allclose(run(name, "lazy", grads, decay=0.1), run(name, "dense", grads, decay=0.1), rtol=1e-12)


@pytest.mark.parametrize("name", ["sgd", "adagrad", "rowwise_adagrad", "ftrl"])
def test_lazy_equals_dense_without_decay_for_rules_without_momentum(name):
    grads = gradients(3, [[0, 2], [2, 5], [0]])
    np.testing.assert_allclose(run(name, "lazy", grads), run(name, "dense", grads), rtol=1e-12)


LAZY_DIFFERS = [
    ("adam", {}),
    ("momentum", {}),
    *((name, {"decay": 0.1}) for name in ("sgd", "adagrad", "rowwise_adagrad")),
]


@pytest.mark.parametrize(("name", "options"), LAZY_DIFFERS)
def test_lazy_leaves_untouched_rows_alone_and_dense_does_not(name, options):
    grads = gradients(3, [[0, 2], [2, 5], [0]])
    start = run(name, "lazy", [])
    lazy, dense = run(name, "lazy", grads, **options), run(name, "dense", grads, **options)
    np.testing.assert_array_equal(lazy[[1, 3, 4]], start[[1, 3, 4]])
    assert np.abs(lazy - dense).max() > 1e-4


@pytest.mark.parametrize("name", optimizers.names())
def test_every_option_matters(name):
    grads = gradients(3, [[0, 1], [1, 2], [1]])
    usual = run(name, "lazy", grads)
    for option, value in optimizers.get(name).options.items():
        other = value * 2 if option != "beta1" and option != "beta2" else value / 2
        changed = run(name, "lazy", grads, **{option: other or 0.3})
        assert np.abs(changed - usual).max() > 0, option


@pytest.mark.parametrize("name", optimizers.names())
def test_fused_step_is_the_lazy_one_by_the_gradient_of_the_batch(name):
    x = scipy.sparse.random_array((8, 6), density=0.3, format="csr", rng=np.random.default_rng(1))
    optimizer, plan, slope = optimizers.get(name), dots.make_plan(x), RNG.standard_normal((8, 3))
    gradient = RowSparse((x.T @ slope)[plan.columns], plan.columns, (6, 3))
    after = []
    for _ in range(2):
        weights = np.arange(18, dtype=np.float64).reshape(6, 3) / 10
        after.append([weights, *optimizer.new_states(weights)])
    options = optimizer.resolve({})
    optimizer.lazy(after[0][0], after[0][1:], gradient, 1, **options)
    optimizer.fused(after[1][0], after[1][1:], plan, x.data, slope, 1, **options)
    for one, other in zip(*after, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_state_by_row_has_one_number_a_row():
    weights = np.zeros((6, 3), np.float32)
    assert [state.shape for state in optimizers.get("rowwise_adagrad").new_states(weights)] == [(6,)]
    assert [state.shape for state in optimizers.get("ftrl").new_states(weights)] == [(6, 3), (6, 3)]


def test_unknown_names_and_options_list_the_known():
    with pytest.raises(
        optimizers.OptimizerError, match=r"no optimizer 'sdg'; there is: adagrad, adam, ftrl, momentum, .*sgd"
    ):
        optimizers.get("sdg")
    with pytest.raises(optimizers.OptimizerError, match=r"no option \['lr'\]; its options are \['decay', 'rate'\]"):
        optimizers.get("sgd").resolve({"lr": 1})
