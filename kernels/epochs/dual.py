"""Rows one by one, each by a step of its dual variables: a = a - (g + a) / (1 + q c), W += x.T @ change / (decay * T).

Arguments  indptr int32|int64 [T+1] - row starts; indices same type [z]; data float32|float64 [z]; targets as the loss
           takes them, a row for each of T; counts same as data [T], what the loss of each row counts for, or [0];
           squares same [T], the sum of squares of each row, duplicates summed before, below 0 where it is not known
           yet; order int64 [M], rows, any number of times; weights same [D, N]; dual same [T, N]; intercept same [N],
           or [0] for none; intercept_square >= 0, the square of the value that rows have for it; decay > 0
Writes     weights, dual, intercept, squares that were not known of rows that come; nothing else changes; returns the
           losses, float64 [M]: of each row before its step
Assumes    N >= 1; duplicates are summed, columns may be unsorted; a target out of range is refused when the rows before
           it have had their steps
Cost       a row: 4*z*N flops and up to `TURNS` times the loss and 6*N; reads its entries, target, dual variables and
           weights, and writes the last two
Parallel   not: each row reads what the one before it wrote; same bits on every run
Limits     z < 2**63, D*N < 2**63, T*N < 2**63; memory besides the arguments is 4 rows of N numbers and the losses
Source     Shalev-Shwartz and Zhang 2013, "Stochastic dual coordinate ascent methods for regularized loss minimization",
           and 2014, proximal SDCA, option V: it goes up sum over rows of -conjugate(loss)(-a) less T decay |W|^2 / 2;
           differs: q = squares / (decay * T) tells the scores after a change, so a step is repeated without entries
"""

import functools
import inspect
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from kernels import bounds
from kernels.code_cache import inlined, njit
from kernels.contract import Case, Cost, Kernel, KernelError, Sizes
from kernels.epochs.loops import ENTRIES_AHEAD, Rows, make_look_ahead, named, take_target
from kernels.epochs.programs import Programs, programs_for
from kernels.epochs.touched import FACTOR
from kernels.loss_blocks import block_of, curvature_of, element_of, wrong_label
from kernels.registry import get as get_kernel
from kernels.threads import compiled_with_arrays
from kernels.vector.lanes import are_rising, emit_row, prefetch
from kernels.vector.tiles import cache_bytes

# Steps of the dual variables of one row from its scores, compiled for a loss and a width.


TURNS, MOVED = 3, 0.1
"""How often a row has its step at most, and how far one must move a score for another to follow."""


class Numbers(NamedTuple):
    """Numbers of the weights' type: 1, 1 / (decay * T), the square of an intercept's value, the loss's curvature."""

    one: Any
    scale: Any
    square: Any
    curvature: Any


class Scratch(NamedTuple):
    """Memory of one row: its target, and scores, their gradient and the change of its dual variables [1, N]."""

    target: np.ndarray
    scores: np.ndarray
    slope: np.ndarray
    change: np.ndarray


def make_turns(loss: str, width: int) -> Callable:
    """Return compiled turns(dual, row, count, factor, numbers, scratch): dual steps of one row from its scores.

    It writes `scratch.change` [1, N] and returns (loss before the step, invalid target: 0, or -1). `loss` is the name
    of a loss kernel, `width` N.
    """
    element = element_of(loss)
    return make_turns_of_one(element) if width == 1 and element else make_turns_of_block(block_of(loss))


def make_turns_of_one(element: Callable) -> Callable:
    """Return `make_turns` for one output, in registers; `element` is the compiled loss of a single score."""

    def turns(dual, row, count, factor, numbers, scratch):
        """Write the change of the dual variable of `row` to scratch.change [1, 1]; return (loss before, -1).

        `count` is the weight of the row's loss; `factor` is what the score moves by for a change of 1. Up to 3 steps
        are done.
        """
        one, score, target, own = numbers.one, scratch.scores[0, 0], scratch.target[0], dual[row, 0]
        rate = one / (one + factor * count * numbers.curvature)
        before, slope = element(score, target, one)
        step = -(count * slope + own) * rate
        change = step
        for _ in range(1, TURNS):
            moved = factor * step
            if not abs(moved) > MOVED:
                break
            score += moved
            _, slope = element(score, target, one)
            step = -(count * slope + own + change) * rate
            change += step
        scratch.change[0, 0] = change
        return np.float64(before), -1

    return inlined(turns)


def make_turns_of_block(block: Callable) -> Callable:
    """Return a compiled function that computes a row's dual steps for several outputs or a loss coupling them.

    `block` is the loss function of a block of rows.
    """

    def turns(dual, row, count, factor, numbers, scratch):
        """Write the change of the dual variables of `row` to scratch.change [1, N].

        Return (loss before, 0 if invalid or -1). `count` is the weight of the row's loss; `factor` what a score moves
        by for a change of 1. Scores are overwritten.
        """
        target, scores, slope, change = scratch
        rate = numbers.one / (numbers.one + factor * count * numbers.curvature)
        before, wrong = 0.0, -1
        for n in range(change.shape[1]):
            change[0, n] = 0
        for turn in range(TURNS):
            loss_row, wrong = block(scores, target, slope, count)
            if turn == 0:
                before = loss_row
            moves = False
            for n in range(change.shape[1]):
                step = -(slope[0, n] + dual[row, n] + change[0, n]) * rate
                change[0, n] += step
                scores[0, n] += factor * step
                moves |= abs(factor * step) > MOVED
            if not moves or wrong >= 0:
                break
        return before, wrong

    return inlined(turns)


# The sum of squares of a row of a matrix in CSR form, by which dual ascent knows how far a step moves its score.


FEW_ENTRIES = 32
"""Entries of a row whose columns are compared each with each, for duplicates."""


def reference_square(indices: np.ndarray, data: np.ndarray) -> float:
    """Return the squared 2-norm of a row with `indices` [z] and `data` [z] in plain loops, duplicates summed first."""
    entries: dict[int, float] = {}
    for column, value in zip(indices.tolist(), data.tolist(), strict=True):
        entries[column] = entries.get(column, 0.0) + value
    return sum(entry * entry for entry in entries.values())


@compiled_with_arrays
def _of_repeated(indices, data):
    """Return the squared 2-norm of a row (indices [z], data [z]) with possible duplicate columns, summed first.

    Float64. Uses a hash table: to sort the columns would take a second to compile.
    """
    total = 0.0
    if indices.size <= FEW_ENTRIES:
        for k in range(indices.size):
            for other in range(indices.size):
                total += np.float64(data[k]) * data[other] * (indices[k] == indices[other])
        return total
    size, bits = 16, 4
    while size < 2 * indices.size:
        size, bits = 2 * size, bits + 1
    columns, sums = np.empty(size, np.int64), np.empty(size)  # filled here: to compile np.zeros takes longer
    for place in range(size):
        columns[place], sums[place] = 0, 0.0
    for k in range(indices.size):
        column = np.int64(indices[k]) + 1  # 0 is a free place
        place = np.uint64(column) * FACTOR >> np.uint64(64 - bits)
        while columns[place] != 0 and columns[place] != column:
            place = (place + np.uint64(1)) & np.uint64(size - 1)
        columns[place] = column
        sums[place] += data[k]
    for place in range(size):
        total += sums[place] * sums[place]
    return total


@inlined
def sum_of_squares(data, start, stop):
    """Return the sum of the squares, float64, of data[start:stop], added in a fixed order."""
    first, last, step = np.uint64(start), np.uint64(stop), np.uint64(8)
    whole = first + (last - first) // step * step
    a = b = c = d = e = f = g = h = 0.0  # a single sum would wait for each addition: as long as the row's step takes
    for k in range(first, whole, step):
        a += np.float64(data[k]) * data[k]
        b += np.float64(data[k + np.uint64(1)]) * data[k + np.uint64(1)]
        c += np.float64(data[k + np.uint64(2)]) * data[k + np.uint64(2)]
        d += np.float64(data[k + np.uint64(3)]) * data[k + np.uint64(3)]
        e += np.float64(data[k + np.uint64(4)]) * data[k + np.uint64(4)]
        f += np.float64(data[k + np.uint64(5)]) * data[k + np.uint64(5)]
        g += np.float64(data[k + np.uint64(6)]) * data[k + np.uint64(6)]
        h += np.float64(data[k + np.uint64(7)]) * data[k + np.uint64(7)]
    total = ((a + e) + (b + f)) + ((c + g) + (d + h))
    for k in range(whole, last):
        total += np.float64(data[k]) * data[k]
    return total


@inlined
def square_of(indices, data, start, stop):
    """Return the squared 2-norm, float64, of entries start to stop - 1 of a row, duplicates summed first. O(entries).

    `indices` and `data` [z] are those of a CSR matrix.
    """
    if not are_rising(indices, start, stop):
        return _of_repeated(indices[start:stop], data[start:stop])
    return sum_of_squares(data, start, stop)


class DualCall(NamedTuple):
    """The operands of a call in addition to the rows, as the docstring of this file says."""

    targets: np.ndarray
    counts: np.ndarray
    squares: np.ndarray
    order: np.ndarray
    weights: np.ndarray
    dual: np.ndarray
    intercept: np.ndarray
    intercept_square: float
    decay: float | np.ndarray
    """One, or K of them [K], each for as many columns of `dual`."""

    @property
    def outputs(self) -> int:
        """Return the number of outputs N; `dual` has N columns for each decay that is trained."""
        return self.dual.shape[1] // max(np.size(self.decay), 1)

    @property
    def scale(self) -> float:
        """Return 1 / (decay * T), the factor from dual variables to weights; for a single decay."""
        return 1 / (float(self.decay) * max(len(self.dual), 1))

    @property
    def scales(self) -> np.ndarray:
        """Return 1 / (decay * T) for each column of `dual` [K*N], in the dtype of the weights."""
        scales = 1 / (np.asarray(self.decay, np.float64) * max(len(self.dual), 1))
        return np.repeat(scales, self.outputs).astype(self.weights.dtype)

    def checked(self) -> "DualCall":
        """Return the call itself; KernelError if lengths disagree or a decay <= 0 or intercept_square < 0."""
        rows, width = self.dual.shape
        decays = 1 if isinstance(self.decay, float) else np.size(self.decay)  # NumPy takes as long as ten rows
        if not decays or width % decays:
            raise KernelError(f"dual has {width} columns for {decays} decays; it has the same count for each of them.")
        if len(self.counts) not in (0, rows):
            raise KernelError(f"counts has {len(self.counts)} numbers; it has one for each of {rows} rows, or none.")
        if self.intercept.size not in (0, width):
            raise KernelError(f"intercept has {self.intercept.size} numbers; it has {width}, or none.")
        is_above = self.decay > 0 if isinstance(self.decay, float) else np.all(np.asarray(self.decay) > 0)
        if not is_above or not self.intercept_square >= 0:
            given = f"decay is {self.decay}" if np.ndim(self.decay) == 0 else f"decays are {self.decay}"
            raise KernelError(
                f"{given}, intercept_square {self.intercept_square}; the first is above 0, as the dual variables make "
                "up the weights divided by it, the other is 0 or more."
            )
        return self


def reference(loss: str, *args) -> np.ndarray:
    """Compute dual ascent in plain loops, row by row: a -= (g + a) / (1 + q c), W += x.T @ change / (decay * T).

    `args` are the operands of the kernel. Writes weights, dual, intercept, and the squared norms of rows met for the
    first time. Returns float64 [M]: the loss of each row before its step.
    """
    (indptr, indices, data), call, losses = args[:3], DualCall(*args[3:]).checked(), []
    kernel, width = get_kernel(loss), call.dual.shape[1]
    for row in call.order:
        entries = np.arange(indptr[row], indptr[row + 1])
        scores = np.zeros((1, width)) + (call.intercept if call.intercept.size else 0)
        for k in entries:
            scores[0] += data[k] * call.weights[indices[k]].astype(np.float64)
        count = float(call.counts[row]) if call.counts.size else 1.0
        own = call.intercept_square if call.intercept.size else 0.0
        if call.squares[row] < 0:
            call.squares[row] = reference_square(indices[entries], data[entries])
        factor = (float(call.squares[row]) + own) * call.scale
        slope, change = np.zeros_like(scores), np.zeros_like(scores)
        for turn in range(TURNS):
            value = kernel.reference(scores, call.targets[row : row + 1], slope)
            losses += [value] if turn == 0 else []
            step = -(count * slope + call.dual[row] + change) / (1 + factor * count * curvature_of(loss))
            change += step
            scores += factor * step
            if not np.abs(factor * step).max() > MOVED:
                break
        call.dual[row] += change[0]
        for k in entries:
            call.weights[indices[k]] += call.scale * change[0] * data[k]
        if call.intercept.size:
            call.intercept[:] += call.scale * change[0] * call.intercept_square
    return np.array(losses, np.float64)


class OfRows(NamedTuple):
    """Compiled functions of a row, for rows held in one way: `rows_of(parts)` names the parts of X, targets, counts;
    `look_ahead(rows, order, place, weights, is_far)` asks for what later rows need; `score(rows, row, weights, added,
    scores)`, `square(rows, row)` and `add(rows, row, change, weights)` read and step the weights.
    `text` tells them from others."""

    rows_of: Callable
    look_ahead: Callable
    score: Callable
    square: Callable
    add: Callable
    text: str


@functools.cache
def of_csr(programs: Programs) -> OfRows:
    """Return the compiled row functions for X in CSR form, given the vector code of `programs_for`; cached."""
    score_row, add_entry, ask = programs.score, programs.add, make_look_ahead(programs)

    def rows_of(parts):
        """Return `parts`, the tuple of X's CSR arrays, targets and counts, as a `Rows`."""
        return Rows(*parts)

    def look_ahead(rows, order, place, weights, is_far):
        """Prefetch entries (is_far[0]) and weights (is_far[1]) of rows that follow `place` in `order`.

        `rows` is a `Rows`. Near the end of `order` nothing happens.
        """
        ask(rows, order, place, (weights,), is_far)

    def score(rows, row, weights, added, scores):
        """Write X[row] @ weights + added to scores[0] [N]."""
        emit_row(score_row, 0, weights.shape[1], (row, rows.indptr, rows.indices, rows.data, weights, added, scores))

    def square(rows, row):
        """Return the squared 2-norm of row `row` of X in `rows`, a `Rows`, as float64; duplicates are summed first."""
        return square_of(rows.indices, rows.data, rows.indptr[row], rows.indptr[row + np.uint64(1)])

    def add(rows, row, change, weights):
        """Add the outer product of `row` and change[0] [N] to the weights [D, N], in place."""
        for k in range(np.uint64(rows.indptr[row]), np.uint64(rows.indptr[row + np.uint64(1)])):
            emit_row(add_entry, np.int64(rows.indices[k]), weights.shape[1], (rows.data[k], change, 0, weights))

    name = str(programs)
    return OfRows(inlined(rows_of), inlined(look_ahead), inlined(score), inlined(square), inlined(add), name)


@functools.cache
def make_loop(of_rows: OfRows, loss: str, width: int) -> Callable:
    """Return the compiled loop of dual ascent over rows, for `width` outputs; cached.

    It does one step of each row of its operand `order`, updating dual variables, weights and intercept in place, writes
    the loss of each row, and returns the position of an invalid target or -1. `of_rows` are the functions that read
    rows of X.
    """
    rows_of, look_ahead, score, square_of_row, add, text = of_rows
    turns, is_one = make_turns(loss, width), width == 1

    def dual_rows(parts, squares, order, weights, dual, intercept, added, bare_numbers, is_far, bare, losses):
        """Do one step of each row of `order`; return the position in `order` of an invalid target or -1.

        Updates dual [T, N], weights, intercept and unknown (negative) `squares` in place; writes the loss of each row
        to `losses` [M]. `added` [N] is the intercept in the scores, zeros without one. `parts` are the operands of
        `rows_of`, bare_numbers and bare a `Numbers` and a `Scratch` as tuples, `is_far` (prefetch entries, prefetch
        weights).
        """
        rows, numbers, scratch = rows_of(parts), Numbers(*bare_numbers), Scratch(*bare)
        width, change = 1 if is_one else dual.shape[1], scratch.change
        for place in range(order.size):
            look_ahead(rows, order, place, weights, is_far)
            if is_far[0] and place + ENTRIES_AHEAD < order.size:
                ahead = np.uint64(order[place + ENTRIES_AHEAD])
                prefetch(dual, ahead * np.uint64(width))
                prefetch(squares, ahead)
            row = np.uint64(order[place])
            score(rows, row, weights, added, scratch.scores)
            take_target(scratch.target, 0, rows.targets, row)
            count = rows.counts[row] if rows.counts.size else numbers.one
            square = squares[row]
            if square < 0:
                square = squares.dtype.type(square_of_row(rows, row))
                squares[row] = square
            factor = (square + numbers.square) * numbers.scale
            losses[place], wrong = turns(dual, row, count, factor, numbers, scratch)
            if wrong >= 0:
                return place
            for n in range(width):
                dual[row, n] += change[0, n]
                change[0, n] *= numbers.scale
            add(rows, row, change, weights)
            if intercept.size:
                for n in range(width):
                    intercept[n] += change[0, n] * numbers.square
        return -1

    return _compiled(named(dual_rows, text, loss))


_compiled = njit(nogil=True, error_model="numpy", fastmath={"contract", "nsz"}, _nrt=False)


def climb(
    loss: str, of_rows: OfRows, x: tuple, weights: np.ndarray, call: DualCall, is_far: tuple[bool, ...]
) -> np.ndarray:
    """Run dual ascent on the rows `x` in place; return the loss of each row before its step, float64 [M].

    `weights` has the layout that `of_rows` takes; `is_far` states what exceeds a core's cache (entries, weights).
    Raises KernelError for an invalid target; the rows before it have had their steps.
    """
    return climber(loss, of_rows, x, weights, call, is_far)(call.order)


def climber(
    loss: str,
    of_rows: OfRows,
    x: tuple,
    weights: np.ndarray,
    call: DualCall,
    is_far: tuple[bool, ...],
) -> Callable[[np.ndarray], np.ndarray]:
    """Return `climb` with these arguments as a function of the row indices, int64 [M], which then replace `call.order`.

    What does not depend on the order is looked up once: it took as long as a hundred rows.
    """
    width, number = call.dual.shape[1], weights.dtype.type
    targets = call.targets.reshape(-1) if width == 1 else call.targets
    scores, slope, change = np.empty((3, 1, width), weights.dtype)
    scratch = np.empty((1, *targets.shape[1:]), targets.dtype), scores, slope, change
    has_intercept = call.intercept.size > 0
    added = call.intercept if has_intercept else np.zeros(width, weights.dtype)
    square = call.intercept_square if has_intercept else 0.0
    numbers = number(1), number(call.scale), number(square), number(curvature_of(loss))
    operands = weights, call.dual, call.intercept, added, numbers, is_far, scratch
    loop, parts, squares = make_loop(of_rows, loss, width), (*x, targets, call.counts), call.squares

    def run(order: np.ndarray) -> np.ndarray:
        """Do a step of each row of `order`, in place; return the losses before, float64 [M]."""
        losses = np.zeros(order.size)
        wrong = loop(parts, squares, order, *operands, losses)
        if wrong >= 0:
            row = order[wrong]
            raise wrong_label(row, call.targets[row], width)
        return losses

    return run


def cpu(loss: str, *args) -> np.ndarray:
    """Run dual ascent on CSR rows on one core, in place; return the loss of each row before its step, float64 [M].

    `args` are the operands of the kernel. Raises KernelError for invalid operands or targets.
    """
    return climber_of_csr(loss, *args)(args[6])


def climber_of_csr(loss: str, *args) -> Callable[[np.ndarray], np.ndarray]:
    """Return `cpu` with these operands as a function of the row indices `order`, int64 [M], for repeated calls.

    KernelError for invalid lengths, decay or intercept_square; other contents are not validated, in calls neither.
    """
    x, call = args[:3], DualCall(*args[3:]).checked()
    weights = call.weights
    programs = programs_for("sgd", weights.shape[1], weights.itemsize, 2)
    is_far = x[1].nbytes + x[2].nbytes > cache_bytes(2), weights.nbytes > cache_bytes(2)
    return bounds.with_bounds_check(climber(loss, of_csr(programs), x, weights, call, is_far), f"{loss}_dual_epoch")


def cost(loss: str, s: Sizes) -> Cost:
    """Return flops and bytes of one pass over s.R rows with the kernel `loss`, such as "logistic"."""
    flops = 4 * s.z * s.N + TURNS * (get_kernel(loss).cost(s).flops + 6 * s.R * s.N)
    moved = s.z * (s.index + s.value) + (s.R + 1) * s.index + 3 * s.R * s.N * s.value + 2 * s.U * s.N * s.value
    return Cost(flops, moved, 2 * s.z * s.N * s.value)


def arguments(loss: str, case: Case) -> tuple:
    """Build operands of a call from `case`: A of the case as X, each row about twice in `order`.

    Weights, dual variables, an intercept. Every second squared norm is unknown (-1).
    """
    order = np.random.default_rng(case.seed).integers(0, case.R, 2 * case.R + 1 if case.R else 0)
    _, targets, _ = get_kernel(loss).arguments(case)
    counts = 1 + case.dense(case.R, salt=9).clip(-1, 1) / 2
    x = case.indptr, case.indices, case.data
    arrays = case.dense(case.D, case.N, salt=4), case.dense(case.R, case.N, salt=5), case.dense(case.N)
    known = [
        reference_square(*(array[start:stop] for array in x[1:])) for start, stop in itertools.pairwise(case.indptr)
    ]
    squares = np.where(np.arange(case.R) % 2, known, -1.0).astype(case.dtype)
    return *x, targets, counts, squares, order, *arrays, 0.5, 0.25


def bind_loss(function: Callable, loss: str, names: list[str]) -> Callable:
    """Return `function` with `loss` as its first argument bound and the signature `names`."""
    implementation: Any = functools.partial(function, loss)
    functools.update_wrapper(implementation, function)
    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    implementation.__signature__ = inspect.Signature(parameters)
    return implementation


@functools.cache
def get(loss: str) -> Kernel:
    """Return the kernel `<loss>_dual_epoch`, cached; KernelError, with the known losses, for an unknown one."""
    block_of(loss)
    x = "indptr:i[T+1]^z indices:i[z]<D data:f[z]"
    return kernel_of(loss, f"{loss}_dual_epoch", x, (reference, cpu, cost, arguments))


def kernel_of(loss: str, name: str, x: str, functions: tuple[Callable, ...]) -> Kernel:
    """Return a `Kernel` called `name` for rows declared as `x`; `functions` are (reference, cpu, cost, arguments).

    Each of these takes the loss as its first argument.
    """
    kind = get_kernel(loss).operands.split()[1].partition(":")[2].replace("R", "T")
    rest = f"targets:{kind} counts:f[C] squares:f[T] order:l[M]<T"
    operands = f"{x} {rest} weights:f[D,N] dual:f[T,N] intercept:f[B] intercept_square:s decay:s"
    names = [operand.partition(":")[0] for operand in operands.split()]
    reference, cpu, cost, arguments = functions
    return Kernel(
        name=name,
        operands=operands,
        reference=bind_loss(reference, loss, names),
        cpu=bind_loss(cpu, loss, names),
        gpu=None,
        cost=functools.partial(cost, loss),
        arguments=functools.partial(arguments, loss),
        writes=("squares", "weights", "dual", "intercept"),
    )
