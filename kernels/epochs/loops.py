"""Compiled loops of an epoch on one thread, made for a loss, a rule and a width when these are first used.

For each batch: rows that it reads catch up where the way of the epoch has it (`kernels.epochs.touched`), then scores,
slope of the loss, the gradient summed into one row for each touched column, the rule's step on these columns, or all,
then on the intercept. Rows are read where they stand; those to come are asked for ahead of their use.
"""

import functools
import hashlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kernels.aligned import LINE
from kernels.code_cache import inlined, njit
from kernels.epochs import dense_list, dense_table, touched
from kernels.epochs.programs import Programs
from kernels.epochs.touched import ALL, Hashing, Touched, find, forget, make_after, make_before, put, span_of
from kernels.loss_blocks import block_of, element_of
from kernels.rules import steps
from kernels.rules.rule import Rule
from kernels.vector.lanes import are_rising, emit_row, prefetch

# The step of a batch without sums of its gradient: each entry steps the weights of its column at once.
#
# For rules that are linear in the gradient and leave weights alone where it is zero: SGD without decay. Steps by the
# entries of a column one after the other then come to the step by their sum. On several threads each one owns a
# range of columns, and has the entries of all rows of the batch there, found by bisection in rows whose columns
# rise; so the entries of a column are taken in the order of the rows on any number of threads, and the bits are the
# same.


SAMPLED = 4096
"""Entries of X, about, by which the columns are shared out."""


class InPlace(NamedTuple):
    """`bounds` int64 [P + 1]: the columns from `bounds[p]` to `bounds[p + 1]` belong to part p."""

    bounds: np.ndarray


@inlined
def in_place_of(parts):
    """Return a `InPlace` built from the tuple of its fields, inside compiled code."""
    return InPlace(*parts)


def suits(rule: Rule, settings: np.ndarray, is_unchanged: bool) -> bool:
    """Return whether updates by single entries equal updates by sums, for settings [S, K]: linear rule without decay.

    `is_unchanged` says that no gradient is rescaled or clipped; if False, so is the result. O(S).
    """
    if not (rule.is_linear and is_unchanged) or rule.closed_form is None:
        return False
    kept = rule.closed_form(*settings.T)
    return kept is not None and bool(np.all(np.asarray(kept[0]) == 1))


def given_settings(settings: np.ndarray, settings_intercept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both settings tables [S, K] for compiled code: without rescale and clip if these change no gradient.

    These are the last two columns, equal to `steps.UNCHANGED` in all rows of both tables.
    """
    if settings_intercept is settings:
        taken = _without_scaling(settings)
        return taken, taken
    shorter, of_intercept = _without_scaling(settings), _without_scaling(settings_intercept)
    is_shorter = shorter.shape[1] < settings.shape[1] and of_intercept.shape[1] < settings_intercept.shape[1]
    return (shorter, of_intercept) if is_shorter else (settings, settings_intercept)


def _without_scaling(table: np.ndarray) -> np.ndarray:
    """Return a settings table without its last two columns, rescale and clip, if these leave every gradient unchanged;
    else the table.
    """
    if len(table) == 1:
        is_unchanged = tuple(table[0, -2:].tolist()) == steps.UNCHANGED
    else:  # a column at a time: NumPy takes five times as long for pairs of columns
        rescale, clip = steps.UNCHANGED
        is_unchanged = bool((table[:, -2] == rescale).all() and (table[:, -1] == clip).all())
    return np.ascontiguousarray(table[:, :-2]) if is_unchanged else table


def in_place_for(parts: int, indices: np.ndarray, weights: np.ndarray) -> InPlace:
    """Divide the columns of weights [D, N] into `parts` ranges of about equal entry counts, estimated from a sample.

    `indices` are the column indices of X. Inner bounds are multiples of the columns in a cache line.
    """
    if parts == 1:
        return InPlace(np.array([0, len(weights)]))
    columns, unit = len(weights), max(LINE // (weights.shape[1] * weights.itemsize), 1)
    sample = np.sort(indices[:: max(indices.size // SAMPLED, 1)])
    places = sample.size * np.arange(1, parts) // parts
    inner = sample[places].astype(np.int64) // unit * unit if sample.size else np.zeros(parts - 1, np.int64)
    return InPlace(np.concatenate(([0], inner, [columns])))


@inlined
def own_entries(indices, start, stop, low, high):
    """Return (first, last) of the entries start..stop - 1 with low <= column < high, or (-1, -1) if unsorted.

    last is exclusive. (-1, -1) means that columns do not strictly ascend. Vectorised single pass over `indices` [z],
    the columns of all entries.
    """
    below = within = falls = np.int64(0)
    for k in range(start, stop):
        below += indices[k] < low
        within += indices[k] < high
    for k in range(start + np.uint64(1), stop):
        falls += indices[k] <= indices[k - np.uint64(1)]
    if falls:
        return np.int64(-1), np.int64(-1)
    return np.int64(start) + below, np.int64(start) + within


def make_step(programs: Programs, is_parallel: bool) -> Callable:
    """Return compiled step(owner, parts, ..) -> None: update weights by the entries of a batch, in place, unsummed.

    `is_parallel`: only weight rows of thread `owner`; else all, and `owner` is unused.
    """
    entries = programs.entries_at

    def step_all(owner, parts, stepped, settings, at, store, batch):
        """Update weight rows in place by each entry of the batch in order, with the settings of step `at`.

        `batch` is (rows, order, gradient of the scores [R, N]); `owner`, `parts` and `store` are unused.
        """
        rows, order, slope = batch
        width = slope.shape[1]
        for place in range(order.size):
            row = np.uint64(order[place])
            start, stop = np.int64(rows.indptr[row]), np.int64(rows.indptr[row + np.uint64(1)])
            emit_row(entries, start, width, (stop, *stepped, rows.indices, rows.data, slope, place, settings, at))

    def step_own(owner, parts, stepped, settings, at, store, batch):
        """Update in place the weight rows from store.bounds[owner] to store.bounds[owner + 1] - 1 by their entries.

        `batch` is (rows, order, gradient of the scores [R, N]); `at` is the row of `settings`; `parts` is unused.
        """
        rows, order, slope = batch
        indices, width, low, high = rows.indices, slope.shape[1], store.bounds[owner], store.bounds[owner + 1]
        for place in range(order.size):
            row = np.uint64(order[place])
            start, stop = np.uint64(rows.indptr[row]), np.uint64(rows.indptr[row + np.uint64(1)])
            first, last = own_entries(indices, start, stop, low, high)
            # One call in a loop for both cases: all entries of a row that rises, else its own ones one by one.
            k, end, length = (first, last, last - first) if first >= 0 else (np.int64(start), np.int64(stop), 1)
            while k < end:
                if first >= 0 or low <= indices[k] < high:
                    operands = (k + length, *stepped, indices, rows.data, slope, place, settings, at)
                    emit_row(entries, k, width, operands)
                k += length

    return inlined(step_own if is_parallel else step_all)


STARTS_AHEAD, ENTRIES_AHEAD, WEIGHTS_AHEAD = 16, 8, 2
"""Rows between asking for a row's start, its entries and its weights, and their use."""

LINE_ENTRIES = 16
"""Entries that share a line of memory, at most."""

ASKED = 32
"""Entries of a row that are asked for ahead, at most: then the processor reads ahead by itself, and more would drive
the weights from the nearest cache. With 300 entries in a row 5 % of the time; 128 of them gain 3 %."""

compiled = njit(nogil=True, error_model="numpy", fastmath={"contract", "nsz"}, _nrt=False)
"""References to arrays are not counted, as the call holds them: counting took half the time of a batch of one row."""


class Rows(NamedTuple):
    """The rows that are trained on: X in CSR form, its targets, what the loss of each counts for ([0]: all equally)."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    targets: np.ndarray
    counts: np.ndarray


class Trained(NamedTuple):
    """Weights [D, N] and states, what a batch's own columns are stepped in (these, or a gradient), the intercept [N]
    (zeros where there is none) and as tables [N, 1], [0, 1] for none, the settings of each step for either, of the last
    one for all that follow, and what else the way of the epoch takes, of so many units (`kernels.epochs.touched`)."""

    arrays: tuple
    stepped: tuple
    added: np.ndarray
    intercept: tuple
    settings: np.ndarray
    settings_intercept: np.ndarray
    update_arrays: tuple
    units: int


class Scratch(NamedTuple):
    """Memory of some rows of a batch: scores and targets of a block of them, the gradient of the scores [R, N]."""

    scores: np.ndarray
    targets: np.ndarray
    slope: np.ndarray


class Alone(NamedTuple):
    """On one thread: sums [U, N] of a batch's gradient, how columns are found, those touched, and their number [1]."""

    hashing: Hashing
    touched: Touched
    sums: np.ndarray
    counts: np.ndarray


@inlined
def alone_of(parts):
    """Return an `Alone` built from the nested tuple of its fields, inside compiled code."""
    return Alone(Hashing(*parts[0]), Touched(*parts[1]), parts[2], parts[3])


def bare(value: tuple) -> tuple:
    """Return a tuple and all tuples in it as plain ones: of named tuples Numba infers the types slowly in each call."""
    plain = list(value)
    for place, part in enumerate(plain):
        plain[place] = bare(part) if isinstance(part, tuple) else part
    return tuple(plain)


def named(function: Callable, *parts: object) -> Callable:
    """Set a unique `__qualname__` on `function`, from its name and a hash of `parts`, and return it.

    Each variant then has its own index file in the code cache on disk.
    """
    text = " ".join(map(str, parts))
    function.__qualname__ = f"epoch_{function.__name__}_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    return function


@inlined
def ask_for_entries(rows, order, place):
    """Prefetch row start, entries and target of rows that follow `place` in `order`.

    `STARTS_AHEAD` more rows must exist.
    """
    prefetch(rows.indptr, np.uint64(order[place + STARTS_AHEAD]))
    row = np.uint64(order[place + ENTRIES_AHEAD])
    start, stop = np.uint64(rows.indptr[row]), np.uint64(rows.indptr[row + np.uint64(1)])
    stop = min(stop, start + np.uint64(ASKED))
    for k in range(start, stop, np.uint64(LINE_ENTRIES)):
        prefetch(rows.indices, k)
        prefetch(rows.data, k)
    prefetch(rows.indices, stop - np.uint64(1))  # a row rarely begins at a line: it is on one more
    prefetch(rows.data, stop - np.uint64(1))
    prefetch(rows.targets, row * np.uint64(rows.targets.strides[0] // rows.targets.itemsize))


def make_look_ahead(programs: Programs) -> Callable:
    """Return compiled look_ahead(rows, order, place, arrays, is_far) -> None: prefetch later rows of the order.

    Fetched are their entries, weights and states; no value changes.
    """
    ask = programs.ask

    def look_ahead(rows, order, place, arrays, is_far):
        """Prefetch entries (if is_far[0]), weights and states (if is_far[1]) of rows shortly after `place` in `order`.

        `arrays` are weights and states. Nothing is read or written; near the end of `order` nothing happens.
        """
        if is_far[0] and place + STARTS_AHEAD < order.size:
            ask_for_entries(rows, order, place)
        if is_far[1] and place + WEIGHTS_AHEAD < order.size:
            row = np.uint64(order[place + WEIGHTS_AHEAD])
            stop = rows.indptr[row + np.uint64(1)]
            emit_row(ask, rows.indptr[row], arrays[0].shape[1], (stop, rows.indices, *arrays))

    return inlined(look_ahead)


def make_forward(programs: Programs, loss: str) -> Callable:
    """Return compiled forward(rows, order, first, last, ..): scores, losses and gradients of rows order[first:last].

    It writes scores and their gradient to the operand `scratch` and returns (sum of losses, position of an invalid
    target in `order` or -1). `loss` is the name of a loss kernel.
    """
    score, losses, look_ahead = programs.score, make_losses(loss), make_look_ahead(programs)

    def forward(rows, order, first, last, share, arrays, added, is_far, scratch):
        """Write scores and gradients of rows order[first:last] to `scratch`.

        Return (sum of losses, invalid target or -1). `rows` is a `Rows`, `arrays` weights and states, `added` [N] the
        intercept, `is_far` (prefetch entries, prefetch weights). The gradient, scratch.slope [last - first, N], is
        multiplied by `share` (1 / rows of the batch) and by `rows.counts`. An invalid target is given as its position
        in `order`; the pass ends there.
        """
        (scores, targets, slopes), weights, total = scratch, arrays[0], 0.0
        for begin in range(first, last, scores.shape[0]):
            end = min(begin + scores.shape[0], last)
            for place in range(begin, end):
                look_ahead(rows, order, place, arrays, is_far)
                row = np.uint64(order[place])
                operands = (row, rows.indptr, rows.indices, rows.data, weights, added, scores)
                emit_row(score, place - begin, weights.shape[1], operands)
                take_target(targets, place - begin, rows.targets, row)
            slope = slopes[begin - first : end - first]
            part, wrong = losses(scores[: end - begin], targets[: end - begin], slope, share)
            if wrong >= 0:
                return total, begin + wrong
            total += part
            if rows.counts.size:
                multiply_by_counts(slope, rows.counts, order[begin:end])
        return total, -1

    return inlined(forward)


FEW_SCORES = 8
"""Scores below which each has its loss by itself: a block takes memory for its losses, which costs 25 ns."""


def make_losses(loss: str) -> Callable:
    """Return a compiled function of `loss`: (scores [r, N], targets, slope [r, N], share) -> (sum of losses, wrong).

    `wrong` is the row of an invalid target or -1.
    """
    block, element = block_of(loss), element_of(loss)
    if element is None:
        return block

    def losses(scores, targets, slope, share):
        """Overwrite `slope` by the gradient of the scores [r, N] times `share`; return (sum of losses, -1)."""
        if scores.size >= FEW_SCORES:
            return block(scores, targets, slope, share)
        total, one = 0.0, scores.dtype.type(1)
        for q in range(scores.shape[0]):
            for n in range(scores.shape[1]):
                target = targets[q] if targets.ndim == 1 else targets[q, n]
                part, change = element(scores[q, n], target, one)
                slope[q, n] = change * share
                total += part
        return total, -1

    return inlined(losses)


@inlined
def take_target(out, q, targets, row):
    """Copy targets[row], a scalar or a row, to out[q] in place."""
    if targets.ndim == 1:
        out[q] = targets[row]
    else:
        for n in range(targets.shape[1]):
            out[q, n] = targets[row, n]


@inlined
def multiply_by_counts(slope, counts, order):
    """Multiply row i of `slope` [rows, N], the gradient of the scores, by counts[order[i]], in place."""
    for place in range(order.size):
        for n in range(slope.shape[1]):
            slope[place, n] *= counts[order[place]]


def make_gather(programs: Programs) -> Callable:
    """Return compiled gather(rows, order, first, last, slope, ..): sum a batch's weight gradient by active column.

    It fills the operand `sums` [U, N] and the hash table of columns, and returns their count U.
    """
    begin, add = programs.begin, programs.add

    def gather(rows, order, first, last, slope, hashing, touched, sums):
        """Add up data[k] * slope[i] by column over rows order[first:last]; return the count of active columns.

        Fills sums[u] [N] and `touched` (column of each u, hash slots), which must be empty before.
        """
        width, count = slope.shape[1], 0
        for place in range(first, last):
            row = np.uint64(order[place])
            for k in range(np.uint64(rows.indptr[row]), np.uint64(rows.indptr[row + np.uint64(1)])):
                column = rows.indices[k]
                number, at = find(touched, hashing, column)
                if number < 0:
                    put(touched, column, at, count)
                    emit_row(begin, count, width, (rows.data[k], slope, place - first, sums))
                    count += 1
                else:
                    emit_row(add, number, width, (rows.data[k], slope, place - first, sums))
        return count

    return inlined(gather)


@inlined
def sum_columns(slope, out):
    """Write the column sums of `slope` [R, N], the gradient of the scores, to out [N, 1]; nothing if `out` is empty."""
    for n in range(out.shape[0]):
        out[n, 0] = 0
    for q in range(slope.shape[0]):
        for n in range(slope.shape[1]):
            out[n, 0] += slope[q, n]


def make_step_intercept(steps: str) -> Callable:
    """Return compiled step_intercept(trained, numbers, sums, step) -> None: update the intercept in place.

    `steps` is the name of its vector code; `sums` [N, 1] is its gradient.
    """

    def step_intercept(trained, numbers, sums, step):
        """Update intercept and its states in place by the gradient `sums` [N, 1], with the settings of step `step`.

        `numbers` is arange(N). After the last row of the settings table that row is used again.
        """
        count, at = trained.intercept[0].shape[0], min(step, trained.settings_intercept.shape[0] - 1)
        operands = (numbers, numbers, sums, trained.settings_intercept, at)
        emit_row(steps, 0, 1, (count, *trained.intercept, *operands))

    return inlined(step_intercept)


def make_whole(programs: Programs, loss: str, sums: str) -> tuple[Callable, Callable, Callable]:
    """Return compiled functions for one thread: (pass over a batch, update of its columns, constructor of the memory).

    The pass returns (sum of losses, invalid target or -1), the update steps weights and states in place, the
    constructor turns a tuple into the memory that both share. `sums` names the method of summing the gradient:
    "dense_table", "hash_sort", "in_place", "dense_list", else a hash table.
    """
    forward, gather, steps = make_forward(programs, loss), make_gather(programs), programs.steps
    if sums == "dense_table":
        return (
            dense_table.make_pass(programs, forward),
            dense_table.make_step(programs, is_parallel=False),
            dense_table.dense_table_of,
        )
    if sums == "hash_sort":
        return touched.make_pass(forward), touched.make_step(programs), touched.hash_sort_of

    if sums == "in_place":
        return touched.make_pass(forward), make_step(programs, is_parallel=False), in_place_of
    if sums == "dense_list":
        return dense_list.make_pass(programs, forward), dense_list.make_step(programs), dense_list.dense_list_of

    def one_pass(part, rows, order, first, last, share, arrays, added, is_far, scratch, store):
        """Fill scores, gradients and column sums of a batch.

        Return (sum of losses, invalid target or -1). The batch is order[first:last]; rows, share, arrays, added, is_far
        and scratch are as in `make_forward`. `store` is an `Alone`, changed in place; the invalid target is a position
        in `order`; `part` is unused.
        """
        total, wrong = forward(rows, order, first, last, share, arrays, added, is_far, scratch)
        if wrong < 0:
            store.counts[0] = gather(rows, order, first, last, scratch.slope, store.hashing, store.touched, store.sums)
        return total, wrong

    def step(owner, parts, stepped, settings, at, store, batch):
        """Update rows of weights and states of the active columns in place by their sums; empty the hash table.

        `settings` [steps, K] is read at row `at`; `store` is an `Alone`; `owner`, `parts` and `batch` are unused.
        """
        columns = store.touched.columns
        operands = (store.counts[0], *stepped, columns, columns, store.sums, settings, at)
        emit_row(steps, 0, store.sums.shape[1], operands)
        forget(store.touched, store.counts[0])

    return inlined(one_pass), inlined(step), alone_of


@functools.cache
def make_serial(programs: Programs, loss: str, sums: str) -> Callable:
    """Return the compiled training loop on one thread, for a loss and a method `sums` of summing gradients; cached.

    `sums` is a method of `kernels.epochs.calls`. The loop takes its operands as plain tuples (`bare`), with the scratch
    memory that `sums` needs as `bare_store`.
    """
    one_pass, step_touched, store_of = make_whole(programs, loss, sums)
    step_intercept = make_step_intercept(programs.steps_intercept)
    before, after = make_before(programs), make_after(programs)
    misses, steps_all = touched.catches_up(programs.way), touched.is_dense(programs.way)

    def serial(bare_rows, order, cut, bare_trained, is_far, scratch, bare_store, intercept, losses, begin):
        """Train on batches `begin` and later of `order` in place; return the position of an invalid target or -1.

        `cut` is that of `span_of`. bare_rows, bare_trained and bare_store are a `Rows`, a `Trained` and the memory
        of the method of summing, as tuples; `scratch` is (scores, targets, slopes), `is_far` (prefetch entries,
        prefetch weights). Writes the mean loss of each batch to `losses` [batches]; batches before an invalid target
        have been applied. `intercept` is (arange(N), its gradient [N, 1]), the latter [0, 1] without an intercept.
        """
        rows, trained, store = Rows(*bare_rows), Trained(*bare_trained), store_of(bare_store)
        (numbers, sums_intercept), (scores, targets, slopes) = intercept, scratch
        arrays, added, settings = trained.arrays, trained.added, trained.settings
        whole = added.dtype.type(1 / cut[0])
        for step in range(begin, losses.size):
            (first, last), at = span_of(step, cut, order.size), min(step, settings.shape[0] - 1)
            share = whole if last - first == cut[0] else added.dtype.type(1 / (last - first))
            slope = slopes[: last - first]
            own = Scratch(scores, targets, slope)
            if misses:
                before(0, 1, ALL, rows, order[first:last], arrays, trained.update_arrays, step)
            total, wrong = one_pass(0, rows, order, first, last, share, arrays, added, is_far, own, store)
            if wrong >= 0:
                return wrong
            losses[step] = total / (last - first)
            step_touched(0, 1, trained.stepped, settings, at, store, (rows, order[first:last], slope))
            if steps_all:
                after(0, 1, trained.update_arrays, trained.units, added.size, settings, at)
            if sums_intercept.size:
                sum_columns(slope, sums_intercept)
                step_intercept(trained, numbers, sums_intercept, step)
        return -1

    return compiled(named(serial, programs, loss, sums))


def make_score_one(programs: Programs, loss: str) -> Callable:
    """Return compiled score_one(rows, row, targets, ..) -> (loss, -1 or 0 for an invalid target).

    It writes score and gradient of a row of X to the operand `scratch`. `loss` is the name of a loss kernel.
    """
    score, block, element = programs.score, block_of(loss), element_of(loss)

    def score_one(rows, row, targets, weights, added, scratch):
        """Write scores and their gradient [1, N] of row `row` to `scratch`; return (loss, -1 or 0, as of a block)."""
        (scores, taken, slope), total, wrong, one = scratch, 0.0, -1, added.dtype.type(1)
        emit_row(score, 0, weights.shape[1], (row, rows.indptr, rows.indices, rows.data, weights, added, scores))
        if element is None:
            take_target(taken, 0, targets, row)
            total, wrong = block(scores, taken, slope, one)
        else:
            for n in range(scores.shape[1]):
                target = targets[row] if targets.ndim == 1 else targets[row, n]
                part, slope[0, n] = element(scores[0, n], target, one)
                total += part
        if rows.counts.size:
            for n in range(slope.shape[1]):
                slope[0, n] *= rows.counts[row]
        return total, wrong

    return inlined(score_one)


@functools.cache
def make_single(programs: Programs, loss: str, is_in_place: bool) -> Callable:
    """Return the compiled training loop on one thread for batches of one row, whose gradient is not stored; cached.

    A row's entries step the weights at once: their columns differ, or `is_in_place` (see `suits`) says that this is
    equal. The operands are those of the loop of `make_serial`.
    """
    score_one, step_intercept = make_score_one(programs, loss), make_step_intercept(programs.steps_intercept)
    look_ahead, before, after = make_look_ahead(programs), make_before(programs), make_after(programs)
    misses, steps_all = touched.catches_up(programs.way), touched.is_dense(programs.way)
    entries = programs.entries_at if is_in_place else programs.entries

    def single(bare_rows, order, bare_trained, is_far, scratch, intercept, losses):
        """Train on one row after the other in place; return (steps done, position of an invalid target or -1).

        Ends before a row whose columns do not ascend strictly, unless `is_in_place`. Operands are as in `serial`, the
        scratch memory for one row.
        """
        rows, trained, own = Rows(*bare_rows), Trained(*bare_trained), Scratch(*scratch)
        (numbers, sums_intercept), slope = intercept, own.slope
        arrays, added, settings = trained.arrays, trained.added, trained.settings
        for step in range(losses.size):
            row, at = np.uint64(order[step]), min(step, settings.shape[0] - 1)
            start, stop = np.int64(rows.indptr[row]), np.int64(rows.indptr[row + np.uint64(1)])
            if not (is_in_place or are_rising(rows.indices, start, stop)):
                return step, -1
            if misses:
                before(0, 1, ALL, rows, order[step : step + 1], arrays, trained.update_arrays, step)
            look_ahead(rows, order, step, arrays, is_far)
            losses[step], wrong = score_one(rows, row, rows.targets, arrays[0], added, own)
            if wrong >= 0:
                return step, step
            operands = rows.indices, rows.data, slope
            if is_in_place:
                emit_row(entries, start, added.size, (stop, *trained.stepped, *operands, 0, settings, at))
            else:
                emit_row(entries, start, added.size, (stop, *trained.stepped, *operands, settings, at))
            if steps_all:
                after(0, 1, trained.update_arrays, trained.units, added.size, settings, at)
            if sums_intercept.size:
                sum_columns(slope, sums_intercept)
                step_intercept(trained, numbers, sums_intercept, step)
        return losses.size, -1

    return compiled(named(single, programs, loss, is_in_place))
