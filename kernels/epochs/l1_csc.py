"""Columns one by one, each by its step on a quadratic with an L1 penalty: w = shrink(g + q w, l1) / (q + decay).

Arguments  indptr int32|int64 [D+1] - column starts; indices same type [z], rows; data float32|float64 [z]: X in CSC
           form; columns int64 [M], the columns of a sweep; curvature float64 [T], what multiplies the squared change of
           the score of each row; pulls float64 [T], the negative gradient of the quadratic by the scores; sums, squares
           float64 [D], of each column the sum of curvature * x and of curvature * x**2, the latter less
           sums**2 / total with an intercept; weights float64 [D]; shift float64 [1], or [0] without an intercept;
           history float64 [K, M]; l1, decay, total >= 0, total the sum of curvature; enough
Writes     pulls, weights, shift and history[k], the weights of the columns after sweep k; returns (sweeps done, the sum
           of squares * change**2 over the last one). K sweeps are done, or fewer if that sum is at most `enough`
Assumes    duplicates are summed, rows of a column may be unsorted; pulls + shift * curvature sum up to 0: the intercept
           follows each step
Cost       a sweep: 4*z flops and 8 for each column, 5*z more if all weights change; reads the entries and pulls once
           or twice, and curvature once
Parallel   not: each column reads what the one before it wrote; same bits on every run
Limits     z < 2**63; sums are float64 whatever the data are
Source     Friedman, Hastie and Tibshirani 2010, "Regularization paths for generalized linear models via coordinate
           descent"; differs: the intercept is eliminated, so that columns with a mean converge as centred ones do
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import prange

from kernels.code_cache import inlined, njit
from kernels.contract import Case, Cost, Kernel, Sizes
from kernels.epochs.loops import named
from kernels.threads import call_parallel, compiled, compiled_parallel, equal_cost, parts


def reference_column(column: np.ndarray, j: int, state: tuple, l1: float, decay: float, total: float) -> float:
    """Do the step of column j, dense [T], in place; return squares * change**2. `state` are curvature to shift."""
    curvature, pulls, sums, squares, weights, shift = state
    if not squares[j] > 0:
        return 0.0
    own = weights[j]
    pull = float(column @ pulls) + (float(shift[0]) * sums[j] if shift.size else 0.0) + squares[j] * own
    weights[j] = np.sign(pull) * max(abs(pull) - l1, 0.0) / (squares[j] + decay)
    change = weights[j] - own
    pulls -= change * curvature * column
    if shift.size:
        shift[0] += change * sums[j] / total
    return float(squares[j] * change * change)


def reference_sweeps(column_of: Callable[[int], np.ndarray], columns: np.ndarray, *rest: Any) -> tuple[int, float]:
    """Do the sweeps of the kernel in plain loops; `column_of(j)` is column j, dense float64 [T]."""
    *state, history, l1, decay, total, enough = rest
    moved, sweep = 0.0, 0
    for sweep in range(1, len(history) + 1):
        moved = 0.0
        for place, j in enumerate(columns):
            moved += reference_column(column_of(j), j, tuple(state), l1, decay, total)
            history[sweep - 1, place] = state[4][j]
        if moved <= enough:
            break
    return sweep, moved


def reference(
    indptr, indices, data, columns, curvature, pulls, sums, squares, weights, shift, history, l1, decay, total, enough
):
    """Compute the sweeps in plain loops. Writes pulls, weights, shift, history; returns (sweeps, moved by the last)."""

    def column_of(j: int) -> np.ndarray:
        """Return column j, dense."""
        column = np.zeros(len(pulls))
        np.add.at(column, indices[indptr[j] : indptr[j + 1]], data[indptr[j] : indptr[j + 1]].astype(np.float64))
        return column

    rest = curvature, pulls, sums, squares, weights, shift, history, l1, decay, total, enough
    return reference_sweeps(column_of, columns, *rest)


@inlined
def dot(x, j, pulls):
    """Return the product, float64, of column j of x (indptr, indices, data) and pulls [T], in a fixed order."""
    indptr, indices, data = x
    a = b = c = d = 0.0
    first, last = np.uint64(indptr[j]), np.uint64(indptr[j + np.uint64(1)])
    whole = first + (last - first) // np.uint64(4) * np.uint64(4)
    for k in range(first, whole, np.uint64(4)):
        a += data[k] * pulls[np.uint64(indices[k])]
        b += data[k + np.uint64(1)] * pulls[np.uint64(indices[k + np.uint64(1)])]
        c += data[k + np.uint64(2)] * pulls[np.uint64(indices[k + np.uint64(2)])]
        d += data[k + np.uint64(3)] * pulls[np.uint64(indices[k + np.uint64(3)])]
    for k in range(whole, last):
        a += data[k] * pulls[np.uint64(indices[k])]
    return (a + b) + (c + d)


@inlined
def add_weighted(x, j, factor, curvature, pulls):
    """Add factor * curvature [T] * column j of x to pulls [T], in place."""
    indptr, indices, data = x
    for k in range(np.uint64(indptr[j]), np.uint64(indptr[j + np.uint64(1)])):
        row = np.uint64(indices[k])
        pulls[row] += factor * data[k] * curvature[row]


def make_steps(dot: Callable, add_weighted: Callable, storage: str) -> Callable:
    """Return the compiled sweeps of the kernel for columns read by `dot` and stepped by `add_weighted`."""

    def l1_steps(
        x, columns, curvature, pulls, sums, squares, weights, shift, history, l1, decay, total, enough, counts
    ):
        """Do the sweeps, in place; write (sweeps, moved by the last) to counts [2]."""
        has_intercept = shift.size > 0
        moved, sweep = 0.0, 0
        while sweep < history.shape[0]:
            moved = 0.0
            added = shift[0] if has_intercept else 0.0
            for place in range(columns.size):
                j = np.uint64(columns[place])
                square, own = squares[j], weights[j]
                if square > 0.0:
                    pull = dot(x, j, pulls) + added * sums[j] + square * own
                    new = 0.0
                    if pull > l1:
                        new = (pull - l1) / (square + decay)
                    elif pull < -l1:
                        new = (pull + l1) / (square + decay)
                    elif pull != pull:
                        new = pull
                    change = new - own
                    if change != 0.0:
                        weights[j] = new
                        add_weighted(x, j, -change, curvature, pulls)
                        if has_intercept:
                            added += change * sums[j] / total
                        moved += square * change * change
                history[sweep, place] = weights[j]
            if has_intercept:
                shift[0] = added
            sweep += 1
            if moved <= enough:
                break
        counts[0], counts[1] = sweep, moved

    return njit(nogil=True, error_model="numpy", fastmath={"contract", "nsz"}, _nrt=False)(named(l1_steps, storage))


_steps = make_steps(dot, add_weighted, "csc")


def cpu(
    indptr, indices, data, columns, curvature, pulls, sums, squares, weights, shift, history, l1, decay, total, enough
):
    """Run the sweeps on one core. Writes pulls, weights, shift and history; returns (sweeps, moved by the last)."""
    counts, numbers = np.zeros(2), (float(l1), float(decay), float(total), float(enough))
    x, state = (indptr, indices, data), (curvature, pulls, sums, squares, weights, shift)
    _steps(x, columns, *state, history, *numbers, counts)
    return int(counts[0]), float(counts[1])


# What the descent reads of columns besides, each with one writer for each result: same bits at every thread count.


@compiled_parallel
def _write_pulled(indptr, indices, data, columns, slopes, out, bounds):
    """Write to out [M] the products of the columns and slopes [T]; part p is out[bounds[p]:bounds[p + 1]]."""
    for part in prange(bounds.size - 1):
        for place in range(bounds[part], bounds[part + 1]):
            out[place] = dot((indptr, indices, data), np.uint64(columns[place]), slopes)


@compiled_parallel
def _write_curvature(indptr, indices, data, columns, curvature, sums, squares, bounds):
    """Write the sums of curvature * x and curvature * x**2 of the columns to sums, squares [D]."""
    for part in prange(bounds.size - 1):
        for place in range(bounds[part], bounds[part + 1]):
            j, first, second = np.uint64(columns[place]), 0.0, 0.0
            for k in range(np.uint64(indptr[j]), np.uint64(indptr[j + np.uint64(1)])):
                value = np.float64(data[k])
                weighted = curvature[np.uint64(indices[k])] * value
                first += weighted
                second += weighted * value
            sums[j], squares[j] = first, second


@compiled
def _add_scores(indptr, indices, data, columns, changes, scores):
    """Add the columns times changes [M] to scores [T], in place."""
    for place in range(columns.size):
        j, change = np.uint64(columns[place]), changes[place]
        if change != 0.0:
            for k in range(np.uint64(indptr[j]), np.uint64(indptr[j + np.uint64(1)])):
                scores[np.uint64(indices[k])] += change * data[k]


class CscColumns:
    """X in CSC form, of `rows` rows, as coordinate descent reads it; nothing is copied.

    `parts` are indptr, indices and data, whose contents were validated before.
    """

    def __init__(self, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, rows: int) -> None:
        """Keep the arrays."""
        self.parts, self.rows, self.columns = (indptr, indices, data), rows, len(indptr) - 1
        self.kernel = get()

    def bounds(self, columns: np.ndarray) -> tuple[np.ndarray, int]:
        """Return parts of equal cost of the columns [M], and the entries of all."""
        lengths = np.diff(self.parts[0])[columns] if len(columns) < self.columns else np.diff(self.parts[0])
        starts = np.zeros(len(columns) + 1, np.int64)
        np.cumsum(lengths, out=starts[1:])
        return equal_cost(starts, parts()), int(starts[-1])

    def pulled(self, columns: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        """Return the products [M], float64, of the columns and slopes [T]."""
        out = np.empty(len(columns))
        bounds, work = self.bounds(columns)
        call_parallel(_write_pulled, 2 * work, *self.parts, columns, slopes, out, bounds)
        return out

    def write_curvature(
        self, columns: np.ndarray, curvature: np.ndarray, sums: np.ndarray, squares: np.ndarray
    ) -> None:
        """Write the sums of curvature * x and curvature * x**2 of the columns to sums, squares [D]."""
        bounds, work = self.bounds(columns)
        call_parallel(_write_curvature, 2 * work, *self.parts, columns, curvature, sums, squares, bounds)

    def add_scores(self, columns: np.ndarray, changes: np.ndarray, scores: np.ndarray) -> None:
        """Add the columns times changes [M] to scores [T], in place."""
        _add_scores(*self.parts, columns, changes, scores)


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a sweep over s.D columns in which all weights change."""
    return Cost(9 * s.z + 8 * s.D, s.z * (s.index + s.value) + 3 * 8 * s.R + 4 * 8 * s.D, 3 * 8 * s.z)


def state_of(rows: int, columns_of: Any, seed: int) -> tuple:
    """Build all operands after X for `rows` rows and X as the descent reads it, all columns but one in a sweep."""
    generator, count = np.random.default_rng(seed), columns_of.columns
    columns = np.sort(generator.permutation(count)[: max(count - 1, 0)])
    curvature, pulls = generator.random(rows), generator.standard_normal(rows)
    total = max(float(curvature.sum()), 1e-9)
    pulls -= curvature * (pulls.sum() / total)
    sums, squares = np.zeros((2, count))
    columns_of.write_curvature(np.arange(count), curvature, sums, squares)
    squares -= sums**2 / total
    squares[squares < 1e-9] = 0
    state = columns, curvature, pulls, sums, squares, generator.standard_normal(count) / 9, np.zeros(1)
    return *state, np.zeros((3, len(columns))), 0.05, 0.1, total, 0.0


def arguments(case: Case) -> tuple:
    """Build operands of a call from `case`: X is the transpose of A, whose rows are the columns, without duplicates."""
    order = np.lexsort((case.indices, np.repeat(np.arange(case.R), np.diff(case.indptr))))
    columns, rows = np.repeat(np.arange(case.R), np.diff(case.indptr))[order], case.indices[order]
    is_first = np.ones(len(rows), bool)
    is_first[1:] = (columns[1:] != columns[:-1]) | (rows[1:] != rows[:-1])
    indptr = np.searchsorted(columns[is_first], np.arange(case.R + 1)).astype(case.indptr.dtype)
    x = indptr, rows[is_first], case.data[order][is_first]
    return *x, *state_of(case.D, CscColumns(*x, case.D), case.seed)


STATE = (
    "columns:l[M]<D curvature:d[T] pulls:d[T] sums:d[D] squares:d[D] weights:d[D] shift:d[S] history:d[K,M] "
    "l1:s decay:s total:s enough:s"
)
"""The declaration of the operands after X."""
WRITES = ("pulls", "weights", "shift", "history")


@functools.cache
def get() -> Kernel:
    """Return the kernel `l1_steps_csc`, cached."""
    operands = f"indptr:i[D+1]^z indices:i[z]<T data:f[z] {STATE}"
    return Kernel("l1_steps_csc", operands, reference, cpu, None, cost, arguments, WRITES)
