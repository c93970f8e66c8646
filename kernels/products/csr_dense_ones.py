"""out = A @ x, A in CSR form with every stored value one, x dense: a sum of rows, as in a lookup of one-hot features.

Arguments  indptr int32|int64 [R+1] - row starts; indices same type [z]; x float32|float64 [D, N]
Writes     out [R, N], overwritten; nothing else changes
Assumes    0 <= indices < D; duplicates are summed; columns may be unsorted
Cost       z*N flops; reads z*index + (R+1)*index + U*N*value bytes, writes R*N*value
Parallel   over rows, in parts of equal cost; same bits on every run and thread count
Limits     z < 2**63, R*N < 2**63
Source     csr_dense without its values
"""

from kernels.contract import Case, Cost, Sizes, register_kernel
from kernels.gpu.row_sums import UNKNOWN, names_of, row_sums
from kernels.gpu.source import source
from kernels.products.csr_dense import MOST_ALONE
from kernels.vector.gather import RowLoop, work_of
from kernels.vector.tiles import shape_of


def reference(indptr, indices, x, out):
    """Compute out = A @ x, all stored values 1, in plain loops.

    A in CSR form: indptr [R+1] and indices [z] int32|int64. x [D, N], out [R, N] float32|float64; out is overwritten: a
    sum of rows of x, as in a lookup of one-hot features. Duplicates are summed.
    """
    out[...] = 0
    for r in range(out.shape[0]):
        for k in range(indptr[r], indptr[r + 1]):
            for n in range(out.shape[1]):
                out[r, n] += x[indices[k], n]


def _row(lane, u, indptr, indices, x, out):
    """Emit vector code for row u: out[u] = sum of x[indices[k]] over the entries k of row u.

    indptr [R + 1], indices [z]; x [D, N]; out [R, N] is overwritten.
    """

    def block(j, _):
        """Emit the outputs of one tile of row u, from output j on; `_` is unused."""
        out.row(u, j).store(lane.sum_of_rows(indptr[u], indptr[u + 1], None, indices, x, j))

    lane.blocks(block)


_rows = RowLoop(_row, starts=0, most_alone=MOST_ALONE)


def cpu(indptr, indices, x, out):
    """Compute out = A @ x, all stored values 1, on the CPU.

    A in CSR form: indptr [R+1] and indices [z] int32|int64. x [D, N], out [R, N] float32|float64; out is overwritten: a
    sum of rows of x, as in a lookup of one-hot features. Duplicates are summed.
    """
    shape = shape_of(x.shape, x.itemsize)
    rows = out.shape[0]
    _rows.run(shape, rows, work_of(indices.size, shape[0], rows), indptr, indices, x, out)


_CUDA = source(__file__, names_of("csr_dense_ones", is_of_table=True))


def gpu(indptr, indices, x, out):
    """Compute out = A @ x, all stored values 1, on a CUDA device.

    A in CSR form: indptr [R+1] and indices [z] int32|int64. x [D, N], out [R, N] float32|float64; out is overwritten: a
    sum of rows of x, as in a lookup of one-hot features. Duplicates are summed.
    """
    on_device(indptr, indices, x, out)


def on_device(indptr, indices, x, out, lengths=UNKNOWN):
    """Queue out = A @ x on the device, as `gpu`; `lengths` is what is known of the row lengths of A."""
    row_sums(_CUDA, "csr_dense_ones", indptr, (indices,), x, out, lengths=lengths)


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a call with sizes `s`: each distinct row of x moves once."""
    fixed = s.z * s.index + (s.R + 1) * s.index + s.R * s.N * s.value
    work = ("entry", s.z * s.lines), ("row", s.R * s.lines)
    return Cost(s.z * s.N, fixed + s.U * s.N * s.value, s.z * s.N * s.value, work)


def arguments(case: Case) -> tuple:
    """Build operands of a call from `case`: the pattern of A, a dense x, and a result to overwrite."""
    return case.indptr, case.indices, case.dense(case.D, case.N), case.garbage(case.R, case.N)


register_kernel(__name__, "csr_dense_ones", "indptr:i[R+1]^z indices:i[z]<D x:f[D,N] out:f[R,N]")
