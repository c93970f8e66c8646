"""`workbench bench`: a suite is measured, its goals and its report are shown."""

from pathlib import Path

import typer

from workbench import store
from workbench.analysis.performance_targets import list_targets
from workbench.bench import screen, suites
from workbench.bench.rounds import Policy
from workbench.bench.runner import Runner
from workbench.command import exit_codes
from workbench.reports import bench as reports


def run(
    ctx: typer.Context,
    suite: str,
    quick: bool,
    run: Path | None,
    only: str,
    shape: str,
    threads: int | None,
    device: str,
) -> None:
    """Measure the configurations of a suite that a run folder lacks; Ctrl-C stops and loses nothing."""
    folder = run or Path("runs") / f"bench-{suite}{'' if device == 'cpu' else f'-{device}'}"
    cells = suites.cells_of(suite, quick, only, shape, device)
    starts = () if only or shape or device != "cpu" else suites.starts_of(suite, quick)
    outcome = screen.run(Runner(folder, Policy(), threads), cells, starts)
    screen.console.print(screen.goals_table(list_targets(store.BENCH.frame(store.BENCH.read(folder)))))
    typer.echo(f"Report: {reports.write(folder)}")
    if outcome.stopped:
        exit_codes.exit_interrupted(ctx, "Stopped")
