"""Whole epochs on dense rows in one compiled call, for every loss of `kernels.losses` and rule of `kernels.rules`.

Per batch: scores X @ W + b, the gradient g of the scores, X.T @ g, and a step of all of W.

Arguments  x float32|float64 [T, D]; held csr: indptr int32|int64 [T+1] - row starts; indices same type [z]; data
           float32|float64 [z]; held uint8: x uint8 [T, D]; held float16: x uint16 [T, D], the bits of float16
           targets as the loss takes them, a row for each of T; counts same as weights [T], what the loss of each row
           counts for, or [0]; order int64 [M], the rows of the batches, one after the other, any number of times;
           batch_rows >= 1; epoch_rows >= 1, after so many rows a batch ends, which may have fewer; weights
           float32|float64 [D, N] and states as the rule has them; intercept same [N], or [0] for none, and its states
           [N]; settings same [S, K], what the rule's formula takes in each step, those after the last as the last;
           settings_intercept the same for the intercept
Writes     weights, intercept and the states of both; nothing else changes; returns the losses, float64 [batches]: each
           the mean over its rows before the step, in which all count equally
Assumes    N >= 1; of CSR duplicates are summed, columns may be unsorted; a target out of range is refused when the
           batches before it have had their steps
Cost       of a batch: 4*R*D*N flops, those of the loss and of D steps of the rule; reads R*D values of X as it is
           held, of csr z*(index+value) bytes, weights and states of D rows, and writes those
Parallel   within a batch, if it has work for several threads, over rows and then over columns; weights have the same
           bits on any number of threads, losses on every run with as many threads
Limits     T*D < 2**63, D*N < 2**63; besides the arguments memory grows with the rows of a block: slopes, of batches of
           several blocks D*N sums, unless held dense a table of them; up to 4 outputs weights and states once more
Source     the two products of a dense step as loops with sums in registers (Goto and van de Geijn 2008), on rows that
           are read in place, in blocks that fit a core's cache, with the step of the rule behind the second one

>>> from kernels.epochs import dense
>>> dense.get("logistic", "adagrad").name
'logistic_adagrad_dense_epoch'
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kernels import aligned
from kernels._compat.numba_internals import layer
from kernels.code_cache import inlined
from kernels.contract import Case, Cost, Kernel, KernelError, Sizes
from kernels.epochs import epoch as sparse_epoch
from kernels.epochs.calls import intercept_tables
from kernels.epochs.dense import loops
from kernels.epochs.dense.loops import (
    UNIT_NARROW,
    UNIT_WIDE,
    Labels,
    Programs,
    Scratch,
    Trained,
    add_columns,
    bounds_of,
    make_each,
    make_scores,
    programs_for,
)
from kernels.epochs.dense.sources import SOURCES
from kernels.epochs.loops import bare, compiled, given_settings, make_step_intercept, named
from kernels.epochs.touched import check_batches, count_batches, span_of
from kernels.loss_blocks import block_of, wrong_label
from kernels.registry import get as get_kernel
from kernels.registry import unknown_name
from kernels.rules.rule import Rule, get_rule
from kernels.threads import BLOCK, call_in_pieces, get_threads, is_serial
from kernels.vector.lanes import emit_row
from kernels.vector.tiles import cache_bytes

# The compiled loop of a dense epoch whose batches exceed the caches: rows in stripes, of a gradient each.
#
# A batch is cut into `STRIPES` stripes of rows, whatever the number of threads. The thread that has a stripe takes
# blocks of its rows, which fit the cache of its core, through scores, slopes and the stripe's gradient, so that X
# comes from memory once and to one core alone. Then each thread adds up the gradients of all stripes in their order
# for its part of the columns, and steps the weights there. Threads wait for each other twice a batch, not twice a
# block, and no sum depends on how many there are.

STRIPES = 8
"""Stripes of a batch: as many threads at most have work."""

ROWS_AN_OUTPUT_STRIPED = 128
"""Rows of a batch for each output at least: a stripe's gradient is written, added up and cleared, as many bytes as
`3 * STRIPES` rows of X for each output."""


class Store(NamedTuple):
    """What each stripe has of its own: `gradients` [STRIPES * rows of the weights, ...] in the layout of the weights,
    zero between batches; `losses` float64 [STRIPES], `wrong` int64 [STRIPES], the place of a wrong target or -1, and
    `sums` [STRIPES * N, 1] of the gradients of the scores, [0, 1] without an intercept."""

    gradients: np.ndarray
    losses: np.ndarray
    wrong: np.ndarray
    sums: np.ndarray


def suits(batch_rows: int, columns: int, width: int, itemsize: int) -> bool:
    """Return whether to process a batch in stripes: X [batch_rows, columns] exceeds the cache and has many rows.

    `width` is the number of outputs, `itemsize` the bytes of a value. The number of threads does not count, so that
    weights have the same bits on any number of them.
    """
    cache, row = cache_bytes(2), columns * itemsize
    return batch_rows >= ROWS_AN_OUTPUT_STRIPED * width and batch_rows * row > 2 * cache and row * width <= cache // 2


def rows_of_block(batch_rows: int, columns: int, itemsize: int, rows_at_once: int) -> int:
    """Return the rows of a block: as many as fit half of a core's cache, within limits.

    At least `rows_at_once`, at most the rows of a stripe of a batch of `batch_rows` rows; X has `columns` columns of
    `itemsize` bytes.
    """
    fitting = cache_bytes(2) // 2 // max(columns * itemsize, 1) // rows_at_once * rows_at_once
    return min(max(fitting, rows_at_once), -(-batch_rows // STRIPES) + rows_at_once)


def store_for(shape: tuple[int, int], width: int, dtype: np.dtype, has_intercept: bool) -> Store:
    """Allocate a `Store` for weights of `shape` in the programs' layout and `width` outputs: zeros, `wrong` -1.

    Each stripe has a gradient [shape], a loss, `wrong` (its invalid target) and, with an intercept, sums [width, 1].
    """
    return Store(
        np.zeros((STRIPES * shape[0], shape[1]), dtype),
        np.zeros(STRIPES),
        np.full(STRIPES, -1),
        np.zeros((STRIPES * width if has_intercept else 0, 1), dtype),
    )


def make_stripes(programs: Programs, loss: str, held: str) -> Callable:
    """Return compiled do_stripes(part, parts, ..) -> None: losses and gradients of one thread's stripes of a batch.

    It writes them, and positions of invalid targets, to the operand `store`. `held` is the storage of X, a key of
    `SOURCES`.
    """
    scores_of, adds, unit = make_scores(programs, loss, held), programs.adds, programs.rows
    is_narrow, (_, table_at, index_at, is_in_order) = programs.is_narrow, SOURCES[held].loop

    def do_stripes(part, parts, source, order, span, block_rows, bare_labels, share, bare_trained, memory, store):
        """Fill losses, wrong, gradients and intercept sums of `store` for the stripes of thread `part` of `parts`.

        `source` is what `Source.prepare` returns; the batch is order[span[0]:span[1]], done `block_rows` rows at a
        time; bare_labels and bare_trained are a `Labels` and a `Trained` as tuples, `share` is 1 / rows of the batch.
        Gradients are added to, and must be zero before; wrong[stripe] is the position of an invalid target in `order`,
        or -1. Scratch `memory` is overwritten.
        """
        trained, scratch, labels = Trained(*bare_trained), Scratch(*memory), Labels(*bare_labels)
        gradients, losses, wrong, sums = store
        x, index, stripes = source[table_at], source[index_at], losses.size
        columns, width, rows_each = x.shape[1], trained.arrays[0].shape[1], gradients.shape[0] // stripes
        base, own = part * block_rows, (scratch.scores[part], scratch.targets[part], scratch.slopes)
        for stripe in range(stripes * part // parts, stripes * (part + 1) // parts):
            losses[stripe], wrong[stripe] = 0, -1
            begin, end = bounds_of(stripe, stripes, span[0], span[1], unit)
            gradient = gradients[stripe * rows_each : (stripe + 1) * rows_each]
            outputs = sums.shape[0] // stripes
            of_intercept = sums[stripe * outputs : (stripe + 1) * outputs]
            of_intercept[:] = 0
            for start in range(begin, end, block_rows):
                count = min(block_rows, end - start)
                total, bad = scores_of(source, order, start - base, base, base + count, labels, share, trained, own)
                if bad >= 0:
                    wrong[stripe] = bad
                    break
                losses[stripe] += total
                slopes, offset = scratch.slopes[base : base + count], start if is_in_order else base
                operands = (columns, count, offset, index, x, slopes, gradient, *trained.arrays, trained.settings, 0)
                emit_row(adds, 0, columns if is_narrow else width, operands)
                if outputs:
                    add_columns(slopes, of_intercept)

    return inlined(do_stripes)


def make_columns(programs: Programs, held: str) -> Callable:
    """Return compiled do_columns(part, parts, ..) -> None: add all stripes' gradients for one thread's columns.

    It then steps weights and states of these columns in place and zeroes the gradients. `held` is the storage of X, a
    key of `SOURCES`.
    """
    added, by_row, is_narrow = programs.steps_added, programs.by_row, programs.is_narrow
    _, table_at, index_at, _ = SOURCES[held].loop

    def do_columns(part, parts, source, bare_trained, slopes, gradients, stripes, at):
        """Sum `gradients` over the stripes for the columns of thread `part` of `parts`.

        Update weights and states in place. `gradients` [stripes * rows, ...] has the layout of the weights, `stripes`
        is their number; it is zeroed. `source` is what `Source.prepare` returns, bare_trained a `Trained` as a tuple,
        `slopes` only a placeholder; settings are those of step `at`.
        """
        trained, x, index = Trained(*bare_trained), source[table_at], source[index_at]
        columns, width, rows_each = x.shape[1], trained.arrays[0].shape[1], gradients.shape[0] // stripes
        first, last = bounds_of(part, parts, 0, columns, UNIT_NARROW if is_narrow else UNIT_WIDE)
        gradient = gradients[:rows_each]
        for stripe in range(1, stripes):
            others = gradients[stripe * rows_each : (stripe + 1) * rows_each]
            if is_narrow:
                for n in range(rows_each):
                    add_row(gradient[n, first:last], others[n, first:last])
            else:
                for d in range(first, last):
                    add_row(gradient[d], others[d])
        if by_row:
            emit_row(by_row, first, width, (last, *trained.arrays, gradient, trained.settings, at))
        else:
            operands = (last, 0, 0, index, x, slopes, gradient, *trained.arrays, trained.settings, at)
            emit_row(added, first, last if is_narrow else width, operands)

    return inlined(do_columns)


@inlined
def add_row(one, other):
    """Add `other` to `one` in place and set `other` to 0; both 1-d of equal length."""
    for j in range(one.size):
        one[j] += other[j]
        other[j] = 0


@functools.cache
def make_striped_loop(programs: Programs, loss: str, held: str, is_parallel: bool) -> Callable:
    """Return the compiled training loop over batches in stripes, for a loss and the storage `held` of X; cached.

    `is_parallel`: on all threads. The loop takes the fields of a `Store` as a further operand.
    """
    each_stripes = make_each(is_parallel, make_stripes(programs, loss, held))
    each_columns = make_each(is_parallel, make_columns(programs, held))
    step_intercept = make_step_intercept(programs.steps_intercept)

    def striped(source, order, cut, block_rows, parts, labels, bare_trained, memory, losses, store, span):
        """Train on batches span[0] to span[1] - 1 in place; return the position in `order` of an invalid target or -1.

        `cut` is that of `span_of`; `block_rows` rows are done at a time by `parts` threads. `source` is what
        `Source.prepare` returns; labels, bare_trained, memory and store are a `Labels`, `Trained`, `Scratch` and
        `Store` as tuples. Adds the mean loss of each batch to `losses`, which must be 0 before. Batches before an
        invalid target are applied.
        """
        trained, scratch = Trained(*bare_trained), Scratch(*memory)
        (gradients, losses_each, wrong, sums_each), sums, stripes = store, scratch.sums, store[1].size
        for step in range(span[0], span[1]):
            (first, last), at = span_of(step, cut, order.size), min(step, trained.settings.shape[0] - 1)
            share, rows = trained.added.dtype.type(1 / (last - first)), (first, last)
            each_stripes(parts, (parts, source, order, rows, block_rows, labels, share, bare_trained, memory, store))
            for stripe in range(stripes):
                if wrong[stripe] >= 0:
                    return wrong[stripe]
                losses[step] += losses_each[stripe]
            losses[step] /= last - first
            each_columns(parts, (parts, source, bare_trained, scratch.slopes, gradients, stripes, at))
            if sums.size:
                sums[:] = 0
                for place in range(sums_each.shape[0]):
                    sums[place % sums.shape[0], 0] += sums_each[place, 0]
                step_intercept(trained, scratch.numbers, sums, step)
        return -1

    if is_parallel:
        layer()  # code is linked with its functions
    return compiled(named(striped, programs, loss, held, is_parallel))


# State of a call of a dense epoch's kernel, its scratch memory, and the choice of the loop for it.


LEAST_ROWS = 32
"""Rows of a block at least: fewer sums are in flight, and the sums of a batch come and go more often."""

ROWS_AN_OUTPUT = 8
"""Rows of a block for each output at least: a block reads and writes the sums of all, as many bytes as so few rows."""

LEAST_SHARED = 16
"""Rows of a batch that is shared by threads, at least."""

REGIONS = 2
"""Regions that a batch on several threads enters: its rows, then its columns. Each gains by its part of the work alone:
with 256 rows of 123 columns, N = 1, a step took 14.6 us on one of two cores and 15.6 to 19.8 us on both."""

PARTS = 8
"""Parts of a batch at most."""


def split(held: str, args: tuple) -> tuple[tuple, tuple]:
    """Split the operands of a dense epoch into (arrays of X, all others); the storage `held` says how many X has."""
    count = len(SOURCES[held].operands.split())
    return args[:count], args[count:]


@dataclass(frozen=True)
class DenseCall:
    """The operands of a call, by their parts: see `kernels.epochs.dense`."""

    x: tuple[np.ndarray, ...]
    targets: np.ndarray
    counts: np.ndarray
    order: np.ndarray
    batch_rows: int
    epoch_rows: int
    arrays: tuple[np.ndarray, ...]
    """Weights and states."""
    intercept: tuple[np.ndarray, ...]
    """The intercept and its states, of no elements if there is none."""
    settings: np.ndarray
    settings_intercept: np.ndarray

    @classmethod
    def of(cls, rule: Rule, held: str, args: tuple) -> "DenseCall":
        """Build a `DenseCall` from the operands `args` of a dense epoch kernel; KernelError if their lengths disagree.

        `held` is the storage of X: "dense", "csr", "uint8" or "float16".
        """
        x, (targets, counts, order, batch_rows, epoch_rows, *others) = split(held, args)
        count = len(rule.written)
        arrays, intercept = tuple(others[:count]), tuple(others[count : 2 * count])
        cut = batch_rows, epoch_rows
        call = cls(x, targets, counts, order, *cut, arrays, intercept, *others[2 * count :])
        tables = {"settings": call.settings, "settings_intercept": call.settings_intercept}
        numbers = len(rule.settings(*rule.example))
        check_batches(targets.shape[0], arrays[0].shape[1], counts, intercept[0], tables, numbers, *cut)
        return call


def run(loss: str, rule: Rule, held: str, call: DenseCall) -> np.ndarray:
    """Train on all batches of a call in place; return the mean loss of each batch before its step, float64 [batches].

    `held` is the storage of X. Raises KernelError for an invalid target; the batches before it have been applied.
    """
    losses = np.zeros(count_batches(call.order.size, call.batch_rows, call.epoch_rows))
    if call.order.size:
        wrong = _loop(loss, rule, held, call, losses)
        if wrong >= 0:
            row = call.order[wrong]
            raise wrong_label(row, call.targets[row], call.arrays[0].shape[1])
    return losses


def _loop(loss: str, rule: Rule, held: str, call: DenseCall, losses: np.ndarray) -> int:
    """Train on all batches of a call in place by a compiled loop; return the position of an invalid target or -1.

    Writes mean losses to `losses` float64 [batches], 0 before. Chooses blocks or stripes and the number of threads from
    the sizes.
    """
    weights, (settings, settings_intercept) = call.arrays[0], given_settings(call.settings, call.settings_intercept)
    columns, width = weights.shape
    epoch_rows = min(call.epoch_rows, call.order.size)
    batch_rows = min(call.batch_rows, epoch_rows)
    parts = _parts(batch_rows, columns, width)
    programs = programs_for(rule.name, width, weights.itemsize, settings.shape[1], is_far(held, call.x))
    arrays = _in_layout(programs, call.arrays)
    is_striped = suits(batch_rows, columns, width, weights.itemsize)
    if is_striped:
        block_rows = rows_of_block(batch_rows, columns, weights.itemsize, programs.rows)
    else:
        # the blocks of all threads fill half of their level 2 caches, within limits
        fitting = parts * cache_bytes(2) // 2 // max(columns * weights.itemsize, 1)
        block_rows = min(max(fitting, LEAST_ROWS, ROWS_AN_OUTPUT * width), batch_rows)
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
    make_loop = make_striped_loop if is_striped else loops.make_loop
    loop = make_loop(programs, loss, held, is_parallel=parts > 1)
    sizes = (batch_rows, epoch_rows), block_rows, parts
    shared: tuple = source, call.order, *sizes, (targets, call.counts), bare(trained), bare(scratch), losses
    if is_striped:
        shared += (bare(store_for(arrays[0].shape, width, weights.dtype, has_intercept)),)
    if parts == 1:
        wrong = loop(*shared, (0, losses.size))
    else:
        work = _work(batch_rows, columns, width)
        wrong = call_in_pieces(lambda first, last: loop(*shared, (first, last)), losses.size, work)
    if programs.is_narrow and width > 1:
        for array, own in zip(call.arrays, arrays, strict=True):
            array[...] = own.T
    return wrong


def _in_layout(programs: Programs, arrays: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Return weights and states [D, N] in the programs' layout: `arrays` themselves, or for narrow programs as [N, D].

    [N, D] are aligned copies, but views if N is 1.
    """
    if not programs.is_narrow:
        return arrays
    is_one = arrays[0].shape[1] == 1
    return tuple(array.reshape(1, -1) if is_one else aligned.copy(array.T, array.dtype) for array in arrays)


def is_far(held: str, x: tuple[np.ndarray, ...]) -> bool:
    """Return whether dense rows, read in place, exceed a core's cache, so that they are prefetched.

    `held` is the storage.
    """
    return held == "dense" and x[0].nbytes > cache_bytes(2)


def _parts(batch_rows: int, columns: int, width: int) -> int:
    """Return the number of threads, 1 to 8, for batches [batch_rows, columns] with `width` outputs.

    1 if there is too little work for several.
    """
    is_alone = batch_rows < LEAST_SHARED or is_serial(_work(batch_rows, columns, width) // REGIONS, within=True)
    return 1 if is_alone else min(get_threads(), PARTS)


def _work(batch_rows: int, columns: int, width: int) -> int:
    """Return the work of a batch [batch_rows, columns] with `width` outputs, in multiply-adds of `is_serial`."""
    return batch_rows * columns * (width + 4) // 4


def _scratch(
    targets: np.ndarray, block_rows: int, weights: np.ndarray, parts: int, has_intercept: bool
) -> loops.Scratch:
    """Allocate a `loops.Scratch` for blocks of `block_rows` rows on `parts` threads; arrays are uninitialised.

    Except losses (0), wrong (-1) and numbers (arange). `targets` gives dtype and columns; `weights` [D, N] the rest.
    """
    width, dtype = weights.shape[1], weights.dtype
    at_once = min(max(BLOCK // width // 8 * 8, 8), block_rows)
    scores, slopes = aligned.empty((parts, at_once, width), dtype), aligned.empty((block_rows, width), dtype)
    taken = np.empty((parts, at_once, *targets.shape[1:]), targets.dtype)
    of_intercept = np.arange(width), aligned.empty((width if has_intercept else 0, 1), dtype)
    return loops.Scratch(scores, taken, slopes, np.zeros(parts), np.full(parts, -1), *of_intercept)


def reference(loss: str, rule: Rule, held: str, *args) -> np.ndarray:
    """Run the reference in plain loops: the sparse epoch on CSR rows that store every element, all rows updated.

    `args` are the operands of the kernel; weights, states and intercept are updated in place. Returns the mean loss of
    each batch, float64 [batches].
    """
    operands, rest = split(held, args)
    weights = rest[5]
    x = SOURCES[held].dense_rows(operands, len(weights)).astype(weights.dtype)
    rows, columns = x.shape
    every = np.arange(rows + 1) * columns, np.tile(np.arange(columns), rows), x.reshape(-1)
    return sparse_epoch.reference(loss, rule, "standard", *every, *rest, np.zeros_like(weights))


def cpu(loss: str, rule: Rule, held: str, *args) -> np.ndarray:
    """Train a linear model on dense rows on the CPU: per batch scores X @ W + b, their gradient, a step of all W.

    `args` are the operands of the kernel. Writes weights, intercept and their states in place. Returns float64
    [batches]: the mean loss over a batch's rows before the step, in which all count equally. Raises KernelError for
    invalid lengths or targets.
    """
    return run(loss, rule, held, DenseCall.of(rule, held, args))


def cost(loss: str, rule: Rule, held: str, s: Sizes) -> Cost:
    """Return flops and bytes of one batch of s.R rows: each value of X, each row of weights and states moves once."""
    of_loss = get_kernel(loss).cost(s)
    flops = 4 * s.R * s.D * s.N + of_loss.flops + rule.flops * s.D * s.N
    of_csr = s.z * (s.index + s.value) + (s.R + 1) * s.index
    bytes_x = {"dense": s.R * s.D * s.value, "csr": of_csr, "uint8": s.R * s.D, "float16": 2 * s.R * s.D}[held]
    return Cost(flops, bytes_x + s.R * s.N * s.value + s.D * rule.bytes_row(s))


def arguments(loss: str, rule: Rule, held: str, case: Case) -> tuple:
    """Build operands from `case`: those of its sparse epoch with dense updates, X in the storage `held`."""
    _, _, _, *rest, _ = sparse_epoch.arguments(loss, rule, "standard", case)
    return *SOURCES[held].arguments(case), *rest


@functools.cache
def get(loss: str, rule: str, held: str = "dense") -> Kernel:
    """Return the kernel `<loss>_<rule>_dense_epoch`, with `_<held>` unless X is stored dense; cached.

    `held` is a key of `SOURCES`: "dense", "csr", "uint8" or "float16". Raises KernelError, with the known names, for an
    unknown loss, rule or `held`. The kernel is not in the registry.
    """
    block_of(loss)
    known = get_rule(rule)
    if held not in SOURCES:
        raise KernelError(unknown_name("way to hold dense rows", held, SOURCES))
    _, _, _, *rest, _ = sparse_epoch.operands_of(loss, known, "standard").split()
    operands = " ".join((SOURCES[held].operands, *rest))
    names = [operand.partition(":")[0] for operand in operands.split()]

    def named(function: Callable) -> Callable:
        """Return `function` with loss, rule and `held` bound and the operand names of this kernel as its signature."""
        return sparse_epoch.named_twin(function, names, loss, known, held)

    return Kernel(
        name=f"{loss}_{rule}_dense_epoch{'' if held == 'dense' else f'_{held}'}",
        operands=operands,
        reference=named(reference),
        cpu=named(cpu),
        gpu=None,
        cost=functools.partial(cost, loss, known, held),
        arguments=functools.partial(arguments, loss, known, held),
        writes=(*known.written, *(name for name in names if name.startswith("intercept"))),
    )


__all__ = ["get"]
