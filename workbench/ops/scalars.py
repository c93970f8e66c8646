"""Operators of an array and a number, the parameter `scalar`.

Whether zero stays zero depends on the number, which is known before anything runs: it is a condition of the rules.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from workbench import ops
from workbench.ops import stored
from workbench.ops.contract import REQUIRED, Rule, Shape, operator, real, same_shape
from workbench.ops.spreading import through, times

Condition = tuple[str, Callable[[float], bool]]
ALWAYS: Condition = ("", lambda s: True)
NEVER: Condition = ("", lambda s: False)


def _meaning(f: Callable) -> Callable:
    """Return `f(x, s)` as an operator's function (x, out, scalar) on dense arrays; s is a Python float.

    A NumPy scalar would widen the result.
    """

    def dense(x: np.ndarray, out: np.ndarray | None = None, scalar: float = 0.0) -> np.ndarray:
        """Return f(x, scalar) in the dtype of x, in `out` if given."""
        result = f(x, float(scalar))
        if out is None:
            return np.asarray(result).astype(x.dtype, copy=False)
        np.copyto(out, result, casting="unsafe")
        return out

    return dense


def _direct(ufunc: np.ufunc) -> Callable:
    """Return a function (x, out=None, scalar=0.0) that computes ufunc(x, scalar) for a dense array and a number."""

    def dense(x: np.ndarray, out: np.ndarray | None = None, scalar: float = 0.0) -> np.ndarray:
        """Return ufunc(x, scalar), in `out` if given."""
        return ufunc(x, float(scalar), out=out)

    return dense


def _keeping_rules(dense: Callable, condition: Condition) -> list[Rule]:
    """Return one rule for each sparse format, which the result keeps if the condition on the number holds.

    `condition` is (text, predicate of the number); `dense` computes the values.
    """
    words, holds = condition

    def when(shapes: Sequence[Shape], params: Mapping[str, Any]) -> bool:
        """Return whether zeros stay zeros with the number params["scalar"]; `shapes` is unused."""
        return bool(holds(params["scalar"]))

    def call(x: Any, out: np.ndarray | None = None, scalar: float = 0.0) -> Any:
        """Return `dense` of the stored values of x, in its format; `out` is unused."""
        return stored.map_stored(x, lambda values: dense(values, scalar=scalar))

    narrowed = None if condition is ALWAYS else when
    return [Rule((f,), f, call, "numpy on the stored values", narrowed, words) for f in stored.SPARSE]


def _register(
    name: str, dense: Callable, gradient: Callable, doc: str, keeps: Condition = NEVER, rules: Sequence[Rule] = ()
) -> None:
    """Register the operator `name` of one array and a number `scalar`; `dense` computes it on dense arrays.

    `gradient(head, x, output, scalar)` returns that of x; `doc` describes it; `keeps` is the condition under which
    sparse formats are kept, `rules` are further ones.
    """

    def gradients(head, output, inputs, params):
        """Return the gradient of x, inputs[0], as a one-element tuple, for the gradient `head` of `output`.

        params["scalar"] is the number.
        """
        return (gradient(head, inputs[0], output, params["scalar"]),)

    kept = [] if keeps is NEVER else _keeping_rules(dense, keeps)
    operator(
        name,
        dense,
        same_shape,
        doc,
        inputs=("x",),
        params={"scalar": REQUIRED},
        rules=(*kept, *rules),
        dtype=real,
        gradient=gradients,
        family="scalars",
    )


def _dense_rules(sign: int) -> list[Rule]:
    """Return one rule for each sparse format of x + sign * scalar, scalar not 0: dense result, no dense copy of x."""

    def call(x: Any, out: np.ndarray | None = None, scalar: float = 0.0) -> np.ndarray:
        """Return the dense array sign * scalar + x, in `out` if given."""
        return stored.onto_dense(np.asarray(sign * float(scalar), x.dtype), x, np.add, out)

    return [Rule((f,), "dense", call, "numpy onto a filled array", condition="scalar != 0") for f in stored.SPARSE]


def _scale(x: Any, scalar: float) -> Any:
    """Return x * scalar in the format of x, by `ops.multiply_scalar`."""
    return ops.multiply_scalar(x, scalar=scalar)


def _power_gradient(h: Any, x: Any, y: Any, s: float) -> Any:
    """Return the gradient of x for y = x ** s and the gradient h of y; zero if s is 0."""
    return times(h, _scale(ops.power_scalar(x, scalar=s - 1), s)) if s else ops.zeros_like(x)


def _maximum_gradient(h: Any, x: Any, y: Any, s: float) -> Any:
    """Return the gradient of x for y = maximum(x, s) and the gradient h of y: h where x >= s.

    By a comparison that is false at zero, so that sparse formats are kept.
    """
    if s <= 0:
        return ops.subtract(h, ops.multiply(h, ops.less_scalar(x, scalar=s)))
    return times(h, ops.greater_equal_scalar(x, scalar=s))


def _minimum_gradient(h: Any, x: Any, y: Any, s: float) -> Any:
    """Return the gradient of x for y = minimum(x, s) and the gradient h of y: h where x <= s.

    By a comparison that is false at zero, so that sparse formats are kept.
    """
    if s >= 0:
        return ops.subtract(h, ops.multiply(h, ops.greater_scalar(x, scalar=s)))
    return times(h, ops.less_equal_scalar(x, scalar=s))


def _hypot_gradient(h: Any, x: Any, y: Any, s: float) -> Any:
    """Return the gradient of x for y = sqrt(x**2 + s**2) and the gradient h of y: h * x / y."""
    return times(h, ops.sign(x)) if s == 0 else ops.divide(ops.multiply(h, x), y)


def _no_gradient(h: Any, x: Any, y: Any, s: float) -> Any:
    """Return a gradient of zero in the format of x, as of a comparison with a number; h, y and s are unused."""
    return ops.zeros_like(x)


ZERO: Condition = ("scalar == 0", lambda s: s == 0)
NOT_ZERO: Condition = ("scalar != 0", lambda s: s != 0)
OTHER_THAN_ZERO: Condition = ("scalar is a number other than 0", lambda s: abs(s) > 0)
ABOVE: Condition = ("scalar > 0", lambda s: s > 0)
BELOW: Condition = ("scalar < 0", lambda s: s < 0)
NOT_BELOW: Condition = ("scalar >= 0", lambda s: s >= 0)
NOT_ABOVE: Condition = ("scalar <= 0", lambda s: s <= 0)
UNSTORED = "; acts on stored values, so that an element that is not stored stays zero also for"

_register("add_scalar", _direct(np.add), lambda h, x, y, s: h, "x + scalar", ZERO, _dense_rules(1))
_register("subtract_scalar", _direct(np.subtract), lambda h, x, y, s: h, "x - scalar", ZERO, _dense_rules(-1))
_register(
    "multiply_scalar",
    _direct(np.multiply),
    lambda h, x, y, s: through(lambda head: _scale(head, s), h),
    f"x * scalar{UNSTORED} inf and NaN",
    ALWAYS,
)
_register(
    "divide_scalar",
    _direct(np.divide),
    lambda h, x, y, s: through(lambda head: ops.divide_scalar(head, scalar=s), h),
    f"x / scalar{UNSTORED} 0 and NaN",
    ALWAYS,
)
_register(
    "subtract_from_scalar",
    _meaning(lambda x, s: s - x),
    lambda h, x, y, s: through(ops.negative, h),
    "scalar - x",
    ZERO,
)
_register(
    "divide_into_scalar",
    _meaning(lambda x, s: s / x),
    lambda h, x, y, s: ops.negative(ops.multiply(h, ops.divide(y, x))),
    "scalar / x",
)
_register("power_scalar", _direct(np.power), _power_gradient, "x ** scalar", ABOVE)
_register(
    "scalar_power",
    _meaning(lambda x, s: np.power(s, x)),
    lambda h, x, y, s: ops.multiply(h, _scale(y, math.log(s) if s > 0 else math.nan)),
    "scalar ** x",
)
_register(
    "mod_scalar", _direct(np.mod), lambda h, x, y, s: h, "x mod scalar, with the sign of the scalar", OTHER_THAN_ZERO
)
_register(
    "scalar_mod",
    _meaning(lambda x, s: np.mod(s, x)),
    lambda h, x, y, s: ops.multiply(h, ops.negative(ops.floor(ops.divide_into_scalar(x, scalar=s)))),
    "scalar mod x, with the sign of x",
)
_register("maximum_scalar", _direct(np.maximum), _maximum_gradient, "the larger of x and scalar", NOT_ABOVE)
_register("minimum_scalar", _direct(np.minimum), _minimum_gradient, "the smaller of x and scalar", NOT_BELOW)
_register("hypot_scalar", _direct(np.hypot), _hypot_gradient, "sqrt(x**2 + scalar**2)", ZERO)

for _name, _f, _doc, _keeps in (
    ("equal", np.equal, "x == scalar", NOT_ZERO),
    ("not_equal", np.not_equal, "x != scalar", ZERO),
    ("greater", np.greater, "x > scalar", NOT_BELOW),
    ("greater_equal", np.greater_equal, "x >= scalar", ABOVE),
    ("less", np.less, "x < scalar", NOT_ABOVE),
    ("less_equal", np.less_equal, "x <= scalar", BELOW),
    ("logical_and", np.logical_and, "x and scalar are both other than zero", ALWAYS),
    ("logical_or", np.logical_or, "x or scalar is other than zero", ZERO),
    ("logical_xor", np.logical_xor, "one of x and scalar is other than zero", ZERO),
):
    _register(f"{_name}_scalar", _meaning(_f), _no_gradient, f"1 where {_doc}, else 0; in the type of x", _keeps)

for _name, _stored_f, _doc in (("add", np.add, "+"), ("subtract", np.subtract, "-")):
    _register(
        f"stored_{_name}_scalar",
        _direct(_stored_f),
        lambda h, x, y, s: ops.at_places_of(h, x, rows=True),
        f"x {_doc} scalar at the stored values; what is not stored stays zero. All of a dense array is stored.",
        ALWAYS,
    )
