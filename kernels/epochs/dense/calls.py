"""State of a call of a dense epoch's kernel, its scratch memory, and the choice of the loop for it."""

from dataclasses import dataclass

import numpy as np

from kernels import aligned
from kernels.epochs.calls import check_batches, given_settings, intercept_tables
from kernels.epochs.dense import loops, stripes
from kernels.epochs.dense.programs import Programs, programs_for
from kernels.epochs.dense.sources import SOURCES
from kernels.epochs.loops import bare
from kernels.loss_blocks import wrong_label
from kernels.rules.rule import Rule
from kernels.threads import BLOCK, call_in_pieces, get_threads, is_serial
from kernels.vector.tiles import cache_bytes

LEAST_ROWS = 32
"""Rows of a block at least: fewer sums are in flight, and the sums of a batch come and go more often."""

ROWS_AN_OUTPUT = 8
"""Rows of a block for each output at least: a block reads and writes the sums of all, as many bytes as so few rows."""

LEAST_SHARED = 16
"""Rows of a batch that is shared by threads, at least."""

PARTS = 8
"""Parts of a batch at most."""


def split(held: str, args: tuple) -> tuple[tuple, tuple]:
    """Split the operands into (the arrays of X in the form `held`, all others)."""
    count = len(SOURCES[held].operands.split())
    return args[:count], args[count:]


@dataclass(frozen=True)
class Call:
    """The operands of a call, by their parts: see `kernels.epochs.dense.epoch`."""

    x: tuple[np.ndarray, ...]
    targets: np.ndarray
    counts: np.ndarray
    order: np.ndarray
    batch_rows: int
    arrays: tuple[np.ndarray, ...]
    """Weights and states."""
    intercept: tuple[np.ndarray, ...]
    """The intercept and its states, of no elements if there is none."""
    settings: np.ndarray
    settings_intercept: np.ndarray

    @classmethod
    def of(cls, rule: Rule, held: str, args: tuple) -> "Call":
        """Return the call of a kernel's arguments; KernelError if lengths do not agree."""
        x, (targets, counts, order, batch_rows, *others) = split(held, args)
        count = len(rule.written)
        arrays, intercept = tuple(others[:count]), tuple(others[count : 2 * count])
        call = cls(x, targets, counts, order, batch_rows, arrays, intercept, *others[2 * count :])
        tables = {"settings": call.settings, "settings_intercept": call.settings_intercept}
        numbers = len(rule.settings(*rule.example))
        check_batches(targets.shape[0], arrays[0].shape[1], counts, intercept[0], tables, numbers, batch_rows)
        return call


def run(loss: str, rule: Rule, held: str, call: Call) -> np.ndarray:
    """Train on all batches of a call in place; return the mean loss of each batch, float64 [batches]."""
    losses = np.zeros(-(-call.order.size // call.batch_rows))
    if call.order.size:
        wrong = _loop(loss, rule, held, call, losses)
        if wrong >= 0:
            row = call.order[wrong]
            raise wrong_label(row, call.targets[row], call.arrays[0].shape[1])
    return losses


def _loop(loss: str, rule: Rule, held: str, call: Call, losses: np.ndarray) -> int:
    """Run the compiled loop: trains in place and fills `losses`; return the position of an invalid target, or -1."""
    weights, (settings, settings_intercept) = call.arrays[0], given_settings(call.settings, call.settings_intercept)
    columns, width = weights.shape
    batch_rows = min(call.batch_rows, call.order.size)
    parts = _parts(batch_rows, columns, width)
    programs = programs_for(rule.name, width, weights.itemsize, settings.shape[1], is_far(held, call.x))
    arrays = _in_layout(programs, call.arrays)
    is_striped = stripes.suits(batch_rows, columns, width, weights.itemsize)
    if is_striped:
        block_rows = stripes.rows_of_block(batch_rows, columns, weights.itemsize, programs.rows)
    else:
        block_rows = _block_rows(batch_rows, columns, width, weights.itemsize, parts)
    needs_sums = not is_striped and (bool(programs.by_row) or block_rows < batch_rows)
    gradient = aligned.zeros(arrays[0].shape if needs_sums else (0, arrays[0].shape[1]), weights.dtype)
    has_intercept = call.intercept[0].size > 0
    added = call.intercept[0] if has_intercept else np.zeros(width, weights.dtype)
    tables = intercept_tables(call.intercept, call.arrays[-1].ndim == 1)
    trained = loops.Trained(arrays, gradient, added, tables, settings, settings_intercept)
    targets = call.targets.reshape(-1) if width == 1 else call.targets
    rows_held = block_rows * parts if is_striped else block_rows
    scratch = _scratch(targets, rows_held, weights, parts, has_intercept)
    source = SOURCES[held].prepare(call.x, call.order, columns, rows_held, weights.dtype)
    make_loop = stripes.make_loop if is_striped else loops.make_loop
    loop = make_loop(programs, loss, held, is_parallel=parts > 1)
    sizes = batch_rows, block_rows, parts
    shared: tuple = source, call.order, *sizes, (targets, call.counts), bare(trained), bare(scratch), losses
    if is_striped:
        shared += (bare(stripes.store_for(arrays[0].shape, width, weights.dtype, has_intercept)),)
    if parts == 1:
        wrong = loop(*shared, (0, losses.size))
    else:
        work = _work(batch_rows, columns, width)
        wrong = call_in_pieces(lambda first, last: loop(*shared, (first, last)), losses.size, work, loop)
    if programs.is_narrow and width > 1:
        for array, own in zip(call.arrays, arrays, strict=True):
            array[...] = own.T
    return wrong


def _in_layout(programs: Programs, arrays: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Return weights and states in the programs' layout: narrow ones transposed to [N, D], a copy unless N is 1."""
    if not programs.is_narrow:
        return arrays
    is_one = arrays[0].shape[1] == 1
    return tuple(array.reshape(1, -1) if is_one else aligned.copy(array.T, array.dtype) for array in arrays)


def is_far(held: str, x: tuple[np.ndarray, ...]) -> bool:
    """Return whether rows are read in place and exceed a core's cache, so that they are prefetched."""
    return held == "dense" and x[0].nbytes > cache_bytes(2)


def _parts(batch_rows: int, columns: int, width: int) -> int:
    """Return the count of threads for a batch: 1 if it has too little work."""
    is_alone = batch_rows < LEAST_SHARED or is_serial(_work(batch_rows, columns, width), within=True)
    return 1 if is_alone else min(get_threads(), PARTS)


def _work(batch_rows: int, columns: int, width: int) -> int:
    """Return the work of a batch in multiply-adds, as `threads.is_serial` counts it."""
    return batch_rows * columns * (width + 4) // 4


def _block_rows(batch_rows: int, columns: int, width: int, itemsize: int, parts: int) -> int:
    """Return the number of rows of a block: as many as fill half of the caches, within limits."""
    fitting = parts * cache_bytes(2) // 2 // max(columns * itemsize, 1)
    return min(max(fitting, LEAST_ROWS, ROWS_AN_OUTPUT * width), batch_rows)


def _scratch(
    targets: np.ndarray, block_rows: int, weights: np.ndarray, parts: int, has_intercept: bool
) -> loops.Scratch:
    """Allocate scores, gradients and partial sums for blocks of `block_rows` rows on `parts` threads."""
    width, dtype = weights.shape[1], weights.dtype
    at_once = min(max(BLOCK // width // 8 * 8, 8), block_rows)
    scores, slopes = aligned.empty((parts, at_once, width), dtype), aligned.empty((block_rows, width), dtype)
    taken = np.empty((parts, at_once, *targets.shape[1:]), targets.dtype)
    of_intercept = np.arange(width), aligned.empty((width if has_intercept else 0, 1), dtype)
    return loops.Scratch(scores, taken, slopes, np.zeros(parts), np.full(parts, -1), *of_intercept)
