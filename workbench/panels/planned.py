"""Plan of what Run would do: how many trials, of which configurations, what is measured already, how long it takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench.analysis import formatting
from workbench.sweeps import estimate, grid
from workbench.sweeps.estimate import format_time_span, minimum_detectable_sentence, seconds_of_trials
from workbench.sweeps.file_contents import Contents
from workbench.sweeps.progress import Progress
from workbench.sweeps.schedule import Schedule
from workbench.sweeps.spec import Spec

FEW = 3
"""Trials before the time left is told: the first ones load data and compile."""


@dataclass(frozen=True)
class Planned:
    """`rest` trials to do at least and at most; `reused` measured before; `configurations` in words; `seconds` as rest.

    `left_out` counts the combinations that cannot be measured, by reason; `minimum_detectable_sentence` says what can
    be distinguished.
    """

    rest: tuple[int, int]
    reused: int
    configurations: tuple[str, ...]
    seconds: tuple[float, float]
    sight: str = ""
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        least, most = self.rest
        if not most:
            return f"All {formatting.format_count(self.reused, 'trial')} are measured; Run has nothing to add."
        known = f" beside {self.reused} measured already" if self.reused else ""
        count = formatting.format_count(least, "trial") if least == most else f"{least} to {most} trials"
        return f"{count}{known}; Run takes {format_time_span(self.seconds)}. {self.sight}".rstrip()

    @property
    def without(self) -> str:
        """Number of cells that are left out, and why, or why one of them is; "" if none is."""
        if not self.left_out:
            return ""
        example = "for example: " if len(self.left_out) > 1 else ""
        return (
            f"{formatting.format_count(sum(self.left_out.values()), 'setting')} left out: "
            f"{example}{next(iter(self.left_out))}"
        )


def plan(spec: Spec, rows: Sequence[Mapping[str, Any]]) -> Planned:
    """Return the plan of a sweep whose run folder holds these rows."""
    schedule = Schedule.of(spec, rows, Contents(is_quick=True))
    rest = (schedule.trials_due(), schedule.trials_most())
    seconds = seconds_of_trials(rest, tuple(schedule.cells.values()), spec, rows)
    return Planned(
        rest, schedule.reused, _configurations(spec), seconds, minimum_detectable_sentence(spec), dict(schedule.dropped)
    )


def _configurations(spec: Spec) -> tuple[str, ...]:
    """Return the distinct names of the configurations of a specification."""
    return tuple(
        dict.fromkeys(formatting.short_configuration_name(cell.model_dump()) for cell in grid.expand_grid(spec).cells)
    )


def left(progress: Progress) -> str:
    """Return the time that a run takes still, for after a comma.

    "" before enough trials ended, for the first ones compile.
    """
    seconds = progress.seconds_left if progress.alive and progress.done - progress.reused >= FEW else None
    return estimate.format_time_left(seconds, progress.seconds_left_most)
