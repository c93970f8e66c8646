"""out = A @ x, A in CSC form, x dense.

Arguments  indptr int32|int64 [D+1] - column starts; indices same type [z]; data float32|float64 [z]; x same [D, N]
Writes     out [R, N], overwritten; nothing else changes
Assumes    0 <= indices < R; duplicates are summed; rows of a column may be unsorted
Cost       2*z*N flops; reads z*(index+value) + (D+1)*index + U*N*value bytes, writes R*N*value; grows with D
Parallel   as coo_dense: after a sort by row where a row of x fills a cache line, else serial; same bits on every run
           and thread count
Limits     z < 2**63, R*N < 2**63
Source     coo_dense with the columns written out
"""

import numpy as np

from kernels.contract import Case, Cost, Kernel, Sizes
from kernels.convert import csr_to_csc
from kernels.plan import index_type
from kernels.products import coo_dense, csr_dense
from kernels.registry import register
from kernels.threads import compiled


def reference(indptr, indices, data, x, out):
    """The definition, in plain loops."""
    out[...] = 0
    for c in range(indptr.size - 1):
        for k in range(indptr[c], indptr[c + 1]):
            for n in range(out.shape[1]):
                out[indices[k], n] += data[k] * x[c, n]


@compiled
def _columns_of_entries(indptr, column):
    """Column of each entry, and one place more for the empty columns at the end.

    Of the columns that start at an entry the last one is written last, and is its own. A loop over each column's
    entries takes 3 to 6 times as long, for columns of a batch are short and their lengths are guessed wrong.
    """
    column[:] = 0
    for c in range(indptr.size - 1):
        column[np.uint64(indptr[c])] = c
    last = np.int64(0)
    for k in range(column.size):
        found = np.int64(column[k])
        last = (last & -np.int64(found == 0)) | found  # without a branch
        column[k] = last


def cpu(indptr, indices, data, x, out):
    """On the cores of this machine."""
    column = np.empty(data.size + 1, index_type(indptr.size, indices.dtype))
    _columns_of_entries(indptr, column)
    coo_dense.cpu(indices, column[:-1], data, x, out)


def gpu(indptr, indices, data, x, out):
    """On a CUDA device: A.T in CSR form has its columns for rows, so that its CSC form is A in CSR form."""
    csr_dense.gpu(*csr_to_csc.gpu(indptr, indices, data, out.shape[0]), x, out)


def cost(s: Sizes) -> Cost:
    """Each row of x moves once; out is filled with zeros, and its touched rows are read and written again.

    `arguments` takes A.T: the sizes are those of its transpose, so that R and D have changed places.
    """
    fixed = s.z * (s.index + s.value) + (s.R + 1) * s.index + s.R * s.N * s.value
    return Cost(2 * s.z * s.N, fixed + (s.D + 2 * s.U) * s.N * s.value, s.z * s.N * s.value)


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
