"""Stable sort by column of the few entries of a small batch, and the rest of its plan, in one compiled call.

The calls of `radix` for a batch of 32 rows take ten times as long as their work. One compiled call here validates row
pointers and columns, sorts by digits of 8 bits (Knuth vol. 3, 5.2.5), and finds where columns begin. Column and
position of an entry fit one 64-bit word; rows are looked up by position afterwards, in the first-level cache.
"""

import threading
from typing import NamedTuple

import numpy as np

from kernels.contract import KernelError
from kernels.threads import compiled

ENTRIES = 4096
"""Entries up to which a batch is small: from here on `radix` is as fast, on two threads faster."""

PLACE_BITS = 12
"""Bits of a place below `ENTRIES`."""

COLUMNS = 1 << (64 - PLACE_BITS)
"""Columns up to which a column fits the rest of a word."""

RIGHT, WRONG_STARTS, WRONG_COLUMN = range(3)
"""What is found of a batch: row starts that fall or end elsewhere, a column out of range."""


class Found(NamedTuple):
    """Result of a sort: error code, active columns, entries of the fullest column, shortest and longest row."""

    fault: int
    touched: int
    longest_run: int
    shortest_row: int
    longest_row: int


class _Kept(threading.local):
    """Memory of a thread: two buffers of words, and rows of entries, columns and segments in the widest dtypes."""

    def __init__(self) -> None:
        self.words = np.empty((2, ENTRIES), np.uint64)
        self.rows = np.empty(ENTRIES, np.int64)
        self.columns = np.empty(ENTRIES, np.int64)
        self.segments = np.empty(ENTRIES + 1, np.int32)


_kept = _Kept()


@compiled
def _row_lengths(starts, entries):
    """Return (whether starts rise by so many entries, least and most entries of a row)."""
    least = most = 0
    for r in range(starts.size - 1):
        least, most = min(least, starts[r + 1] - starts[r]), max(most, starts[r + 1] - starts[r])
    return least >= 0 and starts[starts.size - 1] - starts[0] == entries, least, most


@compiled
def _make_words(starts, keys, words, rows):
    """Return the words of the entries and their rows; returns the largest column, a negative one as a huge number."""
    largest = np.uint64(0)
    for r in range(starts.size - 1):
        for k in range(np.uint64(starts[r] - starts[0]), np.uint64(starts[r + 1] - starts[0])):
            key = np.uint64(keys[k])
            largest = max(largest, key)
            words[k] = key << np.uint64(PLACE_BITS) | k
            rows[k] = r
    return largest


@compiled
def _pass(source, shift, counts, out):
    """Write the words of `source` to `out`, stably sorted by one digit of their columns; counts are the cursors."""
    counts[:] = 0
    low, mask = np.uint64(shift), np.uint64(255)
    for k in range(source.size):
        counts[(source[k] >> low) & mask] += 1
    total = 0
    for digit in range(counts.size):
        counts[digit], total = total, total + counts[digit]
    for k in range(source.size):
        digit = (source[k] >> low) & mask
        out[np.uint64(counts[digit])] = source[k]
        counts[digit] += 1


@compiled
def _split(words, of_entry, columns, segments, rows, permutation):
    """Return rows and places of sorted words, and where each column begins: (columns, entries of the fullest one)."""
    touched, longest, place_bits = np.uint64(0), 0, np.uint64(PLACE_BITS)
    places = (np.uint64(1) << place_bits) - np.uint64(1)
    segments[0] = 0
    for k in range(words.size):
        place, column = words[k] & places, words[k] >> place_bits
        permutation[k] = place
        rows[k] = of_entry[place]
        if k and column != words[k - 1] >> place_bits:
            touched += np.uint64(1)
            segments[touched] = k
            longest = max(longest, k - segments[touched - np.uint64(1)])
        columns[touched] = column
    if words.size:
        touched += np.uint64(1)
        segments[touched] = words.size
        longest = max(longest, words.size - segments[touched - np.uint64(1)])
    return np.int64(touched), longest


@compiled
def _sort(starts, keys, n_keys, words, of_entry, columns, segments, rows, permutation):
    """Sort the entries of a small batch by column; writes columns, segments, rows, permutation; return a `Found`."""
    is_right, shortest, longest = _row_lengths(starts, keys.size)
    if not is_right:
        return WRONG_STARTS, 0, 0, shortest, longest
    if _make_words(starts, keys, words[0], of_entry) >= np.uint64(n_keys) and keys.size:
        return WRONG_COLUMN, 0, 0, shortest, longest
    counts, turn, shift = np.empty(256, np.int64), 0, 0
    while shift == 0 or (n_keys - 1) >> shift:
        _pass(words[turn, : keys.size], PLACE_BITS + shift, counts, words[1 - turn])
        turn, shift = 1 - turn, shift + 8
    touched, longest_run = _split(words[turn, : keys.size], of_entry, columns, segments, rows, permutation)
    return 0, touched, longest_run, shortest, longest


@compiled
def _sort_each(starts, keys, n_keys, batch_rows, words, of_entry, columns, segments, rows, permutation, found):
    """Do `_sort` for each batch of `batch_rows` rows; results lie one after another, a `Found` in each row of found.

    Return False if row pointers are invalid.
    """
    for b in range(found.shape[0]):
        part = starts[b * batch_rows : (b + 1) * batch_rows + 1]
        first, last = part[0] - starts[0], part[part.size - 1] - starts[0]
        if first < 0 or last > keys.size or not first <= last <= first + words.shape[1]:
            return False
        own, own_segments = slice(first, last), segments[first + b : last + b + 1]
        results = columns[own], own_segments, rows[own], permutation[own]
        fields = _sort(part, keys[own], n_keys, words, of_entry, *results)
        found[b, 0], found[b, 1], found[b, 2], found[b, 3], found[b, 4] = fields
    return True


def wrong_column(keys: np.ndarray, n_keys: int) -> KernelError:
    """Build the error for columns out of range."""
    found = f"Column numbers lie from {keys.min()} to {keys.max()}; allowed are 0 to {n_keys - 1}"
    return KernelError(f"{found}. Check the batch with workbench.formats.check(x, full=True).")


def sort(
    starts: np.ndarray, keys: np.ndarray, n_keys: int, kind: np.dtype
) -> tuple[Found, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Sort up to `ENTRIES` entries: return (found, columns, segments, rows, permutation), as in `radix.Sorted`.

    `n_keys` is at most `COLUMNS`; segments, rows and permutation have dtype `kind`. O(z + R) per 8 bits of columns.
    """
    rows, permutation = np.empty(keys.size, kind), np.empty(keys.size, kind)
    kept = _kept
    found = Found._make(
        _sort(starts, keys, n_keys, kept.words, kept.rows, kept.columns, kept.segments, rows, permutation)
    )
    touched = found.touched
    segments = kept.segments[: touched + 1].astype(kind)
    return found, kept.columns[:touched].copy(), segments, rows, permutation


def sort_each(
    starts: np.ndarray, keys: np.ndarray, n_keys: int, batch_rows: int
) -> list[tuple[Found, np.ndarray, np.ndarray, np.ndarray, np.ndarray]] | None:
    """Sort every `batch_rows` rows with row pointers `starts`, as `sort` with int32, in one compiled call.

    Returns None if a batch has more than `ENTRIES` entries or is invalid.
    """
    count, kind = -(-(starts.size - 1) // batch_rows), np.int32
    columns, segments = np.empty(keys.size, np.int64), np.empty(keys.size + count, kind)
    rows, permutation, found = np.empty(keys.size, kind), np.empty(keys.size, kind), np.empty((count, 5), np.int64)
    kept = _kept
    results = columns, segments, rows, permutation, found
    if not _sort_each(starts, keys, n_keys, batch_rows, kept.words, kept.rows, *results) or found[:, 0].any():
        return None
    ends = [*(starts[batch_rows:-1:batch_rows] - starts[0]).tolist(), keys.size]
    sorted_batches, first = [], 0
    for number, (end, fields) in enumerate(zip(ends, map(Found._make, found.tolist()), strict=True)):
        own = columns[first : first + fields.touched], segments[first + number : first + number + fields.touched + 1]
        sorted_batches.append((fields, *own, rows[first:end], permutation[first:end]))
        first = end
    return sorted_batches
