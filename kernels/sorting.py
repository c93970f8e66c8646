"""The gradient of a weight on the active columns of a CSR batch without a plan: (columns, (A.T @ g)[columns]).

A plan sorts the entries of a batch. If a row of g has few values, the sort takes several times as long as the rest of a
step, and pays only for a batch that repeats. Here each entry is added to sums with an element for every column, and
sets a bit for its column; the bits then give the active columns in order. Sums and bits are memory that a thread keeps
and a call leaves zero; `suits` accepts batches with about as many entries as columns.

The two halves of the rows have separate sums, however many threads there are: a sum has one order, and so the same bits
on every run and thread count.
"""

import threading
from typing import NamedTuple

import numpy as np
from numba import prange

from kernels import reused
from kernels.contract import KernelError
from kernels.structure import plain
from kernels.threads import call_parallel, compiled, compiled_parallel, compiled_part, equal_cost, equal_count

# Stable sort by column of the few entries of a small batch, and the rest of its plan, in one compiled call.
#
# The calls of `plan` for a batch of 32 rows take ten times as long as their work. One compiled call here validates
# row pointers and columns, sorts by digits of 8 bits (Knuth vol. 3, 5.2.5), and finds where columns begin. Column
# and position of an entry fit one 64-bit word; rows are looked up by position afterwards, in the first-level cache.

ENTRIES = 4096
"""Entries up to which a batch is small: from here on `plan` is as fast, on two threads faster."""

PLACE_BITS = 12
"""Bits of a place below `ENTRIES`."""

COLUMNS = 1 << (64 - PLACE_BITS)
"""Columns up to which a column fits the rest of a word."""

WRONG_STARTS, WRONG_COLUMN = 1, 2
"""What is found of an invalid batch: row starts that fall or end elsewhere, a column out of range."""


class Found(NamedTuple):
    """Result of a sort: error code, active columns, entries of the fullest column, shortest and longest row."""

    error: int
    touched: int
    longest_run: int
    shortest_row: int
    longest_row: int


class _Scratch(threading.local):
    """Memory of a thread: two buffers of words, and rows of entries, columns and segments in the widest dtypes."""

    def __init__(self) -> None:
        """Allocate the buffers of a thread for batches of up to `ENTRIES` entries."""
        self.words = np.empty((2, ENTRIES), np.uint64)
        self.rows = np.empty(ENTRIES, np.int64)
        self.columns = np.empty(ENTRIES, np.int64)
        self.segments = np.empty(ENTRIES + 1, np.int32)


_scratch = _Scratch()


@compiled_part
def _row_lengths(starts, entries):
    """Return (whether starts rise and span `entries` entries, fewest or 0, most entries of a row); `starts` is [R + 1].

    The second value is negative if the row pointers decrease.
    """
    least = most = 0
    for r in range(starts.size - 1):
        least, most = min(least, starts[r + 1] - starts[r]), max(most, starts[r + 1] - starts[r])
    return least >= 0 and starts[starts.size - 1] - starts[0] == entries, least, most


@compiled_part
def _make_words(starts, keys, words, rows):
    """Write the words (column << 12 | position) and the row of each entry; return the largest column as uint64.

    `starts` [R + 1] are the row pointers, `keys` [z] the columns; words [z] and rows [z] are overwritten. A negative
    column counts as a huge one.
    """
    largest = np.uint64(0)
    for r in range(starts.size - 1):
        for k in range(np.uint64(starts[r] - starts[0]), np.uint64(starts[r + 1] - starts[0])):
            key = np.uint64(keys[k])
            largest = max(largest, key)
            words[k] = key << np.uint64(PLACE_BITS) | k
            rows[k] = r
    return largest


@compiled_part
def _pass(source, shift, counts, out):
    """Write the words of `source` to `out`, stably sorted by the 8-bit digit above bit `shift`.

    Counts [256] is overwritten.
    """
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


@compiled_part
def _split(words, of_entry, columns, segments, rows, permutation):
    """Write columns, segments, rows and permutation of sorted words, the last pass of `sort`.

    Return (active columns, entries of the fullest one). words [z]; `of_entry` [z] is the row of each entry by its
    position; columns, segments, rows and permutation are overwritten.
    """
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
    """Sort the entries of a small batch by column; write columns, segments, rows, permutation.

    Return the fields of a `Found`. `starts` [R + 1] are the row pointers, `keys` [z] the columns, below `n_keys`;
    `words` [2, ENTRIES] and `of_entry` are scratch memory. Invalid batches are reported by the first field.
    """
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
    """Sort the entries of every batch of `batch_rows` rows, as `_sort`; write the results one after another.

    `starts`, `keys` and `n_keys` are those of all rows; words and of_entry are scratch memory. found[b] gets the fields
    of a `Found`; batch b has one more of `segments` than of `columns`; rows, permutation [z] count from 0 in each
    batch. Returns False for invalid row pointers or a batch of more than `ENTRIES` entries.
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
    """Return, without raising it, the error for columns outside [0, n_keys)."""
    found = f"Column numbers lie from {keys.min()} to {keys.max()}; allowed are 0 to {n_keys - 1}"
    return KernelError(f"{found}. Check the batch with workbench.formats.check(x, full=True).")


def sort(
    starts: np.ndarray, keys: np.ndarray, n_keys: int, kind: np.dtype
) -> tuple[Found, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Sort up to `ENTRIES` entries by column: return (found, columns, segments, rows, permutation).

    Row pointers are `starts` [R + 1], columns `keys` [z]; arrays as of `kernels.plan.Sorted`. `n_keys` is at most
    `COLUMNS`; segments, rows and permutation have dtype `kind`. Invalid batches are reported by `found.error`. O(z + R)
    per 8 bits of columns.
    """
    rows, permutation = np.empty(keys.size, kind), np.empty(keys.size, kind)
    kept = _scratch
    found = Found._make(
        _sort(starts, keys, n_keys, kept.words, kept.rows, kept.columns, kept.segments, rows, permutation)
    )
    touched = found.touched
    segments = kept.segments[: touched + 1].astype(kind)
    return found, kept.columns[:touched].copy(), segments, rows, permutation


def sort_each(
    starts: np.ndarray, keys: np.ndarray, n_keys: int, batch_rows: int
) -> list[tuple[Found, np.ndarray, np.ndarray, np.ndarray, np.ndarray]] | None:
    """Sort the entries of every `batch_rows` rows in one compiled call: return the result of `sort` for each, in int32.

    `starts` [R + 1] are the row pointers of all rows, `keys` [z] the columns, below `n_keys`. Returns None if a batch
    has more than `ENTRIES` entries or is invalid.
    """
    count, kind = -(-(starts.size - 1) // batch_rows), np.int32
    columns, segments = np.empty(keys.size, np.int64), np.empty(keys.size + count, kind)
    rows, permutation, found = np.empty(keys.size, kind), np.empty(keys.size, kind), np.empty((count, 5), np.int64)
    kept = _scratch
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


NUMBERS = 2
"""Widest row of g, in numbers: of wider ones a column's sum costs less in the order of a plan."""

PLACES = 4
"""Sums for each entry of a batch, at most: sums that leave the caches gain nothing. Of 131,000 entries, next to
other programs, without / with a plan: 0.42 / 1.11 ms for 100,000 columns, 0.54 / 1.14 for 300,000; in the midst of a
step, for 1,000,000 as long."""

WORK = 4
"""What an entry counts for in the measure of `threads.is_serial`."""

BLOCKS = 64
"""Ranges of columns that are looked through side by side."""

BITS = np.zeros(64, np.int64)
"""The place of the only bit of a word, by the upper six bits of the word times `DE_BRUIJN`."""
DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
for _bit in range(64):
    BITS[(int(DE_BRUIJN) << _bit & (1 << 64) - 1) >> 58] = _bit


class _Kept(threading.local):
    """Sums of the two halves [2, elements] by dtype, and the bits of their columns [2, words]: all zero between
    calls.
    """

    def __init__(self) -> None:
        """Start without memory for sums and bits."""
        self.sums: dict[np.dtype, np.ndarray] = {}
        self.bits = np.zeros((2, 0), np.uint64)

    def take(self, columns: int, width: int, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
        """Return zeroed sums [2, >= columns * width] and bits uint64 [2, >= columns / 64], removed from this object.

        The caller zeroes them after use and passes them to `give_back`.
        """
        sums = self.sums.pop(dtype, None)
        if sums is None or sums.shape[1] < columns * width:
            sums = np.zeros((2, columns * width), dtype)
        bits, words = self.bits, -(-columns // 64)
        self.bits = np.zeros((2, 0), np.uint64)
        return sums, bits if bits.shape[1] >= words else np.zeros((2, words), np.uint64)

    def give_back(self, sums: np.ndarray, bits: np.ndarray) -> None:
        """Keep the scratch arrays `sums` and `bits`, which must be all zero, for the next call."""
        self.sums[sums.dtype], self.bits = sums, bits


_kept = _Kept()


def suits(entries: int, columns: int, width: float) -> bool:
    """Return whether the weight gradient of a batch used once is cheaper without a plan.

    True for more than 4096 entries, `width` up to 2, and up to 4 sums (columns * width) an entry.
    """
    return entries > ENTRIES and width <= NUMBERS and columns * width <= PLACES * entries


@compiled
def _add(starts, indices, data, g, first, last, limit, sums, bits):
    """Add data[k] * g[r] for the entries of rows first to last - 1 to sums [columns * N].

    Set the bits of their columns. In place. Returns False if a column is not below `limit` (uint64); its entry is
    skipped.
    """
    width, one, is_right = np.uint64(g.shape[1]), np.uint64(1), True
    for r in range(np.uint64(first), np.uint64(last)):
        slope = g[r, 0]
        for k in range(np.uint64(starts[r] - starts[0]), np.uint64(starts[r + one] - starts[0])):
            column = np.uint64(indices[k])
            if column >= limit:
                is_right = False
                continue
            bits[column >> np.uint64(6)] |= one << (column & np.uint64(63))
            place = column * width
            sums[place] += data[k] * slope
            if width > one:
                sums[place + one] += data[k] * g[r, 1]
    return is_right


@compiled_parallel
def _add_halves(starts, indices, data, g, bounds, limit, sums, bits, is_right):
    """Add the entries of both halves of the rows on two threads, as `_add`, each with its own sums and bits.

    starts, indices, data is the batch in CSR form, g [R, N]; half h has rows bounds[h] to bounds[h + 1] - 1. is_right
    [2] gets the results.
    """
    for half in prange(2):
        is_right[half] = _add(starts, indices, data, g, bounds[half], bounds[half + 1], limit, sums[half], bits[half])


@compiled
def _find_ends(bits, bounds, ends):
    """Write to ends [parts + 1] how many active columns come before each range of words, the total last.

    Range p is words bounds[p] to bounds[p + 1] - 1; a column is active if its bit is set in either half.
    """
    total = 0
    for part in range(bounds.size - 1):
        ends[part] = total
        for word in range(np.uint64(bounds[part]), np.uint64(bounds[part + 1])):
            left = bits[0, word] | bits[1, word]
            while left:
                left &= left - np.uint64(1)
                total += 1
    ends[bounds.size - 1] = total


@compiled
def _collect(sums, bits, first, last, columns, values):
    """Write the active columns in words first to last - 1 and their gradient rows to columns [U], values [U, N].

    Adds up both halves of sums; zeroes their bits and sums in place.
    """
    width, u = np.uint64(values.shape[1]), np.uint64(0)
    for word in range(np.uint64(first), np.uint64(last)):
        left = bits[0, word] | bits[1, word]
        bits[0, word] = bits[1, word] = np.uint64(0)
        while left:
            rest = left & (left - np.uint64(1))
            column = word * np.uint64(64) + np.uint64(BITS[((left ^ rest) * DE_BRUIJN) >> np.uint64(58)])
            columns[u] = column
            for n in range(width):
                place = column * width + n
                values[u, n] = sums[0, place] + sums[1, place]
                sums[0, place] = sums[1, place] = 0
            u, left = u + np.uint64(1), rest


@compiled_parallel
def _collect_parts(sums, bits, bounds, ends, columns, values):
    """Write all active columns and their gradient rows on several threads; zero their sums and bits.

    Range p has words bounds[p] to bounds[p + 1] - 1 of `bits` and goes to columns, values from position ends[p] on.
    """
    for part in prange(ends.size - 1):
        own = slice(ends[part], ends[part + 1])
        _collect(sums, bits, bounds[part], bounds[part + 1], columns[own], values[own])


def gradient(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, g: np.ndarray, columns: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return active columns, sorted int64 [U], and the gradient (A.T @ g)[columns] [U, N] of a CSR batch.

    The batch is `indptr` [R + 1] (validated), `indices` and `data` [z] with `columns` features; g is [R, N]. O(z N +
    features / 64). Raises KernelError for a column out of range.
    """
    starts, indices, data, g = map(plain, (indptr, indices, data, g))
    width, work = g.shape[1], WORK * indices.size * g.shape[1]
    sums, bits = _kept.take(columns, width, g.dtype)
    is_right = np.ones(2, np.bool_)
    halves = equal_cost(starts, 2)
    call_parallel(_add_halves, work, starts, indices, data, g, halves, np.uint64(columns), sums, bits, is_right)
    if not is_right.all():
        raise wrong_column(indices, columns)  # the memory is not clear, and goes
    bounds, ends = equal_count(-(-columns // 64), BLOCKS), np.empty(BLOCKS + 1, np.int64)
    _find_ends(bits, bounds, ends)
    touched = int(ends[-1])
    found = reused.empty(touched, np.int64)
    values = reused.empty(touched * width, g.dtype).reshape(touched, width)
    call_parallel(_collect_parts, WORK * touched, sums, bits, bounds, ends, found, values)
    _kept.give_back(sums, bits)
    return found, values
