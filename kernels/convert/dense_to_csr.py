"""(indptr, indices, data) of the values of a dense matrix that are not zero, NaN included.

Arguments  dense float32|float64 [R, D]
Writes     nothing; returns new arrays indptr [R+1], indices [z], data [z]; int32, or int64 if D or z needs it
Assumes    nothing; columns come out sorted and unique, and neither 0.0 nor -0.0 is stored
Cost       no flops, 2*R*D comparisons; reads 2*R*D*value bytes, writes z*(index+value) + (R+1)*index
Parallel   over rows, in parts of equal height: one pass counts, one fills; the result is unique
Limits     R*D < 2**63; the int32 to int64 switch is tested with the limit lowered
Source     Two-pass compression; blocks of zeros are passed over, others filled without a branch
"""

import numpy as np
from numba import prange

from kernels import devices
from kernels.contract import Case, Cost, Sizes, register_kernel
from kernels.gpu import indices
from kernels.gpu.source import FLOATS, blocks, c_name, source
from kernels.plan import index_type
from kernels.threads import compiled, compiled_parallel, equal_count, is_serial, parts

BLOCK = 64
"""Values that are passed over at once where all of them are zero: 2.5 times as fast at a density of 0.001."""


def reference(dense):
    """Convert a dense matrix to CSR in plain loops.

    dense float32|float64 [R, D]. Returns new arrays (indptr [R+1], indices [z], data [z]) of the elements that are not
    0, NaN included; indices are int32, or int64 if D or z needs it.
    """
    entries = [(r, c) for r in range(dense.shape[0]) for c in range(dense.shape[1]) if dense[r, c] != 0]
    kind = index_type(max(len(entries), dense.shape[1]))
    indptr = np.zeros(dense.shape[0] + 1, kind)
    for r, _ in entries:
        for later in range(r, dense.shape[0]):
            indptr[later + 1] += 1
    return indptr, np.array([c for _, c in entries], kind), np.array([dense[entry] for entry in entries], dense.dtype)


@compiled
def _count(dense, counts, first, last):
    """Write the number of nonzero elements of row r of dense [R, D] to counts[r + 1], for first <= r < last."""
    for r in range(first, last):
        count, row = np.int32(0), dense[r]
        for c in range(row.size):
            count += np.int32(row[c] != 0)
        counts[r + 1] = count


@compiled
def _holds_any(block):
    """Return whether a 1-d block of 64 elements has a nonzero one, with few vector instructions.

    With 8 to 32 elements LLVM makes scalar code, 3 times as slow.
    """
    nonzero = np.int32(0)
    for c in range(BLOCK):
        nonzero |= np.int32(block[c] != 0)
    return nonzero != 0


@compiled
def _fill(dense, indptr, indices, data, first, last):
    """Write columns and values of the nonzero elements of rows first to last - 1 of dense to indices, data [z].

    The elements of row r go from indptr[r] on. Without branches, a block at a time: up to `BLOCK` more values than a
    row has may be written, all within the range of these rows, and are overwritten by the next.
    """
    one, block = np.uint64(1), np.uint64(BLOCK)
    limit = np.uint64(indptr[last])
    for r in range(first, last):
        row, place = dense[r], np.uint64(indptr[r])
        whole = np.uint64(row.size // BLOCK * BLOCK)
        start = np.uint64(0)
        while start < whole and place + block <= limit:
            if _holds_any(row[start : start + block]):
                for c in range(start, start + block):
                    indices[place] = c
                    data[place] = row[c]
                    place += np.uint64(row[c] != 0)
            start += block
        for c in range(start, np.uint64(row.size)):
            if row[c] != 0:
                indices[place] = c
                data[place] = row[c]
                place += one


@compiled_parallel
def _count_parts(dense, counts, bounds):
    """Write the counts of nonzero elements on several threads, as `_count`.

    Part p does rows bounds[p] to bounds[p + 1] - 1.
    """
    for part in prange(bounds.size - 1):
        _count(dense, counts, bounds[part], bounds[part + 1])


@compiled_parallel
def _fill_parts(dense, indptr, indices, data, bounds):
    """Write indices and data on several threads, as `_fill`; part p does rows bounds[p] to bounds[p + 1] - 1."""
    for part in prange(bounds.size - 1):
        _fill(dense, indptr, indices, data, bounds[part], bounds[part + 1])


def cpu(dense):
    """Convert a dense matrix to CSR on the CPU.

    dense float32|float64 [R, D]. Returns new arrays (indptr [R+1], indices [z], data [z]) of the elements that are not
    0, NaN included; indices are int32, or int64 if D or z needs it.
    """
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


_CUDA = source(__file__, [f"{name}<{value}>" for name in ("count_stored", "fill_stored") for value in FLOATS])


def gpu(dense):
    """Convert a dense matrix to CSR on a CUDA device.

    dense float32|float64 [R, D]. Returns new arrays (indptr [R+1], indices [z], data [z]) of the elements that are not
    0, NaN included; indices are int32, or int64 if D or z needs it.
    """
    device, value, (rows, columns) = devices.device_of(dense), c_name(dense.dtype), dense.shape
    counts = device.empty(rows, np.int64)  # [R]
    grid = blocks(32 * rows)
    device.launch(_CUDA, f"count_stored<{value}>", grid, dense, rows, columns, counts)
    starts = indices.scan(counts, np.int64)
    stored = int(device.read(starts[rows:])[0])  # synchronize!
    kind = index_type(max(stored, columns))
    indptr = indices.scan(counts, kind) if kind != np.int64 else starts
    out_indices, data = device.empty(stored, kind), device.empty(stored, dense.dtype)
    places = indptr, out_indices, indices.is_wide(indptr)
    device.launch(_CUDA, f"fill_stored<{value}>", grid, dense, rows, columns, *places, data)
    return indptr, out_indices, data


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a call with sizes `s`: the dense matrix is read twice."""
    return Cost(0, 2 * s.R * s.D * s.value + s.z * (s.index + s.value) + (s.R + 1) * s.index)


def arguments(case: Case) -> tuple:
    """Build operands of a call from `case`: A in dense form, with negative zeros where it has no entry."""
    dense = np.zeros((case.R, case.D), case.dtype)
    dense[...] = -0.0
    row = np.repeat(np.arange(case.R), np.diff(case.indptr))
    dense[row, case.indices] = case.data
    return (dense,)


register_kernel(__name__, "dense_to_csr", "dense:f[R,D]", writes=())
