"""out = A @ x, A in COO form, entries in any order, x dense.

Arguments  row int32|int64 [z]; col same type [z]; data float32|float64 [z]; x same [D, N]
Writes     out [R, N], overwritten; nothing else changes
Assumes    0 <= row < R, 0 <= col < D; duplicates are summed
Cost       2*z*N flops; reads z*(2*index+value) + U*N*value bytes, writes R*N*value
Parallel   rows sorted: over entries, cut between rows; else N >= 32: over columns of x; else serial. Every element is
           summed in the order of the entries: same bits on every run and thread count
Limits     z < 2**63, R*N < 2**63
Source     Definition of the coordinate form
"""

import numpy as np
from numba import prange

from kernels.contract import Case, Cost, Kernel, Sizes
from kernels.registry import register
from kernels.threads import (
    LINE,
    clear,
    column_slices,
    compiled,
    compiled_parallel,
    equal_count,
    is_serial,
    parts,
)


def reference(row, col, data, x, out):
    """The definition, in plain loops."""
    out[...] = 0
    for k in range(data.size):
        for n in range(out.shape[1]):
            out[row[k], n] += data[k] * x[col[k], n]


@compiled
def _entries(row, col, data, x, out, first, last):
    """The columns `first` to `last` of out."""
    for k in range(data.size):
        value, r, c = data[k], np.uint64(row[k]), np.uint64(col[k])
        for n in range(np.uint64(first), np.uint64(last)):
            out[r, n] += value * x[c, n]


@compiled
def _entries_of_one(row, col, data, x, out):
    """`_entries` for N = 1."""
    for k in range(data.size):
        out[np.uint64(row[k])] += data[k] * x[np.uint64(col[k])]


@compiled_parallel
def _entries_parallel(row, col, data, x, out, bounds):
    for i in prange(bounds.size - 1):
        part = slice(bounds[i], bounds[i + 1])
        _entries(row[part], col[part], data[part], x, out, 0, out.shape[1])


@compiled_parallel
def _entries_of_one_parallel(row, col, data, x, out, bounds):
    for i in prange(bounds.size - 1):
        part = slice(bounds[i], bounds[i + 1])
        _entries_of_one(row[part], col[part], data[part], x, out)


@compiled_parallel
def _columns_parallel(row, col, data, x, out, bounds):
    for part in prange(bounds.size - 1):
        _entries(row, col, data, x, out, bounds[part], bounds[part + 1])


@compiled
def _is_sorted(row):
    falls = 0
    for k in range(row.size - 1):
        falls += row[k + 1] < row[k]
    return falls == 0


def _between_rows(row: np.ndarray) -> np.ndarray:
    """Parts of about the same number of entries that share no row; rows are sorted: int64 [parts + 1]."""
    bounds = equal_count(row.size, parts())
    bounds[1:-1] = np.searchsorted(row, row[bounds[1:-1]])
    return bounds


def cpu(row, col, data, x, out):
    """On the cores of this machine."""
    clear(out)
    width = out.shape[1]
    serial = is_serial(data.size * width)
    by_row = not serial and _is_sorted(row)
    if width == 1:
        x, out = x.reshape(-1), out.reshape(-1)
        if by_row:
            _entries_of_one_parallel(row, col, data, x, out, _between_rows(row))
        else:
            _entries_of_one(row, col, data, x, out)
    elif by_row:
        _entries_parallel(row, col, data, x, out, _between_rows(row))
    elif not serial and width >= 2 * LINE:
        _columns_parallel(row, col, data, x, out, column_slices(width))
    else:
        _entries(row, col, data, x, out, 0, width)


gpu = None


def cost(s: Sizes) -> Cost:
    """Each distinct row of x moves once; the result stays in the cache until it is written."""
    fixed = s.z * (2 * s.index + s.value) + s.R * s.N * s.value
    return Cost(2 * s.z * s.N, fixed + s.U * s.N * s.value, s.z * s.N * s.value)


def arguments(case: Case) -> tuple:
    """The entries of A, in an order that no format has where the seed is odd."""
    row = np.repeat(np.arange(case.R, dtype=case.indices.dtype), np.diff(case.indptr))
    order = np.random.default_rng(case.seed).permutation(row.size) if case.seed % 2 else slice(None)
    x, out = case.dense(case.D, case.N), case.garbage(case.R, case.N)
    return row[order], case.indices[order], case.data[order], x, out


register(
    Kernel(
        name="coo_dense",
        operands="row:i[z] col:i[z] data:f[z] x:f[D,N] out:f[R,N]",
        reference=reference,
        cpu=cpu,
        gpu=gpu,
        cost=cost,
        arguments=arguments,
    )
)
