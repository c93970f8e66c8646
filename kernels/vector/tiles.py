"""Cuts of a row of a dense operand into vector registers, and where it is fetched ahead of its use.

A tile is what one pass over a row's entries sums in registers. A row of N columns is cut into full tiles of the widest
kind and one for the rest, which has the narrowest vectors that hold it, so that N = 1, 2, 3, 4, 8 have shapes of their
own. A shape is made once for all the widths that it fits: a mask says how many columns its last vector has.
"""

import functools
from dataclasses import dataclass
from pathlib import Path

import llvmlite.binding

from kernels.aligned import LINE
from kernels.private.of_numba import config

IN_FLIGHT = 8
"""Independent sums wanted: a fused multiply-add takes four cycles, and two can start in each."""


@functools.cache
def features() -> frozenset[str]:
    """The vector extensions that Numba compiles for on this machine."""
    if config.CPU_FEATURES is not None:
        return frozenset(entry[1:] for entry in config.CPU_FEATURES.split(",") if entry.startswith("+"))
    host_features = llvmlite.binding.get_host_cpu_features()
    return frozenset(name for name, there in host_features.items() if there)


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
    """`vectors` of `lanes` elements of `bits`; with `masked` the last one may have fewer columns than lanes."""

    bits: int
    lanes: int
    vectors: int
    masked: bool

    @property
    def width(self) -> int:
        """Columns of a full tile."""
        return self.lanes * self.vectors

    @property
    def lines(self) -> int:
        """Cache lines of a full tile."""
        return -(-self.width * self.bits // (8 * LINE))

    @property
    def ahead(self) -> int:
        """Entries between a prefetch and its use: some hundred lines on their way."""
        return min(48, max(8, 128 // self.lines))

    @property
    def unroll(self) -> int:
        """Entries summed side by side, so that enough sums are in flight."""
        return max(1, IN_FLIGHT // self.vectors)


@dataclass(frozen=True)
class Cut:
    """Cut of a row: full tiles as long as they fit (None: the row is no wider than `rest`), and one for the rest.

    `far_rows` says that the rows which a sum gathers come from memory and are asked for ahead of their use, `far_state`
    the same of the rows that an update reads and writes.
    """

    full: Tile | None
    rest: Tile
    far_rows: bool = False
    far_state: bool = False
    head: int = 0
    """Entries of a row that are summed without a branch; then no row may be empty."""


def full_lanes(bits: int) -> int:
    """Elements of a register."""
    return register_bytes() * 8 // bits


def widest(bits: int) -> int:
    """Columns of the widest tile."""
    return full_lanes(bits) * most_vectors()


def tile_for(width: int, bits: int) -> Tile:
    """The tile for `width` columns, 1 to `widest(bits)`: the narrowest vectors that hold them."""
    lanes = full_lanes(bits)
    while lanes // 2 >= width:
        lanes //= 2
    vectors = -(-width // lanes)
    return Tile(bits, lanes, vectors, masked=width % lanes != 0)


def cut_sums(width: int, itemsize: int, far_rows: bool = False, far_state: bool = False, head: int = 0) -> Cut:
    """The cut for sums over a row's entries: as many columns in registers as there are, for the entries are read again
    for each tile."""
    bits = 8 * itemsize
    most = widest(bits)
    full = Tile(bits, full_lanes(bits), most_vectors(), masked=False) if width > most else None
    return Cut(full, tile_for((width - 1) % most + 1, bits), far_rows, far_state, head)


def cut_elements(width: int, itemsize: int, far_state: bool = False) -> Cut:
    """The cut for work on each element alone: vectors, and a masked one for the rest, the same for every wide row."""
    bits = 8 * itemsize
    lanes = full_lanes(bits)
    if width <= lanes:
        return Cut(None, tile_for(width, bits), far_state=far_state)
    return Cut(Tile(bits, lanes, 1, masked=False), Tile(bits, lanes, 1, masked=True), far_state=far_state)


def cut_neighbours(itemsize: int) -> Cut:
    """The cut for elements that lie beside each other, some of them left out (`Lane.where_marked`)."""
    bits = 8 * itemsize
    return Cut(None, Tile(bits, full_lanes(bits), 1, masked=True))


USUAL_CACHES = {2: 2**20, 3: 16 * 2**20}
"""Bytes of the caches of a core and of all cores, taken where the system does not tell."""


@functools.cache
def cache_bytes(level: int) -> int:
    """Bytes of this machine's cache of that level as Linux tells, elsewhere a usual size."""
    for index in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        size = (index / "size").read_text().strip()
        if (index / "level").read_text().strip() == str(level) and size.endswith("K"):
            return int(size[:-1]) * 1024
    return USUAL_CACHES[level]


def is_far(bytes_operand: int, bytes_row: int = 2 * LINE) -> bool:
    """Whether rows of an operand that a sum gathers should be asked for ahead: it is too large for a core's cache.

    Measured on one core of an EPYC 9005, rows of 128 to 1024 bytes: 10 to 25 % gained from the shared cache, up to
    40 % from memory; lost within a core's cache up to 20 %. A row of one cache line gains 25 % from memory and nothing
    from the shared cache; shorter ones never gain, for the processor itself looks as many entries ahead.
    """
    if bytes_row < LINE:
        return False
    return bytes_operand >= cache_bytes(2) * (1 if bytes_row > LINE else 4)


@functools.lru_cache(4096)
def shape_of(table: tuple[int, int], itemsize: int) -> tuple[int, int, bool]:
    """Argument of `cut_sums` for sums of rows of a dense operand of that shape; kept, for every call asks for it."""
    rows, width = table
    return width, itemsize, is_far(rows * width * itemsize, width * itemsize)


def is_far_gradient(bytes_operand: int, bytes_row: int) -> bool:
    """Whether `is_far` holds for the slope of a loss, whose rows a column's sum gathers: 5 to 15 % gained from memory,
    and as much lost from the shared cache, for columns are short."""
    return bytes_row >= LINE and bytes_operand >= cache_bytes(3) // 2


MANY = 8
"""Entries in a column, in the mean, from which on more of them change nothing."""


@functools.lru_cache(4096)
def shape_of_gradient(slope: tuple[int, int], itemsize: int, in_a_column: int) -> tuple[int, int, bool, bool, int]:
    """Arguments of `cut_sums` for sums of rows of a slope of that shape, with so many entries in a column, in the mean
    and `MANY` at most; kept, for every call asks for it."""
    rows, width = slope
    bytes_row = width * itemsize
    far = is_far_gradient(rows * bytes_row, bytes_row)
    return width, itemsize, far, False, head_of(in_a_column, 1, bytes_row)


def is_far_state(bytes_state: int, bytes_row: int) -> bool:
    """Whether rows of weights and state that an update changes should be asked for ahead.

    Measured as above: a gain of a third for wide rows that leave a core's cache, and of a half for single numbers that
    come from memory, where the sum of a column keeps the processor from looking far ahead.
    """
    return bytes_state >= (4 * cache_bytes(2) if bytes_row >= LINE else cache_bytes(3) // 2)


def head_of(entries: int, rows: int, bytes_row: int) -> int:
    """Number of entries to sum without a branch, from the mean length of rows that are never empty.

    Measured on columns of batches with 1.6 to 5.5 entries on average, N = 1 to 16: 10 to 60 % gained over a loop;
    with wider rows nothing.
    """
    if bytes_row > register_bytes():
        return 0
    return 4 if 2 * rows <= entries < 5 * rows else 2
