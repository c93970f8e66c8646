"""Numbers of a program that is being made: integers, and floats that are one value or a vector of them.

They take Python's operators, so that a formula written for plain floats works on a whole vector register as well: the
functions below accept both.
"""

from dataclasses import dataclass

import numpy as np
from llvmlite import ir

I64 = ir.IntType(64)


@dataclass(frozen=True)
class Int:
    """An integer, int64."""

    lane: object
    value: ir.Value

    def _binary(self, operation: str, other: "Int | int") -> "Int":
        other = other.value if isinstance(other, Int) else I64(other)
        return Int(self.lane, getattr(self.lane.builder, operation)(self.value, other))

    def __add__(self, other: "Int | int") -> "Int":
        return self._binary("add", other)

    def __sub__(self, other: "Int | int") -> "Int":
        return self._binary("sub", other)

    def __mul__(self, other: "Int | int") -> "Int":
        return self._binary("mul", other)

    def rounded_down(self, step: int) -> "Int":
        """The largest multiple of `step`, a power of two, that is not above it; it is not negative."""
        return self._binary("and_", -step)

    def least(self, other: "Int") -> "Int":
        """The smaller of two."""
        smaller = self.lane.builder.icmp_signed("<", self.value, other.value)
        return Int(self.lane, self.lane.builder.select(smaller, self.value, other.value))

    def to_float(self) -> "Float":
        """The nearest float of the lane's type."""
        return Float(self.lane, self.lane.builder.sitofp(self.value, self.lane.element))


@dataclass(frozen=True)
class Truth:
    """Whether a comparison holds, for each lane."""

    lane: object
    value: ir.Value


@dataclass(frozen=True)
class Float:
    """A float, or one for each lane of a vector; a single one next to a vector stands for all its lanes."""

    lane: object
    value: ir.Value

    @property
    def is_vector(self) -> bool:
        """Whether it has lanes."""
        return isinstance(self.value.type, ir.VectorType)

    def spread(self) -> "Float":
        """It in every lane of the tile."""
        return self if self.is_vector else Float(self.lane, self.lane.spread(self.value))

    def _matched(self, other: "Float | float") -> tuple[ir.Value, ir.Value]:
        if not isinstance(other, Float):
            other = Float(self.lane, ir.Constant(self.lane.element, float(other)))
        if self.is_vector == other.is_vector:
            return self.value, other.value
        return self.spread().value, other.spread().value

    def _binary(self, operation: str, other: "Float | float", swap: bool = False) -> "Float":
        pair = self._matched(other)
        return Float(self.lane, getattr(self.lane.builder, operation)(*(reversed(pair) if swap else pair)))

    def __add__(self, other: "Float | float") -> "Float":
        return self._binary("fadd", other)

    def __sub__(self, other: "Float | float") -> "Float":
        return self._binary("fsub", other)

    def __mul__(self, other: "Float | float") -> "Float":
        return self._binary("fmul", other)

    def __truediv__(self, other: "Float | float") -> "Float":
        return self._binary("fdiv", other)

    def __rsub__(self, other: float) -> "Float":
        return self._binary("fsub", other, swap=True)

    def __rtruediv__(self, other: float) -> "Float":
        return self._binary("fdiv", other, swap=True)

    __radd__, __rmul__ = __add__, __mul__

    def _compared(self, operation: str, other: "Float | float") -> Truth:
        return Truth(self.lane, self.lane.builder.fcmp_ordered(operation, *self._matched(other)))

    def __le__(self, other: "Float | float") -> Truth:
        return self._compared("<=", other)

    def __lt__(self, other: "Float | float") -> Truth:
        return self._compared("<", other)

    def __gt__(self, other: "Float | float") -> Truth:
        return self._compared(">", other)

    def call(self, name: str, *others: "Float") -> "Float":
        """LLVM's function of that name, such as sqrt, of this and others of the same type."""
        kind = self.value.type
        suffix = f"v{kind.count}f{self.lane.bits}" if self.is_vector else f"f{self.lane.bits}"
        function = self.lane.declare(f"llvm.{name}.{suffix}", kind, *[kind] * (1 + len(others)))
        return Float(self.lane, self.lane.builder.call(function, [self.value, *(other.value for other in others)]))

    def masked(self, bits: ir.Value) -> "Float":
        """It, or zero where the integer `bits` of its size is zero and not all ones."""
        builder, kind = self.lane.builder, bits.type
        if self.is_vector:
            bits = self.lane.spread(bits)
            kind = bits.type
        kept = builder.and_(builder.bitcast(self.value, kind), bits)
        return Float(self.lane, builder.bitcast(kept, self.value.type))

    def times_plus(self, factor: "Float", term: "Float") -> "Float":
        """self * factor + term, rounded once where the processor does that in one step."""
        return self.call("fmuladd", factor, term)


def sqrt(x):
    """The square root; NaN of a negative."""
    return x.call("sqrt") if isinstance(x, Float) else np.sqrt(x)


def magnitude(x):
    """The absolute value."""
    return x.call("fabs") if isinstance(x, Float) else np.abs(x)


def with_sign(x, sign):
    """|x| with the sign of `sign`, which is a vector if either is."""
    if not isinstance(sign, Float):
        return np.copysign(x, sign)
    _, magnitudes = sign._matched(x)
    return Float(sign.lane, magnitudes).call("copysign", sign)


def choose(condition, a, b):
    """`a` where the condition holds, else `b`, which is a vector if either is; `a` may be a plain number."""
    if not isinstance(condition, Truth):
        return a if condition else b
    otherwise, chosen = b._matched(a)
    return Float(b.lane, b.lane.builder.select(condition.value, chosen, otherwise))


def clipped(x, limit):
    """`x`, or where that is larger than `limit`, not negative, `limit` with its sign; NaN stays NaN."""
    x = choose(limit < x, limit, x)
    return choose(x < 0.0 - limit, 0.0 - limit, x)


def sign(x):
    """1.0 or -1.0, and x where that is zero or NaN."""
    return choose(magnitude(x) > 0.0, with_sign(1.0, x), x)
