"""The command `bench fair`: configurations are measured with a progress line, then the page is written."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from workbench import store
from workbench.analysis import fair as analysis
from workbench.bench import screen
from workbench.bench.fair.configurations import Configuration
from workbench.bench.fair.measure import Policy
from workbench.bench.fair.runner import Runner
from workbench.reports import fair as reports

console = Console()


def run(
    configurations: Sequence[Configuration], folder: Path, policy: Policy, threads: int | None, command: str
) -> bool:
    """Measure into the folder, print goals and the shift of the break-even, write the page; False after Ctrl-C."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console) as bar:
        task = bar.add_task("starting", total=1.0)
        told = lambda what, share: bar.update(task, description=escape(what), completed=share)  # noqa: E731
        is_whole = Runner(folder, policy, threads, told).run(configurations)
        if is_whole:
            bar.update(task, description="finished", completed=1.0)
    if not store.is_stored(folder / store.FAIR.file):
        return is_whole
    found = analysis.compare_all(store.FAIR.read(folder))
    console.print(screen.goals_table(analysis.list_targets(found)))
    console.print(analysis.summary(found), highlight=False)
    console.print(f"Page: {reports.write(folder, command)}", highlight=False)
    return is_whole
