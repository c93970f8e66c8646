"""Inside SciPy: compiled routines of its sparse products. Inside CuPy: how cuBLAS computes a product of float32.

Inside Numba: its events, apart from `numba_internals`, since no number that compiled code gives follows from them.
"""

import time
from collections.abc import Callable, Iterator
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

event = part("numba.core.event")

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


@contextmanager
def watched_compiling(begin: Callable[[], object], end: Callable[[float], object]) -> Iterator[None]:
    """Call `begin` whenever compiling begins while the context is open, and `end` with its seconds when it has ended.

    Functions that are compiled for another one are parts of its compiling. What is loaded from a cache is not compiled.
    """
    depth, began = 0, 0.0

    class Listener(event.Listener):  # type: ignore[name-defined]
        """Listener of Numba's compile events that reports the outermost compilation of the thread."""

        def on_start(self, _event: object) -> None:
            """Count one more open compilation; at the first start the clock and call `begin`."""
            nonlocal depth, began
            depth += 1
            if depth == 1:
                began = time.perf_counter()
                begin()

        def on_end(self, _event: object) -> None:
            """Count one open compilation less; call `end` with the seconds after the last."""
            nonlocal depth
            depth -= 1
            if depth == 0:
                end(time.perf_counter() - began)

    with event.install_listener("numba:compile", Listener()):
        yield
