"""The active columns of some rows, numbered in the order in which they are met, and what finds the number of one.

A table has a place for every column where there are few of them, else one of a power of two, at least twice as many as
the rows can touch: multiply-shift hashing (Dietzfelbinger et al. 1997) and the next free place. What is kept grows with
the rows of a batch and never with the number of features, but for 4 bytes a feature where that is less.

Strategies (`way`) for the rows of weights and states that a batch does not touch:

lazy        nothing
standard    they are stepped as well, by a gradient of zero: a dense step of all rows for every batch
closed_form, closed_form_pair, last_step, step_by_step
            nothing until a batch touches them; before it is scored they catch up on the steps they have missed: by the
            product of the matrices of those steps, of one number or four; by the last of those steps; or by each of
            them. The result is that of standard.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from kernels.aligned import LINE
from kernels.code_cache import inlined
from kernels.contract import KernelError
from kernels.epochs.programs import Programs
from kernels.registry import unknown_name
from kernels.rules.missed import number_between, pair_between
from kernels.rules.rule import Rule
from kernels.vector.lanes import emit_row

# Batches of the rows of several epochs: each is cut by itself, so that the last batch of each may have fewer rows.


def count_batches(rows: int, batch_rows: int, epoch_rows: int) -> int:
    """Return the number of batches of `rows` rows: up to `batch_rows` in each, none across the end of an epoch.

    >>> count_batches(20, batch_rows=3, epoch_rows=8), count_batches(20, batch_rows=3, epoch_rows=20)
    (8, 7)
    """
    epochs, rest = divmod(rows, epoch_rows)
    return epochs * -(-epoch_rows // batch_rows) + -(-rest // batch_rows)


@inlined
def span_of(step, cut, rows):
    """Return (first, last + 1), positions of batch `step` among `rows` rows; `cut` is (batch_rows, epoch_rows)."""
    batch_rows, epoch_rows = cut
    batches = -(-epoch_rows // batch_rows)
    begin = step // batches * epoch_rows
    first = begin + step % batches * batch_rows
    return first, min(first + batch_rows, begin + epoch_rows, rows)


def check_batches(
    rows: int,
    width: int,
    counts: np.ndarray,
    intercept: np.ndarray,
    tables: Mapping[str, np.ndarray],
    numbers: int,
    *cut: int,
) -> None:
    """Raise KernelError unless counts, intercept, settings tables and `cut` (batch_rows, epoch_rows) fit the others.

    `rows` are those of X, `width` the outputs, `numbers` the settings of a step; `tables` are {name: [steps, numbers]}.
    """
    if counts.size not in (0, rows):
        raise KernelError(f"counts has {counts.size} numbers; it has one for each of {rows} rows, or none.")
    if intercept.size not in (0, width):
        raise KernelError(f"intercept has {intercept.size} numbers; it has {width}, or none.")
    for name, table in tables.items():
        if not len(table) or table.shape[1] != numbers:
            raise KernelError(f"{name} is {list(table.shape)}; it has {numbers} numbers for one step or more.")
    if min(cut) < 1:
        raise KernelError(f"batch_rows is {cut[0]}, epoch_rows {cut[1]}; a batch and an epoch have one row or more.")


FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio, odd: neighbouring columns come to lie far apart."""

LOW = np.uint64(0xFFFFFFFF)

DIRECT = 64 * 1024
"""Columns up to which there is a place for each: 256 KiB, a part of a core's cache."""


class Hashing(NamedTuple):
    """`place = column * factor >> shift`; the place after it is the next modulo `mask` + 1."""

    factor: np.uint64
    shift: np.uint64
    mask: np.uint64


def hashing_for(columns: int, most: int) -> tuple[Hashing, int]:
    """Return (hash parameters, number of slots) for a table of up to `most` of `columns` columns.

    With few columns each has its own slot; else a power of two of slots, at least twice `most`.
    """
    bits = max(int(2 * most - 1).bit_length(), 4)
    if columns <= max(DIRECT, 1 << bits):
        return Hashing(np.uint64(1), np.uint64(0), np.uint64(2**64 - 1)), max(columns, 1)
    return Hashing(FACTOR, np.uint64(64 - bits), np.uint64((1 << bits) - 1)), 1 << bits


@inlined
def owner_of(column, group, parts):
    """Return the part, 0 to parts - 1, that owns a column, by a hash of the column without its low `group` bits.

    `column` is an integer, `group` uint64; columns in one cache line thus get the same owner. Returns uint64.
    """
    place = ((np.uint64(column) >> group) * FACTOR >> np.uint64(32)) & LOW
    return place * np.uint64(parts) >> np.uint64(32)


class Touched(NamedTuple):
    """`slots` int32 [places]: the number of the column that is there, or -1; `columns` int64 [most] by number, and the
    `places` int64 [most] where they are found."""

    slots: np.ndarray
    columns: np.ndarray
    places: np.ndarray


@inlined
def touched_of(part, stacked):
    """Return the hash table of part `part` as a `Touched` of views of the stacked arrays [P, ...]."""
    return Touched(stacked.slots[part], stacked.columns[part], stacked.places[part])


@inlined
def find(touched, hashing, column):
    """Return (index of `column` in the table, its slot), or (-1, free slot where it would go); changes nothing.

    `touched` is a `Touched`, the hash table, `hashing` its constants.
    """
    place = (np.uint64(column) * hashing.factor) >> hashing.shift
    number = touched.slots[place]
    while number >= 0 and touched.columns[np.uint64(number)] != column:
        place = (place + np.uint64(1)) & hashing.mask
        number = touched.slots[place]
    return number, place


@inlined
def put(touched, column, place, number):
    """Insert `column` with index `number` into the free slot `place` of the hash table `touched`, in place."""
    touched.slots[place] = number
    touched.columns[number] = column
    touched.places[number] = place


@inlined
def forget(touched, count):
    """Empty the slots of the first `count` columns of the hash table `touched`, in place; O(count)."""
    for number in range(count):
        touched.slots[touched.places[number]] = -1


# The gradient of a batch a column at a time: its entries are put in the order of their columns, of each its own.
#
# The sum of a column then stays in registers until the rule's step is done, where other ways write and read a row of
# sums for every entry. Each owner takes up the entries of its columns in their order, so that the bits do not depend
# on the number of threads. It pays for rows of several numbers: of one the order costs more than the sums.


LINES = 4
"""Lines of memory of a row, from which on."""


class HashSort(NamedTuple):
    """Entries of a batch by the part (0 to P - 1) that owns their column.

    `hashing` and `stacked` find the number of an active column of a part. `starts` int64 [P, most + 2] is where the
    entries of each column begin in the ordered arrays. In the order of the batch an entry has the number of its column,
    `numbers` int32 [P, entries], its row in the batch, `rows` int32, and its value, `values`; `rows_ordered` and
    `values_ordered` have the last two in the order of the columns.

    Columns whose numbers differ in no more than the last `group` bits have one owner: they share a line of memory.
    """

    hashing: Hashing
    stacked: Touched
    starts: np.ndarray
    numbers: np.ndarray
    rows: np.ndarray
    values: np.ndarray
    rows_ordered: np.ndarray
    values_ordered: np.ndarray
    group: np.ndarray


def suits(width: int, itemsize: int) -> bool:
    """Return whether to group the entries by column, for rows of `width` elements of `itemsize` bytes: 4 lines or more.

    Measured on a core of an EPYC 9004, AdaGrad, 256 rows of 30 to 39 entries in 50,000 columns: N = 201 takes 0.79
    times as long as with a hash list, with SGD 0.53, N = 64 takes 0.86, N = 32 takes 1.3, N = 16 takes 1.4.
    """
    return width * itemsize >= LINES * LINE


def hash_sort_for(parts: int, entries: int, weights: np.ndarray, group: int) -> HashSort:
    """Allocate a `HashSort` for batches of at most `entries` entries in `parts` parts, for weights [D, N].

    `group` is how many low bits of a column to drop to find its owner. Hash tables are empty, the rest is
    uninitialised.
    """
    most, entries = max(min(entries, weights.shape[0]), 1), max(entries, 1)
    hashing, places = hashing_for(weights.shape[0], most)
    stacked = Touched(
        np.full((parts, places), -1, np.int32), np.empty((parts, most), np.int64), np.empty((parts, most), np.int64)
    )
    starts, shape = np.empty((parts, most + 2), np.int64), (parts, entries)
    numbers, rows, rows_ordered = (np.empty(shape, np.int32) for _ in range(3))
    values, values_ordered = (np.empty(shape, weights.dtype) for _ in range(2))
    lists = numbers, rows, values, rows_ordered, values_ordered
    return HashSort(hashing, stacked, starts, *lists, np.array([group], np.uint64))


@inlined
def hash_sort_of(parts):
    """Return a `HashSort` built from the nested tuple of its fields, inside compiled code."""
    hashing, touched, starts, numbers, rows, values, rows_ordered, values_ordered, group = parts
    stacked = Touched(*touched)
    return HashSort(Hashing(*hashing), stacked, starts, numbers, rows, values, rows_ordered, values_ordered, group)


@inlined
def one_entry(touched, hashing, starts, column, count):
    """Count one entry of `column` in starts[index + 2].

    Return (index of the column, number of active columns after it). A new column is inserted in the hash table
    `touched`, with constants `hashing`, in place; its count starts at 0. `count` is the number of active columns
    before.
    """
    number, place = find(touched, hashing, column)
    if number < 0:
        number = count
        put(touched, column, place, count)
        starts[np.uint64(count + 2)] = 0
        count += 1
    starts[np.uint64(number + 2)] += 1
    return number, count


@inlined
def take_up(owner, parts, rows, order, hash_sort, touched):
    """List the entries of the columns that `owner` of `parts` owns; return (active columns, listed entries).

    In batch order; `order` are the rows of the batch in X, `rows`. Fills `numbers`, `rows`, `values` and entry counts
    `starts` of `hash_sort` and the hash table `touched`, in place.
    """
    starts, numbers, group = hash_sort.starts[owner], hash_sort.numbers[owner], hash_sort.group[0]
    rows_own, values = hash_sort.rows[owner], hash_sort.values[owner]
    count = listed = 0
    for place in range(order.size):
        row = np.uint64(order[place])
        for k in range(np.uint64(rows.indptr[row]), np.uint64(rows.indptr[row + np.uint64(1)])):
            column = rows.indices[k]
            if owner_of(column, group, parts) == np.uint64(owner):
                at = np.uint64(listed)
                numbers[at], count = one_entry(touched, hash_sort.hashing, starts, column, count)
                rows_own[at], values[at] = place, rows.data[k]
                listed += 1
    return count, listed


@inlined
def put_in_order(owner, count, listed, hash_sort):
    """Sort the `listed` entries of `owner` by column (counting sort, stable) into `rows_ordered` and `values_ordered`.

    Then `starts[u]` to `starts[u + 1]` bound the entries of column u of `count`. Written in place in `hash_sort`.
    """
    starts, numbers = hash_sort.starts[owner], hash_sort.numbers[owner]
    rows, values = hash_sort.rows[owner], hash_sort.values[owner]
    rows_ordered, values_ordered = hash_sort.rows_ordered[owner], hash_sort.values_ordered[owner]
    starts[0] = starts[1] = 0
    for number in range(2, count + 2):
        starts[number] += starts[number - 1]
    for entry in range(listed):
        number = np.uint64(numbers[entry] + 1)
        place = np.uint64(starts[number])
        rows_ordered[place], values_ordered[place] = rows[entry], values[entry]
        starts[number] += 1


def make_pass(forward: Callable) -> Callable:
    """Return compiled one_pass(part, rows, order, first, last, ..): scores and gradients of rows order[first:last].

    It writes the operand `scratch` and returns (sum of losses, invalid target or -1); column sums are left to the
    update. `forward` is the result of `loops.make_forward`.
    """

    def one_pass(part, rows, order, first, last, share, arrays, added, is_far, scratch, store):
        """Run `forward` on order[first:last], writing `scratch`; return (sum of losses, invalid target or -1).

        rows, share, arrays, added and is_far are passed on (see `loops.make_forward`); `part` and `store` are unused.
        """
        return forward(rows, order, first, last, share, arrays, added, is_far, scratch)

    return inlined(one_pass)


def make_step(programs: Programs) -> Callable:
    """Return compiled step(owner, parts, ..) -> None: update the columns of thread `owner` by sums of their entries.

    Weights and states change in place; the entries are grouped by column in the operand `grouped`.
    """
    steps = programs.hash_sort

    def step(owner, parts, stepped, settings, at, hash_sort, batch):
        """Group the entries of the columns of `owner`; update their rows of weights and states in place.

        `batch` is (rows, order, gradient of the scores [R, N]); `settings` [steps, K] is read at row `at`. Overwrites
        the owner's arrays in `hash_sort`; its hash table is empty before and after.
        """
        rows, order, slope = batch
        touched = touched_of(owner, hash_sort.stacked)
        count, listed = take_up(owner, parts, rows, order, hash_sort, touched)
        put_in_order(owner, count, listed, hash_sort)
        entries = hash_sort.starts[owner], hash_sort.rows_ordered[owner], hash_sort.values_ordered[owner]
        emit_row(steps, 0, slope.shape[1], (count, *stepped, touched.columns, *entries, slope, settings, at))
        forget(touched, count)

    return inlined(step)


ALL = np.uint64(0)
"""Columns of a group, where there is one owner."""


class Lag(NamedTuple):
    """Lag of rows: the number of the step that each has `last` had or caught up on, plus one [D]; `missed`,
    the settings of steps from number `first` on, or the tree of their matrices; `now`, the number of the first step."""

    last: np.ndarray
    missed: np.ndarray
    first: int
    now: int


def ways_of(rule: Rule) -> list[str]:
    """Return the strategies for inactive rows that a rule supports in epochs: "lazy", "standard" and deferred ones."""
    has_closed_form = rule.closed_form is not None
    is_pair = has_closed_form and len(rule.states) == 1 and not rule.average
    could = {"closed_form": has_closed_form, "closed_form_pair": is_pair}
    could |= {"last_step": rule.last_step, "step_by_step": rule.step_by_step and not rule.average}
    return ["lazy", "standard", *(way for way, can in could.items() if can)]


def check_way(rule: Rule, way: str) -> None:
    """Raise KernelError, listing the supported ones, if a rule does not support the strategy `way`."""
    if way not in (known := ways_of(rule)):
        raise KernelError(unknown_name(f"strategy of an epoch of {rule.name}", way, known))


def catches_up(way: str) -> bool:
    """Return whether strategy `way` defers the updates of inactive rows: all but "lazy" and "standard"."""
    return way not in ("lazy", "standard")


def is_dense(way: str) -> bool:
    """Return whether strategy `way` updates all rows in each batch: only "standard"."""
    return way == "standard"


@inlined
def _nothing_before(owner, parts, group, rows, order, arrays, lag, step):
    """Do nothing before a batch: under "lazy" and "standard" no row has missed an update."""


@inlined
def _nothing_after(part, parts, whole, units, width, settings, at):
    """Do nothing after a batch, all parameters being unused: inactive rows are left unchanged."""


def make_before(programs: Programs) -> Callable:
    """Return compiled before(owner, parts, ..) -> None: apply missed updates to a batch's columns before scoring.

    Rows of weights and states of thread `owner` change in place. A function without effect for strategies that do not
    defer updates.
    """
    if not catches_up(programs.way):
        return _nothing_before
    catch_up = _CATCH_UP[programs.way](programs.untouched)

    def before(owner, parts, group, rows, order, arrays, lag, step):
        """Apply the missed steps, up to `step`, to the weight and state rows of a batch's columns that `owner` owns.

        `order` are the rows of the batch, `arrays` weights and states, `lag` a `Lag`. Writes `arrays` and lag.last in
        place.
        """
        last, missed, begin, start = lag
        now = start + step
        for place in range(order.size):
            row = np.uint64(order[place])
            for k in range(np.uint64(rows.indptr[row]), np.uint64(rows.indptr[row + np.uint64(1)])):
                column = np.int64(rows.indices[k])
                if owner_of(column, group, parts) == np.uint64(owner):
                    since = max(last[np.uint64(column)], begin)
                    if since < now:
                        catch_up(column, since - begin, now - begin, missed, arrays)
                    last[np.uint64(column)] = now + 1

    return inlined(before)


def _make_closed_form(program: str) -> Callable:
    """Return compiled closed_form(column, start, stop, missed, arrays) -> None: missed steps as one factor.

    It multiplies weights[column] in place by the product of the factors of steps start to stop - 1. `program` is the
    name of vector code of `programs.closed_form`.
    """

    def closed_form(column, start, stop, missed, arrays):
        """Multiply weights[column] in place by the product of the factors of missed steps start to stop - 1.

        `missed` is the tree of factors, float64 [2 * S, 4]; `arrays` are weights and states.
        """
        emit_row(program, column, arrays[0].shape[1], (number_between(missed, start, stop), *arrays))

    return inlined(closed_form)


def _make_closed_form_pair(program: str) -> Callable:
    """Return compiled closed_form_pair(column, start, stop, missed, arrays) -> None: as one matrix.

    It multiplies row `column` of (weights, state) in place by the product of the 2 x 2 matrices of steps start to stop
    - 1. `program` is the name of vector code of `programs.closed_form_pair`.
    """

    def closed_form_pair(column, start, stop, missed, arrays):
        """Multiply (weight, state) row `column` in place by the product of the matrices of steps start to stop - 1.

        `missed` is the tree of matrices, float64 [2 * S, 4].
        """
        emit_row(program, column, arrays[0].shape[1], (*pair_between(missed, start, stop), *arrays))

    return inlined(closed_form_pair)


def _make_last_step(program: str) -> Callable:
    """Return compiled last_step(column, start, stop, missed, arrays) -> None: only the last missed step.

    For rules where it has the effect of all: row `column` is stepped in place by gradient 0 with settings missed[stop -
    1]. `program` is the name of vector code of `programs.last_step`.
    """

    def last_step(column, start, stop, missed, arrays):
        """Step row `column` of `arrays` in place by gradient 0 with settings missed[stop - 1]; `start` is unused."""
        emit_row(program, column, arrays[0].shape[1], (stop - 1, missed, *arrays))

    return inlined(last_step)


def _make_step_by_step(program: str) -> Callable:
    """Return compiled step_by_step(column, start, stop, missed, arrays) -> None: repeat missed steps.

    Row `column` of `arrays` is stepped in place, once for each of missed[start:stop]. `program` is the name of vector
    code of `programs.step_by_step`.
    """

    def step_by_step(column, start, stop, missed, arrays):
        """Step row `column` of `arrays` in place by gradient 0 with settings missed[k], k = start..stop - 1.

        A row of zeros, weights and states, stays as it is under every rule that repeats steps.
        """
        for array in arrays:
            for value in array[np.uint64(column)]:
                if value != 0:
                    emit_row(program, column, arrays[0].shape[1], (start, stop, missed, *arrays))
                    return

    return inlined(step_by_step)


_CATCH_UP = {
    "closed_form": _make_closed_form,
    "closed_form_pair": _make_closed_form_pair,
    "last_step": _make_last_step,
    "step_by_step": _make_step_by_step,
}


def make_after(programs: Programs) -> Callable:
    """Return compiled after(part, parts, ..) -> None: one thread's share of the dense update of all rows.

    Weights and states change in place, the gradient is zeroed. A function without effect unless the strategy is
    "standard".
    """
    if not is_dense(programs.way):
        return _nothing_after
    dense = programs.untouched

    def after(part, parts, whole, units, width, settings, at):
        """Update part `part` of `parts` of the `units` rows or chunks of `whole` (weights, states, gradient) in place.

        Zeroes the gradient. `width` is the elements of a unit; `settings` [steps, K] is read at row `at`.
        """
        first, last = units * part // parts, units * (part + 1) // parts
        emit_row(dense, first, width, (last, *whole, settings, at))

    return inlined(after)
