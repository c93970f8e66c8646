"""The command `bench fit`: cases are trained by every candidate with a progress line, then the page is written."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from workbench import store
from workbench.analysis import fit as analysis
from workbench.bench import screen
from workbench.bench.fit import cases
from workbench.bench.fit.records import Policy
from workbench.bench.fit.runner import Runner
from workbench.command import training
from workbench.command.data_source import settings_with_notice, with_model
from workbench.reports import fit as reports

console = Console()


def case_of(source: str, held_out: str, dataset: str = "", reading: str = "", **settings: Any) -> cases.Case:
    """Return the case of a file or data set, trained with these settings; a reader that is guessed is reported."""
    of_data = {name: settings.pop(name) for name in ("labels", "columns", "kind") if name in settings}
    given = settings_with_notice(source, dataset, reading, **of_data) | settings
    given = given if "model" in given else {"model": "logistic"} | with_model(given)
    settled = training.cell_of(given)
    return cases.case_of({name: getattr(settled, name) for name in given}, held_out)


def run(chosen: Sequence[cases.Case], only: tuple[str, ...], folder: Path, policy: Policy, command: str) -> bool:
    """Measure the cases into the folder, print the goals, write the page; False if Ctrl-C stopped it before."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("starting", total=1.0)
        told = lambda what, share: bar.update(task, description=escape(what), completed=share)  # noqa: E731
        is_whole = Runner(folder, policy, told).run(chosen, only)
        if is_whole:
            bar.update(task, description="finished", completed=1.0)
    if not store.is_stored(folder / store.FIT.file):
        return is_whole
    found = analysis.by_tolerance(store.FIT.frame(store.FIT.read(folder)))
    console.print(screen.goals_table(analysis.list_targets(found)))
    console.print(analysis.tolerance_sensitivity(found), highlight=False)
    console.print(f"Page: {reports.write(folder, command)}", highlight=False)
    return is_whole
