"""Counts of stored elements along axes."""

import math

import numpy as np

from workbench import formats, ops
from workbench.ops import stored
from workbench.ops.contract import Op, Rule, register
from workbench.ops.like import axes_of, put
from workbench.ops.reductions import KERNEL, MATRICES, SUM, shape_of


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
