"""Runs in a terminal: progress bars and tables. It reads run folders and rows, nothing else."""

from collections.abc import Callable, Iterable
from pathlib import Path

from rich.console import Group
from rich.live import Live
from rich.padding import Padding
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column, Table
from rich.text import Text

from workbench import store
from workbench.analysis import configurations, formatting
from workbench.command import verdict
from workbench.command.conclusion import Conclusion
from workbench.command.console import console, messages_on_stderr, print_run_lines, stderr
from workbench.sweeps import estimate, run_folder
from workbench.sweeps.progress import Progress as RunProgress

__all__ = [
    "conclude",
    "console",
    "follow",
    "messages_on_stderr",
    "print_list",
    "print_run_lines",
    "stderr",
    "summarize",
    "trained_table",
    "watch",
]

WIDTH_FRAME = 4
"""Columns that a frame takes from what is in it."""


def follow(heading: str, folder: Path) -> None:
    """Show a run's progress until it is over, and what each of several agents does.

    Ctrl-C stops the run and waits for its end; finished rows stay.
    """
    columns = (
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        now_column(),
    )
    bar = Progress(*columns, console=console, expand=True)
    task = bar.add_task(heading, total=None, left="", now="")
    with Live(bar, console=console) as live:

        def show(state: RunProgress, is_stopping: bool) -> None:
            left = estimate.format_time_left(state.seconds_left, state.seconds_left_most)
            known = filter(None, (estimate.format_budget_spent(state.seconds, state.seconds_budget), left))
            shown = "stopping" if is_stopping else ", ".join(known)
            now = state.now if state.alive else ""
            bar.update(task, total=state.total or None, completed=state.done, left=shown, now=now)
            agents = state.by_agent if state.alive else []
            live.update(Group(bar, *(Text(f"  {line}", no_wrap=True, overflow="ellipsis") for line in agents)))

        watch(folder, show)
    summarize(folder)


def watch(folder: Path, show: Callable[[RunProgress, bool], None]) -> None:
    """Call `show` with a run's progress, and whether it is to stop, until it is over; Ctrl-C asks it to stop."""
    is_stopping, states = False, run_folder.watch_progress(folder)
    while True:
        try:
            state = next(states, None)
            if state is None:
                return
            show(state, is_stopping)
        except KeyboardInterrupt:
            is_stopping = True
            run_folder.stop_run(folder)
            states = run_folder.watch_progress(folder)


def now_column() -> TextColumn:
    """Return the progress column with the current activity (task field `now`), as wide as an expanding bar allows."""
    return TextColumn(
        "{task.fields[now]}", markup=False, table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")
    )


def summarize(folder: Path) -> None:
    """One line about how a run ended, and what failed, with reasons."""
    state = run_folder.read_progress(folder)
    counts = ", ".join(f"{count} {status}" for status, count in sorted(state.counts.items())) or "nothing new"
    reused = f", {state.reused} found done" if state.reused else ""
    console.print(f"{state.state}: {counts}{reused}. Rows: {folder / 'trials.jsonl'}", highlight=False)
    if state.message:
        console.print(state.message, style="red", markup=False)
    rows = run_folder.read_current_records(folder) if state.done else []
    bad = {row["reason"] for row in rows if row["status"] not in ("ok", "stopped")}
    for reason in sorted(bad):
        console.print(f"  {reason}", style="yellow", markup=False)


def trained_table(rows: Iterable[dict]) -> Table:
    """Return seconds an epoch, peak memory and held-out quality of configurations that trained epochs, medians over
    rounds."""
    table = Table(title="One softmax model on the standard library's source text")
    for heading in ("configuration", "seconds an epoch", "peak memory", "held by arrays", "held-out accuracy"):
        table.add_column(heading, justify="left" if heading == "configuration" else "right")
    for row in configurations.records(configurations.pool_rounds(store.frame(rows))):
        if row["status"] == "ok":
            memory = (f"{row[name] / 2**20:,.0f} MiB" for name in ("bytes_peak", "bytes_held"))
            table.add_row(
                formatting.name_configuration(row), f"{row['seconds_epoch']:.2g}", *memory, f"{row['quality']:.3f}"
            )
        else:
            table.add_row(formatting.name_configuration(row), row["status"], "", "", row["reason"])
    return table


def conclude(ended: Conclusion) -> None:
    """The last words of a sweep: the verdict and how sure it is, break-evens, warnings, where the report is."""
    shown = verdict.format_verdict(ended, console, console.width - WIDTH_FRAME)
    console.print(Panel(shown, title="Verdict", title_align="left"))
    print_list("Break-even densities", ended.breakevens)
    print_list("Devices and trainers", ended.places)
    print_list("Mind", ended.warnings)
    if ended.report is not None:
        console.print(f"\nReport: {ended.report.resolve()}", markup=False, soft_wrap=True)


def print_list(heading: str, sentences: Iterable[str]) -> None:
    """Print a heading and one line per sentence; nothing without sentences."""
    lines = [Padding(Text(f"- {sentence}"), (0, 0, 0, 2)) for sentence in sentences]
    if lines:
        console.print(heading, style="bold")
        for line in lines:
            console.print(line)
