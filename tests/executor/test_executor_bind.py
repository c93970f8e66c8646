"""Binding: what is allocated, held, converted and refused, and what arguments may be given later."""

import numpy as np
import pytest
import scipy.sparse

from tests.support.executor_case import batch, bound, model
from tests.support.toy_losses import joint_loss
from workbench import executor, formats, graph, ops
from workbench.executor import BindError
from workbench.graph import GraphError


def test_what_is_not_given_is_allocated_as_zeros():
    made = executor.bind(model(), shapes={"x": (4, 20), "y": (4,)}, grad_req="write")
    assert formats.format_of(made.args["x"]) == "csr"
    assert made.args["x"].shape == (4, 20)
    assert not made.args["w"].any()
    assert made.args["y"].dtype == np.int64
    assert formats.format_of(made.grads["w"]) == "row_sparse"
    assert made.grads["w"].nnz == 0
    assert made.outputs["loss"].shape == ()
    assert made.outputs["loss"] == 0
    assert list(made.args) == ["x", "w", "y"]
    assert len(made.args) == 3


def test_given_arrays_are_held_not_copied():
    x, y = batch()
    w = np.ones((20, 3), np.float32)
    made = executor.bind(model(), {"x": x, "y": y, "w": w})
    assert made.args["w"] is w
    assert made.args["x"] is x


def test_another_format_or_dtype_is_refused_with_advice_or_converted_on_request():
    x, y = batch()
    with pytest.raises(BindError, match=r"x is csr float32; dense float32 came.*to_format.*convert=True"):
        executor.bind(model(), {"x": x.toarray(), "y": y})
    with pytest.raises(BindError, match="x is csr float32; csr float64 came"):
        executor.bind(model(), {"x": x.astype(np.float64), "y": y})
    made = executor.bind(model(), {"x": x.toarray().astype(np.float64), "y": y.astype(np.int32)}, convert=True)
    assert (formats.format_of(made.args["x"]), made.args["x"].dtype) == ("csr", np.float32)
    assert made.args["y"].dtype == np.int64
    strict = executor.bind(model(), {"x": x, "y": y})
    with pytest.raises(BindError, match="dense float32 came"):
        strict.forward(x=x.toarray())
    np.testing.assert_allclose(made.forward(x=x.tocoo())[0], strict.forward()[0])


def test_formats_given_to_bind_override_declared_ones():
    x, y = batch()
    made = executor.bind(model(), {"x": x.toarray(), "y": y}, formats={"x": "dense"}, grad_req={"w": "write"})
    assert isinstance(made.grads["w"], np.ndarray)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"args": {"z": np.ones(3)}}, r"args has z; the graph's arguments are \['x', 'w', 'y'\]"),
        ({"shapes": {"z": (3,)}}, "shapes are given for z"),
        ({"shapes": {"y": (6,)}}, r"shape is missing of: x \(known is \(None, 20\)\)"),
        ({"grad_req": {"z": "write"}}, "grad_req has z"),
        ({"grad_req": "wite"}, "grad_req of x is 'wite'; it is one of write, add, null"),
        ({"grad_req": ["write"]}, "a word of"),
        ({"grad_req": {"y": "write"}}, "y is int64; only float arguments have gradients"),
        ({"grad_req": {"w": "write"}, "grad_formats": {"x": "dense"}}, r"grad_formats has x; .* are \['w'\]"),
        ({"grad_req": {"w": "write"}, "grad_formats": {"w": "bsr"}}, "'bsr' for w; there is: dense, .*, fused"),
        ({"grad_req": {"w": "add"}, "grad_formats": {"w": "fused"}}, "cannot be added to. Request write"),
    ],
)
def test_what_cannot_be_bound_is_refused(options, message):
    options = {"shapes": {"x": (6, 20), "y": (6,)}, **options}
    with pytest.raises(GraphError, match=message):
        executor.bind(model(), **options)


def test_a_request_by_name_where_there_is_no_gradient_is_refused_and_one_for_all_leaves_it_out():
    labels = graph.variable("t", shape=(None,), dtype="float32")
    made = joint_loss(graph.variable("s", shape=(6, 3)), ops.identity(labels))
    with pytest.raises(BindError, match="asks for a gradient of t, but there is none: toy_loss"):
        executor.bind(made, shapes={"t": (6,)}, grad_req={"t": "write"})
    assert list(executor.bind(made, shapes={"t": (6,)}, grad_req="write").requests) == ["s"]


def test_assignment_writes_into_the_array():
    made = bound()
    w = made.args["w"]
    made.args["w"] = np.full((20, 3), 2, np.float64)
    assert made.args["w"] is w
    assert (w == 2).all()
    made.args["x"] = np.eye(6, 20)  # a sparse argument takes the values in its own format
    assert formats.format_of(made.args["x"]) == "csr"
    assert made.args["x"].nnz == 6
    with pytest.raises(formats.FormatError, match="shape"):
        made.args["w"] = np.ones((3, 3))
    with pytest.raises(BindError, match=r"no argument 'v'; the arguments are \['x', 'w', 'y'\]"):
        made.args["v"] = 1


def test_forward_checks_names_and_shapes_and_changes_nothing_where_they_do_not_fit():
    made = bound()
    before, x = made.forward()[0].copy(), made.args["x"]
    with pytest.raises(BindError, match="no argument 'z'"):
        made.forward(z=1)
    with pytest.raises(BindError, match=r"x has the shape \(6, 20\); \(6, 21\) came. Only the number of rows"):
        made.forward(x=scipy.sparse.csr_array((6, 21), dtype=np.float32))
    with pytest.raises(formats.FormatError, match="none of the formats"):
        made.forward(x="a")
    w = np.ones((25, 3), np.float32)
    with pytest.raises(GraphError, match=r"w has the declared shape \(20, 3\); \(25, 3\) was given"):
        made.forward(x=batch(3)[0], w=w)
    assert made.args["x"] is x
    assert made.forward()[0] == before
