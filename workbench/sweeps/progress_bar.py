"""A bar that follows a run in a terminal, for commands and for scripts alike."""

from pathlib import Path
from typing import TYPE_CHECKING

from workbench.sweeps import estimate, run_folder
from workbench.sweeps.progress import Progress, format_spent

if TYPE_CHECKING:
    from rich.console import Console


def line(state: Progress, spent: float = 0.0, budget: float = 0.0) -> str:
    """Return how far a run is as one line; `spent` are seconds before it, of `budget` seconds (0: that of the run).

    >>> line(Progress("demo", "running", total=8, done=3, seconds=2.0), 1.0, 60.0)
    '3 of 8 trials, 3 of 60 s'
    """
    trials = f"{state.done} of {state.total} trials" if state.total else "starting"
    seconds = format_spent(spent + state.seconds, budget or state.seconds_budget)
    left = "" if budget or not state.alive else estimate.format_time_left(state.seconds_left, state.seconds_left_most)
    now = state.now if state.alive and state.stage else ""
    return ", ".join(filter(None, (trials, seconds, left, now)))


def follow(heading: str, folder: Path, spent: float = 0.0, budget: float = 0.0, *, console: "Console") -> None:
    """Show a bar of the run in `folder` until it is over: of the seconds of `budget`, or of trials without one.

    Ctrl-C asks the run to stop; a second one is raised.
    """
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar
    from rich.table import Column

    as_wide_as_it_goes = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    bar = Bar(
        TextColumn("{task.description}", style="bold", markup=False),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[text]}", markup=False, table_column=as_wide_as_it_goes),
        console=console,
        expand=True,
    )
    with bar:
        task = bar.add_task(heading, total=None, text="starting")

        def show(state: Progress, is_stopping: bool) -> None:
            """Set the bar to the progress of the run."""
            total, done = (budget, spent + state.seconds) if budget else (state.total or None, state.done)
            text = "stopping" if is_stopping else line(state, spent, budget)
            bar.update(task, total=total, completed=done, text=text)

        run_folder.watch(folder, show)
