"""Vector code for Numba: row loops whose sums stay in registers. LLVM IR is emitted here, in `operands` and `values`.

Numba's own code for an inner loop over N either unrolls it into scalar code (N known and small) or loads and stores
every sum for every stored entry. Here a kernel says in Python what to do with a row, and gets code that does it with
sums in registers, several in flight, a masked load at the edge, and prefetches where the operand does not fit the
cache. The same code runs wherever LLVM has vectors: lanes are as wide as the processor's registers.

    def row(lane, u, indptr, indices, data, x, out):
        def block(j, _):
            total = lane.sum_of_rows(indptr[u], indptr[u + 1], data, indices, x, j)
            out.row(u, j).store(total)
        lane.blocks(block)

Such a function runs while code is made, not while it works: its arguments stand for an `Array`, an integer (`Int`) or a
float (`Float`) of the finished program, and `kernels.vector.gather` calls the result for every row `u`. All arithmetic
is as written: no flag lets LLVM change the order of a sum, so the same row has the same bits wherever it is computed.

Source of the technique: row loops with sums in registers and code made when N is known, as in JITSPMM (Fu, Rolinger and
Huang, CGO 2024) and FBGEMM.
"""

import inspect
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from kernels._compat.numba_internals import cgutils
from kernels.formula import Float
from kernels.vector.operands import Array, Int, Row, Scratch, Vectors, argument
from kernels.vector.tiles import LINE, Cut, Tile, full_lanes, gathers, register_bytes

I8, I32, I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)

Scalar: TypeAlias = float
"""A Python float, under a name that `Lane.float` does not hide."""

AHEAD = 16
"""Rows between a prefetch and its use, where each is visited once."""


GATHERED, GATHERS = 32, 4
"""Bytes that an instruction gathers, and the sums of such vectors that are in flight."""


class Program(NamedTuple):
    """Source of generated code: the row function and the cut of its columns.

    `starts` is the position of the row pointers among the arguments, None if rows cost the same; `per_row` the cost of
    a row besides its entries, in entries.
    """

    row: Callable
    cut: Cut
    starts: int | None = None
    per_row: int = 1

    def names(self, count: int) -> list[str]:
        """Return names for `count` arguments of the row function: its own, or "argument 3" beyond these."""
        _, _, *parameters = inspect.signature(self.row).parameters.values()
        known = [each.name for each in parameters if each.kind is not each.VAR_POSITIONAL]
        return known + [f"argument {number}" for number in range(len(known), count)]


programs: dict[str, Program] = {}
"""Programs by the text that stands for each in compiled code and in the names of cached code."""


class Lane:
    """Code generation for a row: the builder, the current tile, and the row's width."""

    def __init__(self, context: Any, builder: ir.IRBuilder, program: Program, width: ir.Value) -> None:
        """Start code generation of `program` at the builder's position, for rows of `width` columns (an LLVM int64).

        Uses the cut's last tile until `use` is called.
        """
        self.context, self.builder, self.cut = context, builder, program.cut
        self.name = f"{program.row.__module__}.{program.row.__qualname__}"
        self.width = Int(self, width)
        self.bits = self.cut.rest.bits
        self.element = ir.FloatType() if self.bits == 32 else ir.DoubleType()
        self.numbers = Vectors(self)
        self.use(self.cut.rest)

    def use(self, tile: Tile) -> None:
        """Make `tile` the current tile and drop mask and edge; emits nothing."""
        self.tile = tile
        self.vector = self.vector_of(self.element)
        self.mask: Any = None
        self.edge: Int | None = None

    def vector_of(self, element: ir.Type) -> ir.Type:
        """Return the LLVM vector type with one `element` per lane of the tile; `element` itself for one lane."""
        return ir.VectorType(element, self.tile.lanes) if self.tile.lanes > 1 else element

    def declare(self, name: str, result: ir.Type, *arguments: ir.Type) -> ir.Function:
        """Return the LLVM function `name` with these result and argument types, declared in the module on first use."""
        return cgutils.get_or_insert_function(self.builder.module, ir.FunctionType(result, arguments), name)

    def spread(self, scalar: ir.Value) -> ir.Value:
        """Emit a vector with `scalar` in every lane; the scalar itself for a tile of one lane."""
        if self.tile.lanes == 1:
            return scalar
        undefined = ir.Constant(self.vector_of(scalar.type), ir.Undefined)
        first = self.builder.insert_element(undefined, scalar, I32(0))
        return self.builder.shuffle_vector(first, undefined, self._numbers(I32, [0] * self.tile.lanes))

    def _numbers(self, kind: ir.Type, numbers: Iterable[int]) -> ir.Constant:
        """Return the LLVM constant vector of type `kind` with these integers, one for each lane."""
        return ir.Constant(self.vector_of(kind), list(numbers))

    def integer(self, number: int) -> Int:
        """Return `number` as an int64 constant of generated code."""
        return Int(self, I64(number))

    def float(self, value: ir.Value) -> Float:
        """Return an LLVM value, scalar or vector, as a `Float` that formulas can use."""
        return Float(self.numbers, value)

    def number(self, number: Scalar) -> Float:
        """Return `number` as a constant `Float` of the element type, a scalar."""
        return self.float(ir.Constant(self.element, float(number)))

    def zeros(self) -> ir.Constant:
        """Return the LLVM constant that is zero in every lane; a scalar for a tile of one lane."""
        return ir.Constant(self.vector, 0.0 if self.tile.lanes == 1 else [0.0] * self.tile.lanes)

    def _edge(self, columns: Int) -> None:
        """Emit the mask of the tile's last vector, in which only the first `columns` lanes are used.

        Nothing if not masked.
        """
        if self.tile.masked:
            self.edge = columns
            numbers = self._numbers(I64, range(self.tile.lanes))
            self.mask = self.builder.icmp_signed("<", numbers, self.spread(columns.value))

    def columns(self) -> Int:
        """Return the number of columns that a load or store of the current tile accesses."""
        tile = self.tile
        if self.edge is None:
            return self.integer(tile.width)
        return self.edge + (tile.vectors - 1) * tile.lanes

    def blocks(self, body: Callable[[Int, list], list | None], carried: list | None = None) -> list:
        """Emit `carried = body(j, carried)` for the first column `j` of each tile of the row.

        Return the last `carried`. `carried` is a list of `Float`s and may be omitted. Changes the current tile; the row
        must not be empty.
        """
        carried, start, full = carried or [], Int(self, I64(0)), self.cut.full
        if full is not None:
            stop = self.width - (full.width - 1)
            self.use(full)
            carried = self.loop(start, stop, full.width, carried, body)
            start = self.width.rounded_down(full.width)
        self.use(self.cut.rest)
        rest = self.tile
        self._edge(self.width - start - (rest.vectors - 1) * rest.lanes)
        if full is None:
            return body(start, carried) or []
        return self.loop(start, self.width, rest.width, carried, body)  # at most once, or not at all

    def spans(
        self, start: Int, stop: Int, vectors: int, body: Callable[[Int, list], list | None], carried: list | None = None
    ) -> list:
        """Emit `carried = body(j, carried)` for columns j from start to stop, `vectors` vectors at a time, then fewer.

        `vectors` is a power of two, halved for the rest; the last step is one masked vector. Returns the last
        `carried`, a list of `Float`s; changes the current tile.
        """
        carried, lanes, bits = carried or [], self.cut.rest.lanes, self.bits
        while vectors:
            self.use(Tile(bits, lanes, vectors, masked=False))
            end = start + (stop - start).rounded_down(vectors * lanes)
            carried = self.loop(start, end, vectors * lanes, carried, body)
            start, vectors = end, vectors // 2
        self.use(Tile(bits, lanes, 1, masked=True))
        self._edge(stop - start)
        carried = self.loop(start, stop, lanes, carried, body)
        self.use(Tile(bits, lanes, 1, masked=False))
        return carried

    def sum(self, start: Int, stop: Int, term: Callable[[Int], tuple], last: Int) -> list[Float]:
        """Emit the sum over k from start to stop - 1 of scale * row.

        Return one vector of sums for each vector of the tile. `term(k)` returns (scale, row): a `Float` (None: 1) and a
        `Row`. Rows outside the cache are prefetched, up to entry `last`. Entries go to `unroll` separate sums, which
        are added at the end.
        """
        unroll, vectors = self.tile.unroll, self.tile.vectors
        ahead = self._ahead(stop, last) if self.cut.far_rows else None

        def entries(k: Int, sums: list[Float], count: int) -> list[Float]:
            """Return the sums after entries k to k + count - 1, each added to its own group of vectors."""
            added = []
            for number in range(count):
                at = k + number
                if ahead is not None:
                    term(at + ahead)[1].prefetch()
                scale, row = term(at)
                added += self._add(scale, row.load(), sums[number * vectors : (number + 1) * vectors])
            return added

        first, start = self._head(start, stop, term)
        sums = first + [self.float(self.zeros())] * (vectors * (unroll - 1))
        if unroll > 1:
            main_stop = start + (stop - start).rounded_down(unroll)
            sums = self.loop(start, main_stop, unroll, sums, lambda k, sums: entries(k, sums, unroll))
            start, sums = main_stop, self._halved(sums, vectors)
        return self.loop(start, stop, 1, sums, lambda k, sums: entries(k, sums, 1))

    @staticmethod
    def _halved(sums: list[Float], count: int) -> list[Float]:
        """Emit the sums of the upper and the lower half of a list, again and again until `count` are left."""
        while len(sums) > count:
            half = len(sums) // 2
            sums = [a + b for a, b in zip(sums[:half], sums[half:], strict=True)]
        return sums

    def sum_of_rows(
        self, start: Int, stop: Int, scales: Array | None, rows: Array, table: Array, j: Int
    ) -> list[Float]:
        """Emit the sum over k from start to stop - 1 of scales[k] * table[rows[k]] from column j on.

        Return its vectors. Without `scales` they count as 1. Rows of one number are gathered, many at a time, unless
        they are prefetched: on one core of a Xeon 0.41 ns an entry instead of 0.6, of 300 in a row and 3,000 columns.
        """
        if self.cut.width == 1 and gathers() and not (self.cut.far_rows or self.cut.head):
            return [self._sum_gathered(start, stop, scales, rows, table)]

        def term(k: Int) -> tuple[Float | None, Row]:
            """Return (scale or None, row) of entry k."""
            return None if scales is None else scales.number(k), table.row(rows.index(k), j)

        is_short = self.tile.vectors == 1 < self.tile.lanes < full_lanes(self.bits)
        if not is_short or self.cut.far_rows or self.cut.head:
            return self.sum(start, stop, term, rows.last)
        main_stop = start + (stop - start).rounded_down(self.tile.unroll)
        total = self._sum_side_by_side(start, main_stop, scales, term)
        return self.loop(main_stop, stop, 1, [total], lambda k, sums: self._add(*_loaded(term(k)), sums))

    def _sum_side_by_side(self, start: Int, stop: Int, scales: Array | None, term: Callable[[Int], tuple]) -> Float:
        """Emit the sum of entries start to stop - 1, a multiple of the tile's `unroll`, of rows of one short vector.

        Rows of several entries stand side by side in a register, and the scales are loaded together: on one core of an
        EPYC 9005, 256 rows of 78 entries and 4 columns take 6.5 us instead of 8.0. The sums and their order are those
        of `sum`, bit for bit.
        """
        short, at_once, edge = self.tile, self.tile.unroll, (self.mask, self.edge)
        several = min(full_lanes(self.bits) // short.lanes, at_once)
        wide, of_scales = (Tile(self.bits, lanes, 1, masked=False) for lanes in (short.lanes * several, at_once))

        def use_short() -> None:
            """Make the tile of one entry the current one again, with its mask."""
            self.use(short)
            self.mask, self.edge = edge

        def entries(k: Int, sums: list[Float]) -> list[Float]:
            """Return the sums after entries k to k + at_once - 1, `several` of them in each."""
            vectors = [term(k + number)[1].load()[0].value for number in range(at_once)]
            while len(vectors) > len(sums):
                vectors = [self._joined(*pair) for pair in zip(vectors[::2], vectors[1::2], strict=True)]
            self.use(of_scales)
            scale: Any = None if scales is None else scales.row(self.integer(0), k).load()[0].value
            self.use(wide)
            added = []
            for number, (vec, total) in enumerate(zip(vectors, sums, strict=True)):
                entry_of_lane = [number * several + lane // short.lanes for lane in range(wide.lanes)]
                spread = scale and self.float(self._chosen(scale, entry_of_lane))
                added += self._add(spread, [self.float(vec)], [total])
            use_short()
            return added

        self.use(wide)
        sums = [self.float(self.zeros())] * (at_once // several)
        use_short()
        (total,) = self._halved(self.loop(start, stop, at_once, sums, entries), 1)
        value, lanes = total.value, wide.lanes
        while lanes > short.lanes:
            lanes //= 2
            value = self.builder.fadd(*(self._chosen(value, range(at, at + lanes)) for at in (0, lanes)))
        return self.float(value)

    def _chosen(self, vector: ir.Value, lanes: Iterable[int]) -> ir.Value:
        """Emit the vector of these `lanes` of an LLVM vector."""
        chosen = list(lanes)
        return self.builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(I32, len(chosen)), chosen))

    def _joined(self, one: ir.Value, other: ir.Value) -> ir.Value:
        """Emit the vector with the lanes of `one` and then those of `other`, two LLVM vectors of one type."""
        lanes = ir.Constant(ir.VectorType(I32, 2 * one.type.count), list(range(2 * one.type.count)))
        return self.builder.shuffle_vector(one, other, lanes)

    def _sum_gathered(self, start: Int, stop: Int, scales: Array | None, rows: Array, table: Array) -> Float:
        """Emit the sum over k of scales[k] * table[rows[k]] for a table of one column; return it as a scalar.

        Gathers vectors of entries first, then single entries.
        """
        tile, nought = self.tile, self.integer(0)
        vector = Tile(self.bits, GATHERED * 8 // self.bits, 1, masked=False)
        self.use(vector)
        sums = [self.float(self.zeros())] * GATHERS

        def entries(k: Int, sums: list[Float]) -> list[Float]:
            """Return the sums, each plus one gathered vector of entries from k on."""
            added = []
            for number, one in enumerate(sums):
                at = k + number * vector.lanes
                scale = None if scales is None else scales.row(nought, at).load()[0]
                added += self._add(scale, [table.gathered(rows.indices_at(at))], [one])
            return added

        for count in (GATHERS, 1):
            while len(sums) > count:
                half = len(sums) // 2
                sums = [a + b for a, b in zip(sums[:half], sums[half:], strict=True)]
            end = start + (stop - start).rounded_down(count * vector.lanes)
            sums = self.loop(start, end, count * vector.lanes, sums, entries)
            start = end
        total = self.total(sums)
        self.use(tile)

        def entry(k: Int, sums: list[Float]) -> list[Float]:
            """Return the sums plus the scaled row of entry k."""
            scale = None if scales is None else scales.number(k)
            return self._add(scale, table.row(rows.index(k), nought).load(), sums)

        return self.loop(start, stop, 1, [total], entry)[0]

    def _head(self, start: Int, stop: Int, term: Callable) -> tuple[list[Float], Int]:
        """Emit the sum of the first `cut.head` entries, from `start` on, without a branch; return (sums, next entry).

        `term(k)` returns (scale, row). For short rows of unpredictable length, with at least one entry before `stop`;
        missing ones count as zero times zero. With head 0 nothing is emitted and the next entry is `start`.
        """
        zeros = [self.float(self.zeros())] * self.tile.vectors
        if not self.cut.head:
            return zeros, start
        scale, row = term(start)
        sums = self._add(scale, row.load(), zeros)
        for number in range(1, self.cut.head):
            at = start + number
            there = self.builder.icmp_signed("<", at.value, stop.value)
            scale, row = term(Int(self, self.builder.select(there, at.value, start.value)))
            bits = self.builder.sext(there, ir.IntType(self.bits))
            kept = [self.numbers.masked(vec, bits) for vec in row.load()]
            sums = self._add(scale and self.numbers.masked(scale, bits), kept, sums)
        return sums, (start + self.cut.head).least(stop)

    def _ahead(self, stop: Int, last: Int) -> Int:
        """Emit how many entries ahead to prefetch: 0 if stop + ahead exceeds `last`, the last entry of all rows."""
        ahead = self.integer(self.tile.ahead)
        there = self.builder.icmp_signed("<=", (stop + ahead).value, last.value)
        return Int(self, self.builder.select(there, ahead.value, I64(0)))

    def _add(self, scale: Float | None, vectors: list[Float], sums: list[Float]) -> list[Float]:
        """Return the vectors sums + scale * vectors; scale None counts as 1."""
        pairs = zip(vectors, sums, strict=True)
        if scale is None:
            return [total + vec for vec, total in pairs]
        scale = self.numbers.spread(scale)
        return [scale.times_plus(vec, total) for vec, total in pairs]

    def loop(self, start: Int, stop: Int, step: int, carried: list[Float], body: Callable) -> list[Float]:
        """Emit `for k in range(start, stop, step): carried = body(k, carried)`; return the last `carried`.

        `carried` is a list of `Float`s that the loop passes on; `body` runs once, while code is generated.
        """
        builder, before = self.builder, self.builder.block
        head, inside, after = (builder.append_basic_block(f"lanes.{part}") for part in ("head", "body", "after"))
        builder.branch(head)
        builder.position_at_end(head)
        k = builder.phi(I64)
        k.add_incoming(start.value, before)
        phis = [builder.phi(float_.value.type) for float_ in carried]
        for phi, float_ in zip(phis, carried, strict=True):
            phi.add_incoming(float_.value, before)
        builder.cbranch(builder.icmp_signed("<", k, stop.value), inside, after)
        builder.position_at_end(inside)
        results = body(Int(self, k), [self.float(phi) for phi in phis]) or []
        k.add_incoming(builder.add(k, I64(step)), builder.block)
        for phi, result in zip(phis, results, strict=True):
            phi.add_incoming(result.value, builder.block)
        builder.branch(head)
        builder.position_at_end(after)
        return [self.float(phi) for phi in phis]

    def prefetch(self, pointer: ir.Value) -> None:
        """Emit a prefetch of the cache line at the LLVM address `pointer`, for reading, into all levels."""
        function = self.declare("llvm.prefetch.p0", ir.VoidType(), I8.as_pointer(), I32, I32, I32)
        at = self.builder.bitcast(pointer, I8.as_pointer())
        self.builder.call(function, [at, I32(0), I32(3), I32(1)])

    def total(self, vectors: list[Float]) -> Float:
        """Emit the sum over all columns of the tile, masked lanes left out; return it as a scalar `Float`."""
        vectors = list(vectors)
        if self.mask is not None:
            kept = self.builder.select(self.mask, vectors[-1].value, self.zeros())
            vectors[-1] = self.float(kept)
        value = sum(vectors[1:], vectors[0]).value
        lanes = self.tile.lanes
        while lanes > 1:
            lanes //= 2
            value = self.builder.fadd(*(self._chosen(value, range(at, at + lanes)) for at in (0, lanes)))
        if self.tile.lanes > 1:
            value = self.builder.extract_element(value, I32(0))
        return self.float(value)

    def totals(self, vectors: list[Float]) -> Float:
        """Emit the sum over the lanes of each of 1, 2, 4, ... vectors; return the sums as one vector, of one a scalar.

        Lanes beyond the edge are not left out: they must be zero, as loaded ones are. Sums of neighbouring lanes of two
        vectors become one vector, and so on: of 8 vectors 16 shuffles instead of 32.
        """
        values, lanes = [each.value for each in vectors], self.tile.lanes
        if lanes == 1 < len(values):
            single = [ir.VectorType(value.type, 1) for value in values]
            places = zip(values, single, strict=True)
            values = [
                self.builder.insert_element(ir.Constant(kind, ir.Undefined), value, I32(0)) for value, kind in places
            ]
        while lanes > 1 < len(values):
            values = [self._neighbours_added(*pair) for pair in zip(values[::2], values[1::2], strict=True)]
            lanes //= 2
        while len(values) > 1:
            values = [self._joined(*pair) for pair in zip(values[::2], values[1::2], strict=True)]
        value = values[0]
        while lanes > 1:
            value = self._neighbours_added(value, value, value.type.count // 2)
            lanes //= 2
        is_vector = isinstance(value.type, ir.VectorType)
        return self.float(self.builder.extract_element(value, I32(0)) if is_vector and len(vectors) == 1 else value)

    def _neighbours_added(self, one: ir.Value, other: ir.Value, count: int | None = None) -> ir.Value:
        """Emit the sums of lanes 0 and 1, 2 and 3, ... of `one` and then of `other`; the first `count` of them."""
        count = count or one.type.count
        kind = ir.VectorType(I32, count)
        chosen = [ir.Constant(kind, list(range(first, 2 * count, 2))) for first in (0, 1)]
        return self.builder.fadd(*(self.builder.shuffle_vector(one, other, lanes) for lanes in chosen))

    def one_of(self, numbers: Float, place: int) -> Float:
        """Emit number `place` of a vector of any length in every lane of the tile; a scalar is spread."""
        if not isinstance(numbers.value.type, ir.VectorType):
            return self.float(self.spread(numbers.value))
        if self.tile.lanes == 1:
            return self.float(self.builder.extract_element(numbers.value, I32(place)))
        return self.float(self._chosen(numbers.value, [place] * self.tile.lanes))

    def scratch(self, columns: int) -> "Scratch":
        """Emit a row of `columns` elements, at most, on the stack of the function; its contents are undefined."""
        place = cgutils.alloca_once(self.builder, ir.ArrayType(self.element, columns))
        place.align = LINE
        return Scratch(self, self.builder.bitcast(place, self.element.as_pointer()))


def _loaded(term: tuple[Float | None, Row]) -> tuple[Float | None, list[Float]]:
    """Return (scale or None, vectors of the row, loaded) of an entry."""
    return term[0], term[1].load()


def operands_of(lane: Lane, program: Program, kinds: Any, values: ir.Value) -> list:
    """Return stand-ins (`Array`, `Float`, `Int`) for the row function's arguments, given as one LLVM tuple `values`.

    `kinds` are their Numba types.
    """
    parts = cgutils.unpack_tuple(lane.builder, values) if len(kinds) else ()
    return [argument(lane, *each) for each in zip(kinds, parts, program.names(len(kinds)), strict=True)]


@intrinsic(prefer_literal=True)
def emit_row(typing_context: Any, name: Any, u: Any, width: Any, arguments: Any) -> Any:
    """Emit, in compiled code, the row function of `programs[name]` for row `u` of `width` columns.

    `arguments` is the tuple of its other arguments. `name` must be a literal: typing fails otherwise. Returns nothing.
    """
    if not isinstance(name, types.StringLiteral):
        return None

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        """Emit the code of the row; return the LLVM value of None; parameters as Numba gives them."""
        program = programs[name.literal_value]
        lane = Lane(context, builder, program, values[2])
        program.row(lane, Int(lane, values[1]), *operands_of(lane, program, arguments, values[3]))
        return context.get_dummy_value()

    return types.void(name, types.int64, types.int64, arguments), generate


# Ask the cache for an element ahead of its use, from plain compiled code (row loops have that of `vector.lanes`).

_I8, _I32 = ir.IntType(8), ir.IntType(32)


@intrinsic
def prefetch(typing_context, array, place):
    """Fetch the cache line of element `place` (uint64) of a 1-d or flat array, in compiled code.

    Nothing is read, so a place out of range is harmless.
    """

    def generate(context, builder, signature, values):
        """Emit LLVM's prefetch of the element's address; return the LLVM value of None."""
        data = context.make_array(signature.args[0])(context, builder, values[0]).data
        arguments = (_I8.as_pointer(), _I32, _I32, _I32)
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), arguments), "llvm.prefetch.p0"
        )
        at = builder.bitcast(builder.gep(data, [values[1]]), _I8.as_pointer())
        builder.call(function, [at, _I32(0), _I32(3), _I32(1)])  # to read, into every level, data
        return context.get_dummy_value()

    return types.void(array, types.uint64), generate


@intrinsic
def are_rising(typing_context, indices, start, stop):
    """Return, in compiled code, whether indices[start:stop] ascend strictly, so that none repeats; True if empty."""

    def generate(context, builder, signature, values):
        """Emit the comparison of neighbours; return the LLVM value of the answer."""

        def falls(load, k):
            """Return the lanes whose index is not larger than the one before."""
            return builder.icmp_signed("<=", load(k), load(builder.sub(k, I64(1))))

        range_ = values[0], builder.add(values[1], I64(1)), values[2]
        return _none_in(context, builder, signature.args[0], range_, falls)

    return types.boolean(indices, types.int64, types.int64), generate


def _none_in(context, builder, kind, values, is_wrong):
    """Emit a loop over array[start:stop], a vector at a time, the last one masked; return whether no lane is wrong.

    `kind` is the Numba type of the array, `values` are (array, start, stop). `is_wrong(load, k)` emits the truth of
    each lane, where `load(k)` emits the elements from k on. Rows of few entries so take no loop over single ones.
    """
    (array, start, stop), bits = values, kind.dtype.bitwidth
    data, lanes = context.make_array(kind)(context, builder, array).data, register_bytes() * 8 // bits
    truths, vector = ir.VectorType(ir.IntType(1), lanes), ir.VectorType(ir.IntType(bits), lanes)
    name, whole = f"llvm.masked.load.v{lanes}i{bits}.p0", ir.IntType(lanes)
    kinds = vector, (vector.as_pointer(), I32, truths, vector)
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(*kinds), name)
    before = builder.block
    head, inside, after = (builder.append_basic_block(f"none.{part}") for part in ("head", "body", "after"))
    builder.branch(head)
    builder.position_at_end(head)
    k, wrong = builder.phi(I64), builder.phi(truths)
    k.add_incoming(start, before)
    wrong.add_incoming(ir.Constant(truths, [0] * lanes), before)
    builder.cbranch(builder.icmp_signed("<", k, stop), inside, after)
    builder.position_at_end(inside)
    numbers = ir.Constant(ir.VectorType(I64, lanes), list(range(lanes)))
    mask = builder.icmp_signed("<", numbers, _spread(builder, builder.sub(stop, k), lanes))

    def load(at):
        """Emit the load of the elements from `at` on; those beyond the end are not read and are zero."""
        pointer = builder.bitcast(builder.gep(data, [at]), vector.as_pointer())
        return builder.call(function, [pointer, I32(bits // 8), mask, ir.Constant(vector, [0] * lanes)])

    found = builder.and_(mask, is_wrong(load, k))
    wrong.add_incoming(builder.or_(wrong, found), inside)
    k.add_incoming(builder.add(k, I64(lanes)), inside)
    builder.branch(head)
    builder.position_at_end(after)
    return builder.icmp_unsigned("==", builder.bitcast(wrong, whole), whole(0))


def _spread(builder, scalar, lanes):
    """Emit a vector with the LLVM value `scalar` in each of `lanes` lanes."""
    undefined = ir.Constant(ir.VectorType(scalar.type, lanes), ir.Undefined)
    first = builder.insert_element(undefined, scalar, I32(0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(I32, lanes), [0] * lanes))
