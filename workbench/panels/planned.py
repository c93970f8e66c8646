"""What Run would do: how many trials, of which configurations, what is measured already, and roughly how long."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench.analysis import words
from workbench.sweep import grid
from workbench.sweep.estimate import lasting, seconds_a_trial
from workbench.sweep.run_folder import Progress
from workbench.sweep.runner import make_plan
from workbench.sweep.spec import Spec

FEW = 3
"""Trials before the time left is told: the first ones load data and compile."""


@dataclass(frozen=True)
class Planned:
    """`trials` in all, `reused` of them measured before; `configurations` in words; `seconds` for the rest.

    `left_out` counts the combinations that cannot be measured, by reason.
    """

    trials: int
    reused: int
    configurations: tuple[str, ...]
    seconds: float
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def rest(self) -> int:
        """Trials still to do."""
        return self.trials - self.reused

    def __str__(self) -> str:
        if not self.rest:
            return f"All {words.plural(self.trials, 'trial')} are measured; Run has nothing to add."
        known = f", {self.reused} of them measured already" if self.reused else ""
        return f"{words.plural(self.trials, 'trial')}{known}; Run takes about {lasting(self.seconds)}."

    @property
    def without(self) -> str:
        """How many cells are left out, and why, or why one of them is; "" where none is."""
        if not self.left_out:
            return ""
        example = "for example: " if len(self.left_out) > 1 else ""
        return f"{words.plural(sum(self.left_out.values()), 'cell')} left out: {example}{next(iter(self.left_out))}"


def plan(spec: Spec, rows: Sequence[Mapping[str, Any]]) -> Planned:
    """The plan of a sweep whose run folder holds these rows."""
    schedule = make_plan(spec, [dict(row) for row in rows])
    rest, reused = len(schedule.tasks), schedule.reused
    seconds = rest * seconds_a_trial(spec, rows)
    return Planned(rest + reused, reused, _configurations(spec), seconds, dict(schedule.dropped))


def _configurations(spec: Spec) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words.short_line(cell.model_dump()) for cell in grid.expand(spec).cells))


def left(progress: Progress) -> str:
    """How long a run takes still, for after a comma; "" before enough trials ended, for the first ones compile."""
    seconds = progress.seconds_left if progress.alive and progress.done - progress.reused >= FEW else None
    return f"about {lasting(seconds)} left" if seconds else ""
