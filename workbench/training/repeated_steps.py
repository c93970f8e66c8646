"""Steps one by one on batches of dense rows: each is copied to the same memory, so that all steps are the same calls.

Without that a step of 256 rows and 256 columns spends ten times as long on finding out what is to be done, and on new
arrays for it, as on its products.
"""

import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, final

import numpy as np

from kernels import aligned
from workbench import data
from workbench.data.batches import slicing
from workbench.data.batches.slicing import MadeDense
from workbench.executor import repeated as passes
from workbench.optimizers import repeated as updates
from workbench.training.events import PhaseTimer, StepEvent
from workbench.training.prepared import Prepared

if TYPE_CHECKING:
    from workbench.training.run import Run


@final
class RepeatedSteps:
    """The steps of a training whose batches are rows of `x`, dense or made so, in another order every epoch."""

    def __init__(self, run: "Run", x: np.ndarray | MadeDense, y: np.ndarray) -> None:
        self.run = run
        rows = min(run.setup.batch_rows, run.batches.total)
        self.rows = np.zeros(rows, np.int64)
        self.batch = Prepared(_buffer(x, rows), _buffer(y, rows), None, {}, is_own=True)
        self.copies = [slicing.bind_copy(x, self.rows, self.batch.x), slicing.bind_copy(y, self.rows, self.batch.y)]
        self.passes: passes.Repeated | None = None
        self.updates: updates.Repeated | None = None
        self.is_possible = True

    def events(self, epoch: int) -> Iterator[StepEvent]:
        """Train an epoch by repeating the recorded calls for each batch; yield an event for each step."""
        laps, run, count = PhaseTimer(), self.run, self.rows.size
        order = run.batches.order(epoch)
        for first in range(0, order.size, count):
            rows = order[first : first + count]
            if rows.size == count:
                self.rows[:] = rows
                for copy in self.copies:
                    copy()
                laps.split("slice")
                yield self._step(epoch, laps)
            else:
                batch = run.prepare(run.batches.of_rows(rows))
                laps.split("slice")
                yield run.do_step(batch, epoch, laps.seconds, laps.seconds["slice"])
            laps = PhaseTimer()

    def _step(self, epoch: int, laps: PhaseTimer) -> StepEvent:
        """Take a step on the next batch and return its event: loss and phase times."""
        run, slice_seconds = self.run, laps.seconds["slice"]
        run.step += 1
        if self._fits():
            loss = self.passes.run(laps.add_step)
            self.updates.run()
        else:
            loss = run.forward(self.batch, laps)
            run.update(run.backward(laps))
            self._repeat()
        laps.split("update")
        return StepEvent(run.step, epoch, self.rows.size, loss, laps.seconds, slice_seconds)

    def _fits(self) -> bool:
        """Return whether the next step is the same calls as the last one."""
        if self.passes is None or self.updates is None:
            return False
        return self.passes.fits() and self.updates.fits(self.run.updater)

    def _repeat(self) -> None:
        """Make the next steps repeat the recorded one, unless that was found impossible."""
        run = self.run
        if self.is_possible:
            self.passes = passes.repeated(run.executor)
            self.updates = updates.repeated(run.updater, run.arrays, run.executor.grads)
            self.is_possible = self.passes is not None and self.updates is not None


def _buffer(array: np.ndarray | MadeDense, rows: int) -> np.ndarray:
    """Return an uninitialised, aligned buffer for `rows` rows of an array."""
    return aligned.empty((rows, *array.shape[1:]), array.dtype)


@final
class Repeating:
    """The repeated steps of a training on the rows that it holds now; no rows are kept that it has let go."""

    def __init__(self) -> None:
        self.batches: Callable[[], Any] = lambda: None
        self.steps: RepeatedSteps | None = None

    def steps_of(self, run: "Run") -> RepeatedSteps | None:
        """Give its steps; None for one of sparse or kept batches, or that reads more than rows and their targets."""
        if run.batches is not self.batches():
            self.batches, self.steps = weakref.ref(run.batches, self._forget), _steps_of(run)
        return self.steps

    def _forget(self, released: Any) -> None:
        """Release the steps, which hold the rows, with the batches that they were made for."""
        if released is self.batches:
            self.steps = None


def _steps_of(run: "Run") -> RepeatedSteps | None:
    """Return the repeated steps of a run, or None if it is not eligible."""
    setup, batches = run.setup, run.batches
    is_plain = setup.format == "dense" and not setup.ahead and run.mover is None and not run.patterned
    if (
        not is_plain
        or run.keeps
        or run.reads_others
        or run.feed is not batches
        or not isinstance(batches, data.Batches)
    ):
        return None
    arrays = [array for _, _, array in (*batches.data, *batches.labels)]
    if len(arrays) != 2 or type(arrays[1]) is not np.ndarray or type(arrays[0]) not in (np.ndarray, MadeDense):
        return None
    return RepeatedSteps(run, *arrays) if arrays[0].dtype == run.dtype else None
