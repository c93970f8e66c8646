"""cast, to_format, transpose, reshape, copy: NumPy's meaning, formats kept where they can be, memory of their own."""

import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse

from tests.support.operands import explicit_zeros, same, shares_memory, strict, usual
from workbench import formats, ops

FORMATS = ("dense", "csr", "csc", "coo", "row_sparse")
MATRICES = FORMATS[1:4]


@pytest.mark.parametrize("format", FORMATS)
def test_a_cast_keeps_format_and_pattern(format):
    dense = usual()
    same(strict(ops.cast, formats.to_format(dense, format), dtype="float64"), dense.astype(np.float64), format)
    assert ops.cast(explicit_zeros(), dtype=np.float64).nnz == 4
    like = np.zeros(1)
    same(ops.cast_like(formats.to_format(dense, format), like), dense.astype(np.float64), format)
    with pytest.raises(ops.OpError, match="dtype is 'wide'; it is a type of numbers"):
        ops.cast(dense, dtype="wide")


@pytest.mark.parametrize(("start", "end"), [*itertools.product(FORMATS, FORMATS)])
def test_to_format_converts_without_a_warning_into_memory_of_its_own(start, end):
    dense = usual()
    x = formats.to_format(dense, start)
    came = strict(ops.to_format, x, format=end)
    same(came, dense, end)
    assert start != end or not shares_memory(came, x)
    assert ops.to_format.choose([start], [x.shape], {"format": end}).result == end


def test_to_format_refuses_what_the_format_cannot_hold():
    with pytest.raises(ops.OpError, match="cannot be csr, which takes two dimensions"):
        ops.to_format(np.zeros(3, np.float32), format="csr")
    with pytest.raises(ValueError, match=r"Unknown format 'bsr'.*Expected one of: dense"):
        ops.to_format(np.zeros((2, 2)), format="bsr")
    with pytest.raises(ops.OpError, match="to_format needs the parameter format"):
        ops.to_format(np.zeros((2, 2)))


@pytest.mark.parametrize("format", [format for format in FORMATS if format != "row_sparse"])
def test_a_transpose_costs_no_conversion(format):
    dense = usual()
    x = formats.to_format(dense, format)
    result = {"csr": "csc", "csc": "csr"}.get(format, format)
    for axes in (None, (1, 0), (-1, 0)):
        came = strict(ops.transpose, x, axes=axes)
        same(came, dense.T, result)
        assert not shares_memory(came, x)
    same(strict(ops.transpose, x, axes=(0, 1)), dense, format)
    with pytest.raises(ops.OpError, match="takes an order of all its 2 axes"):
        ops.transpose(x, axes=(0, 0))


def test_a_transpose_of_rank_three():
    x = formats.RowSparse(np.arange(24, dtype=np.float32).reshape(2, 3, 4), [1, 3], (5, 3, 4))
    for axes in itertools.permutations(range(3)):
        with ops.recording() as densified, warnings.catch_warnings():
            warnings.simplefilter("ignore", ops.DensifyWarning)
            came = ops.transpose(x, axes=axes)
        same(came, np.transpose(x.toarray(), axes), "row_sparse" if axes[0] == 0 else "dense")
        assert [entry.bytes for entry in densified] == [240] * (axes[0] != 0)


def test_a_transpose_of_row_sparse_is_not_made_dense_in_silence():
    x = formats.RowSparse(np.float32([[1, 2]]), [1], (3, 2))
    with pytest.warns(ops.DensifyWarning, match=r"transpose has no rule for row_sparse. Making .* takes 24 b"):
        same(x.T, x.toarray().T, "dense")
    same(strict(ops.transpose, x, axes=(0, 1)), x.toarray(), "row_sparse")


@pytest.mark.filterwarnings("ignore::workbench.ops.DensifyWarning")
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("shape", [(5, 7), (35, 1), (-1, 5), (1, -1), (35,), (7, 5, 1), 35], ids=str)
def test_a_matrix_is_reshaped_as_a_matrix(format, shape):
    dense = usual()
    expected = dense.reshape(shape)
    keeps = expected.ndim == 2 if format in MATRICES else expected.shape[0] == 7
    x = formats.to_format(dense, format)
    with ops.recording() as densified:
        came = ops.reshape(x, shape=shape)
    assert bool(densified) == (format != "dense" and not keeps)
    same(came, expected, format if keeps else "dense")
    assert not shares_memory(came, x)


def test_a_shape_of_another_size_is_refused():
    for shape in ((2, 3), (-1, -1), (-1, 4), (-5, -7)):
        with pytest.raises(ops.OpError, match=r"has 35 elements; it cannot have the shape"):
            ops.reshape(usual(), shape=shape)


def test_a_reshaped_matrix_of_a_million_rows_and_columns_counts_in_64_bits():
    x = scipy.sparse.csr_array((np.ones(1), ([999_999], [999_998])), shape=(10**6, 10**6))
    came = ops.reshape(x, shape=(10**4, 10**8))
    assert came.tocoo().coords[0].tolist() == [9999]
    assert came.tocoo().coords[1].tolist() == [99_999_998]


@pytest.mark.parametrize("format", FORMATS)
def test_a_copy_has_its_own_memory(format):
    x = formats.to_format(usual(), format)
    came = strict(ops.copy, x)
    same(came, usual(), format)
    assert not shares_memory(came, x)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", ["reshape", "slice", "concat"])
def test_a_gradient_in_a_sparse_format_is_not_made_dense_in_silence(name, format):
    x = np.arange(6.0).reshape(3, 2)
    params = {"reshape": {"shape": (2, 3)}, "slice": {"begin": (0,), "end": (2,)}, "concat": {"axis": 0}}[name]
    op = ops.get(name)
    output = op(x, **params)
    dense = np.where(output % 2 == 0, output + 1, 0)
    with ops.recording() as densified, warnings.catch_warnings():
        warnings.simplefilter("ignore", ops.DensifyWarning)
        (came,) = op.gradient(formats.to_format(dense, format), output, (x,), op.resolve(params))
        (expected,) = op.gradient(dense, output, (x,), op.resolve(params))
    same(came, expected, "dense")
    assert [entry.bytes for entry in densified] == [dense.nbytes] * (format != "dense")
