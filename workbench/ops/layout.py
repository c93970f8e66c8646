"""Operators that change dtype, format or shape: cast, transpose, reshape, copy. Results share no memory with the
inputs.

>>> import numpy as np
>>> from workbench import ops
>>> x = ops.to_format(np.float32([[0, 1, 0], [2, 0, 0]]), format="csr")
>>> ops.transpose(x).format, ops.reshape(x, shape=(3, -1)).toarray().tolist()
('csc', [[0.0, 1.0], [0.0, 2.0], [0.0, 0.0]])
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from workbench import formats
from workbench.formats.compressed import kept_or_widened
from workbench.formats.contract import Coo
from workbench.ops import stored
from workbench.ops.contract import REQUIRED, OpError, Rule, Shape, operator
from workbench.ops.like import cast_like, check_countable, put, reshape_like

FORMATS = ("dense", "csr", "csc", "coo", "row_sparse")
MATRICES = ("csr", "csc", "coo")


def _same(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the shape of the first input as a tuple; `params` is unused."""
    return tuple(shapes[0])


def _cast(x, out=None, dtype=REQUIRED):
    """Return x with values of `dtype`, in its format, duplicates summed; in `out` if given and dense."""
    if isinstance(x, np.ndarray):
        return put(out, x.astype(dtype))
    return formats.astype(stored.canonical(x), dtype)


def _cast_type(dtypes: Sequence[np.dtype], params: Mapping[str, Any]) -> np.dtype:
    """Return the parameter `dtype` as np.dtype; OpError if it names no dtype that arrays can have.

    `dtypes` is unused.
    """
    try:
        dtype = np.dtype(params["dtype"])
    except TypeError:
        raise OpError(f"dtype is {params['dtype']!r}, which names no type; float32 and float64 do.") from None
    if dtype not in formats.VALUES:
        raise OpError(f"dtype is {dtype}; arrays hold {', '.join(map(str, formats.VALUES))}.")
    return dtype


cast = operator(
    "cast",
    _cast,
    _same,
    "x with values of type `dtype`, cast as NumPy casts; the pattern stays.",
    rules=tuple(Rule((form,), form, _cast, "numpy on the stored values") for form in FORMATS),
    dtype=_cast_type,
    gradient=lambda head, output, inputs, params: (cast_like(head, inputs[0]),),
    family="layout",
)


def _to_format(x, out=None, format=REQUIRED):
    """Return x in `format`, never x itself; in `out` if given and dense."""
    result = formats.to_format(x, format)
    if format == "dense" and out is not None:
        return put(out, result)
    return formats.copy(result) if result is x else result


def _asks_for(format: str, shapes: Sequence[Shape], params: Mapping[str, Any]) -> bool:
    """Return whether the parameter `format` is `format`; `shapes` is unused."""
    return params["format"] == format


def _format_shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the input's shape; an error if no format has the name `format` or it lacks such shapes."""
    formats.get(params["format"])
    if params["format"] in MATRICES and len(shapes[0]) != 2:
        raise OpError(f"An array of shape {tuple(shapes[0])} cannot be {params['format']}, which takes two dimensions.")
    if params["format"] != "dense" and not shapes[0]:
        raise OpError(f"A single number cannot be {params['format']}, which takes one dimension or more.")
    return tuple(shapes[0])


to_format = operator(
    "to_format",
    _to_format,
    _format_shape,
    "x in the format named `format`: how a graph converts where it is meant, without a warning. The gradient is "
    "passed on in the format that it comes in.",
    rules=tuple(
        Rule((form,), to, _to_format, f"{form} to {to}", partial(_asks_for, to), f"format={to}")
        for form in FORMATS
        for to in FORMATS
    ),
    gradient=lambda head, output, inputs, params: (head,),
    family="layout",
)


copy = operator(
    "copy",
    lambda x, out=None: put(out, x.copy() if out is None else x),
    _same,
    "A copy of the array.",
    rules=tuple(Rule((form,), form, lambda x, out=None: formats.copy(x)) for form in FORMATS[1:]),
    gradient=lambda head, output, inputs, params: (head,),
    family="layout",
)


def _axes(shape: Shape, params: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the parameter `axes` as a non-negative permutation; None reverses the axes.

    Raises OpError if it is none.
    """
    axes = params["axes"]
    if axes is None:
        return tuple(range(len(shape)))[::-1]
    counted = tuple(axis + len(shape) if axis < 0 else axis for axis in axes)
    if sorted(counted) != list(range(len(shape))):
        raise OpError(f"axes is {axes}; an array of shape {tuple(shape)} takes an order of all its {len(shape)} axes.")
    return counted


def _transpose_shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return shapes[0] permuted by params["axes"] (None: reversed); OpError for invalid axes."""
    return tuple(shapes[0][axis] for axis in _axes(shapes[0], params))


def _transpose(x, out=None, axes=None):
    """Return a dense x with its axes permuted, a C-contiguous copy, in `out` if given."""
    turned = np.transpose(x, _axes(x.shape, {"axes": axes}))
    return put(out, turned.copy(order="C") if out is None else turned)


def _is_turned(shapes: Sequence[Shape], params: Mapping[str, Any]) -> bool:
    """Return whether the permutation params["axes"] exchanges the two axes of a matrix."""
    return _axes(shapes[0], params) == (1, 0)


def _permute_matrix(x, out=None, axes=None):
    """Return the transpose of a csr, csc or coo matrix as csc, csr or coo, over copies of its arrays.

    `out` and `axes` are unused.
    """
    format = formats.get({"csr": "csc", "csc": "csr", "coo": "coo"}[x.format])
    if x.format == "coo":
        return format.from_coo(Coo(x.col.copy(), x.row.copy(), x.data.copy(), x.shape[::-1]))
    parts = {name: part.copy() for name, part in formats.get(x.format).parts(x).items()}
    return format.build(parts, x.shape[::-1])


def _rows_stay(shapes: Sequence[Shape], params: Mapping[str, Any]) -> bool:
    """Return whether axis 0 stays first under the permutation params["axes"] (None: reversed)."""
    return _axes(shapes[0], params)[0] == 0


def _permute_rows(x, out=None, axes=None):
    """Return a row_sparse array with its axes after the first permuted, a copy; `out` is unused."""
    order = _axes(x.shape, {"axes": axes})
    turned = np.transpose(x.values, order)
    return formats.RowSparse.assemble(turned.copy(), x.indices.copy(), tuple(x.shape[axis] for axis in order))


def _transpose_gradient(head, output, inputs, params):
    """Return the gradient of transpose as a tuple: `head` with its axes in the order of the input, by params["axes"].

    `output` and `inputs` are unused.
    """
    axes = params["axes"]
    inverse = None if axes is None else tuple(int(axis) for axis in np.argsort([axis % len(axes) for axis in axes]))
    return (transpose(head, axes=inverse),)


transpose = operator(
    "transpose",
    _transpose,
    _transpose_shape,
    "x with its axes in the order `axes`, turned round where not given. csr becomes csc and csc csr, for a "
    "copy; row_sparse stays so where axis 0 stays first, else it is made dense.",
    rules=(
        *(
            Rule((form,), to, _permute_matrix, "none: the arrays are copied", _is_turned, "axes (1, 0)")
            for form, to in (("csr", "csc"), ("csc", "csr"), ("coo", "coo"))
        ),
        Rule(("row_sparse",), "row_sparse", _permute_rows, "numpy", _rows_stay, "axis 0 stays first"),
        *(Rule((form,), form, lambda x, out=None, axes=None: formats.copy(x)) for form in MATRICES),
    ),
    gradient=_transpose_gradient,
    family="layout",
)


def _new_shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the parameter `shape` with -1 resolved for shapes[0]. Raises OpError if sizes differ."""
    old, shape = tuple(shapes[0]), params["shape"]
    new = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    size, known = math.prod(old), math.prod(n for n in new if n != -1)
    if new.count(-1) == 1 and known and size % known == 0:
        new = tuple(size // known if n == -1 else n for n in new)
    if any(n < 0 for n in new) or math.prod(new) != size:
        raise OpError(
            f"An array of shape {old} has {size} elements; it cannot have the shape {new}. One -1 is allowed."
        )
    return tuple(map(int, new))


def _reshape(x, out=None, shape=REQUIRED):
    """Return a dense x in `shape`, a copy, in `out` if given."""
    result = x.reshape(_new_shape([x.shape], {"shape": shape}))
    return put(out, result.copy() if out is None else result)


def _is_matrix(shapes: Sequence[Shape], params: Mapping[str, Any]) -> bool:
    """Return whether the shape that `params` asks for has two dimensions."""
    return len(_new_shape(shapes, params)) == 2


def _reshape_matrix(x, out=None, shape=None):
    """Return a csr, csc or coo matrix in another matrix shape, in its format, a copy; `out` is unused.

    Raises OpError if it has more elements than int64 counts.
    """
    format, new = formats.get(x.format), _new_shape([x.shape], {"shape": shape})
    check_countable(x.shape)
    coo = format.to_coo(x)
    row, col = divmod(coo.row.astype(np.int64) * x.shape[1] + coo.col, max(new[1], 1))
    kind = kept_or_widened(coo.row.dtype, *new, coo.data.size)
    return format.from_coo(Coo(row.astype(kind), col.astype(kind), coo.data.copy(), new))


def _keeps_rows(shapes: Sequence[Shape], params: Mapping[str, Any]) -> bool:
    """Return whether the shape that `params` asks for has the same length of the first axis as the input."""
    return _new_shape(shapes, params)[:1] == tuple(shapes[0][:1])


def _reshape_rows(x, out=None, shape=None):
    """Return a row_sparse array with its axes after the first reshaped, a copy; `out` is unused."""
    new = _new_shape([x.shape], {"shape": shape})
    values = x.values.reshape(len(x.indices), *new[1:]).copy()
    return formats.RowSparse.assemble(values, x.indices.copy(), new)


reshape = operator(
    "reshape",
    _reshape,
    _new_shape,
    "x in another shape of as many elements, row after row; one length may be -1. csr, csc and coo keep their "
    "format as matrices, row_sparse where the first length stays, else it is made dense.",
    rules=(
        *(Rule((form,), form, _reshape_matrix, "numpy", _is_matrix, "to two dimensions") for form in MATRICES),
        Rule(("row_sparse",), "row_sparse", _reshape_rows, "numpy", _keeps_rows, "the first length stays"),
    ),
    gradient=lambda head, output, inputs, params: (reshape_like(head, inputs[0]),),
    family="layout",
)
