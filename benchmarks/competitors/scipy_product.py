"""SciPy's product of two sparse matrices, at its best.

scipy.csr_csr  (indptr, indices, data) of A @ B, both in CSR form, columns sorted

Arguments  as those of csr_csr
Writes     nothing; the result is new
Assumes    indices in range, as ours do
Cost       as of csr_csr
Parallel   never: SciPy's products run on one thread; same bits on every run
Limits     z < 2**63
Source     The compiled routines behind `A @ B`, called without what the operator adds
"""

import numpy as np

from benchmarks.competitors import register_competitor
from kernels._compat.library_internals import sparsetools
from kernels.plan import index_type


def csr_csr(a_indptr, a_indices, a_data, b_indptr, b_indices, b_data):
    """Compute A @ B by SciPy on one core, all in CSR form; return (indptr, indices, data), columns sorted.

    A [R, D] is (a_indptr, a_indices, a_data), B [D, C] (b_indptr, b_indices, b_data). Stored zeros that SciPy omits are
    restored. Allocates an element per column of B.
    """
    a, b = (a_indptr, a_indices), (b_indptr, b_indices)
    rows, columns = a_indptr.size - 1, int(b_indices.max(initial=-1)) + 1
    stored = sparsetools.csr_matmat_maxnnz(rows, columns, *a, *b)
    kind = index_type(stored, a_indptr.dtype)
    a, b = [[array.astype(kind, copy=False) for array in arrays] for arrays in (a, b)]
    indptr, indices, data = _product(rows, columns, stored, (*a, a_data), (*b, b_data))
    if indptr[-1] < stored:
        ones = (*a, np.ones_like(a_data)), (*b, np.ones_like(b_data))
        every_indptr, every, values = _product(rows, columns, stored, *ones)
        values[:] = 0
        place = _keys(every_indptr, every, columns).searchsorted(_keys(indptr, indices, columns))
        values[place] = data[: indptr[-1]]
        return every_indptr, every, values
    return indptr, indices, data


def _product(rows: int, columns: int, stored: int, a: tuple, b: tuple) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (indptr, indices, data) of A @ B with up to `stored` entries, columns sorted, by SciPy's routine.

    `a` and `b` are (indptr, indices, data); A has `rows` rows, B `columns` columns.
    """
    kind = a[0].dtype
    indptr, indices, data = np.empty(rows + 1, kind), np.empty(stored, kind), np.empty(stored, a[2].dtype)
    sparsetools.csr_matmat(rows, columns, *a, *b, indptr, indices, data)
    sparsetools.csr_sort_indices(rows, indptr, indices, data)
    return indptr, indices, data


def _keys(indptr: np.ndarray, indices: np.ndarray, columns: int) -> np.ndarray:
    """Return row * columns + column, int64 [z], of each stored entry of a CSR matrix: indptr [R+1], indices [z].

    `columns` is its width.
    """
    return np.arange(indptr.size - 1).repeat(np.diff(indptr)) * columns + indices[: indptr[-1]]


register_competitor("scipy", "csr_csr", csr_csr)
