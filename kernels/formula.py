"""Numbers and functions of formulas, which support Python's operators.

A formula is a Python function, written once. Called with plain floats it computes: that is the reference. Called with
`Float`s it emits code for their `Backend`: vector code for the CPU (`kernels.vector.operands`) or CUDA
(`kernels.gpu.updates`). The functions below accept both.

>>> def formula(w, g):
...     return w - 0.5 * clipped(g, 1.0)
>>> formula(1.0, 8.0)
0.5
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, final

import numpy as np


class Backend(ABC):
    """Emitter of the arithmetic of formulas. Operands are its own `Float`s or plain floats."""

    @abstractmethod
    def arithmetic(self, sign: str, one: "Float | float", other: "Float | float") -> "Float":
        """Emit `one` sign `other` and return the result; sign is one of + - * /."""

    @abstractmethod
    def compared(self, sign: str, one: "Float | float", other: "Float | float") -> "Truth":
        """Emit the comparison `one` sign `other`, sign one of < <= >; false if either is NaN."""

    @abstractmethod
    def chosen(self, condition: "Truth", one: "Float | float", other: "Float | float") -> "Float":
        """Emit the selection of `one` if the condition holds, else `other`; return the result."""

    @abstractmethod
    def called(self, function: str, *arguments: "Float | float") -> "Float":
        """Emit a call of sqrt, fabs, copysign or fma (which may round once or twice); return the result."""


@final
@dataclass(frozen=True)
class Truth:
    """Result of a comparison, as emitted by a backend."""

    backend: Backend
    value: Any


@final
@dataclass(frozen=True)
class Float:
    """A number emitted by a backend: one value, or one per lane of a vector."""

    backend: Backend
    value: Any

    def __add__(self, other: "Float | float") -> "Float":
        """Emit self + other; return the sum."""
        return self.backend.arithmetic("+", self, other)

    def __sub__(self, other: "Float | float") -> "Float":
        """Emit self - other; return the difference."""
        return self.backend.arithmetic("-", self, other)

    def __mul__(self, other: "Float | float") -> "Float":
        """Emit self * other; return the product."""
        return self.backend.arithmetic("*", self, other)

    def __truediv__(self, other: "Float | float") -> "Float":
        """Emit self / other; return the quotient."""
        return self.backend.arithmetic("/", self, other)

    def __rsub__(self, other: float) -> "Float":
        """Emit other - self; return the difference."""
        return self.backend.arithmetic("-", other, self)

    def __rtruediv__(self, other: float) -> "Float":
        """Emit other / self; return the quotient."""
        return self.backend.arithmetic("/", other, self)

    __radd__, __rmul__ = __add__, __mul__

    def __le__(self, other: "Float | float") -> Truth:
        """Emit the comparison self <= other; return its result, false if either is NaN."""
        return self.backend.compared("<=", self, other)

    def __lt__(self, other: "Float | float") -> Truth:
        """Emit the comparison self < other; return its result, false if either is NaN."""
        return self.backend.compared("<", self, other)

    def __gt__(self, other: "Float | float") -> Truth:
        """Emit the comparison self > other; return its result, false if either is NaN."""
        return self.backend.compared(">", self, other)

    def times_plus(self, factor: "Float", term: "Float") -> "Float":
        """Emit self * factor + term, rounded once if the processor has a fused multiply-add."""
        return self.backend.called("fma", self, factor, term)


def sqrt(x):
    """Return the square root of `x`, a float or array, NaN for a negative number; emit it for a `Float`."""
    return x.backend.called("sqrt", x) if isinstance(x, Float) else np.sqrt(x)


def magnitude(x):
    """Return |x| of a float or array; emit it for a `Float`."""
    return x.backend.called("fabs", x) if isinstance(x, Float) else np.abs(x)


def with_sign(x, sign):
    """Return |x| with the sign of `sign`; emitted if `sign` is a `Float`."""
    return sign.backend.called("copysign", x, sign) if isinstance(sign, Float) else np.copysign(x, sign)


def choose(condition, a, b):
    """Return `a` if the condition holds, else `b`; emit the selection if the condition is a `Truth`."""
    if isinstance(condition, Truth):
        return condition.backend.chosen(condition, a, b)
    return a if condition else b


def clipped(x, limit):
    """Return `x` limited to [-limit, limit], with limit >= 0; NaN stays NaN. Floats or `Float`s."""
    x = choose(limit < x, limit, x)
    return choose(x < 0.0 - limit, 0.0 - limit, x)


def sign(x):
    """Return 1.0 or -1.0 by the sign of x; x itself if it is zero or NaN. A float or a `Float`."""
    return choose(magnitude(x) > 0.0, with_sign(1.0, x), x)
