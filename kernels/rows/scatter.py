"""out[index[i]] = values[i], whole rows.

Arguments  values float32|float64 [U, N]; index int32|int64 [U]
Writes     out [D, N]: the rows named, all others stay as they are; nothing else changes
Assumes    0 <= index < D; no row is named twice
Cost       no flops; reads U*index + U*N*value bytes, writes U*N*value
Parallel   over rows of values, in parts of equal height; the result is unique
Limits     D*N < 2**63; nothing grows with D
Source     Definition; rows that go to memory are asked for ahead of their use
"""

import numpy as np

from kernels.contract import Case, Cost, Sizes, register_kernel
from kernels.gpu.source import source
from kernels.rows.take import copy_rows, names_of
from kernels.vector.gather import RowLoop, work_of
from kernels.vector.lanes import AHEAD
from kernels.vector.tiles import is_far


def reference(values, index, out):
    """Write rows: out[index[i]] = values[i] in plain loops.

    values float32|float64 [U, N]; index int32|int64 [U], none repeated. out [D, N] is changed at these rows only.
    """
    for i in range(values.shape[0]):
        for n in range(values.shape[1]):
            out[index[i], n] = values[i, n]


def _row(lane, u, values, index, out):
    """Emit vector code for row u: out[index[u]] = values[u].

    values [U, N], index [U]; out [D, N] is written.
    """

    def block(j, _):
        """Emit the copy of the columns of one tile, from column j on; `_` is unused."""
        if lane.cut.far_rows:
            out.row(index[(u + AHEAD).least(index.last)], j).prefetch()
        out.row(index[u], j).store(values.row(u, j).load())

    lane.blocks(block)


_rows = RowLoop(_row)


def cpu(values, index, out):
    """Write rows: out[index[i]] = values[i] on the CPU.

    values float32|float64 [U, N]; index int32|int64 [U], none repeated. out [D, N] is changed at these rows only.
    """
    rows, width = values.shape
    _rows.run((width, out.itemsize, is_far(out.nbytes)), rows, work_of(rows, width), values, index, out)


_CUDA = source(__file__, names_of("scatter"))


def gpu(values, index, out):
    """Write rows: out[index[i]] = values[i] on a CUDA device.

    values float32|float64 [U, N]; index int32|int64 [U], none repeated. out [D, N] is changed at these rows only.
    """
    copy_rows(_CUDA, "scatter", values, index, out, values.shape[0])


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a call with sizes `s`: each row is read and written once."""
    return Cost(0, s.U * s.index + 2 * s.U * s.N * s.value, s.U * s.N * s.value)


def arguments(case: Case) -> tuple:
    """Build operands from `case`: values for the columns of A, in random order, and a table they go into."""
    index = np.random.default_rng(case.seed).permutation(np.unique(case.indices))
    return case.dense(index.size, case.N), index, case.garbage(case.D, case.N)


register_kernel(__name__, "scatter_rows", "values:f[U,N] index:i[U]<!D out:f[D,N]")
