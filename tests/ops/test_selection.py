"""Selection and layout operators: NumPy's meaning, in every format that can keep it, with memory of their own."""

import numpy as np
import pytest
import scipy.sparse

from tests.support.operands import explicit_zeros, same, shares_memory, strict, usual
from workbench import formats, ops

FORMATS = ("dense", "csr", "csc", "coo", "row_sparse")
MATRICES = FORMATS[1:4]


SLICES = [
    {"begin": [1], "end": [4]},
    {"begin": [None, 1], "end": [None, 3]},
    {"begin": [-3], "end": [70]},
    {"begin": [0], "end": [7], "step": [2]},
    {"begin": [None, None], "end": [None, None], "step": [-1, -2]},
    {"begin": [5, 3], "end": [1, 0], "step": [-2, -1]},
    {"begin": [0], "end": [0]},
    {"begin": [4], "end": [2]},
    {"begin": [], "end": []},
    {"begin": [6, 0], "end": [None, None], "step": [3, 4]},
]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("params", SLICES, ids=str)
def test_a_slice_keeps_the_format(params, format):
    dense = usual()
    begin, end, step = (list(params.get(name, [])) + [None] * 2 for name in ("begin", "end", "step"))
    expected = dense[slice(begin[0], end[0], step[0]), slice(begin[1], end[1], step[1])]
    x = formats.to_format(dense, format)
    came = strict(ops.slice, x, **params)
    same(came, expected, format)
    assert not shares_memory(came, x)


def test_a_slice_of_rank_three_and_of_a_vector():
    x = formats.RowSparse(np.arange(24, dtype=np.float32).reshape(2, 3, 4), [1, 3], (5, 3, 4))
    came = ops.slice(x, begin=[1, 0, 1], end=[4, 2, None], step=[2, 1, 1])
    same(came, x.toarray()[1:4:2, 0:2, 1:], "row_sparse")
    vector = formats.RowSparse(np.float32([1, 2]), [1, 3], (5,))
    same(ops.slice(vector, begin=[None], end=[None], step=[-1]), vector.toarray()[::-1], "row_sparse")


def test_a_slice_keeps_stored_zeros():
    assert ops.slice(explicit_zeros(), begin=[0, 0], end=[None, 2]).nnz == 2


@pytest.mark.parametrize("format", FORMATS)
def test_rows_are_taken_in_any_order_more_than_once(format):
    dense, rows = usual(), np.array([6, 0, 0, 1, 6])
    x = formats.to_format(dense, format)
    result = {"dense": "dense", "row_sparse": "row_sparse"}.get(format, "csr")
    same(strict(ops.take, x, rows), dense[rows], result)
    same(strict(ops.take, x, rows.astype(np.float32)), dense[rows], result)
    same(strict(ops.take, x, rows[:0]), dense[rows[:0]], result)
    far = np.array([-1, 7, 100, 3])
    same(strict(ops.take, x, far, mode="clip"), dense[far.clip(0, 6)], result)
    same(strict(ops.take, x, far, mode="wrap"), dense[far % 7], result)


def test_taking_other_axes_and_shapes_of_numbers():
    dense, numbers = usual(), np.array([[0, 3], [3, 1]])
    same(ops.take(dense, numbers), dense[numbers], "dense")
    same(ops.take(dense, numbers, axis=-1), dense[:, numbers], "dense")
    with pytest.warns(ops.DensifyWarning, match="take has no rule for csr, dense"):  # the only call on this line
        same(ops.take(formats.to_format(dense, "csr"), numbers), dense[numbers], "dense")


@pytest.mark.parametrize("wrong", [-1, 7, 2**40])
@pytest.mark.parametrize("format", FORMATS)
def test_rows_out_of_range_are_refused(format, wrong):
    x = formats.to_format(usual(), format)
    with pytest.raises(ops.OpError, match=f"Row number 1 of those asked for is {wrong}; allowed are 0 to 6"):
        ops.take(x, np.array([2, wrong]))


def test_other_wrong_row_numbers_are_refused():
    x = usual()
    with pytest.raises(ops.OpError, match="a fraction or NaN came"):
        ops.take(x, np.array([0.5]))
    with pytest.raises(ops.OpError, match="There are no rows to take; 1 row numbers came"):
        ops.take(x[:0], np.array([0]), mode="clip")
    with pytest.raises(ops.OpError, match="mode is 'round'; allowed are raise, clip, wrap"):
        ops.take(x, np.array([0]), mode="round")


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_arrays_of_one_format_are_put_together_in_it(format, axis):
    parts = [usual(3, 4, 1), usual(3, 4, 2), np.zeros((3, 4), np.float32), usual(3, 4, 3)]
    held = [formats.to_format(part, format) for part in parts]
    if format in ("csr", "csc"):
        held[0].indices, held[0].indptr = held[0].indices.astype(np.int64), held[0].indptr.astype(np.int64)
    came = strict(ops.concat, *held, axis=axis)
    same(came, np.concatenate(parts, axis=axis), format)
    assert not any(shares_memory(came, part) for part in held)
    same(ops.concat(held[0], axis=axis), parts[0], format)


def test_stacked_matrices_keep_stored_zeros_and_lengths_may_differ():
    x = explicit_zeros()
    assert ops.concat(x, x).nnz == 8
    rows = formats.RowSparse(np.ones((1, 4)), [2], (3, 4)), formats.RowSparse(np.ones((1, 4)), [0], (1, 4))
    assert ops.concat(*rows).indices.tolist() == [2, 3]
    wide = formats.RowSparse(np.ones((1, 2)), [0], (3, 2))
    assert ops.concat(rows[0], wide, axis=1).indices.tolist() == [0, 2]
    with pytest.raises(ops.OpError, match="cannot be put together along axis 0"):
        ops.concat(rows[0], wide)
    with pytest.raises(ops.OpError, match="axis is 2; an array of shape"):
        ops.concat(*rows, axis=2)


@pytest.mark.parametrize("format", FORMATS)
def test_where_reads_a_condition_in_any_format(format):
    condition, x, y = usual(), np.full((7, 5), np.inf, np.float32), np.full((7, 5), np.nan, np.float32)
    condition[0, 0] = np.nan  # which is not zero
    same(strict(ops.where, formats.to_format(condition, format), x, y), np.where(condition != 0, x, y), "dense")


def test_where_takes_stored_zeros_for_zeros_and_duplicates_for_their_sum():
    x, y = np.ones((3, 4), np.float32), np.zeros((3, 4), np.float32)
    assert ops.where(explicit_zeros(), x, y).sum() == 2
    twice = scipy.sparse.coo_array((np.float32([1, -1, 5]), ([0, 0, 1], [1, 1, 2])), shape=(3, 4))
    assert ops.where(twice, x, y).tolist() == [[0] * 4, [0, 0, 1, 0], [0] * 4]


def test_where_broadcasts():
    condition, x, y = np.array([[1.0], [0.0]]), np.ones(3), np.zeros((2, 1))
    assert ops.where(condition, x, y).tolist() == [[1, 1, 1], [0, 0, 0]]


@pytest.mark.parametrize("format", FORMATS)
def test_clip_keeps_the_format_where_zero_stays_zero(format):
    dense = usual()
    dense[0, 0] = np.nan
    x = formats.to_format(dense, format)
    same(strict(ops.clip, x, low=-0.5, high=0.25), np.clip(dense, -0.5, 0.25), format)
    assert ops.clip(explicit_zeros(), low=0, high=1).nnz == 4
    within = strict(ops.is_within, x, low=-0.5, high=0.25)
    same(within, ((dense >= -0.5) & (dense <= 0.25)).astype(np.float32), "dense")


def test_clip_refuses_to_fill_a_sparse_array():
    for format in FORMATS[1:]:
        with pytest.raises(ops.OpError, match="zero is outside of low to high, so every element would be stored"):
            ops.clip(formats.to_format(usual(), format), low=1, high=2)
    assert ops.clip(np.float32([0, 3]), low=1, high=2).tolist() == [1, 2]
    with pytest.raises(ops.OpError, match="low is 2 and high 1; low must not be above high"):
        ops.clip(usual(), low=2, high=1)


def test_retain_has_exactly_the_rows_asked_for():
    x = formats.RowSparse(np.float32([[1], [2], [3]]), [0, 2, 3], (5, 1))
    came = ops.retain(x, np.array([3, 1, 3, 0]))
    assert came == formats.RowSparse(np.float32([[1], [0], [3]]), [0, 1, 3], (5, 1))
    with pytest.raises(ValueError, match="5"):
        ops.retain(x, np.array([5]))
    with pytest.raises(ops.OpError, match=r"retain\(csr, dense\): retain takes a row_sparse x"):
        ops.retain(formats.to_format(x, "csr"), np.array([0]))
    (gradient, none) = ops.retain.gradient(np.ones((5, 1), np.float32), came, (x, np.array([3, 1])), {})
    assert none is None
    assert gradient.indices.tolist() == [1, 3]


def gradient(op, x, head, *others, **params):
    params = op.resolve(params)
    inputs = (x, *others)
    with ops.settings(strict=True):
        return op.gradient(head, op.compute(inputs, params), inputs, params)


def test_the_gradient_of_taken_rows_is_row_sparse():
    head = np.ones((3, 5), np.float32)
    for format in FORMATS:
        x = formats.to_format(usual(), format)
        came, none = gradient(ops.take, x, head, np.array([4, 1, 4]))
        assert none is None
        assert came == formats.RowSparse(np.float32([[1] * 5, [2] * 5]), [1, 4], (7, 5))
    rows = formats.RowSparse(np.ones((1, 5), np.float32), [2], (3, 5))
    assert gradient(ops.take, usual(), rows, np.array([4, 1, 4]))[0].indices.tolist() == [4]


def test_the_gradient_of_clip_is_dense_and_zero_outside():
    x = formats.to_format(np.float32([[0, 2], [-1, 1]]), "csr")
    (came,) = gradient(ops.clip, x, formats.to_format(np.full((2, 2), 3, np.float32), "csr"), low=-0.5, high=1)
    assert came.tolist() == [[3, 0], [0, 3]]


def test_gradients_of_parts():
    head = np.ones((2, 5), np.float32)
    (came,) = gradient(ops.slice, formats.to_format(usual(), "csr"), head, begin=[5], end=[1], step=[-2])
    assert came.sum(axis=1).tolist() == [0, 0, 0, 5, 0, 5, 0]
    x, y = (formats.to_format(usual(3, 4), "csr") for _ in "xy")
    came = gradient(ops.concat, x, np.arange(24, dtype=np.float32).reshape(6, 4), y)
    assert [part[0, 0] for part in came] == [0, 12]
