"""State of a call of an epoch's kernel, its scratch memory, and the choice of the loop for it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from kernels import aligned
from kernels.contract import KernelError
from kernels.epochs import loops, placed, scattered, touched, ways
from kernels.epochs.loops import bare, make_serial
from kernels.epochs.parallel import PARTS, Listed, make_parallel
from kernels.epochs.programs import programs_for
from kernels.epochs.touched import Touched, hashing_for
from kernels.loss_blocks import wrong_label
from kernels.rules import steps
from kernels.rules.rule import Rule
from kernels.threads import BLOCK, call_in_pieces, compiled, get_threads, is_serial
from kernels.vector.tiles import cache_bytes, is_far_state

FEW_COLUMNS = 1024
"""Columns below which neighbours may have two owners: they are stepped seldom beside what is summed for them."""

ENTRY_WORK = 16
"""What taking up an entry costs, in both passes over it, beside its columns, in the measure of `threads.is_serial`."""

LONG = 128
"""Mean entries of a row from which on entries are not asked for: the processor reads ahead by itself in time, and rows
to come would drive the weights from the nearest cache. 10 % of the time with 2,458 entries a row."""

DIRECT_SHARE = 4
"""Share of a core's cache from which on weights are stepped at once by several threads, not summed for each before."""

REGIONS = 8
"""What a batch on several threads pays for, in entries of regions: its two passes, and looking for the columns of each
part in the tables of the others. 1,024 rows of 14 entries are then work for two threads, 512 are not, with N = 1."""


def check_batches(
    rows: int,
    width: int,
    counts: np.ndarray,
    intercept: np.ndarray,
    tables: Mapping[str, np.ndarray],
    numbers: int,
    batch_rows: int,
) -> None:
    """Raise `KernelError` for lengths that do not fit `rows` of X, `width` outputs and a rule of `numbers` settings."""
    if counts.size not in (0, rows):
        raise KernelError(f"counts has {counts.size} numbers; it has one for each of {rows} rows, or none.")
    if intercept.size not in (0, width):
        raise KernelError(f"intercept has {intercept.size} numbers; it has {width}, or none.")
    for name, table in tables.items():
        if not len(table) or table.shape[1] != numbers:
            raise KernelError(f"{name} is {list(table.shape)}; it has {numbers} numbers for one step or more.")
    if batch_rows < 1:
        raise KernelError(f"batch_rows is {batch_rows}; a batch has one row or more.")


def intercept_tables(intercept: tuple[np.ndarray, ...], by_row: bool) -> tuple[np.ndarray, ...]:
    """Return the intercept and its states reshaped: weights [N, 1], states [N] if `by_row`, else [N, 1]."""
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
    arrays: tuple[np.ndarray, ...]
    """Weights and states."""
    intercept: tuple[np.ndarray, ...]
    """The intercept and its states, of no elements where there is none."""
    settings: np.ndarray
    settings_intercept: np.ndarray
    way: str
    beside: tuple
    """What the way of the epoch takes: a gradient [D, N] of zeros, or the parts of a `ways.Lag`."""

    @classmethod
    def of(cls, rule: Rule, way: str, args: tuple) -> "Call":
        """Return the call of a kernel's arguments; KernelError if lengths do not agree."""
        count = len(rule.written)
        indptr, indices, data, targets, counts, order, batch_rows, *others = args
        arrays, intercept = tuple(others[:count]), tuple(others[count : 2 * count])
        x = indptr, indices, data
        settings, of_intercept, *beside = others[2 * count :]
        batches = targets, counts, order, batch_rows
        call = cls(*x, *batches, arrays, intercept, settings, of_intercept, way, tuple(beside))
        call.check(len(rule.settings(*rule.example)))
        return call

    def check(self, numbers: int) -> None:
        """Refuse lengths that do not fit; `numbers` is how many settings the rule's formula takes."""
        rows, width = self.indptr.size - 1, self.arrays[0].shape[1]
        tables = {"settings": self.settings, "settings_intercept": self.settings_intercept}
        check_batches(rows, width, self.counts, self.intercept[0], tables, numbers, self.batch_rows)
        if ways.catches_up(self.way):
            self._check_lag(ways.Lag(*self.beside), numbers)

    def _check_lag(self, lag: ways.Lag, numbers: int) -> None:
        """Refuse steps without settings: batches ask for those of all steps before their own."""
        is_tree = self.way in ("coast", "coast_pair")
        width, steps = (4, len(lag.missed) // 2) if is_tree else (numbers, len(lag.missed))
        asked = lag.now + self.batches - 1 - lag.first
        if lag.missed.shape[1] != width or asked > steps or lag.first > lag.now:
            raise KernelError(
                f"missed is {list(lag.missed.shape)}, for steps from {lag.first} on; batches from step {lag.now} on "
                f"ask for {asked} steps of {width} numbers."
            )

    @property
    def has_intercept(self) -> bool:
        """Whether scores have an intercept, which is trained."""
        return self.intercept[0].size > 0

    @property
    def tables(self) -> tuple[np.ndarray, ...]:
        """The intercept and its states as weights [N, 1] and states of N rows."""
        return intercept_tables(self.intercept, by_row=self.arrays[-1].ndim == 1)

    @property
    def batches(self) -> int:
        """Number of batches."""
        return -(-self.order.size // self.batch_rows)


@compiled
def _largest_batch(indptr, order, batch_rows):
    """Return the largest count of stored entries in any batch of `batch_rows` rows, taken in `order`."""
    most = entries = 0
    for place in range(order.size):
        if place % batch_rows == 0:
            entries = 0
        row = np.uint64(order[place])
        entries += indptr[row + np.uint64(1)] - indptr[row]
        most = max(most, entries)
    return most


def run(loss: str, rule: Rule, call: Call) -> np.ndarray:
    """Train on all batches of a call in place; return the mean loss of each batch, float64 [batches]."""
    losses = np.zeros(call.batches)
    if call.order.size:
        wrong = _loop(loss, rule, call, losses)
        if wrong >= 0:
            row = call.order[wrong]
            raise wrong_label(row, call.targets[row], call.arrays[0].shape[1])
    return losses


def _loop(loss: str, rule: Rule, call: Call, losses: np.ndarray) -> int:
    """Run the loop that suits the work of a batch; the place of a wrong target or -1."""
    weights, settings = call.arrays[0], given_settings(call.settings, call.settings_intercept)
    is_direct = _is_direct(rule, call, settings[0])
    if is_direct:  # rows that a batch does not touch would not change
        call = replace(call, way="lazy", beside=())
    stepped, beside, units, work_untouched = _untouched(rule, call)
    width, batch_rows = weights.shape[1], min(call.batch_rows, call.order.size)
    entries = call.indices.size * batch_rows // max(call.indptr.size - 1, 1)
    work = entries * (ENTRY_WORK + width) // REGIONS + work_untouched
    parts = 1 if is_serial(work, within=True) else min(get_threads(), PARTS)
    added = call.intercept[0] if call.has_intercept else np.zeros(width, weights.dtype)
    trained = loops.Trained(call.arrays, stepped, added, call.tables, *settings, beside, units)
    is_far = is_far_state(sum(array.nbytes for array in call.arrays), width * weights.itemsize)
    programs = programs_for(rule.name, width, weights.itemsize, settings[0].shape[1], call.way, is_far)
    rows, sums = _rows(call, width), _sums(call, entries, parts, is_direct)
    of_intercept = np.arange(width), aligned.empty((width if call.has_intercept else 0, 1), weights.dtype)
    store = _store(sums, call, batch_rows, parts)
    scratch = _scratch(rows, batch_rows, weights, parts)
    shared = bare(rows), call.order, batch_rows, bare(trained), _is_far(call)
    if parts == 1:
        own = scratch.scores[0], scratch.targets[0], scratch.slope
        alone = _alone(store) if isinstance(store, Listed) else store
        return make_serial(programs, loss, sums)(*shared, own, bare(alone), of_intercept, losses)
    told = np.zeros(parts), np.zeros(parts, np.int64)
    loop = make_parallel(programs, loss, sums)
    held = *shared, (bare(scratch), bare(store)), of_intercept, losses, np.uint64(_group(weights)), told
    return call_in_pieces(lambda first, last: loop(*held, (first, last)), losses.size, work, loop)


def _is_direct(rule: Rule, call: Call, settings: np.ndarray) -> bool:
    """Whether entries step the weights at once; `settings` as code takes them."""
    is_unchanged = settings.shape[1] < call.settings.shape[1]
    return not ways.catches_up(call.way) and loops.suits(rule, call.settings, is_unchanged)


def _sums(call: Call, entries: int, parts: int, is_direct: bool = False) -> str:
    """Way to sum the gradient of batches of so many entries; `is_direct`: it need not be summed.

    Measured on two cores of an EPYC 9004 with SGD, N = 64, direct / placed / grouped: 32 rows of 820 columns, 16,384 in
    all, 760 / 1,200 / 1,310 us a batch; 32 of 51 of 1,024: 14 / 24 / 32; 4,096 of 51 of 1,024: 1,300 / 1,240 / 2,850;
    4,096 of 154 of 256: 5,500 / 4,400 / 9,800.
    """
    weights = call.arrays[0]
    is_placed = placed.suits(entries, *weights.shape)
    if is_direct and (parts == 1 or not is_placed or weights.nbytes > cache_bytes(2) // DIRECT_SHARE):
        return "direct"
    if parts == 1 and scattered.suits(entries, call.batches, weights):
        return "scattered"
    if is_placed:
        return "placed"
    return "grouped" if touched.suits(weights.shape[1], weights.itemsize) else "listed"


def _store(sums: str, call: Call, batch_rows: int, parts: int) -> NamedTuple:
    """Allocate the scratch memory for a way of summing the gradient, and return it as its named tuple."""
    weights = call.arrays[0]
    if sums == "placed":
        return placed.placed_for(parts, weights)
    if sums == "direct":
        return loops.direct_for(parts, call.indices, weights)
    most = _largest_batch(call.indptr, call.order, batch_rows)
    if sums == "grouped":
        return touched.grouped_for(parts, most, weights, _group(weights))
    if sums == "scattered":
        return scattered.scattered_for(most, weights)
    return _listed(weights, most, parts)


def _untouched(rule: Rule, call: Call) -> tuple[tuple, tuple, int, int]:
    """Return (arrays the active rows are stepped in, arrays for the other rows, rows to step, work a batch) of a
    strategy.
    """
    if ways.catches_up(call.way):
        return call.arrays, call.beside, 0, 0
    if not ways.is_dense(call.way):
        return call.arrays, (), 0, 0
    whole = *call.arrays, *call.beside
    units, width = call.arrays[0].shape
    if not rule.average:
        whole = tuple(array.reshape(-1) for array in whole)
        units, width = -(-whole[0].size // steps.CHUNK), steps.CHUNK
    return call.beside, whole, units, rule.work(units, width)


def given_settings(settings: np.ndarray, settings_intercept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both tables of settings [S, K] as compiled code takes them: without the last two columns, rescale and
    clip, if all of these are `steps.UNCHANGED`."""
    tables = settings, settings_intercept
    if all(map(_is_unchanged, tables)):
        return np.ascontiguousarray(tables[0][:, :-2]), np.ascontiguousarray(tables[1][:, :-2])
    return tables


def _is_unchanged(table: np.ndarray) -> bool:
    """Return whether rescale and clip of a settings table leave every gradient unchanged."""
    if len(table) == 1:
        return tuple(table[0, -2:].tolist()) == steps.UNCHANGED
    return bool((table[:, -2:] == steps.UNCHANGED).all())


def _is_far(call: Call) -> tuple[bool, bool]:
    """Whether entries of X come from beyond a core's cache, and whether weights and states do."""
    bytes_state, rows = sum(array.nbytes for array in call.arrays), max(call.indptr.size - 1, 1)
    is_far = call.indices.nbytes + call.data.nbytes > cache_bytes(2) and call.indices.size < LONG * rows
    return is_far, bytes_state > cache_bytes(2)


def _rows(call: Call, width: int) -> loops.Rows:
    """Return the CSR rows and targets of a call; targets of one output as a 1-d array."""
    targets = call.targets.reshape(-1) if width == 1 else call.targets
    return loops.Rows(call.indptr, call.indices, call.data, targets, call.counts)


def _scratch(rows: loops.Rows, batch_rows: int, weights: np.ndarray, parts: int) -> loops.Scratch:
    """Allocate scores, gradients and partial sums for batches of `batch_rows` rows on `parts` threads."""
    width, dtype = weights.shape[1], weights.dtype
    at_once = min(max(BLOCK // width, 1), batch_rows)
    scores, slope = aligned.empty((parts, at_once, width), dtype), placed.table(batch_rows, width, dtype)
    targets = np.empty((parts, at_once, *rows.targets.shape[1:]), rows.targets.dtype)
    return loops.Scratch(scores, targets, slope)


def _listed(weights: np.ndarray, entries: int, parts: int) -> Listed:
    """Allocate memory for the active columns of each of `parts` parts, at most `entries` a part."""
    columns, width = weights.shape
    most = max(min(entries, columns), 1)
    hashing, places = hashing_for(columns, most)
    slots = np.full((parts, places), -1, np.int32)
    stacked = Touched(slots, np.empty((parts, most), np.int64), np.empty((parts, most), np.int64))
    owned, starts = np.empty((parts, most), np.int64), np.zeros((parts, parts + 2), np.int64)
    ends, group = np.zeros((parts, parts), np.int64), np.array([_group(weights)], np.uint64)
    sums = placed.table(parts * most, width, weights.dtype)
    return Listed(hashing, stacked, sums, np.zeros(parts, np.int64), owned, starts, ends, group)


def _alone(listed: Listed) -> loops.Alone:
    """Return the fields of `listed` that the loop on one thread uses."""
    touched = Touched(*(array[0] for array in listed.stacked))
    return loops.Alone(listed.hashing, touched, listed.sums, listed.counts)


def _group(weights: np.ndarray) -> int:
    """Return how many low bits of a column index are ignored to find its owner: columns of one cache line share one."""
    columns_a_line = max(aligned.LINE // (weights.itemsize * weights.shape[1]), 1)
    return (columns_a_line - 1).bit_length() if weights.shape[0] >= FEW_COLUMNS else 0
