"""out = A @ x, A in COO form, entries in any order, x dense.

Arguments  row int32|int64 [z]; col same type [z]; data float32|float64 [z]; x same [D, N]
Writes     out [R, N], overwritten; nothing else changes
Assumes    0 <= row < R, 0 <= col < D; duplicates are summed
Cost       2*z*N flops; reads z*(2*index+value) + U*N*value bytes, writes R*N*value
Parallel   as csr_dense, where rows are sorted, and after a sort where a row of x fills a cache line; else serial.
           Same bits on every run and thread count
Limits     z < 2**63, R*N < 2**63
Source     Definition of the coordinate form; a sort costs 1.4 ns an entry, less than wide rows gain by it
"""

import numpy as np

from kernels.contract import Case, Cost, Sizes, register_kernel
from kernels.convert import coo_to_csr
from kernels.plan import index_type
from kernels.products import csr_dense
from kernels.threads import clear, compiled
from kernels.vector.gather import RowLoop
from kernels.vector.tiles import LINE


def reference(row, col, data, x, out):
    """Compute out = A @ x in plain loops.

    A in COO form, entries in any order: row, col int32|int64 [z], data [z]. x [D, N], out [R, N] float32|float64 as
    data; out is overwritten. Duplicates are summed.
    """
    out[...] = 0
    for k in range(data.size):
        for n in range(out.shape[1]):
            out[row[k], n] += data[k] * x[col[k], n]


@compiled
def _is_sorted(row):
    """Return whether the row indices [z] ascend, duplicates allowed."""
    falls = 0
    for k in range(row.size - 1):
        falls += row[k + 1] < row[k]
    return falls == 0


@compiled
def _starts(row, starts):
    """Write the row pointers of ascending row indices [z] to starts [R + 1]."""
    starts[:] = 0
    for k in range(row.size):
        starts[np.uint64(row[k]) + np.uint64(1)] = k + 1
    for r in range(starts.size - 1):
        starts[r + 1] = max(starts[r + 1], starts[r])


def _entry(lane, u, row, col, data, x, out):
    """Emit vector code for entry u: out[row[u]] += data[u] * x[col[u]].

    row, col, data [z]; x [D, N]; out [R, N] is updated.
    """
    scale = lane.numbers.spread(data[u])

    def block(j, _):
        """Emit the outputs of one tile, from output j on; `_` is unused."""
        place = out.row(row[u], j)
        pairs = zip(x.row(col[u], j).load(), place.load(), strict=True)
        place.store([scale.times_plus(vec, total) for vec, total in pairs])

    lane.blocks(block)


_entries = RowLoop(_entry)


def cpu(row, col, data, x, out):
    """Compute out = A @ x on the CPU.

    A in COO form, entries in any order: row, col int32|int64 [z], data [z]. x [D, N], out [R, N] float32|float64 as
    data; out is overwritten. Duplicates are summed.
    """
    rows, width = out.shape
    if _is_sorted(row):
        starts = np.empty(rows + 1, index_type(row.size, row.dtype))
        _starts(row, starts)
        csr_dense.cpu(starts, col, data, x, out)
    elif width * out.itemsize >= LINE:
        csr_dense.cpu(*coo_to_csr.cpu(row, col, data, rows), x, out)
    else:
        clear(out)
        _entries[width, out.itemsize](1, row.size, width, row, col, data, x, out)


def gpu(row, col, data, x, out):
    """Compute out = A @ x on a CUDA device.

    A in COO form, entries in any order: row, col int32|int64 [z], data [z]. x [D, N], out [R, N] float32|float64 as
    data; out is overwritten. Duplicates are summed.
    """
    csr_dense.gpu(*coo_to_csr.gpu(row, col, data, out.shape[0]), x, out)


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a call with sizes `s`: each distinct row of x moves once.

    The result stays in the cache until it is written.
    """
    fixed = s.z * (2 * s.index + s.value) + s.R * s.N * s.value
    return Cost(2 * s.z * s.N, fixed + s.U * s.N * s.value, s.z * s.N * s.value)


def arguments(case: Case) -> tuple:
    """Build operands from `case`: the entries of A, shuffled if the seed is odd, a dense x, and a result."""
    row = np.repeat(np.arange(case.R, dtype=case.indices.dtype), np.diff(case.indptr))
    order = np.random.default_rng(case.seed).permutation(row.size) if case.seed % 2 else slice(None)
    x, out = case.dense(case.D, case.N), case.garbage(case.R, case.N)
    return row[order], case.indices[order], case.data[order], x, out


register_kernel(__name__, "coo_dense", "row:i[z]<R col:i[z]<D data:f[z] x:f[D,N] out:f[R,N]")
