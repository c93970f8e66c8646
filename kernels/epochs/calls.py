"""State of a call of an epoch's kernel, its scratch memory, and the choice of the loop for it.

Methods of summing the gradient of a batch (`sums`), of which `_sums` chooses:

dense_table  dense table: a sum for each column, and marks of the active ones (`kernels.epochs.dense_table`)
dense_list   dense table + list of the active columns; one thread (`kernels.epochs.dense_list`)
hash_list    hash list: a hash table that lists the active columns, each with a sum
hash_sort    hash + sort: a hash table, then the entries sorted by column (`kernels.epochs.touched`)
in_place     in place: no sums, each entry updates the weights at once (`kernels.epochs.loops`)
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from kernels import aligned
from kernels._compat.numba_internals import each_part, flat, layer
from kernels.aligned import LINE
from kernels.code_cache import inlined
from kernels.contract import KernelError
from kernels.epochs import dense_list, dense_table, loops, touched
from kernels.epochs.loops import (
    Rows,
    Scratch,
    Trained,
    bare,
    make_forward,
    make_gather,
    make_serial,
    make_single,
    make_step_intercept,
    named,
    sum_columns,
)
from kernels.epochs.programs import Programs, programs_for
from kernels.epochs.touched import (
    Hashing,
    Touched,
    check_batches,
    count_batches,
    find,
    forget,
    hashing_for,
    owner_of,
    span_of,
    touched_of,
)
from kernels.loss_blocks import wrong_label
from kernels.rules import steps
from kernels.rules.rule import Rule
from kernels.threads import BLOCK, call_in_pieces, compiled, get_threads, is_forced_parallel, is_serial
from kernels.vector.lanes import emit_row
from kernels.vector.tiles import cache_bytes, gathers_by_loads, is_far_state

# The compiled loop of an epoch on several threads, for batches that have work for them.
#
# A batch is cut into parts of as many rows each. In a first pass over them each part has scores, slopes and the sums
# of a gradient of its own. In a second one each part owns some of the columns: it adds up what the parts have summed
# for these, in their order, and does the rule's step. No element has two writers, and no sum an order that depends
# on time.

PARTS = 8
"""Parts of a batch at most: what is summed for a column is looked for in the parts before."""


class HashList(NamedTuple):
    """Sums of a batch's gradient for the columns that each part touches: how columns are found, those of each part,
    `sums` [P * most, N], numbers of active columns [P], the columns by owner: `owned` [P, most], where those of each
    begin `starts` [P, P + 2], and end once merged [P, P].

    Columns whose numbers differ in no more than the last `group` bits have one owner: they share a line of memory.
    """

    hashing: Hashing
    stacked: Touched
    sums: np.ndarray
    counts: np.ndarray
    owned: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    group: np.ndarray


@inlined
def hash_list_of(parts):
    """Return a `HashList` built from the nested tuple of its fields, inside compiled code."""
    hashing, stacked, sums, counts, owned, starts, ends, group = parts
    return HashList(Hashing(*hashing), Touched(*stacked), sums, counts, owned, starts, ends, group)


@inlined
def divide(columns, count, starts, owned, group):
    """Write the indices 0 to count - 1 of `columns` to `owned`, grouped by the part that owns the column.

    Those of owner o are then owned[starts[o]] to owned[starts[o + 1] - 1]; `starts` [P + 2] is overwritten. `group` is
    the number of low bits of a column that do not change its owner.
    """
    parts = starts.size - 2
    starts[:] = 0
    for number in range(count):
        starts[owner_of(columns[number], group, parts) + np.uint64(2)] += 1
    for owner in range(1, starts.size):
        starts[owner] += starts[owner - 1]
    for number in range(count):
        place = owner_of(columns[number], group, parts) + np.uint64(1)
        owned[starts[place]] = number
        starts[place] += 1


def make_pass(programs: Programs, forward: Callable) -> Callable:
    """Return compiled one_pass(part, rows, ..): scores, gradients and column sums of one thread's rows of a batch."""
    gather = make_gather(programs)

    def one_pass(part, rows, order, first, last, share, arrays, added, is_far, scratch, store):
        """Fill scratch, sums and active columns of thread `part` for order[first:last].

        Return (sum of losses, invalid target). The latter is a position in `order`, or -1. The hash table and the list
        by owner in `store`, a `HashList`, are rebuilt in place; nothing is summed after an invalid target. Others as
        in `loops.make_forward`.
        """
        touched, most, counts = touched_of(part, store.stacked), store.owned.shape[1], store.counts
        forget(touched, counts[part])
        counts[part] = 0
        total, wrong = forward(rows, order, first, last, share, arrays, added, is_far, scratch)
        if wrong < 0:
            sums = store.sums[part * most : (part + 1) * most]
            counts[part] = gather(rows, order, first, last, scratch.slope, store.hashing, touched, sums)
            divide(touched.columns, counts[part], store.starts[part], store.owned[part], store.group[0])
        return total, wrong

    return inlined(one_pass)


def make_two(programs: Programs, loss: str, sums: str) -> tuple[Callable, Callable, Callable]:
    """Return compiled functions for several threads: (pass over rows, update of columns, constructor of the memory).

    `sums` is the method of summing gradients: "dense_table", "in_place", "hash_sort", else "hash_list".
    """
    forward = make_forward(programs, loss)
    if sums == "dense_table":
        return (
            dense_table.make_pass(programs, forward),
            dense_table.make_step(programs, is_parallel=True),
            dense_table.dense_table_of,
        )
    if sums == "in_place":
        return touched.make_pass(forward), loops.make_step(programs, is_parallel=True), loops.in_place_of
    if sums == "hash_sort":
        return touched.make_pass(forward), touched.make_step(programs), touched.hash_sort_of
    return make_pass(programs, forward), make_merge(programs), hash_list_of


def make_part(one_pass: Callable) -> Callable:
    """Return compiled do_part(part, rows, ..) -> None: `one_pass` on one thread's share `part` of a batch."""

    def do_part(part, rows, order, first, last, arrays, added, is_far, scratch, store, part_losses, wrong):
        """Process share `part` of order[first:last] by `one_pass`; write its sum of losses to part_losses[part].

        wrong[part] becomes -1, or the position in `order` of an invalid target. `rows`, `arrays`, `added` and `is_far`
        are as in `loops.make_forward`; `scratch` and `store` are overwritten.
        """
        parts, count = wrong.size, last - first
        begin, end = first + count * part // parts, first + count * (part + 1) // parts
        slope = scratch.slope[begin - first : end - first]
        own, share = Scratch(scratch.scores[part], scratch.targets[part], slope), slope.dtype.type(1 / count)
        part_losses[part], wrong[part] = one_pass(
            part, rows, order, begin, end, share, arrays, added, is_far, own, store
        )

    return inlined(do_part)


@inlined
def holder_of(column, part, hashing, stacked, most):
    """Return the row of the sums in which a part before `part` has `column`, or -1 if none of these has it.

    `hashing` and `stacked`, a `Touched` of arrays [P, ...], are the parts' hash tables; `most` is the number of rows of
    the sums of each part.
    """
    for earlier in range(part):
        number, _ = find(touched_of(earlier, stacked), hashing, column)
        if number >= 0:
            return earlier * most + number
    return -1


def make_merge(programs: Programs) -> Callable:
    """Return compiled merge(owner, parts, ..) -> None: add all parts' sums for one thread's columns, step these."""
    add, step = programs.add, programs.hash_list

    def merge(owner, parts, stepped, settings, at, store, batch):
        """Add the sums of all parts for the columns of `owner` and update their rows of weights and states, in place.

        Sums of a column are added to those of the first part that has it. `settings` [steps, K] is read at row `at`;
        `batch` is unused.
        """
        hashing, stacked, sums, owned = store.hashing, store.stacked, store.sums, store.owned
        most, width = owned.shape[1], sums.shape[1]
        for part in range(parts):
            kept = store.starts[part, owner]
            for place in range(store.starts[part, owner], store.starts[part, owner + 1]):
                number = owned[part, place]
                holder = holder_of(stacked.columns[part, number], part, hashing, stacked, most)
                if holder < 0:
                    owned[part, kept] = part * most + number
                    kept += 1
                else:
                    emit_row(add, holder, width, (sums.dtype.type(1), sums, part * most + number, sums))
            store.ends[part, owner] = kept
        for part in range(parts):
            first, last = part * most + store.starts[part, owner], part * most + store.ends[part, owner]
            operands = (flat(stacked.columns), flat(owned), sums, settings, at)
            emit_row(step, first, width, (last, *stepped, *operands))

    return inlined(merge)


@functools.cache
def make_parallel(programs: Programs, loss: str, sums: str) -> Callable:
    """Return the compiled training loop on several threads, for a loss and a method `sums` of summing gradients.

    Cached. As `loops.make_serial`, but arrays of the scratch memory have a row for each part. `outcome` are two arrays
    [P]: the loss of each part, and its invalid target (a position in `order`) or -1. `span` is (first batch, end).
    """
    one_pass, merge, store_of = make_two(programs, loss, sums)
    do_part, step_intercept = make_part(one_pass), make_step_intercept(programs.steps_intercept)
    before, after = touched.make_before(programs), touched.make_after(programs)
    misses, steps_all = touched.catches_up(programs.way), touched.is_dense(programs.way)

    def parallel(bare_rows, order, cut, bare_trained, is_far, memory, intercept, losses, group, outcome, span):
        """Train on batches span[0] to span[1] - 1 in place; return the position in `order` of an invalid target or -1.

        Adds the mean loss of each batch to `losses` [batches], 0 before. Batches before an invalid target are applied.
        bare_rows and bare_trained are a `Rows` and a `Trained` as tuples, `cut` is that of `span_of`, `memory`
        (scratch, store), `intercept` (arange(N), sums [N, 1]).
        """
        rows, trained = Rows(*bare_rows), Trained(*bare_trained)
        scratch, store = Scratch(*memory[0]), store_of(memory[1])
        (numbers, sums_intercept), (part_losses, wrong) = intercept, outcome
        arrays, added, settings, parts = trained.arrays, trained.added, trained.settings, wrong.size
        stepped, update_arrays, units, width = trained.stepped, trained.update_arrays, trained.units, trained.added.size
        for step in range(span[0], span[1]):
            (first, last), at = span_of(step, cut, order.size), min(step, settings.shape[0] - 1)
            if misses:
                each_part(before, parts, (parts, group, rows, order[first:last], arrays, update_arrays, step))
            shared = arrays, added, is_far, scratch, store, part_losses, wrong
            each_part(do_part, parts, (rows, order, first, last, *shared))
            for part in range(parts):
                if wrong[part] >= 0:
                    return wrong[part]
                losses[step] += part_losses[part] / (last - first)
            batch = rows, order[first:last], scratch.slope[: last - first]
            each_part(merge, parts, (parts, stepped, settings, at, store, batch))
            if steps_all:
                each_part(after, parts, (parts, update_arrays, units, width, settings, at))
            if sums_intercept.size:
                sum_columns(scratch.slope[: last - first], sums_intercept)
                step_intercept(trained, numbers, sums_intercept, step)
        return -1

    layer()  # code is linked with its functions
    return loops.compiled(named(parallel, programs, loss, sums))


FEW_COLUMNS = 1024
"""Columns below which neighbours may have two owners: they are rarely stepped for what is summed for them."""

ENTRY_WORK = 16
"""What an entry costs in both passes over it, in addition to its columns, in the measure of `threads.is_serial`."""

FEW_ENTRIES, FEW_ENTRIES_AT_ONCE = 16, 64
"""Mean entries of a row below which weights and states from beyond a core's cache are asked for, where their gradient
is summed and where entries step them at once (linear rules, batches of one row): of more the processor itself asks for
many at a time. Time with / without, D = 1,000,000: a core of a Xeon, 32 rows, AdaGrad, N = 1: 1.18, 1.23, 1.13, 1.0
with 300, 100, 30, 5 entries, N = 4: 0.56 with 5, 1.33 with 30; SGD: 1.09 with 300, 0.93 with 30. A core of an EPYC
9005, which asks for those of a dense list for any rows: AdaGrad, N = 1: 0.78 with 300, 0.52 with 30; N = 4: 0.68."""

FAR_ROWS = 4
"""Sizes of a core's cache from which on weights and states are asked for of rows of `FEW_ENTRIES` or more. Measured on
a core of an EPYC 9004 (1 MiB), one row a batch, new order, N = 1, time with / without. FTRL, 30 entries: 1.2 MB 1.17,
3.6 MB 1.13, 12 MB 0.91; 5 entries, 3.6 MB 0.89. AdaGrad, 30 entries: 8 MB 0.95. SGD, 30 entries: 4 MB 0.98."""

IN_PLACE_SHARE = 4
"""Share of a core's cache from which on weights are stepped at once by several threads, not summed for each before."""

ENTRIES_DENSE_TABLE = 1 << 16
"""Entries of a batch from which on threads sum narrow rows, which one thread steps at once, to gain (two cores of an
EPYC 9005; SGD, D = 3,000, 32 rows of 300 entries: 1.3 ns an entry on two threads, 1.05 on one)."""

REGIONS = 8
"""What a batch on several threads pays for, in entries of regions: its two passes, and looking for the columns of each
part in the tables of the others. 1,024 rows of 14 entries are then work for two threads, 512 are not, with N = 1."""


def intercept_tables(intercept: tuple[np.ndarray, ...], by_row: bool) -> tuple[np.ndarray, ...]:
    """Return the intercept and its states reshaped: weights [N, 1], states [N] if `by_row`, else [N, 1]; views."""
    weights, *states = intercept
    return weights.reshape(-1, 1), *(state if by_row else state.reshape(-1, 1) for state in states)


@dataclass(frozen=True)
class Call:
    """The operands of a call, by their parts: see `kernels.epochs.epoch`."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    targets: np.ndarray
    counts: np.ndarray
    order: np.ndarray
    batch_rows: int
    epoch_rows: int
    arrays: tuple[np.ndarray, ...]
    """Weights and states."""
    intercept: tuple[np.ndarray, ...]
    """The intercept and its states, of no elements where there is none."""
    settings: np.ndarray
    settings_intercept: np.ndarray
    way: str
    update_arrays: tuple
    """What the way of the epoch takes: a gradient [D, N] of zeros, or the parts of a `ways.Lag`."""

    @classmethod
    def of(cls, rule: Rule, way: str, args: tuple) -> "Call":
        """Build a `Call` from the operands `args` of an epoch kernel; KernelError if their lengths disagree.

        `way` is the strategy for inactive rows, such as "lazy".
        """
        count = len(rule.written)
        indptr, indices, data, targets, counts, order, batch_rows, epoch_rows, *others = args
        arrays, intercept = tuple(others[:count]), tuple(others[count : 2 * count])
        x = indptr, indices, data
        settings, of_intercept, *update_arrays = others[2 * count :]
        batches = targets, counts, order, batch_rows, epoch_rows
        call = cls(*x, *batches, arrays, intercept, settings, of_intercept, way, tuple(update_arrays))
        call.check(len(rule.settings(*rule.example)))
        return call

    def check(self, numbers: int) -> None:
        """Raise KernelError if lengths of operands disagree; `numbers` is the count of settings of a step."""
        rows, width = self.indptr.size - 1, self.arrays[0].shape[1]
        tables = {"settings": self.settings, "settings_intercept": self.settings_intercept}
        cut = self.batch_rows, self.epoch_rows
        check_batches(rows, width, self.counts, self.intercept[0], tables, numbers, *cut)
        if touched.catches_up(self.way):
            self._check_lag(touched.Lag(*self.update_arrays), numbers)

    def _check_lag(self, lag: touched.Lag, numbers: int) -> None:
        """Raise KernelError if `missed` lacks settings (or matrices) of a step before the last batch of the call."""
        is_tree = self.way in ("closed_form", "closed_form_pair")
        width, steps = (4, len(lag.missed) // 2) if is_tree else (numbers, len(lag.missed))
        asked = lag.now + self.batches - 1 - lag.first
        if lag.missed.shape[1] != width or asked > steps or lag.first > lag.now:
            raise KernelError(
                f"missed is {list(lag.missed.shape)}, for steps from {lag.first} on; batches from step {lag.now} on "
                f"ask for {asked} steps of {width} numbers."
            )

    @property
    def has_intercept(self) -> bool:
        """Return whether scores have an intercept, which is then trained."""
        return self.intercept[0].size > 0

    @property
    def tables(self) -> tuple[np.ndarray, ...]:
        """Return the intercept and its states as tables: weights [N, 1], states [N] or [N, 1]."""
        return intercept_tables(self.intercept, by_row=self.arrays[-1].ndim == 1)

    @property
    def batches(self) -> int:
        """Return the number of batches; the last one of an epoch may have fewer rows."""
        return count_batches(self.order.size, self.batch_rows, self.epoch_rows)


@compiled
def _largest_batch(indptr, order, cut, batches):
    """Return the most entries of one of the `batches` that `cut` makes of `order` [T], 0 for none; indptr is [R+1]."""
    most = 0
    for step in range(batches):
        (first, last), entries = span_of(step, cut, order.size), 0
        for place in range(first, last):
            row = np.uint64(order[place])
            entries += indptr[row + np.uint64(1)] - indptr[row]
        most = max(most, entries)
    return most


def run(loss: str, rule: Rule, call: Call) -> np.ndarray:
    """Train on all batches of a call in place; return the mean loss of each batch before its step, float64 [batches].

    Raises KernelError for an invalid target; the batches before it have been applied.
    """
    losses = np.zeros(call.batches)
    if call.order.size:
        wrong = _loop(loss, rule, call, losses)
        if wrong >= 0:
            row = call.order[wrong]
            raise wrong_label(row, call.targets[row], call.arrays[0].shape[1])
    return losses


def _loop(loss: str, rule: Rule, call: Call, losses: np.ndarray) -> int:
    """Train on all batches of a call in place; return the position in `order` of an invalid target or -1.

    Writes mean losses to `losses` [batches], 0 before. Chooses the compiled loop, its method of summing gradients and
    the number of threads from the work of a batch.
    """
    weights, settings = call.arrays[0], loops.given_settings(call.settings, call.settings_intercept)
    is_unchanged = settings[0].shape[1] < call.settings.shape[1]
    is_in_place = not touched.catches_up(call.way) and loops.suits(rule, call.settings, is_unchanged)
    if is_in_place:  # rows that a batch does not touch would not change
        call = replace(call, way="lazy", update_arrays=())
    stepped, update_arrays, units, work_untouched = _untouched(rule, call)
    # By whole batches, even if this call has only the rest of an epoch: another loop would have to be compiled for it.
    epoch_rows, width = min(call.epoch_rows, call.order.size), weights.shape[1]
    batch_rows = min(call.batch_rows, max(call.indptr.size - 1, epoch_rows))
    entries = call.indices.size * batch_rows // max(call.indptr.size - 1, 1)
    work = int(entries * (ENTRY_WORK + width) / REGIONS) + work_untouched
    parts = 1 if is_serial(work, within=True) else min(get_threads(), PARTS)
    sums = _sums(call, entries, parts, is_in_place)
    if parts > 1 and not (work_untouched or is_forced_parallel() or _gains(sums, entries, weights, is_in_place)):
        parts, sums = 1, _sums(call, entries, 1, is_in_place)
    added = call.intercept[0] if call.has_intercept else np.zeros(width, weights.dtype)
    trained = loops.Trained(call.arrays, stepped, added, call.tables, *settings, update_arrays, units)
    is_far = is_far_state(sum(array.nbytes for array in call.arrays), width * weights.itemsize)
    programs = programs_for(rule.name, width, weights.itemsize, settings[0].shape[1], call.way, is_far)
    rows = _rows(call, width)
    of_intercept = np.arange(width), aligned.empty((width if call.has_intercept else 0, 1), weights.dtype)
    scratch, operands = _scratch(rows, batch_rows, weights, parts), (bare(trained), _is_far(call, is_in_place, sums))
    own, begin = (scratch.scores[0], scratch.targets[0], scratch.slope), 0
    if parts == batch_rows == 1:
        single = make_single(programs, loss, is_in_place)
        begin, wrong = single(bare(rows), call.order, *operands, own, of_intercept, losses)
        if wrong >= 0 or begin == losses.size:
            return wrong
    store = _store(sums, call, batch_rows, parts, bool(programs.marked))
    shared = bare(rows), call.order, (batch_rows, epoch_rows), *operands
    if parts == 1:
        alone = _alone(store) if isinstance(store, HashList) else store
        return make_serial(programs, loss, sums)(*shared, own, bare(alone), of_intercept, losses, begin)
    outcome = np.zeros(parts), np.zeros(parts, np.int64)
    loop = make_parallel(programs, loss, sums)
    held = *shared, (bare(scratch), bare(store)), of_intercept, losses, np.uint64(_group(weights)), outcome
    return call_in_pieces(lambda first, last: loop(*held, (first, last)), losses.size, work)


def _sums(call: Call, entries: int, parts: int, is_in_place: bool = False) -> str:
    """Return the method of summing gradients for batches of `entries` entries on `parts` threads.

    `is_in_place`: the rule allows updates without sums. Measured on two cores of an EPYC 9004 with SGD, N =
    64, in_place / dense_table / hash_sort: 32 rows of 820 columns, 16,384 in all, 760 / 1,200 / 1,310 us a batch; 32 of
    51 of 1,024: 14 / 24 / 32; 4,096 of 51 of 1,024: 1,300 / 1,240 / 2,850; 4,096 of 154 of 256: 5,500 / 4,400 / 9,800.
    """
    weights = call.arrays[0]
    is_dense_table = dense_table.suits(entries, *weights.shape)
    if is_in_place and (parts == 1 or not is_dense_table or weights.nbytes > cache_bytes(2) // IN_PLACE_SHARE):
        return "in_place"
    batches = min(call.batches, -(-call.epoch_rows // call.batch_rows))
    if parts == 1 and dense_list.suits(entries, batches, weights):
        return "dense_list"
    if is_dense_table:
        return "dense_table"
    return "hash_sort" if touched.suits(weights.shape[1], weights.itemsize) else "hash_list"


def _gains(sums: str, entries: int, weights: np.ndarray, is_in_place: bool = False) -> bool:
    """Return whether several threads are faster for batches of `entries` entries with the method `sums` of summing.

    `is_in_place`: one thread would not sum. Each looks at every entry twice where each owns columns, and adds up the
    sums of all parts. Two cores of a Xeon, time of two threads / of one: AdaGrad, D = 1,000,000, 300 entries a row,
    256 rows a batch, N = 1, 4, 16: 2.4, 1.2, 0.72. N = 1, 300 entries, 1,024 rows, D = 3,000, 100,000, 1,000,000:
    0.70, 0.90, 1.37. SGD at once, D = 1,000,000, 30 entries, 1,024 rows, N = 1, 4, 16, 32, 64: 1.2, 1.1, .95, .77, .81.
    """
    bytes_row = weights.shape[1] * weights.itemsize
    if sums == "dense_table":
        return weights.shape[0] <= entries // 2 and (
            not is_in_place or bytes_row >= LINE or entries >= ENTRIES_DENSE_TABLE
        )
    return sums == "hash_sort" or bytes_row >= (2 * LINE if sums == "in_place" else LINE)


def _store(sums: str, call: Call, batch_rows: int, parts: int, marks_itself: bool) -> NamedTuple:
    """Allocate the scratch memory of the method `sums` of summing gradients, for `parts` threads, as its named tuple.

    `marks_itself` goes to `dense_list.dense_list_for`.
    """
    weights = call.arrays[0]
    if sums == "dense_table":
        return dense_table.dense_table_for(parts, weights)
    if sums == "in_place":
        return loops.in_place_for(parts, call.indices, weights)
    most = _largest_batch(call.indptr, call.order, (batch_rows, call.epoch_rows), call.batches)
    if sums == "hash_sort":
        return touched.hash_sort_for(parts, most, weights, _group(weights))
    if sums == "dense_list":
        return dense_list.dense_list_for(most, weights, marks_itself)
    return _hash_list(weights, most, parts)


def _untouched(rule: Rule, call: Call) -> tuple[tuple, tuple, int, int]:
    """Return (arrays the active rows are stepped in, operands for inactive rows, units to step, work of a batch).

    Units are rows or chunks of all weights that are stepped after each batch; 0 unless the strategy is "standard".
    """
    if touched.catches_up(call.way):
        return call.arrays, call.update_arrays, 0, 0
    if not touched.is_dense(call.way):
        return call.arrays, (), 0, 0
    whole = *call.arrays, *call.update_arrays
    units, width = call.arrays[0].shape
    if not rule.average:
        whole = tuple(array.reshape(-1) for array in whole)
        units, width = -(-whole[0].size // steps.CHUNK), steps.CHUNK
    return call.update_arrays, whole, units, rule.work(units, width)


def _is_far(call: Call, is_in_place: bool, sums: str = "") -> tuple[bool, bool]:
    """Return (prefetch entries of X, prefetch weights and states): whether they exceed a core's cache.

    `sums` is the method of summing gradients; see `FEW_ENTRIES`.
    """
    bytes_x, bytes_state = call.indices.nbytes + call.data.nbytes, sum(array.nbytes for array in call.arrays)
    few = FEW_ENTRIES_AT_ONCE if is_in_place or call.batch_rows == 1 else FEW_ENTRIES
    entries, rows = call.indices.size, call.indptr.size - 1
    near = cache_bytes(2) * (1 if entries < FEW_ENTRIES * rows else FAR_ROWS)
    is_few = entries < few * rows or (sums == "dense_list" and gathers_by_loads())
    return bytes_x > cache_bytes(2), bytes_state > near and is_few


def _rows(call: Call, width: int) -> loops.Rows:
    """Return X in CSR form with its targets and counts as a `loops.Rows`; targets of one output (`width` 1) as [T]."""
    targets = call.targets.reshape(-1) if width == 1 else call.targets
    return loops.Rows(call.indptr, call.indices, call.data, targets, call.counts)


def _scratch(rows: loops.Rows, batch_rows: int, weights: np.ndarray, parts: int) -> loops.Scratch:
    """Allocate a `loops.Scratch` for batches on `parts` threads, uninitialised.

    Scores and targets have shape [parts, rows at once, ...], the gradient of the scores [batch_rows, N].
    """
    width, dtype = weights.shape[1], weights.dtype
    at_once = min(max(BLOCK // width, 1), batch_rows)
    scores, slope = aligned.empty((parts, at_once, width), dtype), dense_table.table(batch_rows, width, dtype)
    targets = np.empty((parts, at_once, *rows.targets.shape[1:]), rows.targets.dtype)
    return loops.Scratch(scores, targets, slope)


def _hash_list(weights: np.ndarray, entries: int, parts: int) -> HashList:
    """Allocate a `HashList` for `parts` threads with at most `entries` entries each, for weights [D, N].

    Hash tables are empty.
    """
    columns, width = weights.shape
    most = max(min(entries, columns), 1)
    hashing, places = hashing_for(columns, most)
    slots = np.full((parts, places), -1, np.int32)
    stacked = Touched(slots, np.empty((parts, most), np.int64), np.empty((parts, most), np.int64))
    owned, starts = np.empty((parts, most), np.int64), np.zeros((parts, parts + 2), np.int64)
    ends, group = np.zeros((parts, parts), np.int64), np.array([_group(weights)], np.uint64)
    sums = dense_table.table(parts * most, width, weights.dtype)
    return HashList(hashing, stacked, sums, np.zeros(parts, np.int64), owned, starts, ends, group)


def _alone(store: HashList) -> loops.Alone:
    """Return a `loops.Alone` over the first part's arrays of `store`, for the loop on one thread."""
    touched = Touched(*(array[0] for array in store.stacked))
    return loops.Alone(store.hashing, touched, store.sums, store.counts)


def _group(weights: np.ndarray) -> int:
    """Return how many low bits of a column index do not change its owner: columns of a cache line have one owner.

    0 if there are few columns.
    """
    columns_a_line = max(aligned.LINE // (weights.itemsize * weights.shape[1]), 1)
    return (columns_a_line - 1).bit_length() if weights.shape[0] >= FEW_COLUMNS else 0
