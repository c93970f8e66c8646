"""Selection and concatenation: where, concat, clip. Results share no memory with the inputs.

>>> import numpy as np
>>> from workbench import ops
>>> x = ops.to_format(np.float32([[0, 1, 0], [2, 0, 3]]), format="csr")
>>> ops.concat(x, x, axis=1).shape, ops.clip(x, low=0, high=2).data.tolist()
((2, 6), [1.0, 2.0, 2.0])
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workbench import formats, ops
from workbench.formats.compressed import kept_or_widened
from workbench.formats.contract import Coo
from workbench.ops import fallback, stored
from workbench.ops.contract import ANY, REQUIRED, OpError, Rule, Shape, broadcast_shape, one_type, operator
from workbench.ops.like import as_dense, put, type_of_first

MATRICES = ("csr", "csc", "coo")
SPARSE = (*MATRICES, "row_sparse")
COPIES = "numpy: what is stored is copied"


def _dense_head(head: Any) -> Any:
    """Return `head`, the gradient of the result, as a dense array, by `ops.to_format`."""
    return ops.to_format(head, format="dense")


def _where(condition, x, y, out=None):
    """Return x where the dense condition is not 0, else y, in `out` if given; inputs are broadcast."""
    return put(out, np.where(condition != 0, x, y))


def _where_stored(condition, x, y, out=None):
    """Return a copy of dense y, overwritten by dense x where the sparse condition stores a nonzero value.

    All three have one shape. In `out` if given.
    """
    out = put(np.empty(y.shape, y.dtype) if out is None else out, y)
    if isinstance(condition, formats.RowSparse):
        rows = condition.indices
        out[rows] = np.where(condition.values != 0, x[rows], y[rows])
        return out
    condition = stored.canonical(condition)
    chosen = tuple(place[condition.data != 0] for place in stored.places(condition))
    out[chosen] = x[chosen]
    return out


def _equal_shapes(shapes: Sequence[Shape], params: Mapping[str, Any]) -> bool:
    """Return whether all shapes are equal, as the condition of a rule; `params` is unused."""
    return len(set(map(tuple, shapes))) == 1


def _where_gradient(head, output, inputs, params):
    """Return the gradients (zero of the condition, of x, of y) of the `inputs`, summed to their shapes.

    `head` is the gradient of the result; `output` and `params` are unused.
    """
    condition, x, y = inputs
    head = _dense_head(head)
    none = ops.zeros_like(head)
    sides = ops.where(condition, head, none), ops.where(condition, none, head)
    return (
        ops.zeros_like(condition),
        *(ops.sum_to_shape_of(side, like) for side, like in zip(sides, (x, y), strict=True)),
    )


where = operator(
    "where",
    _where,
    broadcast_shape,
    "x where the condition is not zero, else y. A sparse condition is read where it is stored.",
    rules=tuple(
        Rule((form, "dense", "dense"), "dense", _where_stored, COPIES, _equal_shapes, "equal shapes") for form in SPARSE
    ),
    dtype=lambda dtypes, params: one_type(dtypes[1:], params),
    gradient=_where_gradient,
    family="selection",
)


def _axis(shape: Shape, params: Mapping[str, Any]) -> int:
    """Return the parameter `axis` as non-negative. Raises OpError if the shape has no such axis."""
    axis = params["axis"]
    if not isinstance(axis, int | np.integer) or not -len(shape) <= axis < len(shape):
        raise OpError(f"axis is {axis!r}; an array of shape {tuple(shape)} has the axes 0 to {len(shape) - 1}.")
    return int(axis) % len(shape)


def _concat_shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the result shape of concat; OpError if shapes differ other than along the axis params["axis"]."""
    first, axis = list(shapes[0]), _axis(shapes[0], params)
    for shape in shapes:
        others = [list(one[:axis]) + list(one[axis + 1 :]) for one in (shape, first)]
        if len(shape) != len(first) or others[0] != others[1]:
            raise OpError(f"Arrays of shapes {', '.join(map(str, shapes))} cannot be put together along axis {axis}.")
    return (*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])


def _concat(*arrays, out=None, axis=0):
    """Return dense arrays joined along `axis`, in `out` if given."""
    return put(out, np.concatenate(arrays, axis=axis))


def _concat_matrices(*arrays, out=None, axis=0):
    """Return csr, csc or coo matrices of one format joined along `axis`, in that format; `out` is unused."""
    axis, format = axis % 2, formats.get(arrays[0].format)
    shape = _concat_shape([x.shape for x in arrays], {"axis": axis})
    coos = [format.to_coo(x) for x in arrays]
    kind = kept_or_widened(np.result_type(*(coo.row.dtype for coo in coos)), *shape, sum(x.data.size for x in arrays))
    starts = np.cumsum([0, *(x.shape[axis] for x in arrays)])
    numbers = [[coo.row.astype(kind) for coo in coos], [coo.col.astype(kind) for coo in coos]]
    numbers[axis] = [number + kind.type(start) for number, start in zip(numbers[axis], starts, strict=False)]
    row, col = map(np.concatenate, numbers)
    return format.from_coo(Coo(row, col, np.concatenate([coo.data for coo in coos]), shape))


def _concat_rows(*arrays, out=None, axis=0):
    """Return row_sparse arrays joined along `axis`, as row_sparse; other axes than 0 store the union of the rows.

    `out` is unused.
    """
    shape = _concat_shape([x.shape for x in arrays], {"axis": axis})
    if axis % len(shape) == 0:
        starts = np.cumsum([0, *(x.shape[0] for x in arrays)])
        indices = np.concatenate([x.indices + start for x, start in zip(arrays, starts, strict=False)])
        return formats.RowSparse.assemble(np.concatenate([x.values for x in arrays]), indices, shape)
    indices = np.unique(np.concatenate([x.indices for x in arrays]))
    wide = []
    for x in arrays:
        values = np.zeros((indices.size, *x.shape[1:]), x.dtype)
        values[np.searchsorted(indices, x.indices)] = x.values
        wide.append(values)
    return formats.RowSparse.assemble(np.concatenate(wide, axis=axis), indices, shape)


def _concat_gradient(head, output, inputs, params):
    """Return the part of `head` that belongs to each of the `inputs` joined along params["axis"], as a tuple.

    `output` is unused.
    """
    axis = params["axis"]
    return tuple(ops.part_of_concat(head, *inputs, axis=axis, place=place) for place in range(len(inputs)))


def _part_shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the shape of array number `place`, shapes[1 + place]; OpError if parameters or ranks do not fit."""
    _axis(shapes[0], params)
    if len(set(map(len, shapes))) > 1:
        raise OpError(f"Arrays of shapes {', '.join(map(str, shapes[1:]))} were not put together to {shapes[0]}.")
    if not 0 <= params["place"] < len(shapes) - 1:
        raise OpError(f"place is {params['place']}; there are {len(shapes) - 1} arrays, counted from 0.")
    return tuple(shapes[1 + params["place"]])


def _part(head, *arrays, out=None, axis=0, place=REQUIRED):
    """Return the part of head, the gradient of a concatenation along `axis`, that belongs to arrays[place].

    A dense copy, in `out` if given; making a sparse head dense is reported as a densification.
    """
    axis = axis % len(head.shape)
    start = sum(x.shape[axis] for x in arrays[:place])
    window = [slice(None)] * len(head.shape)
    window[axis] = slice(start, start + arrays[place].shape[axis])
    if not isinstance(head, np.ndarray):
        fallback.report("part_of_concat", (head.format,), (head,))
    return put(out, as_dense(head)[tuple(window)].copy())


def _part_gradient(head, output, inputs, params):
    """Return (gradient of inputs[0], None for each array): the head at params["place"], zeros at other parts.

    `output` is unused.
    """
    parts = [_dense_head(ops.zeros_like(x)) for x in inputs[1:]]
    parts[params["place"]] = head
    return ops.concat(*parts, axis=params["axis"]), *(None for _ in parts)


operator(
    "concat",
    _concat,
    _concat_shape,
    "The arrays one after the other along `axis`. Those of one sparse format keep it.",
    rules=(
        *(Rule((form, ...), form, _concat_matrices, COPIES) for form in MATRICES),
        Rule(("row_sparse", ...), "row_sparse", _concat_rows, COPIES),
    ),
    gradient=_concat_gradient,
    family="selection",
)
operator(
    "part_of_concat",
    _part,
    _part_shape,
    "The part of a gradient that belongs to the array number `place` of those put together; dense.",
    rules=(Rule((ANY, ...), "dense", _part),),
    dtype=type_of_first,
    gradient=_part_gradient,
    unread=(1, None),
    family="selection",
)


def _clip(x, out=None, low=REQUIRED, high=REQUIRED):
    """Return a dense x limited to [low, high] in its dtype, in `out` if given."""
    if x.dtype.kind != "f":  # a bound beyond what the type holds is none
        limits = np.iinfo(x.dtype)
        low, high = int(max(low, limits.min)), int(min(high, limits.max))
    return np.clip(x, x.dtype.type(low), x.dtype.type(high), out=out)


def _clip_type(dtypes: Sequence[np.dtype], params: Mapping[str, Any]) -> np.dtype:
    """Return the dtype of x, to which bounds must fit: OpError for fractional bounds of integers, or none in range.

    None in range means that params["low"] is above the largest value of the dtype or params["high"] below the least.
    """
    dtype = one_type(dtypes, params)
    if dtype.kind == "f":
        return dtype
    limits = np.iinfo(dtype)
    if params["low"] > limits.max or params["high"] < limits.min:
        raise OpError(
            f"low is {params['low']} and high {params['high']}; {dtype} goes from {limits.min} to {limits.max}."
        )
    for name in ("low", "high"):
        if math.isfinite(params[name]) and params[name] != math.floor(params[name]):
            raise OpError(f"{name} is {params[name]}, which {dtype} does not hold; give a whole number, or cast x.")
    return dtype


def _clip_shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the shape of the input; OpError unless params["low"] <= params["high"]."""
    if not params["low"] <= params["high"]:
        raise OpError(f"low is {params['low']} and high {params['high']}; low must not be above high.")
    return tuple(shapes[0])


def _keeps_zero(shapes: Sequence[Shape], params: Mapping[str, Any]) -> bool:
    """Return whether params["low"] <= 0 <= params["high"], so that sparse formats are kept; `shapes` is unused."""
    return params["low"] <= 0 <= params["high"]


def _within(x, out=None, low=REQUIRED, high=REQUIRED):
    """Return 1 where the dense x is within [low, high], else 0, in its dtype, in `out` if given."""
    return put(out, ((x >= low) & (x <= high)).astype(x.dtype))


def _within_stored(x, out=None, low=0.0, high=0.0):
    """Return 1 where the sparse x is within [low, high], else 0, dense, in `out` if given."""
    is_in = float(low <= 0 <= high)
    ground = np.broadcast_to(np.asarray(is_in, x.dtype), x.shape)
    return stored.onto_dense(ground, x, lambda _, values: _within(values, None, low, high), out)


operator(
    "clip",
    _clip,
    _clip_shape,
    "x, at least `low` and at most `high`. A sparse x keeps its format where zero lies between them.",
    rules=(
        *(
            Rule(
                (form,),
                form,
                lambda x, out=None, low=0, high=0: stored.map_stored(x, lambda values: _clip(values, None, low, high)),
                "numpy on the stored values",
                _keeps_zero,
                "low <= 0 <= high",
            )
            for form in SPARSE
        ),
        *(
            Rule(
                (form,),
                "dense",
                condition="otherwise",
                refusal="zero is outside of low to high, so every element would be stored. Convert with to_format "
                "to dense first.",
            )
            for form in SPARSE
        ),
    ),
    dtype=_clip_type,
    gradient=lambda head, output, inputs, params: (
        ops.multiply(_dense_head(head), ops.is_within(inputs[0], **params)),
    ),
    family="selection",
)
operator(
    "is_within",
    _within,
    _clip_shape,
    "1 where x lies from `low` to `high`, else 0; dense.",
    rules=tuple(Rule((form,), "dense", _within_stored, "numpy on the stored values") for form in SPARSE),
    dtype=one_type,
    gradient=lambda head, output, inputs, params: (ops.zeros_like(inputs[0]),),
    family="selection",
)
