"""Values of generated code: integers, and the backend that makes vector code of formulas."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from llvmlite import ir

from kernels.formula import Backend, Float, Truth

if TYPE_CHECKING:
    from kernels.vector.lanes import Lane

I64 = ir.IntType(64)

INSTRUCTIONS = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
FUNCTIONS = {"fma": "fmuladd"}
"""Functions that LLVM has under another name."""


@dataclass(frozen=True)
class Int:
    """An integer, int64."""

    lane: "Lane"
    value: ir.Value

    def _binary(self, operation: str, other: "Int | int") -> "Int":
        """Emit one integer instruction."""
        other = other.value if isinstance(other, Int) else I64(other)
        return Int(self.lane, getattr(self.lane.builder, operation)(self.value, other))

    def __add__(self, other: "Int | int") -> "Int":
        return self._binary("add", other)

    def __sub__(self, other: "Int | int") -> "Int":
        return self._binary("sub", other)

    def __mul__(self, other: "Int | int") -> "Int":
        return self._binary("mul", other)

    def over(self, other: "Int") -> "Int":
        """Return the quotient, rounded down; both are non-negative."""
        return self._binary("sdiv", other)

    def rounded_down(self, step: int) -> "Int":
        """Return the largest multiple of `step`, a power of two, that is at most this non-negative integer."""
        return self._binary("and_", -step)

    def least(self, other: "Int") -> "Int":
        """Return the smaller of two."""
        smaller = self.lane.builder.icmp_signed("<", self.value, other.value)
        return Int(self.lane, self.lane.builder.select(smaller, self.value, other.value))

    def to_float(self) -> Float:
        """Return the nearest float of the lane's type."""
        return self.lane.float(self.lane.builder.sitofp(self.value, self.lane.element))


@final
class Vectors(Backend):
    """LLVM instructions for the current tile of a lane; a scalar beside a vector is spread to every lane."""

    def __init__(self, lane: "Lane") -> None:
        self.lane = lane

    def _alike(self, *numbers: Float | float) -> list[ir.Value]:
        """Return values of one type: vectors if one of them is one."""
        constant = self.lane.element
        values = [n.value if isinstance(n, Float) else ir.Constant(constant, float(n)) for n in numbers]
        if any(map(_is_vector, values)):
            values = [value if _is_vector(value) else self.lane.spread(value) for value in values]
        return values

    def arithmetic(self, sign: str, one: Float | float, other: Float | float) -> Float:
        """Emit one instruction: the result of `one` sign `other`, sign one of + - * /."""
        return Float(self, getattr(self.lane.builder, INSTRUCTIONS[sign])(*self._alike(one, other)))

    def compared(self, sign: str, one: Float | float, other: Float | float) -> Truth:
        """Emit one ordered comparison, sign one of < <= >; false if either is NaN."""
        return Truth(self, self.lane.builder.fcmp_ordered(sign, *self._alike(one, other)))

    def chosen(self, condition: Truth, one: Float | float, other: Float | float) -> Float:
        """Emit one select instruction."""
        return Float(self, self.lane.builder.select(condition.value, *self._alike(one, other)))

    def called(self, function: str, *arguments: Float | float) -> Float:
        """Emit a call of LLVM's function."""
        values = self._alike(*arguments)
        kind, bits = values[0].type, self.lane.bits
        suffix = f"v{kind.count}f{bits}" if _is_vector(values[0]) else f"f{bits}"
        name = f"llvm.{FUNCTIONS.get(function, function)}.{suffix}"
        declared = self.lane.declare(name, kind, *[kind] * len(values))
        return Float(self, self.lane.builder.call(declared, values))

    def spread(self, number: Float) -> Float:
        """Return the number in every lane of the tile."""
        return number if _is_vector(number.value) else Float(self, self.lane.spread(number.value))

    def masked(self, number: Float, bits: ir.Value) -> Float:
        """Return the number, or zero if the integer `bits` of its size is zero and not all ones."""
        builder, kind = self.lane.builder, bits.type
        if _is_vector(number.value):
            bits = self.lane.spread(bits)
            kind = bits.type
        kept = builder.and_(builder.bitcast(number.value, kind), bits)
        return Float(self, builder.bitcast(kept, number.value.type))


def _is_vector(value: ir.Value) -> bool:
    """Return whether a value is a vector."""
    return isinstance(value.type, ir.VectorType)
