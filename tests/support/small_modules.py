"""Small graphs and batches that the tests of modules are made of."""

import numpy as np

from workbench import data, formats, graph, ops
from workbench.module import Module

ROWS, FEATURES = 53, 30
RNG = np.random.default_rng(11)
DENSE = RNG.integers(0, 2, (ROWS, FEATURES)) * RNG.standard_normal((ROWS, FEATURES)) * (RNG.random(FEATURES) < 0.8)
TARGETS = DENSE @ RNG.standard_normal((FEATURES, 2)) + 0.5
IDS = RNG.integers(0, 9, ROWS)


def batches(dtype=np.float64, rows=10, **options) -> data.Batches:
    """csr data with two targets a row."""
    x = formats.to_format(DENSE.astype(dtype), "csr")
    return data.Batches(x, TARGETS.astype(dtype), rows, **options)


def linear(weight_format="row_sparse", output="layer", init=("normal", 0.1)):
    """Linear regression with a bias: through an output layer, or [prediction, mean loss]."""
    x, label = graph.variable("data", format="csr"), graph.variable("label")
    weight = graph.variable("weight", format=weight_format, shape=(FEATURES, 2), init=init)
    scores = ops.dot(x, weight) + graph.variable("bias", shape=(2,), init="zeros")
    if output == "layer":
        return ops.linear_regression_output(scores, label)
    return graph.group([ops.stop_gradient(scores), ops.mean(ops.square(scores - label))])


def module(symbol=None, feed=None, bind=None, optimizer="sgd", settings=None, **options) -> Module:
    """Bound, initialised from seed 7, with its optimizer."""
    made = Module(linear() if symbol is None else symbol, **options)
    made.bind(batches() if feed is None else feed, **(bind or {})).initialise(seed=7)
    return made.set_optimizer(optimizer, **({"learning_rate": 0.05, "rescale": 0.1} if settings is None else settings))


def factorization(width=3):
    """A factorization machine for csr data, whose factors are read row by row on two ways."""
    x, label = graph.variable("data", format="csr"), graph.variable("label")
    v = graph.variable("v", format="row_sparse", shape=(FEATURES, width), init=("normal", 0.1))
    w = graph.variable("w", format="row_sparse", shape=(FEATURES, 1), init="zeros")
    pairs = ops.sum(ops.square(ops.dot(x, v)), axis=1, keepdims=True)
    alone = ops.dot(ops.square(x), ops.square_sum(v, axis=1, keepdims=True))
    return ops.linear_regression_output(ops.dot(x, w) + (pairs - alone) * 0.5, label)


def matrix_factorization():
    """Users and items by their ids."""
    user, item, label = (graph.variable(name) for name in ("user", "item", "label"))
    users, items = (
        ops.embedding(ids, graph.variable(name, shape=(size, 2), init=("normal", 0.5)), sparse_grad=True)
        for ids, name, size in ((user, "users", 9), (item, "items", 12))
    )
    return ops.linear_regression_output(ops.sum(users * items, axis=1), label)


def ratings(rows=10, **options) -> data.Batches:
    """Ids of users and items with a rating each."""
    ids = {"user": IDS.astype(np.float32), "item": (IDS[::-1] + 3).astype(np.float32)}
    return data.Batches(ids, {"label": TARGETS[:, 0].astype(np.float32)}, rows, **options)


def same(one: dict, two: dict) -> bool:
    """Whether parameters are the same, bit for bit, formats and stored rows included."""
    assert one.keys() == two.keys()
    return all(
        formats.format_of(one[name]) == formats.format_of(two[name])
        and np.array_equal(formats.to_format(one[name], "dense"), formats.to_format(two[name], "dense"))
        for name in one
    )
