"""out = A @ x, A in CSR form, x dense.

Arguments  indptr int32|int64 [R+1] - row starts; indices same type [z]; data float32|float64 [z]; x same [D, N]
Writes     out [R, N], overwritten; nothing else changes
Assumes    0 <= indices < D; duplicates are summed; columns may be unsorted
Cost       2*z*N flops; reads z*(index+value) + (R+1)*index + U*N*value bytes, writes R*N*value
Parallel   over rows, in parts of equal cost; same bits on every run and thread count
Limits     z < 2**63, R*N < 2**63
Source     Gustavson 1978, row-wise form; differs: the result is dense, so columns are not merged
"""

from kernels.contract import Case, Cost, Sizes, register_kernel
from kernels.gpu.row_sums import UNKNOWN, names_of, row_sums
from kernels.gpu.source import source
from kernels.threads import LEAST_WORK, is_forced_parallel
from kernels.vector.gather import RowLoop, work_of
from kernels.vector.tiles import shape_of


def reference(indptr, indices, data, x, out):
    """Compute out = A @ x in plain loops.

    A in CSR form: indptr [R+1] and indices [z] int32|int64, data [z]. x [D, N], out [R, N] float32|float64 as data; out
    is overwritten. Duplicates are summed.
    """
    out[...] = 0
    for r in range(out.shape[0]):
        for k in range(indptr[r], indptr[r + 1]):
            for n in range(out.shape[1]):
                out[r, n] += data[k] * x[indices[k], n]


def _row(lane, u, indptr, indices, data, x, out):
    """Emit vector code for row u: out[u] = sum of data[k] * x[indices[k]] over the entries k of row u.

    indptr [R + 1], indices and data [z]; x [D, N]; out [R, N] is overwritten.
    """

    def block(j, _):
        """Emit the outputs of one tile of row u, from output j on; `_` is unused."""
        total = lane.sum_of_rows(indptr[u], indptr[u + 1], data, indices, x, j)
        out.row(u, j).store(total)

    lane.blocks(block)


MOST_ALONE = 4 * LEAST_WORK
"""Work, in multiply-adds, up to which a product stays on one thread: to choose threads, and to wake them, takes what
the second one gains. Measured on an EPYC 9005 with rows from all over 16 MB: 13 us alone, 9 us on two threads that are
awake, 23 us with the choice of one or two. So do gradients of up to so much work, alone or with the step of a rule."""

_rows = RowLoop(_row, starts=0, most_alone=MOST_ALONE)


def cpu_few(indptr, indices, data, x, out):
    """Compute out = A @ x as `cpu` and check A in the same call; return whether it did, as A is valid and small."""
    rows, width = out.shape
    if is_forced_parallel() or not width or work_of(indices.size, width, rows) > MOST_ALONE:
        return False
    return _rows.guarded(shape_of(x.shape, x.itemsize))(indptr, indices, data, x, out)


def cpu(indptr, indices, data, x, out):
    """Compute out = A @ x on the CPU.

    A in CSR form: indptr [R+1] and indices [z] int32|int64, data [z]. x [D, N], out [R, N] float32|float64 as data; out
    is overwritten. Duplicates are summed.
    """
    shape = shape_of(x.shape, x.itemsize)
    rows = out.shape[0]
    _rows.run(shape, rows, work_of(data.size, shape[0], rows), indptr, indices, data, x, out)


CUDA = source(__file__, names_of("csr_dense", is_of_table=True))


def gpu(indptr, indices, data, x, out):
    """Compute out = A @ x on a CUDA device.

    A in CSR form: indptr [R+1] and indices [z] int32|int64, data [z]. x [D, N], out [R, N] float32|float64 as data; out
    is overwritten. Duplicates are summed.
    """
    on_device(indptr, indices, data, x, out)


def on_device(indptr, indices, data, x, out, lengths=UNKNOWN):
    """Queue out = A @ x on the device, as `gpu`; `lengths` is what is known of the row lengths of A.

    A is in CSR form (indptr, indices, data), x [D, N] of the dtype of out or two bytes per value; out [R, N] is
    overwritten.
    """
    row_sums(CUDA, "csr_dense", indptr, (indices, data), x, out, lengths=lengths)


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a call with sizes `s`: each distinct row of x moves once."""
    fixed = s.z * (s.index + s.value) + (s.R + 1) * s.index + s.R * s.N * s.value
    work = ("entry", s.z * s.lines), ("row", s.R * s.lines)
    return Cost(2 * s.z * s.N, fixed + s.U * s.N * s.value, s.z * s.N * s.value, work)


def arguments(case: Case) -> tuple:
    """Build operands of a call from `case`: A, a dense x, and a result to overwrite."""
    return case.indptr, case.indices, case.data, case.dense(case.D, case.N), case.garbage(case.R, case.N)


register_kernel(
    __name__,
    "csr_dense",
    "indptr:i[R+1]^z indices:i[z]<D data:f[z] x:f[D,N] out:f[R,N]",
    cpu_few=cpu_few,
)
