"""Inference: shapes, dtypes, formats, rules and bytes before anything runs; and that running agrees with it."""

import numpy as np
import pytest
import scipy.sparse

from workbench import formats, graph, ops
from workbench.graph import GraphError


def product(x_format="csr", w_format="dense", **params):
    x = graph.variable("x", format=x_format, shape=(None, 6))
    w = graph.variable("w", format=w_format, shape=(6, 2))
    return ops.dot(x, w, **params)


def test_facts_of_every_node():
    made = ops.negative(product())
    found = made.infer(shapes={"x": (4, 6)})
    assert [str(facts) for facts in found] == [
        *("x csr float32 [4, 6]", "w dense float32 [6, 2]"),
        *("dot0 dense float32 [4, 2]", "negative0 dense float32 [4, 2]"),
    ]
    assert found["dot0"].rule.kernel == "csr_dense"
    assert found["x"].rule is None
    assert list(found.arguments) == ["x", "w"]
    assert found.outputs == [found[made]]
    assert not found.densified
    with pytest.raises(KeyError, match=r"no node 'dot7'; its nodes are \['x'"):
        found["dot7"]


@pytest.mark.parametrize("x_format", ["dense", "csr", "csc", "coo", "row_sparse"])
@pytest.mark.parametrize("w_format", ["dense", "csr", "row_sparse"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_inferred_is_what_comes_out(x_format, w_format, dtype):
    random = np.random.default_rng(0)
    x, w = (
        formats.to_format((random.random(shape) * (random.random(shape) < 0.4)).astype(dtype), format)
        for shape, format in (((5, 6), x_format), ((6, 2), w_format))
    )
    made = product(x_format, w_format)
    found = made.infer({"x": (5, 6)}, {"x": dtype, "w": dtype})[made]
    with ops.recording() as log:
        value = ops.dot(x, w)
    assert (found.format, found.shape, found.dtype) == (formats.format_of(value), value.shape, value.dtype)
    assert found.densifies == bool(log)


def test_given_formats_and_dtypes_take_the_place_of_declared_ones_and_shapes_complete_them():
    made = product()
    found = made.infer({"x": (4, None)}, {"x": "float64", "w": np.float64}, {"x": "dense"})
    assert found["x"].shape == (4, 6)
    assert found["dot0"].dtype == np.float64
    assert found["x"].format == "dense"
    assert made.infer({"x": (4, 6)})["x"].format == "csr"


def test_missing_shapes_are_an_error_that_names_the_variables():
    v = graph.variable("v")
    with pytest.raises(GraphError, match=r"The shape is missing of: x \(known is \(None, 6\)\), v\. Give it"):
        graph.group([product(), v]).infer()
    found = graph.group([product(), ops.negative(v)]).infer(partial=True)
    assert (found["v"].shape, found["negative0"].shape, found["negative0"].format) == (None, None, None)
    assert found["negative0"].dtype == np.float32
    assert found["x"].shape == (None, 6)
    assert found["x"].bytes is None
    assert found["w"].bytes == 48


def test_a_conflict_names_the_node_and_what_came():
    x, w = graph.variable("x", "csr", (4, 5)), graph.variable("w", shape=(6, 2))
    with pytest.raises(GraphError, match=r"scores = dot\(x csr float32 \[4, 5\], w dense float32 \[6, 2\]\): dot"):
        ops.dot(x, w, name="scores").infer()
    with pytest.raises(GraphError, match=r"dot0 = dot\(x csr float64.*float64 and float32 came"):
        ops.dot(x, w).infer({}, {"x": "float64"})
    with pytest.raises(GraphError, match=r"x has the declared shape \(4, 5\); \(3, 5\) was given"):
        ops.negative(x).infer({"x": (3, 5)})
    with pytest.raises(GraphError, match=r"declared shape \(4, 5\); \(4,\) was given"):
        ops.negative(x).infer({"x": (4,)})


@pytest.mark.parametrize("what", ["shapes", "dtypes", "formats", "densities"])
def test_unknown_names_are_refused(what):
    with pytest.raises(GraphError, match=rf"{what} are given for y; the graph's variables are \['x', 'w'\]"):
        product().infer(**{what: {"y": 1}})


def test_a_format_that_the_shape_does_not_allow_is_refused():
    with pytest.raises(GraphError, match=r"v is csr, which has 2 dimensions; its shape is \(2, 3, 4\)"):
        graph.variable("v", "csr", (2, 3, 4)).infer()
    with pytest.raises(GraphError, match="at least 1 dimension"):
        graph.variable("v", "row_sparse", ()).infer()
    assert graph.variable("v", "row_sparse", (2, 3, 4)).infer()["v"].bytes_are == "at most"
    with pytest.raises(formats.FormatError, match="Unknown format 'bsr'"):
        product().infer({"x": (4, 6)}, formats={"x": "bsr"})


def test_inference_reads_no_values():
    class Unread:
        shape, dtype, ndim = (3,), np.dtype(np.float32), 1

        def __array__(self, *_):
            raise AssertionError("a value was read")

    assert ops.exp(graph.variable("v")).infer({"v": Unread.shape}, {"v": Unread.dtype})["exp0"].shape == (3,)


def test_predicted_bytes_are_those_of_real_arrays():
    random = np.random.default_rng(1)
    x = scipy.sparse.random_array((40, 30), density=0.1, format="csr", dtype=np.float32, random_state=random)
    for format in ("dense", "csr", "csc", "coo"):
        held = formats.to_format(x, format)
        made = graph.variable("x", format, (40, 30)).infer(densities={"x": x.nnz / 1200})["x"]
        assert made.bytes == formats.nbytes(held)
        assert made.bytes_are == ("exact" if format == "dense" else "estimated")
    rows = formats.RowSparse(np.ones((10, 3, 2), np.float32), np.arange(10), (40, 3, 2))
    assert graph.variable("r", "row_sparse", (40, 3, 2)).infer(densities={"r": 0.25})["r"].bytes == rows.nbytes
    most = graph.variable("x", "csr", (40, 30)).infer()["x"]
    assert most.bytes_are == "at most"
    assert most.bytes == formats.nbytes(formats.to_format(np.ones((40, 30), np.float32), "csr"))
    with pytest.raises(ValueError, match="density is 2"):
        graph.variable("x", "csr", (4, 3)).infer(densities={"x": 2})


def test_a_result_like_its_only_sparse_input_is_about_as_dense():
    x = graph.variable("x", "csr", (40, 30))
    found = ops.square(x).infer(densities={"x": 0.1})
    assert found["square0"].bytes == found["x"].bytes
    assert found["square0"].bytes_are == "estimated"
    assert ops.add(x, graph.variable("y", "csr", (40, 30))).infer(densities={"x": 0.1})["add0"].bytes_are == "at most"


def test_densifying_is_foreseen_with_its_bytes():
    x = graph.variable("x", "csr", (40, 30))
    found = ops.exp(x).infer()
    assert [facts.name for facts in found.densified] == ["exp0"]
    assert found["exp0"].bytes_densified == 40 * 30 * 4
    assert found["exp0"].rule.kernel == "dense after to_format"


@pytest.mark.parametrize("rows", [0, 1])
def test_batches_of_no_row_and_of_one(rows):
    assert product().infer({"x": (rows, 6)})["dot0"].shape == (rows, 2)


def test_constants_take_part():
    found = ops.dot(scipy.sparse.csr_array(np.eye(6, dtype=np.float32)), graph.variable("w", shape=(6, 2))).infer()
    assert str(found["constant0"]) == "constant0 csr float32 [6, 6]"
    assert found["constant0"].bytes_are == "exact"
