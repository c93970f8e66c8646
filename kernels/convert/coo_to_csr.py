"""(indptr, indices, data) of A in CSR form from its entries (row, col, data) in any order.

Arguments  row int32|int64 [z]; col same type [z]; data float32|float64 [z]; n_rows R
Writes     nothing; returns new arrays indptr [R+1], indices [z], data [z]; index type of row, int64 if z needs it
Assumes    nothing of row, which is checked; the order within a row and duplicates are kept
Cost       no flops; reads z*(3*index+value) bytes, writes z*(index+value) + (R+1)*index
Parallel   over entries where there are few rows against them: one counter a row and thread; the result is unique
Limits     z < 2**63; the int32 to int64 switch is tested with the limit lowered
Source     Counting sort, Knuth vol. 3, 5.2; differs: the counters become the row starts
"""

import numpy as np
from numba import prange

from kernels.contract import Case, Cost, KernelError, Sizes, register_kernel
from kernels.gpu import indices
from kernels.plan import index_type, largest
from kernels.threads import compiled, compiled_parallel, equal_count, get_threads, is_serial

COUNTER_COST = 4
"""What a counter of a further thread costs, in entries."""


def reference(row, col, data, n_rows):
    """Convert COO to CSR in plain loops.

    row, col int32|int64 [z], in any order; data float32|float64 [z]; `n_rows` rows. Returns new arrays (indptr
    [n_rows+1], indices [z], data [z]); the order within a row and duplicates are kept.
    """
    order = [k for r in range(n_rows) for k in range(row.size) if row[k] == r]
    kind = index_type(row.size, row.dtype)
    indptr = np.zeros(n_rows + 1, kind)
    for k in range(row.size):
        for r in range(row[k], n_rows):
            indptr[r + 1] += 1
    return indptr, np.array([col[k] for k in order], kind), np.array([data[k] for k in order], data.dtype)


@compiled
def _ascends(key):
    """Return whether `key` [z] is sorted ascending, duplicates allowed."""
    ascends = True
    for k in range(key.size - 1):
        ascends &= key[k] <= key[k + 1]
    return ascends


@compiled
def _ends(key, starts):
    """Write the row pointers of ascending keys [z] to starts [keys + 1], which must be zero before."""
    one = np.uint64(1)
    for k in range(key.size):
        starts[np.uint64(key[k]) + one] = k + 1
    for row in range(1, starts.size):
        starts[row] = max(starts[row], starts[row - 1])


@compiled
def _count(key, counts):
    """Add the histogram of the keys [z] to counts [keys + 1], key k at position k + 1, in place."""
    one = np.uint64(1)
    for k in range(key.size):
        counts[np.uint64(key[k]) + one] += 1


@compiled
def _starts(counts):
    """Turn counts [parts, keys + 1] in place into the position of each part's first entry of key k, at k + 1."""
    total = 0
    if counts.shape[0] == 1:  # 3 times as fast without the inner loop
        row = counts[0]
        for key in range(1, row.size):
            count = row[key]
            row[key] = total
            total += count
    else:
        for key in range(1, counts.shape[1]):
            for part in range(counts.shape[0]):
                count = counts[part, key]
                counts[part, key] = total
                total += count


@compiled
def _place(key, other, data, starts, other_out, data_out):
    """Scatter entries (other, data) by key to other_out, data_out; starts[key + 1] is the key's cursor and advances."""
    one = np.uint64(1)
    for k in range(key.size):
        at = np.uint64(key[k]) + one
        place = np.uint64(starts[at])
        starts[at] += 1
        other_out[place] = other[k]
        data_out[place] = data[k]


@compiled_parallel
def _count_parts(key, counts, bounds):
    """Add the histogram of key[bounds[p]:bounds[p + 1]] to counts[p], as `_count`, for all parts p in parallel."""
    for part in prange(bounds.size - 1):
        _count(key[bounds[part] : bounds[part + 1]], counts[part])


@compiled_parallel
def _place_parts(key, other, data, starts, other_out, data_out, bounds):
    """Scatter the entries of each part as `_place`, with the part's own cursors starts[part], in parallel.

    Part p has the entries bounds[p] to bounds[p + 1] - 1 of key, other and data [z]; results go to other_out, data_out
    [z].
    """
    for part in prange(bounds.size - 1):
        own = slice(bounds[part], bounds[part + 1])
        _place(key[own], other[own], data[own], starts[part], other_out, data_out)


def group(key: np.ndarray, other: np.ndarray, data: np.ndarray, n_keys: int, word: str) -> tuple:
    """Sort entries (other [z], data [z]) by key [z], stable; return new arrays (starts [n_keys + 1], other, data).

    starts[k] is the first entry of key k. Keys that ascend already are copied only, a third of the time. Raises
    KernelError for a key outside 0 to n_keys - 1; `word` names a key in the message.
    """
    kind = index_type(key.size, key.dtype)
    if not key.size:  # without compiled code, which an array of zeros would wait for
        return np.zeros(n_keys + 1, kind), other.astype(kind), data.copy()
    if largest(key) >= n_keys:
        k = np.flatnonzero((key < 0) | (key >= n_keys))[0]
        raise KernelError(f"Entry {k} has {word} {key[k]}; allowed are 0 to {n_keys - 1}. Check where it comes from.")
    if _ascends(key):
        starts = np.zeros(n_keys + 1, kind)
        _ends(key, starts)
        return starts, other.astype(kind), data.copy()
    few = n_keys * get_threads() * COUNTER_COST <= key.size
    return _move(key, other, data, n_keys, kind, get_threads() if few and not is_serial(2 * key.size) else 1)


def _move(key, other, data, n_keys: int, kind: np.dtype, threads: int) -> tuple:
    """Group entries by key by a counting sort on `threads` threads; return (starts [n_keys + 1], other, data), stable.

    Starts and other have dtype `kind`; keys are in range.
    """
    counts, other_out, data_out = np.zeros((threads, n_keys + 1), kind), np.empty(key.size, kind), np.empty_like(data)
    if threads == 1:
        _count(key, counts[0])
        _starts(counts)
        _place(key, other, data, counts[0], other_out, data_out)
        return counts[0], other_out, data_out
    bounds = equal_count(key.size, threads)
    _count_parts(key, counts, bounds)
    _starts(counts)
    _place_parts(key, other, data, counts, other_out, data_out, bounds)
    return counts[-1].copy(), other_out, data_out


def cpu(row, col, data, n_rows):
    """Convert COO to CSR on the CPU.

    row, col int32|int64 [z], in any order; data float32|float64 [z]; `n_rows` rows. Returns new arrays (indptr
    [n_rows+1], indices [z], data [z]); the order within a row and duplicates are kept. Indices have the dtype of row,
    or int64 if z needs it. Raises KernelError for a row out of range.
    """
    return group(row, col, data, n_rows, "row")


def gpu(row, col, data, n_rows):
    """Convert COO to CSR on a CUDA device.

    row, col int32|int64 [z], in any order; data float32|float64 [z]; `n_rows` rows. Returns new arrays (indptr
    [n_rows+1], indices [z], data [z]); the order within a row and duplicates are kept. Indices have the dtype of row,
    or int64 if z needs it. Raises KernelError for a row out of range.
    """
    return indices.group(row, col, data, n_rows, "row")


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a call with sizes `s`: the rows are read twice, to count and to place."""
    return Cost(0, s.z * (4 * s.index + 2 * s.value) + (s.R + 1) * s.index, work=(("place", 2 * s.z), ("scan", s.R)))


def arguments(case: Case) -> tuple:
    """Build operands of a call from `case`: the entries of A in random order, and its number of rows."""
    row = np.repeat(np.arange(case.R, dtype=case.indices.dtype), np.diff(case.indptr))
    order = np.random.default_rng(case.seed).permutation(row.size)
    return row[order], case.indices[order], case.data[order], case.R


register_kernel(__name__, "coo_to_csr", "row:i[z]<n_rows col:i[z]< data:f[z] n_rows:s", writes=())
