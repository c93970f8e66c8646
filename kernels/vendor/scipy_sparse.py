"""SciPy's sparse products, at their best.

scipy.csr_dense         out = A @ x, A in CSR form
scipy.csc_dense         out = A @ x, A in CSC form
scipy.coo_dense         out = A @ x, A in COO form, entries in any order
scipy.csr_t_dense_full  out = A.T @ g, A in CSR form

Arguments  as those of csr_dense, csc_dense, coo_dense, csr_t_dense_full
Writes     out, overwritten; nothing else changes
Assumes    indices in range, as ours do
Cost       2*z*N flops; bytes as of the kernel that each competes with
Parallel   never: SciPy's products run on one thread; same bits on every run
Limits     z < 2**63
Source     The compiled routines behind `A @ x`, called without what the operator adds: 8 us to make a csr_array of the
           arrays, and a result of its own to copy from. A test compares them with the operator
"""

from kernels._compat.library_internals import sparsetools
from kernels.registry import register_competitor


def csr_dense(indptr, indices, data, x, out):
    """Compute out = A @ x by SciPy on one core; out [R, N] is overwritten.

    A is in CSR form (indptr, indices, data), x [D, N].
    """
    out[...] = 0
    shape, matrix, flat = (out.shape[0], x.shape[0]), (indptr, indices, data), (x.reshape(-1), out.reshape(-1))
    if x.shape[1] == 1:
        sparsetools.csr_matvec(*shape, *matrix, *flat)
    else:
        sparsetools.csr_matvecs(*shape, x.shape[1], *matrix, *flat)


def csc_dense(indptr, indices, data, x, out):
    """Compute out = A @ x by SciPy on one core; out [R, N] is overwritten.

    A is in CSC form (indptr, indices, data), x [D, N].
    """
    out[...] = 0
    shape, matrix, flat = (out.shape[0], x.shape[0]), (indptr, indices, data), (x.reshape(-1), out.reshape(-1))
    if x.shape[1] == 1:
        sparsetools.csc_matvec(*shape, *matrix, *flat)
    else:
        sparsetools.csc_matvecs(*shape, x.shape[1], *matrix, *flat)


def coo_dense(row, col, data, x, out):
    """Compute out = A @ x by SciPy on one core; out [R, N] is overwritten.

    A is in COO form (row, col, data), x [D, N].
    """
    out[...] = 0
    if x.shape[1] == 1:
        sparsetools.coo_matvec(data.size, row, col, data, x.reshape(-1), out.reshape(-1))
    else:
        sparsetools.coo_matmat_dense(data.size, x.shape[1], row, col, data, x.reshape(-1), out.reshape(-1))


def csr_t_dense_full(indptr, indices, data, g, out):
    """Compute out = A.T @ g by SciPy on one core; out [D, N] is overwritten.

    A is in CSR form (indptr, indices, data), g [R, N].
    """
    csc_dense(indptr, indices, data, g, out)


for _cpu in (csr_dense, csc_dense, coo_dense, csr_t_dense_full):
    register_competitor("scipy", _cpu.__name__, _cpu)
