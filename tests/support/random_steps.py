"""Steps that a random graph grows by: each takes what stands so far and gives a node more, or None where none fits."""

from typing import TYPE_CHECKING

import numpy as np

from workbench import formats, graph, ops
from workbench.graph import Symbol

if TYPE_CHECKING:
    from tests.support.random_graphs import Case

UNARY = (
    *("negative", "square", "sin", "tanh", "abs", "relu", "arctan", "identity", "copy", "sigmoid", "exp", "cos"),
    *("expm1", "softsign", "erf", "floor", "sign", "round", "stop_gradient", "arcsinh", "softmax", "log_softmax"),
)
SCALARS = (
    *(("multiply_scalar", s) for s in (2.0, -0.5, 0.0)),
    *(("add_scalar", s) for s in (1.0, 0.0)),
    *(("subtract_from_scalar", s) for s in (1.0, 0.0)),
    *(("power_scalar", s) for s in (2.0, 3.0, 1.0)),
    *(("maximum_scalar", s) for s in (0.25, -0.25)),
    *(("minimum_scalar", s) for s in (0.25, -0.25)),
    *(("hypot_scalar", 1.0), ("divide_scalar", 4.0), ("greater_scalar", 0.25), ("mod_scalar", 3.7)),
)
BINARY = ("add", "subtract", "subtract", "multiply", "multiply", "maximum", "minimum", "hypot", "less")
MATRICES = ("csr", "csc", "coo")


def unary(case: "Case") -> Symbol:
    return ops.get(case.pick(UNARY))(case.pick(list(case.values)))


def scalar(case: "Case") -> Symbol:
    name, number = case.pick(SCALARS)
    return ops.get(name)(case.pick(list(case.values)), scalar=number)


def clipped(case: "Case") -> Symbol:
    return ops.clip(case.pick(list(case.values)), low=-0.75, high=case.pick((0.25, 0.75)))


def binary(case: "Case") -> Symbol:
    """Of two of the same shape."""
    left = case.pick(list(case.values))
    return ops.get(case.pick(BINARY))(left, case.pick(case.of(lambda value: value.shape == case.values[left].shape)))


def broadcast(case: "Case") -> Symbol:
    left, right = case.pick(list(case.values)), case.pick(list(case.values))
    return ops.get(case.pick(BINARY))(left, right)


def quotient(case: "Case") -> Symbol:
    left = case.pick(list(case.values))
    right = case.pick(case.of(lambda value: value.shape == case.values[left].shape))
    return ops.divide(left, ops.add_scalar(ops.square(right), scalar=1.0)) if case.pick((0, 1)) else added(case)


def added(case: "Case") -> Symbol:
    """The sum of three or one."""
    first = case.pick(list(case.values))
    alike = case.of(lambda value: value.shape == case.values[first].shape)
    return ops.add_n(first, *(case.pick(alike) for _ in range(case.pick((0, 2)))))


def product(case: "Case") -> Symbol | None:
    turned_left, turned_right = case.pick((False, True)), case.pick((False, True))
    matrices = case.of(lambda value: value.ndim == 2)
    if not matrices:
        return None
    left = case.pick(matrices)
    inner = case.values[left].shape[not turned_left]
    fitting = [node for node in matrices if case.values[node].shape[turned_right] == inner]
    if not fitting:
        return None
    result = case.pick((None, None, "csr", "row_sparse", "dense"))
    return ops.dot(left, case.pick(fitting), transpose_a=turned_left, transpose_b=turned_right, result=result)


def layer(case: "Case") -> Symbol | None:
    matrices = case.of(lambda value: value.ndim == 2)
    if not matrices:
        return None
    left = case.pick(matrices)
    return ops.fully_connected(left, case.pick(matrices))


def converted(case: "Case") -> Symbol:
    return ops.to_format(case.pick(list(case.values)), format=case.pick(formats.names()))


def turned(case: "Case") -> Symbol:
    return ops.transpose(case.pick(list(case.values)))


def reshaped(case: "Case") -> Symbol:
    node = case.pick(list(case.values))
    shape = case.values[node].shape
    return ops.reshape(node, shape=case.pick((shape[::-1], (int(np.prod(shape)), 1), (*shape, 1))))


def cut(case: "Case") -> Symbol | None:
    node = case.pick(case.of(lambda value: value.ndim > 0) or [None])
    if node is None:
        return None
    begin, end, step = case.pick((([1], [3], None), ([None], [None], [2]), ([0], [0], None), ([None], [None], [-1])))
    return ops.slice(node, begin=begin, end=end, step=step)


def taken(case: "Case") -> Symbol | None:
    fitting = case.of(lambda value: value.ndim > 0 and value.shape[0] > 0)
    if not fitting:
        return None
    node = case.pick(fitting)
    rows = case.random.integers(0, case.values[node].shape[0], case.pick((0, 1, 3)))
    return ops.take(node, _constant(case, rows), axis=0)


def joined(case: "Case") -> Symbol:
    first = case.pick(list(case.values))
    alike = case.of(lambda value: value.shape == case.values[first].shape)
    return ops.concat(first, case.pick(alike), axis=case.pick((0, -1)))


def chosen(case: "Case") -> Symbol:
    first = case.pick(list(case.values))
    alike = case.of(lambda value: value.shape == case.values[first].shape)
    return ops.where(ops.greater_scalar(case.pick(alike), scalar=0.25), first, case.pick(alike))


def reduced(case: "Case") -> Symbol:
    node = case.pick(list(case.values))
    name = case.pick(("sum", "sum", "mean", "norm", "square_sum", "max", "min", "prod"))
    axis = case.pick((None, *range(case.values[node].ndim)))
    return ops.get(name)(node, axis=axis, keepdims=case.pick((False, True)))


def sampled(case: "Case") -> Symbol | None:
    """A product at the places of a variable."""
    patterns = [node for node in case.values if node.op is None and node.given and case.values[node].ndim == 2]
    matrices = case.of(lambda value: value.ndim == 2)
    if not patterns:
        return None
    pattern = case.pick(patterns)
    rows, columns = case.values[pattern].shape
    left = [node for node in matrices if case.values[node].shape[0] == rows]
    right = [node for node in matrices if case.values[node].shape[0] == columns]
    if not left or not right:
        return None
    return ops.sampled_dot(pattern, case.pick(left), case.pick(right), transpose_b=True)


def on_stored(case: "Case") -> Symbol | None:
    variables = [node for node in case.values if node.op is None and node.given]
    if case.pick((True, False)):
        return ops.stored_add_scalar(case.pick(variables), scalar=1.5)
    rows = [node for node in variables if node.attributes["format"] == "row_sparse" and case.values[node].shape[0]]
    if not rows:
        return None
    node = case.pick(rows)
    wanted = case.random.integers(0, case.values[node].shape[0], 2)
    return ops.retain(node, _constant(case, wanted))


def looked_up(case: "Case") -> Symbol | None:
    tables = [node for node in case.values if node.op is None and node.given and case.values[node].shape[:1] > (0,)]
    if not tables:
        return None
    node = case.pick(tables)
    ids = case.random.integers(0, case.values[node].shape[0], (2, 2))
    return ops.embedding(_constant(case, ids), node, sparse_grad=case.pick((False, True)))


def loss(case: "Case") -> Symbol | None:
    fitting = case.of(lambda value: value.ndim == 2 and value.size > 0)
    if not fitting:
        return None
    scores = case.pick(fitting)
    labels = case.pick([node for node in fitting if case.values[node].shape == case.values[scores].shape])
    return ops.squared_loss(scores, labels)


def _constant(case: "Case", value: np.ndarray) -> Symbol:
    node = graph.constant(value)
    case.constants[node] = value
    return node


STEPS = (
    *(unary, unary, unary, scalar, scalar, clipped, binary, binary, binary, binary, broadcast, quotient, added),
    *(product, product, product, product, layer, converted, converted, turned, reshaped, cut, taken, joined, chosen),
    *(reduced, reduced, sampled, on_stored, looked_up, loss),
)
