"""Learning rate schedules: frozen dataclasses with `rate(step, base)`, steps counted from 1.

>>> schedule = WarmUp(4, Cosine(100, final=0.1))
>>> [round(schedule.rate(step, 0.5), 3) for step in (1, 4, 5, 55, 105, 999)]
[0.125, 0.5, 0.5, 0.275, 0.05, 0.05]
>>> from_json(to_json(schedule)) == schedule
True
"""

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from kernels.registry import unknown_name
from workbench.optimizers.contract import OptimizerError, known, number


class Schedule(ABC):
    """Base class of schedules: the learning rate of each step, as a multiple of the base rate.

    Examples
    --------
    >>> Constant().rate(1, 0.5)
    0.5
    """

    @abstractmethod
    def rate(self, step: int, base: float) -> float:
        """Return the learning rate of a step.

        Parameters
        ----------
        step : int
            Step, counted from 1.
        base : float
            Base rate: the option `learning_rate` of the optimizer.

        Returns
        -------
        float
            Learning rate.

        Examples
        --------
        >>> StepDecay(10).rate(11, 1.0)
        0.1
        """


def _fields(schedule: Schedule | type[Schedule]) -> tuple[dataclasses.Field[Any], ...]:
    """Return the dataclass fields of a schedule or its class. Raises OptimizerError if it is not a dataclass."""
    if not dataclasses.is_dataclass(schedule):
        raise OptimizerError(f"The schedule {schedule!r:.80} is not a dataclass; expected one of: {', '.join(KINDS)}.")
    return dataclasses.fields(schedule)


def _check(schedule: Schedule, steps: str) -> None:
    """Raise OptimizerError unless all fields are finite numbers (`then`: a schedule) and field `steps` is >= 1."""
    for field in _fields(schedule):
        value = getattr(schedule, field.name)
        what = f"{type(schedule).__name__}: {field.name} is {value!r:.80}"
        if field.name == "then":
            if not isinstance(value, Schedule):
                raise OptimizerError(f"{what}; it is a schedule.")
        elif not math.isfinite(number(value)):
            raise OptimizerError(f"{what}; it is a finite number.")
        elif field.name == steps and not value >= 1:
            raise OptimizerError(f"{what}; it is 1 or more.")


@final
@dataclass(frozen=True)
class Constant(Schedule):
    """The base rate in every step.

    Examples
    --------
    >>> Constant().rate(7, 0.5)
    0.5
    """

    def rate(self, step: int, base: float) -> float:
        """Return `base` for every step."""
        return base


@final
@dataclass(frozen=True)
class StepDecay(Schedule):
    """Multiply the rate by `factor` after every `every` steps, down to `final` of the base rate.

    Parameters
    ----------
    every : int
        Steps of one period.
    factor : float, default 0.1
        Factor per period.
    final : float, default 0.0
        Lower bound, as a fraction of the base rate.

    Examples
    --------
    >>> StepDecay(2, factor=0.5).rate(3, 1.0)
    0.5
    """

    every: int
    factor: float = 0.1
    final: float = 0.0

    def __post_init__(self) -> None:
        """Raise OptimizerError unless all fields are finite numbers and `every` is at least 1."""
        _check(self, "every")

    def rate(self, step: int, base: float) -> float:
        """Return base * max(final, factor ** (full periods before this step))."""
        return base * max(self.factor ** ((step - 1) // self.every), self.final)


@final
@dataclass(frozen=True)
class Polynomial(Schedule):
    """Decrease to `final` of the base rate within `steps` steps, as (1 - progress) ** power.

    Examples
    --------
    >>> Polynomial(10).rate(1, 1.0)
    1.0
    """

    steps: int
    power: float = 1.0
    final: float = 0.0

    def __post_init__(self) -> None:
        """Raise OptimizerError unless all fields are finite numbers and `steps` is at least 1."""
        _check(self, "steps")

    def rate(self, step: int, base: float) -> float:
        """Return base * (final + (1 - final) * left ** power); left goes from 1 in step 1 to 0 after `steps` steps."""
        left = 1 - min(step - 1, self.steps) / self.steps
        return base * (self.final + (1 - self.final) * left**self.power)


@final
@dataclass(frozen=True)
class Cosine(Schedule):
    """Decrease to `final` of the base rate within `steps` steps, along half a cosine wave.

    Examples
    --------
    >>> Cosine(100).rate(51, 1.0)
    0.5
    """

    steps: int
    final: float = 0.0

    def __post_init__(self) -> None:
        """Raise OptimizerError unless all fields are finite numbers and `steps` is at least 1."""
        _check(self, "steps")

    def rate(self, step: int, base: float) -> float:
        """Return the rate along half a cosine wave: `base` in step 1, base * final after `steps` steps."""
        done = min(step - 1, self.steps) / self.steps
        return base * (self.final + (1 - self.final) * 0.5 * (1 + math.cos(math.pi * done)))


@final
@dataclass(frozen=True)
class WarmUp(Schedule):
    """Increase linearly from `start` of the base rate to all of it in `steps` steps; then follow `then`, counted anew.

    Examples
    --------
    >>> WarmUp(4).rate(2, 1.0)
    0.5
    """

    steps: int
    then: Schedule = Constant()
    start: float = 0.0

    def __post_init__(self) -> None:
        """Raise OptimizerError unless the numbers are finite, `steps` at least 1, and `then` a schedule."""
        _check(self, "steps")

    def rate(self, step: int, base: float) -> float:
        """Return the rate: linear up to step `steps`, then that of `then`, whose steps are counted from 1 again."""
        if step > self.steps:
            return self.then.rate(step - self.steps, base)
        return base * (self.start + (1 - self.start) * step / self.steps)


KINDS: dict[str, type[Schedule]] = {
    "constant": Constant,
    "step_decay": StepDecay,
    "polynomial": Polynomial,
    "cosine": Cosine,
    "warm_up": WarmUp,
}


def to_json(schedule: Schedule) -> dict[str, Any]:
    """Convert a schedule to plain values.

    Parameters
    ----------
    schedule : Schedule
        One of the schedules of this module.

    Returns
    -------
    dict
        `kind` and the fields; values that JSON can hold.

    Examples
    --------
    >>> to_json(StepDecay(10))
    {'kind': 'step_decay', 'every': 10, 'factor': 0.1, 'final': 0.0}
    """
    kind = next(name for name, cls in KINDS.items() if cls is type(schedule))
    values = {field.name: getattr(schedule, field.name) for field in _fields(schedule)}
    return {"kind": kind} | {k: to_json(v) if isinstance(v, Schedule) else v for k, v in values.items()}


def from_json(saved: Any) -> Schedule:
    """Build a schedule from what `to_json` returned.

    Parameters
    ----------
    saved : mapping
        `kind` and the fields.

    Returns
    -------
    Schedule
        The schedule.

    Raises
    ------
    OptimizerError
        If the kind or a field is unknown or invalid.

    Examples
    --------
    >>> from_json({"kind": "cosine", "steps": 5}).rate(1, 1.0)
    1.0
    """
    values = dict(saved) if isinstance(saved, Mapping) else {}
    kind = values.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise OptimizerError(unknown_name("schedule", kind, KINDS))
    fields = _fields(KINDS[kind])
    known(f"field of {kind}", list(values), [field.name for field in fields])
    missing = [f.name for f in fields if f.default is dataclasses.MISSING and f.name not in values]
    if missing:
        raise OptimizerError(f"{kind} lacks {', '.join(missing)}.")
    return KINDS[kind](**{k: from_json(v) if k == "then" else v for k, v in values.items()})
