"""Elementwise operators of one array. Those with f(0) = 0 work on stored values, in every format.

The pattern of the result is that of the input, stored zeros included. The others have no rule for sparse formats.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from workbench import formats, ops
from workbench.ops import stored
from workbench.ops.contract import OpError, Rule, Shape, one_type, operator, real, same_shape
from workbench.ops.like import axes_of
from workbench.ops.spreading import through, times


def _rule(format: str, f: Callable) -> Rule:
    """Return the rule that applies `f` to the stored values of an array in `format`, which the result keeps."""
    return Rule((format,), format, lambda x, out=None: stored.map_stored(x, f), "numpy on the stored values")


def _keeping(name: str, f: Callable, gradient: Callable, doc: str, dtype: Callable = one_type) -> None:
    """Register the elementwise operator `name` with f(0) = 0, which keeps sparse formats; `doc` describes it.

    `gradient(head, x, output)` returns that of x, `dtype` the result's dtype.
    """
    rules = tuple(_rule(format, f) for format in stored.SPARSE)
    _register(name, f, gradient, doc, rules, dtype)


def _filling(name: str, f: Callable, gradient: Callable, doc: str, **more: Any) -> None:
    """Register the operator `name` with f(0) != 0, or not elementwise: its result is dense; `doc` describes it.

    `gradient(head, x, output, **params)` returns that of x; `more` are further fields of `Op`.
    """
    _register(name, f, gradient, doc, (), real, **more)


def _along_an_axis(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the shape of x; OpError if x is 0-d or has no axis params["axis"]."""
    if not shapes[0]:
        raise OpError("A single number has no axis; give an array of one dimension or more.")
    axes_of((params["axis"],), len(shapes[0]))
    return tuple(shapes[0])


def _register(name: str, f: Callable, gradient: Callable, doc: str, rules: tuple, dtype: Callable, **more: Any) -> None:
    """Register the operator `name` of one array, `f` on dense ones; `doc` describes it.

    `gradient(head, x, output, **params)` returns that of x; rules and dtype are as of `Op`, `more` further fields of
    it.
    """

    def gradients(head, output, inputs, params):
        """Return the gradient of x, inputs[0], as a one-element tuple, for the gradient `head` of `output`.

        `params` are those of the operator.
        """
        return (gradient(head, inputs[0], output, **params),)

    shape = _along_an_axis if "axis" in more.get("params", {}) else same_shape
    operator(name, f, shape, doc, inputs=("x",), rules=rules, dtype=dtype, gradient=gradients, family="unary", **more)


def _dense(x: Any) -> Any:
    """Return a gradient of any format as a dense array, by `ops.to_format`."""
    return ops.to_format(x, format="dense")


def _over(head: Any, x: Any) -> Any:
    """Return head / x, dense; positions that a sparse head does not store stay zero, also where x is zero."""
    return _dense(ops.stored_divide(head, x))


def _plus_one(x: Any) -> Any:
    """Return x + 1, dense."""
    return ops.add_scalar(x, scalar=1.0)


def _one_minus_square(x: Any) -> Any:
    """Return 1 - x ** 2, dense."""
    return _plus_one(ops.negative(ops.square(x)))


def _scale(x: Any, scalar: float) -> Any:
    """Return x * scalar in the format of x, by `ops.multiply_scalar`."""
    return ops.multiply_scalar(x, scalar=scalar)


def half_down(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Return a dense x rounded to the nearest integer, ties downwards, in `out` if given."""
    low, high = np.floor(x), np.ceil(x)
    result = np.where(x - low <= high - x, low, high)
    return result if out is None else _put(out, result)


def half_away(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Return a dense x rounded to the nearest integer, ties away from zero, in `out` if given."""
    whole = np.trunc(x)
    result = whole + np.where(np.abs(x - whole) >= 0.5, np.sign(x), 0).astype(x.dtype)
    return result if out is None else _put(out, result)


def _put(out: np.ndarray, result: np.ndarray) -> np.ndarray:
    """Copy `result` into `out` and return `out`."""
    np.copyto(out, result)
    return out


def _in_type_of_x(name: str) -> Callable:
    """Return the function `name` of `scipy.special` as (x, out), with results in the dtype of x, float16 too.

    SciPy's package is imported by the first call: it takes a tenth of the time in which a command starts.
    """

    @functools.cache
    def ufunc() -> Callable:
        """Return the ufunc of scipy.special, imported at the first call; cached."""
        import scipy.special

        return getattr(scipy.special, name)

    def dense(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return the function of dense x in the dtype of x, in `out` if given."""
        f = ufunc()
        if out is None or x.dtype == np.float16:
            result = np.asarray(f(x)).astype(x.dtype, copy=False)
            return result if out is None else _put(out, result)
        return f(x, out=out)

    return dense


sigmoid = _in_type_of_x("expit")


def relu(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Return max(x, 0) of a dense x, in `out` if given; NaN stays NaN."""
    return np.maximum(x, 0, out=out)


def rsqrt(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Return 1 / sqrt(x) of a dense x, in `out` if given."""
    return np.reciprocal(np.sqrt(x, out=out), out=out)


def softsign(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Return x / (1 + |x|) of a dense x, in `out` if given."""
    return np.divide(x, np.abs(x) + 1, out=out)


def softmax(x: np.ndarray, out: np.ndarray | None = None, axis: int = -1) -> np.ndarray:
    """Return exp(x) normalised to a sum of one along `axis`, in `out` if given; the maximum is subtracted first."""
    if not x.size:
        return x.copy() if out is None else out
    risen = np.exp(x - x.max(axis=axis, keepdims=True), out=out)
    return np.divide(risen, risen.sum(axis=axis, keepdims=True), out=risen)


def log_softmax(x: np.ndarray, out: np.ndarray | None = None, axis: int = -1) -> np.ndarray:
    """Return the logarithm of softmax of a dense x along `axis`, in `out` if given."""
    if not x.size:
        return x.copy() if out is None else out
    less = np.subtract(x, x.max(axis=axis, keepdims=True), out=out)
    return np.subtract(less, np.log(np.exp(less).sum(axis=axis, keepdims=True)), out=less)


def _zeros(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Return zeros of the shape and dtype of a dense x, in `out` if given."""
    return np.zeros_like(x) if out is None else _put(out, np.zeros((), x.dtype))


def _ones(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Return ones of the shape and dtype of a dense x, in `out` if given."""
    return np.ones_like(x) if out is None else _put(out, np.ones((), x.dtype))


def _sum_along(x: Any, axis: int) -> Any:
    """Return the sum of x along `axis`, which is kept with length one."""
    return ops.sum(x, axis=axis, keepdims=True)


def _nothing(head: Any, x: Any, output: Any, **params: Any) -> Any:
    """Return the zero gradient of a piecewise constant function, in the format of x: sparse formats store nothing.

    `head` and `output` are unused.
    """
    return ops.zeros_like(x)


# The gradient keeps the format of the input.
_keeping("abs", np.abs, lambda h, x, y: times(h, ops.sign(x)), "|x|")
_keeping("relu", relu, lambda h, x, y: times(h, ops.greater_scalar(x, scalar=0.0)), "max(x, 0)", dtype=real)
_keeping("sign", np.sign, lambda h, x, y: times(h, ops.zeros_like(x)), "-1, 0 or 1")
_keeping("negative", np.negative, lambda h, x, y: through(ops.negative, h), "-x")
_keeping("square", np.square, lambda h, x, y: times(h, _scale(x, 2.0)), "x * x", dtype=real)
_keeping("ceil", np.ceil, _nothing, "the next whole number above", dtype=real)
_keeping("floor", np.floor, _nothing, "the next whole number below", dtype=real)
_keeping("fix", np.trunc, _nothing, "the whole part, towards zero", dtype=real)
_keeping("trunc", np.trunc, _nothing, "the whole part, towards zero", dtype=real)
_keeping("rint", half_down, _nothing, "the nearest whole number, halves down: -2.5 gives -3, 2.5 gives 2", dtype=real)
_keeping("round", half_away, _nothing, "the nearest whole number, halves away from zero: 2.5 gives 3", dtype=real)
_keeping("identity", np.positive, lambda h, x, y: h, "x, a copy")
_keeping("stop_gradient", np.positive, _nothing, "x, through which no gradient flows")

# The gradient is dense, since it is other than zero where x is zero.
_keeping("make_loss", np.positive, lambda h, x, y: ops.ones_like(x), "x as a loss: its gradient is one")
_keeping("sin", np.sin, lambda h, x, y: ops.multiply(_dense(h), ops.cos(x)), "sin(x)", dtype=real)
_keeping("sinh", np.sinh, lambda h, x, y: ops.multiply(_dense(h), ops.cosh(x)), "sinh(x)", dtype=real)
_keeping("tan", np.tan, lambda h, x, y: ops.multiply(_dense(h), _plus_one(ops.square(y))), "tan(x)", dtype=real)
_keeping("tanh", np.tanh, lambda h, x, y: ops.multiply(_dense(h), _one_minus_square(y)), "tanh(x)", dtype=real)
_keeping("arcsin", np.arcsin, lambda h, x, y: _over(h, ops.sqrt(_one_minus_square(x))), "arcsin(x)", dtype=real)
_keeping("arcsinh", np.arcsinh, lambda h, x, y: _over(h, ops.sqrt(_plus_one(ops.square(x)))), "arcsinh(x)", dtype=real)
_keeping("arctan", np.arctan, lambda h, x, y: _over(h, _plus_one(ops.square(x))), "arctan(x)", dtype=real)
_keeping("arctanh", np.arctanh, lambda h, x, y: _over(h, _one_minus_square(x)), "arctanh(x)", dtype=real)
_keeping("expm1", np.expm1, lambda h, x, y: ops.multiply(_dense(h), _plus_one(y)), "exp(x) - 1", dtype=real)
_keeping("log1p", np.log1p, lambda h, x, y: _over(h, _plus_one(x)), "log(1 + x)", dtype=real)
_keeping("sqrt", np.sqrt, lambda h, x, y: _over(h, _scale(y, 2.0)), "the square root", dtype=real)
_keeping("cbrt", np.cbrt, lambda h, x, y: _over(h, _scale(ops.square(y), 3.0)), "the cube root", dtype=real)
_keeping("degrees", np.degrees, lambda h, x, y: _scale(_dense(h), 180 / np.pi), "radians to degrees", dtype=real)
_keeping("radians", np.radians, lambda h, x, y: _scale(_dense(h), np.pi / 180), "degrees to radians", dtype=real)

_filling("exp", np.exp, lambda h, x, y: ops.multiply(h, y), "exp(x)")
_filling("log", np.log, lambda h, x, y: _over(h, x), "the natural logarithm")
_filling("log2", np.log2, lambda h, x, y: _over(_scale(h, 1 / np.log(2)), x), "the logarithm to base 2")
_filling("log10", np.log10, lambda h, x, y: _over(_scale(h, 1 / np.log(10)), x), "the logarithm to base 10")
_filling("cos", np.cos, lambda h, x, y: _dense(ops.multiply(h, ops.negative(ops.sin(x)))), "cos(x)")
_filling("cosh", np.cosh, lambda h, x, y: _dense(ops.multiply(h, ops.sinh(x))), "cosh(x)")
_filling("arccos", np.arccos, lambda h, x, y: ops.negative(_over(h, ops.sqrt(_one_minus_square(x)))), "arccos(x)")
_filling(
    "arccosh",
    np.arccosh,
    lambda h, x, y: _over(h, ops.sqrt(ops.subtract_scalar(ops.square(x), scalar=1.0))),
    "arccosh(x), of x from one on",
)
_filling("rsqrt", rsqrt, lambda h, x, y: ops.multiply(h, _scale(ops.power_scalar(y, scalar=3.0), -0.5)), "1 / sqrt(x)")
_filling(
    "reciprocal", np.reciprocal, lambda h, x, y: ops.negative(ops.multiply(h, ops.square(y))), "1 / x, inf where x is 0"
)
_filling(
    "sigmoid",
    sigmoid,
    lambda h, x, y: ops.multiply(h, ops.multiply(y, ops.subtract_from_scalar(y, scalar=1.0))),
    "1 / (1 + exp(-x))",
)
_filling("softsign", softsign, lambda h, x, y: ops.divide(h, ops.square(_plus_one(ops.abs(x)))), "x / (1 + |x|)")
_filling(
    "erf",
    _in_type_of_x("erf"),
    lambda h, x, y: ops.multiply(h, _scale(ops.exp(ops.negative(ops.square(x))), 2 / np.sqrt(np.pi))),
    "the error function",
)
_filling(
    "softmax",
    softmax,
    lambda h, x, y, axis: ops.multiply(y, ops.subtract(h, _sum_along(ops.multiply(h, y), axis))),
    "exp(x), scaled to a sum of one along `axis`",
    params={"axis": -1},
)
_filling(
    "log_softmax",
    log_softmax,
    lambda h, x, y, axis: ops.subtract(h, ops.multiply(ops.exp(y), _sum_along(h, axis))),
    "the logarithm of softmax along `axis`",
    params={"axis": -1},
)
_filling("ones_like", _ones, _nothing, "ones, in the shape and type of x")


def _empty(x: Any, out: np.ndarray | None = None) -> Any:
    """Return an array of the format, shape and dtype of a sparse x without stored values; `out` is unused."""
    return formats.zeros(x.shape, x.format, x.dtype)


operator(
    "zeros_like",
    _zeros,
    same_shape,
    "Zeros, in shape, type and format of x; sparse formats store nothing.",
    rules=tuple(Rule((format,), format, _empty, "nothing stored") for format in stored.SPARSE),
    dtype=one_type,
    gradient=lambda head, output, inputs, params: (ops.zeros_like(inputs[0]),),
    family="unary",
)
