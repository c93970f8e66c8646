"""Dense products by the BLAS that NumPy is linked with, on all of its threads or on one.

OpenBLAS cuts a product into parts for all its threads and waits for the last of them, so a product beside a program
that holds a core takes as long as that program lets it. Here each product is on the side that was faster for such
products, and yields to other programs, as calls of our own kernels do (`kernels.choice`, `kernels.yielding`).

OpenBLAS cuts rows and columns of a result, never a sum, if there are enough of them: then a product has the same bits
on any number of its threads. Other products, and other libraries, are left as they are.
"""

import functools
import threading
from typing import Any

import numpy as np
import threadpoolctl

from kernels import entry_costs, threads

LEAST_SIDE = 64
"""Rows and columns from which on OpenBLAS cuts these, for its usual numbers of threads, and not the sums."""

WORK = 4
"""Multiply-adds of BLAS in the time of one in the measure of `threads.is_serial`, about."""

_lock = threading.Lock()
_limited: list[int] = []
"""One for each product that is on one thread now: the threads that BLAS had before the first of them."""


@functools.cache
def library() -> Any:
    """The controller of NumPy's OpenBLAS; None if NumPy has another BLAS."""
    found = [one for one in threadpoolctl.ThreadpoolController().lib_controllers if one.internal_api == "openblas"]
    of_numpy = [one for one in found if "numpy" in one.filepath]
    if not of_numpy and len(found) != 1:
        return None
    return (of_numpy or found)[0]


def matmul(left: np.ndarray, right: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """`numpy.matmul` of two matrices, on as many threads of BLAS as such products were fastest on lately."""
    work = _work(left, right)
    own, count = threads.this_thread, threads.get_threads()
    if work < threads.LEAST_WORK or count == 1 or own.is_serial is not None:
        return np.matmul(left, right, out=out)
    openblas = library()
    if openblas is None or openblas.get_num_threads() == 1:
        return np.matmul(left, right, out=out)
    call = (matmul, left.flags.c_contiguous), work  # X or X.T
    if own.choices.rests(call):
        return _alone(openblas, left, right, out)
    side = own.choices.begin_elsewhere(call, count, entry_costs.costs(count))
    product = _alone(openblas, left, right, out) if side == 1 else np.matmul(left, right, out=out)
    own.choices.ended()
    return product


def _work(left: np.ndarray, right: np.ndarray) -> int:
    """Work of a product for `kernels.choice`; 0 of one that is left as it is."""
    if left.ndim != 2 or right.ndim != 2 or min(left.shape) < LEAST_SIDE:
        return 0
    return left.size * right.shape[1] // WORK


def _alone(openblas: Any, left: np.ndarray, right: np.ndarray, out: np.ndarray | None) -> np.ndarray:
    """The product on one thread. Only the first of products at the same time knows how many threads to give back."""
    with _lock:
        if not _limited:
            _limited.append(openblas.get_num_threads())
            openblas.set_num_threads(1)
        else:
            _limited.append(1)
    try:
        return np.matmul(left, right, out=out)
    finally:
        with _lock:
            if len(_limited) == 1:
                openblas.set_num_threads(_limited[0])
            del _limited[-1]
