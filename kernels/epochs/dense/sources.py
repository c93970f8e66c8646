"""Ways in which the rows of a dense epoch are held: as a dense array, which is read in place, as CSR, or as an array of
a smaller type, uint8 or float16, whose values are widened.

Rows that are not read in place are put into the table of a block, which stays in the caches of the cores at work.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kernels import aligned
from kernels.code_cache import inlined
from kernels.contract import Case

FEW = 8
"""A row with fewer than one entry in so many columns is cleared entry by entry."""


@dataclass(frozen=True)
class Source:
    """One way: operands of a kernel, what its arguments and those of a call are, and compiled functions.

    `fill(source, order, start, begin, end)`, compiled, puts rows `begin` to `end` of the block, which starts at `start`
    of the order, into the table.
    """

    operands: str
    arguments: Callable[[Case], tuple]
    dense_rows: Callable[..., np.ndarray]
    """X [T, D] of operands and the number of columns, by which a kernel is defined."""
    prepare: Callable[..., tuple]
    """What a call takes, of operands, the order, the number of columns, and of rows of a block, the type of weights."""
    fill: Callable
    table: int
    """Place of the table of rows among what a call takes."""
    index: int
    """Place of the numbers that a block's rows have in the table."""
    is_in_order: bool
    """Whether the numbers are those of all blocks, in the order of the rows, rather than of one block."""

    @property
    def loop(self) -> tuple[Callable, int, int, bool]:
        """Return (fill, position of the table, position of the row index, is_in_order), for making a compiled loop."""
        return self.fill, self.table, self.index, self.is_in_order


# Dense arrays


@inlined
def _fill_nothing(source, order, start, begin, end):
    """Do nothing, all parameters being unused: dense rows are read in place, so no table is filled."""


def _densified(case: Case) -> np.ndarray:
    """Return the matrix of a case as a dense array [R, D] of its dtype; duplicates are summed."""
    x = aligned.zeros((case.R, case.D), case.dtype)
    rows = np.repeat(np.arange(case.R), np.diff(case.indptr))
    np.add.at(x, (rows, case.indices), case.data)
    return x


DENSE = Source(
    "x:f[T,D]",
    lambda case: (_densified(case),),
    lambda operands, columns: operands[0],
    lambda operands, order, columns, block_rows, dtype: (*operands, order),
    fill=_fill_nothing,
    table=0,
    index=1,
    is_in_order=True,
)


# CSR


@inlined
def _clear(table, q, row, indptr, indices):
    """Set table[q] to zero in place: only at the columns of CSR row `row` if these are few, else all of it."""
    start, stop = np.uint64(indptr[row]), np.uint64(indptr[row + np.uint64(1)])
    if np.int64(stop - start) * FEW < table.shape[1]:
        for k in range(start, stop):
            table[q, np.uint64(indices[k])] = 0
    else:
        table[q] = 0


@inlined
def _fill_from_csr(source, order, start, begin, end):
    """Write row order[start + q] of X, dense, to table[q] for q = begin..end - 1; duplicates are summed.

    `source` is (indptr, indices, data, table [block rows, D], _, held); held[q] is the row that table[q] has (-1:
    none), whose entries are cleared first, and is updated.
    """
    indptr, indices, data, table, _, held = source
    for q in range(np.uint64(begin), np.uint64(end)):
        if held[q] >= 0:
            _clear(table, q, np.uint64(held[q]), indptr, indices)
        row = np.uint64(order[np.uint64(start) + q])
        held[q] = row
        for k in range(np.uint64(indptr[row]), np.uint64(indptr[row + np.uint64(1)])):
            table[q, np.uint64(indices[k])] += data[k]


def _prepare_csr(operands: tuple, order: np.ndarray, columns: int, block_rows: int, dtype: np.dtype) -> tuple:
    """Return the CSR operands with a zeroed table [block_rows, columns], arange(block_rows), and -1 for each row.

    The last array names the row that each row of the table has. `order` is unused.
    """
    table = aligned.zeros((block_rows, columns), dtype)
    return *operands, table, np.arange(block_rows), np.full(block_rows, -1)


CSR = Source(
    "indptr:i[T+1]^z indices:i[z]<D data:f[z]",
    lambda case: (case.indptr, case.indices, case.data),
    lambda operands, columns: _densified(Case(operands[0], operands[1], operands[2], columns, 1)),
    _prepare_csr,
    fill=_fill_from_csr,
    table=3,
    index=4,
    is_in_order=False,
)

# Smaller types


@inlined
def _fill_from_bytes(source, order, start, begin, end):
    """Convert rows order[start + q] of X, uint8, to the float table, table[q], for q = begin..end - 1; in place.

    `source` is (x, table, index).
    """
    x, table, _ = source
    for q in range(np.uint64(begin), np.uint64(end)):
        values, row = x[np.uint64(order[np.uint64(start) + q])], table[q]
        for j in range(row.size):
            row[j] = values[j]


BYTES = Source(
    "x:b[T,D]",
    lambda case: ((10 * np.nan_to_num(_densified(case)).clip(-25, 25)).clip(0, 255).astype(np.uint8),),
    lambda operands, columns: operands[0].astype(np.float64),
    lambda operands, order, columns, block_rows, dtype: (
        *operands,
        aligned.empty((block_rows, columns), dtype),
        np.arange(block_rows),
    ),
    fill=_fill_from_bytes,
    table=1,
    index=2,
    is_in_order=False,
)

MAGNITUDE, SIGN, INFINITE = np.uint32(0x7FFF), np.uint32(0x8000), np.uint32(0x7C00)
"""Of the bits of a float16: those of its magnitude, that of its sign, and the magnitude of infinity."""
MOVED, MOVED_SIGN = np.uint32(13), np.uint32(16)
"""Places by which a magnitude and a sign stand further left in a float32."""
SCALE = np.float32(2.0**112)
"""What the magnitude of a float32 with the bits of a float16 is to be multiplied by: the exponents' zeros differ. The
product is exact, of the smallest numbers too, but for infinity."""


@inlined
def _fill_from_halves(source, order, start, begin, end):
    """Convert rows order[start + q] of X, float16 as uint16 bits, to table[q], q = begin..end - 1, exactly; in place.

    `source` is (x, bits, single, table, index); `bits` and `single` are one scratch memory as uint32 and float32.
    """
    x, bits, single, table, _ = source
    for q in range(np.uint64(begin), np.uint64(end)):
        halves, moved, values, row = x[np.uint64(order[np.uint64(start) + q])], bits[q], single[q], table[q]
        for j in range(moved.size):
            half = np.uint32(halves[j])
            magnitude = half & MAGNITUDE
            exponent = np.uint32(0x70000000) if magnitude >= INFINITE else np.uint32(0)
            moved[j] = (magnitude << MOVED) | ((half & SIGN) << MOVED_SIGN) | exponent
        for j in range(row.size):
            row[j] = values[j] * SCALE


def _prepare_halves(operands: tuple, order: np.ndarray, columns: int, block_rows: int, dtype: np.dtype) -> tuple:
    """Return the float16 operand with scratch bits uint32, the same as float32, the table, and arange(block_rows).

    Arrays have shape [block_rows, columns]; the table has `dtype` and is the float32 scratch itself if that is float32.
    `order` is unused.
    """
    single = aligned.empty((block_rows, columns), np.float32)
    table = single if dtype == np.float32 else aligned.empty((block_rows, columns), dtype)
    return *operands, single.view(np.uint32), single, table, np.arange(block_rows)


HALVES = Source(
    "x:h[T,D]",
    lambda case: (_densified(case).astype(np.float16).view(np.uint16),),
    lambda operands, columns: operands[0].view(np.float16).astype(np.float64),
    _prepare_halves,
    fill=_fill_from_halves,
    table=3,
    index=4,
    is_in_order=False,
)

SOURCES = {"dense": DENSE, "csr": CSR, "uint8": BYTES, "float16": HALVES}
"""Ways by name; of float16 the array is seen as its bits, uint16."""
