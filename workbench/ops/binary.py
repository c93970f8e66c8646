"""Elementwise operators of two arrays, of equal shapes or shapes that NumPy broadcasts, and sums of any number.

Rules exist for a sparse array of the shape of the result: with another in the same format, or with a dense one, which
may be broadcast. The gradient of a broadcast input is summed back to its shape.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from workbench import ops
from workbench.ops import stored
from workbench.ops.contract import ANY, OpError, Rule, Shape, broadcast_shape, one_type, operator, real, same_shape
from workbench.ops.like import dense_unless_alike
from workbench.ops.spreading import through, times

EQUAL = "equal shapes"
ON_STORED, ON_BOTH = "numpy on the stored values", "numpy on the union of what is stored"


def equal(shapes: Sequence[Shape], params: Mapping[str, Any]) -> bool:
    """Return whether both shapes are equal, as the condition of a rule; `params` is unused."""
    return shapes[0] == shapes[1]


def left_is_whole(shapes: Sequence[Shape], params: Mapping[str, Any]) -> bool:
    """Return whether the left input has the shape of the result, so that at most the right one is broadcast."""
    return equal(shapes, params) or broadcast_shape(shapes, params) == tuple(shapes[0])


def right_is_whole(shapes: Sequence[Shape], params: Mapping[str, Any]) -> bool:
    """Return whether the right input has the shape of the result, so that at most the left one is broadcast."""
    return left_is_whole(shapes[::-1], params)


def left_is_larger(shapes: Sequence[Shape], params: Mapping[str, Any]) -> bool:
    """Return whether the left input has the shape of the result and the right one another, so that it is broadcast."""
    return not equal(shapes, params) and left_is_whole(shapes, params)


def _dense_left(f: Callable, x: np.ndarray, y: Any, out: np.ndarray | None) -> np.ndarray:
    """Return f(x, y), dense, for dense x and sparse y without a dense copy of y; in `out` if given."""
    return stored.onto_dense(x, y, f, out)


def _dense_right(f: Callable, x: Any, y: np.ndarray, out: np.ndarray | None) -> np.ndarray:
    """Return x + y (f is np.add), or x - y as -y + x, dense, for sparse x and dense y; in `out` if given."""
    return stored.onto_dense(y, x, np.add, out, None if f is np.add else np.negative)


def both(f: Callable, condition: str = EQUAL) -> list[Rule]:
    """Return one rule for each sparse format: `f` over the union of the entries of two arrays of equal shape.

    Inputs and result have this format. Needs f(0, 0) = 0; `condition` describes the rule.
    """

    def call(x: Any, y: Any, out: np.ndarray | None = None) -> Any:
        """Return `f(x, y)` at every position that x or y stores, in their common format; `out` is unused."""
        return stored.union(x, y, f)

    return [Rule((form, form), form, call, ON_BOTH, equal, condition) for form in stored.SPARSE]


def _summing(f: Callable) -> list[Rule]:
    """Return rules for a dense plus or minus a sparse array, in both orders, with a dense result.

    `f` is np.add or subtract. The sparse array is not made dense.
    """
    kernel, rules = "numpy onto a copy of the dense one", []
    for form in stored.SPARSE:
        left = Rule(("dense", form), "dense", lambda x, y, out=None: _dense_left(f, x, y, out), kernel, right_is_whole)
        right = Rule((form, "dense"), "dense", lambda x, y, out=None: _dense_right(f, x, y, out), kernel, left_is_whole)
        rules += [left, right]
    return rules


def _at_stored(f: Callable, form: str, when: Callable | None, condition: str) -> Rule:
    """Return the rule for a sparse array in format `form` and a dense one: `f` at the stored positions, result sparse.

    `when(shapes, params)` restricts it, `condition` describes that.
    """

    def call(x: Any, y: np.ndarray, out: np.ndarray | None = None) -> Any:
        """Return `f(stored value, y)` at the positions of x, in the format of x; `out` is unused."""
        return stored.with_dense(x, y, f)

    return Rule((form, "dense"), form, call, ON_STORED, when, condition)


def _scaling() -> list[Rule]:
    """Return the rules of multiplication of a sparse by a dense array, in both orders; the sparse format is kept."""
    whole = "the sparse one not broadcast"
    left = [_at_stored(np.multiply, form, left_is_whole, whole) for form in stored.SPARSE]
    right = [
        Rule(
            ("dense", rule.result),
            rule.result,
            lambda x, y, out=None: stored.with_dense(y, x, np.multiply),
            ON_STORED,
            right_is_whole,
            whole,
        )
        for rule in left
    ]
    return [*left, *right]


def _register(
    name: str,
    f: Callable,
    gradient: Callable,
    doc: str,
    rules: Sequence[Rule] = (),
    dtype: Callable = real,
    with_number: tuple[str, str] | None = None,
) -> None:
    """Register the elementwise operator `name`, `f` on dense arrays, of two inputs that are broadcast.

    `gradient(head, x, y, output)` returns the gradients before they are summed to the inputs' shapes. `doc` describes
    it, `rules` are those of sparse formats, `dtype` its function of the dtypes, `with_number` names the operators for a
    number on the right and on the left.
    """

    def gradients(head, output, inputs, params):
        """Return the gradients of both `inputs` (x, y) for the gradient `head` of `output`, summed to their shapes.

        `params` is unused.
        """
        sides = gradient(head, *inputs, output)
        return tuple(ops.sum_to_shape_of(side, like) for side, like in zip(sides, inputs, strict=True))

    operator(
        name,
        f,
        broadcast_shape,
        doc,
        inputs=("x", "y"),
        rules=tuple(rules),
        dtype=dtype,
        gradient=gradients,
        with_number=with_number,
        family="binary",
    )


def _dense(*gradients: Any) -> tuple:
    """Return the gradients as a tuple, each converted to dense."""
    return tuple(ops.to_format(gradient, format="dense") for gradient in gradients)


def _multiply_gradient(h: Any, x: Any, y: Any, z: Any) -> tuple:
    """Return the gradients of z = x * y for the gradient h of z."""
    return dense_unless_alike(times(h, y), x), dense_unless_alike(times(h, x), y)


def _divide_gradient(h: Any, x: Any, y: Any, z: Any) -> tuple:
    """Return the gradients of z = x / y for the gradient h of z, both dense."""
    return _dense(ops.stored_divide(h, y), ops.negative(ops.stored_divide(ops.multiply(h, z), y)))


def _larger_gradient(h: Any, x: Any, y: Any, z: Any) -> tuple:
    """Return the gradients of z = maximum(x, y) for the gradient h of z, both dense; x gets it for ties."""
    return _dense(ops.multiply(h, ops.greater_equal(x, y)), ops.multiply(h, ops.less(x, y)))


def _smaller_gradient(h: Any, x: Any, y: Any, z: Any) -> tuple:
    """Return the gradients of z = minimum(x, y) for the gradient h of z, both dense; x gets it for ties."""
    return _dense(ops.multiply(h, ops.less_equal(x, y)), ops.multiply(h, ops.greater(x, y)))


def _hypot_gradient(h: Any, x: Any, y: Any, z: Any) -> tuple:
    """Return the gradients of z = hypot(x, y) for its gradient h, both dense.

    Zero if x = y = 0, where there is none.
    """
    above = ops.add(z, ops.equal_scalar(z, scalar=0.0))
    return _dense(ops.divide(ops.multiply(h, x), above), ops.divide(ops.multiply(h, y), above))


def _power_gradient(h: Any, x: Any, y: Any, z: Any) -> tuple:
    """Return the gradients of z = x ** y for its gradient h, both dense.

    Zero towards x if y = 0, towards y if x = 0.
    """
    lowered = ops.power(x, ops.subtract_scalar(ops.add(y, ops.equal_scalar(y, scalar=0.0)), scalar=1.0))
    logarithm = ops.log(ops.add(x, ops.equal_scalar(x, scalar=0.0)))
    return _dense(ops.multiply(h, ops.multiply(y, lowered)), ops.multiply(h, ops.multiply(z, logarithm)))


def _mod_gradient(h: Any, x: Any, y: Any, z: Any) -> tuple:
    """Return the gradients of z = x mod y for the gradient h of z, both dense."""
    return _dense(h, ops.negative(ops.multiply(h, ops.floor(ops.divide(x, y)))))


def scalars(right: str, left: str | None = None) -> tuple[str, str]:
    """Return the names of the operators with a number on the right and on the left (None: the same)."""
    return f"{right}_scalar", left or f"{right}_scalar"


_register(
    "add", np.add, lambda h, x, y, z: (h, h), "x + y", [*both(np.add), *_summing(np.add)], one_type, scalars("add")
)
_register(
    "subtract",
    np.subtract,
    lambda h, x, y, z: (h, through(ops.negative, h)),
    "x - y",
    [*both(np.subtract), *_summing(np.subtract)],
    one_type,
    scalars("subtract", "subtract_from_scalar"),
)
_register(
    "multiply",
    np.multiply,
    _multiply_gradient,
    "x * y; an element that a sparse input does not store stays zero, also where the other is inf or NaN",
    [*both(np.multiply), *_scaling()],
    one_type,
    scalars("multiply"),
)
_register(
    "divide",
    np.divide,
    _divide_gradient,
    "x / y; a sparse x over a dense y that is broadcast is divided where it is stored; elsewhere 0 / 0 stays zero",
    [_at_stored(np.divide, form, left_is_larger, "y broadcast") for form in stored.MATRICES],
    real,
    scalars("divide", "divide_into_scalar"),
)
_register("power", np.power, _power_gradient, "x ** y", with_number=scalars("power", "scalar_power"))
_register("mod", np.mod, _mod_gradient, "x mod y, with the sign of y", with_number=scalars("mod", "scalar_mod"))
_register(
    "maximum",
    np.maximum,
    _larger_gradient,
    "the larger one, NaN where one is",
    both(np.maximum),
    one_type,
    scalars("maximum"),
)
_register(
    "minimum",
    np.minimum,
    _smaller_gradient,
    "the smaller one, NaN where one is",
    both(np.minimum),
    one_type,
    scalars("minimum"),
)
_register("hypot", np.hypot, _hypot_gradient, "sqrt(x**2 + y**2)", both(np.hypot), real, scalars("hypot"))


def _truth(ufunc: np.ufunc) -> Callable:
    """Return a comparison `ufunc` as a function (x, y, out) with ones and zeros in the dtype of x."""

    def dense(x: np.ndarray, y: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return the comparison of dense x and y as 0 and 1 in the dtype of x, in `out` if given."""
        return ufunc(x, y, out=out) if out is not None else ufunc(x, y).astype(x.dtype)

    return dense


def _no_gradient(h: Any, x: Any, y: Any, z: Any) -> tuple:
    """Return gradients of zero for both inputs (x, y) of a comparison, in their formats; h and z are unused."""
    return ops.zeros_like(x), ops.zeros_like(y)


for _name, _f, _mirror, _sign, _keeps in (
    ("equal", np.equal, "equal", "x == y", False),
    ("not_equal", np.not_equal, "not_equal", "x != y", True),
    ("greater", np.greater, "less", "x > y", True),
    ("greater_equal", np.greater_equal, "less_equal", "x >= y", False),
    ("less", np.less, "greater", "x < y", True),
    ("less_equal", np.less_equal, "greater_equal", "x <= y", False),
    ("logical_and", np.logical_and, "logical_and", "both are other than zero", True),
    ("logical_or", np.logical_or, "logical_or", "one is other than zero", True),
    ("logical_xor", np.logical_xor, "logical_xor", "one of the two is other than zero", True),
):
    _meaning = _truth(_f)
    _register(
        _name,
        _meaning,
        _no_gradient,
        f"1 where {_sign}, else 0; in the type of the inputs",
        both(_meaning) if _keeps else (),
        one_type,
        scalars(_name, f"{_mirror}_scalar"),
    )


def _sum_of_dense(*arrays: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Return the sum of one or more dense arrays of one shape as a new array, in `out` if given."""
    total = np.positive(arrays[0], out=out)
    for array in arrays[1:]:
        total = np.add(total, array, out=total if isinstance(total, np.ndarray) else None)
    return total


def _sum_of_sparse(*arrays: Any, out: np.ndarray | None = None) -> Any:
    """Return the sum of sparse arrays of one format, in that format; `out` is unused."""
    if len(arrays) == 1:
        return stored.map_stored(arrays[0], np.positive)
    total, *others = arrays
    for array in others:
        total = stored.union(total, array, np.add)
    return total


def _sum_onto_dense(*arrays: Any, out: np.ndarray | None = None) -> np.ndarray:
    """Return the sum of dense and sparse arrays, dense, in `out` (overwritten) if given."""
    if out is None:
        out = np.empty(arrays[0].shape, arrays[0].dtype)
    out[...] = 0
    for array in arrays:
        if isinstance(array, np.ndarray):
            np.add(out, array, out=out)
        else:
            stored.onto_dense(out, array, np.add, out)
    return out


operator(
    "add_n",
    _sum_of_dense,
    same_shape,
    "The sum of any number of arrays of one shape.",
    rules=(
        *(Rule((form, ...), form, _sum_of_sparse, ON_BOTH) for form in stored.SPARSE),
        Rule((ANY, ...), "dense", _sum_onto_dense, "numpy onto a dense one", None, "one is dense", needs="dense"),
    ),
    dtype=one_type,
    gradient=lambda head, output, inputs, params: (head,) * len(inputs),
    family="sums",
)


def _like_shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the shape of `like`; OpError if it does not broadcast to that of x. `shapes` are those of (x, like).

    `params` is unused.
    """
    x, like = shapes
    tail = x[len(x) - len(like) :]
    if len(like) > len(x) or any(small not in (1, large) for small, large in zip(like, tail, strict=True)):
        raise OpError(f"An array of shape {x} cannot be summed to {like}, since {like} does not broadcast to it.")
    return like


def _sum_to(x: np.ndarray, like: Any, out: np.ndarray | None = None) -> np.ndarray:
    """Return dense x summed to the shape of `like`, over the axes along which that would be broadcast.

    In `out` if given; x itself, not a copy, if the shapes are equal and `out` is None.
    """
    if x.shape == like.shape:
        return x if out is None else np.positive(x, out=out)
    lead = x.ndim - like.ndim
    if out is not None and like.shape == x.shape[lead:]:
        of_rows: Any = 0 if lead == 1 else tuple(range(lead))
        return np.add.reduce(x, of_rows, x.dtype, out=out)
    axes = tuple(range(lead)) + tuple(
        lead + axis for axis, length in enumerate(like.shape) if length == 1 != x.shape[lead + axis]
    )
    total = np.asarray(x.sum(axis=axes, keepdims=True, dtype=x.dtype)).reshape(like.shape)
    if out is None:
        return total
    np.copyto(out, total)
    return out


def _as_it_is(x: Any, like: Any, out: np.ndarray | None = None) -> Any:
    """Return x itself, which has the shape of `like`; a copy in `out` if given."""
    return x if out is None else np.positive(x, out=out)


operator(
    "sum_to_shape_of",
    _sum_to,
    _like_shape,
    "x summed over the axes along which `like` would be broadcast to it; x itself, not a copy, where the shapes are"
    " equal. Of `like` only the shape is read.",
    rules=(
        *(
            Rule((form, ANY), form, _as_it_is, "nothing to do", equal, "equal shapes")
            for form in ("dense", *stored.SPARSE)
        ),
        Rule(("dense", ANY), "dense", _sum_to, "numpy"),
    ),
    dtype=lambda dtypes, params: dtypes[0],
    gradient=lambda head, output, inputs, params: (ops.add(ops.zeros_like(inputs[0]), head), None),
    unread=(1, None),
    family="sums",
)


def _quotient(x: Any, y: Any, out: np.ndarray | None = None) -> Any:
    """Return x / y at the stored positions of a sparse x, in its format; y has any format. `out` is unused."""
    return stored.with_dense(x, y, np.divide) if isinstance(y, np.ndarray) else stored.with_any(x, y, np.divide)


def _quotient_shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the shape of the dividend; OpError if the divisor does not broadcast to it."""
    if broadcast_shape(shapes, params) != tuple(shapes[0]):
        raise OpError(f"An array of shape {tuple(shapes[0])} cannot be divided where it is stored by a larger one.")
    return tuple(shapes[0])


def _quotient_gradient(head: Any, output: Any, inputs: Sequence[Any], params: Mapping[str, Any]) -> tuple:
    """Return the gradients of the `inputs` (x, y) of `stored_divide` for the gradient `head` of `output`.

    That of x has its stored positions, that of y is dense; `params` is unused.
    """
    x, y = inputs
    head = ops.at_places_of(head, x, rows=True)
    towards_y = ops.negative(ops.stored_divide(ops.multiply(head, output), y))
    return ops.stored_divide(head, y), ops.sum_to_shape_of(ops.to_format(towards_y, format="dense"), y)


operator(
    "stored_divide",
    np.divide,
    _quotient_shape,
    "x / y where x is stored; what x does not store stays zero, also where y is zero. All of a dense x is stored; "
    "y may be broadcast to it.",
    inputs=("x", "y"),
    rules=(
        *(Rule((form, "dense"), form, _quotient, ON_STORED) for form in stored.SPARSE),
        *(Rule((form, ANY), form, _quotient, ON_STORED, equal, EQUAL) for form in stored.SPARSE),
    ),
    dtype=real,
    gradient=_quotient_gradient,
    family="sums",
)
