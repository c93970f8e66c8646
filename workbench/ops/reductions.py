"""Sums, means, norms, extremes, products and counts along axes, in every format.

`axis` is None for all axes, an integer, negative from the end, or a tuple; with `keepdims` reduced axes stay with
length one. Sparse formats are reduced over stored entries; zeros that are not stored are counted, not created. Sums of
csr, csc and coo are accumulated in float64. The result is dense.

>>> import numpy as np
>>> from workbench import ops
>>> x = ops.to_format(np.float32([[0, -1, 0], [2, 3, 4]]), format="csr")
>>> ops.sum(x, axis=1), ops.max(x, axis=1), ops.norm(x)
(array([-1.,  9.], dtype=float32), array([0., 4.], dtype=float32), array(5.477226, dtype=float32))
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench import formats, ops
from workbench.formats import RowSparse
from workbench.ops import stored
from workbench.ops.contract import OpError, Rule, Shape, one_type, operator, real, same_shape
from workbench.ops.like import as_dense, axes_of, keep_axes, put, shape_of_last, type_of_first, with_ones
from workbench.ops.spreading import narrow, spread


def _kept(head: np.ndarray, x: np.ndarray, axis: Any) -> np.ndarray:
    """Return the dense `head` reshaped to the shape of x with length 1 along the reduced axes (`axis` None: all)."""
    return head.reshape(with_ones(x.shape, axes_of(axis, x.ndim)))


def _slope(head, x, out=None, axis=None, keepdims=False):
    """Return 2 * head * x, the gradient of `square_sum` for dense x, in `out` if that is given.

    `head` has the shape of the reduced result. `keepdims` is unused.
    """
    return put(out, 2 * x * _kept(head, x, axis))


def _of_rows(head, x, out=None, axis=None, keepdims=True):
    """Return 2 * head * x at the rows that a row_sparse head stores, as row_sparse; x is row_sparse or dense.

    `out`, `axis` and `keepdims` are unused.
    """
    if isinstance(x, RowSparse):
        places = np.searchsorted(x.indices, head.indices)
        hits = np.flatnonzero(np.append(x.indices, -1)[places] == head.indices)
        rows = np.zeros((len(head.indices), *x.shape[1:]), x.dtype)
        rows[hits] = x.values[places[hits]]
    else:
        rows = x[head.indices]
    return RowSparse.assemble(2 * rows * head.values, head.indices.copy(), x.shape)


def _of_stored(head, x, out=None, axis=None, keepdims=True):
    """Return 2 * head * x at the rows that a row_sparse x stores, as row_sparse; head is dense.

    `out` and `keepdims` are unused.
    """
    kept = _kept(head, x, axis)
    values = 2 * x.values * (kept if len(kept) == 1 else kept[x.indices])
    return RowSparse.assemble(values, x.indices.copy(), x.shape)


def _of_entries(head, x, out=None, axis=None, keepdims=True):
    """Return 2 * head * x at the entries of a csr, csc or coo x, in its format; head is dense.

    `out` and `keepdims` are unused.
    """
    return ops.multiply(ops.multiply_scalar(x, scalar=2.0), _kept(head, x, axis))


def _square_rows_stay(shapes: Sequence[Shape], params: Mapping[str, Any]) -> bool:
    """Return whether rows of (head, x) correspond: keepdims is set and axis 0 is not reduced."""
    return params["keepdims"] and 0 not in axes_of(params["axis"], len(shapes[1]))


def _gradient(head, output, inputs, params):
    """Return the gradients of the `inputs` (head, x) of `slope_of_square_sum` for the gradient `head` of `output`.

    `params` are axis and keepdims.
    """
    slope, x = inputs
    double = ops.multiply_scalar(head, scalar=2.0)
    back = ops.sum(ops.multiply(double, x), **params)
    return back, ops.multiply(double, ops.keep_axes(slope, x, **params))


ON_STORED_ROWS = "numpy on the stored rows"
WHEN = "keepdims, axis 0 not among the axes"
slope_of_square_sum = operator(
    "slope_of_square_sum",
    _slope,
    shape_of_last,
    "The gradient of `square_sum`, 2 head x, where the head or x stores something: in the rows of a row_sparse "
    "head, else in what x stores.",
    rules=(
        *(
            Rule(("row_sparse", x), "row_sparse", _of_rows, ON_STORED_ROWS, _square_rows_stay, WHEN)
            for x in ("row_sparse", "dense")
        ),
        Rule(("dense", "row_sparse"), "row_sparse", _of_stored, ON_STORED_ROWS),
        *(Rule(("dense", x), x, _of_entries, "as multiply") for x in ("csr", "csc", "coo")),
    ),
    dtype=type_of_first,
    gradient=_gradient,
    family="reductions",
)


MATRICES = ("csr", "csc", "coo")
KERNEL = "numpy on the stored values"


def shape_of(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the shape of a reduction of shapes[0] by the parameters axis and keepdims.

    Raises OpError for an invalid axis.
    """
    shape = tuple(shapes[0])
    axes = axes_of(params["axis"], len(shape))
    if params["keepdims"]:
        return with_ones(shape, axes)
    return tuple(length for place, length in enumerate(shape) if place not in axes)


@dataclass(frozen=True)
class Reduction:
    """`ufunc` over `each(x)`, then `after(total, count)`, where `count` elements were reduced to each result."""

    ufunc: np.ufunc
    each: Callable[[np.ndarray], np.ndarray] = np.asarray
    after: Callable[[np.ndarray, int], np.ndarray] = lambda total, count: total

    def dtype_of(self, dtype: np.dtype) -> np.dtype:
        """Return the dtype of a reduction of `dtype`: int64 for sums and products of integers, else `dtype`."""
        return np.dtype(np.int64) if self.ufunc in (np.add, np.multiply) and dtype.kind != "f" else dtype

    def before(self, values: np.ndarray) -> np.ndarray:
        """Return `each(values)`, elementwise, in the dtype of the reduction."""
        return self.each(values.astype(self.dtype_of(values.dtype), copy=False))

    def dense(self, x: np.ndarray, axis: Any, keepdims: bool) -> np.ndarray:
        """Return the reduction of a dense x along `axis` (None: all) as a dense array."""
        axes = axes_of(axis, x.ndim)
        total = self.ufunc.reduce(self.before(x), axis=axes, keepdims=keepdims)
        return self.finish(total, x, axes, x.dtype)

    def finish(self, total: Any, x: Any, axes: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Return `after(total, count)` as an array of the result's dtype for input `dtype`.

        `count` is the number of elements of x reduced to each result along `axes`; NumPy warnings are off.
        """
        with np.errstate(all="ignore"):
            count = math.prod(x.shape[axis] for axis in axes)
            return np.asarray(self.after(np.asarray(total), count)).astype(self.dtype_of(dtype), copy=False)

    def with_zeros(self, total: np.ndarray) -> np.ndarray:
        """Return `ufunc(total, 0)`, elementwise: the reduction including a zero that is not stored.

        A new array, or `total` itself for sums.
        """
        with np.errstate(all="ignore"):
            return total if self.ufunc is np.add else self.ufunc(total, np.zeros_like(total))

    def matrix(self, x: Any, axis: Any, keepdims: bool) -> np.ndarray:
        """Return the reduction of a csr, csc or coo matrix along `axis` (None: both) as a dense array.

        Duplicates are summed first; zeros that are not stored count.
        """
        axes = axes_of(axis, 2)
        shape = shape_of([x.shape], {"axis": axis, "keepdims": keepdims})
        x = stored.canonical(x)
        data = self.before(x.data)
        if len(axes) != 1:
            total = self._reduce_all(data, x.shape) if axes else self.before(as_dense(x))
        else:
            total = self._reduce_groups(stored.places(x)[1 - axes[0]], data, x.shape[1 - axes[0]], x.shape[axes[0]])
        return self.finish(total, x, axes, x.dtype).reshape(shape)

    def _reduce_all(self, data: np.ndarray, shape: Shape) -> np.ndarray:
        """Return the reduction, 0-d, of the entries `data` of a matrix of this shape and of its other zeros."""
        size = math.prod(shape)
        if not data.size and size and self.ufunc.identity is None:
            return np.zeros((), data.dtype)
        exact = np.float64 if self.ufunc is np.add and data.dtype.kind == "f" else None
        total = np.asarray(self.ufunc.reduce(data, dtype=exact))
        return total if data.size == size else self.with_zeros(total)

    def _reduce_groups(self, group: np.ndarray, data: np.ndarray, groups: int, length: int) -> np.ndarray:
        """Return the reduction [groups] of `data` by `group` (0 to groups - 1).

        Groups of fewer than `length` include a zero.
        """
        if self.ufunc is np.add and data.dtype.kind == "f":
            return np.bincount(group, data, groups)
        full = np.bincount(group, minlength=groups) == length
        total = np.full(groups, self.ufunc.identity or 0, data.dtype)
        if self.ufunc.identity is None:
            total[group] = data
        self.ufunc.at(total, group, data)
        return np.where(full, total, self.with_zeros(total))

    def rows(self, x: formats.RowSparse, axis: Any, keepdims: bool) -> np.ndarray:
        """Return the reduction of a row_sparse array of any rank along `axis` (None: all) as a dense array.

        Rows that are not stored count as zeros.
        """
        axes = axes_of(axis, x.ndim)
        missing = x.shape[0] - len(x.indices)
        values = self.before(x.values)
        if 0 not in axes:
            part = self.ufunc.reduce(values, axis=axes, keepdims=keepdims)
            zeros = np.zeros((1, *x.shape[1:]), values.dtype)
            total = np.empty((x.shape[0], *part.shape[1:]), part.dtype)
            total[...] = self.ufunc.reduce(zeros, axis=axes, keepdims=keepdims) if missing else 0
            total[x.indices] = part
        elif not len(x.indices) and missing:
            total = self.ufunc.reduce(np.zeros((1, *x.shape[1:]), values.dtype), axis=axes, keepdims=keepdims)
        else:
            total = self.ufunc.reduce(values, axis=axes, keepdims=keepdims)
            lacks = missing and all(x.shape[axis] for axis in axes)  # rows without elements are no zeros
            total = self.with_zeros(np.asarray(total)) if lacks else total
        return self.finish(total, x, axes, x.dtype)


def _root(total: np.ndarray, count: int) -> np.ndarray:
    """Return the elementwise square root of `total`; `count` is unused."""
    return np.sqrt(total)


SUM = Reduction(np.add)
MEAN = Reduction(np.add, after=lambda total, count: np.divide(total, np.float64(count)))
SQUARES = Reduction(np.add, np.square)
NORMS = {1: Reduction(np.add, np.abs), 2: Reduction(np.add, np.square, _root)}
MAX, MIN, PROD = Reduction(np.maximum), Reduction(np.minimum), Reduction(np.multiply)


def _calls(chosen: Callable[[Mapping[str, Any]], Reduction]) -> dict[str, Callable]:
    """Return {"dense", "matrix", "rows": function(x, out, axis, keepdims, **params)}, by representation of x.

    For dense, csr/csc/coo and row_sparse x; `chosen(params)` selects the `Reduction`.
    """

    def call(way: str) -> Callable:
        """Return the function for the representation `way`: "dense", "matrix" or "rows", a method of `Reduction`."""

        def run(x, out=None, axis=None, keepdims=False, **more):
            """Return x reduced over `axis` (None: all), dense, in `out` if given.

            `more` are the operator's own parameters.
            """
            return put(out, getattr(chosen(more), way)(x, axis, keepdims))

        return run

    return {way: call(way) for way in ("dense", "matrix", "rows")}


def _register(
    name: str,
    chosen: Callable[[Mapping[str, Any]], Reduction],
    gradient: Callable,
    doc: str,
    *,
    shape: Callable = shape_of,
    dtype: Callable = one_type,
    rules: tuple[Rule, ...] = (),
    **params: Any,
) -> None:
    """Register the reduction operator `name` for all formats; `doc` describes it.

    `chosen(params)` selects the `Reduction`, `gradient(head, output, x, params)` returns the gradient of x; shape,
    dtype and additional rules are as of `Op`; `params` are {name: default} besides axis and keepdims.
    """
    calls = _calls(chosen)
    matrices = (Rule((form,), "dense", calls["matrix"], KERNEL) for form in MATRICES)
    operator(
        name,
        calls["dense"],
        shape,
        doc,
        inputs=("x",),
        params={"axis": None, "keepdims": False, **params},
        rules=(*rules, *matrices, Rule(("row_sparse",), "dense", calls["rows"], KERNEL)),
        dtype=dtype,
        gradient=lambda head, output, inputs, params: (gradient(head, output, inputs[0], params),),
        family="reductions",
    )


def _along(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return {"axis": ..., "keepdims": ...} of `params`, those of a reduction, to pass on to another operator."""
    return {"axis": params["axis"], "keepdims": params["keepdims"]}


def _sum_gradient(head, output, x, params):
    """Return the gradient of x for a sum: the gradient `head` of the result broadcast over the reduced axes.

    `output` is unused.
    """
    return spread(head, x, **_along(params))


def _mean_gradient(head, output, x, params):
    """Return the gradient of x for a mean: `head`, of the result, / count, broadcast over the reduced axes.

    `output` is unused.
    """
    return spread(head, x, mean=True, **_along(params))


def _squares_gradient(head, output, x, params):
    """Return the gradient of x for a sum of squares, 2 * head * x; `head` is the gradient of the result.

    `output` is unused.
    """
    if params["keepdims"] and (kept := narrow(head)) is not head:
        return ops.multiply(kept, ops.multiply_scalar(x, scalar=2.0))
    return slope_of_square_sum(head, x, **_along(params))


def _norm_gradient(head, output, x, params):
    """Return the gradient of x for a norm: head * x / norm (ord 2, 0 for norm 0) or head * sign(x) (ord 1).

    `head` is the gradient of `output`, the norm.
    """
    if params["ord"] == 1:
        return ops.multiply(ops.sign(x), keep_axes(head, x, **_along(params)))
    above = ops.add(output, ops.equal_scalar(output, scalar=0.0))
    return ops.multiply(x, keep_axes(ops.divide(head, above), x, **_along(params)))


def _extreme_gradient(head, output, x, params):
    """Return the gradient of x for max or min: `head` divided equally among the elements equal to `output`."""
    chosen = ops.equal(x, keep_axes(output, x, **_along(params)))
    share = ops.divide(head, ops.sum(chosen, **_along(params)))
    return ops.multiply(chosen, keep_axes(share, x, **_along(params)))


def _prod_gradient(head, output, x, params):
    """Return the gradient of x for a product: `head`, of the result, times the product of the other elements.

    `output` is unused.
    """
    return ops.multiply(ops.product_of_others(x, axis=params["axis"]), keep_axes(head, x, **_along(params)))


def _extreme_shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the result shape of max or min; OpError for an invalid axis or one without elements."""
    shape = shapes[0]
    if not all(shape[axis] for axis in axes_of(params["axis"], len(shape))):
        raise OpError(
            f"An array of shape {tuple(shape)} has no largest or smallest element along axis {params['axis']}."
        )
    return shape_of(shapes, params)


def _norm_shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the result shape of norm; OpError unless ord is 1 or 2 and the axis is valid."""
    if params["ord"] not in NORMS:
        raise OpError(
            f"ord is {params['ord']!r}; allowed are 1, the sum of absolute values, and 2, the root of squares."
        )
    return shape_of(shapes, params)


def _rows_stay(shapes: Sequence[Shape], params: Mapping[str, Any]) -> bool:
    """Return whether rows of the result are those of x: keepdims is set and axis 0 is not reduced."""
    return params["keepdims"] and 0 not in axes_of(params["axis"], len(shapes[0]))


def _squares_of_rows(x, out=None, axis=None, keepdims=True):
    """Return the sums of squares of row_sparse x over `axis`, without 0, as row_sparse with axes of length 1.

    `out` and `keepdims` are unused.
    """
    values = np.add.reduce(SQUARES.before(x.values), axis=axes_of(axis, x.ndim), keepdims=True)
    shape = with_ones(x.shape, axes_of(axis, x.ndim))
    return formats.RowSparse.assemble(values, x.indices.copy(), shape)


def _sum_dtype(dtypes: Sequence[np.dtype], params: Mapping[str, Any]) -> np.dtype:
    """Return int64 for integer inputs, else their dtype. Raises OpError if dtypes differ."""
    return SUM.dtype_of(one_type(dtypes, params))


IN_INT64 = "Whole numbers are computed in int64."
_register("sum", lambda params: SUM, _sum_gradient, f"The sum along the axes. {IN_INT64}", dtype=_sum_dtype)
_register("mean", lambda params: MEAN, _mean_gradient, "The mean along the axes.", dtype=real)
_register(
    "norm",
    lambda params: NORMS[params["ord"]],
    _norm_gradient,
    "The norm along the axes: the root of the sum of squares, or with `ord` 1 the sum of absolute values.",
    shape=_norm_shape,
    dtype=real,
    ord=2,
)
_register(
    "max",
    lambda params: MAX,
    _extreme_gradient,
    "The largest element; equal ones share its gradient.",
    shape=_extreme_shape,
)
_register(
    "min",
    lambda params: MIN,
    _extreme_gradient,
    "The smallest element; equal ones share its gradient.",
    shape=_extreme_shape,
)
_register(
    "prod",
    lambda params: PROD,
    _prod_gradient,
    f"The product of the elements along the axes. {IN_INT64}",
    dtype=_sum_dtype,
)
_register(
    "square_sum",
    lambda params: SQUARES,
    _squares_gradient,
    f"The sum of squares along the axes. {IN_INT64}",
    dtype=_sum_dtype,
    rules=(
        Rule(
            ("row_sparse",), "row_sparse", _squares_of_rows, KERNEL, _rows_stay, "keepdims, axis 0 not among the axes"
        ),
    ),
)


def _count_dense(x, out=None, axis=None, keepdims=False):
    """Return the number of elements reduced to each result of a dense x, int64: all of them, zeros included.

    `axis` None: over all axes; in `out` if given.
    """
    shape = shape_of([x.shape], {"axis": axis, "keepdims": keepdims})
    count = math.prod(x.shape[place] for place in axes_of(axis, x.ndim))
    return put(out, np.full(shape, count, np.int64))


def _count_matrix(x, out=None, axis=None, keepdims=False):
    """Return the number of stored entries of csr, csc or coo along `axis` (None: both), int64, duplicates each."""
    shape = shape_of([x.shape], {"axis": axis, "keepdims": keepdims})
    axes = axes_of(axis, 2)
    if len(axes) == 2:
        return put(out, np.full(shape, x.data.size, np.int64))
    places = stored.places(x)
    if not axes:
        counts = np.zeros(shape, np.int64)
        np.add.at(counts, places, 1)
        return put(out, counts)
    counts = np.bincount(places[1 - axes[0]], minlength=x.shape[1 - axes[0]])
    return put(out, counts.astype(np.int64, copy=False).reshape(shape))


def _count_rows(x, out=None, axis=None, keepdims=False):
    """Return the number of stored elements of a row_sparse array along `axis` (None: all), int64."""
    is_stored = formats.RowSparse.assemble(np.ones(x.values.shape, np.int64), x.indices, x.shape)
    return put(out, SUM.rows(is_stored, axis, keepdims))


operator(
    "count_stored",
    _count_dense,
    shape_of,
    "How many elements are stored, zeros among them included: int64. A dense array stores all of them.",
    rules=(
        *(Rule((form,), "dense", _count_matrix, KERNEL) for form in MATRICES),
        Rule(("row_sparse",), "dense", _count_rows, KERNEL),
    ),
    dtype=lambda dtypes, params: np.dtype(np.int64),
    gradient=lambda head, output, inputs, params: (ops.zeros_like(inputs[0]),),
    family="reductions",
)


def _along_last(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Return x with `axes` merged into one axis, the last one; the other axes keep their order.

    C-contiguous; a view if x has that layout already, else a copy.
    """
    kept = [place for place in range(x.ndim) if place not in axes]
    moved = np.ascontiguousarray(np.transpose(x, (*kept, *axes)))
    return moved.reshape(*(x.shape[place] for place in kept), -1)


def _back(flat: np.ndarray, shape: tuple[int, ...], axes: tuple[int, ...]) -> np.ndarray:
    """Return `flat`, as `_along_last` makes it, in `shape` again with its last axis split into `axes`."""
    order = (*(place for place in range(len(shape)) if place not in axes), *axes)
    moved = flat.reshape([shape[place] for place in order])
    return np.asarray(np.transpose(moved, np.argsort(order)), order="C")


def _others(x, out=None, axis=None):
    """Return for each element of a dense x the product of all others along `axis` (None: all), in `out` if given.

    The result has the shape of x.
    """
    axes = axes_of(axis, x.ndim)
    if not x.size:
        return put(out, x.copy())
    flat = _along_last(x, axes)
    left, right = np.ones_like(flat), np.ones_like(flat)
    np.multiply.accumulate(flat[..., :-1], axis=-1, out=left[..., 1:])
    right[..., :-1] = np.multiply.accumulate(flat[..., :0:-1], axis=-1)[..., ::-1]
    return put(out, _back(left * right, x.shape, axes))


operator(
    "product_of_others",
    _others,
    lambda shapes, params: tuple(shapes[0]),
    "For every element the product of the others along the axes: what the gradient of prod is made of.",
    gradient=lambda head, output, inputs, params: (ops.slope_of_others(head, inputs[0], **params),),
    family="reductions",
)


def _before(values: np.ndarray, moves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (p, dp) along the last axis: p the product of the preceding elements, dp its derivative along `moves`."""
    product, change = np.ones_like(values), np.zeros_like(values)
    for place in range(1, values.shape[-1]):
        before = place - 1
        change[..., place] = change[..., before] * values[..., before] + product[..., before] * moves[..., before]
        product[..., place] = product[..., before] * values[..., before]
    return product, change


def _slope_of_others(head, x, out=None, axis=None):
    """Return the derivative of `_others` at dense x along `head` [shape of x], in `out` if given.

    It is the gradient as well, since the matrix of second derivatives is symmetric.
    """
    axes = axes_of(axis, x.ndim)
    if not x.size:
        return put(out, x.copy())
    values, moves = _along_last(x, axes), _along_last(head, axes)
    left, left_change = _before(values, moves)
    right, right_change = (part[..., ::-1] for part in _before(values[..., ::-1], moves[..., ::-1]))
    return put(out, _back(left_change * right + left * right_change, x.shape, axes))


operator(
    "slope_of_others",
    _slope_of_others,
    same_shape,
    "The gradient of `product_of_others`: for every element the sum, over each other element of its group, of "
    "that element's head times the product of the remaining elements.",
    gradient=lambda head, output, inputs, params: (ops.slope_of_others(head, inputs[1], **params), None),
    no_gradient="For third derivatives of a product write it as exp(sum(log(x))).",
    family="reductions",
)
