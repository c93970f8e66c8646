"""Launches of `row_sums.cuh`: weighted sums of table rows, split into pieces if one result has many entries."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels import devices
from kernels.gpu.source import FLOATS, NARROW, Source, blocks, c_name, source
from kernels.plan import BatchPlan

PIECE = 128
"""Entries of a piece. A group of lanes takes them one after the other, and nothing shortens that: with two in flight,
and 0.3 us for each to come (assumed, not measured), 20 us."""

KEPT_BYTES = 30 * 2**20
"""A table up to this size is asked to stay in the second-level cache: half of that of a Hopper GPU."""


@dataclass(frozen=True)
class Tile:
    """Lanes that compute one result; the fields of `Sum` in `row_sums.cuh`."""

    pack: int
    lanes: int
    sets: int
    packs: int

    @property
    def group(self) -> int:
        """Return the number of GPU threads that share one row of the sums: lanes times sets."""
        return self.lanes * self.sets

    def name(self, value: str) -> str:
        """Return the C++ type for sums of C type `value`, such as "Sum<float, 4, 32, 1, 2>"."""
        return f"Sum<{value}, {self.pack}, {self.lanes}, {self.sets}, {self.packs}>"


SHAPES = ((1, 8, 1), (2, 4, 1), (4, 4, 1), (8, 2, 1), (16, 1, 1), (32, 1, 1), (32, 1, 2))
"""(lanes, sets, packs a lane), narrow ones first: few columns leave lanes to more entries at once."""

PACK = {"float": 4, "double": 2}
"""Values of 16 bytes."""


def tiles(value: str) -> list[Tile]:
    """Return every tile for sums of C type `value`: packs of one value or of 16 bytes, narrow ones first."""
    return [Tile(pack, *shape) for pack in (1, PACK[value]) for shape in SHAPES]


def tile_of(width: int, value: str, is_aligned: bool) -> Tile:
    """Return the first tile that covers `width` columns, else the widest, which loops over blocks of columns.

    `is_aligned`: rows may be loaded in packs of 16 bytes.
    """
    pack = PACK[value]
    if not is_aligned or width % pack:
        pack = 1
    fitting = [tile for tile in tiles(value) if tile.pack == pack]
    return next((tile for tile in fitting if tile.pack * tile.lanes * tile.packs >= width), fitting[-1])


def names_of(kernel: str, is_of_table: bool = False) -> list[str]:
    """Return the C++ names of all variants of a kernel with a `Sum` argument, such as "csr_dense<Sum<float, ...>>".

    `is_of_table`: also those for tables of two-byte values.
    """
    names = [f"{kernel}<{tile.name(value)}>" for value in FLOATS for tile in tiles(value)]
    kinds = NARROW.values() if is_of_table else ()
    return names + [f"{kernel}<{tile.name('float')}, {kind}>" for kind in kinds for tile in tiles("float")]


_SECOND = source(__file__, names_of("add_pieces"))


def pieces_of(entries: int) -> int:
    """Return how many pieces of 128 entries `entries` entries are split into; 0 if one suffices."""
    return -(-entries // PIECE) if entries > PIECE else 0


@dataclass(frozen=True)
class Lengths:
    """Known lengths of results (row or column lengths): the more is known, the less a launch has to do.

    Results have the same bits in any case. The gain on a GPU is not measured.
    """

    constant: int = -1
    """Entries of every result, where all have the same number: where they start is then computed, not loaded."""
    longest: int = -1
    """Entries of the longest, where it is known: up to `PIECE`, nothing is cut, and there is no second launch."""
    order: Any = None
    """The results in descending order of entries, counted up to `PIECE + 1`: int32 [results]. Groups that work side by
    side then end together, and nothing long begins late."""

    @classmethod
    def of_rows(cls, plan: BatchPlan) -> "Lengths":
        """Return what a plan knows of the row lengths of its batch, for products."""
        return cls(plan.row_length, plan.longest_row, plan.row_order)

    @classmethod
    def of_columns(cls, plan: BatchPlan) -> "Lengths":
        """Return what a plan knows of the entries of its active columns, for gradients."""
        return cls(-1, plan.longest_run, plan.column_order)

    def pieces(self, entries: int) -> int:
        """Return the pieces to split `entries` entries into; 0 if the longest result is known to fit one piece."""
        return 0 if 0 <= self.longest <= PIECE else pieces_of(entries)


UNKNOWN = Lengths()


def results_of(starts: Any, rows: int, entries: int, lengths: Lengths, counted: Any = None) -> tuple:
    """Return the kernel arguments for `rows` results with pointers `starts`, as named by `RESULTS` in `row_sums.cuh`.

    `counted` int64 [1] on the device is the number of valid results; None: all.
    """
    order = starts if lengths.order is None else lengths.order
    known = lengths.pieces(entries), PIECE, int(lengths.constant), order, lengths.order is not None
    wide = starts.dtype.itemsize == 8
    return starts, wide, rows, entries, *known, starts if counted is None else counted, counted is not None


def row_sums(
    code: Source,
    kernel: str,
    starts: Any,
    entries: tuple,
    table: Any,
    out: Any,
    partial: Any = None,
    lengths: Lengths = UNKNOWN,
    counted: Any = None,
) -> None:
    """Queue out[r] = sum over the entries k of row r of weight(k) * table[row(k)], with `kernel` of the source `code`.

    `entries` are the arrays that the kernel takes after the results; out [R, N] is overwritten. Sums of pieces go to
    `partial` [2 * pieces_of(room), N] or to a new array. The table may have two bytes per value if `out` is float32.
    `counted` is as in `results_of`: later rows of `out` are not changed.
    """
    rows, width = out.shape
    if rows == 0 or width == 0:
        return
    device, value = devices.device_of(out), c_name(out.dtype)
    tile = tile_of(width, value, device.is_aligned(table) and device.is_aligned(out))
    pieces = lengths.pieces(entries[0].size)
    if partial is None:
        partial = device.empty((2 * pieces, width), out.dtype)  # [2 * pieces, N]
    results, columns = results_of(starts, rows, entries[0].size, lengths, counted), np.int32(width)
    table_type = "" if table.dtype == out.dtype else f", {c_name(table.dtype)}"
    first = *results, *entries, table, out, partial, columns, table.nbytes <= KEPT_BYTES
    device.launch(code, f"{kernel}<{tile.name(value)}{table_type}>", blocks((rows + pieces) * tile.group), *first)
    if pieces:
        second = f"add_pieces<{tile.name(value)}>"
        device.launch(_SECOND, second, blocks(rows * tile.group), *results, partial, out, columns)
