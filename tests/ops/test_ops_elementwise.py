"""Element-wise operators: what is stored afterwards, and which format comes when."""

import numpy as np
import pytest
import scipy.sparse

from tests.support import op_arrays
from workbench import formats, ops
from workbench.formats import RowSparse

KEEPING = [name for name in ops.names() if ops.get(name).family == "unary" and ops.get(name).rules]
ZERO_KEEPING = [name for name in KEEPING if name != "zeros_like"]
DENSE = np.float32([[0, 0.5, 0, 0], [0, 0, 0, 0], [0.25, 0, 0.75, 0]])


def unkind() -> scipy.sparse.csr_array:
    """Row 0: columns 2, 0, 2 with 1, 2, 3, so unsorted and 2 twice; row 2: a stored zero."""
    return op_arrays.csr([1, 2, 3, 0], [2, 0, 2, 1], [0, 3, 3, 4], (3, 4))


def stored_of(x) -> list:
    coo = formats.to_format(x, "coo")
    return sorted(zip(coo.row.tolist(), coo.col.tolist(), coo.data.tolist(), strict=True))


# Patterns


@pytest.mark.parametrize("name", ZERO_KEEPING)
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_unary_operators_keep_stored_zeros_and_sum_duplicates_first(name, form):
    came = getattr(ops, name)(formats.to_format(unkind(), form))
    f = ops.get(name).dense
    with np.errstate(all="ignore"):
        wanted = {(0, 0): f(np.float32([2]))[0], (0, 2): f(np.float32([4]))[0], (2, 1): 0.0}
    summed = formats.to_format(came, "csr")
    summed.sum_duplicates()
    assert came.format == form
    assert [entry[:2] for entry in stored_of(summed)] == sorted(wanted)
    np.testing.assert_array_equal([entry[2] for entry in stored_of(summed)], [wanted[key] for key in sorted(wanted)])
    if form != "coo":
        assert formats.check(came) is came


@pytest.mark.parametrize("name", ZERO_KEEPING)
@pytest.mark.parametrize("tail", [(), (2,), (2, 3), (0,)])
def test_unary_operators_keep_the_rows_of_row_sparse(name, tail):
    values = np.zeros((2, *tail))
    values[0] = 0.5
    came = getattr(ops, name)(RowSparse(values, [1, 4], (6, *tail)))
    assert came.indices.tolist() == [1, 4]
    np.testing.assert_array_equal(came.values, ops.get(name).dense(values))


def test_zeros_like_stores_nothing_in_every_format():
    for form in formats.names():
        came = ops.zeros_like(formats.to_format(DENSE, form))
        assert formats.format_of(came) == form
        assert came.shape == (3, 4)
        assert came.dtype == np.float32
        assert form == "dense" or came.nnz == 0
    assert ops.zeros_like(RowSparse(np.ones((1, 2, 3)), [4], (5, 2, 3))).nnz == 0


def test_duplicates_of_a_coo_array_are_summed():
    x = formats.to_format(unkind(), "coo")
    assert ops.negative(x).nnz == ops.square(x).nnz == 3


@pytest.mark.parametrize("form", formats.names())
@pytest.mark.parametrize("name", ["identity", "negative", "abs", "multiply_scalar", "zeros_like"])
def test_results_share_no_memory_with_inputs(form, name):
    x = formats.to_format(DENSE, form)
    came = getattr(ops, name)(x, **({"scalar": 1.0} if name.endswith("scalar") else {}))
    given = formats.get(form).parts(x).values()
    for part in formats.get(form).parts(came).values():
        assert not any(np.shares_memory(part, other) for other in given)


def test_read_only_and_strided_arrays_are_taken():
    values = np.arange(12.0).reshape(2, 6)[:, ::2]
    x = RowSparse(values, np.array([0, 2]), (4, 3))
    values.flags.writeable = False
    y = op_arrays.csr([1.0, 2.0], [0, 2], [0, 1, 1, 1, 2], (4, 3), np.int64, np.float64)
    for part in (y.data, y.indices, y.indptr):
        part.flags.writeable = False
    for name in ("add", "multiply", "maximum"):
        f = getattr(np, name)
        np.testing.assert_array_equal(getattr(ops, name)(x, x).toarray(), f(x.toarray(), x.toarray()))
        np.testing.assert_array_equal(getattr(ops, name)(y, y).toarray(), f(y.toarray(), y.toarray()))
    np.testing.assert_array_equal(ops.sqrt(x).toarray(), np.sqrt(x.toarray()))


def test_two_csr_arrays_give_sorted_trimmed_ones_with_the_places_of_both():
    x, y = unkind(), op_arrays.csr([-4, 5, 1], [2, 0, 3], [0, 2, 2, 3], (3, 4))
    either, both = [(0, 0), (0, 2), (2, 1), (2, 3)], [(0, 0), (0, 2)]
    for name in ("add", "subtract", "multiply", "maximum", "minimum", "hypot", "not_equal", "greater", "logical_or"):
        came = getattr(ops, name)(x, y)
        wanted = ops.get(name).dense(x.toarray(), y.toarray())
        assert formats.check(came, full=True) is came
        assert [entry[:2] for entry in stored_of(came)] == (both if name == "multiply" else either), name
        assert len(came.data) == len(came.indices) == came.indptr[-1]
        np.testing.assert_allclose(came.toarray(), wanted)
    assert stored_of(ops.add(x, y)) == [(0, 0, 7.0), (0, 2, 0.0), (2, 1, 0.0), (2, 3, 1.0)]


def test_nan_is_kept_where_two_csr_arrays_meet():
    x, y = op_arrays.csr([np.nan, 1], [0, 1], [0, 2], (1, 3)), op_arrays.csr([1, np.nan], [0, 2], [0, 2], (1, 3))
    for name in ("add", "maximum", "minimum", "hypot"):
        with np.errstate(all="ignore"):
            wanted = ops.get(name).dense(x.toarray(), y.toarray())
        np.testing.assert_array_equal(getattr(ops, name)(x, y).toarray(), wanted)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8])
def test_other_types_are_added_multiplied_and_compared(dtype):
    x = formats.astype(formats.to_format(np.float32([[1, 0, 3], [0, 2, 0]]), "csr"), dtype)
    y = formats.astype(formats.to_format(np.float32([[2, 5, 0], [0, 2, 1]]), "csr"), dtype)
    for name in ("add", "multiply", "maximum", "minimum", "not_equal", "greater", "logical_and"):
        came = getattr(ops, name)(x, y)
        assert came.dtype == dtype
        wanted = ops.get(name).dense(formats.to_format(x, "dense"), formats.to_format(y, "dense"))
        np.testing.assert_array_equal(formats.to_format(came, "dense"), wanted)
    doubled = ops.abs(formats.get("csr").build(
        {"data": np.array([1, 2], dtype), "indices": np.int32([0, 0]), "indptr": np.int32([0, 2])}, (1, 2)
    ))  # fmt: skip
    assert doubled.data.tolist() == [3]
    assert doubled.dtype == dtype


def test_two_row_sparse_arrays_keep_every_row_of_either():
    x, y = RowSparse(np.float64([[1], [2]]), [0, 3], (6, 1)), RowSparse(np.float64([[-1], [7]]), [0, 4], (6, 1))
    for name in ("add", "subtract", "multiply", "maximum", "minimum", "hypot", "greater", "not_equal"):
        came = getattr(ops, name)(x, y)
        assert came.indices.tolist() == [0, 3, 4], name
        np.testing.assert_array_equal(came.toarray(), ops.get(name).dense(x.toarray(), y.toarray()))
    nothing = ops.zeros_like(x)
    assert ops.multiply(x, nothing).indices.tolist() == [0, 3]
    assert ops.add(nothing, nothing).nnz == 0


# Formats


@pytest.mark.parametrize("shape", [(4,), (1, 4), (3, 1), (1,), (1, 1), (), (3, 4)])
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "row_sparse"])
def test_a_dense_array_may_be_broadcast_over_a_sparse_one(shape, form):
    x, y = formats.to_format(DENSE, form), np.random.default_rng(2).uniform(1, 2, shape).astype(np.float32)
    with ops.settings(strict=True):
        for left, right in ((x, y), (y, x)):
            product = ops.multiply(left, right)
            assert formats.format_of(product) == form
            assert np.array_equal(op_arrays.stored_places(product), op_arrays.stored_places(x))
            np.testing.assert_array_equal(product.toarray(), DENSE * y)
            assert isinstance(ops.add(left, right), np.ndarray)
        np.testing.assert_array_equal(ops.add(x, y), DENSE + y)
        np.testing.assert_array_equal(ops.subtract(x, y), DENSE - y)
        np.testing.assert_array_equal(ops.subtract(y, x), y - DENSE)
        if shape != (3, 4) and form != "row_sparse":
            quotient = ops.divide(x, y)
            assert formats.format_of(quotient) == form
            np.testing.assert_array_equal(quotient.toarray(), DENSE / y)


@pytest.mark.filterwarnings("ignore::workbench.ops.DensifyWarning")
def test_a_sparse_array_that_is_broadcast_is_made_dense_with_a_word():
    x, y = formats.to_format(DENSE[:1], "csr"), np.ones((3, 4), np.float32)
    for name in ("add", "subtract", "multiply"):
        with ops.recording() as log:
            came = getattr(ops, name)(x, y)
        assert len(log) == 1
        np.testing.assert_array_equal(came, getattr(np, name)(DENSE[:1], y))


def test_a_rank_three_row_sparse_meets_broadcast_dense_ones():
    x = RowSparse(np.arange(12.0).reshape(2, 3, 2), [1, 2], (4, 3, 2))
    for y in (np.ones(2), np.full((3, 1), 2.0), np.arange(4.0).reshape(4, 1, 1), np.array(3.0)):
        with ops.settings(strict=True):
            np.testing.assert_array_equal(ops.multiply(x, y).toarray(), x.toarray() * y)
            np.testing.assert_array_equal(ops.subtract(y, x), y - x.toarray())


@pytest.mark.parametrize("scalar", [-1.5, -0.0, 0.0, 0.5, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("name", [name for name in ops.names() if ops.get(name).family == "scalars"])
def test_the_format_is_kept_exactly_where_zero_stays_zero(name, scalar):
    """But for a number that makes what is stored infinite or NaN, where the format is kept as documented."""
    op = ops.get(name)
    with np.errstate(all="ignore"):
        zero_stays = bool(op.dense(np.zeros(1), scalar=scalar)[0] == 0)
    for form in ("csr", "csc", "coo", "row_sparse"):
        rule = op.choose([form], [(3, 4)], {"scalar": scalar})
        kept = rule.result == form
        if "stays zero" in op.doc:
            assert kept
        elif name in ("divide_into_scalar", "scalar_mod", "scalar_power"):
            assert not kept  # zero never stays, or only as 0 / 0 does not
        elif np.isnan(scalar):
            assert not kept or zero_stays
        else:
            assert kept == zero_stays, (name, scalar)
        assert rule.densifies == (not kept and name not in ("add_scalar", "subtract_scalar"))


def test_places_that_are_not_stored_stay_zero_as_documented():
    x = formats.to_format(np.float64([[0, 2], [0, 0]]), "csr")
    for came in (
        ops.multiply_scalar(x, scalar=np.inf),
        ops.divide_scalar(x, scalar=0.0),
        ops.divide(x, np.zeros(2)),
        ops.multiply(x, np.full((2, 2), np.inf)),
        ops.stored_divide(x, np.zeros((2, 2))),
    ):
        np.testing.assert_array_equal(came.toarray(), [[0, np.inf], [0, 0]])
    for name in ("multiply_scalar", "divide_scalar", "divide", "multiply", "stored_divide"):
        assert "stays zero" in ops.get(name).doc


def test_stored_divide_reads_the_other_in_any_format():
    y = np.float32([[1, 2, 0, 4], [5, 6, 7, 8], [0, 2, 3, 0]])
    for left in ("csr", "csc", "coo", "row_sparse"):
        x = formats.to_format(DENSE, left)
        where = op_arrays.stored_places(x)
        with np.errstate(all="ignore"):
            wanted = np.where(where, DENSE / y, 0)
        for right in formats.names():
            came = ops.stored_divide(x, formats.to_format(y, right))
            assert formats.format_of(came) == left
            np.testing.assert_array_equal(came.toarray(), wanted)


def test_many_are_added_in_the_format_that_all_have_or_onto_a_dense_one():
    sparse = {form: formats.to_format(DENSE, form) for form in ("csr", "csc", "coo", "row_sparse")}
    with ops.settings(strict=True):
        for form, x in sparse.items():
            came = ops.add_n(x, x, x)
            assert formats.format_of(came) == form
            np.testing.assert_array_equal(came.toarray(), 3 * DENSE)
            one = ops.add_n(x)
            assert formats.format_of(one) == form
            assert one is not x
        mixed = ops.add_n(*sparse.values(), DENSE)
        np.testing.assert_array_equal(mixed, 5 * DENSE)
    with pytest.warns(ops.DensifyWarning, match="add_n has no rule for csr, row_sparse"):
        ops.add_n(sparse["csr"], sparse["row_sparse"])
