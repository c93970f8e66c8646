"""Dense columns one by one, each by its step on a quadratic with an L1 penalty: those of `kernels.epochs.l1_csc`.

Arguments  x float32|float64 [D, T], the transpose of X, so that a column of X lies in one piece; all that follows as in
           `kernels.epochs.l1_csc`
Writes     pulls, weights, shift and history[k], the weights of the columns after sweep k; returns (sweeps done, the sum
           of squares * change**2 over the last one). K sweeps are done, or fewer if that sum is at most `enough`
Assumes    pulls + shift * curvature sum up to 0: the intercept follows each step
Cost       a sweep: 2*T flops for each column, 5*T where weights change; reads X and pulls once or twice, and curvature
Parallel   not: each column reads what the one before it wrote; same bits on every run
Limits     T*D < 2**63; sums are float64 whatever the data are
Source     as `kernels.epochs.l1_csc`
"""

import functools

import numpy as np
from numba import prange

from kernels.code_cache import inlined
from kernels.contract import Case, Cost, Kernel, Sizes
from kernels.epochs.l1_csc import STATE, WRITES, make_steps, reference_sweeps, state_of
from kernels.registry import get as get_kernel
from kernels.threads import call_parallel, compiled, compiled_parallel, equal_count, parts


def reference(x, columns, curvature, pulls, sums, squares, weights, shift, history, l1, decay, total, enough):
    """Compute the sweeps in plain loops. Writes pulls, weights, shift, history; returns (sweeps, moved by the last)."""
    rest = curvature, pulls, sums, squares, weights, shift, history, l1, decay, total, enough
    return reference_sweeps(lambda j: x[j].astype(np.float64), columns, *rest)


@inlined
def dot(x, j, pulls):
    """Return the product, float64, of row j of x [D, T] and pulls [T], in a fixed order: 16 sums for the vectors."""
    column = x[j]
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = b0 = b1 = b2 = b3 = b4 = b5 = b6 = b7 = 0.0
    last = np.uint64(pulls.size)
    whole = last // np.uint64(16) * np.uint64(16)
    for k in range(np.uint64(0), whole, np.uint64(16)):
        a0 += np.float64(column[k]) * pulls[k]
        a1 += np.float64(column[k + np.uint64(1)]) * pulls[k + np.uint64(1)]
        a2 += np.float64(column[k + np.uint64(2)]) * pulls[k + np.uint64(2)]
        a3 += np.float64(column[k + np.uint64(3)]) * pulls[k + np.uint64(3)]
        a4 += np.float64(column[k + np.uint64(4)]) * pulls[k + np.uint64(4)]
        a5 += np.float64(column[k + np.uint64(5)]) * pulls[k + np.uint64(5)]
        a6 += np.float64(column[k + np.uint64(6)]) * pulls[k + np.uint64(6)]
        a7 += np.float64(column[k + np.uint64(7)]) * pulls[k + np.uint64(7)]
        b0 += np.float64(column[k + np.uint64(8)]) * pulls[k + np.uint64(8)]
        b1 += np.float64(column[k + np.uint64(9)]) * pulls[k + np.uint64(9)]
        b2 += np.float64(column[k + np.uint64(10)]) * pulls[k + np.uint64(10)]
        b3 += np.float64(column[k + np.uint64(11)]) * pulls[k + np.uint64(11)]
        b4 += np.float64(column[k + np.uint64(12)]) * pulls[k + np.uint64(12)]
        b5 += np.float64(column[k + np.uint64(13)]) * pulls[k + np.uint64(13)]
        b6 += np.float64(column[k + np.uint64(14)]) * pulls[k + np.uint64(14)]
        b7 += np.float64(column[k + np.uint64(15)]) * pulls[k + np.uint64(15)]
    for k in range(whole, last):
        a0 += np.float64(column[k]) * pulls[k]
    return (((a0 + b0) + (a4 + b4)) + ((a1 + b1) + (a5 + b5))) + (((a2 + b2) + (a6 + b6)) + ((a3 + b3) + (a7 + b7)))


@inlined
def add_weighted(x, j, factor, curvature, pulls):
    """Add factor * curvature [T] * row j of x [D, T] to pulls [T], in place."""
    column = x[j]
    for k in range(pulls.size):
        pulls[k] += factor * column[k] * curvature[k]


_steps = make_steps(dot, add_weighted, "dense")


def cpu(x, columns, curvature, pulls, sums, squares, weights, shift, history, l1, decay, total, enough):
    """Run the sweeps on one core. Writes pulls, weights, shift and history; returns (sweeps, moved by the last)."""
    counts, numbers = np.zeros(2), (float(l1), float(decay), float(total), float(enough))
    _steps(x, columns, curvature, pulls, sums, squares, weights, shift, history, *numbers, counts)
    return int(counts[0]), float(counts[1])


@compiled_parallel
def _write_pulled(x, columns, slopes, out, bounds):
    """Write to out [M] the products of the columns and slopes [T]; part p is out[bounds[p]:bounds[p + 1]]."""
    for part in prange(bounds.size - 1):
        for place in range(bounds[part], bounds[part + 1]):
            out[place] = dot(x, np.uint64(columns[place]), slopes)


@compiled_parallel
def _write_curvature(x, columns, curvature, sums, squares, bounds):
    """Write the sums of curvature * x and curvature * x**2 of the columns to sums, squares [D]."""
    for part in prange(bounds.size - 1):
        for place in range(bounds[part], bounds[part + 1]):
            j = np.uint64(columns[place])
            column, firsts, seconds = x[j], np.zeros(8), np.zeros(8)
            whole = curvature.size // 8 * 8
            for k in range(0, whole, 8):
                for lane in range(8):
                    value = np.float64(column[np.uint64(k + lane)])
                    weighted = curvature[np.uint64(k + lane)] * value
                    firsts[lane] += weighted
                    seconds[lane] += weighted * value
            for k in range(whole, curvature.size):
                weighted = curvature[k] * np.float64(column[k])
                firsts[0] += weighted
                seconds[0] += weighted * column[k]
            first = second = 0.0
            for lane in range(8):
                first += firsts[lane]
                second += seconds[lane]
            sums[j], squares[j] = first, second


@compiled
def _add_scores(x, columns, changes, scores):
    """Add the columns times changes [M] to scores [T], in place."""
    for place in range(columns.size):
        column, change = x[np.uint64(columns[place])], changes[place]
        if change != 0.0:
            for k in range(scores.size):
                scores[k] += change * column[k]


class DenseColumns:
    """Dense X of which the transpose x [D, T] is C-contiguous, as coordinate descent reads it; nothing is copied."""

    def __init__(self, x: np.ndarray) -> None:
        """Keep the array."""
        self.parts, self.rows, self.columns, self.kernel = (x,), x.shape[1], x.shape[0], get()

    def pulled(self, columns: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        """Return the products [M], float64, of the columns and slopes [T]."""
        out, work = np.empty(len(columns)), len(columns) * self.rows
        call_parallel(_write_pulled, work, *self.parts, columns, slopes, out, equal_count(len(columns), parts()))
        return out

    def write_curvature(
        self, columns: np.ndarray, curvature: np.ndarray, sums: np.ndarray, squares: np.ndarray
    ) -> None:
        """Write the sums of curvature * x and curvature * x**2 of the columns to sums, squares [D]."""
        operands = columns, curvature, sums, squares, equal_count(len(columns), parts())
        call_parallel(_write_curvature, len(columns) * self.rows, *self.parts, *operands)

    def add_scores(self, columns: np.ndarray, changes: np.ndarray, scores: np.ndarray) -> None:
        """Add the columns times changes [M] to scores [T], in place."""
        _add_scores(*self.parts, columns, changes, scores)


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a sweep over s.D columns in which all weights change."""
    return Cost(7 * s.R * s.D, s.R * s.D * s.value + 3 * 8 * s.R + 4 * 8 * s.D)


def arguments(case: Case) -> tuple:
    """Build operands of a call from `case`: A of the case is the transpose of X."""
    x = case.garbage(case.R, case.D)
    get_kernel("csr_to_dense").reference(case.indptr, case.indices, case.data, x)
    return x, *state_of(case.D, DenseColumns(x), case.seed)


@functools.cache
def get() -> Kernel:
    """Return the kernel `l1_steps_dense`, cached."""
    return Kernel("l1_steps_dense", f"x:f[D,T] {STATE}", reference, cpu, None, cost, arguments, WRITES)
