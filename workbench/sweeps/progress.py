"""Progress of a run: what its supervisor writes at least once a second, and what readers make of it."""

import platform
import time
from dataclasses import dataclass, field
from typing import Annotated

import psutil
import pydantic

SECONDS_SILENT = 10.0
"""A run whose file is older than this is dead, whatever it says, unless the process that wrote it is there."""
SECONDS_SHOWN = 2.0
"""A stage that takes longer says how long it takes by now."""
BEFORE, TIMED = ("starting", "compiling"), ("preparing data", "measuring", "training")
"""Stages of a trial before its clock runs, and those in which it runs or is about to."""
SECONDS_ROOM = 0.4
"""A stage before the clock is long enough for something short that begins so soon after it did."""
SECONDS_START = 60.0
"""A run that only starts may be silent for so long: libraries are loaded from a cold disk once."""


Process = Annotated[int, pydantic.Field(ge=0, lt=2**31)]


@dataclass
class Progress:
    """Progress of a run. `state` is starting, running, finished, stopped or failed (`message` says why).

    `current` has the settings of the configuration at work, `current_key` is its key, empty between trials,
    `candidate` is what is compared there; `stage` says what is done with it since `stage_since`, by the clock of
    `heartbeat`, and `round` of how many `rounds` at most its comparison is in. Of a run on several machines `agents`
    says what each agent does, `waiting` how many comparisons no agent has.

    `total` trials are due up to the next look at each comparison, `total_most` where none decides anything before its
    last round. `seconds_budget` is what the sweep may take, None for as long as it takes; `seconds_compiled` of
    `seconds` went into code that this machine had not kept.
    """

    name: str
    state: str = "starting"
    pid: Process = 0
    total: int = 0
    total_most: int = 0
    done: int = 0
    reused: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    current: str = ""
    current_key: str = ""
    candidate: str = ""
    stage: str = ""
    stage_since: float = 0.0
    round: int = 0
    rounds: int = 0
    agents: dict[str, str] = field(default_factory=dict)
    waiting: int = 0
    seconds: float = 0.0
    seconds_compiled: float = 0.0
    seconds_left: float | None = None
    seconds_left_most: float | None = None
    seconds_budget: float | None = None
    message: str = ""
    heartbeat: float = 0.0
    host: str = field(default_factory=platform.node)
    __pydantic_config__ = pydantic.ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    @property
    def alive(self) -> bool:
        """Whether the supervisor runs, by the age of its heartbeat and, on this machine, by its process.

        A local process that started before its heartbeat counts as alive however long it is silent, as on a sleeping
        machine; one started later merely reuses the process id.
        """
        silent = {"starting": SECONDS_START, "running": SECONDS_SILENT}.get(self.state, 0.0)
        is_recent = time.time() - self.heartbeat < silent
        if not silent or not self.is_here:
            return is_recent
        began = _start_time(self.pid)
        return began is not None and (is_recent or began < self.heartbeat)

    @property
    def is_here(self) -> bool:
        """Whether the supervisor's process id is known and belongs to this machine."""
        return self.pid > 0 and self.host == platform.node()

    @property
    def is_timed(self) -> bool:
        """Whether a trial is being timed or about to be, so that computing now would disturb it."""
        is_late = self.stage in BEFORE and time.time() - self.stage_since > SECONDS_ROOM
        return self.alive and (is_late or self.stage in TIMED)

    @property
    def now(self) -> str:
        """Stage at work with round, seconds and candidate as text; `current` if no stage is set.

        >>> cell = {"candidate": "CSR ours", "current_key": "5eed"}
        >>> Progress("x", stage="measuring", round=3, rounds=12, stage_since=60.0, heartbeat=64.2, **cell).now
        'measuring round 3 of 12, 4 s: CSR ours'
        >>> Progress("x", stage="preparing data").now
        'preparing data'
        """
        if not self.stage:
            return self.current
        seconds = self.heartbeat - self.stage_since
        round_ = f" round {self.round} of {self.rounds}" if self.stage == "measuring" and self.rounds else ""
        lasting = f", {seconds:.0f} s" if seconds >= SECONDS_SHOWN else ""
        whose = f": {self.candidate}" if self.candidate and self.current_key else ""
        return f"{self.stage}{round_}{lasting}{whose}"

    @property
    def by_agent(self) -> list[str]:
        """Lines "NAME: what it does", one for each agent, and one on waiting comparisons; [] on a single machine.

        >>> Progress("x", agents={"node1": "format=csr"}, waiting=3).by_agent
        ['node1: format=csr', '3 comparisons wait']
        """
        waits = [f"{self.waiting} comparisons wait"] if self.agents and self.waiting else []
        return [*(f"{name}: {doing}" for name, doing in sorted(self.agents.items())), *waits]

    @property
    def over(self) -> bool:
        """Whether nothing more will come: the run ended, or its supervisor is not alive."""
        return not self.alive


_FROM_JSON = pydantic.TypeAdapter(Progress)


def parse(text: bytes) -> Progress:
    """Return the progress from the JSON bytes of a progress file; ValueError "field: what is wrong" if invalid."""
    try:
        return _FROM_JSON.validate_json(text)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(f"{place}: {first['msg']}" if place else first["msg"]) from None


def _start_time(pid: int) -> float | None:
    """Return the start time of the process `pid` in seconds since the epoch; None if it has ended or is a zombie."""
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.NoSuchProcess:
        return None


def format_duration(seconds: float) -> str:
    """Return seconds as a rounded text in s, minutes, hours or days.

    >>> format_duration(3.2), format_duration(48), format_duration(200), format_duration(5400), format_duration(1e6)
    ('5 s', '50 s', '3 minutes', '1.5 hours', '12 days')
    """
    if seconds < 55:
        return f"{max(5, 5 * round(seconds / 5))} s"
    if seconds < 5000:
        minutes = max(1, round(seconds / 60))
        return "1 minute" if minutes == 1 else f"{minutes} minutes"
    hours = seconds / 3600
    return f"{hours:.2g} hours" if hours < 100 else f"{hours / 24:.2g} days"


def format_spent(seconds: float, budget: float | None = None) -> str:
    """Return the seconds spent as text, of how many if there is a budget; what is over it is no progress.

    >>> format_spent(7.4), format_spent(7.4, 15.0), format_spent(17.0, 15.0)
    ('7 s', '7 of 15 s', '17 s, over the budget of 15 s')
    """
    if not budget:
        return f"{seconds:.0f} s"
    is_over = round(seconds) > round(budget)
    return f"{seconds:.0f} s, over the budget of {budget:.0f} s" if is_over else f"{seconds:.0f} of {budget:.0f} s"
