"""Vector code for Numba: row loops whose sums stay in registers. The one place that emits LLVM IR.

Numba's own code for an inner loop over N either unrolls it into scalar code (N known and small) or loads and stores
every sum for every stored entry. Here a kernel says in Python what to do with a tile of up to a few vectors, and gets
an intrinsic that does it with sums in registers, several in flight, a masked load at the edge, and prefetches where the
dense operand does not fit the cache. The same code runs wherever LLVM has vectors: lanes are as wide as the processor's
registers, and LLVM splits what is wider.

    @functools.cache
    def row(tile):
        def emit(lane, indices, data, x, out, start, stop, r, j):
            total = lane.sum(start, stop, lambda k: (data[k], x.row(indices[k], j)))
            out.row(r, j).store(total)
        return lanes.intrinsic(tile, emit)

Inside `emit` array arguments are `Array`, integers are `Int`, floats are `Scalar`; `lane.sum` returns one `Vec` for each
vector of the tile. Source of the technique: register-tiled row loops with code made when N is known, as in JITSPMM
(Fu, Rolinger and Huang, CGO 2024) and FBGEMM.
"""

import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import llvmlite.binding
import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic as numba_intrinsic

I1, I8, I32, I64 = ir.IntType(1), ir.IntType(8), ir.IntType(32), ir.IntType(64)
LINE = 64
"""Bytes of a cache line."""

IN_FLIGHT = 4
"""Independent sums wanted at least: a fused multiply-add takes four cycles."""

AHEAD = 16
"""Stored entries between a prefetch and its use."""


@functools.cache
def features() -> frozenset[str]:
    """The vector extensions that Numba compiles for on this machine."""
    if numba.config.CPU_FEATURES is not None:
        return frozenset(entry[1:] for entry in numba.config.CPU_FEATURES.split(",") if entry.startswith("+"))
    found = llvmlite.binding.get_host_cpu_features()
    return frozenset(name for name, there in found.items() if there)


@functools.cache
def register_bytes() -> int:
    """Width of a vector register: 64 with AVX-512, 32 with AVX, else 16."""
    return 64 if "avx512f" in features() else 32 if "avx" in features() else 16


@functools.cache
def most_vectors() -> int:
    """Sums that fit the registers beside what else a loop holds."""
    return 16 if "avx512f" in features() else 8


@dataclass(frozen=True)
class Tile:
    """Columns that one pass over a row's entries sums: `vectors` of `lanes` elements, the last one masked or not."""

    bits: int
    lanes: int
    vectors: int
    masked: bool
    prefetch: bool = False

    @property
    def width(self) -> int:
        """Columns of a full tile."""
        return self.lanes * self.vectors

    @property
    def unroll(self) -> int:
        """Entries summed side by side, so that enough sums are in flight."""
        return max(1, IN_FLIGHT // self.vectors)


def full_lanes(bits: int) -> int:
    """Elements of a register."""
    return register_bytes() * 8 // bits


def widest(bits: int) -> int:
    """Columns of the widest tile: wider operands take several passes, a full tile each and one for the rest."""
    return full_lanes(bits) * most_vectors()


@functools.cache
def tile_for(width: int, bits: int, prefetch: bool = False) -> Tile:
    """The tile for `width` columns, 1 to `widest(bits)`: the narrowest vectors that hold them."""
    lanes = full_lanes(bits)
    while lanes // 2 >= width:
        lanes //= 2
    vectors = -(-width // lanes)
    return Tile(bits, lanes, vectors, masked=width % lanes != 0, prefetch=prefetch)


class Lane:
    """What `emit` writes code with: one function's builder and the tile."""

    def __init__(self, context, builder, tile: Tile) -> None:
        self.context, self.builder, self.tile = context, builder, tile
        self.element = ir.FloatType() if tile.bits == 32 else ir.DoubleType()
        self.vector = ir.VectorType(self.element, tile.lanes) if tile.lanes > 1 else self.element
        self.mask = None

    @property
    def suffix(self) -> str:
        """How LLVM's intrinsics name the vector type."""
        name = f"f{self.tile.bits}"
        return f"v{self.tile.lanes}{name}" if self.tile.lanes > 1 else name

    def declare(self, name: str, result, *arguments):
        """LLVM's own function of that name."""
        return cgutils.get_or_insert_function(self.builder.module, ir.FunctionType(result, arguments), name)

    def spread(self, scalar) -> ir.Value:
        """A scalar in every lane."""
        if self.tile.lanes == 1:
            return scalar
        undefined = ir.Constant(self.vector, ir.Undefined)
        first = self.builder.insert_element(undefined, scalar, I32(0))
        zeros = ir.Constant(ir.VectorType(I32, self.tile.lanes), [0] * self.tile.lanes)
        return self.builder.shuffle_vector(first, undefined, zeros)

    def constant(self, value: float) -> "Vec":
        """A number in every lane."""
        return Vec(self, self.spread(ir.Constant(self.element, value)))

    def edge(self, columns: "Int") -> None:
        """Say how many columns the tile's last vector has; called once, before its loads and stores."""
        if not self.tile.masked:
            return
        wide = ir.VectorType(I64, self.tile.lanes)
        undefined = ir.Constant(wide, ir.Undefined)
        first = self.builder.insert_element(undefined, columns.value, I32(0))
        zeros = ir.Constant(ir.VectorType(I32, self.tile.lanes), [0] * self.tile.lanes)
        limit = self.builder.shuffle_vector(first, undefined, zeros)
        numbers = ir.Constant(wide, list(range(self.tile.lanes)))
        self.mask = self.builder.icmp_signed("<", numbers, limit)

    def sum(self, start: "Int", stop: "Int", term: Callable[["Int"], tuple], prefetch=None) -> list["Vec"]:
        """Sum over k in start..stop-1 of scale * row, for each vector of the tile.

        `term(k)` gives (scale, row): a `Scalar` or None for one, and a `Row`. `prefetch(k)` is called `AHEAD` entries
        ahead of each k. Entries are taken `tile.unroll` at a time, in as many sums, added at the end in a fixed order.
        """
        builder, unroll = self.builder, self.tile.unroll
        zero = ir.Constant(self.vector, 0.0 if self.tile.lanes == 1 else [0.0] * self.tile.lanes)
        zeros = [zero] * self.tile.vectors
        count = builder.sub(stop.value, start.value)
        main_stop = builder.sub(stop.value, builder.srem(count, I64(unroll)))

        def body(k, sums: list) -> list:
            groups = [sums[i : i + self.tile.vectors] for i in range(0, len(sums), self.tile.vectors)]
            added = []
            for number, group in enumerate(groups):
                at = Int(self, builder.add(k, I64(number)))
                if prefetch is not None:
                    prefetch(at)
                added += self._add(term(at), group)
            return added

        sums = zeros * unroll
        if unroll > 1:
            sums = self._loop(start.value, main_stop, unroll, sums, body)
            while len(sums) > self.tile.vectors:
                half = len(sums) // 2
                sums = [builder.fadd(a, b) for a, b in zip(sums[:half], sums[half:], strict=True)]
        first = main_stop if unroll > 1 else start.value
        return [Vec(self, value) for value in self._loop(first, stop.value, 1, sums, body)]

    def _add(self, term: tuple, sums: list) -> list:
        scale, row = term
        loaded = row.load()
        if scale is None:
            return [self.builder.fadd(total, vec.value) for total, vec in zip(sums, loaded, strict=True)]
        spread = self.spread(scale.value)
        fma = self.declare(f"llvm.fma.{self.suffix}", self.vector, *[self.vector] * 3)
        return [self.builder.call(fma, [spread, vec.value, total]) for total, vec in zip(sums, loaded, strict=True)]

    def _loop(self, start, stop, step: int, carried: list, body: Callable) -> list:
        """`for k in range(start, stop, step): carried = body(k, carried)`; the carried values afterwards."""
        builder = self.builder
        before = builder.block
        head, inside, after = (builder.append_basic_block(f"lanes.{part}") for part in ("head", "body", "after"))
        builder.branch(head)
        builder.position_at_end(head)
        k = builder.phi(I64)
        k.add_incoming(start, before)
        phis = [builder.phi(value.type) for value in carried]
        for phi, value in zip(phis, carried, strict=True):
            phi.add_incoming(value, before)
        builder.cbranch(builder.icmp_signed("<", k, stop), inside, after)
        builder.position_at_end(inside)
        results = body(k, phis)
        following = builder.add(k, I64(step))
        k.add_incoming(following, builder.block)
        for phi, value in zip(phis, results, strict=True):
            phi.add_incoming(value, builder.block)
        builder.branch(head)
        builder.position_at_end(after)
        return phis


@dataclass(frozen=True)
class Int:
    """An integer in emitted code, int64."""

    lane: Lane
    value: ir.Value

    def _binary(self, operation: str, other) -> "Int":
        other = other.value if isinstance(other, Int) else I64(other)
        return Int(self.lane, getattr(self.lane.builder, operation)(self.value, other))

    def __add__(self, other) -> "Int":
        return self._binary("add", other)

    def __sub__(self, other) -> "Int":
        return self._binary("sub", other)

    def __mul__(self, other) -> "Int":
        return self._binary("mul", other)

    def least(self, other: "Int") -> "Int":
        """The smaller of two."""
        builder = self.lane.builder
        smaller = builder.icmp_signed("<", self.value, other.value)
        return Int(self.lane, builder.select(smaller, self.value, other.value))


@dataclass(frozen=True)
class Scalar:
    """One float in emitted code."""

    lane: Lane
    value: ir.Value

    def spread(self) -> "Vec":
        """It in every lane."""
        return Vec(self.lane, self.lane.spread(self.value))


@dataclass(frozen=True)
class Vec:
    """A vector of the tile in a register; the four operations work lane by lane, also with a `Scalar` or a number."""

    lane: Lane
    value: ir.Value

    def _other(self, other) -> ir.Value:
        if isinstance(other, Scalar):
            return other.spread().value
        return other.value if isinstance(other, Vec) else self.lane.constant(other).value

    def __add__(self, other) -> "Vec":
        return Vec(self.lane, self.lane.builder.fadd(self.value, self._other(other)))

    def __sub__(self, other) -> "Vec":
        return Vec(self.lane, self.lane.builder.fsub(self.value, self._other(other)))

    def __mul__(self, other) -> "Vec":
        return Vec(self.lane, self.lane.builder.fmul(self.value, self._other(other)))

    def __truediv__(self, other) -> "Vec":
        return Vec(self.lane, self.lane.builder.fdiv(self.value, self._other(other)))

    __radd__, __rmul__ = __add__, __mul__

    def unary(self, name: str) -> "Vec":
        """LLVM's unary function of that name, such as sqrt or fabs."""
        function = self.lane.declare(f"llvm.{name}.{self.lane.suffix}", self.lane.vector, self.lane.vector)
        return Vec(self.lane, self.lane.builder.call(function, [self.value]))


@dataclass(frozen=True)
class Row:
    """Where a tile's columns of one dense row stand in memory."""

    lane: Lane
    pointer: ir.Value

    def _parts(self) -> Iterable[tuple[ir.Value, bool]]:
        lane, tile = self.lane, self.lane.tile
        for number in range(tile.vectors):
            at = lane.builder.gep(self.pointer, [I64(number * tile.lanes)])
            yield lane.builder.bitcast(at, lane.vector.as_pointer()), tile.masked and number == tile.vectors - 1

    def load(self) -> list[Vec]:
        """The tile's vectors; lanes beyond the edge are zero."""
        return [Vec(self.lane, self._load(pointer, masked)) for pointer, masked in self._parts()]

    def _load(self, pointer, masked: bool) -> ir.Value:
        lane = self.lane
        if not masked:
            value = lane.builder.load(pointer)
            value.align = lane.tile.bits // 8
            return value
        zero = ir.Constant(lane.vector, [0.0] * lane.tile.lanes)
        kinds = (lane.vector.as_pointer(), I32, lane.mask.type, lane.vector)
        function = lane.declare(f"llvm.masked.load.{lane.suffix}.p0", lane.vector, *kinds)
        return lane.builder.call(function, [pointer, I32(lane.tile.bits // 8), lane.mask, zero])

    def store(self, vectors: list[Vec]) -> None:
        """Write the tile's vectors; lanes beyond the edge are left alone."""
        lane = self.lane
        for (pointer, masked), vec in zip(self._parts(), vectors, strict=True):
            if masked:
                kinds = (lane.vector, lane.vector.as_pointer(), I32, lane.mask.type)
                function = lane.declare(f"llvm.masked.store.{lane.suffix}.p0", ir.VoidType(), *kinds)
                lane.builder.call(function, [vec.value, pointer, I32(lane.tile.bits // 8), lane.mask])
            else:
                stored = lane.builder.store(vec.value, pointer)
                stored.align = lane.tile.bits // 8

    def prefetch(self) -> None:
        """Ask the cache for every line of the tile."""
        lane, tile = self.lane, self.lane.tile
        function = lane.declare("llvm.prefetch.p0", ir.VoidType(), I8.as_pointer(), I32, I32, I32)
        for offset in range(0, tile.width, LINE * 8 // tile.bits):
            at = lane.builder.bitcast(lane.builder.gep(self.pointer, [I64(offset)]), I8.as_pointer())
            lane.builder.call(function, [at, I32(0), I32(3), I32(1)])


class Array:
    """An array argument in emitted code: elements by `a[k]`, rows of a two-dimensional one by `a.row(r, j)`."""

    def __init__(self, lane: Lane, kind: types.Array, value) -> None:
        struct = lane.context.make_array(kind)(lane.context, lane.builder, value)
        self.lane, self.kind, self.data = lane, kind, struct.data
        self.columns = cgutils.unpack_tuple(lane.builder, struct.shape)[-1]

    def __getitem__(self, k: Int) -> Int | Scalar:
        builder = self.lane.builder
        loaded = builder.load(builder.gep(self.data, [k.value]))
        if isinstance(self.kind.dtype, types.Float):
            return Scalar(self.lane, loaded)
        if loaded.type != I64:  # row and column numbers are never negative
            loaded = builder.zext(loaded, I64)
        return Int(self.lane, loaded)

    def row(self, r: Int, j: Int) -> Row:
        """Row `r` from column `j` on."""
        builder = self.lane.builder
        offset = builder.add(builder.mul(r.value, self.columns), j.value)
        return Row(self.lane, builder.gep(self.data, [offset]))


def intrinsic(tile: Tile, emit: Callable) -> Callable:
    """A Numba intrinsic without result whose code `emit(lane, *arguments)` writes.

    Its parameters are those of `emit` after `lane`; arrays must be C-contiguous, integers are taken as int64.
    """
    names = list(inspect.signature(emit).parameters)[1:]

    def typing(typing_context, *kinds):
        wanted = [kind if isinstance(kind, types.Array | types.Float) else types.int64 for kind in kinds]

        def generate(context, builder, signature, values):
            lane = Lane(context, builder, tile)
            emit(lane, *(_wrap(lane, *pair) for pair in zip(signature.args, values, strict=True)))
            return context.get_dummy_value()

        return types.void(*wanted), generate

    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("context", *names)]
    typing.__signature__ = inspect.Signature(parameters)
    return numba_intrinsic(typing)


def _wrap(lane: Lane, kind, value):
    if isinstance(kind, types.Array):
        return Array(lane, kind, value)
    return Scalar(lane, value) if isinstance(kind, types.Float) else Int(lane, value)
