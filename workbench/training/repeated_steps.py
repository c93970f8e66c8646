"""Steps one by one on batches of dense rows: each is copied to the same memory, so that all steps are the same calls.

Without that a step of 256 rows and 256 columns spends ten times as long on finding out what is to be done, and on new
arrays for it, as on its products: the program of a batch and its arrays are looked up and validated once.
"""

import weakref
from collections.abc import Callable, Generator, Mapping
from contextvars import copy_context
from functools import partial
from operator import is_, itemgetter
from time import perf_counter
from typing import TYPE_CHECKING, Any, final

import numpy as np

import kernels
from kernels import aligned
from workbench import data
from workbench.data.batches import slicing
from workbench.data.batches.slicing import MadeDense
from workbench.executor.program import Step, identity, scale_in_place
from workbench.executor.run import Executor
from workbench.optimizers.parameter import Parameter, table
from workbench.optimizers.updater import Updater
from workbench.training.training import PHASE_OF, PhaseTimer, Prepared, StepEvent

Bound = tuple[str, Parameter, np.ndarray, Callable[..., Any]]


@final
class RepeatedUpdates:
    """A step of an updater on fixed weights and gradients. Created by `repeat_updates`."""

    def __init__(self, updater: Updater, bound: list[Bound]) -> None:
        """Store the updater and (name, parameter, weights, bound kernel) for each parameter."""
        self.updater, self.bound = updater, bound

    def fits(self, updater: Updater) -> bool:
        """Return whether the bound step is still valid: same updater, parameters and weights, and no clipping."""
        if updater is not self.updater or updater.clip_global_norm is not None:
            return False
        for name, parameter, weights, _ in self.bound:
            if updater.parameters.get(name) is not parameter or not weights.flags.carray:
                return False
        return True

    def run(self) -> None:
        """Update the bound weights in place by the current options, multipliers and schedule."""
        updater = self.updater
        updater.obey()
        rescale = updater.options["rescale"]
        numbers = [updater.numbers(name, one.step + 1, rescale) for name, one, _, _ in self.bound]
        for (_, parameter, _, step), given in zip(self.bound, numbers, strict=True):
            step(*given)
            parameter.step += 1


def repeat_updates(
    updater: Updater, weights: Mapping[str, Any], gradients: Mapping[str, Any]
) -> RepeatedUpdates | None:
    """Return an update bound to these weights and gradients, {name: array}, for repetition; None if impossible.

    It needs dense parameters that have been updated before, no deferred rows, and dense contiguous gradients.
    """
    bound = []
    for name, gradient in gradients.items():
        parameter = updater.parameters.get(name)
        if parameter is None or type(gradient) is not np.ndarray or not parameter.is_settled(weights[name]):
            return None
        kernel = kernels.get(f"{parameter.optimizer.name}_dense")
        step = kernel.bind(*parameter.tables(weights[name]), table(gradient, parameter.rows, parameter.width))
        if step is None:
            return None
        bound.append((name, parameter, weights[name], step))
    return RepeatedUpdates(updater, bound)


Call = tuple[Step, Callable[[], Any]]


@final
class RepeatedPasses:
    """The steps of a training pass, forward and backward, over the arrays that an executor holds. Created by
    `repeat_passes`.
    """

    def __init__(self, executor: Executor, forward: list[list[Call]], backward: list[list[Call]]) -> None:
        """Store the bound calls of both passes, and the executor's arguments to notice when they are replaced."""
        self.executor, self.program = executor, executor.program
        self.shapes = tuple([executor.values[slot].shape for slot in executor.slots.values()])
        self.parts = [(PHASE_OF[calls[-1][0].part], calls) for calls in (*forward, *backward)]
        self.context = copy_context()  # entered in a tenth of the time of np.errstate
        self.context.run(np.seterr, all="ignore")  # NaN and infinities are results
        slots = [slot for name, slot in executor.slots.items() if name not in ("x", "y")]
        self.take = itemgetter(slice(0), *slots)  # of one slot, too, it gives a tuple
        self.arguments = self.take(executor.values)
        self.loss = executor.values[executor.output_slots[0]]

    def fits(self) -> bool:
        """Return whether the executor still has the program of these shapes and the same arguments besides the batch.

        It may have done other batches meanwhile, which use the same buffers: nothing in them lasts from step to step.
        """
        executor = self.executor
        if executor.programs.get(self.shapes) is not self.program:
            return False
        return all(map(is_, self.take(executor.values)[1:], self.arguments[1:]))

    def run(self, laps: PhaseTimer) -> float:
        """Run all steps on the executor's arrays, in place, and return the loss; the phases are timed in `laps`.

        Raises if the executor is in use by another thread.
        """
        alone = self.executor.alone
        if not alone.lock.acquire(False):
            alone.refuse()
        try:
            alone.trained_by = 0
            self.context.run(self._run, laps)
        finally:
            alone.lock.release()
        return self.loss.item()

    def _run(self, laps: PhaseTimer) -> None:
        """Run all steps in order, and add the time of each part to its phase in `laps`.

        Errors get a note naming their step.
        """
        seconds = laps.seconds
        try:
            for phase, calls in self.parts:
                for step, call in calls:  # noqa: B007 - an error names its step
                    call()
                now = perf_counter()  # as PhaseTimer.split does, which takes a call for each part
                seconds[phase] += now - laps.last
                laps.last = now
        except Exception as error:
            error.add_note(f"This happened in the step {step.name}.")
            raise


def repeat_passes(executor: Executor) -> RepeatedPasses | None:
    """Return the bound forward and backward passes of an executor after a training pass; None if impossible.

    That is so if a step creates a new array, as sparse results do, reads a plan, or adds to gradients.
    """
    program = executor.program
    if program.plans or len(executor.output_slots) != 1:
        return None
    if any(request != "write" for request in executor.requests.values()):
        return None
    parts = [_calls(executor, steps_of) for steps_of in (program.training, program.backward)]
    if any(calls is None for calls in parts):
        return None
    forward, backward = (_by_part(calls) for calls in parts if calls is not None)
    return RepeatedPasses(executor, forward, backward)


def _calls(executor: Executor, of: list[Step]) -> list[Call] | None:
    """Return [(step, function without arguments)] of these steps on the executor's arrays.

    None if one cannot be repeated.
    """
    calls = []
    for step in of:
        values = step.take(executor.values)
        result = executor.values[step.output]
        if step.call is identity or (step.call is scale_in_place and _is_one(values[1])):
            if result is not values[0]:
                return None
        elif step.out is None or result is not step.out:
            return None
        else:
            bound = step.bind(*values, out=step.out) if step.bind else None
            calls.append((step, bound or partial(step.call, *values, out=step.out)))
    return calls


def _is_one(head: np.ndarray) -> bool:
    """Return whether the head gradient is a single 1."""
    return head.size == 1 and head.item() == 1


def _by_part(calls: list[Call]) -> list[list[Call]]:
    """Group consecutive calls by the part of the program that they belong to (forward, loss, backward, ...)."""
    parts: list[list[Call]] = []
    for call in calls:
        if parts and parts[-1][-1][0].part == call[0].part:
            parts[-1].append(call)
        else:
            parts.append([call])
    return parts


if TYPE_CHECKING:
    from workbench.training.run import Run


@final
class RepeatedBatch:
    """Memory of a batch of a fixed number of rows, and the bound calls of a step on it."""

    def __init__(self, x: np.ndarray | MadeDense, y: np.ndarray, rows: int) -> None:
        """Allocate a batch of `rows` rows, and bind the copies of the rows of x and y into it."""
        self.rows = np.zeros(rows, np.int64)
        self.batch = Prepared(_buffer(x, rows), _buffer(y, rows), None, {}, is_own=True)
        self.copies = [slicing.bind_copy(x, self.rows, self.batch.x), slicing.bind_copy(y, self.rows, self.batch.y)]
        self.passes: RepeatedPasses | None = None
        self.updates: RepeatedUpdates | None = None

    def fits(self, updater: Updater) -> bool:
        """Return whether the bound calls of a step, if there are any, are still valid for this updater."""
        passes, updates = self.passes, self.updates
        return passes is not None and updates is not None and passes.fits() and updates.fits(updater)


@final
class RepeatedSteps:
    """The steps of a training whose batches are rows of `x`, dense or made so, in another order every epoch."""

    def __init__(self, run: "Run", x: np.ndarray | MadeDense, y: np.ndarray) -> None:
        """Keep the run and the arrays; `batches` has the memory of batches by their number of rows, made when used."""
        self.run, self.x, self.y = run, x, y
        self.batches: dict[int, RepeatedBatch] = {}
        self.is_possible = True

    def events(self, epoch: int) -> Generator[StepEvent, None, None]:
        """Train an epoch by repeating bound calls for each batch; yield an event for each step.

        Parameters and step count change in place.
        """
        laps, run = PhaseTimer(), self.run
        assert isinstance(run.batches, data.Batches)
        order, count = run.batches.order(epoch), min(run.setup.batch_rows, run.batches.total)
        for first in range(0, order.size, count):
            rows = order[first : first + count]
            held = self.batches.get(rows.size)
            if held is None:  # of all rows of an epoch the last ones may be fewer
                held = self.batches[rows.size] = RepeatedBatch(self.x, self.y, rows.size)
            held.rows[:] = rows
            for copy in held.copies:
                copy()
            laps.split("slice")
            yield self._step(held, epoch, laps)
            laps = PhaseTimer()

    def _step(self, held: RepeatedBatch, epoch: int, laps: PhaseTimer) -> StepEvent:
        """Do a step on the copied batch and return its event.

        Bound calls if valid, else a normal step that is then bound.
        """
        run, slice_seconds = self.run, laps.seconds["slice"]
        run.step += 1
        if held.passes is not None and held.updates is not None and held.fits(run.updater):
            loss = held.passes.run(laps)
            held.updates.run()
        else:
            loss = run.forward(held.batch, laps)
            run.update(run.backward(laps))
            self._repeat(held)
        laps.split("update")
        return StepEvent(run.step, epoch, held.rows.size, loss, laps.seconds, slice_seconds)

    def _repeat(self, held: RepeatedBatch) -> None:
        """Bind the step just done for repetition; if that is impossible once, it is not tried again."""
        run = self.run
        if self.is_possible:
            held.passes = repeat_passes(run.executor)
            held.updates = repeat_updates(run.updater, run.arrays, run.executor.grads)
            self.is_possible = held.passes is not None and held.updates is not None


def _buffer(array: np.ndarray | MadeDense, rows: int) -> np.ndarray:
    """Return an uninitialised, aligned array for `rows` rows of `array`."""
    return aligned.empty((rows, *array.shape[1:]), array.dtype)


@final
class Repeating:
    """The repeated steps of a training on the rows that it holds now; no rows are kept that it has let go."""

    def __init__(self) -> None:
        """Start without steps and batches."""
        self.batches: Callable[[], Any] = lambda: None
        self.steps: RepeatedSteps | None = None

    def steps_of(self, run: "Run") -> RepeatedSteps | None:
        """Return the repeated steps of a run, made once for its current batches; None if it is not eligible."""
        if run.batches is not self.batches():
            self.batches, self.steps = weakref.ref(run.batches, self._forget), _steps_of(run)
        return self.steps

    def _forget(self, released: Any) -> None:
        """Drop the steps, which hold the rows, when their batches are deleted (weakref callback)."""
        if released is self.batches:
            self.steps = None


def _steps_of(run: "Run") -> RepeatedSteps | None:
    """Return repeated steps bound to a run's arrays; None unless its batches are plain dense rows cut from memory."""
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
