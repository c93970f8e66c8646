"""`sampled_dot`: a product of two matrices at the stored positions of a pattern only.

It is the gradient of `dot` with respect to a sparse operand: as large as that operand, and in its format.

>>> import numpy as np
>>> from workbench import formats, ops
>>> x = formats.to_format(np.float32([[0, 2, 0], [1, 0, 0]]), "csr")
>>> ops.sampled_dot(x, np.float32([[1], [2]]), np.float32([[3, 4, 5]])).toarray()
array([[0., 4., 0.],
       [6., 0., 0.]], dtype=float32)
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse

import kernels
from workbench import formats, ops
from workbench.formats import compressed
from workbench.ops import stored
from workbench.ops.contract import ANY, Op, OpError, Rule, Shape, register
from workbench.ops.like import check_countable
from workbench.ops.products.blocks import Block, as_csr, block_of, common, places
from workbench.ops.products.methods import METHODS, SPARSE, as_matrix, default_result
from workbench.ops.products.product import dot, factors, float_dtype


def _at_csr(indptr, indices, shape, a, b, transpose_a, transpose_b) -> np.ndarray:
    """Return the values of op(a) @ op(b) at the entries of a CSR pattern."""
    sparse = [formats.format_of(operand) in SPARSE for operand in (a, b)]
    if all(sparse):
        product = dot(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
        return _look_up(indptr, indices, product)
    if sparse[0] and isinstance(b, np.ndarray):
        return _at_csr_of_csr(indptr, indices, as_csr(a, transpose_a), np.ascontiguousarray(b if transpose_b else b.T))
    left = _rows_of(a, transpose_a) if sparse[0] else block_of(a, transpose_a)
    right = _rows_of(b, not transpose_b) if sparse[1] else block_of(b, not transpose_b)
    ours, theirs = common(left.columns, right.columns)
    left_values = np.ascontiguousarray(left.values[:, ours])
    right_values = np.ascontiguousarray(right.values[:, theirs])
    if left.rows is None and right.rows is None:
        out = np.empty(indices.size, left_values.dtype)
        kernels.get("sddmm").trusted(indptr, indices, left_values, right_values, out)
        return out
    return _at_blocks(indptr, indices, left._replace(values=left_values), right._replace(values=right_values))


def _at_csr_of_csr(indptr, indices, a: Any, b: np.ndarray) -> np.ndarray:
    """Return the values of a @ b.T at the entries of a CSR pattern, a in csr."""
    if a.indptr.dtype != indptr.dtype:
        indptr, indices = indptr.astype(np.int64), indices.astype(np.int64)
        a = compressed.assemble("csr", a.indptr.astype(np.int64), a.indices.astype(np.int64), a.data, a.shape)
    out = np.empty(indices.size, b.dtype)
    kernels.get("sampled_csr").trusted(indptr, indices, a.indptr, a.indices, a.data, b, out)
    return out


def _rows_of(x: Any, transposed: bool) -> Block:
    """Return the nonempty rows of a sparse matrix, or of its transpose, as a dense Block."""
    return block_of(formats.to_format(as_csr(x, transposed), "row_sparse"), False)


def _at_blocks(indptr, indices, left: Block, right: Block) -> np.ndarray:
    """Compute the sampled product of two blocks; rows that either lacks give zeros."""
    row = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    everything = np.ones(indices.size, bool)
    row, in_left = (row, everything) if left.rows is None else places(row, left.rows)
    col, in_right = (indices, everything) if right.rows is None else places(indices, right.rows)
    kept = np.flatnonzero(in_left & in_right)
    starts = np.searchsorted(row[kept], np.arange(left.values.shape[0] + 1))
    values = np.empty(kept.size, left.values.dtype)
    kernels.get("sddmm").trusted(starts, col[kept].astype(np.int64), left.values, right.values, values)
    out = np.zeros(indices.size, values.dtype)
    out[kept] = values
    return out


def _look_up(indptr, indices, product: Any) -> np.ndarray:
    """Return the values of a sorted csr matrix at the entries of a pattern."""
    check_countable(product.shape)
    width = product.shape[1]
    keys = np.repeat(np.arange(indptr.size - 1), np.diff(indptr)) * width + indices
    stored = np.repeat(np.arange(indptr.size - 1), np.diff(product.indptr)) * width + product.indices
    place, hits = places(keys, stored)
    out = np.zeros(indices.size, product.dtype)
    out[hits] = product.data[place[hits]]
    return out


def _with_matrices(call):
    """Wrap a call so that vectors a and b become columns."""

    def wrapped(pattern, a, b, *, out=None, transpose_a=False, transpose_b=False):
        return call(pattern, as_matrix(a), as_matrix(b), bool(transpose_a), bool(transpose_b))

    return wrapped


def _csr(pattern, a, b, transpose_a, transpose_b):
    """Compute the sampled product at a csr pattern."""
    pattern = stored.canonical(pattern)
    indptr, indices = pattern.indptr, pattern.indices
    data = _at_csr(indptr, indices, pattern.shape, a, b, transpose_a, transpose_b)
    return compressed.assemble("csr", indptr.copy(), indices.copy(), data, pattern.shape)


def _csc(pattern, a, b, transpose_a, transpose_b):
    """Compute it at a csc pattern, as the CSR form of the transpose."""
    pattern = stored.canonical(pattern)
    indptr, indices = pattern.indptr, pattern.indices
    data = _at_csr(indptr, indices, pattern.shape[::-1], b, a, not transpose_b, not transpose_a)
    return compressed.assemble("csc", indptr.copy(), indices.copy(), data, pattern.shape)


def _coo(pattern, a, b, transpose_a, transpose_b):
    """Compute it at a coo pattern."""
    pattern = stored.canonical(pattern)
    row, col = pattern.coords
    indptr = np.searchsorted(row, np.arange(pattern.shape[0] + 1)).astype(col.dtype)
    data = _at_csr(indptr, col, pattern.shape, a, b, transpose_a, transpose_b)
    return scipy.sparse.coo_array((data, (row.copy(), col.copy())), shape=pattern.shape)


OURS = {"engine": "ours"}


def _whole(method):
    """Return the rule of `dot` for a dense pattern, at which the product is computed everywhere."""

    def call(pattern, a, b, *, out=None, plan=None, transpose_a=False, transpose_b=False):
        whole = {"transpose_a": transpose_a, "transpose_b": transpose_b, "out": out}
        return method(as_matrix(a), as_matrix(b), **whole)

    def result_of(transpose_b):
        usual = default_result(method.x, method.y, method.transpose_a, transpose_b)
        return "row_sparse" if usual == "row_sparse" else "dense"

    def when(shapes, params):
        return method.fits(shapes[1:], {**params, "result": result_of(params["transpose_b"]), **OURS})

    if method.result not in map(result_of, (False, True)):
        return []
    return [
        Rule((form, method.x, method.y), method.result, call, method.kernel, when) for form in ("dense", "row_sparse")
    ]


def _shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the result shape of sampled_dot, that of the pattern; OpError if a and b do not fit it."""
    pattern, a, b = shapes
    if (len(a) == 1 or len(b) == 1) and (params["transpose_a"], params["transpose_b"]) != (False, True):
        raise OpError("Vectors a and b are columns: their outer product is had with transpose_b alone.")
    a, b = (shape if len(shape) == 2 else (*shape, 1) for shape in (a, b))
    left, right = a[::-1] if params["transpose_a"] else a, b[::-1] if params["transpose_b"] else b
    if len(left) != 2 or len(right) != 2 or left[1] != right[0] or tuple(pattern) != (left[0], right[1]):
        raise OpError(
            f"sampled_dot cannot take {tuple(left)} by {tuple(right)} at the places of {tuple(pattern)}; "
            "a [R, N] by b [N, D] goes with a pattern [R, D]."
        )
    return tuple(pattern)


def _gradient(head, output, inputs, params):
    """Return the gradients of both factors."""
    pattern, a, b = inputs
    of_a, of_b = factors(
        ops.at_places_of(head, pattern), a, b, bool(params["transpose_a"]), bool(params["transpose_b"])
    )
    return None, *(dot(x, y, transpose_a=ta, transpose_b=tb) for x, y, ta, tb in (of_a, of_b))


def _dense(pattern, a, b, out=None, transpose_a=False, transpose_b=False):
    """Compute the product of NumPy arrays."""
    a, b = as_matrix(a), as_matrix(b)
    return np.matmul(a.T if transpose_a else a, b.T if transpose_b else b, out=out)


sampled_dot = register(
    Op(
        name="sampled_dot",
        inputs=("pattern", "a", "b"),
        params={"transpose_a": False, "transpose_b": False},
        dense=_dense,
        shape=_shape,
        dtype=float_dtype,
        rules=(
            Rule(("csr", ANY, ANY), "csr", _with_matrices(_csr), "sddmm"),
            Rule(("csc", ANY, ANY), "csc", _with_matrices(_csc), "sddmm"),
            Rule(("coo", ANY, ANY), "coo", _with_matrices(_coo), "sddmm"),
            *(rule for method in METHODS for rule in _whole(method) if "ours" in method.engines),
        ),
        gradient=_gradient,
        unread=(0, 1),
        family="products",
        doc="The product of a [R, N] and b [N, D], either transposed where its parameter says so, at the entries of "
        "`pattern` [R, D], whose values play no part; in its format, each place once. A dense or row_sparse "
        "pattern has no places of its own, and gives the whole product, row_sparse where `dot` gives that, else dense.",
    )
)
