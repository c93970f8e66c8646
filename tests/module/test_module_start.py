"""First values of parameters: drawn from seed and name alone, declared, given."""

import numpy as np
import pytest

from tests.support import small_modules as small
from workbench import formats, graph, ops
from workbench.formats import RowSparse
from workbench.module import Module, initialisers


def test_first_values_depend_on_name_and_seed_alone():
    one, again, other = (initialisers.draw("normal", "w", (4, 3), np.float32, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)
    assert not np.array_equal(one, initialisers.draw("normal", "v", (4, 3), np.float32, 1))
    feed = small.batches()
    alone = Module(small.linear()).bind(feed).initialise("uniform", seed=3).weights()
    x, label = graph.variable("data", format="csr"), graph.variable("label")
    first = ops.dot(x, graph.variable("another", shape=(small.FEATURES, 2)))
    weight = graph.variable("weight", format="row_sparse", shape=(small.FEATURES, 2), init=("normal", 0.1))
    symbol = ops.linear_regression_output(first + ops.dot(x, weight), label)
    other = Module(symbol).bind(feed).initialise("uniform", seed=3).weights()
    assert small.same({"weight": alone["weight"]}, {"weight": other["weight"]})


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("spec", "low", "high", "deviation"),
    [
        ("zeros", 0, 0, 0),
        (2.5, 2.5, 2.5, 0),
        (("constant", -1), -1, -1, 0),
        ("uniform", -0.01, 0.01, 0.01 / np.sqrt(3)),
        (["uniform", 3], -3, 3, 3 / np.sqrt(3)),
        ("normal", -0.06, 0.06, 0.01),
        (("normal", 2), -12, 12, 2),
        ("xavier", -np.sqrt(6 / 350), np.sqrt(6 / 350), np.sqrt(2 / 350)),
        (("xavier", 2), -2 * np.sqrt(6 / 350), 2 * np.sqrt(6 / 350), 2 * np.sqrt(2 / 350)),
    ],
)
def test_initialisers_have_the_spread_that_they_state(spec, low, high, deviation, dtype):
    values = initialisers.draw(spec, "w", (300, 50), dtype, 0)
    assert values.dtype == dtype
    assert values.shape == (300, 50)
    assert low - 1e-6 <= values.min() <= values.max() <= high + 1e-6
    assert values.std() == pytest.approx(deviation, rel=0.03, abs=1e-12)
    assert values.mean() == pytest.approx((low + high) / 2, abs=0.05 * deviation + 1e-6)


def test_given_values_come_before_declared_and_default_ones():
    module = Module(small.linear()).bind(small.batches())
    given = formats.to_format(np.eye(small.FEATURES, 2), "csr")
    weights = module.initialise(("constant", 3), values={"weight": given}).weights()
    np.testing.assert_array_equal(weights["weight"].toarray(), np.eye(small.FEATURES, 2))
    assert weights["bias"].tolist() == [0, 0]  # which its variable declares
    drawn = Module(small.linear(init=None)).bind(small.batches()).initialise(("constant", 3)).weights()
    assert isinstance(drawn["weight"], RowSparse)
    assert drawn["weight"].values.shape == (small.FEATURES, 2)
    assert (drawn["weight"].values == 3).all()
