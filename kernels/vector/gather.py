"""Row loops: a row's work, written with `kernels.vector.lanes`, made into one compiled function for each shape of row.

    _rows = gather.RowLoop(_row, starts=0)

    def cpu(indptr, indices, data, x, out):
        rows, width = out.shape
        shape = width, x.itemsize, is_far(x.nbytes)
        _rows.run(shape, rows, gather.work_of(indices.size, width, rows), indptr, indices, data, x, out)

A compiled function has one body for one thread and for many, so that both give the same bits, and is kept on disk: a
new shape costs 0.15 s once, 4 ms in later processes. Numba's own `prange` makes the body twice, once for one thread and
once behind two more functions, which takes four times as long.
"""

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numba import types
from numba.extending import intrinsic

from kernels._compat.numba_internals import layer, on_threads
from kernels.code_cache import CodeCache, digest_of, digest_of_files, njit
from kernels.structure import are_compressed
from kernels.threads import LEAST_WORK, ROW_COST, share, this_thread
from kernels.vector import lanes
from kernels.vector.lanes import I64, Lane, operands_of, programs
from kernels.vector.operands import Int
from kernels.vector.tiles import Cut, cut_sums

# The code of a row's work made into that of all rows, in parts on the threads.
#
# Each thread finds itself where its parts begin: a call before that cuts the rows takes as long as a small batch.


if TYPE_CHECKING:
    from kernels.vector.operands import Array


class Costs:
    """Cumulative costs of rows: `per_row` each, plus its entries if `starts` is given.

    Without `starts` all rows cost the same.
    """

    def __init__(self, lane: Lane, rows: Int, starts: "Array | None", per_row: int) -> None:
        """Keep the row count and the row pointers `starts` [rows + 1] (None: all rows cost the same) of generated code.

        `per_row` is the cost of a row besides its entries, in entries.
        """
        self.lane, self.rows, self.starts, self.per_row = lane, rows, starts, per_row

    def before(self, row: Int) -> Int:
        """Emit the cost, in entries, of the rows before `row`; without `starts` their number."""
        if self.starts is None:
            return row
        return self.starts.index(row) - self.starts.index(self.lane.integer(0)) + row * self.per_row

    def first(self, part: Int, parts: Int) -> Int:
        """Emit the first row of part `part` of `parts`, parts of equal cost as far as whole rows allow.

        `rows` if part = parts.
        """
        if self.starts is None:
            return (self.rows * part).over(parts)
        return self._bisect((self.before(self.rows) * part).over(parts))

    def _bisect(self, target: Int) -> Int:
        """Emit a binary search: the first row before which the cost is `target` or more."""
        builder, before = self.lane.builder, self.lane.builder.block
        head, inside, after = (builder.append_basic_block(f"rows.{part}") for part in ("head", "body", "after"))
        builder.branch(head)
        builder.position_at_end(head)
        low, high = builder.phi(I64), builder.phi(I64)
        low.add_incoming(I64(0), before)
        high.add_incoming(self.rows.value, before)
        builder.cbranch(builder.icmp_signed("<", low, high), inside, after)
        builder.position_at_end(inside)
        middle = Int(self.lane, builder.lshr(builder.add(low, high), I64(1)))
        is_less = builder.icmp_signed("<", self.before(middle).value, target.value)
        low.add_incoming(builder.select(is_less, (middle + 1).value, low), builder.block)
        high.add_incoming(builder.select(is_less, high, middle.value), builder.block)
        builder.branch(head)
        builder.position_at_end(after)
        return Int(self.lane, low)


@intrinsic(prefer_literal=True)
def emit(typing_context, name, parts, rows, width, arguments):
    """Emit, in compiled code, the row function of `programs[name]` for rows 0 to rows - 1 of `width` columns.

    The rows are cut into `parts` parts of equal cost, executed on the threads. `arguments` is the tuple of the row
    function's other arguments. `name` must be a literal: typing fails otherwise.
    """
    if not isinstance(name, types.StringLiteral):
        return None

    def generate(context, builder, signature, values):
        """Emit the loop over the parts on the layer's threads; return the LLVM value of None.

        Parameters as Numba gives them.
        """
        program = programs[name.literal_value]

        def write(builder, first, count, values):
            """Emit the loop over parts first to first + count - 1 in one thread's function.

            `values` are (parts, rows, ...).
            """
            lane = Lane(context, builder, program, values[2])
            operands = operands_of(lane, program, arguments, values[3])
            starts = None if program.starts is None else operands[program.starts]
            parts, cost = Int(lane, values[0]), Costs(lane, Int(lane, values[1]), starts, program.per_row)

            def part(number, _):
                """Emit the rows of part `number`; the second argument is unused."""
                row = lambda u, _: program.row(lane, u, *operands)  # noqa: E731
                lane.loop(cost.first(number, parts), cost.first(number + 1, parts), 1, [], row)

            first = Int(lane, first)
            lane.loop(first, first + Int(lane, count), 1, [], part)

        on_threads(builder, values[1], values[1:], write)
        return context.get_dummy_value()

    return types.void(name, types.int64, types.int64, types.int64, arguments), generate


ENTRY_COST = 8
"""What taking up an entry costs, in columns of its row."""

SPEED = 5
"""Columns of a row that are added in the time of a multiply-add of `threads.is_serial`."""

ROW_WORK = 12
"""Multiply-adds in the time that a row of a sum takes to begin and to end: no processor guesses how long it is."""

_compiled = njit(nogil=True, error_model="numpy")

made: list = []
"""The compiled functions of this process."""


@functools.cache
def _make(name: str) -> Callable:
    """Return the compiled row loop (parts, rows, width, *arguments) of the code `programs[name]`; cached, also on disk.

    Starts the threading layer, and appends the function to `made`.
    """

    def run(parts, rows, width, *arguments):
        """Run the row function for rows 0 to rows - 1 of `width` columns in `parts` parts; returns nothing."""
        emit(name, parts, rows, width, arguments)

    # Its own name gives it an index of its own on disk: one index for all 850 takes 30 ms to read, for each of them.
    run.__qualname__ = f"{name.split()[0]}_{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    layer()  # code is linked with its functions
    made.append(_compiled(run))
    return made[-1]


@functools.cache
def _make_guarded(name: str) -> Callable[..., bool]:
    """Return the compiled function of `RowLoop.guarded` for the code `programs[name]`; cached, also on disk.

    Starts the threading layer, and appends the function to `made`.
    """

    def run(indptr, indices, data, x, out):
        """Write A @ x to out and return True; False, with out unchanged, if A is invalid."""
        if not are_compressed(indptr, indices, x.shape[0]):
            return False
        emit(name, 1, out.shape[0], out.shape[1], (indptr, indices, data, x, out))
        return True

    run.__qualname__ = f"guarded_{name.split()[0]}_{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    layer()  # code is linked with its functions
    made.append(_compiled(run))
    return made[-1]


class RowLoop(dict[tuple, Callable]):
    """Compiled loops over rows: `row(lane, u, *arguments)` for many rows, cut into tiles by `cut` of
    `kernels.vector.tiles`.

    `loop.run(shape, rows, work, *arguments)` processes rows 0 to `rows` - 1, on all threads if that is faster; `shape`
    is what `cut` takes: columns of a row, bytes of an element, and what is not in the cache. Parts have equal cost:
    `per_row` per row plus its entries, given by the row pointers among the arguments at position `starts` (None: rows
    only). `loop[shape](parts, rows, width, *arguments)` is the compiled function; a dictionary, since the look-up is in
    every call.
    """

    def __init__(
        self,
        row: Callable,
        *,
        cut: Callable[..., Cut] = cut_sums,
        starts: int | None = None,
        per_row: int = ROW_COST,
        name: str = "",
        most_alone: int = LEAST_WORK - 1,
    ) -> None:
        """Keep the row function, its cut into tiles, the position of row pointers and the cost of a row.

        Calls of up to `most_alone` multiply-adds stay on one thread. Compiles nothing. `name` identifies the code on
        disk; by default the row function's module and name.
        """
        super().__init__()
        self.row, self.cut, self.starts, self.per_row, self.most_alone = row, cut, starts, per_row, most_alone
        self.name = name or f"{row.__module__}.{row.__qualname__}"
        self._guarded: dict[tuple, Callable[..., bool]] = {}

    def run(self, shape: tuple, rows: int, work: int, *arguments: np.ndarray | float) -> None:
        """Run the row function on rows 0 to rows - 1, on several threads if `work` (in multiply-adds) is worth it.

        `shape` is what `cut` takes; shape[0] is the width. Compiles on first use of a shape; arrays are changed as the
        row function says.
        """
        if work <= self.most_alone and this_thread.is_serial is not False:  # as `is_forced_parallel` asks
            self[shape](1, rows, shape[0], *arguments)
            return
        parts, choices = share(work)
        self[shape](parts, rows, shape[0], *arguments)
        if choices is not None:
            choices.ended()

    def guarded(self, shape: tuple) -> Callable[..., bool]:
        """Return a compiled function (indptr, indices, data, x, out) of one thread for a product of csr A and x.

        It checks A, writes A @ x to `out`, and returns whether A was valid: with few rows, a separate call for the
        check takes as long as the product. Sums are bit for bit those of `run`. Arrays are contiguous.
        """
        function = self._guarded.get(shape)
        if function is None:
            function = self._guarded[shape] = _make_guarded(self.code(self.cut(*shape)))
        return function

    def __missing__(self, shape: tuple) -> Callable:
        """Compile, store and return the loop for `shape`; a loop that does nothing if its width, shape[0], is 0."""
        self[shape] = function = self._function(self.cut(*shape)) if shape[0] else _no_columns
        return function

    def _function(self, cut: Cut) -> Callable:
        """Return the compiled function (parts, rows, width, *arguments) for a cut."""
        return _make(self.code(cut))

    def code(self, cut: Cut) -> str:
        """Register the row function with a cut in `lanes.programs`.

        Return its key, for `lanes.emit_row` in compiled code.
        """
        name = f"{self.name} {cut} {self.starts} {self.per_row} {self.digest}"
        lanes.programs[name] = lanes.Program(self.row, cut, self.starts, self.per_row)
        return name

    @functools.cached_property
    def digest(self) -> str:
        """Return a 16-digit hash of the sources: this module's and everything that the row function refers to."""
        texts = digest_of(self.row) + digest_of_files(__name__)
        return hashlib.sha256(texts.encode()).hexdigest()[:16]


def has_compiled_loops() -> bool:
    """Return whether the cache folder on disk has compiled code of any row loop, of this version or an earlier one."""
    return any(Path(CodeCache(work_of).cache_path).glob(f"{__name__}.*.nbc"))


def _no_columns(parts: int, rows: int, width: int, *arguments: np.ndarray | float) -> None:
    """Do nothing, in place of a compiled loop, for rows without columns."""


def work_of(entries: int, width: int, rows: int = 0) -> int:
    """Return the work of summing `entries` entries of `width` columns in `rows` rows, in multiply-adds of `is_serial`.

    Measured on one core of an EPYC 9004, 31,000 entries in 1,024 rows, of N = 1, 16, 64: 15, 26, 75 us; by this 12, 29,
    82. In 7,000 columns: 30, 42 us with N = 1, 16; by this 25, 42.
    """
    return entries * (width + ENTRY_COST) // SPEED + ROW_WORK * rows
