"""Before a trial's clock starts: the code of every kernel that its steps use, loaded or compiled."""

import collections
import time

from kernels import threads
from kernels.private.of_numba_events import timed_compiling
from workbench import models
from workbench.sweep.grid import setup_of
from workbench.sweep.problem import Problem, drawn_for, targets
from workbench.sweep.spec import Cell
from workbench.train import make_run
from workbench.train.holding import NARROW


def warm_kernels(cell: Cell) -> dict[str, float]:
    """Load or compile every kernel the cell uses, on one and on all threads.

    What that takes in time and memory is the library's, not the training's; both are read apart. Gives the column
    seconds_compile, and seconds_compiled, which of it went into code that this machine had not kept.
    """
    start, compiled = time.perf_counter(), list[float]()
    with timed_compiling(compiled.append):
        run_tiny(cell)
        with threads.parallel():  # the same little work goes to all threads
            run_tiny(cell)
    return {"seconds_compile": time.perf_counter() - start, "seconds_compiled": sum(compiled)}


def run_tiny(cell: Cell) -> None:
    """An epoch of a tiny problem of the cell's kind, too small to pay for a second thread."""
    model = models.get(cell.model)
    width = next(width for width in (3, 1) if model.allows(width))
    tiny_set = drawn_for(model, width, rows=40, features=24, density=0.2, seed=0)
    y = targets(tiny_set, model, width, cell.dtype)
    x = tiny_set.x.astype(cell.dtype)
    if cell.hold in NARROW:  # ones are exact in every type
        x.data[:] = 1
    problem = Problem(tiny_set, x, y, width, tiny_set.rows)
    tiny = cell.model_copy(update={"batch_rows": 16, "width": width})
    run = make_run(setup_of(tiny), problem.held(tiny), problem.y, width, problem.facts)
    collections.deque(run.events(1), maxlen=0)
