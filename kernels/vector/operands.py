"""Stand-ins for the arguments of generated code: arrays, their elements and rows, floats and integers."""

import copy
import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from llvmlite import ir
from numba import types

from kernels import bounds
from kernels._compat.numba_internals import cgutils
from kernels.formula import Float
from kernels.vector.tiles import LINE
from kernels.vector.values import Int

if TYPE_CHECKING:
    from kernels.vector.lanes import Lane

I32, I64 = ir.IntType(32), ir.IntType(64)


@dataclass(frozen=True)
class Row:
    """Address of a tile's columns of one dense row."""

    lane: "Lane"
    pointer: ir.Value
    check: Callable[[str], None]
    """Part of the debug build: writes the check that the tile's columns are within the array."""

    def _parts(self) -> Iterable[tuple[ir.Value, bool]]:
        """Yield the address of each vector of the tile, and whether it is masked."""
        lane, tile = self.lane, self.lane.tile
        for number in range(tile.vectors):
            at = lane.builder.gep(self.pointer, [I64(number * tile.lanes)])
            yield lane.builder.bitcast(at, lane.vector.as_pointer()), tile.masked and number == tile.vectors - 1

    def load(self) -> list[Float]:
        """Load the tile's vectors; lanes beyond the edge are zero."""
        self.check("load")
        return [self.lane.float(self._load(pointer, masked)) for pointer, masked in self._parts()]

    def _load(self, pointer: ir.Value, masked: bool) -> ir.Value:
        """Emit the load of one vector."""
        lane = self.lane
        if not masked:
            value = lane.builder.load(pointer)
            value.align = lane.bits // 8
            return value
        kinds = (pointer.type, I32, lane.mask.type, lane.vector)
        function = lane.declare(f"llvm.masked.load.v{lane.tile.lanes}f{lane.bits}.p0", lane.vector, *kinds)
        return lane.builder.call(function, [pointer, I32(lane.bits // 8), lane.mask, lane.zeros()])

    def store(self, vectors: list[Float]) -> None:
        """Store the tile's vectors; lanes beyond the edge are not written."""
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
        """Prefetch every cache line of the tile."""
        for offset in range(0, self.lane.tile.width, LINE * 8 // self.lane.bits):
            self.lane.prefetch(self.lane.builder.gep(self.pointer, [I64(offset)]))


class Array:
    """An array argument: elements by `a[k]`, rows of a two-dimensional one by `a.row(r, j)`."""

    def __init__(self, lane: "Lane", kind: types.Array, value: ir.Value, name: str) -> None:
        struct = lane.context.make_array(kind)(lane.context, lane.builder, value)
        self.lane, self.kind, self.data, self.name = lane, kind, struct.data, name
        lengths = [Int(lane, length) for length in cgutils.unpack_tuple(lane.builder, struct.shape)]
        self.last = lengths[0] - 1
        self.columns = lengths[-1]
        self.rows = lengths[0] if len(lengths) > 1 else lane.integer(1)

    def _pointer(self, k: Int) -> ir.Value:
        """Return the address of element `k`."""
        return self.lane.builder.gep(self.data, [k.value])

    def _check(self, verb: str, place: Int, count: Int, length: Int) -> None:
        """Emit the bounds check of `count` elements from `place` on."""
        lane, what = self.lane, f"{self.lane.name}: {verb} of {self.name}"
        bounds.require(lane.context, lane.builder, place.value, count.value, length.value, what)

    def _check_element(self, verb: str, k: Int) -> None:
        """Emit the bounds check of an element in the debug build."""
        if bounds.is_on():
            self._check(verb, k, self.lane.integer(1), self.rows * self.columns)

    def _check_row(self, verb: str, r: Int, j: Int) -> None:
        """Emit the bounds checks of a row and of the tile's columns."""
        if bounds.is_on():
            self._check(f"{verb} of a row", r, self.lane.integer(1), self.rows)
            self._check(f"{verb} of columns", j, self.lane.columns(), self.columns)

    def __getitem__(self, k: Int) -> Int | Float:
        builder = self.lane.builder
        self._check_element("load", k)
        loaded = builder.load(self._pointer(k))
        if isinstance(self.kind.dtype, types.Float):
            return self.lane.float(loaded)
        if loaded.type != I64:  # row and column indices are never negative
            loaded = builder.zext(loaded, I64)
        return Int(self.lane, loaded)

    def __setitem__(self, k: Int, number: Float) -> None:
        self._check_element("store", k)
        self.lane.builder.store(number.value, self._pointer(k))

    def mark(self, k: Int) -> None:
        """Set element `k` of an array of bytes to 1."""
        self._check_element("store", k)
        self.lane.builder.store(ir.Constant(ir.IntType(8), 1), self._pointer(k))

    def moved(self, start: Int) -> "Array":
        """Return the one-dimensional array from element `start` on."""
        other = copy.copy(self)
        other.data, other.columns = self._pointer(start), self.columns - start
        return other

    def flat(self) -> "Array":
        """Return all elements as one row."""
        other = copy.copy(self)
        other.rows, other.columns = self.lane.integer(1), self.rows * self.columns
        return other

    def bytes_at(self, k: Int, count: Int) -> ir.Value:
        """Return the address of `count` bytes from `k` on, of an array of bytes."""
        if bounds.is_on():
            self._check("load of bytes", k, count, self.rows * self.columns)
        return self._pointer(k)

    def row(self, r: Int, j: Int) -> Row:
        """Return row `r` from column `j` on."""
        pointer = self._pointer(r * self.columns + j)
        return Row(self.lane, pointer, functools.partial(self._check_row, r=r, j=j))

    def prefetch(self, k: Int) -> None:
        """Prefetch element `k`."""
        self.lane.prefetch(self._pointer(k))


def argument(lane: "Lane", kind: types.Type, value: ir.Value, name: str) -> Array | Float | Int:
    """Return the stand-in for an argument; floats are converted to the lane's type."""
    if isinstance(kind, types.Array):
        return Array(lane, kind, value, name)
    if isinstance(kind, types.Float):
        return lane.float(lane.context.cast(lane.builder, value, kind, types.Float(f"float{lane.bits}")))
    return Int(lane, lane.context.cast(lane.builder, value, kind, types.int64))
