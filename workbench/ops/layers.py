"""Layers of models: embedding, fully_connected.

>>> import numpy as np
>>> from workbench import formats, ops
>>> table = formats.RowSparse(np.float32([[1, 2], [3, 4]]), [0, 5], (8, 2))
>>> ops.embedding(np.array([5, 3, 0]), table).tolist()
[[3.0, 4.0], [0.0, 0.0], [1.0, 2.0]]
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import kernels
from kernels import blas
from workbench import formats, ops
from workbench.ops.contract import ANY, OpError, Rule, Shape, operator, real
from workbench.ops.indexing import row_numbers
from workbench.ops.like import as_dense, put, shape_of_last, type_of_first
from workbench.ops.places import wanted_places
from workbench.ops.products.blocks import places


def _embedding_shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the result shape (*ids, *weight[1:]) for shapes (ids, weight); OpError for a weight without dimensions.

    `params` is unused.
    """
    ids, weight = shapes
    if not weight:
        raise OpError("The weight of an embedding has a row for each id; one without dimensions came.")
    return (*ids, *weight[1:])


def _rows(source: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return source[rows] as a matrix [len(rows), width], trailing axes merged; rows in range, not checked."""
    flat = source.reshape(len(source), math.prod(source.shape[1:]))
    if source.dtype not in (np.float32, np.float64):
        return flat[rows]
    out = np.empty((rows.size, flat.shape[1]), source.dtype)
    kernels.get("take_rows").trusted(flat, rows, out)
    return out


def _embedding(ids, weight, out=None, sparse_grad=False):
    """Return the rows of a dense weight at `ids` of any shape, in `out` if given. OpError for an id out of range.

    The result is [*ids.shape, *weight.shape[1:]]; `sparse_grad` is unused.
    """
    rows = row_numbers(ids, weight.shape[0]).ravel()
    return put(out, _rows(weight, rows).reshape(*ids.shape, *weight.shape[1:]))


def _embedding_of_rows(ids, weight, out=None, sparse_grad=False):
    """Return the rows of a row_sparse weight at `ids`, dense, in `out` if given; rows not stored are zero.

    The result is [*ids.shape, *weight.shape[1:]]; `sparse_grad` is unused.
    """
    rows = row_numbers(ids, weight.shape[0]).ravel()
    place, hits = places(rows, weight.indices)
    out = np.zeros((*ids.shape, *weight.shape[1:]), weight.dtype) if out is None else out
    flat = out.reshape(rows.size, *weight.shape[1:])
    if not hits.any():
        flat[...] = 0
        return out
    flat[...] = _rows(weight.values, np.maximum(place, 0)).reshape(flat.shape)
    if not hits.all():
        flat[~hits] = 0
    return out


def _embedding_gradient(head, ids, like, out=None, sparse_grad=False):
    """Return the gradient of the weight: rows of `head` summed by id; row_sparse if `sparse_grad`, else dense.

    `head` is [*ids.shape, *like.shape[1:]]; `like` gives the shape of the weight. A dense result is written to `out` if
    given.
    """
    rows = row_numbers(ids, like.shape[0]).ravel()
    values = as_dense(head).reshape(rows.size, *like.shape[1:])
    summed = formats.RowSparse.from_rows(rows, values, like.shape)
    if sparse_grad:
        return summed
    out = np.empty(like.shape, head.dtype) if out is None else out
    out[...] = 0
    out[summed.indices] = summed.values
    return out


operator(
    "embedding",
    _embedding,
    _embedding_shape,
    "The rows of the weight that the ids, whole numbers in any shape, name. A row_sparse weight may lack rows, "
    "which read as zeros; ids out of range are refused. With `sparse_grad` the weight's gradient is row_sparse: "
    "the distinct ids.",
    rules=(
        Rule(("dense", "row_sparse"), "dense", _embedding_of_rows, "take_rows"),
        *(
            Rule(
                form,
                "dense",
                refusal="ids are dense, the weight dense or row_sparse. Convert with to_format; for weighted "
                "sums of rows take dot.",
            )
            for form in (("csr", ANY), ("csc", ANY), ("coo", ANY), ("row_sparse", ANY))
        ),
        *(
            Rule(("dense", form), "dense", refusal="the weight is dense or row_sparse. Convert it with to_format.")
            for form in ("csr", "csc", "coo")
        ),
    ),
    dtype=lambda dtypes, params: dtypes[1],
    gradient=lambda head, output, inputs, params: (
        None,
        ops.embedding_gradient(head, inputs[0], inputs[1], sparse_grad=params["sparse_grad"]),
    ),
    family="layers",
)
operator(
    "embedding_gradient",
    _embedding_gradient,
    shape_of_last,
    "The gradient of `embedding` towards a weight of the shape of `like`: contributions of the same id are summed; "
    "row_sparse with `sparse_grad`, else dense.",
    rules=(
        Rule(
            (ANY, "dense", ANY),
            "row_sparse",
            _embedding_gradient,
            "merge_rows",
            lambda shapes, params: bool(params["sparse_grad"]),
            "sparse_grad",
        ),
        Rule((ANY, "dense", ANY), "dense", _embedding_gradient, "merge_rows"),
    ),
    dtype=type_of_first,
    gradient=lambda head, output, inputs, params: (ops.embedding(inputs[1], head, **params), None, None),
    unread=(2, None),
    family="layers",
)


def _layer_shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the result shape [R, N] for x [R, D], weight [N, D] and bias [N]; OpError if they do not fit.

    `params` is unused.
    """
    if len(shapes) > 3:
        raise OpError(f"fully_connected takes x, weight and bias; {len(shapes)} arrays came.")
    x, weight, *bias = map(tuple, shapes)
    if len(x) != 2 or len(weight) != 2 or x[1] != weight[1]:
        raise OpError(f"fully_connected takes x [R, D] and weight [N, D]; the shapes {x} and {weight} came.")
    if bias and bias[0] != weight[:1]:
        raise OpError(f"The bias of a layer with {weight[0]} outputs has shape {weight[:1]}; {bias[0]} came.")
    return x[0], weight[0]


def _layer(x, weight, *bias, out=None):
    """Return x @ weight.T (+ bias) for dense x [R, D], weight [N, D] and bias [N], in `out` if given."""
    out = blas.matmul(x, weight.T, out)
    return np.add(out, bias[0], out=out) if bias else out


def _sparse_layer(x, weight, *bias, out=None):
    """Return dense x @ weight.T (+ bias) for x [R, D], weight [N, D], bias [N] of any format, in `out` if given."""
    out = put(out, ops.dot(x, weight, transpose_b=True, result="dense"))
    return np.add(out, as_dense(bias[0]), out=out) if bias else out


def _layer_gradient(head, output, inputs, params):
    """Return the gradients of x (at its stored positions), weight and, if there is one, bias: the `inputs`.

    `head` [R, N] is the gradient of the result; `output` and `params` are unused.
    """
    x, weight, *bias = inputs
    towards = ops.sampled_dot(wanted_places(x), head, weight), ops.dot(head, x, transpose_a=True, result="dense")
    return (*towards, ops.sum(head, axis=0)) if bias else towards


operator(
    "fully_connected",
    _layer,
    _layer_shape,
    "x @ weight.T, plus the bias where one is given: x [R, D], weight [N, D], bias [N], in any formats; dense.",
    inputs=("x", "*weight and bias"),
    rules=(Rule(("dense", ...), "dense", _layer, "blas"), Rule((ANY, ...), "dense", _sparse_layer, "that of dot")),
    dtype=real,
    gradient=_layer_gradient,
    family="layers",
)
