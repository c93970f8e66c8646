"""Stand-ins for the arguments of generated code: arrays, their elements and rows, floats and integers."""

import copy
import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from llvmlite import ir
from numba import types

from kernels import bounds
from kernels._compat.numba_internals import cgutils
from kernels.formula import Backend, Float, Truth
from kernels.vector.tiles import LINE, gathers_by_loads

# Values of generated code: integers, and the backend that makes vector code of formulas.


if TYPE_CHECKING:
    from kernels.vector.lanes import Lane


INSTRUCTIONS = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
FUNCTIONS = {"fma": "fmuladd"}
"""Functions that LLVM has under another name."""


@dataclass(frozen=True)
class Int:
    """An integer, int64."""

    lane: "Lane"
    value: ir.Value

    def _binary(self, operation: str, other: "Int | int") -> "Int":
        """Emit the LLVM instruction `operation`, such as "add", on this integer and `other`; return its result."""
        other = other.value if isinstance(other, Int) else I64(other)
        return Int(self.lane, getattr(self.lane.builder, operation)(self.value, other))

    def __add__(self, other: "Int | int") -> "Int":
        """Emit self + other, int64 that wraps around; return the sum."""
        return self._binary("add", other)

    def __sub__(self, other: "Int | int") -> "Int":
        """Emit self - other, int64 that wraps around; return the difference."""
        return self._binary("sub", other)

    def __mul__(self, other: "Int | int") -> "Int":
        """Emit self * other, int64 that wraps around; return the product."""
        return self._binary("mul", other)

    def over(self, other: "Int") -> "Int":
        """Emit the quotient self / other, rounded down; both must be non-negative and `other` not zero."""
        return self._binary("sdiv", other)

    def rounded_down(self, step: int) -> "Int":
        """Emit the largest multiple of `step`, a power of two, that is at most this non-negative integer."""
        return self._binary("and_", -step)

    def least(self, other: "Int") -> "Int":
        """Emit the smaller of this integer and `other`, compared as signed."""
        smaller = self.lane.builder.icmp_signed("<", self.value, other.value)
        return Int(self.lane, self.lane.builder.select(smaller, self.value, other.value))

    def to_float(self) -> Float:
        """Emit the conversion to the nearest float of the lane's element type."""
        return self.lane.float(self.lane.builder.sitofp(self.value, self.lane.element))


@final
class Vectors(Backend):
    """LLVM instructions for the current tile of a lane; a scalar next to a vector is spread to every lane."""

    def __init__(self, lane: "Lane") -> None:
        self.lane = lane

    def _broadcast(self, *numbers: Float | float) -> list[ir.Value]:
        """Return the numbers as LLVM values of one type: all spread to vectors if one of them is a vector."""
        constant = self.lane.element
        values = [n.value if isinstance(n, Float) else ir.Constant(constant, float(n)) for n in numbers]
        if any(map(_is_vector, values)):
            values = [value if _is_vector(value) else self.lane.spread(value) for value in values]
        return values

    def arithmetic(self, sign: str, one: Float | float, other: Float | float) -> Float:
        """Emit one instruction: `one` sign `other`, sign one of + - * /."""
        return Float(self, getattr(self.lane.builder, INSTRUCTIONS[sign])(*self._broadcast(one, other)))

    def compared(self, sign: str, one: Float | float, other: Float | float) -> Truth:
        """Emit the comparison `one sign other`, sign one of < <= >, in each lane; false if either is NaN."""
        return Truth(self, self.lane.builder.fcmp_ordered(sign, *self._broadcast(one, other)))

    def chosen(self, condition: Truth, one: Float | float, other: Float | float) -> Float:
        """Emit the choice, lane by lane, of `one` where the condition is true, else `other`."""
        return Float(self, self.lane.builder.select(condition.value, *self._broadcast(one, other)))

    def called(self, function: str, *arguments: Float | float) -> Float:
        """Emit a call of LLVM's function for `function`: sqrt, fabs, copysign or fma."""
        values = self._broadcast(*arguments)
        kind, bits = values[0].type, self.lane.bits
        suffix = f"v{kind.count}f{bits}" if _is_vector(values[0]) else f"f{bits}"
        name = f"llvm.{FUNCTIONS.get(function, function)}.{suffix}"
        declared = self.lane.declare(name, kind, *[kind] * len(values))
        return Float(self, self.lane.builder.call(declared, values))

    def spread(self, number: Float) -> Float:
        """Return the number in every lane of the tile; a vector is returned unchanged."""
        return number if _is_vector(number.value) else Float(self, self.lane.spread(number.value))

    def masked(self, number: Float, bits: ir.Value) -> Float:
        """Emit the number, or zero if the integer `bits` of its size is zero; `bits` must be zero or all ones."""
        builder, kind = self.lane.builder, bits.type
        if _is_vector(number.value):
            bits = self.lane.spread(bits)
            kind = bits.type
        kept = builder.and_(builder.bitcast(number.value, kind), bits)
        return Float(self, builder.bitcast(kept, number.value.type))


def _is_vector(value: ir.Value) -> bool:
    """Return whether an LLVM value is a vector."""
    return isinstance(value.type, ir.VectorType)


I32, I64 = ir.IntType(32), ir.IntType(64)


@dataclass(frozen=True)
class Row:
    """Address of a tile's columns of one dense row."""

    lane: "Lane"
    pointer: ir.Value
    check: Callable[[str], None]
    """Part of the debug build: writes the check that the tile's columns are within the array."""

    def _parts(self) -> Iterable[tuple[ir.Value, bool]]:
        """Yield (address, whether masked) of each vector of the current tile."""
        lane, tile = self.lane, self.lane.tile
        for number in range(tile.vectors):
            at = lane.builder.gep(self.pointer, [I64(number * tile.lanes)])
            yield lane.builder.bitcast(at, lane.vector.as_pointer()), tile.masked and number == tile.vectors - 1

    def load(self) -> list[Float]:
        """Emit the loads of the tile's vectors and return them; lanes beyond the edge are zero."""
        self.check("load")
        return [self.lane.float(self._load(pointer, masked)) for pointer, masked in self._parts()]

    def _load(self, pointer: ir.Value, masked: bool) -> ir.Value:
        """Emit the load of one vector at `pointer`; masked lanes are not read and are zero."""
        lane = self.lane
        if not masked:
            value = lane.builder.load(pointer)
            value.align = lane.bits // 8
            return value
        kinds = (pointer.type, I32, lane.mask.type, lane.vector)
        function = lane.declare(f"llvm.masked.load.v{lane.tile.lanes}f{lane.bits}.p0", lane.vector, *kinds)
        return lane.builder.call(function, [pointer, I32(lane.bits // 8), lane.mask, lane.zeros()])

    def store(self, vectors: list[Float]) -> None:
        """Emit the stores of the tile's `vectors` to the row; lanes beyond the edge are not written."""
        self.check("store")
        lane = self.lane
        for (pointer, masked), vec in zip(self._parts(), vectors, strict=True):
            if masked:
                kinds = (lane.vector, pointer.type, I32, lane.mask.type)
                function = lane.declare(f"llvm.masked.store.v{lane.tile.lanes}f{lane.bits}.p0", ir.VoidType(), *kinds)
                lane.builder.call(function, [vec.value, pointer, I32(lane.bits // 8), lane.mask])
            else:
                lane.builder.store(vec.value, pointer).align = lane.bits // 8

    def prefetch(self) -> None:
        """Emit a prefetch of every cache line of the tile."""
        for offset in range(0, self.lane.tile.width, LINE * 8 // self.lane.bits):
            self.lane.prefetch(self.lane.builder.gep(self.pointer, [I64(offset)]))


@dataclass(frozen=True)
class Scratch:
    """A row of the lane's width on the stack, for vectors that live as long as the work on one row."""

    lane: "Lane"
    data: ir.Value

    def row(self, j: Int) -> Row:
        """Return the `Row` from column `j` on; its columns are those of the lane, so there is nothing to check."""
        return Row(self.lane, self.lane.builder.gep(self.data, [j.value]), lambda verb: None)


class Array:
    """An array argument: elements by `a[k]`, rows of a two-dimensional one by `a.row(r, j)`."""

    def __init__(self, lane: "Lane", kind: types.Array, value: ir.Value, name: str) -> None:
        """Read address and lengths of a Numba array argument of type `kind` from its LLVM value.

        `name` is used in bounds-check messages.
        """
        struct = lane.context.make_array(kind)(lane.context, lane.builder, value)
        self.lane, self.kind, self.data, self.name = lane, kind, struct.data, name
        lengths = [Int(lane, length) for length in cgutils.unpack_tuple(lane.builder, struct.shape)]
        self.last = lengths[0] - 1
        self.columns = lengths[-1]
        self.rows = lengths[0] if len(lengths) > 1 else lane.integer(1)

    def _pointer(self, k: Int) -> ir.Value:
        """Emit the address of element `k`, counted in C order."""
        return self.lane.builder.gep(self.data, [k.value])

    def _check(self, verb: str, place: Int, count: Int, length: Int) -> None:
        """Emit the bounds check that elements place to place + count - 1 are within `length`.

        `verb` goes into the message.
        """
        lane, what = self.lane, f"{self.lane.name}: {verb} of {self.name}"
        bounds.require(lane.context, lane.builder, place.value, count.value, length.value, what)

    def _check_element(self, verb: str, k: Int) -> None:
        """Emit the bounds check of element `k`; nothing unless bounds checks are on.

        `verb` ("load") goes into the message.
        """
        if bounds.is_on():
            self._check(verb, k, self.lane.integer(1), self.rows * self.columns)

    def _check_row(self, verb: str, r: Int, j: Int) -> None:
        """Emit the bounds checks of row `r` and of the tile's columns from `j` on.

        Nothing unless bounds checks are on.
        """
        if bounds.is_on():
            self._check(f"{verb} of a row", r, self.lane.integer(1), self.rows)
            self._check(f"{verb} of columns", j, self.lane.columns(), self.columns)

    def __getitem__(self, k: Int) -> Int | Float:
        """Emit the load of element `k`: a `Float`, or an `Int` widened to 64 bits without sign."""
        builder = self.lane.builder
        self._check_element("load", k)
        loaded = builder.load(self._pointer(k))
        if isinstance(self.kind.dtype, types.Float):
            return self.lane.float(loaded)
        if loaded.type != I64:  # row and column indices are never negative
            loaded = builder.zext(loaded, I64)
        return Int(self.lane, loaded)

    def index(self, k: Int) -> Int:
        """Emit the load of element `k` of an array of integers. Raises TypeError if its dtype is float."""
        if not isinstance(found := self[k], Int):
            raise TypeError(f"{self.name} has floating-point elements; expected integers.")
        return found

    def number(self, k: Int) -> Float:
        """Emit the load of element `k` of an array of floats. Raises TypeError if its dtype is integer."""
        if not isinstance(found := self[k], Float):
            raise TypeError(f"{self.name} has integer elements; expected floats.")
        return found

    def __setitem__(self, k: Int, number: Float) -> None:
        """Emit the store of the scalar `number` in element `k`."""
        self._check_element("store", k)
        self.lane.builder.store(number.value, self._pointer(k))

    def mark(self, k: Int) -> None:
        """Emit the store of 1 in element `k` of an array of uint8."""
        self._check_element("store", k)
        self.lane.builder.store(ir.Constant(ir.IntType(8), 1), self._pointer(k))

    def moved(self, start: Int) -> "Array":
        """Return the one-dimensional array from element `start` on, over the same memory."""
        other = copy.copy(self)
        other.data, other.columns = self._pointer(start), self.columns - start
        return other

    def flat(self) -> "Array":
        """Return all elements as one row, over the same memory."""
        other = copy.copy(self)
        other.rows, other.columns = self.lane.integer(1), self.rows * self.columns
        return other

    def bytes_at(self, k: Int, count: Int) -> ir.Value:
        """Return the address of `count` bytes from `k` on, of an array of uint8, bounds-checked if checks are on."""
        if bounds.is_on():
            self._check("load of bytes", k, count, self.rows * self.columns)
        return self._pointer(k)

    def row(self, r: Int, j: Int) -> Row:
        """Return the `Row` at row `r` from column `j` on.

        Rows are as wide as the lane's, except in an array of one row.
        """
        pointer = self._pointer(r * (self.lane.cut.width or self.columns) + j)
        return Row(self.lane, pointer, functools.partial(self._check_row, r=r, j=j))

    def indices_at(self, k: Int) -> ir.Value:
        """Emit the load of a vector of indices from element `k` on, one for each lane."""
        lane, lanes = self.lane, self.lane.tile.lanes
        bits = self.lane.context.get_value_type(self.kind.dtype).width
        kind = ir.VectorType(ir.IntType(bits), lanes)
        if bounds.is_on():
            self._check("load of indices", k, lane.columns(), self.rows * self.columns)
        pointer = lane.builder.bitcast(self._pointer(k), kind.as_pointer())
        loaded = lane.builder.load(pointer)
        loaded.align = bits // 8
        return loaded

    def gathered(self, indices: ir.Value) -> Float:
        """Emit the gather of the elements at a vector of indices, one for each lane."""
        lane, lanes = self.lane, self.lane.tile.lanes
        if gathers_by_loads():
            return self._gathered_by_loads(indices)
        if bounds.is_on():
            self._check_gathered(indices)
        places = lane.builder.sext(indices, ir.VectorType(I64, lanes)) if indices.type.element != I64 else indices
        pointers = lane.builder.gep(self.data, [places], source_etype=lane.element)
        pointers.type = ir.VectorType(self.data.type, lanes)  # llvmlite takes it for one pointer
        mask = ir.Constant(ir.VectorType(ir.IntType(1), lanes), [1] * lanes)
        name = f"llvm.masked.gather.v{lanes}f{lane.bits}.v{lanes}p0"
        function = lane.declare(name, lane.vector, pointers.type, I32, mask.type, lane.vector)
        return lane.float(lane.builder.call(function, [pointers, I32(lane.bits // 8), mask, lane.zeros()]))

    def _gathered_by_loads(self, indices: ir.Value) -> Float:
        """Emit `gathered` by a load for each lane."""
        lane = self.lane
        vector: ir.Value = ir.Constant(lane.vector, ir.Undefined)
        for number, place in enumerate(self._places(indices)):
            vector = lane.builder.insert_element(vector, self.number(place).value, I32(number))
        return lane.float(vector)

    def _places(self, indices: ir.Value) -> Iterable[Int]:
        """Yield the index of each lane of `indices`, an LLVM vector of int32 or int64."""
        for number in range(self.lane.tile.lanes):
            index = self.lane.builder.extract_element(indices, I32(number))
            yield Int(self.lane, self.lane.builder.zext(index, I64) if index.type != I64 else index)

    def places_at(self, k: Int) -> "Int | ir.Value":
        """Emit the load of the indices from element `k` on: a vector of one for each lane, an `Int` for one lane."""
        return self.index(k) if self.lane.tile.lanes == 1 else self.indices_at(k)

    def take(self, places: "Int | ir.Value") -> Float:
        """Emit the load of the elements at `places`, as of `places_at`."""
        return self.number(places) if isinstance(places, Int) else self.gathered(places)

    def put(self, places: "Int | ir.Value", numbers: Float) -> None:
        """Emit the stores of `numbers` in the elements at `places`, as of `places_at`: one lane after the other."""
        if isinstance(places, Int):
            self[places] = numbers
            return
        for number, place in enumerate(self._places(places)):
            self[place] = self.lane.float(self.lane.builder.extract_element(numbers.value, I32(number)))

    def _check_gathered(self, indices: ir.Value) -> None:
        """Emit the bounds check of each element of `indices`, an LLVM vector of int32 or int64."""
        for place in self._places(indices):
            self._check_element("load", place)

    def prefetch(self, k: Int) -> None:
        """Emit a prefetch of the cache line of element `k`; no value is loaded and no bounds are checked."""
        self.lane.prefetch(self._pointer(k))


def argument(lane: "Lane", kind: types.Type, value: ir.Value, name: str) -> Array | Float | Int:
    """Return the stand-in for an argument: `Array`, `Float` or `Int` by its Numba type `kind`.

    Floats are converted to the lane's element type, other scalars to int64. `name` is used in messages.
    """
    if isinstance(kind, types.Array):
        return Array(lane, kind, value, name)
    if isinstance(kind, types.Float):
        return lane.float(lane.context.cast(lane.builder, value, kind, types.Float(f"float{lane.bits}")))
    return Int(lane, lane.context.cast(lane.builder, value, kind, types.int64))
