"""out = (A.T @ g)[columns]: the gradient of a weight on the active rows, through the batch plan.

Arguments  segments int32|int64 [U+1], rows same type [z] - the plan's; values float32|float64 [z] - the batch's values
           in column order, plan.in_order(data); g same [R, N]
Writes     out [U, N], overwritten; row u is the gradient of column plan.columns[u]; nothing else changes
Assumes    the plan is that of the batch whose values these are, so that no column is empty; duplicates are summed
Cost       2*z*N flops; reads z*(index+value) + (U+1)*index + R*N*value bytes, writes U*N*value; nothing grows with D
Parallel   over active columns, in parts of equal cost; a column has one thread, rows ascending: same bits always
Limits     z < 2**63; one column with most of the entries stays on one thread
Source     Gustavson 1978 on A.T in CSR form, restricted to the rows that are not empty
"""

from kernels import plan, short_columns
from kernels.contract import Case, Cost, Sizes, register_kernel
from kernels.products import csr_dense
from kernels.vector.gather import RowLoop, work_of
from kernels.vector.tiles import MANY, shape_of_gradient


def reference(segments, rows, values, g, out):
    """Compute out = (A.T @ g)[columns] in plain loops.

    The gradient of a weight on active columns. segments [U+1], rows [z] int32|int64: those of the batch plan; values
    [z]: the batch's values in column order; g [R, N], out [U, N] float32|float64 as values. out is overwritten, row u
    for column plan.columns[u].
    """
    out[...] = 0
    for u in range(out.shape[0]):
        for k in range(segments[u], segments[u + 1]):
            for n in range(out.shape[1]):
                out[u, n] += values[k] * g[rows[k], n]


def _row(lane, u, segments, rows, values, g, out):
    """Emit vector code for row u: out[u] = sum of values[k] * g[rows[k]] over the entries k of active column u.

    segments [U + 1] bounds the entries of each column; rows, values [z]; g [R, N]; out [U, N] is overwritten.
    """

    def block(j, _):
        """Emit the outputs of one tile of row u, from output j on; `_` is unused."""
        out.row(u, j).store(lane.sum_of_rows(segments[u], segments[u + 1], values, rows, g, j))

    lane.blocks(block)


_rows = RowLoop(_row, starts=0, most_alone=csr_dense.MOST_ALONE)


def cpu(segments, rows, values, g, out):
    """Compute out = (A.T @ g)[columns] on the CPU.

    The gradient of a weight on active columns. segments [U+1], rows [z] int32|int64: those of the batch plan; values
    [z]: the batch's values in column order; g [R, N], out [U, N] float32|float64 as values. out is overwritten, row u
    for column plan.columns[u].
    """
    columns, width = out.shape
    shape = shape_of_gradient(g.shape, g.itemsize, min(rows.size // max(columns, 1), MANY))
    if short_columns.suits(segments, rows.size, width, shape[-1]):
        short_columns.add(segments, rows, values, g, out)
        return
    _rows.run(shape, columns, work_of(rows.size, width, columns), segments, rows, values, g, out)


def gpu(segments, rows, values, g, out):
    """Compute out = (A.T @ g)[columns] on a CUDA device.

    The gradient of a weight on active columns. segments [U+1], rows [z] int32|int64: those of the batch plan; values
    [z]: the batch's values in column order; g [R, N], out [U, N] float32|float64 as values. out is overwritten, row u
    for column plan.columns[u].
    """
    csr_dense.gpu(segments, rows, values, g, out)


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a call with sizes `s`: each row of g moves once."""
    fixed = s.z * (s.index + s.value) + (s.U + 1) * s.index + s.U * s.N * s.value
    work = ("entry", s.z * s.lines), ("row", s.U * s.lines)
    return Cost(2 * s.z * s.N, fixed + s.R * s.N * s.value, s.z * s.N * s.value, work)


def arguments(case: Case) -> tuple:
    """Build operands from `case`: the plan of A, its values in column order, a dense g, and a result."""
    batch = plan.build(case.indptr, case.indices, case.D)
    g, out = case.dense(case.R, case.N), case.garbage(batch.touched, case.N)
    return batch.segments, batch.rows, batch.in_order(case.data), g, out


register_kernel(
    __name__,
    "csr_t_dense",
    "segments:i[U+1]^z rows:i[z]<R values:f[z] g:f[R,N] out:f[U,N]",
)
