"""Dense products by the BLAS that NumPy is linked with, on all of its threads or on one.

OpenBLAS divides a product among all its threads and waits for the last one, so that next to a busy program it takes as
long as that program lets it. Here products run on one thread while other programs leave too few cores, as this
package's own parallel calls do (`kernels.choosing`).

For about two in five shapes OpenBLAS adds terms in another order on another number of threads. Results must not depend
on other programs: before products of a shape run on one thread, a product of random numbers of that shape is computed
on one thread and on all; if its bits differ, all products of the shape are left to NumPy. Large products and other
libraries are left to NumPy, too.
"""

import functools
import os
import threading
from time import perf_counter
from typing import Any

import numpy as np
import threadpoolctl

from kernels import choosing, threads

MOST_ELEMENTS = 4_000_000
"""Elements of the left matrix up to which a product chooses: comparing bits takes about 20 ms with so many."""

DRAWS = 4
"""Right matrices for which bits are compared: some of a few sums have the same bits in another order by chance."""

WORK = 4
"""Multiply-adds of BLAS in the time of one in the measure of `threads.is_serial`, about."""

_turn = threading.Lock()
"""One product at a time: threads of OpenBLAS are those of the process, whichever thread asks for one of them alone."""

os.register_at_fork(before=_turn.acquire, after_in_parent=_turn.release, after_in_child=_turn.release)

_bits: dict[tuple[tuple[int, int], int, bool, str, int], bool] = {}
"""What `have_same_bits` found."""


@functools.cache
def library() -> Any:
    """Return the threadpoolctl controller of NumPy's OpenBLAS; None if NumPy has another BLAS. Cached."""
    found = [
        controller
        for controller in threadpoolctl.ThreadpoolController().lib_controllers
        if controller.internal_api == "openblas"
    ]
    of_numpy = [one for one in found if "numpy" in one.filepath]
    if not of_numpy and len(found) != 1:
        return None
    return (of_numpy or found)[0]


def matmul(left: np.ndarray, right: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Compute left [R, D] @ right [D, N] as `numpy.matmul`, on one BLAS thread if other programs hold the cores.

    The bits are those of all threads. `out` [R, N], if given, is overwritten and returned. Products of several Python
    threads run one after the other (one lock).
    """
    with _turn:
        if not _may_choose(left, right):
            return np.matmul(left, right, out=out)
        openblas = library()
        shape = left.shape, right.shape[1], left.flags.c_contiguous, left.dtype.char, openblas.get_num_threads()
        if shape[-1] == 1 or choosing.load.leaves(threads.get_threads(), perf_counter()):
            return np.matmul(left, right, out=out)
        return _alone(openblas, left, right, out) if have_same_bits(*shape) else np.matmul(left, right, out=out)


def _may_choose(left: np.ndarray, right: np.ndarray) -> bool:
    """Return whether left [R, D] @ right [D, N] may run on one BLAS thread instead of all; else it is NumPy's.

    False if it is too small or too large, no plain float product, or if there is no BLAS library or one thread only.
    """
    if threads.this_thread.is_serial is not None or left.ndim != 2 or right.ndim != 2 or left.size > MOST_ELEMENTS:
        return False
    work = left.size * right.shape[1] // WORK
    if work < threads.LEAST_WORK or left.shape[1] != right.shape[0] or left.dtype != right.dtype:
        return False
    is_plain = left.dtype.char in "fd" and left.flags.forc and right.flags.c_contiguous
    return is_plain and threads.get_threads() > 1 and library() is not None


def have_same_bits(shape: tuple[int, int], width: int, in_c_order: bool, dtype: str, count: int) -> bool:
    """Return whether products [shape] @ [shape[1], width] have the same bits on one BLAS thread and on `count`; cached.

    Tested with random matrices of this dtype and order. The caller must hold the lock.
    """
    key = shape, width, in_c_order, dtype, count
    if key not in _bits:
        random = np.random.default_rng(0)
        left = random.standard_normal(shape if in_c_order else shape[::-1], np.dtype(dtype))
        left = left if in_c_order else left.T
        rights = [random.standard_normal((shape[1], width), np.dtype(dtype)) for _ in range(DRAWS)]
        _bits[key] = all(np.array_equal(left @ right, _alone(library(), left, right, None)) for right in rights)
    return _bits[key]


def _alone(openblas: Any, left: np.ndarray, right: np.ndarray, out: np.ndarray | None) -> np.ndarray:
    """Compute left [R, D] @ right [D, N] on one BLAS thread, in `out` if given, and restore the count of threads.

    `openblas` is the controller of the library; the caller must hold the lock.
    """
    count = openblas.get_num_threads()
    openblas.set_num_threads(1)
    try:
        return np.matmul(left, right, out=out)
    finally:
        openblas.set_num_threads(count)
