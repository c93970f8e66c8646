"""The options of `bench fair`: which configurations are measured, and for how long. Imports wait until it runs."""

from pathlib import Path
from typing import Annotated

import typer

from workbench.command import exit_codes


def bench_fair(
    ctx: typer.Context,
    configuration: Annotated[
        list[str] | None, typer.Option(help="A configuration by name; a wrong name lists all.")
    ] = None,
    features: Annotated[int | None, typer.Option(help="Only configurations with so many columns.")] = None,
    batch_rows: Annotated[int | None, typer.Option(help="Only those with so many rows a batch.")] = None,
    width: Annotated[int | None, typer.Option(help="Only those with so many outputs.")] = None,
    density: Annotated[float | None, typer.Option(help="Only those of this density, such as 0.15.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds in which all candidates that are near are timed.")] = 7,
    threads: Annotated[
        int | None, typer.Option(min=1, help="At most the cores of this machine; by default all.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Ten configurations, in about five minutes.")] = False,
    results: Annotated[
        Path, typer.Option(help="Folder of records and page; what it has is not measured again.")
    ] = Path("runs/bench-fair"),
) -> None:
    """Compare the best dense and the best sparse training with the best independent ones at equal work."""
    from workbench.bench.fair.configurations import choose_configurations
    from workbench.bench.fair.measure import Policy
    from workbench.command import fair

    only = {"features": features, "batch_rows": batch_rows, "width": width, "density": density}
    configurations = choose_configurations(configuration or (), quick, only)
    if not fair.run(configurations, results, Policy(rounds=rounds), threads, exit_codes.original_command_line(ctx)):
        exit_codes.exit_interrupted(ctx, "Stopped")
