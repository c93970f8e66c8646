"""Numbers and functions that formulas are written with: they take Python's operators.

A formula is a Python function, written once. Called with plain floats it computes: that is the reference. Called with
`Float`s it writes down what it does, in whatever their `Backend` writes: vector code for the CPU, which is that of
`kernels.vector.values`, or CUDA, which is that of `kernels.rules.cuda`. The functions below take both.

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
    """Writer of the arithmetic of formulas. Numbers that it is given are `Float`s of its own, or plain ones."""

    @abstractmethod
    def arithmetic(self, sign: str, one: "Float | float", other: "Float | float") -> "Float":
        """One of + - * / of two numbers."""

    @abstractmethod
    def compared(self, sign: str, one: "Float | float", other: "Float | float") -> "Truth":
        """One of < <= > of two numbers; false where either is NaN."""

    @abstractmethod
    def chosen(self, condition: "Truth", one: "Float | float", other: "Float | float") -> "Float":
        """The one number where the condition holds, else the other."""

    @abstractmethod
    def called(self, function: str, *arguments: "Float | float") -> "Float":
        """One of sqrt, fabs, copysign, and fma, which may round once or twice."""


@final
@dataclass(frozen=True)
class Truth:
    """Whether a comparison holds, as a backend has it."""

    backend: Backend
    value: Any


@final
@dataclass(frozen=True)
class Float:
    """A number that a backend writes down: one value, or one for each lane of a vector."""

    backend: Backend
    value: Any

    def __add__(self, other: "Float | float") -> "Float":
        return self.backend.arithmetic("+", self, other)

    def __sub__(self, other: "Float | float") -> "Float":
        return self.backend.arithmetic("-", self, other)

    def __mul__(self, other: "Float | float") -> "Float":
        return self.backend.arithmetic("*", self, other)

    def __truediv__(self, other: "Float | float") -> "Float":
        return self.backend.arithmetic("/", self, other)

    def __rsub__(self, other: float) -> "Float":
        return self.backend.arithmetic("-", other, self)

    def __rtruediv__(self, other: float) -> "Float":
        return self.backend.arithmetic("/", other, self)

    __radd__, __rmul__ = __add__, __mul__

    def __le__(self, other: "Float | float") -> Truth:
        return self.backend.compared("<=", self, other)

    def __lt__(self, other: "Float | float") -> Truth:
        return self.backend.compared("<", self, other)

    def __gt__(self, other: "Float | float") -> Truth:
        return self.backend.compared(">", self, other)

    def times_plus(self, factor: "Float", term: "Float") -> "Float":
        """self * factor + term, rounded once where the processor does that in one step."""
        return self.backend.called("fma", self, factor, term)


def sqrt(x):
    """The square root; NaN of a negative."""
    return x.backend.called("sqrt", x) if isinstance(x, Float) else np.sqrt(x)


def magnitude(x):
    """The absolute value."""
    return x.backend.called("fabs", x) if isinstance(x, Float) else np.abs(x)


def with_sign(x, sign):
    """|x| with the sign of `sign`."""
    return sign.backend.called("copysign", x, sign) if isinstance(sign, Float) else np.copysign(x, sign)


def choose(condition, a, b):
    """`a` where the condition holds, else `b`; either may be a plain number."""
    if isinstance(condition, Truth):
        return condition.backend.chosen(condition, a, b)
    return a if condition else b


def clipped(x, limit):
    """`x`, or where that is larger than `limit`, not negative, `limit` with its sign; NaN stays NaN."""
    x = choose(limit < x, limit, x)
    return choose(x < 0.0 - limit, 0.0 - limit, x)


def sign(x):
    """1.0 or -1.0, and x where that is zero or NaN."""
    return choose(magnitude(x) > 0.0, with_sign(1.0, x), x)
