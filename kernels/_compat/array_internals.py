"""Inside SciPy: compiled routines of its sparse products. Inside CuPy: how cuBLAS computes a product of float32."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from kernels._compat import part

NAMES = (
    *("csr_matvec", "csr_matvecs", "csc_matvec", "csc_matvecs", "coo_matvec", "coo_matmat_dense"),
    *("csr_matmat_maxnnz", "csr_matmat", "csr_sort_indices"),
)

sparsetools = part("scipy.sparse._sparsetools")
for _name in NAMES:
    part(f"scipy.sparse._sparsetools.{_name}")

FLOAT32 = np.dtype(np.float32)


@contextmanager
def float32_computed_as(name: str) -> Iterator[None]:
    """Make CuPy compute float32 products within the block as `name`, "FP32" or "TF32".

    The setting is restored after it.
    """
    routines = "cupy._core._routines_linalg"
    get, set_ = part(f"{routines}.get_compute_type"), part(f"{routines}.set_compute_type")
    before = get(FLOAT32)
    set_(FLOAT32, part(f"{routines}.COMPUTE_TYPE_{name}"))
    try:
        yield
    finally:
        set_(FLOAT32, before)
