"""dot and sampled_dot: every row of the table has its dense meaning, on adversarial operands and its pattern."""

import dataclasses
import functools
import itertools

import numpy as np
import pytest
import scipy.sparse

import kernels
from kernels import threads
from tests.support.operands import adversarial, canonical, close, dense_of, operand, shares_memory, turned
from workbench import formats, ops
from workbench.ops import products
from workbench.ops.products import methods
from workbench.ops.products.methods import METHODS

RNG = np.random.default_rng(3)
FORMATS = ("dense", "csr", "csc", "coo", "row_sparse")
PAIRS = [*itertools.product(FORMATS, FORMATS)]
flags = (False, True)


def targets_of_rows(case):
    """Every row of the table, and every kind of operand in every format on both sides and by every kernel."""
    row, kind = case["row"], case["kind"]
    values = {"x": row.x, "y": row.y, "transposed": row.transpose_a, "result": row.result}
    return {repr(row), (kind, row.kernel, row.engines), *((kind, *pair) for pair in values.items())}


@pytest.mark.covering(targets=targets_of_rows)
@pytest.mark.parametrize("row", METHODS, ids=lambda r: f"{r.x}-{r.y}-{r.transpose_a:d}-{r.result}-{r.engines[0]}")
@pytest.mark.parametrize("kind", ["usual", "empty", "full", "hostile"])
def test_every_row_has_its_dense_meaning(row, kind):
    dtype = "float64" if kind == "usual" else "float32"
    a, b = operand(7, 5, kind, dtype), operand(5, 6, kind, dtype)
    make = adversarial if kind == "hostile" else formats.to_format
    for transpose_b in flags:
        x, y = make(turned(a, row.transpose_a), row.x), make(turned(b, transpose_b), row.y)
        asked = {"transpose_a": row.transpose_a, "transpose_b": transpose_b, "result": row.result}
        with ops.settings(strict=True):
            came = ops.dot(x, y, engine=row.engines[-1], **asked)
        assert formats.format_of(came) == row.result
        if row.result != "dense":
            canonical(came)
        close(came, a @ b)


@pytest.mark.covering(
    targets=lambda case: {(case["x"], case["y"]), *((case["shapes"], side, case[side]) for side in "xy")}
)
@pytest.mark.parametrize("shapes", [(0, 3, 2), (3, 0, 2), (3, 2, 0), (1, 1, 1), (0, 0, 0)], ids=str)
@pytest.mark.parametrize(("x", "y"), PAIRS)
def test_products_of_nothing_have_their_shape(shapes, x, y):
    rows, inner, columns = shapes
    a, b = np.ones((rows, inner), np.float32), np.ones((inner, columns), np.float32)
    for ta, tb in itertools.product(flags, flags):
        one, other = formats.to_format(turned(a, ta), x), formats.to_format(turned(b, tb), y)
        came = ops.dot(one, other, transpose_a=ta, transpose_b=tb)
        assert formats.format_of(came) == methods.default_result(x, y, ta, tb)
        close(came, a @ b)


@pytest.mark.parametrize("y", ["dense", "row_sparse"])
@pytest.mark.parametrize(("x", "transposed"), [*itertools.product(FORMATS, flags)])
def test_a_vector_gives_a_vector(x, y, transposed):
    a, b = operand(7, 5, "usual", "float32"), np.float32([0, 1, 0, 2, 3])
    vector = formats.to_format(b, y)
    for result in (None, "dense", "row_sparse"):
        close(
            ops.dot(formats.to_format(turned(a, transposed), x), vector, transpose_a=transposed, result=result), a @ b
        )


def test_the_table_covers_every_pair_of_formats_and_every_result():
    covered = {(row.x, row.y, row.transpose_a, row.result) for row in METHODS if "ours" in row.engines}
    assert covered == set(itertools.product(FORMATS, FORMATS, flags, ("dense", "row_sparse", "csr")))


def test_every_kernel_that_a_row_names_exists():
    assert {row.kernel for row in METHODS} <= set(kernels.names())


def test_a_transposed_sparse_product_stores_the_columns_with_entries_zeros_among_them():
    x = scipy.sparse.csr_array((np.float32([0, 1, 2]), ([0, 0, 2], [4, 1, 3])), shape=(3, 6))
    x.sum_duplicates()
    weights = np.ones((3, 2), np.float32)
    assert ops.dot(x, weights, transpose_a=True).indices.tolist() == [1, 3, 4]
    stored = formats.RowSparse(np.ones((1, 2), np.float32), [0], (3, 2))
    assert ops.dot(x, stored, transpose_a=True).indices.tolist() == [1, 4]


def test_a_dense_by_sparse_product_stores_all_the_columns_that_the_sparse_one_has():
    y = scipy.sparse.csr_array((np.float32([1, 0, 2]), ([0, 1, 1], [3, 0, 3])), shape=(2, 5))
    came = ops.dot(np.float32([[0, 0], [1, 1]]), y)
    assert came.indices.tolist() == [0, 3, 0, 3]
    assert came.data.tolist() == [0, 0, 0, 3]


def test_a_sparse_by_sparse_product_keeps_what_cancels():
    x = scipy.sparse.csr_array(np.float32([[1, -1]]))
    came = ops.dot(x, scipy.sparse.csr_array(np.float32([[2, 0], [2, 3]])))
    assert came.indices.tolist() == [0, 1]
    assert came.data.tolist() == [0, -3]


def test_nan_and_inf_meet_only_what_is_stored():
    x = scipy.sparse.csr_array(np.float32([[0, np.nan], [1, 0], [np.inf, 0]]))
    weights = formats.RowSparse(np.float32([[2]]), [0], (2, 1))
    np.testing.assert_array_equal(ops.dot(x, weights), np.float32([[0], [2], [np.inf]]))
    np.testing.assert_array_equal(ops.dot(x, np.float32([[2], [1]])), np.float32([[np.nan], [2], [np.inf]]))


def test_indices_of_different_width_go_together():
    x, y = operand(4, 5, "usual", "float32"), operand(5, 3, "usual", "float32")
    one, other = formats.to_format(x, "csr"), formats.to_format(y, "csr")
    other.indices, other.indptr = other.indices.astype(np.int64), other.indptr.astype(np.int64)
    for left, right in ((one, other), (other.T.tocsr(), one.T.tocsr())):
        close(ops.dot(left, right), dense_of(left) @ dense_of(right))
    assert ops.dot(one, other).indices.dtype == np.int64


def test_what_is_given_stays_as_it_was_and_shares_no_memory_with_the_result():
    dense = operand(6, 4, "usual", "float32")
    x = formats.to_format(dense, "csr")
    before = [array.copy() for array in (x.data, x.indices, x.indptr)]
    w = np.ones((4, 2), np.float32)
    came = ops.dot(x, w)
    came[...] = 7
    for array, old in zip((x.data, x.indices, x.indptr), before, strict=True):
        np.testing.assert_array_equal(array, old)
    rows = formats.to_format(dense, "row_sparse")
    product = ops.dot(rows, w, result="row_sparse")
    assert not shares_memory(product, rows)


@pytest.mark.parametrize(
    ("shapes", "params", "message"),
    [
        (((3, 4), (5, 2)), {}, r"dot cannot multiply \(3, 4\) by \(5, 2\): 4 columns meet 5 rows"),
        (((3, 4), (4, 2)), {"transpose_a": True}, r"by \(4, 2\): 3 columns meet 4 rows\. The shapes are"),
        (((3, 4), (4,)), {"transpose_b": True}, "y is a vector"),
        (((3, 4), (4,)), {"result": "csr"}, "y is a vector"),
        (((3,), (3, 1)), {}, r"a matrix and a matrix or vector; the shapes \(3,\) and"),
        (((3, 4), (4, 2)), {"engine": "magic"}, "no engine 'magic'; the engines are ours, vendor, dense"),
        (((3, 4), (4, 2)), {"result": "coo"}, "cannot be had as 'coo'; result is None, dense, row_sparse, csr"),
        (((3, 4), (4, 2)), {"transpose": True}, r"dot has no parameter \['transpose'\]; its parameters are"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_in_words(shapes, params, message):
    arrays = [np.ones(shape, np.float32) for shape in shapes]
    with pytest.raises(ops.OpError, match=message):
        ops.dot(*arrays, **params)


def test_other_types_are_refused():
    x = formats.to_format(np.ones((2, 3), np.float32), "csr")
    with pytest.raises(ops.OpError, match=r"float32 and float64 came\. Convert with cast"):
        ops.dot(x, np.ones((3, 1)))
    with pytest.raises(ops.OpError, match="int64 and int64 came"):
        ops.dot(np.ones((2, 3), int), np.ones((3, 1), int))


@pytest.mark.parametrize("engine", ["vendor", "dense"])
def test_a_competitor_engine_refuses_rather_than_densifies(engine):
    x, y = (formats.to_format(np.ones((2, 2), np.float32), "csr") for _ in "xy")
    with pytest.raises(ops.OpError, match=r"dot\(csr, csr\): the engines vendor .* make nothing dense for it"):
        ops.dot(x, y, engine=engine)
    with pytest.raises(ops.OpError, match="make nothing dense"):
        ops.dot(x, np.ones((2, 1), np.float32), transpose_a=True, result="row_sparse", engine=engine)


def test_a_product_without_a_rule_names_those_there_are():
    with pytest.raises(products.NoRuleError, match=r"row_sparse by engine 'vendor' .* there is: dense by ours"):
        products.rule("csr", True, "row_sparse", "vendor")


@pytest.mark.parametrize("row", products.by_format.values(), ids=lambda r: f"{r.x}-{r.transpose_a:d}-{r.engines[0]}")
def test_a_rule_looked_up_multiplies_into_out(row):
    a, b = operand(7, 5, "usual", "float32"), RNG.standard_normal((5, 3)).astype(np.float32)
    out = np.full((7, 3), np.nan, np.float32) if row.result == "dense" else None
    found = {"transposed": row.transpose_a, "result": row.result, "engine": row.engines[0]}
    came = products.multiply(formats.to_format(turned(a, row.transpose_a), row.x), b, out=out, **found)
    assert out is None or came is out
    close(came, a @ b)


def test_an_out_of_another_shape_is_refused():
    x = formats.to_format(operand(7, 5, "usual", "float32"), "csr")
    with pytest.raises(kernels.KernelError, match=r"out has shape \[6, 2\], but R is 7"):
        products.multiply(x, np.ones((5, 2), np.float32), out=np.empty((6, 2), np.float32))


def test_a_plan_that_is_given_is_used():
    x = formats.to_format(operand(6, 9, "usual", "float32"), "csr")
    slope = np.ones((6, 2), np.float32)
    rule = ops.dot.choose(["csr", "dense"], [x.shape, slope.shape], ops.dot.resolve({"transpose_a": True}))
    assert rule.plan
    plan = products.make_plan(x)
    first = formats.compressed.assemble("csr", x.indptr, np.zeros_like(x.indices), x.data, x.shape)
    whole = {"transpose_a": True, "transpose_b": False, "result": None, "engine": "ours"}
    assert rule.call(x, slope, plan=plan, **whole) == rule.call(x, slope, **whole)
    assert rule.call(x, slope, plan=products.make_plan(first), **whole).indices.tolist() == [0]


def test_unsummed_is_the_gradient_as_its_factors():
    x = formats.to_format(operand(6, 9, "usual", "float32"), "csr")
    slope = RNG.standard_normal((6, 2)).astype(np.float32)
    left = products.Unsummed(x, slope, products.make_plan(x), (9, 2))
    assert left.dtype == np.float32
    assert left.compute() == ops.dot(x, slope, transpose_a=True)


def test_a_weight_of_a_million_rows_costs_what_it_stores():
    """No operand of a product is as large as a dense one: this would take 800 GB."""
    million = 10**6
    x = scipy.sparse.csr_array((np.ones(3), ([0, 1, 1], [5, 7, 999_999])), shape=(2, million))
    y = scipy.sparse.csr_array((np.ones(2), ([7, 999_999], [3, 123_456])), shape=(million, million))
    w = formats.RowSparse(np.ones((1, 2)), [7], (million, 2))
    assert ops.dot(x, y).indices.tolist() == [3, 123_456]
    assert ops.dot(x, w).tolist() == [[0, 0], [1, 1]]
    assert ops.dot(y, x, transpose_a=True, transpose_b=True).nnz == 2
    assert ops.sampled_dot(y, x, scipy.sparse.csr_array((2, million)), transpose_a=True).nnz == 2


def test_a_vendor_product_is_dense_where_no_result_is_asked_for():
    x = formats.to_format(operand(6, 4, "usual", "float32"), "csr")
    assert isinstance(ops.dot(x, np.ones((6, 2), np.float32), transpose_a=True, engine="vendor"), np.ndarray)


@pytest.mark.parametrize("width", [0, 1, 3, 4, 16, 17])
@pytest.mark.parametrize("rows", [0, 1, 40, 4000])
def test_products_of_few_and_many_rows_have_the_same_bits_checked_or_not(rows, width):
    rng = np.random.default_rng(rows + width)
    indptr = np.concatenate([[0], rng.integers(0, 40, rows).cumsum()]).astype(np.int32)
    indices = rng.integers(0, 300, indptr[-1]).astype(np.int32)
    data, x = rng.standard_normal(indptr[-1], np.float32), rng.standard_normal((300, width), np.float32)
    kernel, outs = kernels.get("csr_dense"), [np.full((rows, width), 7, np.float32) for _ in range(4)]
    kernel.cpu(indptr, indices, data, x, outs[0])
    kernel.trusted(indptr, indices, data, x, outs[1])
    with threads.parallel():
        kernel.cpu(indptr, indices, data, x, outs[2])
    data.flags.writeable = False
    kernel.cpu(indptr, indices, data, np.repeat(x, 2, 0)[::2], outs[3])
    for out in outs[1:]:
        np.testing.assert_array_equal(outs[0], out)


def test_a_checked_competitor_is_not_replaced_by_our_call_for_few_rows():
    ours, called, one = kernels.get("csr_dense"), [], np.ones((1, 1), np.float32)

    @functools.wraps(ours.cpu)
    def cpu(*args):
        called.append(args)

    other = dataclasses.replace(ours, competitor_of="csr_dense", cpu=cpu)
    other.cpu(np.int32([0, 1]), np.int32([0]), np.float32([1]), one, one.copy())
    assert called


ROWS, COLUMNS = 10_000, 10**7


def matrix(lengths: np.ndarray, columns: int, random: np.random.Generator) -> scipy.sparse.csr_array:
    """Ones in random columns, int32 and float32."""
    indptr, entries = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32), int(lengths.sum())
    found = random.integers(0, columns, entries, np.int32)
    return scipy.sparse.csr_array((np.ones(entries, np.float32), found, indptr), shape=(lengths.size, columns))


def test_few_columns_among_many_come_out_in_order():
    random = np.random.default_rng(0)
    a, b = matrix(np.arange(10), ROWS, random), matrix(np.full(ROWS, 3), COLUMNS, random)
    came = kernels.get("csr_csr").cpu(a.indptr, a.indices, a.data, b.indptr, b.indices, b.data)
    expected = a @ b
    expected.sort_indices()
    for one, other in zip(came, (expected.indptr, expected.indices, expected.data), strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.diff(expected.indptr).max() > 20
