"""Budget of a sweep: what it has taken, and whether a trial still ends in time."""

import math
import time
from typing import Any, final

from kernels import devices
from workbench.measure import child
from workbench.sweeps.grid import setup_of
from workbench.sweeps.spec import Configuration, Spec
from workbench.training import impossible_reason

# Ends of a trial before it has all that it needs: what its settings, its device and its memory do not allow.


class TrialEnded(Exception):  # noqa: N818 - control flow, not an error
    """The trial is over with this status and reason."""

    def __init__(self, status: str, reason: str, **columns: object) -> None:
        """Keep `status` (such as "unsupported") and further record columns; `reason` is the message."""
        super().__init__(reason)
        self.status, self.columns = status, columns


class NoRoom(Exception):  # noqa: N818 - control flow, not an error
    """The arrays of the trial do not fit in memory in addition to those of other processes that wait for their
    turns."""


def require_possible(configuration: Configuration) -> None:
    """Raise TrialEnded ("unsupported") if a setting requests something that its device does not support."""
    if reason := impossible_reason(setup_of(configuration)):
        raise TrialEnded("unsupported", reason)


def require_device(device: str, found: devices.Gpu | None = None) -> dict:
    """Return the record columns that describe the device: gpu, bytes_device_limit and versions; {} for "cpu".

    Raises TrialEnded ("unsupported") if `device` is "cuda" and there is none. `found` is the probed GPU, by default
    probed now.
    """
    if device == "cpu":
        return {}
    found = found or devices.probe()
    if not found.present:
        raise TrialEnded("unsupported", no_device(found))
    return {"gpu": found.name, "bytes_device_limit": found.bytes_memory, "versions": found.versions}


def no_device(found: devices.Gpu) -> str:
    """Return a sentence on why there is no CUDA device, "No CUDA device: ...", from the result of a probe."""
    return f"No CUDA device: {found.reason.removeprefix('no CUDA device: ')}."


def out_of_memory(device: str, error: MemoryError) -> str:
    """Return the reason of a trial that ended by a MemoryError: which memory, and the allocator's message."""
    where = "Out of device memory" if device == "cuda" and devices.bytes_asked(error) else "Out of memory"
    return f"{where}: {str(error).rstrip('.') or 'an allocation failed'}."


COMPILING = "compiling"
"""The stage of a trial in which its code is loaded, or compiled where this machine never ran it."""
SECONDS_COMPILE = 900.0
"""What compiling the code of a trial may take; it is kept when it is done, and would be lost if that were ended."""
SECONDS_FIRST_STEP = 1.0
"""The least time of a first step that says something of later ones: a short one starts threads and touches memory."""
SECONDS_LEAST = 3.0
"""What a trial may take however little is left: enough for arrays in memory and some steps."""
END_SHARE, END_SECONDS = 1.05, 0.5
"""The trial at work is ended at so many times the budget, and so many seconds later."""
LEAST_OF_RACE = 2
"""Trials of a race that are done whatever they take: one of each side."""


@final
class Budget:
    """Seconds of a sweep from the moment that it was asked for, some `seconds_before` its supervisor was there.

    No round is begun when they are over. In a race no trial is begun that would end too late: one takes what that
    configuration took last, and its first one the mean of all. What is at work at `end`, by `time.monotonic`, is ended.
    """

    def __init__(self, spec: Spec, seconds_before: float = 0.0) -> None:
        """Start counting now, less `seconds_before`, the seconds between the request and this call.

        Without a limit in `spec` the sweep never ends by time. `end` (`time.monotonic`) is when the trial at work is
        ended.
        """
        self.most, self.is_race = spec.limits.budget, spec.measure.race
        self.seconds_cell = spec.limits.seconds_cell
        self._started = time.monotonic() - seconds_before
        seconds_end = math.inf if self.most is None else END_SHARE * self.most + END_SECONDS
        self.end = self._started + (spec.limits.seconds_end or seconds_end)
        self._lasted: dict[str, float] = {}

    @property
    def spent(self) -> float:
        """Seconds since the sweep was asked for."""
        return time.monotonic() - self._started

    @property
    def is_out(self) -> bool:
        """Whether the time limit of the sweep is over; False without a limit."""
        return self.most is not None and self.spent >= self.most

    @property
    def seconds_trial(self) -> float:
        """Seconds that the next trial may take: `seconds_cell`, in a race no more than the budget has left.

        At least `SECONDS_LEAST` in a race.
        """
        if self.most is None or not self.is_race:
            return self.seconds_cell
        return min(self.seconds_cell, max(self.most - self.spent, SECONDS_LEAST))

    def record_duration(self, key: str, seconds: float) -> None:
        """Record the seconds that the latest trial of the configuration `key` took, replacing the former one."""
        self._lasted[key] = seconds

    def is_too_little_for(self, *keys: str) -> bool:
        """Return whether trials of these configurations, one after the other, would end after the budget.

        Estimated from their latest trials, else the mean of all others but the first (which waits for libraries).
        Always False outside races and before `LEAST_OF_RACE` trials.
        """
        if self.most is None or not self.is_race or len(self._lasted) < LEAST_OF_RACE:
            return False
        later = list(self._lasted.values())[1:]  # the very first one waits for libraries
        usual = sum(later) / len(later)
        return self.spent + sum(self._lasted.get(key, usual) for key in keys) > self.most


@final
class TrialClock:
    """The seconds of one trial against its limit `most`; seconds of compiling and of rests are counted separately.

    No trial runs past `end` (`time.monotonic`). `known` are columns that the trial has reported so far, `checked` the
    errors of its first step.
    """

    def __init__(self, most: float, end: float = math.inf) -> None:
        """Start the clock of a trial with the limit of `most` seconds.

        `end` is a `time.monotonic` that none may pass.
        """
        self.most, self.end = most, end
        self.known: dict[str, Any] = {}
        self.checked: dict[str, Any] = {}
        self.begin()

    def begin(self) -> None:
        """Restart the clock at zero, without steps, rests or compiling; used for each round in the same process."""
        self.started, self.compiling = time.monotonic(), 0.0
        self._since: float | None = None
        self._rests_since: float | None = None
        self._steps, self._steps_since, self._longest = 0, 0.0, 0.0

    def rest(self) -> None:
        """Pause the clock until `resume`, while other processes compute."""
        self._rests_since = time.monotonic()

    def resume(self) -> None:
        """Continue after `rest`, whose seconds do not count towards the limit; no effect if the clock is running."""
        if self._rests_since is not None:
            self.started += time.monotonic() - self._rests_since
        self._rests_since = None

    @property
    def seconds(self) -> float:
        """Seconds that the trial has taken, without rests, including compiling."""
        return (self._rests_since or time.monotonic()) - self.started

    def enter(self, stage: str) -> None:
        """Note that the stage of this name begins; the time of the stage "compiling" is counted separately."""
        now = time.monotonic()
        if self._since is not None:
            self.compiling += now - self._since
        self._since = now if stage == COMPILING else None

    def enter_steps(self, count: int) -> None:
        """Note that up to `count` steps begin, which end together; 0 means that they have ended.

        The longest time of a step so far is kept, as a bound of the first step. Time of compiling does not count.
        """
        self._longest = self._seconds_longest()
        self._steps, self._steps_since = count, self.seconds - self.compiling

    def _seconds_longest(self) -> float:
        """Return the seconds of a step in the longest group of steps so far, the unfinished one included.

        0.0 if none.
        """
        if not self._steps:
            return self._longest
        compiling = 0.0 if self._since is None else time.monotonic() - self._since
        return max((self.seconds - self.compiling - compiling - self._steps_since) / self._steps, self._longest)

    @property
    def why_end(self) -> dict[str, Any]:
        """Columns status and reason if the trial passed a limit (compiling, configuration or budget), else {}.

        Adds seconds_first_step if the longest step took `SECONDS_FIRST_STEP` or more.
        """
        if self._since is not None and time.monotonic() <= self.end:
            return child.why_too_long(self._since, SECONDS_COMPILE, "the limit of compiling")
        ended: dict[str, Any] = {"status": "stopped", "reason": "The budget was out while this trial ran."}
        if time.monotonic() <= self.end:
            ended = child.why_too_long(self.started + self.compiling, self.most, "seconds_cell")
        if ended and (seconds := self._seconds_longest()) >= SECONDS_FIRST_STEP:
            ended["seconds_first_step"] = seconds
        return ended
