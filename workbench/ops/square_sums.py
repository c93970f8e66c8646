"""The gradient of a sum of squares in the rows that head or x store.

A factorization machine needs it: a batch reads some rows of the factors, and the gradient should have those only, so
that a lazy update changes no others.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workbench import ops
from workbench.formats import RowSparse
from workbench.ops.contract import Op, Rule, Shape, register
from workbench.ops.like import axes_of, put, shape_of_last, type_of_first, with_ones


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


def _rows_stay(shapes: Sequence[Shape], params: Mapping[str, Any]) -> bool:
    """Return whether the first axis is not reduced."""
    return params["keepdims"] and 0 not in axes_of(params["axis"], len(shapes[1]))


def _gradient(head, output, inputs, params):
    """Return the gradients of head and x."""
    slope, x = inputs
    double = ops.multiply_scalar(head, scalar=2.0)
    back = ops.sum(ops.multiply(double, x), **params)
    return back, ops.multiply(double, ops.keep_axes(slope, x, **params))


KERNEL = "numpy on the stored rows"
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
                Rule(("row_sparse", x), "row_sparse", _of_rows, KERNEL, _rows_stay, WHEN)
                for x in ("row_sparse", "dense")
            ),
            Rule(("dense", "row_sparse"), "row_sparse", _of_stored, KERNEL),
            *(Rule(("dense", x), x, _of_entries, "as multiply") for x in ("csr", "csc", "coo")),
        ),
        dtype=type_of_first,
        gradient=_gradient,
        family="reductions",
    )
)
