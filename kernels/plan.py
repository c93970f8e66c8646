"""Column index of a batch ("batch plan"): everything that depends on its sparsity pattern alone, computed once.

Time and memory grow with the stored entries of the batch, not with the number of features. The loader builds the plan,
one batch ahead, or once for batches that repeat; forward pass, gradient and update read it and never sort.
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
    """Column index of a batch A [R, D] in CSR form with z stored entries in U active columns.

    Entries are ordered by column, then row: entry `k` in this order is entry `permutation[k]` of the batch, in row
    `rows[k]`; the entries of column `columns[u]` are `segments[u]` to `segments[u + 1]` - 1.
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
        """U, the number of active columns."""
        return len(self.columns)

    @property
    def nbytes(self) -> int:
        """Bytes of the plan's arrays."""
        arrays = self.columns, self.segments, self.rows, self.permutation, self.row_order, self.column_order
        return sum(array.nbytes for array in (*arrays, *self.kept[1:]) if array is not None)

    def in_order(self, data: np.ndarray) -> np.ndarray:
        """Return the batch's values `data` [z] in column order; cached, so that a repeated batch pays once. O(z).

        Values must not change after the first call. Raises KernelError for values of another batch.
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
    """Write to rows [z] the row of each entry, from the row pointers `starts` [R + 1]."""
    for r in range(starts.size - 1):
        for k in range(starts[r] - starts[0], starts[r + 1] - starts[0]):
            rows[k] = r


@compiled
def _gather(source, places, out):
    """Write source[places] to out, one after the other."""
    for k in range(places.size):
        out[k] = source[np.uint64(places[k])]


def _in_order(data: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return `data[places]`, gathered on several threads if that is faster."""
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
    """Write source[places] to out, the places between two `bounds` on each thread."""
    for part in prange(bounds.size - 1):
        _gather(source, places[bounds[part] : bounds[part + 1]], out[bounds[part] : bounds[part + 1]])


@compiled
def _extremes(starts):
    """Return (least, most) entries between neighbouring starts; 0 if there are none."""
    least = most = 0
    for r in range(starts.size - 1):
        least, most = min(least, starts[r + 1] - starts[r]), max(most, starts[r + 1] - starts[r])
    return least, most


def row_length(rows: int, entries: int, longest: int) -> int:
    """Return the entries of every row if all rows have the same number, else -1; `longest` is the largest row."""
    return longest if rows and rows * longest == entries else -1


def index_type(largest: int, least: DTypeLike = np.int32) -> np.dtype:
    """Return the dtype of indices up to `largest`: `least`, or int64 if that is too narrow."""
    return np.dtype(np.int64 if largest >= INT32_LIMIT else least)


def _checked(name: str, array: np.ndarray) -> np.ndarray:
    """Return a one-dimensional int32 or int64 array. Raises KernelError for others."""
    if array.ndim != 1 or array.dtype not in (np.int32, np.int64):
        raise KernelError(f"{name} is {array.dtype} {list(array.shape)}; it is int32 or int64, of one dimension.")
    return array


def _plain(array: np.ndarray) -> np.ndarray:
    """Return `array`, copied unless C-contiguous and writable, so that compiled code needs one version only."""
    flags = array.flags
    return array if flags.c_contiguous and flags.writeable else np.array(array, order="C")


def sort_segments(
    indices: np.ndarray, n_columns: int, kind: np.dtype | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Group entries by column: return active columns int64 [U], first entry of each [U + 1] and the permutation [z]."""
    starts = np.array([0, indices.size], index_type(indices.size, indices.dtype))
    ordered = radix.sort(starts, _plain(indices), n_columns, kind or index_type(indices.size))
    if ordered.permutation is None:  # with values alone
        raise KernelError("The sort returned no permutation; expected one for a sort without values.")
    return ordered.columns, ordered.segments, ordered.permutation


def build(indptr: np.ndarray, indices: np.ndarray, n_columns: int, values: np.ndarray | None = None) -> BatchPlan:
    """Compute the plan of a CSR batch: `indptr` [R + 1], `indices` [z] (int32 or int64), `n_columns` features. O(z).

    Indices of a row may be unsorted and repeated. `indptr` may start above zero, as in a slice of rows. If `values` [z]
    are given, they are sorted along, which is faster for large batches; `in_order` then accepts these values only.
    Raises KernelError for an index outside [0, n_columns) or inconsistent row pointers.
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
    """Compute the plan of a small batch in one compiled call."""
    kind = index_type(max(indices.size, starts.size))
    found, *arrays = small_sort.sort(starts, indices, n_columns, kind)
    if found.fault == small_sort.WRONG_COLUMN:
        raise small_sort.wrong_column(indices, n_columns)
    if found.fault:
        raise _falling() if found.shortest_row < 0 else _wrong_length(starts, indices)
    return _small((starts.size - 1, n_columns), found, *arrays)


def _small(shape: tuple[int, int], found: small_sort.Found, columns, segments, rows, permutation) -> BatchPlan:
    """Build a plan from the result of `small_sort`."""
    length = row_length(shape[0], rows.size, found.longest_row)
    return BatchPlan(shape, columns, segments, rows, permutation, found.longest_run, length, found.longest_row)


def build_each(indptr: np.ndarray, indices: np.ndarray, n_columns: int, batch_rows: int) -> list[BatchPlan] | None:
    """Compute the plans of every `batch_rows` rows of a CSR matrix in one compiled call.

    Returns None if batches are not small or the input is invalid; `build` then computes the plans or raises.
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
    """Build the error for row pointers that do not match the number of indices."""
    return KernelError(
        f"indptr speaks of {starts[-1] - starts[0]} entries, indices holds {indices.size}; pass the slice "
        "indices[indptr[0]:indptr[-1]]."
    )


def _falling() -> KernelError:
    """Build the error for decreasing row pointers."""
    return KernelError("indptr falls; starts of rows never do. Build the batch again from its parts.")


def build_coo(row: np.ndarray, col: np.ndarray, shape: tuple[int, int]) -> BatchPlan:
    """Compute the plan of a COO batch, entries in any order, as `build`; rows within a column keep the given order."""
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
