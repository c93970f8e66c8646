"""The batch plan: everything about a batch that stays the same from step to step, computed once for all the kernels.

A plan costs time and memory that grow with the stored entries of the batch and never with the number of features. The
loader builds it, one batch ahead or once for batches that repeat; forward, gradient and update read it and never sort.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import prange
from numpy.typing import DTypeLike

from kernels import radix, reused, small_sort
from kernels.contract import KernelError
from kernels.partition import equal_count
from kernels.threads import compiled, compiled_parallel, is_serial, parts

INT32_LIMIT = 2**31
"""Positions and index values from here on need int64; a test lowers it."""

ORDER_WORK = 4
"""What moving a value into column order costs, in the measure of `threads.is_serial`."""


@dataclass(frozen=True)
class BatchPlan:
    """Index work of a batch A [R, D] in CSR form with z stored entries in U touched columns.

    The entries are put in column order, rows ascending inside a column: entry `k` of that order stands at
    `permutation[k]` of the batch's own arrays, in row `rows[k]`; column `columns[u]` owns the entries from
    `segments[u]` to `segments[u + 1]`.
    """

    shape: tuple[int, int]
    columns: np.ndarray
    """Touched columns, sorted, unique: int64 [U]."""
    segments: np.ndarray
    """Row starts of A.T restricted to the touched columns: int32 or int64 [U + 1]."""
    rows: np.ndarray
    """Row of each entry in column order, type of `segments` [z]."""
    permutation: np.ndarray | None
    """Where each entry stands in the batch, type of `segments` [z]; None where the plan was made with the values."""
    longest_run: int
    """Entries of the fullest column."""
    row_length: int
    """Entries of every row where all rows have the same number, else -1."""
    longest_row: int = -1
    """Entries of the fullest row; -1 where that is not known."""
    row_order: Any = None
    """Rows in descending order of entries, where a device was asked for it; see `kernels.gpu.row_sums.Lengths`."""
    column_order: Any = None
    """Touched columns in descending order of entries, where asked for, as places in `columns`."""
    kept: list[np.ndarray] = field(default_factory=list, repr=False, compare=False)
    """The batch's values and the same in column order, where `in_order` was asked for them."""

    @property
    def touched(self) -> int:
        """U, the number of touched columns."""
        return len(self.columns)

    @property
    def nbytes(self) -> int:
        """Bytes the plan's arrays hold."""
        arrays = self.columns, self.segments, self.rows, self.permutation, self.row_order, self.column_order
        return sum(array.nbytes for array in (*arrays, *self.kept[1:]) if array is not None)

    def in_order(self, data: np.ndarray) -> np.ndarray:
        """The batch's values `data` [z] in column order; kept, so that a batch that repeats pays once. O(z).

        A plan belongs to a batch: once asked for its values, it takes them not to change. Read through the permutation
        in every step they cost the gradient of N = 1 half its time (rows in results/, csr_t_dense against its twin for
        ones, which reads none).
        """
        if not self.kept or self.kept[0] is not data:
            if self.permutation is None:
                raise KernelError("The plan was made with its batch's values and has no others. Build it without.")
            if data.shape != self.permutation.shape:
                raise KernelError(f"data has shape {data.shape}; the plan is of a batch with {self.rows.size} entries.")
            self.kept[:] = data, _in_order(data, self.permutation)
        return self.kept[1]


@compiled
def _row_of_entry(starts, rows):
    for r in range(starts.size - 1):
        for k in range(starts[r] - starts[0], starts[r + 1] - starts[0]):
            rows[k] = r


@compiled
def _gather(source, places, out):
    for k in range(places.size):
        out[k] = source[np.uint64(places[k])]


def _in_order(data: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The values at these places."""
    if data.size <= small_sort.ENTRIES:  # half of the time of a compiled call
        return data.take(places)
    out, source = reused.empty(data.size, data.dtype), _plain(data)
    if is_serial(ORDER_WORK * data.size):
        _gather(source, places, out)
    else:
        _gather_parts(source, places, out, equal_count(data.size, parts()))
    return out


@compiled_parallel
def _gather_parts(source, places, out, bounds):
    for part in prange(bounds.size - 1):
        _gather(source, places[bounds[part] : bounds[part + 1]], out[bounds[part] : bounds[part + 1]])


@compiled
def _extremes(starts):
    """(least, most) entries between neighbouring starts; 0 where there are none."""
    least = most = 0
    for r in range(starts.size - 1):
        least, most = min(least, starts[r + 1] - starts[r]), max(most, starts[r + 1] - starts[r])
    return least, most


def row_length(rows: int, entries: int, longest: int) -> int:
    """Entries of every row, or -1 where rows differ or there are none: rows are alike if all are the longest."""
    return longest if rows and rows * longest == entries else -1


def index_type(largest: int, least: DTypeLike = np.int32) -> np.dtype:
    """The type of positions up to `largest`: `least`, or int64 where that is too narrow."""
    return np.dtype(np.int64 if largest >= INT32_LIMIT else least)


def _checked(name: str, array: np.ndarray) -> np.ndarray:
    if array.ndim != 1 or array.dtype not in (np.int32, np.int64):
        raise KernelError(f"{name} is {array.dtype} {list(array.shape)}; it is int32 or int64, of one dimension.")
    return array


def _plain(array: np.ndarray) -> np.ndarray:
    """`array`, or a copy where the sort would be compiled once more for its layout."""
    flags = array.flags
    return array if flags.c_contiguous and flags.writeable else np.array(array, order="C")


def sort_segments(
    indices: np.ndarray, n_columns: int, kind: np.dtype | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Group entries by column: (distinct columns int64 [U], where each starts [U + 1], permutation [z])."""
    starts = np.array([0, indices.size], index_type(indices.size, indices.dtype))
    ordered = radix.sort(starts, _plain(indices), n_columns, kind or index_type(indices.size))
    if ordered.permutation is None:  # with values alone
        raise KernelError("The sort returned no permutation; expected one for a sort without values.")
    return ordered.columns, ordered.segments, ordered.permutation


def build(indptr: np.ndarray, indices: np.ndarray, n_columns: int, values: np.ndarray | None = None) -> BatchPlan:
    """The plan of the CSR batch (`indptr` [R + 1], `indices` [z], int32 or int64) with `n_columns` features.

    Columns of a row may be unsorted and repeated. `indptr` may start above zero, as a slice of rows does: positions
    count from its first entry. With the batch's `values` [z], of which then `in_order` may be asked and of no others, a
    large batch takes less time. O(z). Raises `KernelError` for an index outside `0..n_columns - 1`, and where the row
    starts speak of another number of entries.
    """
    starts, indices = _plain(_checked("indptr", indptr)), _plain(_checked("indices", indices))
    if not starts.size:
        raise KernelError("indptr is empty. Allowed: one entry more than there are rows, the first of them 0.")
    if indices.size <= small_sort.ENTRIES and 0 < n_columns <= small_sort.COLUMNS:
        return _build_small(starts, indices, int(n_columns))
    if starts[-1] - starts[0] != indices.size:
        raise _wrong_length(starts, indices)
    least, longest = map(int, _extremes(starts))
    if least < 0:
        raise _falling()
    kind = index_type(max(indices.size, starts.size))
    given = _plain(values) if values is not None and values.shape == indices.shape else None
    columns, segments, rows, permutation, ordered = radix.sort(starts, indices, int(n_columns), kind, given)
    if rows is None:
        of_entry, rows = np.empty_like(permutation), np.empty_like(permutation)
        _row_of_entry(starts, of_entry)
        _gather(of_entry, permutation, rows)
    shape = starts.size - 1, int(n_columns)
    length = row_length(shape[0], indices.size, longest)
    run, kept = int(_extremes(segments)[1]), [] if values is None or ordered is None else [values, ordered]
    return BatchPlan(shape, columns, segments, rows, permutation, run, length, longest, kept=kept)


def _build_small(starts: np.ndarray, indices: np.ndarray, n_columns: int) -> BatchPlan:
    """The plan of a batch of few entries, by one compiled call."""
    kind = index_type(max(indices.size, starts.size))
    found, *arrays = small_sort.sort(starts, indices, n_columns, kind)
    if found.fault == small_sort.WRONG_COLUMN:
        raise small_sort.wrong_column(indices, n_columns)
    if found.fault:
        raise _falling() if found.shortest_row < 0 else _wrong_length(starts, indices)
    return _small((starts.size - 1, n_columns), found, *arrays)


def _small(shape: tuple[int, int], found: small_sort.Found, columns, segments, rows, permutation) -> BatchPlan:
    """A plan from what `small_sort` gives."""
    length = row_length(shape[0], rows.size, found.longest_row)
    return BatchPlan(shape, columns, segments, rows, permutation, found.longest_run, length, found.longest_row)


def build_each(indptr: np.ndarray, indices: np.ndarray, n_columns: int, batch_rows: int) -> list[BatchPlan] | None:
    """The plans that `build` makes of every `batch_rows` rows of a CSR matrix, in one compiled call for all of them.

    Where that does not suit, as for batches that are not small, None: `build` makes their plans, or says what is wrong.
    """
    starts, indices = _plain(_checked("indptr", indptr)), _plain(_checked("indices", indices))
    if starts.size < 2 or starts[-1] - starts[0] != indices.size or not 0 < n_columns <= small_sort.COLUMNS:
        return None
    if max(indices.size, starts.size) >= INT32_LIMIT:
        return None
    sorted_batches = small_sort.sort_each(starts, indices, int(n_columns), batch_rows)
    if sorted_batches is None:
        return None
    last = len(sorted_batches) - 1
    heights = [batch_rows] * last + [starts.size - 1 - last * batch_rows]
    return [_small((height, int(n_columns)), *each) for height, each in zip(heights, sorted_batches, strict=True)]


def _wrong_length(starts: np.ndarray, indices: np.ndarray) -> KernelError:
    return KernelError(
        f"indptr speaks of {starts[-1] - starts[0]} entries, indices holds {indices.size}; pass the slice "
        "indices[indptr[0]:indptr[-1]]."
    )


def _falling() -> KernelError:
    return KernelError("indptr falls; starts of rows never do. Build the batch again from its parts.")


def build_coo(row: np.ndarray, col: np.ndarray, shape: tuple[int, int]) -> BatchPlan:
    """The plan of a COO batch, entries in any order; as `build`, but rows inside a column keep the order given."""
    row, col = _plain(_checked("row", row)), _checked("col", col)
    if row.size != col.size:
        raise KernelError(f"row has {row.size} entries and col {col.size}; each entry needs both.")
    if row.size and radix.largest(row) >= shape[0]:
        raise KernelError(f"Row numbers lie from {row.min()} to {row.max()}; allowed are 0 to {shape[0] - 1}.")
    kind = index_type(max(row.size, shape[0]))
    columns, segments, permutation = sort_segments(col, int(shape[1]), kind)
    rows = np.empty(permutation.size, kind)
    _gather(row, permutation, rows)
    return BatchPlan(shape, columns, segments, rows, permutation, int(_extremes(segments)[1]), -1)
