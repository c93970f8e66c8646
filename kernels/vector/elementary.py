"""Elementary functions of one value in a form that LLVM turns into vector code; for use inside compiled functions.

Numba calls the scalar math library for exp and log, which keeps a loop from being vectorised. For float32 the functions
here are polynomials, 14 times faster in a loop; for float64 they call the math library. Errors are those measured over
all float32 values of the range.
"""

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

_FLAGS: Any = {"error_model": "numpy", "fastmath": {"contract", "nsz"}, "no_cfunc_wrapper": True}

EXP_SMALLEST = np.float32(-87.33654)
"""Below it exp is less than the smallest normal float32, and the result is zero."""
_LOG2_E = np.float32(1.44269504)
_LN2_HIGH = np.float32(0.693359375)
_LN2_LOW = np.float32(-2.12194440e-4)
_ROUND = np.float32(1.5 * 2**23)
"""Added to a float32 it leaves the nearest integer in the lowest bits."""
_ROUND_BITS = int(_ROUND.view(np.int32))
# Cephes expf, https://www.netlib.org/cephes: exp(r) = 1 + r + r^2 * polynomial for |r| <= ln(2) / 2
_E0, _E1, _E2 = np.float32(1.9875691500e-4), np.float32(1.3981999507e-3), np.float32(8.3334519073e-3)
_E3, _E4, _E5 = np.float32(4.1665795894e-2), np.float32(1.6666665459e-1), np.float32(5.0000001201e-1)
# atanh(s) = s + s^3/3 + s^5/5 + ...: with s <= 1/3 the first term left out is below 1e-8 of the sum
_A3, _A5, _A7 = np.float32(1 / 3), np.float32(1 / 5), np.float32(1 / 7)
_A9, _A11, _A13 = np.float32(1 / 9), np.float32(1 / 11), np.float32(1 / 13)


def exp_of_negative(x: float) -> float:
    """Return exp(x) for x <= 0; compiled float32: within 9e-8 relative, zero below `EXP_SMALLEST`; NaN stays NaN."""
    return math.exp(x)


def log1p_of_unit(u: float) -> float:
    """Return log(1 + u) for 0 <= u <= 1; compiled float32: within 1.8e-7 relative for normal u; NaN stays NaN."""
    return math.log1p(u)


@overload(exp_of_negative, jit_options=_FLAGS)
def _exp_of_negative(x):  # without type hints: Numba compares its signature with that of the compiled function
    """Return the implementation of `exp_of_negative` for a Numba type: a polynomial for float32, else `math.exp`."""
    if x != types.float32:
        return lambda x: math.exp(x)

    def exp32(x):
        """Return exp(x) of a float32 x <= 0 by a polynomial; 0 below `EXP_SMALLEST`."""
        rounded = np.float32(x * _LOG2_E + _ROUND)
        n = rounded - _ROUND
        r = (x - n * _LN2_HIGH) - n * _LN2_LOW
        p = ((((_E0 * r + _E1) * r + _E2) * r + _E3) * r + _E4) * r + _E5
        p = p * r * r + r + np.float32(1)
        power = np.int32((rounded.view(np.int32) - _ROUND_BITS + 127) << 23).view(np.float32)
        return np.float32(0) if x < EXP_SMALLEST else p * power

    return exp32


@overload(log1p_of_unit, jit_options=_FLAGS)
def _log1p_of_unit(u):
    """Return the implementation of `log1p_of_unit` for a Numba type: a polynomial for float32, else `math.log1p`."""
    if u != types.float32:
        return lambda u: math.log1p(u)

    def log1p32(u):
        """Return log(1 + u) of a float32 in [0, 1] by a polynomial."""
        s = u / (np.float32(2) + u)
        y = s * s
        p = ((((_A13 * y + _A11) * y + _A9) * y + _A7) * y + _A5) * y + _A3
        return np.float32(2) * (s + s * y * p)

    return log1p32


@intrinsic
def maximum(typingctx, a, b):
    """Return the larger of two floats in compiled code, NaN if either is; unlike `max` it vectorises in a loop."""

    def code(context, builder, signature, args):
        """Emit a call of LLVM's maximum of the two LLVM values `args`; parameters as of Numba's code generators."""
        kind = context.get_value_type(signature.return_type)
        declared = builder.module.declare_intrinsic("llvm.maximum", [kind], ir.FunctionType(kind, [kind, kind]))
        return builder.call(declared, args)

    return a(a, a), code
