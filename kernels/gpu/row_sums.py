"""Launches of `row_sums.cuh`: weighted sums of table rows, in pieces where many entries have one result."""

from dataclasses import dataclass

import numpy as np

from kernels import devices
from kernels.gpu.source import FLOATS, blocks, c_name, source

PIECE = 128
"""Entries of a piece. A group of lanes takes them one after the other, and nothing shortens that: with two in flight
it is about 20 us on a Hopper GPU, by the latency of its caches."""

KEPT_BYTES = 30 * 2**20
"""A table up to this size is asked to stay in the second-level cache: half of that of a Hopper GPU."""


@dataclass(frozen=True)
class Tile:
    """How lanes share a result; the fields of `Sum` in `row_sums.cuh`."""

    pack: int
    lanes: int
    sets: int
    packs: int

    @property
    def group(self) -> int:
        """Lanes of a group."""
        return self.lanes * self.sets

    def name(self, value: str) -> str:
        """The C++ type for sums of type `value`."""
        return f"Sum<{value}, {self.pack}, {self.lanes}, {self.sets}, {self.packs}>"


SHAPES = ((1, 8, 1), (2, 4, 1), (4, 4, 1), (8, 2, 1), (16, 1, 1), (32, 1, 1), (32, 1, 2))
"""(lanes, sets, packs a lane), narrow ones first: few columns leave lanes to more entries at once."""

BYTES_PACK = {"float": 16, "double": 16}


def tiles(value: str) -> list[Tile]:
    """Every tile for sums of type `value`: one value or 16 bytes a pack."""
    return [Tile(pack, *shape) for pack in (1, {"float": 4, "double": 2}[value]) for shape in SHAPES]


def tile_of(width: int, value: str, is_aligned: bool) -> Tile:
    """The first tile that covers `width` columns, else the widest, which then goes over the columns in blocks."""
    pack = {"float": 4, "double": 2}[value]
    if not is_aligned or width % pack:
        pack = 1
    fitting = [tile for tile in tiles(value) if tile.pack == pack]
    return next((tile for tile in fitting if tile.pack * tile.lanes * tile.packs >= width), fitting[-1])


def names_of(kernel: str) -> list[str]:
    """Every variant of a kernel with a `Sum` for its template argument."""
    return [f"{kernel}<{tile.name(value)}>" for value in FLOATS for tile in tiles(value)]


_SECOND = source(__file__, names_of("add_pieces"))


def row_sums(code, kernel: str, starts, entries: tuple, table, out) -> None:
    """out[r] = the sum over the entries k of row `r` of weight(k) * table[row(k)], by `kernel` of the source `code`.

    `entries` are the arrays that the kernel takes after `starts`, whose length is that of the first.
    """
    rows, width = out.shape
    if rows == 0 or width == 0:
        return
    device, value = devices.of(out), c_name(out.dtype)
    tile = tile_of(width, value, device.is_aligned(table) and device.is_aligned(out))
    count = entries[0].size
    pieces = -(-count // PIECE) if count > PIECE else 0
    partial = device.empty((2 * pieces, width), out.dtype)  # [2 * pieces, N]
    wide, cut = starts.dtype.itemsize == 8, (rows, count, pieces, PIECE)
    first = (starts, wide, *entries, table, out, partial, np.int32(width), *cut, table.nbytes <= KEPT_BYTES)
    device.launch(code, f"{kernel}<{tile.name(value)}>", blocks((rows + pieces) * tile.group), *first)
    if pieces:
        second = (starts, wide, partial, out, np.int32(width), *cut)
        device.launch(_SECOND, f"add_pieces<{tile.name(value)}>", blocks(rows * tile.group), *second)
