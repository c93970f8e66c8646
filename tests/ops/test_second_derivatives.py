"""Gradients of gradient graphs: each operator's own, differentiated once more, equals finite differences of the first.

For every operator the sum of its first gradients, weighted at random, is a graph; what `autodiff` makes of that graph
is compared with differences of it. So every operator that gradients are made of is differentiated, too.
"""

import numpy as np
import pytest

from tests.graph.test_autodiff import at_stored, stored
from tests.ops.test_op_gradients import NOT_THE_DERIVATIVE, STEP
from tests.support import op_arrays, op_examples
from workbench import autodiff, executor, formats, graph, ops
from workbench.autodiff import AutodiffError

NO_SECOND = {
    **dict.fromkeys(("product_of_others", "slope_of_others"), "would be a third derivative of prod"),
    **dict.fromkeys(("slope_of_output", "slope_of_softmax"), "is the gradient of what ignores its head"),
}
NO_INPUTS = ("zeros", "random_uniform", "random_normal")
INTEGERS = ("count_stored",)
NAMES = [name for name in ops.names() if name not in {*NO_SECOND, *NO_INPUTS, *INTEGERS, *NOT_THE_DERIVATIVE}]
MOST = 3
"""Calls of the table that are compared for each operator and rank: first, middle, last."""


def calls(name):
    """(operator, dense inputs, parameters) of some rows of the table of calls."""
    op, rng = ops.get(name), np.random.default_rng(len(name))
    call = op_examples.call_of(op)
    for base in ((3, 2), (2, 1, 2)):
        listed = call.listed(base) if len(base) in call.ranks else []
        for at in sorted({0, len(listed) // 2, len(listed) - 1} & set(range(len(listed)))):
            shapes, params = listed[at]
            inputs = [op_arrays.draw(call.kind(i), s, rng, shapes[call.of]) for i, s in enumerate(shapes)]
            yield op, inputs, op.resolve(params)


class Differentiated:
    """The first gradients of an operator, and the gradients of their weighted sum, bound to inputs."""

    def __init__(self, op, inputs, params, held) -> None:
        given = [op_arrays.messy(x, form, np.random.default_rng(1)) for x, form in zip(inputs, held, strict=True)]
        names = [f"x{place}" for place in range(len(inputs))]
        made = [graph.variable(n, f, x.shape, x.dtype) for n, f, x in zip(names, held, inputs, strict=True)]
        node = op(*made, **params)
        output = op(*given, **params)
        self.args = dict(zip(names, given, strict=True)) | {"head": _drawn(output, 5)}
        head = graph.variable("head", formats.format_of(output), output.shape, output.dtype)
        floats = [name for name, x in zip(names, inputs, strict=True) if x.dtype.kind == "f"]
        found, _ = autodiff.walk(node, floats, [head])
        self.first = graph.group(found.values())
        self.bound = executor.bind(self.first, self._of(self.first))
        self.heads = [_drawn(gradient, 7 + place) for place, gradient in enumerate(self.bound.forward())]
        self.wanted = [name for name in (*floats, "head") if name in self.first.arguments()]

    def _of(self, symbol):
        return {name: self.args[name] for name in symbol.arguments()}

    def second(self):
        found = autodiff.gradients(self.first, self.wanted, heads=[graph.constant(head) for head in self.heads])
        made = graph.group(found.values())
        values = executor.bind(made, self._of(made)).forward()
        return dict(zip(found, map(op_arrays.dense_of, values), strict=True))

    def sum_at(self, name, stored, place, step):
        """The weighted sum of the first gradients with one stored value moved."""
        kept = stored[place]
        stored[place] = kept + step
        total = sum(
            float(np.sum(op_arrays.dense_of(head) * op_arrays.dense_of(gradient)))
            for head, gradient in zip(self.heads, self.bound.forward(), strict=True)
        )
        stored[place] = kept
        return total


def _drawn(like, seed):
    """Random numbers in the format and at the places of an array."""
    drawn = np.random.default_rng(seed).uniform(0.5, 1.5, like.shape)
    if isinstance(like, np.ndarray):
        return drawn
    drawn[~op_arrays.stored_places(like)] = 0
    return formats.to_format(drawn, formats.format_of(like))


def _differences(made, name):
    """(the differences towards the stored values of one input, where they exist)."""
    values = stored(made.bound.args[name])
    found, exists = np.zeros(values.shape), np.zeros(values.shape, bool)
    for place in np.ndindex(values.shape):
        before, at, after = (made.sum_at(name, values, place, step) for step in (-STEP, 0, STEP))
        left, right = (at - before) / STEP, (after - at) / STEP
        found[place] = (left + right) / 2
        exists[place] = abs(left - right) < 1e-3 * (1 + abs(left)) and abs(left) < 1e4
    return found, exists


@pytest.mark.covering(targets=lambda case: op_examples.targets_of_paths(case["name"], case["form"]))
@pytest.mark.parametrize("form", ["dense", "row_sparse", "csr"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore::workbench.ops.DensifyWarning")
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_second_derivative(name, form):
    """With the first input in that format, where it can be held so, and the others dense."""
    compared = 0
    for op, inputs, params in calls(name):
        if form not in op_examples.formats_for(op_examples.call_of(op), 0, inputs[0]):
            continue
        held = [form if not place else "dense" for place in range(len(inputs))]
        try:
            made = Differentiated(op, inputs, params, held)
        except ops.OpError:
            assert any(rule.refusal for rule in op.rules)
            continue
        second = made.second()
        compared += 1
        for key in made.wanted:
            expected, exists = _differences(made, key)
            found = at_stored(second[key], made.args[key])
            where = f"{name}, {params}, {key}"
            np.testing.assert_allclose(found[exists], expected[exists], rtol=2e-3, atol=2e-5, err_msg=where)
    assert compared or form != "dense" or name == "retain", f"{name} was never compared"


def test_operators_that_gradients_are_made_of_have_gradients():
    """All that an operator's gradient may bring into a graph has one itself, or says what to do."""
    for name in ops.names():
        op = ops.get(name)
        assert op.gradient or op.no_gradient or not op.inputs, name


X, Y = graph.variable("x", shape=(3, 2)), graph.variable("y", shape=(3, 2))


@pytest.mark.parametrize(
    ("symbol", "message"),
    [
        (ops.linear_regression_output(X, Y), r"slope_of_output0 on the way is slope_of_output, which has none. An out"),
        (ops.logistic_regression_output(X, Y), "take softmax_loss, logistic_loss or squared_loss"),
        (ops.softmax_output(X, graph.variable("z", shape=(3,))), "slope_of_softmax0 on the way .* take softmax_loss"),
    ],
)
def test_output_layers_have_no_second_derivative_and_say_what_has(symbol, message):
    first = autodiff.gradients(symbol, ["x"], heads=[graph.constant(np.ones((3, 2), np.float32))])["x"]
    with pytest.raises(AutodiffError, match=message):
        autodiff.gradients(first, ["x"], heads=[X])


def test_third_derivatives_of_a_product_say_what_to_do():
    one = graph.constant(np.ones((), np.float32))
    first = autodiff.gradients(ops.prod(X), ["x"], heads=[one])["x"]
    second = autodiff.gradients(first, ["x"], heads=[Y])["x"]
    with pytest.raises(AutodiffError, match=r"slope_of_others .* none towards its input 1. .* exp\(sum\(log\(x\)\)\)"):
        autodiff.gradients(second, ["x"], heads=[Y])


def test_what_is_read_for_its_shape_alone_blocks_nothing():
    """The array that a sum spreads its gradient over is a function of x itself, of which only the shape is read."""
    one = graph.constant(np.ones((), np.float32))
    first = autodiff.gradients(ops.sum(ops.exp(X)), ["x"], heads=[one])["x"]
    second = autodiff.gradients(ops.sum(first), ["x"], heads=[one])["x"]
    x = np.float32(np.random.default_rng(0).standard_normal((3, 2)))
    (found,) = executor.bind(second, {"x": x}).forward()
    np.testing.assert_allclose(found, np.exp(x), rtol=1e-6)


def test_an_input_that_is_not_read_alone_gets_zeros():
    made = autodiff.gradients(ops.get("reshape_like")(X, Y), ["y"], heads=[X])["y"]
    assert made.kind == "zeros_like"


def test_an_unknown_loss_has_no_slope():
    with pytest.raises(ops.OpError, match="There is no loss 'hinge'; the losses are logistic_loss, softmax_loss, squ"):
        ops.slope_of_loss(np.ones((2, 1)), np.ones((2, 1)), loss="hinge")
