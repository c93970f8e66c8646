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
from workbench.ops.contract import Op, OpError, Rule, Shape, one_type, real, register, same_shape
from workbench.ops.like import as_dense, axes_of, keep_axes, put, shape_of_last, type_of_first, with_ones
from workbench.ops.spreading import narrow, spread


def _kept(head: np.ndarray, x: np.ndarray, axis: Any) -> np.ndarray:
    """Return `head` with length one along the axes that x was reduced over."""
    return head.reshape(with_ones(x.shape, axes_of(axis, x.ndim)))


def _slope(head, x, out=None, axis=None, keepdims=False):
    """Return 2 * head * x, dense."""
    return put(out, 2 * x * _kept(head, x, axis))


def _of_rows(head, x, out=None, axis=None, keepdims=True):
    """Return the gradient at the rows that head stores; `x` is row_sparse or dense."""
    if isinstance(x, RowSparse):
        places = np.searchsorted(x.indices, head.indices)
        hits = np.flatnonzero(np.append(x.indices, -1)[places] == head.indices)
        rows = np.zeros((len(head.indices), *x.shape[1:]), x.dtype)
        rows[hits] = x.values[places[hits]]
    else:
        rows = x[head.indices]
    return RowSparse.assemble(2 * rows * head.values, head.indices.copy(), x.shape)


def _of_stored(head, x, out=None, axis=None, keepdims=True):
    """Return the gradient of a dense head at the rows that x, row_sparse, stores."""
    kept = _kept(head, x, axis)
    values = 2 * x.values * (kept if len(kept) == 1 else kept[x.indices])
    return RowSparse.assemble(values, x.indices.copy(), x.shape)


def _of_entries(head, x, out=None, axis=None, keepdims=True):
    """Return the gradient of a dense head at the entries that x, csr, csc or coo, stores."""
    return ops.multiply(ops.multiply_scalar(x, scalar=2.0), _kept(head, x, axis))


def _square_rows_stay(shapes: Sequence[Shape], params: Mapping[str, Any]) -> bool:
    """Return whether the first axis is not reduced."""
    return params["keepdims"] and 0 not in axes_of(params["axis"], len(shapes[1]))


def _gradient(head, output, inputs, params):
    """Return the gradients of head and x."""
    slope, x = inputs
    double = ops.multiply_scalar(head, scalar=2.0)
    back = ops.sum(ops.multiply(double, x), **params)
    return back, ops.multiply(double, ops.keep_axes(slope, x, **params))


ON_STORED_ROWS = "numpy on the stored rows"
WHEN = "keepdims, axis 0 not among the axes"
slope_of_square_sum = register(
    Op(
        "slope_of_square_sum",
        ("head", "x"),
        _slope,
        shape_of_last,
        "The gradient of `square_sum`, 2 head x, where the head or x stores something: in the rows of a row_sparse "
        "head, else in what x stores.",
        params={"axis": None, "keepdims": False},
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
)


MATRICES = ("csr", "csc", "coo")
KERNEL = "numpy on the stored values"


def shape_of(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the shape of the result."""
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
        """Return the dtype of the result; integers are added and multiplied in int64, so that they do not overflow."""
        return np.dtype(np.int64) if self.ufunc in (np.add, np.multiply) and dtype.kind != "f" else dtype

    def before(self, values: np.ndarray) -> np.ndarray:
        """Return `each(values)` in the dtype of the reduction."""
        return self.each(values.astype(self.dtype_of(values.dtype), copy=False))

    def dense(self, x: np.ndarray, axis: Any, keepdims: bool) -> np.ndarray:
        """Return the reduction of a dense array along `axis`, None for all axes."""
        axes = axes_of(axis, x.ndim)
        total = self.ufunc.reduce(self.before(x), axis=axes, keepdims=keepdims)
        return self.finish(total, x, axes, x.dtype)

    def finish(self, total: Any, x: Any, axes: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Return `after(total)` in the dtype of the input."""
        with np.errstate(all="ignore"):
            count = math.prod(x.shape[axis] for axis in axes)
            return np.asarray(self.after(np.asarray(total), count)).astype(self.dtype_of(dtype), copy=False)

    def with_zeros(self, total: np.ndarray) -> np.ndarray:
        """Return `total` combined with a zero."""
        with np.errstate(all="ignore"):
            return total if self.ufunc is np.add else self.ufunc(total, np.zeros_like(total))

    def matrix(self, x: Any, axis: Any, keepdims: bool) -> np.ndarray:
        """Reduce a csr, csc or coo matrix."""
        axes = axes_of(axis, 2)
        shape = shape_of([x.shape], {"axis": axis, "keepdims": keepdims})
        x = stored.canonical(x)
        data = self.before(x.data)
        if len(axes) != 1:
            total = self._of_all(data, x.shape) if axes else self.before(as_dense(x))
        else:
            total = self._of_groups(stored.places(x)[1 - axes[0]], data, x.shape[1 - axes[0]], x.shape[axes[0]])
        return self.finish(total, x, axes, x.dtype).reshape(shape)

    def _of_all(self, data: np.ndarray, shape: Shape) -> np.ndarray:
        """Reduce all entries of a matrix of this shape."""
        size = math.prod(shape)
        if not data.size and size and self.ufunc.identity is None:
            return np.zeros((), data.dtype)
        exact = np.float64 if self.ufunc is np.add and data.dtype.kind == "f" else None
        total = np.asarray(self.ufunc.reduce(data, dtype=exact))
        return total if data.size == size else self.with_zeros(total)

    def _of_groups(self, group: np.ndarray, data: np.ndarray, groups: int, length: int) -> np.ndarray:
        """Reduce `data` by group; groups with fewer than `length` entries include a zero."""
        if self.ufunc is np.add and data.dtype.kind == "f":
            return np.bincount(group, data, groups)
        full = np.bincount(group, minlength=groups) == length
        total = np.full(groups, self.ufunc.identity or 0, data.dtype)
        if self.ufunc.identity is None:
            total[group] = data
        self.ufunc.at(total, group, data)
        return np.where(full, total, self.with_zeros(total))

    def rows(self, x: formats.RowSparse, axis: Any, keepdims: bool) -> np.ndarray:
        """Reduce a row_sparse array of any rank."""
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
    """Return the square root of `total`."""
    return np.sqrt(total)


SUM = Reduction(np.add)
MEAN = Reduction(np.add, after=lambda total, count: np.divide(total, np.float64(count)))
SQUARES = Reduction(np.add, np.square)
NORMS = {1: Reduction(np.add, np.abs), 2: Reduction(np.add, np.square, _root)}
MAX, MIN, PROD = Reduction(np.maximum), Reduction(np.minimum), Reduction(np.multiply)


def _calls(chosen: Callable[[Mapping[str, Any]], Reduction]) -> dict[str, Callable]:
    """Return {"dense", "matrix", "rows": function(x, out, axis, keepdims, **params)}, which compute dense, compressed
    or COO, and row-sparse x; `chosen(params)` selects the reduction.
    """

    def call(way: str) -> Callable:
        """Return the reduction for the representation `way`: "dense", "matrix" or "rows"."""

        def run(x, out=None, axis=None, keepdims=False, **more):
            """Return x reduced over `axis`, dense, in `out` if that is given; `more` are the operator's own
            parameters.
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
    """Register a reduction; `chosen(params)` selects it, `gradient(head, output, x, params)` returns the gradient of x,
    `params` are {name: default}.
    """
    calls = _calls(chosen)
    matrices = (Rule((form,), "dense", calls["matrix"], KERNEL) for form in MATRICES)
    register(
        Op(
            name,
            ("x",),
            calls["dense"],
            shape,
            doc,
            params={"axis": None, "keepdims": False, **params},
            rules=(*rules, *matrices, Rule(("row_sparse",), "dense", calls["rows"], KERNEL)),
            dtype=dtype,
            gradient=lambda head, output, inputs, params: (gradient(head, output, inputs[0], params),),
            family="reductions",
        )
    )


def _along(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters `axis` and `keepdims` of a reduction, to pass on to another one."""
    return {"axis": params["axis"], "keepdims": params["keepdims"]}


def _sum_gradient(head, output, x, params):
    """Return head broadcast over the reduced axes."""
    return spread(head, x, **_along(params))


def _mean_gradient(head, output, x, params):
    """Return head / count broadcast over the reduced axes."""
    return spread(head, x, mean=True, **_along(params))


def _squares_gradient(head, output, x, params):
    """Return 2 * head * x."""
    if params["keepdims"] and (kept := narrow(head)) is not head:
        return ops.multiply(kept, ops.multiply_scalar(x, scalar=2.0))
    return slope_of_square_sum(head, x, **_along(params))


def _norm_gradient(head, output, x, params):
    """Return head * x / norm; zero if the norm is zero."""
    if params["ord"] == 1:
        return ops.multiply(ops.sign(x), keep_axes(head, x, **_along(params)))
    above = ops.add(output, ops.equal_scalar(output, scalar=0.0))
    return ops.multiply(x, keep_axes(ops.divide(head, above), x, **_along(params)))


def _extreme_gradient(head, output, x, params):
    """Divide head equally among the elements that equal the extreme."""
    chosen = ops.equal(x, keep_axes(output, x, **_along(params)))
    share = ops.divide(head, ops.sum(chosen, **_along(params)))
    return ops.multiply(chosen, keep_axes(share, x, **_along(params)))


def _prod_gradient(head, output, x, params):
    """Return head times the product of the other elements."""
    return ops.multiply(ops.product_of_others(x, axis=params["axis"]), keep_axes(head, x, **_along(params)))


def _extreme_shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the result shape of max or min; OpError along an axis without elements."""
    shape = shapes[0]
    if not all(shape[axis] for axis in axes_of(params["axis"], len(shape))):
        raise OpError(
            f"An array of shape {tuple(shape)} has no largest or smallest element along axis {params['axis']}."
        )
    return shape_of(shapes, params)


def _norm_shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the result shape of norm; OpError unless ord is 1 or 2."""
    if params["ord"] not in NORMS:
        raise OpError(
            f"ord is {params['ord']!r}; allowed are 1, the sum of absolute values, and 2, the root of squares."
        )
    return shape_of(shapes, params)


def _rows_stay(shapes: Sequence[Shape], params: Mapping[str, Any]) -> bool:
    """Return whether the first axis is not reduced."""
    return params["keepdims"] and 0 not in axes_of(params["axis"], len(shapes[0]))


def _squares_of_rows(x, out=None, axis=None, keepdims=True):
    """Return the sum of squares of each stored row, as a row_sparse array."""
    values = np.add.reduce(SQUARES.before(x.values), axis=axes_of(axis, x.ndim), keepdims=True)
    shape = with_ones(x.shape, axes_of(axis, x.ndim))
    return formats.RowSparse.assemble(values, x.indices.copy(), shape)


def _widened(dtypes: Sequence[np.dtype], params: Mapping[str, Any]) -> np.dtype:
    """Return int64 for integers, else the dtype of x."""
    return SUM.dtype_of(one_type(dtypes, params))


IN_INT64 = "Whole numbers are computed in int64."
_register("sum", lambda params: SUM, _sum_gradient, f"The sum along the axes. {IN_INT64}", dtype=_widened)
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
    dtype=_widened,
)
_register(
    "square_sum",
    lambda params: SQUARES,
    _squares_gradient,
    f"The sum of squares along the axes. {IN_INT64}",
    dtype=_widened,
    rules=(
        Rule(
            ("row_sparse",), "row_sparse", _squares_of_rows, KERNEL, _rows_stay, "keepdims, axis 0 not among the axes"
        ),
    ),
)


def _count_dense(x, out=None, axis=None, keepdims=False):
    """Count the nonzero elements of a dense array along axes."""
    shape = shape_of([x.shape], {"axis": axis, "keepdims": keepdims})
    count = math.prod(x.shape[place] for place in axes_of(axis, x.ndim))
    return put(out, np.full(shape, count, np.int64))


def _count_matrix(x, out=None, axis=None, keepdims=False):
    """Count the stored entries of a csr, csc or coo matrix along axes."""
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
    """Count the stored elements of a row_sparse array along axes."""
    is_stored = formats.RowSparse.assemble(np.ones(x.values.shape, np.int64), x.indices, x.shape)
    return put(out, SUM.rows(is_stored, axis, keepdims))


register(
    Op(
        "count_stored",
        ("x",),
        _count_dense,
        shape_of,
        "How many elements are stored, zeros among them included: int64. A dense array stores all of them.",
        params={"axis": None, "keepdims": False},
        rules=(
            *(Rule((form,), "dense", _count_matrix, KERNEL) for form in MATRICES),
            Rule(("row_sparse",), "dense", _count_rows, KERNEL),
        ),
        dtype=lambda dtypes, params: np.dtype(np.int64),
        gradient=lambda head, output, inputs, params: (ops.zeros_like(inputs[0]),),
        family="reductions",
    )
)


def _along_last(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Merge `axes` into one axis and move it last."""
    kept = [place for place in range(x.ndim) if place not in axes]
    moved = np.ascontiguousarray(np.transpose(x, (*kept, *axes)))
    return moved.reshape(*(x.shape[place] for place in kept), -1)


def _back(flat: np.ndarray, shape: tuple[int, ...], axes: tuple[int, ...]) -> np.ndarray:
    """Return `flat` in `shape` again, its last axis put back as `axes`: the inverse of `_along_last`."""
    order = (*(place for place in range(len(shape)) if place not in axes), *axes)
    moved = flat.reshape([shape[place] for place in order])
    return np.asarray(np.transpose(moved, np.argsort(order)), order="C")


def _others(x, out=None, axis=None):
    """Return for each element the product of all others along the axes."""
    axes = axes_of(axis, x.ndim)
    if not x.size:
        return put(out, x.copy())
    flat = _along_last(x, axes)
    left, right = np.ones_like(flat), np.ones_like(flat)
    np.multiply.accumulate(flat[..., :-1], axis=-1, out=left[..., 1:])
    right[..., :-1] = np.multiply.accumulate(flat[..., :0:-1], axis=-1)[..., ::-1]
    return put(out, _back(left * right, x.shape, axes))


register(
    Op(
        "product_of_others",
        ("x",),
        _others,
        lambda shapes, params: tuple(shapes[0]),
        "For every element the product of the others along the axes: what the gradient of prod is made of.",
        params={"axis": None},
        gradient=lambda head, output, inputs, params: (ops.slope_of_others(head, inputs[0], **params),),
        family="reductions",
    )
)


def _before(values: np.ndarray, moves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the product of the preceding elements along the last axis, and its derivative along `moves`.
    O(elements).
    """
    product, change = np.ones_like(values), np.zeros_like(values)
    for place in range(1, values.shape[-1]):
        before = place - 1
        change[..., place] = change[..., before] * values[..., before] + product[..., before] * moves[..., before]
        product[..., place] = product[..., before] * values[..., before]
    return product, change


def _slope_of_others(head, x, out=None, axis=None):
    """Return the derivative of `_others` along `head` (the matrix of second derivatives is symmetric)."""
    axes = axes_of(axis, x.ndim)
    if not x.size:
        return put(out, x.copy())
    values, moves = _along_last(x, axes), _along_last(head, axes)
    left, left_change = _before(values, moves)
    right, right_change = (part[..., ::-1] for part in _before(values[..., ::-1], moves[..., ::-1]))
    return put(out, _back(left_change * right + left * right_change, x.shape, axes))


register(
    Op(
        "slope_of_others",
        ("head", "x"),
        _slope_of_others,
        same_shape,
        "The gradient of `product_of_others`: for every element the sum over each other one of its head times the "
        "product of those that are left.",
        params={"axis": None},
        gradient=lambda head, output, inputs, params: (ops.slope_of_others(head, inputs[1], **params), None),
        no_gradient="For third derivatives of a product write it as exp(sum(log(x))).",
        family="reductions",
    )
)
