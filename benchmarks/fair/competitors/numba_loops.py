"""Plain Numba loops over dense rows and over CSR rows, by one thread and by all."""

from collections.abc import Callable
from functools import partial
from typing import Any, final

import numpy as np

from benchmarks.fair import loops
from benchmarks.fair.competitors import Candidate, register
from workbench.advising.frameworks.training import LoopTrainer, Problem, State

LOOPS = {
    "rows copied, BLAS": (loops.copied, loops.copied_threaded),
    "rows in place": (loops.in_place, loops.in_place_threaded),
    "rows in place, gradient buffers": (loops.buffered, loops.buffered_threaded),
}


@final
class DenseLoops(LoopTrainer):
    """A training by one of the loops; `is_transposed` says which way round these have the weights."""

    def __init__(self, problem: Problem, loop: Any, is_threaded: bool, is_transposed: bool) -> None:
        """Allocate zeroed weights ([padded, D] if `is_transposed`, else [D, N]), intercept and the copied batch."""
        super().__init__(problem)
        self.loop, self.is_transposed = loop, is_transposed
        self.threads = problem.threads if is_threaded else 1
        outputs = loops.padded(problem.outputs) if is_transposed else problem.outputs
        shape = (outputs, problem.features) if is_transposed else (problem.features, outputs)
        self.w, self.b = np.zeros(shape, np.float32), np.zeros(outputs, np.float32)
        self.room = () if is_transposed else (np.empty((problem.batch_rows, problem.features), np.float32),)

    def train(self, order: np.ndarray, losses: np.ndarray) -> None:
        """Train on the rows of `order` in one compiled call, in place; writes each batch's loss to `losses`."""
        one = self.problem
        sizes = one.batch_rows, self.threads, one.outputs, np.float32(one.rate)
        self.loop(one.dense, one.labels, order, *sizes, self.w, self.b, losses, *self.room)

    def state(self) -> State:
        """Return weights [D, N] (a transposed view if stored so) and intercept [N] without padding, and losses."""
        outputs = self.problem.outputs
        w = self.w[:outputs].T if self.is_transposed else self.w
        return State(w, self.b[:outputs], self.losses)


def why_one_thread(problem: Problem) -> str:
    """Return why several threads do not help (batches of one row, or one thread allowed), or "" if they may."""
    if problem.batch_rows == 1:
        return "A batch of one row is not shared by threads."
    return "" if problem.threads > 1 else "One thread is allowed."


def _register(name: str, kind: str, loops: tuple[Any, Any], make: Callable[..., LoopTrainer]) -> None:
    """Register a loop on one thread, and the same on all threads as "NAME, prange"."""
    serial, threaded = (partial(make, loop=loop, is_threaded=place == 1) for place, loop in enumerate(loops))
    register(Candidate(name, "independent", kind, serial))
    register(Candidate(f"{name}, prange", "independent", kind, threaded, why_one_thread))


for _name, _loops in LOOPS.items():
    _register(f"Numba, {_name}", "dense", _loops, partial(DenseLoops, is_transposed="BLAS" not in _name))


# Loops over CSR rows, by one thread and by all.


CSR_LOOPS = {
    "active columns": (loops.touched, loops.touched_threaded),
    "dense gradient": (loops.accumulated, loops.accumulated_threaded),
}


@final
class SparseLoops(LoopTrainer):
    """A training by one of the loops."""

    def __init__(self, problem: Problem, loop: Any, is_threaded: bool) -> None:
        """Allocate zeroed weights [D, N] and intercept [N] for a compiled loop, on all threads or on one."""
        super().__init__(problem)
        self.loop, self.threads = loop, problem.threads if is_threaded else 1
        self.w = np.zeros((problem.features, problem.outputs), np.float32)
        self.b = np.zeros(problem.outputs, np.float32)

    def train(self, order: np.ndarray, losses: np.ndarray) -> None:
        """Train on the rows of `order` in one compiled call, in place; writes each batch's loss to `losses`."""
        one, x = self.problem, self.problem.csr
        sizes = one.batch_rows, self.threads, np.float32(one.rate)
        self.loop(x.indptr, x.indices, x.data, one.labels, order, *sizes, self.w, self.b, losses)

    def state(self) -> State:
        """Return the weights [D, N], the intercept [N] and the losses so far, not copied."""
        return State(self.w, self.b, self.losses)


for _name, _loops in CSR_LOOPS.items():
    _register(f"Numba CSR, {_name}", "sparse", _loops, SparseLoops)
