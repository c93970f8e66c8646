"""Column index of a batch ("batch plan"): everything that depends on its sparsity pattern alone, computed once.

Time and memory grow with the stored entries of the batch, not with the number of features. The loader builds the plan,
one batch ahead, or once for batches that repeat; forward pass, gradient and update read it and never sort.
"""

import threading
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numba import prange
from numpy.typing import DTypeLike

from kernels import reused, sorting
from kernels.contract import KernelError
from kernels.sorting import wrong_column
from kernels.threads import compiled, compiled_parallel, compiled_part, equal_count, get_threads, is_serial, parts

# Stable sort of the entries of a batch by column, in time and memory that the number of columns does not enter.
#
# A radix sort from the least significant digit (Knuth vol. 3, 5.2.5), built on three observations. Column, row and
# place of an entry fit one 64-bit word, so that a pass moves one word and nothing is looked up afterwards. All
# counters can be filled before anything moves, those of a later pass apart by the top bits of the digit before: the
# entries then stand in as many streams, which share no counter. And equal columns come to stand together, where each
# would wait for the counter that the one before has just written: four streams taken in turn hide that, and every
# thread takes four of its own. Each entry has one place, so the result is the same at every thread count.
#
# Where a batch's values are wanted in that order and nothing else will be, a word holds an entry's value instead of
# its place: no permutation is written, and no value is looked up through it.


# Words of 64 bits made of the entries of a batch, which a sort moves in the place of the entries.


DIGIT_BITS = 12
"""Widest digit: its 4096 counters fit the first-level cache, the lines that they point into the second."""

WORD_BITS = 64
"""Bits of a word; a test lowers it."""

VALUE_BITS = 32
"""Bits of a value that goes along."""

NO_VALUES = np.empty(0, np.uint32)


class Word(NamedTuple):
    """Layout of words: position or value, row and column, upwards; sorted by `digits` digits of `width` bits."""

    digits: int
    width: int
    streams: int
    """Bits of the number of a stream: a later pass takes its entries from `1 << streams` of them."""
    row: int
    """Lowest bit of the row; `column` where there was no room for rows."""
    column: int
    """Lowest bit of the column."""


def word_of(rows: int, entries: int, columns: int, parts: int, low: int | None = None) -> Word | None:
    """Return the layout of words for sorting `entries` entries of `rows` rows and `columns` columns by `parts` threads.

    None if 64 bits are too few. The lowest `low` bits are for a value (None: a position); then the row must fit as
    well.
    """
    bits, row_bits = max((columns - 1).bit_length(), 1), max(rows - 1, 1).bit_length()
    row = max(entries - 1, 1).bit_length() if low is None else low
    has_rows = row + row_bits + bits <= WORD_BITS
    if row + bits > WORD_BITS or (low is not None and not has_rows):
        return None
    digits = -(-bits // min(DIGIT_BITS, max(entries.bit_length() - 2, 8)))
    width = -(-bits // digits)
    streams = min(2 + (parts - 1).bit_length(), width)
    return Word(digits, width, streams, row, row + (row_bits if has_rows else 0))


def bits_of(values: np.ndarray | None, kind: np.dtype) -> np.ndarray:
    """Return float32 `values` as uint32 bits if they may be sorted along, i.e. positions are int32.

    Else `NO_VALUES`.
    """
    if values is None or values.dtype != np.float32 or kind != np.int32:
        return NO_VALUES
    return values.view(np.uint32)


PARTS = 8
"""Most threads that share a sort: each has its own counters for every digit and stream."""

WORK = 12
"""What an entry counts for in the measure of `threads.is_serial`: half of the 4 ns that it takes on one thread, for
several threads have more to do."""


class Sorted(NamedTuple):
    """Entries grouped by column: those of `columns[u]`, int64 [U], are `segments[u]` to `segments[u + 1]` - 1.

    Entry k in this order was entry `permutation[k]`, in row `rows[k]`; `rows` is None if it did not fit into a word. If
    values were sorted along, they are `values`, and `permutation` is None.
    """

    columns: np.ndarray
    segments: np.ndarray
    rows: np.ndarray | None
    permutation: np.ndarray | None
    values: np.ndarray | None = None


_kept = threading.local()


def _scratch(size: int) -> np.ndarray:
    """Return `size` uninitialised uint64 words from a buffer of this thread that grows and is reused by every call."""
    if getattr(_kept, "words", None) is None or _kept.words.size < size:
        _kept.words = np.empty(size, np.uint64)
    return _kept.words[:size]


@compiled
def largest(keys):
    """Return the largest of `keys`, int [z], as uint64, 0 for none; a negative one counts as huge. Compiled; O(z)."""
    most = np.uint64(0)
    for k in range(keys.size):
        most = max(most, np.uint64(keys[k]))
    return most


@compiled_part
def _count(keys, shift, counts):
    """Add the histogram of the digit above bit `shift` of the keys [z] to counts [2**width], in place."""
    low, mask = np.uint64(shift), np.uint64(counts.size - 1)
    for k in range(keys.size):
        counts[(np.uint64(keys[k]) >> low) & mask] += 1


@compiled_part
def _count_digits(keys, word, counts, later):
    """Add the histograms of all digits of the keys [z]: the first to counts, others by digit and stream to later."""
    _count(keys, 0, counts)
    for digit in range(1, word.digits):
        _count(keys, digit * word.width - word.streams, later[digit - 1])


@compiled_part
def _cursors(counts, cursors, edges):
    """Turn counts [values, writers] into the position of each writer's first entry: cursors [writers, values].

    `edges` [streams + 1] gets where the streams begin that the result is read as. Both are overwritten.
    """
    total, step = 0, max(counts.shape[0] // (edges.size - 1), 1)
    for value in range(counts.shape[0]):
        if value % step == 0:
            edges[value // step] = total
        for writer in range(counts.shape[1]):
            cursors[writer, value] = total
            total += counts[value, writer]
    edges[edges.size - 1] = total


@compiled_part
def _later_cursors(counts, cursors, edges):
    """Write the cursors of a later pass, and its `edges`.

    Counts [parts, values * streams] are summed into part 0 in place.
    """
    for part in range(1, counts.shape[0]):
        for k in range(counts.shape[1]):
            counts[0, k] += counts[part, k]
    _cursors(counts[0].reshape((cursors.shape[1], cursors.shape[0])), cursors, edges)


@compiled_part
def _scatter_words(starts, keys, values, word, first, last, cursors, out):
    """Write entries first to last - 1 as words to `out`, sorted by their first digit; cursors advance in place.

    A word is (column `keys[k]`, row, values[k], or k without values), from high to low bits; `starts` are row pointers.
    """
    mask, to_row, to_column = np.uint64(cursors.size - 1), np.uint64(word.row), np.uint64(word.column)
    row, k = np.searchsorted(starts, starts[0] + first, side="right") - 1, first
    while k < last:
        end = min(starts[row + 1] - starts[0], last)
        row_bits = np.uint64(row) << to_row if word.row < word.column else np.uint64(0)
        for at in range(np.uint64(k), np.uint64(end)):
            key = np.uint64(keys[at])
            place = np.uint64(cursors[key & mask])
            cursors[key & mask] += 1
            out[place] = (key << to_column) | row_bits | (np.uint64(values[at]) if values.size else at)
        k, row = end, row + 1


@compiled_part
def _move(word, shift, mask, cursor, out):
    """Write `word` to `out` at the cursor of its digit, above bit `shift`, and advance that cursor in place."""
    digit = (word >> shift) & mask
    place = np.uint64(cursor[digit])
    cursor[digit] += 1
    out[place] = word


@compiled_part
def _scatter_four(source, edges, shift, cursors, out):
    """Sort four streams of words, source[edges[s]:edges[s + 1]], to `out` by the digit above bit `shift`.

    Cursors advance.
    """
    shift, mask = np.uint64(shift), np.uint64(cursors.shape[1] - 1)
    a, b, c, d = np.uint64(edges[0]), np.uint64(edges[1]), np.uint64(edges[2]), np.uint64(edges[3])
    shortest = min(min(b - a, c - b), min(d - c, np.uint64(edges[4]) - d))
    of_a, of_b, of_c, of_d = cursors[0], cursors[1], cursors[2], cursors[3]
    for k in range(shortest):
        _move(source[a + k], shift, mask, of_a, out)
        _move(source[b + k], shift, mask, of_b, out)
        _move(source[c + k], shift, mask, of_c, out)
        _move(source[d + k], shift, mask, of_d, out)
    for stream in range(4):
        for k in range(np.uint64(edges[stream]) + shortest, np.uint64(edges[stream + 1])):
            _move(source[k], shift, mask, cursors[stream], out)


@compiled_part
def _split(words, word, first, last, following, rows, permutation):
    """Write rows and positions (or values) of sorted words first to last - 1; return the number of columns.

    The words are overwritten by one word a column: the column and the position of its last entry. A run that goes on in
    the word `following` is left to the part that it ends in. Every entry writes; the last one of a run stays.
    """
    if first == last:
        return 0
    to_row, to_column, one = np.uint64(word.row), np.uint64(word.column), np.uint64(1)
    places, below = (one << to_row) - one, (one << to_column) - one
    for k in range(np.uint64(first), np.uint64(last)):
        rows[k] = (words[k] & below) >> to_row
        permutation[k] = words[k] & places
    at, end, key = np.uint64(first), np.uint64(last) - one, words[first] >> to_column
    for k in range(np.uint64(first), end):
        after = words[k + one] >> to_column
        words[at] = (key << to_column) | k
        at += np.uint64(key != after)
        key = after
    words[at] = (key << to_column) | end
    return np.int64(at - np.uint64(first) + np.uint64(key != following >> to_column))


@compiled
def _sort(starts, keys, values, word, counts, later, cursors, edges, buffers, rows, permutation, distinct):
    """Sort all entries by column on one thread; results are as of `_split`, the count of columns in distinct[0].

    The last pass writes buffer 0. Arrays from `counts` on are overwritten; counts and later must be 0.
    """
    target = (word.digits - 1) % 2
    _count_digits(keys, word, counts[0], later[:, 0])
    _cursors(counts.T, cursors, edges[0])
    _scatter_words(starts, keys, values, word, 0, keys.size, cursors[0], buffers[target])
    for digit in range(1, word.digits):
        source, target = target, 1 - target
        _later_cursors(later[digit - 1], cursors, edges[digit % 2])
        shift = word.column + digit * word.width
        _scatter_four(buffers[source], edges[1 - digit % 2], shift, cursors, buffers[target])
    distinct[0] = _split(buffers[0], word, 0, keys.size, ~buffers[0][keys.size - 1], rows, permutation)


@compiled_parallel
def _sort_parts(starts, keys, values, word, counts, later, cursors, edges, buffers, rows, permutation, distinct):
    """Sort all entries by column, one thread for each part of them; operands as `_sort`, distinct [parts]."""
    parts, last = counts.shape[0], (word.digits - 1) % 2
    bounds = np.arange(parts + 1) * keys.size // parts
    for part in prange(parts):
        _count_digits(keys[bounds[part] : bounds[part + 1]], word, counts[part], later[:, part])
    _cursors(counts.T, cursors, edges[0])
    for part in prange(parts):
        _scatter_words(starts, keys, values, word, bounds[part], bounds[part + 1], cursors[part], buffers[last])
    for digit in range(1, word.digits):
        _later_cursors(later[digit - 1], cursors, edges[digit % 2])
        shift, source = word.column + digit * word.width, (last + digit + 1) % 2
        for four in prange(cursors.shape[0] // 4):
            streams = slice(4 * four, 4 * four + 4)
            from_edges = edges[1 - digit % 2, 4 * four : 4 * four + 5]
            _scatter_four(buffers[source], from_edges, shift, cursors[streams], buffers[1 - source])
    words = buffers[0]
    following = np.empty(parts, np.uint64)  # [parts], read before any part overwrites its own
    for part in range(parts):
        following[part] = words[bounds[part + 1]] if bounds[part + 1] < keys.size else ~words[keys.size - 1]
    for part in prange(parts):
        distinct[part] = _split(words, word, bounds[part], bounds[part + 1], following[part], rows, permutation)


@compiled_part
def _unpack(words, word, columns, ends):
    """Write columns [n] and the exclusive end of each column's entries from the words that `_split` left."""
    to_column, one = np.uint64(word.column), np.uint64(1)
    places = (one << np.uint64(word.row)) - one
    for u in range(columns.size):
        columns[u] = words[u] >> to_column
    for u in range(columns.size):
        ends[u] = (words[u] & places) + one


@compiled
def _unpack_parts(words, word, distinct, columns, segments):
    """Write columns [U] and segments [U + 1] from the words of all parts; part p has distinct[p] of them."""
    u = segments[0] = 0
    for part in range(distinct.size):
        first, count = words.size * part // distinct.size, distinct[part]
        _unpack(words[first : first + count], word, columns[u : u + count], segments[u + 1 : u + 1 + count])
        u += count


def sort(starts: np.ndarray, keys: np.ndarray, n_keys: int, kind: np.dtype, values: np.ndarray | None = None) -> Sorted:
    """Sort entries by column, stable: rows begin at `starts` [R + 1], columns are `keys` [z], below `n_keys`.

    O(z) per digit of `n_keys`. Positions count from `starts[0]`; they, segments and rows have dtype `kind`. float32
    `values` [z] are sorted along in place of a permutation if they fit. Raises KernelError for a column out of range.
    """
    if keys.size and largest(keys) >= n_keys:
        raise wrong_column(keys, n_keys)
    parts = 1 if is_serial(WORK * keys.size) else min(get_threads(), PARTS)
    sizes = starts.size - 1, keys.size, int(n_keys), parts
    carried = bits_of(values, kind)
    word = word_of(*sizes, VALUE_BITS) if carried.size else None
    if word is None:
        word, carried = word_of(*sizes), NO_VALUES
    if not keys.size or word is None:
        return _sort_wide(keys, kind)
    spare = reused.empty(keys.size * kind.itemsize // 4, np.uint64)  # [z] or [2 z]; becomes rows and permutation
    rows, permutation = spare.view(kind)[: keys.size], spare.view(kind)[-keys.size :]
    buffers = _scratch(keys.size), spare[: keys.size]
    distinct = _run(starts, keys, carried, word, parts, buffers, rows, permutation)
    touched = int(distinct.sum())
    columns, segments = reused.empty(touched, np.int64), reused.empty(touched + 1, kind)
    _unpack_parts(buffers[0], word, distinct, columns, segments)
    if carried.size:
        return Sorted(columns, segments, rows, None, permutation.view(np.float32))
    return Sorted(columns, segments, rows if word.row < word.column else None, permutation)


def _run(starts, keys, carried, word: Word, parts: int, buffers: tuple, rows, permutation) -> np.ndarray:
    """Allocate counters and sort by `_sort` or `_sort_parts`.

    Return the number of columns left by each part in buffer 0.
    """
    digits, streams, kind = 1 << word.width, 1 << word.streams, rows.dtype
    counts, cursors = np.zeros((parts, digits), kind), np.empty((max(streams, parts), digits), kind)
    later = np.zeros((word.digits - 1, parts, digits * streams), kind)
    edges, distinct = np.empty((2, streams + 1), np.int64), np.empty(parts, np.int64)
    function = _sort if parts == 1 else _sort_parts
    function(starts, keys, carried, word, counts, later, cursors, edges, buffers, rows, permutation, distinct)
    return distinct


def _sort_wide(keys: np.ndarray, kind: np.dtype) -> Sorted:
    """Sort entries whose columns and positions do not fit one word, by NumPy's stable sort, some ten times as slow."""
    permutation = np.argsort(keys, kind="stable").astype(kind)
    ordered = keys[permutation]
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: keys.size])
    return Sorted(ordered[first].astype(np.int64), np.append(first, keys.size).astype(kind), None, permutation)


INT32_LIMIT = 2**31
"""Positions and index values from here on need int64; a test lowers it."""

ORDER_WORK = 4
"""What moving a value into column order costs, in the measure of `threads.is_serial`."""


@dataclass(eq=False)
class BatchPlan:
    """Column index of a batch A [R, D] in CSR form with z stored entries in U active columns.

    Entries are ordered by column, then row: entry `k` in this order is entry `permutation[k]` of the batch, in row
    `rows[k]`; the entries of column `columns[u]` are `segments[u]` to `segments[u + 1]` - 1.
    """

    shape: tuple[int, int]
    columns: np.ndarray
    """Active columns, sorted, unique: int64 [U]."""
    segments: np.ndarray
    """Row starts of A.T restricted to the active columns: int32 or int64 [U + 1]."""
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
    """Active columns in descending order of entries, where asked for, as places in `columns`."""
    kept: list[np.ndarray] = field(default_factory=list, repr=False, compare=False)
    """The batch's values and the same in column order, where `in_order` was asked for them."""

    @property
    def touched(self) -> int:
        """Return U, the number of active columns."""
        return len(self.columns)

    @property
    def nbytes(self) -> int:
        """Return the bytes of the plan's arrays and of the values in column order, if these were computed."""
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
    """Write the row of each entry to rows [z], from the row pointers `starts` [R + 1], which may start above 0."""
    for r in range(starts.size - 1):
        for k in range(starts[r] - starts[0], starts[r + 1] - starts[0]):
            rows[k] = r


@compiled
def _gather(source, places, out):
    """Write source[places] to out [n], one after the other."""
    for k in range(places.size):
        out[k] = source[np.uint64(places[k])]


def _in_order(data: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return data[places] as a new array, gathered on several threads if that is faster."""
    if data.size <= sorting.ENTRIES:  # half of the time of a compiled call
        return data.take(places)
    out, source = reused.empty(data.size, data.dtype), _plain(data)
    if is_serial(ORDER_WORK * data.size):
        _gather(source, places, out)
    else:
        _gather_parts(source, places, out, equal_count(data.size, parts()))
    return out


@compiled_parallel
def _gather_parts(source, places, out, bounds):
    """Write source[places] to out [n] on several threads; part p does the elements bounds[p] to bounds[p + 1] - 1."""
    for part in prange(bounds.size - 1):
        _gather(source, places[bounds[part] : bounds[part + 1]], out[bounds[part] : bounds[part + 1]])


@compiled
def _extremes(starts):
    """Return (min(0, least), most) of the differences of neighbouring starts: negative if row pointers decrease."""
    least = most = 0
    for r in range(starts.size - 1):
        least, most = min(least, starts[r + 1] - starts[r]), max(most, starts[r + 1] - starts[r])
    return least, most


def row_length(rows: int, entries: int, longest: int) -> int:
    """Return the entries of every row if all `rows` rows have the same number, else -1.

    `longest` is that of the largest row.
    """
    return longest if rows and rows * longest == entries else -1


def index_type(largest: int, least: DTypeLike = np.int32) -> np.dtype:
    """Return the dtype for indices up to `largest`: `least`, or int64 from 2**31 on."""
    return np.dtype(np.int64 if largest >= INT32_LIMIT else least)


def _check_indices(name: str, array: np.ndarray) -> np.ndarray:
    """Return `array` unchanged; KernelError, which calls it `name`, unless it is one-dimensional int32 or int64."""
    if array.ndim != 1 or array.dtype not in (np.int32, np.int64):
        raise KernelError(f"{name} is {array.dtype} {list(array.shape)}; it is int32 or int64, of one dimension.")
    return array


def _plain(array: np.ndarray) -> np.ndarray:
    """Return `array` itself if C-contiguous and writable, else a copy, so that compiled code needs one version only."""
    flags = array.flags
    return array if flags.c_contiguous and flags.writeable else np.array(array, order="C")


def sort_segments(
    indices: np.ndarray, n_columns: int, kind: np.dtype | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Group entries by column, stable: return active columns int64 [U], segments [U + 1] and the permutation [z].

    `kind` is the dtype of the latter two. Raises KernelError for an index outside [0, n_columns).
    """
    starts = np.array([0, indices.size], index_type(indices.size, indices.dtype))
    ordered = sort(starts, _plain(indices), n_columns, kind or index_type(indices.size))
    if ordered.permutation is None:  # with values alone
        raise KernelError("The sort returned no permutation; expected one for a sort without values.")
    return ordered.columns, ordered.segments, ordered.permutation


def build(indptr: np.ndarray, indices: np.ndarray, n_columns: int, values: np.ndarray | None = None) -> BatchPlan:
    """Compute the plan of a CSR batch: `indptr` [R + 1], `indices` [z] (int32 or int64), `n_columns` features. O(z).

    Indices of a row may be unsorted and repeated. `indptr` may start above zero, as in a slice of rows. If `values` [z]
    are given, they are sorted along, which is faster for large batches; `in_order` then accepts these values only.
    Raises KernelError for an index outside [0, n_columns) or inconsistent row pointers.
    """
    starts, indices = _plain(_check_indices("indptr", indptr)), _plain(_check_indices("indices", indices))
    if not starts.size:
        raise KernelError("indptr is empty. Allowed: one entry more than there are rows, the first of them 0.")
    if indices.size <= sorting.ENTRIES and 0 < n_columns <= sorting.COLUMNS:
        return _build_small(starts, indices, int(n_columns))
    if starts[-1] - starts[0] != indices.size:
        raise _wrong_length(starts, indices)
    least, longest = map(int, _extremes(starts))
    if least < 0:
        raise _falling()
    kind = index_type(max(indices.size, starts.size))
    given = _plain(values) if values is not None and values.shape == indices.shape else None
    columns, segments, rows, permutation, ordered = sort(starts, indices, int(n_columns), kind, given)
    if rows is None:
        of_entry, rows = np.empty_like(permutation), np.empty_like(permutation)
        _row_of_entry(starts, of_entry)
        _gather(of_entry, permutation, rows)
    shape = starts.size - 1, int(n_columns)
    length = row_length(shape[0], indices.size, longest)
    run, kept = int(_extremes(segments)[1]), [] if values is None or ordered is None else [values, ordered]
    return BatchPlan(shape, columns, segments, rows, permutation, run, length, longest, kept=kept)


def _build_small(starts: np.ndarray, indices: np.ndarray, n_columns: int) -> BatchPlan:
    """Compute the plan of up to 4096 entries in one compiled call; KernelError if they are invalid."""
    kind = index_type(max(indices.size, starts.size))
    found, *arrays = sorting.sort(starts, indices, n_columns, kind)
    if found.error == sorting.WRONG_COLUMN:
        raise sorting.wrong_column(indices, n_columns)
    if found.error:
        raise _falling() if found.shortest_row < 0 else _wrong_length(starts, indices)
    return _small((starts.size - 1, n_columns), found, *arrays)


def _small(shape: tuple[int, int], found: sorting.Found, columns, segments, rows, permutation) -> BatchPlan:
    """Build a plan of a batch of `shape` from the result of `sorting.sort`: `found` and its arrays."""
    length = row_length(shape[0], rows.size, found.longest_row)
    return BatchPlan(shape, columns, segments, rows, permutation, found.longest_run, length, found.longest_row)


def build_each(indptr: np.ndarray, indices: np.ndarray, n_columns: int, batch_rows: int) -> list[BatchPlan] | None:
    """Compute the plans of every `batch_rows` rows of a CSR matrix in one compiled call.

    Returns None if batches are not small or the input is invalid; `build` then computes the plans or raises.
    """
    starts, indices = _plain(_check_indices("indptr", indptr)), _plain(_check_indices("indices", indices))
    if starts.size < 2 or starts[-1] - starts[0] != indices.size or not 0 < n_columns <= sorting.COLUMNS:
        return None
    if max(indices.size, starts.size) >= INT32_LIMIT:
        return None
    sorted_batches = sorting.sort_each(starts, indices, int(n_columns), batch_rows)
    if sorted_batches is None:
        return None
    last = len(sorted_batches) - 1
    heights = [batch_rows] * last + [starts.size - 1 - last * batch_rows]
    return [_small((height, int(n_columns)), *each) for height, each in zip(heights, sorted_batches, strict=True)]


def _wrong_length(starts: np.ndarray, indices: np.ndarray) -> KernelError:
    """Return, without raising it, the error for row pointers that do not match the number of indices."""
    return KernelError(
        f"indptr speaks of {starts[-1] - starts[0]} entries, indices holds {indices.size}; pass the slice "
        "indices[indptr[0]:indptr[-1]]."
    )


def _falling() -> KernelError:
    """Return, without raising it, the error for decreasing row pointers."""
    return KernelError("indptr falls; starts of rows never do. Build the batch again from its parts.")


def build_coo(row: np.ndarray, col: np.ndarray, shape: tuple[int, int]) -> BatchPlan:
    """Compute the plan of a COO batch with entries in any order; rows within a column keep the given order.

    `row` and `col` are int32|int64 [z], `shape` (rows, features). KernelError for unequal lengths or indices out of
    range.
    """
    row, col = _plain(_check_indices("row", row)), _check_indices("col", col)
    if row.size != col.size:
        raise KernelError(f"row has {row.size} entries and col {col.size}; each entry needs both.")
    if row.size and largest(row) >= shape[0]:
        raise KernelError(f"Row numbers lie from {row.min()} to {row.max()}; allowed are 0 to {shape[0] - 1}.")
    kind = index_type(max(row.size, shape[0]))
    columns, segments, permutation = sort_segments(col, int(shape[1]), kind)
    rows = np.empty(permutation.size, kind)
    _gather(row, permutation, rows)
    return BatchPlan(shape, columns, segments, rows, permutation, int(_extremes(segments)[1]), -1)
