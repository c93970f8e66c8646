"""Dense rows one by one, each by a step of its dual variables: those of `kernels.epochs.dual`, whose text says which.

Arguments  x float32|float64 [T, D]; all that follows as in `kernels.epochs.dual`: targets, counts, squares, order,
           weights [D, N], dual [T, N], intercept, intercept_square, decay
Writes     weights, dual, intercept, squares that were not known of rows that come; nothing else changes; returns the
           losses, float64 [M]: of each row before its step
Assumes    N >= 1; a target out of range is refused when the rows before it have had their steps
Cost       a row: 4*D*N flops and up to `TURNS` times the loss and 6*N; reads it, its target and dual variables and all
           weights, and writes the last two
Parallel   not: each row reads what the one before it wrote; same bits on every run
Limits     T*D < 2**63, D*N < 2**63; memory besides the arguments is the weights again where N is less than a vector,
           4 rows of N numbers and the losses
Source     as `kernels.epochs.dual`; differs: weights of few outputs are held as [N, D] in a call, so that the lanes of
           a vector are neighbouring columns
"""

import functools
from typing import NamedTuple

import numpy as np

from kernels.code_cache import inlined
from kernels.contract import Case, Cost, Kernel, Sizes
from kernels.epochs import dual
from kernels.epochs.dual import TURNS, DualCall, OfRows, sum_of_squares
from kernels.epochs.programs import adding
from kernels.loss_blocks import block_of
from kernels.registry import get as get_kernel
from kernels.vector.gather import RowLoop
from kernels.vector.lanes import emit_row, prefetch
from kernels.vector.tiles import LINE, Cut, Tile, cache_bytes, cut_elements, cut_sums, full_lanes

IN_FLIGHT = 4
"""Vectors of a row that are multiplied side by side."""

BYTES_AHEAD = 4096
"""Bytes of rows that are asked for ahead of their use, and a row of so many columns at most."""


class Rows(NamedTuple):
    """The rows that are trained on, how many ahead of its use one is asked for, their targets and counts."""

    x: np.ndarray
    ahead: int
    targets: np.ndarray
    counts: np.ndarray


def reference(loss: str, *args) -> np.ndarray:
    """Run the reference of dual ascent on CSR rows that store every element of the dense X; return losses [M]."""
    x = args[0]
    rows, columns = x.shape
    csr = np.arange(rows + 1) * columns, np.tile(np.arange(columns), rows), x.reshape(-1)
    return dual.reference(loss, *csr, *args[1:])


def cut_row(columns: int, itemsize: int) -> Cut:
    """Return the cut of a row of `columns` columns of `itemsize` bytes: full registers, `IN_FLIGHT` of them at once."""
    lanes, bits = full_lanes(8 * itemsize), 8 * itemsize
    most = IN_FLIGHT * lanes
    rest = (columns - 1) % most + 1
    full = Tile(bits, lanes, IN_FLIGHT, masked=False) if columns > most else None
    return Cut(full, Tile(bits, lanes, -(-rest // lanes), masked=rest % lanes != 0))


def _dot(lane, n, row, x, weights, scores):
    """Emit code: scores[n] += x[row] @ weights[n], for weights [N, D]; vectors run along the columns."""

    def block(j, sums):
        """Return the sums plus the products of the columns of one tile, from column j on."""
        pairs = zip(x.row(row, j).load(), weights.row(n, j).load(), sums, strict=False)
        added = [value.times_plus(weight, total) for value, weight, total in pairs]
        return [*added, *sums[len(added) :]]

    sums = lane.blocks(block, [lane.float(lane.zeros())] * IN_FLIGHT)
    lane.mask = None  # sums of lanes beyond the edge have stayed what they were
    scores[n] = scores[n] + lane.total(sums)


def _score(lane, q, row, x, weights, intercept, scores):
    """Emit code: scores[q] = x[row] @ weights + intercept, for weights [D, N]; vectors run along the outputs."""
    start = row * x.columns

    def block(j, _):
        """Emit the scores of the outputs of one tile, from output j on; `_` is unused."""
        term = lambda k: (x[start + k], weights.row(k, j))  # noqa: E731
        total = lane.sum(lane.integer(0), x.columns, term, x.columns - 1)
        added = intercept.row(lane.integer(0), j).load()
        scores.row(q, j).store([one + other for one, other in zip(total, added, strict=True)])

    lane.blocks(block)


_DOTS, _SCORES = RowLoop(_dot, name="dual_dot"), RowLoop(_score, name="dual_score")


def _rows_of(parts):
    """Return the tuple (x, rows to prefetch ahead, targets, counts) as a `Rows`, inside compiled code."""
    return Rows(*parts)


def _look_ahead(rows, order, place, weights, is_far):
    """Prefetch the row that comes `rows.ahead` places after `place` in `order`, if is_far[0] and there is one.

    `weights` is unused.
    """
    if is_far[0] and place + rows.ahead < order.size:
        first = np.uint64(order[place + rows.ahead]) * np.uint64(rows.x.shape[1])
        step = np.uint64(LINE // rows.x.itemsize)
        for k in range(np.uint64(0), np.uint64(rows.x.shape[1]), step):
            prefetch(rows.x, first + k)


def _square(rows, row):
    """Return the squared 2-norm of row `row` of X [T, D], summed in float64."""
    return sum_of_squares(rows.x[row], 0, rows.x.shape[1])


@functools.cache
def of_columns(columns: int, itemsize: int) -> OfRows:
    """Return the compiled row functions for weights [N, D], vectors along the `columns`; cached."""
    cut = cut_row(columns, itemsize)
    dot, add_row = _DOTS.code(cut), adding(cut)

    def score(rows, row, weights, added, scores):
        """Write weights @ x[row] + added to scores[0] [N]."""
        for n in range(weights.shape[0]):
            scores[0, n] = added[n]
            emit_row(dot, n, weights.shape[1], (row, rows.x, weights, scores))

    def add(rows, row, change, weights):
        """Add the outer product of change[0] [N] and x[row] to the weights [N, D], in place."""
        for n in range(weights.shape[0]):
            emit_row(add_row, n, weights.shape[1], (change[0, n], rows.x, row, weights))

    return OfRows(
        inlined(_rows_of),
        inlined(_look_ahead),
        inlined(score),
        inlined(_square),
        inlined(add),
        f"columns {dot} {add_row}",
    )


@functools.cache
def of_outputs(width: int, itemsize: int) -> OfRows:
    """Return the compiled row functions for weights [D, N], vectors along the `width` outputs; cached."""
    score_row, add_element = _SCORES.code(cut_sums(width, itemsize)), adding(cut_elements(width, itemsize))

    def score(rows, row, weights, added, scores):
        """Write x[row] @ weights + added to scores[0] [N]."""
        emit_row(score_row, 0, weights.shape[1], (row, rows.x, weights, added, scores))

    def add(rows, row, change, weights):
        """Add the outer product of x[row] and change[0] [N] to the weights [D, N], in place."""
        for k in range(weights.shape[0]):
            emit_row(add_element, k, weights.shape[1], (rows.x[row, k], change, 0, weights))

    return OfRows(
        inlined(_rows_of),
        inlined(_look_ahead),
        inlined(score),
        inlined(_square),
        inlined(add),
        f"outputs {score_row} {add_element}",
    )


def cpu(loss: str, *args) -> np.ndarray:
    """Run dual ascent on dense rows on one core, in place; return the loss of each row before its step, float64 [M].

    `args` are the operands of the kernel. Few outputs: the weights are transposed to [N, D] and copied back at the end,
    also after an error. Raises KernelError for invalid operands or targets.
    """
    x, call = args[0], DualCall(*args[1:]).checked()
    weights, bytes_row = call.weights, max(x.shape[1] * x.itemsize, 1)
    rows, is_far = (x, max(BYTES_AHEAD // bytes_row, 1)), (x.nbytes > cache_bytes(2),)
    columns, width = weights.shape
    if not columns or width >= full_lanes(8 * weights.itemsize):
        return dual.climb(loss, of_outputs(width, weights.itemsize), rows, weights, call, is_far)
    turned = np.ascontiguousarray(weights.T)  # [N, D]
    try:
        return dual.climb(loss, of_columns(columns, weights.itemsize), rows, turned, call, is_far)
    finally:
        weights[...] = turned.T


def cost(loss: str, s: Sizes) -> Cost:
    """Return flops and bytes of one pass over s.R dense rows with the kernel `loss`, such as "logistic"."""
    flops = 4 * s.R * s.D * s.N + TURNS * (get_kernel(loss).cost(s).flops + 6 * s.R * s.N)
    moved = s.R * s.D * s.value + 3 * s.R * s.N * s.value + 2 * s.D * s.N * s.value
    return Cost(flops, moved, 2 * s.R * s.D * s.N * s.value)


def arguments(loss: str, case: Case) -> tuple:
    """Build operands of a call from `case`: A of the case as dense rows, each about twice in `order`.

    Weights, dual variables, intercept.
    """
    x = case.garbage(case.R, case.D)
    get_kernel("csr_to_dense").reference(case.indptr, case.indices, case.data, x)
    _, _, _, *rest = dual.arguments(loss, case)
    return x, *rest


@functools.cache
def get(loss: str) -> Kernel:
    """Return the kernel `<loss>_dual_epoch_dense`, cached; KernelError, with the known losses, for an unknown one."""
    block_of(loss)
    return dual.kernel_of(loss, f"{loss}_dual_epoch_dense", "x:f[T,D]", (reference, cpu, cost, arguments))
