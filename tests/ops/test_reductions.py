"""Reductions: every axis and format against NumPy, the zeros that are not stored counted, nothing made dense."""

import itertools

import numpy as np
import pytest
import scipy.sparse

from workbench import formats, ops

NAMES = ("sum", "mean", "norm", "max", "min", "prod", "square_sum")
MATRICES = ("csr", "csc", "coo")
AXES = (None, 0, 1, -1, (0, 1), (0,), [-1])


def numpy_of(name: str, x: np.ndarray, **where) -> np.ndarray:
    """The same by NumPy, in float64."""
    x = x.astype(np.float64)
    if name == "norm":
        return np.sqrt(np.sum(x * x, **where))
    if name == "square_sum":
        return np.sum(x * x, **where)
    return getattr(np, name)(x, **where)


def matrices() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    usual = np.where(rng.random((6, 5)) < 0.5, rng.standard_normal((6, 5)), 0)
    usual[2] = 0
    usual[:, 3] = 0
    negative = -np.ones((3, 4))
    special = usual.copy()
    special[0, 0], special[1, 1], special[4, 2] = np.nan, np.inf, -np.inf
    return {
        "usual": usual,
        "full and negative": negative,
        "all but one negative": np.where(np.arange(12).reshape(3, 4) == 5, 0, negative),
        "empty": np.zeros((3, 2)),
        "one": np.ones((1, 1)),
        "special": special,
    }


@pytest.mark.covering
@pytest.mark.parametrize("format", [*MATRICES, "row_sparse", "dense"])
@pytest.mark.parametrize("kind", matrices())
@pytest.mark.parametrize("name", NAMES)
def test_every_axis_is_that_of_numpy(name, kind, format):
    dense = matrices()[kind]
    for dtype, axis, keepdims in itertools.product((np.float32, np.float64), AXES, (False, True)):
        x = formats.to_format(dense.astype(dtype), format)
        where = {"axis": tuple(axis) if isinstance(axis, list) else axis, "keepdims": keepdims}
        with ops.settings(strict=True), np.errstate(all="ignore"):
            came, expected = getattr(ops, name)(x, axis=axis, keepdims=keepdims), numpy_of(name, dense, **where)
        assert came.shape == expected.shape
        assert came.dtype == dtype
        if isinstance(came, formats.RowSparse):
            assert (name, format, keepdims) == ("square_sum", "row_sparse", True)
            came = came.toarray()
        np.testing.assert_allclose(came, expected, rtol=1e-5 if dtype is np.float32 else 1e-12, atol=1e-6)


@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1, (0, 1), (1, 2), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("name", NAMES)
def test_row_sparse_of_rank_three(name, axis):
    rng = np.random.default_rng(1)
    x = formats.RowSparse(rng.standard_normal((2, 3, 4)), [1, 4], (6, 3, 4))
    for keepdims in (False, True):
        came = getattr(ops, name)(x, axis=axis, keepdims=keepdims)
        came = came.toarray() if isinstance(came, formats.RowSparse) else came
        np.testing.assert_allclose(came, numpy_of(name, x.toarray(), axis=axis, keepdims=keepdims), atol=1e-12)


def test_a_sum_of_squares_of_rows_that_keeps_its_dimensions_keeps_the_stored_rows():
    x = formats.RowSparse(np.float32([[1, 2], [0, 0]]), [1, 4], (6, 2))
    came = ops.square_sum(x, axis=1, keepdims=True)
    assert came == formats.RowSparse(np.float32([[5], [0]]), [1, 4], (6, 1))


def test_duplicates_are_summed_before_anything_that_is_not_linear():
    x = scipy.sparse.coo_array((np.float64([3, -5, 4, 4]), ([0, 0, 1, 1], [1, 1, 0, 0])), shape=(2, 2))
    for format in MATRICES:
        y = x if format == "coo" else formats.to_format(x, format)
        assert ops.max(y, axis=1).tolist() == [0, 8]
        assert ops.norm(y, axis=1, ord=1).tolist() == [2, 8]
        assert ops.norm(y, axis=1).tolist() == [2, 8]
        assert ops.prod(y, axis=0).tolist() == [0, 0]


def test_a_long_sum_of_a_sparse_matrix_is_added_up_in_float64():
    x = scipy.sparse.csr_array(np.full((1, 200_000), 0.1, np.float32))
    for axis in (None, 1):
        assert abs(ops.sum(x, axis=axis).ravel()[0] - 20_000) < 0.01


@pytest.mark.parametrize("format", MATRICES)
def test_whole_numbers_are_summed_exactly(format):
    dense = np.array([[2**53, 1], [0, -3]])
    x = formats.to_format(dense, format)
    assert ops.sum(x, axis=1).tolist() == [2**53 + 1, -3]
    assert ops.max(x, axis=0).tolist() == [2**53, 1]
    assert ops.sum(x).dtype == np.int64


@pytest.mark.parametrize("format", MATRICES)
def test_a_matrix_of_a_million_columns_is_reduced_by_what_it_stores(format):
    x = formats.to_format(scipy.sparse.csr_array((np.ones(2), ([0, 1], [3, 999_999])), shape=(10**6, 10**6)), format)
    assert ops.max(x, axis=0)[999_999] == 1
    assert ops.prod(x) == 0
    assert ops.mean(x) == 2e-12


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)], ids=str)
@pytest.mark.parametrize("format", [*MATRICES, "row_sparse", "dense"])
def test_reductions_of_nothing(shape, format):
    x = formats.zeros(shape, format, np.float32)
    for axis in (None, 0, 1):
        for name in ("sum", "prod", "norm"):
            np.testing.assert_array_equal(getattr(ops, name)(x, axis=axis), numpy_of(name, np.zeros(shape), axis=axis))
        length = np.prod(shape) if axis is None else shape[axis]
        if length:
            assert not ops.max(x, axis=axis).any()
            continue
        assert np.isnan(ops.mean(x, axis=axis)).all()
        with pytest.raises(ops.OpError, match="no largest or smallest element along axis"):
            ops.max(x, axis=axis)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: ops.sum(x, axis=2), "axis is 2; allowed are None, whole numbers from -2 to 1"),
        (lambda x: ops.sum(x, axis=(0, -2)), "names an axis twice"),
        (lambda x: ops.sum(x, axis=0.5), r"axis is 0\.5"),
        (lambda x: ops.norm(x, ord=3), "ord is 3; allowed are 1, .* and 2"),
        (lambda x: ops.sum(x, exclude=True), r"no parameter \['exclude'\]; its parameters are \['axis', 'keepdims'\]"),
    ],
)
def test_what_is_not_allowed_is_refused_in_words(call, message):
    for format in ("dense", "csr", "row_sparse"):
        with pytest.raises(ops.OpError, match=message):
            call(formats.zeros((2, 3), format, np.float32))


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 1)])
def test_counts_are_of_what_is_stored_zeros_included(axis):
    x = scipy.sparse.csr_array((np.float32([0, 1, 2]), np.int32([1, 2, 0]), np.int32([0, 2, 2, 3])), shape=(3, 4))
    stored = np.array([[0, 1, 1, 0], [0, 0, 0, 0], [1, 0, 0, 0]])
    for format, there in (("csr", stored), ("csc", stored), ("coo", stored), ("dense", np.ones_like(stored))):
        came = ops.count_stored(formats.to_format(x, format), axis=axis)
        assert came.dtype == np.int64
        np.testing.assert_array_equal(came, there.sum(axis))
    rows = formats.RowSparse(np.zeros((2, 4), np.float32), [0, 2], (3, 4))
    np.testing.assert_array_equal(ops.count_stored(rows, axis=axis), np.array([[1] * 4, [0] * 4, [1] * 4]).sum(axis))


def test_inputs_stay_as_they_were_and_may_be_read_only():
    x = formats.to_format(matrices()["usual"], "csr")
    x.data.flags.writeable = x.indices.flags.writeable = x.indptr.flags.writeable = False
    before = x.data.copy()
    for name in NAMES:
        getattr(ops, name)(x, axis=0)
    np.testing.assert_array_equal(x.data, before)


def test_the_gradient_of_a_norm_of_nothing_is_zero():
    x = formats.zeros((2, 3), "csr", np.float64)
    (gradient,) = ops.norm.gradient(np.float64(1), ops.norm(x), (x,), ops.norm.resolve({}))
    assert not np.asarray(gradient.toarray()).any()


def test_the_gradient_of_a_sum_of_squares_keeps_the_pattern():
    x = formats.RowSparse(np.float64([[1, 2]]), [1], (10**9, 2))
    params = ops.square_sum.resolve({"axis": 0})
    (gradient,) = ops.square_sum.gradient(np.ones(2), ops.square_sum(x, axis=0), (x,), params)
    assert gradient == formats.RowSparse(np.float64([[2, 4]]), [1], (10**9, 2))


@pytest.mark.parametrize(
    ("name", "axis", "chosen"), [("max", 1, [[0, 0.5, 0.5], [0, 0, 2]]), ("min", None, [[0.5, 0, 0], [0, 0.5, 0]])]
)
def test_equal_extremes_share_the_gradient(name, axis, chosen):
    x, op = np.array([[-1.0, 3, 3], [2, -1, 5]]), getattr(ops, name)
    head = np.array([1.0, 2]) if axis == 1 else np.float64(1)
    (gradient,) = op.gradient(head, op(x, axis=axis), (x,), op.resolve({"axis": axis}))
    assert gradient.tolist() == chosen


def test_the_gradient_of_a_product_is_right_beside_zeros():
    x = np.float64([[2, 0, 3], [0, 0, 1], [2, 3, 4]])
    (gradient,) = ops.prod.gradient(np.ones(3), ops.prod(x, axis=1), (x,), ops.prod.resolve({"axis": 1}))
    assert gradient.tolist() == [[0, 6, 0], [0, 0, 0], [12, 8, 6]]
