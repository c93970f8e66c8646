"""Optimizers: registry, options, lazy against dense where they are equal and where they are not."""

import numpy as np
import pytest

from workbench import optimizers
from workbench.formats import RowSparse

RNG = np.random.default_rng(5)


def gradients(steps: int, touched: list[list[int]]) -> list[RowSparse]:
    return [RowSparse(RNG.standard_normal((len(rows), 3)), np.int64(rows), (6, 3)) for rows in touched][:steps]


def run(name: str, kind: str, grads: list[RowSparse], **options) -> np.ndarray:
    optimizer = optimizers.get(name)
    weights = np.arange(18, dtype=np.float64).reshape(6, 3) / 10
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


@pytest.mark.parametrize("name", ["sgd", "adagrad"])
def test_lazy_equals_dense_without_decay_for_rules_without_momentum(name):
    grads = gradients(3, [[0, 2], [2, 5], [0]])
    np.testing.assert_allclose(run(name, "lazy", grads), run(name, "dense", grads), rtol=1e-12)


@pytest.mark.parametrize(("name", "options"), [("adam", {}), ("sgd", {"decay": 0.1}), ("adagrad", {"decay": 0.1})])
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


def test_unknown_names_and_options_list_the_known():
    with pytest.raises(optimizers.OptimizerError, match=r"no optimizer 'sdg'; there is: adagrad, adam, sgd"):
        optimizers.get("sdg")
    with pytest.raises(optimizers.OptimizerError, match=r"no option \['lr'\]; its options are \['decay', 'rate'\]"):
        optimizers.get("sgd").resolve({"lr": 1})
