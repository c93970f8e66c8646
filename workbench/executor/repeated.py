"""Training passes over arrays that stay the same objects while their contents change: looked up and validated once.

A dense batch that is always copied to the same memory makes each step the same call. Finding the program for a batch
and validating its arrays takes several times as long as the work on a small batch.
"""

from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from operator import is_
from typing import Any, final

import numpy as np

from workbench.executor import steps
from workbench.executor.run import Executor
from workbench.executor.steps import Step

Call = tuple[Step, Callable[[], Any]]


@final
class Repeated:
    """The steps of a training pass, forward and backward, over the arrays that an executor holds. Created by
    `repeated`.
    """

    def __init__(self, executor: Executor, forward: list[list[Call]], backward: list[list[Call]]) -> None:
        self.executor, self.program = executor, executor.program
        self.parts = [(calls[-1][0], calls) for calls in (*forward, *backward)]
        self.context = copy_context()  # entered in a tenth of the time of np.errstate
        self.context.run(np.seterr, all="ignore")  # NaN and infinities are results
        self.values = list(executor.values)
        self.loss = executor.values[executor.output_slots[0]]
        self.gradients = dict(executor.grads)

    def fits(self) -> bool:
        """Return whether the executor still holds the same arrays."""
        executor = self.executor
        return executor.program is self.program and all(map(is_, executor.values, self.values))

    def run(self, lap: Callable[[Step], None] | None) -> float:
        """Run all steps and return the loss. `lap` is called with the last step of each part of the program."""
        alone = self.executor.alone
        if not alone.lock.acquire(False):
            alone.refuse()
        try:
            alone.trained_by = 0
            self.context.run(self._run, lap)
        finally:
            alone.lock.release()
        return self.loss.item()

    def _run(self, lap: Callable[[Step], None] | None) -> None:
        """Run all steps in order; call `lap` after each phase. An error is given a note with the name of its step."""
        try:
            for last, calls in self.parts:
                for step, call in calls:  # noqa: B007 - an error names its step
                    call()
                if lap is not None:
                    lap(last)
        except Exception as error:
            error.add_note(f"This happened in the step {step.name}.")
            raise


def repeated(executor: Executor) -> Repeated | None:
    """Prepare the passes over what `executor` holds after a training pass.

    Returns None if a step creates a new array, as sparse results do, or reads what it wrote in the call before.
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
    return Repeated(executor, forward, backward)


def _calls(executor: Executor, of: list[Step]) -> list[Call] | None:
    """Return the steps as calls without arguments; None if one of them cannot be repeated."""
    calls = []
    for step in of:
        values = step.take(executor.values)
        result = executor.values[step.output]
        if step.call is steps.identity or (step.call is steps.scale_in_place and _is_one(values[1])):
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
    """Group consecutive calls by the part of the program (forward, loss, backward, ...)."""
    parts: list[list[Call]] = []
    for call in calls:
        if parts and parts[-1][-1][0].part == call[0].part:
            parts[-1].append(call)
        else:
            parts.append([call])
    return parts
