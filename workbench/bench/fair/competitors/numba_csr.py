"""Plain Numba loops over CSR rows, by one thread and by all."""

from functools import partial
from typing import Any, final

import numpy as np

from workbench.bench.fair import sparse_loops
from workbench.bench.fair.competitors.numba_dense import why_one_thread
from workbench.bench.fair.contract import Competitor, LoopTrainer, register
from workbench.bench.fair.problem import Problem, State

LOOPS = {
    "active columns": (sparse_loops.touched, sparse_loops.touched_threaded),
    "dense gradient": (sparse_loops.accumulated, sparse_loops.accumulated_threaded),
}


@final
class SparseLoops(LoopTrainer):
    """A training by one of the loops."""

    def __init__(self, problem: Problem, loop: Any, threads: int) -> None:
        super().__init__(problem)
        self.loop, self.threads = loop, threads
        self.w = np.zeros((problem.features, problem.outputs), np.float32)
        self.b = np.zeros(problem.outputs, np.float32)

    def train(self, order: np.ndarray, losses: np.ndarray) -> None:
        """Train on the rows of this order, in one call."""
        one, x = self.problem, self.problem.csr
        sizes = one.batch_rows, self.threads, np.float32(one.rate)
        self.loop(x.indptr, x.indices, x.data, one.labels, order, *sizes, self.w, self.b, losses)

    def state(self) -> State:
        """Return weights and intercept."""
        return State(self.w, self.b, self.losses)


def _make(loop: Any, is_threaded: bool, problem: Problem) -> SparseLoops:
    """Return the trainer of a CSR loop on one thread or on all."""
    return SparseLoops(problem, loop, problem.threads if is_threaded else 1)


for _name, (_serial, _threaded) in LOOPS.items():
    register(Competitor(f"Numba CSR, {_name}", "independent", "sparse", partial(_make, _serial, False)))
    register(
        Competitor(
            f"Numba CSR, {_name}, prange",
            "independent",
            "sparse",
            partial(_make, _threaded, True),
            why_not=why_one_thread,
        )
    )
