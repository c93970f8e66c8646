"""Progress of a training in memory, told between its compiled calls to who watches; it costs nothing if nobody does."""

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import final


@dataclass(frozen=True)
class Reached:
    """How far a training is: `done` of `most` of a `stage`, such as epochs, and the losses so far by name.

    `most` is None if nobody knows; `done` has a fraction within an epoch.
    """

    stage: str
    done: float
    most: int | None
    losses: Mapping[str, float]

    def __str__(self) -> str:
        """Return stage and losses as text.

        >>> str(Reached("epoch", 2.4, 10, {"loss": 0.25})), str(Reached("pass", 7, None, {}))
        ('epoch 3 of 10, loss 0.25', 'pass 7')
        """
        of = "" if self.most is None else f" of {self.most}"
        losses = (f"{name} {value:.4g}" for name, value in self.losses.items())
        return ", ".join([f"{self.stage} {math.ceil(self.done)}{of}", *losses])

    @property
    def share(self) -> float | None:
        """Share of the stage that is done, 0 to 1; None if nobody knows."""
        return min(self.done / self.most, 1.0) if self.most else None


NO_LOSSES: Mapping[str, float] = MappingProxyType({})
Watch = Callable[[Reached], float | None]
"""What is told how far a training is; returns for how many seconds it needs to be told nothing, None for 0."""


@final
class _Watcher:
    """Who watches, from when on (`time.perf_counter`), and what losses are multiplied by to be those of the targets."""

    def __init__(self, watch: Watch) -> None:
        """Have `watch` told from now on, losses as they are."""
        self.watch, self.due, self.unit = watch, 0.0, 1.0


_watcher: ContextVar[_Watcher | None] = ContextVar("watcher", default=None)


@contextlib.contextmanager
def watched_by(watch: Watch) -> Iterator[None]:
    """Have trainings within the context tell `watch` how far they are."""
    token = _watcher.set(_Watcher(watch))
    try:
        yield
    finally:
        _watcher.reset(token)


@contextlib.contextmanager
def losses_times(unit: Callable[[], float]) -> Iterator[None]:
    """Multiply the losses that are told within the context by `unit()`, which is only called if somebody watches."""
    if (watcher := _watcher.get()) is None:
        yield
        return
    before, watcher.unit = watcher.unit, watcher.unit * unit()
    try:
        yield
    finally:
        watcher.unit = before


def tell(stage: str, done: float, most: int | None = None, losses: Mapping[str, float] = NO_LOSSES) -> None:
    """Tell who watches how far the training is, if that is due; losses that are NaN are left out."""
    watcher = _watcher.get()
    if watcher is None or time.perf_counter() < watcher.due:
        return
    unit = watcher.unit
    known = {name: value * (unit if "loss" in name else 1) for name, value in losses.items() if not math.isnan(value)}
    rest = watcher.watch(Reached(stage, done, most, known))
    watcher.due = time.perf_counter() + rest if rest else 0.0
