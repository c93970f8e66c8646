"""`workbench bench advise`: cases are swept and advised on, then the goals and the page."""

from pathlib import Path

import typer

from workbench import store
from workbench.analysis import advice as analysis
from workbench.bench import screen
from workbench.bench.advice import cases, runner
from workbench.command.advising import follow
from workbench.reports import advice as reports


def run(names: tuple[str, ...], is_quick: bool, folder: Path, runs: Path, command: str) -> bool:
    """Measure the cases into the folder, show the goals, write the page; False where Ctrl-C stopped it before.

    Trials are in run folders below `runs`.
    """
    is_whole = runner.run(cases.chosen(names, is_quick), folder, runs, follow)
    if (folder / store.ADVICE.file).exists():
        frame = store.ADVICE.frame(store.ADVICE.read(folder))
        screen.console.print(screen.goals_table(analysis.goals(frame)))
        typer.echo(f"Page: {reports.write(folder, command)}")
    return is_whole
