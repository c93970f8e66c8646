"""out = A @ x, A in CSC form, x dense.

Arguments  indptr int32|int64 [D+1] - column starts; indices same type [z]; data float32|float64 [z]; x same [D, N]
Writes     out [R, N], overwritten; nothing else changes
Assumes    0 <= indices < R; duplicates are summed; rows of a column may be unsorted
Cost       2*z*N flops; reads z*(index+value) + (D+1)*index + U*N*value bytes, writes R*N*value; grows with D
Parallel   N = 1: serial; rows sorted: over ranges of rows of out; N >= 32: over columns of x. Every element is
           summed in the order of the entries: same bits on every run and thread count
Limits     z < 2**63, R*N < 2**63
Source     Gustavson 1978, outer-product form; differs: a thread finds its entries of a column by bisection
"""

import numpy as np
from numba import prange

from kernels.contract import Case, Cost, Kernel, Sizes
from kernels.registry import register
from kernels.threads import LINE, clear, column_slices, compiled, compiled_parallel, equal_count, get_threads, is_serial

SEARCH_COST = 8
"""What finding a part's entries of a column costs, in stored entries."""


def reference(indptr, indices, data, x, out):
    """The definition, in plain loops."""
    out[...] = 0
    for c in range(indptr.size - 1):
        for k in range(indptr[c], indptr[c + 1]):
            for n in range(out.shape[1]):
                out[indices[k], n] += data[k] * x[c, n]


@compiled
def _columns(indptr, indices, data, x, out, first, last):
    """The columns `first` to `last` of out."""
    for c in range(indptr.size - 1):
        for k in range(np.uint64(indptr[c]), np.uint64(indptr[c + 1])):
            value, row = data[k], np.uint64(indices[k])
            for n in range(np.uint64(first), np.uint64(last)):
                out[row, n] += value * x[c, n]


@compiled
def _columns_of_one(indptr, indices, data, x, out):
    """`_columns` for N = 1."""
    for c in range(indptr.size - 1):
        for k in range(np.uint64(indptr[c]), np.uint64(indptr[c + 1])):
            out[np.uint64(indices[k])] += data[k] * x[c]


@compiled
def _first_from(indices, start, end, low):
    """The first place from `start` to `end` whose sorted index is not below `low`."""
    while start < end:
        middle = (start + end) // 2
        if indices[middle] < low:
            start = middle + 1
        else:
            end = middle
    return start


@compiled
def _rows(indptr, indices, data, x, out, low, high):
    """The rows `low` to `high` of out; rows of a column must be sorted."""
    for c in range(indptr.size - 1):
        k, end = np.int64(indptr[c]), np.int64(indptr[c + 1])
        k = _first_from(indices, k, end, low)
        while k < end and indices[k] < high:
            value, row = data[k], np.uint64(indices[k])
            for n in range(out.shape[1]):
                out[row, n] += value * x[c, n]
            k += 1


@compiled_parallel
def _rows_parallel(indptr, indices, data, x, out, bounds):
    for part in prange(bounds.size - 1):
        _rows(indptr, indices, data, x, out, bounds[part], bounds[part + 1])


@compiled_parallel
def _columns_parallel(indptr, indices, data, x, out, bounds):
    for part in prange(bounds.size - 1):
        _columns(indptr, indices, data, x, out, bounds[part], bounds[part + 1])


@compiled
def _is_sorted(indptr, indices):
    """Whether no row number falls inside a column: all falls of the whole are at the starts of columns."""
    falls = 0
    for k in range(indices.size - 1):
        falls += indices[k + 1] < indices[k]
    last = np.uint64(0)
    for c in range(indptr.size - 1):
        start = np.uint64(indptr[c])
        if start > last:  # an empty column starts where the next one does
            falls -= indices[start] < indices[start - np.uint64(1)]
            last = start
    return falls == 0


def _row_ranges(indices: np.ndarray, rows: int) -> np.ndarray:
    """One range of rows a thread, of about the same number of entries, judged by a sample: int64 [threads + 1]."""
    sample = np.sort(indices[:: max(indices.size // 4096, 1)])
    inner = sample[equal_count(sample.size, get_threads())[1:-1]]
    return np.concatenate(([0], inner, [rows])).astype(np.int64)


def cpu(indptr, indices, data, x, out):
    """On the cores of this machine."""
    clear(out)
    width, threads = out.shape[1], get_threads()
    work, searches = data.size * width, threads * (indptr.size - 1)
    if width == 1:
        _columns_of_one(indptr, indices, data, x.reshape(-1), out.reshape(-1))
    elif is_serial(work):
        _columns(indptr, indices, data, x, out, 0, width)
    elif SEARCH_COST * searches < work * (threads - 1) and _is_sorted(indptr, indices):
        _rows_parallel(indptr, indices, data, x, out, _row_ranges(indices, out.shape[0]))
    elif width >= 2 * LINE:
        _columns_parallel(indptr, indices, data, x, out, column_slices(width))
    else:
        _columns(indptr, indices, data, x, out, 0, width)


gpu = None


def cost(s: Sizes) -> Cost:
    """Each distinct row of x moves once; the result stays in the cache until it is written."""
    fixed = s.z * (s.index + s.value) + (s.D + 1) * s.index + s.R * s.N * s.value
    return Cost(2 * s.z * s.N, fixed + s.U * s.N * s.value, s.z * s.N * s.value)


def arguments(case: Case) -> tuple:
    """A.T has the columns of A for rows: the case's own arrays are taken for a matrix [D, R] in CSC form."""
    return case.indptr, case.indices, case.data, case.dense(case.R, case.N), case.garbage(case.D, case.N)


register(
    Kernel(
        name="csc_dense",
        operands="indptr:i[D+1] indices:i[z] data:f[z] x:f[D,N] out:f[R,N]",
        reference=reference,
        cpu=cpu,
        gpu=gpu,
        cost=cost,
        arguments=arguments,
    )
)
