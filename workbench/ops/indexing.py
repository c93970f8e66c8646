"""Selection of rows and parts: take, slice, retain. Stored elements are selected; results share no memory with inputs.

>>> import numpy as np
>>> from workbench import ops
>>> x = ops.to_format(np.float32([[0, 1, 0], [2, 0, 3]]), format="csr")
>>> ops.take(x, np.array([1, 1])).toarray().tolist()
[[2.0, 0.0, 3.0], [2.0, 0.0, 3.0]]
>>> ops.slice(x, begin=[0, 1], end=[None, 3]).format
'csr'
>>> rows = ops.to_format(np.float32([[0], [1], [0], [0], [2]]), format="row_sparse")
>>> ops.retain(rows, np.array([4, 0])).indices.tolist()
[0, 4]
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workbench import formats, ops
from workbench.formats.compressed import assemble
from workbench.formats.contract import Coo
from workbench.ops import stored
from workbench.ops.contract import ANY, REQUIRED, OpError, Rule, Shape, operator
from workbench.ops.like import as_dense, of_dense_head, put, shape_of_last, type_of_first
from workbench.ops.products.blocks import as_csr, places, select_rows

ROW_FORMATS = ("csr", "csc", "coo", "row_sparse")
MODES = ("raise", "clip", "wrap")


def row_numbers(numbers: np.ndarray, rows: int, mode: str = "raise") -> np.ndarray:
    """Return row indices as int64 in [0, rows): `mode` "raise", "clip" or "wrap" says what happens to others.

    Raises OpError for fractions, for any index if there are no rows, and with "raise" for one out of range.
    """
    whole = numbers.astype(np.int64)
    if numbers.dtype.kind == "f" and not np.array_equal(whole, numbers):
        raise OpError("Row numbers are whole; a fraction or NaN came. Round them first.")
    if not rows and whole.size:
        raise OpError(f"There are no rows to take; {whole.size} row numbers came.")
    if mode == "clip":
        return whole.clip(0, rows - 1)
    if mode == "wrap":
        return whole % max(rows, 1)
    if whole.size and not (whole.min() >= 0 and whole.max() < rows):
        at = int(np.argmax((whole < 0) | (whole >= rows)))
        raise OpError(
            f"Row number {at} of those asked for is {whole.flat[at]}; allowed are 0 to {rows - 1}. Correct it, or say "
            "what is meant: mode='clip' or 'wrap'."
        )
    return whole


def _retain(x, rows, out=None):
    """Return a row_sparse x that stores exactly `rows`, by `RowSparse.retain`; `out` is unused."""
    return x.retain(rows)


def _retain_shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the shape of the first input; others and params are unused."""
    return tuple(shapes[0])


def _meaning(x, rows, out=None):
    """Return dense x with all rows not in `rows` set to zero, a copy, in `out` if given.

    OpError for an index out of range.
    """
    out = np.empty_like(x) if out is None else out
    out[...] = 0
    numbers = row_numbers(rows, x.shape[0])
    out[numbers] = x[numbers]
    return out


operator(
    "retain",
    _meaning,
    _retain_shape,
    "The rows asked for of a row_sparse x, and no others: as stored there, or zeros. Where x stores nothing, so "
    "does the result. `rows` are whole numbers in any order.",
    rules=(
        Rule(("row_sparse", "dense"), "row_sparse", _retain, "retain_rows"),
        *(
            Rule(
                (form, ANY),
                "row_sparse",
                refusal="retain takes a row_sparse x and dense row numbers. Convert x with to_format.",
            )
            for form in ("dense", *ROW_FORMATS)
        ),
    ),
    dtype=type_of_first,
    gradient=lambda head, output, inputs, params: (ops.rows_of(head, inputs[1]), None),
    family="selection",
)


def _rows_of(x, rows, out=None):
    """Return the rows `rows` of a dense x as row_sparse, duplicates once. OpError for an index out of range."""
    numbers = np.unique(row_numbers(rows, x.shape[0]))
    return formats.RowSparse.assemble(x[numbers], numbers, x.shape)


operator(
    "rows_of",
    _meaning,
    _retain_shape,
    "The rows asked for of an array, as row_sparse: the gradient of `retain`, of which dense heads come, too.",
    rules=(
        Rule(("row_sparse", "dense"), "row_sparse", _retain, "retain_rows"),
        Rule(("dense", "dense"), "row_sparse", _rows_of, "numpy"),
    ),
    dtype=type_of_first,
    gradient=lambda head, output, inputs, params: (ops.rows_of(head, inputs[1]), None),
    family="selection",
)


MATRICES = ("csr", "csc", "coo")
COPIES = "numpy: what is stored is copied"


def _take_shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the result shape of take for shapes (x, indices); OpError for an invalid mode or axis."""
    x, indices = shapes
    if params["mode"] not in MODES:
        raise OpError(f"mode is {params['mode']!r}; allowed are {', '.join(MODES)}.")
    if not isinstance(params["axis"], int | np.integer) or not -len(x) <= params["axis"] < len(x):
        raise OpError(f"axis is {params['axis']}; an array of shape {tuple(x)} has the axes 0 to {len(x) - 1}.")
    axis = params["axis"] % len(x)
    return (*x[:axis], *indices, *x[axis + 1 :])


def _take(x, indices, out=None, axis=0, mode="raise"):
    """Return the elements of a dense x at `indices` along `axis`, a copy, in `out` if given.

    The axis is replaced by those of `indices`. `mode` and OpError for indices out of range as in `row_numbers`.
    """
    axis = axis % x.ndim
    return put(out, np.take(x, row_numbers(indices, x.shape[axis], mode), axis=axis))


def _is_list_of_rows(shapes: Sequence[Shape], params: Mapping[str, Any]) -> bool:
    """Return whether rows are taken by a list: params["axis"] is 0 and the indices, shapes[1], have one dimension."""
    return params["axis"] % len(shapes[0]) == 0 and len(shapes[1]) == 1


def _take_matrix(x, indices, out=None, axis=0, mode="raise"):
    """Return the rows `indices` of the csr, csc or coo matrix x as csr; `mode` as in `row_numbers`.

    `axis` is 0, `out` unused.
    """
    return select_rows(as_csr(x), row_numbers(indices, x.shape[0], mode))


def _take_rows(x, indices, out=None, axis=0, mode="raise"):
    """Return the rows `indices` of a row_sparse array as row_sparse; row i is stored if x stores its row.

    `out` and `axis` are unused.
    """
    place, hits = places(row_numbers(indices, x.shape[0], mode), x.indices)
    return formats.RowSparse.assemble(x.values[place[hits]], np.flatnonzero(hits), (indices.size, *x.shape[1:]))


def _take_gradient(head, indices, like, out=None, axis=0, mode="raise"):
    """Return the gradient of rows taken from `like`, row_sparse: rows of `head`, of any format, summed by `indices`.

    `mode` as in `row_numbers`; `axis` selects 0, `out` is unused.
    """
    rows = row_numbers(indices, like.shape[0], mode).ravel()
    if isinstance(head, formats.RowSparse):
        rows, values = rows[head.indices], head.values
    else:
        values = as_dense(head)
    return formats.RowSparse.from_rows(rows, values.reshape(rows.size, *like.shape[1:]), like.shape)


def _take_gradient_along(head, indices, like, out=None, axis=0, mode="raise"):
    """Return the gradient of elements taken from `like` along `axis`, dense: `head` summed by index.

    The result has the shape of `like` and is written to `out` if given. `mode` as in `row_numbers`.
    """
    axis = axis % len(like.shape)
    out = np.empty(like.shape, head.dtype) if out is None else out
    out[...] = 0
    rows = row_numbers(indices, like.shape[axis], mode)
    moved = np.moveaxis(as_dense(head), range(axis, axis + rows.ndim), range(rows.ndim))
    np.add.at(np.moveaxis(out, axis, 0), rows, moved)
    return out


def _take_gradient_shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the shape of `like` for shapes (head, indices, like); OpError if the head does not fit."""
    head, indices, like = shapes
    if tuple(head) != _take_shape([like, indices], params):
        raise OpError(f"A head of shape {tuple(head)} is none of rows {tuple(indices)} taken of {tuple(like)}.")
    return tuple(like)


take = operator(
    "take",
    _take,
    _take_shape,
    "The rows, or along `axis` the columns and so on, of these numbers. Those out of range are refused, clipped or "
    "wrapped as `mode` says. Rows of csr, csc and coo come as csr. The gradient of rows is row_sparse.",
    rules=(
        *(
            Rule((form, "dense"), "csr", _take_matrix, "slice_rows", _is_list_of_rows, "axis 0, a list of numbers")
            for form in MATRICES
        ),
        Rule(("row_sparse", "dense"), "row_sparse", _take_rows, COPIES, _is_list_of_rows, "axis 0, a list of numbers"),
    ),
    dtype=type_of_first,
    gradient=lambda head, output, inputs, params: (ops.take_gradient(head, inputs[1], inputs[0], **params), None),
    family="selection",
)
operator(
    "take_gradient",
    _take_gradient_along,
    _take_gradient_shape,
    "The gradient of `take` towards an array of the shape of `like`: for rows row_sparse, those taken.",
    rules=(
        Rule(
            (ANY, "dense", ANY),
            "row_sparse",
            _take_gradient,
            "merge_rows",
            lambda shapes, params: params["axis"] % len(shapes[2]) == 0,
            "axis 0",
        ),
    ),
    dtype=type_of_first,
    gradient=lambda head, output, inputs, params: (ops.take(head, inputs[1], **params), None, None),
    unread=(2, None),
    family="selection",
)


def ranges(shape: Shape, params: Mapping[str, Any]) -> tuple[range, ...]:
    """Return the range of positions on each axis that the parameters begin, end and step select, as Python slices do.

    Raises OpError for too many values or a step of 0.
    """
    entries = [list(params[name]) if params[name] is not None else [] for name in ("begin", "end", "step")]
    if max(map(len, entries)) > len(shape):
        raise OpError(f"begin, end and step have {[*map(len, entries)]} numbers; {tuple(shape)} has {len(shape)} axes.")
    begin, end, step = (part + [None] * (len(shape) - len(part)) for part in entries)
    if 0 in step:
        raise OpError(f"step is {params['step']}; a step of 0 goes nowhere.")
    return tuple(range(*slice(*parts).indices(length)) for *parts, length in zip(begin, end, step, shape, strict=True))


def _slices(x: Any, params: Mapping[str, Any]) -> tuple[slice, ...]:
    """Return a Python slice for each axis of x from begin, end and step in `params`, without negative bounds."""
    return tuple(
        slice(r.start, None if r.stop < 0 else r.stop, r.step) if len(r) else slice(0, 0)
        for r in ranges(x.shape, params)
    )


def _slice_shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the result shape of slice; OpError for invalid begin, end or step."""
    return tuple(map(len, ranges(shapes[0], params)))


def _slice(x, out=None, **params):
    """Return a copy of the slice of a dense x by begin, end and step in `params`, in `out` if given."""
    return put(out, x[_slices(x, params)].copy())


def _locate(numbers: np.ndarray, places: range) -> tuple[np.ndarray, np.ndarray]:
    """Return (position of each index within the range `places`, whether it is in the range), both [n]."""
    step, rest = np.divmod(numbers.astype(np.int64) - places.start, places.step)
    return step, (rest == 0) & (step >= 0) & (step < len(places))


def _slice_matrix(x, out=None, **params):
    """Return the slice of a csr, csc or coo matrix by begin, end and step in `params`, in its format.

    `out` is unused.
    """
    format, (rows, columns) = formats.get(x.format), ranges(x.shape, params)
    if x.format == "csr" and rows.step == 1:
        x, rows = _run_of_rows(x, rows), range(len(rows))
    coo = format.to_coo(x)
    row, in_rows = _locate(coo.row, rows)
    col, in_columns = _locate(coo.col, columns)
    kept = in_rows & in_columns
    kind = coo.row.dtype
    part = format.from_coo(
        Coo(row[kept].astype(kind), col[kept].astype(kind), coo.data[kept], (len(rows), len(columns)))
    )
    turned = min(rows.step, columns.step) < 0
    return stored.canonical(part) if turned else part


def _run_of_rows(x: Any, rows: range) -> Any:
    """Return the consecutive rows `rows` of a csr matrix, as csr over its memory; row pointers are new."""
    indptr = x.indptr[rows.start : rows.start + len(rows) + 1]
    if not len(rows):
        indptr = x.indptr[:1]
    own = slice(indptr[0], indptr[-1])
    return assemble("csr", indptr - indptr[0], x.indices[own], x.data[own], (len(rows), x.shape[1]))


def _slice_rows(x, out=None, **params):
    """Return the slice of a row_sparse x by begin, end and step in `params`, as row_sparse; a copy. `out` is unused."""
    rows = ranges(x.shape, params)[0]
    place, kept = _locate(x.indices, rows)
    values = x.values[kept][(slice(None), *_slices(x, params)[1:])]
    place, shape = place[kept], _slice_shape([x.shape], params)
    if rows.step < 0:
        place, values = place[::-1], values[::-1]
    return formats.RowSparse.assemble(np.ascontiguousarray(values).copy(), np.ascontiguousarray(place), shape)


def _unslice(head, like, out=None, **params):
    """Return the gradient of a slice of `like`, dense: `head` at the selected positions, zeros elsewhere.

    The positions are those of begin, end and step in `params`. In `out` if given.
    """
    out = np.empty(like.shape, head.dtype) if out is None else out
    out[...] = 0
    out[_slices(like, params)] = head
    return out


_PARTS = {"begin": REQUIRED, "end": REQUIRED, "step": None}

operator(
    "slice",
    _slice,
    _slice_shape,
    "From `begin` to `end`, in steps of `step`: lists with a number or None for each of the first axes, as in "
    "x[begin:end:step]. Every format is kept.",
    inputs=("x",),
    params=_PARTS,
    rules=(
        *(Rule((form,), form, _slice_matrix, COPIES) for form in MATRICES),
        Rule(("row_sparse",), "row_sparse", _slice_rows, COPIES),
    ),
    gradient=lambda head, output, inputs, params: (ops.slice_gradient(head, inputs[0], **params),),
    family="selection",
)
operator(
    "slice_gradient",
    _unslice,
    shape_of_last,
    "The gradient of `slice` towards an array of the shape of `like`: zeros around the head; dense.",
    inputs=("head", "like"),
    params=_PARTS,
    rules=of_dense_head("slice_gradient", _unslice, ANY),
    dtype=type_of_first,
    gradient=lambda head, output, inputs, params: (ops.slice(head, **params), None),
    unread=(1, None),
    family="selection",
)
