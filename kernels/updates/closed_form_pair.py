"""(w, s)[rows[u]] = [[a, b], [c, d]][u] @ (w, s)[rows[u]], whole rows: steps of momentum without gradient, in one.

Arguments  weights float32|float64 [D, N]; state same, s; rows int64 [U], sorted, unique; matrix same as weights
           [U, 4]: a, b, c, d
Writes     weights, state, at the rows named; nothing else changes
Assumes    0 <= rows < D, none repeated; matrix has four columns
Cost       a row: 6*N flops, reads 2*N*value + 8 + 4*value bytes, writes 2*N*value; nothing grows with D
Parallel   over rows, in parts of equal height; the result is unique
Limits     D*N < 2**63
Source     Definition; rows that come from memory are asked for ahead of their use
"""

import numpy as np

from kernels.contract import Case, Cost, KernelError, Sizes, register_kernel
from kernels.updates import closed_form
from kernels.vector.gather import RowLoop, work_of
from kernels.vector.lanes import AHEAD
from kernels.vector.tiles import cut_elements, is_far_state


def reference(weights, state, rows, matrix):
    """Multiply (weights, state) rows by 2 x 2 matrices in plain loops.

    weights, state float32|float64 [D, N]; rows int64 [U], ascending, unique; matrix [U, 4] of (a, b, c, d). In place,
    at these rows only: w, s = a * w + b * s, c * w + d * s.
    """
    for u in range(rows.size):
        a, b, c, d = matrix[u]
        for n in range(weights.shape[1]):
            w, s = weights[rows[u], n], state[rows[u], n]
            weights[rows[u], n], state[rows[u], n] = a * w + b * s, c * w + d * s


def _row(lane, u, weights, state, rows, matrix):
    """Emit vector code for one row: (weights, state)[rows[u]] times the 2 x 2 matrix[u], in place."""
    a, b, c, d = [matrix[u * 4 + number] for number in range(4)]

    def block(j, _):
        """Emit the columns of one tile, from column j on, and the prefetch of a later row; `_` is unused."""
        if lane.cut.far_state:
            ahead = rows[(u + AHEAD).least(rows.last)]
            for array in (weights, state):
                array.row(ahead, j).prefetch()
        places = [array.row(rows[u], j) for array in (weights, state)]
        pairs = list(zip(*[place.load() for place in places], strict=True))
        places[0].store([a * w + b * s for w, s in pairs])
        places[1].store([c * w + d * s for w, s in pairs])

    lane.blocks(block)


_rows = RowLoop(_row, cut=cut_elements)


def check(matrix) -> None:
    """Raise KernelError unless `matrix` has four columns."""
    if matrix.shape[1] != 4:
        raise KernelError(f"closed_form_pair: matrix has {matrix.shape[1]} columns; it has 4, of two rows by two.")


def cpu(weights, state, rows, matrix):
    """Multiply (weights, state) rows by 2 x 2 matrices on the CPU.

    weights, state float32|float64 [D, N]; rows int64 [U], ascending, unique; matrix [U, 4] of (a, b, c, d). In place,
    at these rows only: w, s = a * w + b * s, c * w + d * s. Raises KernelError unless matrix has four columns.
    """
    check(matrix)
    width = weights.shape[1]
    far = is_far_state(2 * weights.nbytes, weights.itemsize * width)
    _rows.run((width, weights.itemsize, far), rows.size, work_of(rows.size, 2 * width), weights, state, rows, matrix)


def gpu(weights, state, rows, matrix):
    """Multiply (weights, state) rows by 2 x 2 matrices on a CUDA device.

    weights, state float32|float64 [D, N]; rows int64 [U], ascending, unique; matrix [U, 4] of (a, b, c, d). In place,
    at these rows only: w, s = a * w + b * s, c * w + d * s. Raises KernelError unless matrix has four columns.
    """
    check(matrix)
    closed_form.on_rows("closed_form_pair", rows, weights, state, rows, matrix)


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a call with sizes `s`: each row of both arrays is read and written once."""
    return Cost(6 * s.U * s.N, s.U * (8 + 4 * s.value + 4 * s.N * s.value))


def arguments(case: Case) -> tuple:
    """Build operands of a call from `case`: weights and state, and a matrix for each active column of A."""
    rows = np.unique(case.indices).astype(np.int64)
    tables = [case.dense(case.D, case.N, salt=number) for number in (0, 1)]
    return *tables, rows, case.dense(rows.size, 4, salt=2)


register_kernel(
    __name__,
    "closed_form_pair",
    "weights:f[D,N] state:f[D,N] rows:l[U]<!D matrix:f[U,M]",
    writes=("weights", "state"),
)
