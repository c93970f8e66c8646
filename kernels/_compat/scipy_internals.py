"""SciPy's compiled routines behind the products of its sparse arrays."""

from kernels._compat import part

NAMES = (
    *("csr_matvec", "csr_matvecs", "csc_matvec", "csc_matvecs", "coo_matvec", "coo_matmat_dense"),
    *("csr_matmat_maxnnz", "csr_matmat", "csr_sort_indices"),
)

sparsetools = part("scipy.sparse._sparsetools")
for _name in NAMES:
    part(f"scipy.sparse._sparsetools.{_name}")
