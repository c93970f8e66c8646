"""Budget of a sweep: what it has taken, and whether a trial still ends in time."""

import time
from typing import Any, final

from workbench.measure import child
from workbench.sweep.spec import Spec

COMPILING = "compiling"
"""The stage of a trial in which its code is loaded, or compiled where this machine never ran it."""
SECONDS_COMPILE = 900.0
"""What compiling the code of a trial may take; it is kept when it is done, and would be lost if that were ended."""
LEAST_OF_RACE = 2
"""Trials of a race that are done whatever they take: one of each side."""


@final
class Budget:
    """Seconds of a sweep from the moment that it was asked for, some `seconds_before` its supervisor was there.

    A round is never cut, since the half of one tells nothing; in a race it tells who is far behind, so there no trial
    is begun that would end too late: one takes what that cell took last, and its first one the mean of all.
    """

    def __init__(self, spec: Spec, seconds_before: float = 0.0) -> None:
        self.most, self.is_race = spec.limits.seconds_sweep, spec.measure.race
        self._started = time.monotonic() - seconds_before
        self._lasted: dict[str, float] = {}

    @property
    def spent(self) -> float:
        """Seconds since the sweep was asked for."""
        return time.monotonic() - self._started

    @property
    def is_out(self) -> bool:
        """Whether the time that the sweep may take is over."""
        return self.most is not None and self.spent >= self.most

    def lasted(self, key: str, seconds: float) -> None:
        """A trial of that cell took so long."""
        self._lasted[key] = seconds

    def is_too_little_for(self, key: str) -> bool:
        """Whether a trial of that cell of a race would end too late."""
        if self.most is None or not self.is_race or len(self._lasted) < LEAST_OF_RACE:
            return False
        later = list(self._lasted.values())[1:]  # the very first one waits for libraries
        return self.spent + self._lasted.get(key, sum(later) / len(later)) > self.most


@final
class TrialClock:
    """The seconds of one trial against what it may take, `most`; those of compiling are apart."""

    def __init__(self, most: float) -> None:
        self.most, self.started = most, time.monotonic()
        self.compiling = 0.0
        self._since: float | None = None

    def enter(self, stage: str) -> None:
        """Note that the trial has begun this stage."""
        now = time.monotonic()
        if self._since is not None:
            self.compiling += now - self._since
        self._since = now if stage == COMPILING else None

    @property
    def why_end(self) -> dict[str, Any]:
        """The columns of an end for time, or nothing."""
        if self._since is not None:
            return child.why_too_long(self._since, SECONDS_COMPILE, "the limit of compiling")
        return child.why_too_long(self.started + self.compiling, self.most, "seconds_cell")
