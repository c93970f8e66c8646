"""Schedules of the learning rate: frozen records with `rate(step, base)`, the step counted from 1.

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

from workbench.optimizers.contract import OptimizerError, known, number


class Schedule(ABC):
    """The rate of each step. Rates are told relative to the base rate, the optimizer's option."""

    @abstractmethod
    def rate(self, step: int, base: float) -> float:
        """The rate of a step, counted from 1."""


def _fields(schedule: Schedule | type[Schedule]) -> tuple[dataclasses.Field[Any], ...]:
    """Return the dataclass fields of a schedule. Raises OptimizerError if it is not a dataclass."""
    if not dataclasses.is_dataclass(schedule):
        raise OptimizerError(f"The schedule {schedule!r:.80} is not a dataclass; expected one of: {', '.join(KINDS)}.")
    return dataclasses.fields(schedule)


def _check(schedule: Schedule, steps: str) -> None:
    """Refuse fields that are no numbers, and a number of `steps`, the field of that name, below 1."""
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
    """The base rate always."""

    def rate(self, step: int, base: float) -> float:
        """The base rate."""
        return base


@final
@dataclass(frozen=True)
class StepDecay(Schedule):
    """Multiplied by `factor` after every `every` steps, until it is `final` of the base rate."""

    every: int
    factor: float = 0.1
    final: float = 0.0

    def __post_init__(self) -> None:
        _check(self, "every")

    def rate(self, step: int, base: float) -> float:
        """base * factor ** (full periods before this step)."""
        return base * max(self.factor ** ((step - 1) // self.every), self.final)


@final
@dataclass(frozen=True)
class Polynomial(Schedule):
    """Down to `final` of the base rate within `steps`, as (1 - part done) ** power."""

    steps: int
    power: float = 1.0
    final: float = 0.0

    def __post_init__(self) -> None:
        _check(self, "steps")

    def rate(self, step: int, base: float) -> float:
        """The base rate in step 1, `final` of it after `steps`."""
        left = 1 - min(step - 1, self.steps) / self.steps
        return base * (self.final + (1 - self.final) * left**self.power)


@final
@dataclass(frozen=True)
class Cosine(Schedule):
    """Down to `final` of the base rate within `steps`, along half a wave of the cosine."""

    steps: int
    final: float = 0.0

    def __post_init__(self) -> None:
        _check(self, "steps")

    def rate(self, step: int, base: float) -> float:
        """The base rate in step 1, `final` of it after `steps`."""
        done = min(step - 1, self.steps) / self.steps
        return base * (self.final + (1 - self.final) * 0.5 * (1 + math.cos(math.pi * done)))


@final
@dataclass(frozen=True)
class WarmUp(Schedule):
    """Rise from `start` times the base rate to all of it in step `steps`; then `then`, its steps counted anew."""

    steps: int
    then: Schedule = Constant()
    start: float = 0.0

    def __post_init__(self) -> None:
        _check(self, "steps")

    def rate(self, step: int, base: float) -> float:
        """A linear rate, then the rate of `then`."""
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
    """A dictionary of plain values, for JSON: the kind's name and the fields."""
    kind = next(name for name, cls in KINDS.items() if cls is type(schedule))
    values = {field.name: getattr(schedule, field.name) for field in _fields(schedule)}
    return {"kind": kind} | {k: to_json(v) if isinstance(v, Schedule) else v for k, v in values.items()}


def from_json(saved: Any) -> Schedule:
    """The schedule of such a dictionary; unknown kinds and fields are an `OptimizerError` that lists the known."""
    values = dict(saved) if isinstance(saved, Mapping) else {}
    kind = values.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise OptimizerError(f"There is no schedule {kind!r}; there is: {', '.join(KINDS)}.")
    fields = _fields(KINDS[kind])
    known(f"{kind} has no field", list(values), [field.name for field in fields])
    missing = [f.name for f in fields if f.default is dataclasses.MISSING and f.name not in values]
    if missing:
        raise OptimizerError(f"{kind} lacks {', '.join(missing)}.")
    return KINDS[kind](**{k: from_json(v) if k == "then" else v for k, v in values.items()})
