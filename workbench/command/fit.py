"""The command `bench fit`: cases are trained by every contender with a progress line, then the page is written."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from workbench import data, option_text, store
from workbench.analysis import fit as analysis
from workbench.bench import screen
from workbench.bench.fit import cases
from workbench.bench.fit.runner import Policy, Runner
from workbench.command import training
from workbench.reports import fit as reports

console = Console()


def case_of(source: str, held_out: str, **settings: Any) -> cases.Case:
    """The case of a file or data set: its reader is guessed where `dataset` names none, and told."""
    path, given = Path(source).expanduser(), {name: value for name, value in settings.items() if value is not None}
    if "dataset" in given or source not in data.names():
        given = _with_reader(path, given)
    else:
        given["dataset"] = source
    settled = training.cell_of(given)
    return cases.case_of({name: getattr(settled, name) for name in given}, held_out)


def _with_reader(path: Path, given: dict[str, Any]) -> dict[str, Any]:
    if not path.exists():
        names = ", ".join(data.names())
        raise data.DataError(f"There is no file and no data set {str(path)!r}. Data sets: {names}; or give a path.")
    if "dataset" not in given:
        given["dataset"], options, why = data.guess(path)
        typer.echo(f"{path} is read by the data set {given['dataset']}: {why}.", err=True)
        if options:
            given["reading"] = ", ".join(filter(None, (option_text.written(options), given.get("reading"))))
    return {**given, "path": str(path)}


def run(chosen: Sequence[cases.Case], only: tuple[str, ...], folder: Path, policy: Policy, command: str) -> bool:
    """Measure the cases into the folder, print the goals, write the page; False where Ctrl-C stopped it before."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("starting", total=1.0)
        told = lambda what, share: bar.update(task, description=escape(what), completed=share)  # noqa: E731
        is_whole = Runner(folder, policy, told).run(chosen, only)
        if is_whole:
            bar.update(task, description="finished", completed=1.0)
    if not (folder / store.FIT.file).exists():
        return is_whole
    found = analysis.found_in(store.FIT.frame(store.FIT.read(folder)))
    console.print(screen.goals_table(analysis.goals(found)))
    console.print(f"Page: {reports.write(folder, command)}", highlight=False)
    return is_whole
