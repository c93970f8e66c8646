"""Dual ascent for K decays at once, each a block of N columns of one weight matrix, so that a row is read once for all.

Arguments  indptr int32|int64 [T+1] - row starts; indices same type [z]; data float32|float64 [z]; targets as the loss
           takes them, a row for each of T, shared by all decays; counts same as data [T, K], what the loss of each row
           counts for with each decay, 0 to leave it out, or [0, K] if all are 1; squares same [T], the sum of squares
           of each row, below 0 if it is not known yet; order int64 [M], rows, any number of times; weights same
           [D, K*N], columns n + k*N are those of decay k; dual same [T, K*N]; intercept same [K*N], or [0] for none;
           intercept_square >= 0, the square of the value that rows have for it; decays same [K], above 0
Writes     weights, dual, intercept, squares that were not known of rows that come; nothing else changes
Assumes    K*N >= 1; duplicates are summed, columns may be unsorted; a target out of range is refused when the rows
           before it have had their steps
Cost       a row: 4*z*K*N flops and up to `TURNS` times the loss and 8*K*N; reads its entries and target once, and its
           dual variables and weights, and writes the last two
Parallel   not: each row reads what the one before it wrote; same bits on every run
Limits     z < 2**63, D*K*N < 2**63, T*K*N < 2**63; memory besides the arguments is 8 rows of K*N numbers
Source     as `kernels.epochs.dual`; differs: all decays of a row repeat their step, once, if the score of one moved far
"""

import functools
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from kernels.code_cache import inlined, njit
from kernels.contract import Case, Cost, Kernel, Sizes
from kernels.epochs.dual import MOVED, DualCall, OfRows, bind_loss, of_csr, reference_square
from kernels.epochs.loops import ENTRIES_AHEAD, named, take_target
from kernels.epochs.programs import adding, programs_for
from kernels.formula import choose, magnitude
from kernels.loss_blocks import block_of, curvature_of, element_of, wrong_label
from kernels.registry import get as get_kernel
from kernels.vector.gather import RowLoop
from kernels.vector.lanes import emit_row, prefetch
from kernels.vector.tiles import cache_bytes, cut_elements

TURNS = 2
"""How often a row has its steps at most: with a third time only decays far too weak for the rows come closer to their
minimum in an epoch, and the row takes a fourth longer."""


def reference(loss: str, *args: Any) -> None:
    """Compute dual ascent in plain loops, row by row, for all decays at once; in place.

    `args` are the operands of the kernel. Writes weights, dual, intercept, and the squared norms of rows met for the
    first time.
    """
    (indptr, indices, data), call = args[:3], DualCall(*args[3:]).checked()
    kernel, outputs = get_kernel(loss), call.outputs
    scales, own = call.scales.astype(np.float64), call.intercept_square if call.intercept.size else 0.0
    for row in call.order:
        entries = np.arange(indptr[row], indptr[row + 1])
        scores = np.zeros((1, scales.size)) + (call.intercept if call.intercept.size else 0)
        for k in entries:
            scores[0] += data[k] * call.weights[indices[k]].astype(np.float64)
        counts = np.repeat(call.counts[row].astype(np.float64), outputs) if len(call.counts) else np.ones(scales.size)
        if call.squares[row] < 0:
            call.squares[row] = reference_square(indices[entries], data[entries])
        factors = (float(call.squares[row]) + own) * scales
        slope, change = np.zeros_like(scores), np.zeros_like(scores)
        for _ in range(TURNS):
            for first in range(0, scales.size, outputs):
                block = slice(first, first + outputs)
                grad_scores = np.zeros((1, outputs))
                kernel.reference(scores[:, block], call.targets[row : row + 1], grad_scores)
                slope[:, block] = grad_scores
            step = -(counts * slope + call.dual[row] + change) / (1 + factors * counts * curvature_of(loss))
            change += step
            scores += factors * step
            if not np.abs(factors * step).max() > MOVED:
                break
        call.dual[row] += change[0]
        for k in entries:
            call.weights[indices[k]] += scales * change[0] * data[k]
        if call.intercept.size:
            call.intercept[:] += scales * change[0] * call.intercept_square


class Scratch(NamedTuple):
    """Memory of one row: its target; scores [1, K*N] and, as the same memory, [K, N]; their gradient alike; the change
    of the dual variables [1, K*N]; what a change moves the score by, the count and the rate of each column [K*N]."""

    target: np.ndarray
    scores: np.ndarray
    scores_of: np.ndarray
    slope: np.ndarray
    slope_of: np.ndarray
    change: np.ndarray
    factors: np.ndarray
    counts: np.ndarray
    rates: np.ndarray


def make_slopes(loss: str, outputs: int, width: int) -> Callable:
    """Return a compiled function (scratch, one): gradients of one row's scores for all decays, `outputs` scores each.

    It overwrites the gradients in `scratch` and returns whether the target is invalid. `loss` is the name of a loss
    kernel. The `width` K*N is fixed, so that a loop over few scores is vector code from its first element.
    """
    element, block = element_of(loss), block_of(loss)

    def slopes_of_elements(scratch, one):
        """Overwrite scratch.slope [1, K] by the gradient of each score; return False: every target is valid."""
        target, scores, slope = scratch.target[0], scratch.scores, scratch.slope
        for k in range(width):
            _, slope[0, k] = element(scores[0, k], target, one)
        return False

    def slopes_of_blocks(scratch, one):
        """Overwrite scratch.slope_of [K, N] by the gradients of scores_of [K, N].

        Return whether the target is invalid.
        """
        is_wrong = False
        for k in range(scratch.scores_of.shape[0]):
            decay = slice(k, k + 1)
            _, wrong = block(scratch.scores_of[decay], scratch.target, scratch.slope_of[decay], one)
            is_wrong |= wrong >= 0
        return is_wrong

    return inlined(slopes_of_elements if element and outputs == 1 else slopes_of_blocks)


# Vector code of what is done with each column: Numba's own loops over so many arrays take 0.4 s to compile.


class OfColumns(NamedTuple):
    """Names of the vector code for rows of one width: what is done before, in and after the steps of a row, and the
    change of the intercept."""

    prepare: str
    step: str
    finish: str
    add: str


def _prepare(lane, row, square, curvature, scales, counts, factors, rates, change):
    """Emit code for all columns: factors = square * scales, rates = 1 / (1 + factors * counts * curvature), change = 0.

    The arrays are [1, K*N]; factors, rates and change are overwritten; `square` and `curvature` are scalars, `row` is
    unused.
    """
    nought = lane.integer(0)

    def block(j, _):
        """Emit the columns of one tile, from column j on; `_` is unused."""
        one = lane.numbers.spread(lane.number(1))
        made = [square * scale for scale in scales.row(nought, j).load()]
        pairs = zip(made, counts.row(nought, j).load(), strict=True)
        factors.row(nought, j).store(made)
        rates.row(nought, j).store([one / (factor * count).times_plus(curvature, one) for factor, count in pairs])
        change.row(nought, j).store([lane.float(lane.zeros())] * len(made))

    lane.blocks(block)


def _step(lane, row, dual, counts, rates, factors, scores, change, slope):
    """Emit code for one dual step of row `row` by the gradient `slope` of its scores; adds to `change` and `scores`.

    slope[0] is then the number of scores that moved far, NaN if one is NaN. `dual` [T, K*N] is only read, as are
    counts, rates and factors [K*N]: a step is -(slope * counts + dual + change) * rates and moves a score by that times
    factors.
    """
    nought = lane.integer(0)

    def block(j, moved):
        """Emit the step of the columns of one tile, from column j on; return the count of scores that moved far."""
        one, far = lane.numbers.spread(lane.number(1)), []
        known = [array.row(nought, j).load() for array in (counts, rates, factors)]
        places = [array.row(nought, j) for array in (scores, change, slope)]
        new: tuple[list, list] = ([], [])
        held = zip(dual.row(row, j).load(), *known, *(place.load() for place in places), strict=True)
        for own, count, rate, factor, score, before, gradient in held:
            step = (0.0 - (gradient * count + own + before)) * rate
            move = step * factor
            new[0].append(score + move)
            new[1].append(before + step)
            far.append(choose(magnitude(move) > MOVED, one, move * 0.0))
        for place, vectors in zip(places, new, strict=False):
            place.store(vectors)
        return [moved[0] + lane.total(far)]

    slope[nought] = lane.blocks(block, [lane.number(0)])[0]


def _finish(lane, row, dual, change, scales):
    """Emit code: dual[row] += change, then change *= scales: the change of the weights for a value of 1."""
    nought = lane.integer(0)

    def block(j, _):
        """Emit the columns of one tile, from column j on; `_` is unused."""
        own, moved = dual.row(row, j), change.row(nought, j)
        changes = moved.load()
        own.store([one + more for one, more in zip(own.load(), changes, strict=True)])
        moved.store([one * scale for one, scale in zip(changes, scales.row(nought, j).load(), strict=True)])

    lane.blocks(block)


_LOOPS = [RowLoop(row, cut=cut_elements, name=f"dual_decays{row.__name__}") for row in (_prepare, _step, _finish)]


@functools.cache
def of_columns(width: int, itemsize: int) -> OfColumns:
    """Return the names of the vector code for rows of `width` columns of `itemsize` bytes; cached."""
    cut = cut_elements(width, itemsize)
    prepare, step, finish = (loop.code(cut) for loop in _LOOPS)
    return OfColumns(prepare, step, finish, adding(cut))


@functools.cache
def make_loop(of_rows: OfRows, columns: OfColumns, loss: str, outputs: int, width: int) -> Callable:
    """Return the compiled loop of dual ascent over rows for all decays; cached. `outputs`: 1, or 2 for any more.

    It updates dual variables, weights and intercepts in place and returns the position of an invalid target in its
    operand `order`, or -1. `of_rows` and `columns` are the functions that read X and step its rows, of `width` columns.
    """
    rows_of, look_ahead, score, square_of_row, add, text = of_rows
    prepare, step, finish, add_intercept = columns
    slopes, is_single = make_slopes(loss, outputs, width), outputs == 1  # of one output no column is divided by it

    def dual_decays(parts, counts, squares, order, weights, dual, intercept, added, scales, numbers, is_far, bare):
        """Do the steps of the rows of `order` for all decays.

        Return the position in `order` of an invalid target or -1. Updates weights [D, K*N], dual [T, K*N], intercept
        and unknown (negative) `squares` in place. `parts` are the operands of `rows_of`, counts [T, K] or [0, K],
        `added` the intercept in the scores, `scales` [K*N] the factors from dual variables to weights, `numbers` (1,
        square of the intercept's value, curvature), `is_far` (prefetch entries, prefetch weights), `bare` the fields of
        a `Scratch`.
        """
        rows, scratch = rows_of(parts), Scratch(*bare)
        one, own, curvature = numbers
        slope, change, factors, rates = scratch.slope, scratch.change, scratch.factors, scratch.rates
        outputs, width, known = scratch.scores_of.shape[1], dual.shape[1], (scratch.counts, rates, factors)
        for place in range(order.size):
            look_ahead(rows, order, place, weights, is_far)
            if is_far[0] and place + ENTRIES_AHEAD < order.size:
                ahead = np.uint64(order[place + ENTRIES_AHEAD])
                prefetch(dual, ahead * np.uint64(width))
                prefetch(squares, ahead)
            row = np.uint64(order[place])
            score(rows, row, weights, added, scratch.scores)
            take_target(scratch.target, 0, rows.targets, row)
            square = squares[row]
            if square < 0:
                square = squares.dtype.type(square_of_row(rows, row))
                squares[row] = square
            if counts.shape[0]:
                for n in range(width):
                    scratch.counts[n] = counts[row, n if is_single else n // outputs]
            emit_row(prepare, 0, width, (square + own, curvature, scales, scratch.counts, factors, rates, change))
            for _ in range(TURNS):
                if slopes(scratch, one):
                    return place
                emit_row(step, row, width, (dual, *known, scratch.scores, change, slope))
                if not slope[0, 0] > 0:
                    break
            emit_row(finish, row, width, (dual, change, scales))
            add(rows, row, change, weights)
            if intercept.size:
                emit_row(add_intercept, 0, width, (own, change, 0, intercept))
        return -1

    return njit(nogil=True, error_model="numpy", fastmath={"contract", "nsz"}, _nrt=False)(
        named(dual_decays, text, columns, loss, width if outputs == 1 else 0)
    )


def cpu(loss: str, *args: Any) -> None:
    """Run dual ascent for all decays on one core, in place.

    `args` are the operands of the kernel. Writes weights, dual, intercept and unknown squared norms. Raises KernelError
    for invalid operands or targets.
    """
    x, call = args[:3], DualCall(*args[3:]).checked()
    weights, outputs = call.weights, call.outputs
    width, number = call.dual.shape[1], weights.dtype.type
    of_rows = of_csr(programs_for("sgd", width, weights.itemsize, 2))
    is_far = x[1].nbytes + x[2].nbytes > cache_bytes(2), weights.nbytes > cache_bytes(2)
    targets = call.targets.reshape(-1) if outputs == 1 else call.targets
    scores, slope, change, factors, counts, rates = np.ones((6, 1, width), weights.dtype)
    of_a_row = np.empty((1, *targets.shape[1:]), targets.dtype), scores, scores.reshape(-1, outputs), slope
    scratch = *of_a_row, slope.reshape(-1, outputs), change, factors[0], counts[0], rates[0]
    has_intercept = call.intercept.size > 0
    added = call.intercept if has_intercept else np.zeros(width, weights.dtype)
    own = call.intercept_square if has_intercept else 0.0
    numbers = number(1), number(own), number(curvature_of(loss))
    operands = call.counts, call.squares, call.order, weights, call.dual, call.intercept, added, call.scales
    parts = *x, targets, call.counts.reshape(-1)
    columns = of_columns(width, weights.itemsize)
    loop = make_loop(of_rows, columns, loss, min(outputs, 2), width)
    wrong = loop(parts, *operands, numbers, is_far, scratch)
    if wrong >= 0:
        row = call.order[wrong]
        raise wrong_label(row, call.targets[row], outputs)


def cost(loss: str, s: Sizes) -> Cost:
    """Return flops and bytes of one pass over s.R rows with the kernel `loss`; s.N = K * N columns."""
    flops = 4 * s.z * s.N + TURNS * (get_kernel(loss).cost(s).flops + 8 * s.R * s.N)
    moved = s.z * (s.index + s.value) + (s.R + 1) * s.index + 3 * s.R * s.N * s.value + 2 * s.U * s.N * s.value
    return Cost(flops, moved, 2 * s.z * s.N * s.value)


DECAYS = 0.25, 2.0, 0.5
"""Decays of the operands that tests compare implementations on."""


def arguments(loss: str, case: Case) -> tuple:
    """Build operands of a call from `case`: A of the case as X, each row about twice in `order`.

    Arrays for three decays. Every second squared norm is unknown (-1).
    """
    order = np.random.default_rng(case.seed).integers(0, case.R, 2 * case.R + 1 if case.R else 0)
    _, targets, _ = get_kernel(loss).arguments(case)
    width = len(DECAYS) * case.N
    counts = 1 + case.dense(case.R, len(DECAYS), salt=9).clip(-1, 1) / 2
    x = case.indptr, case.indices, case.data
    arrays = case.dense(case.D, width, salt=4), case.dense(case.R, width, salt=5), case.dense(width)
    known = [
        reference_square(*(array[start:stop] for array in x[1:])) for start, stop in itertools.pairwise(case.indptr)
    ]
    squares = np.where(np.arange(case.R) % 2, known, -1.0).astype(case.dtype)
    return *x, targets, counts, squares, order, *arrays, 0.5, np.array(DECAYS, case.dtype)


@functools.cache
def get(loss: str) -> Kernel:
    """Return the kernel `<loss>_dual_epoch_decays`, cached; KernelError, with the known losses, for an unknown one."""
    block_of(loss)
    kind = get_kernel(loss).operands.split()[1].partition(":")[2].replace("R", "T")
    x = "indptr:i[T+1]^z indices:i[z]<D data:f[z]"
    rest = f"targets:{kind} counts:f[C,K] squares:f[T] order:l[M]<T"
    operands = f"{x} {rest} weights:f[D,W] dual:f[T,W] intercept:f[B] intercept_square:s decays:f[K]"
    names = [operand.partition(":")[0] for operand in operands.split()]
    return Kernel(
        name=f"{loss}_dual_epoch_decays",
        operands=operands,
        reference=bind_loss(reference, loss, names),
        cpu=bind_loss(cpu, loss, names),
        gpu=None,
        cost=functools.partial(cost, loss),
        arguments=functools.partial(arguments, loss),
        writes=("squares", "weights", "dual", "intercept"),
    )
