"""(indptr, indices, data) of the values of a dense matrix that are not zero, NaN included.

Arguments  dense float32|float64 [R, D]
Writes     nothing; returns new arrays indptr [R+1], indices [z], data [z]; int32, or int64 if D or z needs it
Assumes    nothing; columns come out sorted and unique, and neither 0.0 nor -0.0 is stored
Cost       no flops, 2*R*D comparisons; reads 2*R*D*value bytes, writes z*(index+value) + (R+1)*index
Parallel   over rows, in parts of equal height: one pass counts, one fills; the result is unique
Limits     R*D < 2**63; the int32 to int64 switch is tested with the limit lowered
Source     Two-pass compression; the fill stores every value and moves on only past those that count, without a branch
"""

import numpy as np
from numba import prange

from kernels.contract import Case, Cost, Kernel, Sizes
from kernels.plan import index_type
from kernels.registry import register
from kernels.threads import compiled, compiled_parallel, equal_count, is_serial, parts


def reference(dense):
    """The definition, in plain loops."""
    entries = [(r, c) for r in range(dense.shape[0]) for c in range(dense.shape[1]) if dense[r, c] != 0]
    kind = index_type(max(len(entries), dense.shape[1]))
    indptr = np.zeros(dense.shape[0] + 1, kind)
    for r, _ in entries:
        for later in range(r, dense.shape[0]):
            indptr[later + 1] += 1
    return indptr, np.array([c for _, c in entries], kind), np.array([dense[entry] for entry in entries], dense.dtype)


@compiled
def _count(dense, counts, first, last):
    for r in range(first, last):
        count = 0
        for c in range(dense.shape[1]):
            count += dense[r, c] != 0
        counts[r + 1] = count


@compiled
def _fill(dense, indptr, indices, data, first, last):
    for r in range(first, last):
        place, end, c = indptr[r], indptr[r + 1], 0
        while place < end:  # never writes past the row, which may be another thread's
            value = dense[r, c]
            indices[place] = c
            data[place] = value
            place += value != 0
            c += 1


@compiled_parallel
def _count_parts(dense, counts, bounds):
    for part in prange(bounds.size - 1):
        _count(dense, counts, bounds[part], bounds[part + 1])


@compiled_parallel
def _fill_parts(dense, indptr, indices, data, bounds):
    for part in prange(bounds.size - 1):
        _fill(dense, indptr, indices, data, bounds[part], bounds[part + 1])


def cpu(dense):
    """On the cores of this machine."""
    rows, columns = dense.shape
    serial, bounds = is_serial(dense.size), equal_count(rows, parts())
    counts = np.zeros(rows + 1, np.int64)
    if serial:
        _count(dense, counts, 0, rows)
    else:
        _count_parts(dense, counts, bounds)
    stored = int(counts.sum())
    kind = index_type(max(stored, columns))
    indptr, indices, data = counts.cumsum(dtype=kind), np.empty(stored, kind), np.empty(stored, dense.dtype)
    if serial:
        _fill(dense, indptr, indices, data, 0, rows)
    else:
        _fill_parts(dense, indptr, indices, data, bounds)
    return indptr, indices, data


gpu = None


def cost(s: Sizes) -> Cost:
    """The dense matrix is read twice."""
    return Cost(0, 2 * s.R * s.D * s.value + s.z * (s.index + s.value) + (s.R + 1) * s.index)


def arguments(case: Case) -> tuple:
    """A in dense form, a negative zero included."""
    dense = np.zeros((case.R, case.D), case.dtype)
    dense[...] = -0.0
    row = np.repeat(np.arange(case.R), np.diff(case.indptr))
    dense[row, case.indices] = case.data
    return (dense,)


register(
    Kernel(
        name="dense_to_csr",
        operands="dense:f[R,D]",
        reference=reference,
        cpu=cpu,
        gpu=gpu,
        cost=cost,
        arguments=arguments,
        writes=(),
    )
)
