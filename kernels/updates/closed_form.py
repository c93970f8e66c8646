"""w[rows[u]] *= factor[u], whole rows: the decay of rows that were left alone for some steps, in one.

Arguments  weights float32|float64 [D, N]; rows int64 [U], sorted, unique; factor same as weights [U]
Writes     weights, at the rows named; nothing else changes
Assumes    0 <= rows < D, none repeated
Cost       a row: N flops, reads N*value + 8 + value bytes, writes N*value; nothing grows with D
Parallel   over rows, in parts of equal height; the result is unique
Limits     D*N < 2**63
Source     Definition; rows that come from memory are asked for ahead of their use
"""

import numpy as np

from kernels import devices
from kernels.contract import Case, Cost, Sizes, register_kernel
from kernels.gpu.source import FLOATS, blocks, c_name, source
from kernels.vector.gather import RowLoop, work_of
from kernels.vector.lanes import AHEAD
from kernels.vector.tiles import cut_elements, is_far_state


def reference(weights, rows, factor):
    """Multiply rows: weights[rows[u]] *= factor[u] in plain loops.

    weights float32|float64 [D, N]; rows int64 [U], ascending, unique; factor [U]. weights is changed in place at these
    rows only: the decay of rows that missed some steps.
    """
    for u in range(rows.size):
        for n in range(weights.shape[1]):
            weights[rows[u], n] *= factor[u]


def _row(lane, u, weights, rows, factor):
    """Emit vector code for one row: weights[rows[u]] *= factor[u], in place."""

    def block(j, _):
        """Emit the columns of one tile, from column j on, and the prefetch of a later row; `_` is unused."""
        if lane.cut.far_state:
            weights.row(rows[(u + AHEAD).least(rows.last)], j).prefetch()
        place = weights.row(rows[u], j)
        place.store([value * factor[u] for value in place.load()])

    lane.blocks(block)


_rows = RowLoop(_row, cut=cut_elements)


def cpu(weights, rows, factor):
    """Multiply rows: weights[rows[u]] *= factor[u] on the CPU.

    weights float32|float64 [D, N]; rows int64 [U], ascending, unique; factor [U]. weights is changed in place at these
    rows only: the decay of rows that missed some steps.
    """
    width = weights.shape[1]
    far = is_far_state(weights.nbytes, weights.itemsize * width)
    _rows.run((width, weights.itemsize, far), rows.size, work_of(rows.size, width), weights, rows, factor)


CUDA_GROUPS = (4, 32)
"""Lanes of a row on a CUDA device."""

_KERNELS = ("closed_form", "closed_form_pair")
CUDA = source(__file__, [f"{name}<{value}, {g}>" for name in _KERNELS for value in FLOATS for g in CUDA_GROUPS])


def gpu(weights, rows, factor):
    """Multiply rows: weights[rows[u]] *= factor[u] on a CUDA device.

    weights float32|float64 [D, N]; rows int64 [U], ascending, unique; factor [U]. weights is changed in place at these
    rows only: the decay of rows that missed some steps.
    """
    on_rows("closed_form", rows, weights, rows, factor)


def on_rows(kernel, rows, weights, *others):
    """Queue `kernel` of `closed_form.cu`, which changes rows `rows` [U] of `weights` [D, N] on the device, in place.

    `others` are its further operands in order, a state among them being changed as well.
    """
    count, width = rows.size, weights.shape[1]
    lanes = CUDA_GROUPS[0] if width <= CUDA_GROUPS[0] else CUDA_GROUPS[1]
    name = f"{kernel}<{c_name(weights.dtype)}, {lanes}>"
    devices.device_of(weights).launch(CUDA, name, blocks(count * lanes), weights, *others, count, width)


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a call with sizes `s`: each row is read and written once."""
    return Cost(s.U * s.N, s.U * (8 + s.value + 2 * s.N * s.value))


def arguments(case: Case) -> tuple:
    """Build operands of a call from `case`: weights, and a factor for each active column of A."""
    rows = np.unique(case.indices).astype(np.int64)
    return case.dense(case.D, case.N), rows, case.dense(rows.size, salt=1)


register_kernel(__name__, "closed_form", "weights:f[D,N] rows:l[U]<!D factor:f[U]", writes=("weights",))
