"""Ways in which the rows of a dense epoch are held: as a dense array, read where they stand, or as CSR.

Rows that are not held dense are put into the table of a block, which stays in the caches of the cores at work.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kernels import aligned
from kernels.code_cache import inlined
from kernels.contract import Case

FEW = 8
"""A row with fewer than one entry in so many columns is cleared entry by entry."""


class Source(NamedTuple):
    """One way: operands of a kernel, what its arguments and those of a call are, and compiled functions.

    `fill(source, order, start, begin, end)`, compiled, puts rows `begin` to `end` of the block, which starts at `start`
    of the order, into the table.
    """

    operands: str
    arguments: Callable[[Case], tuple]
    dense_rows: Callable[..., np.ndarray]
    """X [T, D] of operands and the number of columns, by which a kernel is defined."""
    prepare: Callable[..., tuple]
    """What a call takes, of operands, the order, the number of columns, and of rows of a block."""
    fill: Callable
    table: int
    """Place of the table of rows among what a call takes."""
    index: int
    """Place of the numbers that a block's rows have in the table."""
    is_in_order: bool
    """Whether the numbers are those of all blocks, in the order of the rows, rather than of one block."""

    @property
    def loop(self) -> tuple[Callable, int, int, bool]:
        """What a compiled loop knows of it."""
        return self.fill, self.table, self.index, self.is_in_order


# Dense arrays


@inlined
def _fill_nothing(source, order, start, begin, end):
    """Rows are read where they stand."""


def _densified(case: Case) -> np.ndarray:
    """The matrix of a case, duplicates summed."""
    x = aligned.zeros((case.R, case.D), case.dtype)
    rows = np.repeat(np.arange(case.R), np.diff(case.indptr))
    np.add.at(x, (rows, case.indices), case.data)
    return x


DENSE = Source(
    "x:f[T,D]",
    lambda case: (_densified(case),),
    lambda operands, columns: operands[0],
    lambda operands, order, columns, block_rows: (*operands, order),
    fill=_fill_nothing,
    table=0,
    index=1,
    is_in_order=True,
)


# CSR


@inlined
def _clear(table, q, row, indptr, indices):
    """Make row `q` of the table zero, which holds that row of X."""
    start, stop = np.uint64(indptr[row]), np.uint64(indptr[row + np.uint64(1)])
    if np.int64(stop - start) * FEW < table.shape[1]:
        for k in range(start, stop):
            table[q, np.uint64(indices[k])] = 0
    else:
        table[q] = 0


@inlined
def _fill_from_csr(source, order, start, begin, end):
    """Clear what the rows of the table hold, and add the entries of those that come."""
    indptr, indices, data, table, _, held = source
    for q in range(np.uint64(begin), np.uint64(end)):
        if held[q] >= 0:
            _clear(table, q, np.uint64(held[q]), indptr, indices)
        row = np.uint64(order[np.uint64(start) + q])
        held[q] = row
        for k in range(np.uint64(indptr[row]), np.uint64(indptr[row + np.uint64(1)])):
            table[q, np.uint64(indices[k])] += data[k]


def _prepare_csr(operands: tuple, order: np.ndarray, columns: int, block_rows: int) -> tuple:
    table = aligned.zeros((block_rows, columns), operands[2].dtype)
    return *operands, table, np.arange(block_rows), np.full(block_rows, -1)


def _dense_of_csr(operands: tuple, columns: int) -> np.ndarray:
    indptr, indices, data = operands
    return _densified(Case(indptr, indices, data, columns, 1))


CSR = Source(
    "indptr:i[T+1]^z indices:i[z]<D data:f[z]",
    lambda case: (case.indptr, case.indices, case.data),
    _dense_of_csr,
    _prepare_csr,
    fill=_fill_from_csr,
    table=3,
    index=4,
    is_in_order=False,
)

SOURCES = {"dense": DENSE, "csr": CSR}
