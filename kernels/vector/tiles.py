"""Division of a row of a dense operand into vector registers, and prefetch distances.

A tile is what one pass over a row's entries sums in registers. A row of N columns is cut into full tiles of the widest
kind and one for the rest, with the narrowest vectors that hold it, so that N = 1, 2, 3, 4, 8 have code of their own.
Code is compiled once for all widths with the same tiles: a mask limits the columns of the last vector.
"""

import functools
from dataclasses import dataclass
from pathlib import Path

import llvmlite.binding

from kernels._compat.numba_internals import config
from kernels.aligned import LINE

IN_FLIGHT = 8
"""Independent sums wanted: a fused multiply-add takes four cycles, and two can start in each."""


@functools.cache
def features() -> frozenset[str]:
    """Return the vector extensions that Numba compiles for, such as "avx2"; cached.

    From Numba's CPU_FEATURES setting, else those of this processor.
    """
    if config.CPU_FEATURES is not None:
        return frozenset(entry[1:] for entry in config.CPU_FEATURES.split(",") if entry.startswith("+"))
    host_features = llvmlite.binding.get_host_cpu_features()
    return frozenset(name for name, there in host_features.items() if there)


@functools.cache
def register_bytes() -> int:
    """Return the bytes of a vector register: 64 with AVX-512, 32 with AVX, else 16."""
    return 64 if "avx512f" in features() else 32 if "avx" in features() else 16


@functools.cache
def most_vectors() -> int:
    """Return the number of vectors of sums that a loop keeps in registers: 16 with AVX-512, else 8."""
    return 16 if "avx512f" in features() else 8


@dataclass(frozen=True)
class Tile:
    """`vectors` vectors of `lanes` elements of `bits` bits; if `masked`, the last one may have fewer columns than
    lanes.
    """

    bits: int
    lanes: int
    vectors: int
    masked: bool

    @property
    def width(self) -> int:
        """Return the number of columns of a full tile: lanes of a vector times vectors."""
        return self.lanes * self.vectors

    @property
    def lines(self) -> int:
        """Return the number of cache lines of a full tile, rounded up."""
        return -(-self.width * self.bits // (8 * LINE))

    @property
    def ahead(self) -> int:
        """Return how many entries lie between a prefetch and its use, 8 to 48: some 100 lines are then in flight."""
        return min(48, max(8, 128 // self.lines))

    @property
    def unroll(self) -> int:
        """Return how many entries are summed in parallel, so that enough sums are in flight."""
        return max(1, IN_FLIGHT // self.vectors)


@dataclass(frozen=True)
class Cut:
    """Division of a row: full tiles (None if the row is no wider than `rest`), and one tile for the rest.

    `far_rows`: whether the rows that a sum gathers are prefetched from memory; `far_state`: the same of the rows that
    an update reads and writes. `head`: entries summed without a branch.
    """

    full: Tile | None
    rest: Tile
    far_rows: bool = False
    far_state: bool = False
    head: int = 0
    """Entries of a row that are summed without a branch; then no row may be empty."""

    @property
    def width(self) -> int:
        """Return the columns of a row if all rows of this cut have as many, else 0: a constant saves a product."""
        return self.rest.width if self.full is None and not self.rest.masked else 0


def full_lanes(bits: int) -> int:
    """Return the number of elements of `bits` bits in a vector register."""
    return register_bytes() * 8 // bits


@functools.cache
def gathers() -> bool:
    """Return whether the processor has masked gather instructions of AVX-512."""
    return {"avx512f", "avx512vl"} <= features()


@functools.cache
def gathers_by_loads() -> bool:
    """Return whether a vector of elements is faster by single loads than by the processor's instruction: AMD's.

    Measured on a core of an EPYC 9005, the scores of rows, ns an entry by the instruction / by loads: 300 entries in
    3,000 columns 0.57 / 0.41, 30 in 20,000 1.84 / 1.28, 8 in 100,000 3.2 / 2.5, 22 in 30,000 0.89 / 0.89. The bits are
    the same.
    """
    return (config.CPU_NAME or llvmlite.binding.get_host_cpu_name()).startswith("znver")


def widest(bits: int) -> int:
    """Return the number of columns of the widest tile, for elements of `bits` bits."""
    return full_lanes(bits) * most_vectors()


def tile_for(width: int, bits: int) -> Tile:
    """Return the tile for `width` columns, 1 to `widest(bits)`, with the narrowest vectors that hold them."""
    lanes = full_lanes(bits)
    while lanes // 2 >= width:
        lanes //= 2
    vectors = -(-width // lanes)
    return Tile(bits, lanes, vectors, masked=width % lanes != 0)


def cut_sums(width: int, itemsize: int, far_rows: bool = False, far_state: bool = False, head: int = 0) -> Cut:
    """Return the cut of `width` columns for sums over entries: as many columns as possible in registers.

    Entries are read once per tile. `far_rows`, `far_state` and `head` are the fields of `Cut`.
    """
    bits = 8 * itemsize
    most = widest(bits)
    full = Tile(bits, full_lanes(bits), most_vectors(), masked=False) if width > most else None
    return Cut(full, tile_for((width - 1) % most + 1, bits), far_rows, far_state, head)


def cut_elements(width: int, itemsize: int, far_state: bool = False) -> Cut:
    """Return the cut of `width` columns for elementwise work: single vectors and a masked one for the rest.

    It is the same for every row wider than a vector.
    """
    bits = 8 * itemsize
    lanes = full_lanes(bits)
    if width <= lanes:
        return Cut(None, tile_for(width, bits), far_state=far_state)
    return Cut(Tile(bits, lanes, 1, masked=False), Tile(bits, lanes, 1, masked=True), far_state=far_state)


def cut_neighbours(itemsize: int) -> Cut:
    """Return the cut for adjacent elements of which some are skipped (`where_marked`): one masked vector."""
    bits = 8 * itemsize
    return Cut(None, Tile(bits, full_lanes(bits), 1, masked=True))


USUAL_CACHES = {2: 2**20, 3: 16 * 2**20}
"""Bytes of the caches of a core and of all cores, taken where the system does not tell."""


@functools.cache
def cache_bytes(level: int) -> int:
    """Return the bytes of this machine's cache of level 2 or 3, from Linux, else a usual size; cached."""
    for index in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        size = (index / "size").read_text().strip()
        if (index / "level").read_text().strip() == str(level) and size.endswith("K"):
            return int(size[:-1]) * 1024
    return USUAL_CACHES[level]


def is_far(bytes_operand: int, bytes_row: int = 2 * LINE) -> bool:
    """Return whether rows that a sum gathers should be prefetched, since the operand exceeds a core's cache.

    `bytes_operand` is the size of the operand, `bytes_row` of one row. Measured on one core of an EPYC 9005, rows of
    128 to 1024 bytes: 10 to 25 % faster from the shared cache, up to 40 % from memory; up to 20 % slower within a
    core's cache. A row of one cache line gains 25 % from memory and nothing from the shared cache; shorter ones never
    gain, since the processor itself looks as many entries ahead.
    """
    if bytes_row < LINE:
        return False
    return bytes_operand >= cache_bytes(2) * (1 if bytes_row > LINE else 4)


@functools.lru_cache(4096)
def shape_of(table: tuple[int, int], itemsize: int) -> tuple[int, int, bool]:
    """Return (width, itemsize, far_rows), the arguments of `cut_sums`, for sums of rows of a `table` of this shape.

    Cached.
    """
    rows, width = table
    return width, itemsize, is_far(rows * width * itemsize, width * itemsize)


def is_far_gradient(bytes_operand: int, bytes_row: int) -> bool:
    """Return whether rows of the gradient of the scores should be prefetched when columns are summed.

    `bytes_operand` is its size. 5 to 15 % faster from memory, and as much slower from the shared cache, since columns
    are short.
    """
    return bytes_row >= LINE and bytes_operand >= cache_bytes(3) // 2


MANY = 8
"""Entries in a column, in the mean, from which on more of them change nothing."""


@functools.lru_cache(4096)
def shape_of_gradient(slope: tuple[int, int], itemsize: int, in_a_column: int) -> tuple[int, int, bool, bool, int]:
    """Return (width, itemsize, far_rows, False, head), the arguments of `cut_sums` for the gradient of the scores.

    Cached. `slope` is its shape [R, N], `in_a_column` the mean number of entries of a column, at most `MANY`.
    """
    rows, width = slope
    bytes_row = width * itemsize
    far = is_far_gradient(rows * bytes_row, bytes_row)
    return width, itemsize, far, False, head_of(in_a_column, 1, bytes_row)


def is_far_state(bytes_state: int, bytes_row: int) -> bool:
    """Return whether rows of weights and states that an update changes should be prefetched.

    `bytes_state` is the size of all these arrays, `bytes_row` of one row of one array. Measured as above: a third
    faster for wide rows that exceed a core's cache, and half for single values from memory, where the sum of a column
    keeps the processor from looking far ahead.
    """
    return bytes_state >= (4 * cache_bytes(2) if bytes_row >= LINE else cache_bytes(3) // 2)


def head_of(entries: int, rows: int, bytes_row: int) -> int:
    """Return how many entries of a row to sum without a branch: 0, 2 or 4.

    From the mean length, `entries` / `rows`, of rows that are never empty. Measured on columns of batches with 1.6 to
    5.5 entries on average, N = 1 to 16: 10 to 60 % faster than a loop; with wider rows no gain.
    """
    if bytes_row > register_bytes():
        return 0
    return 4 if 2 * rows <= entries < 5 * rows else 2
