"""The options of `bench end`: formats, sizes and candidates. Imports wait until it runs."""

from pathlib import Path
from typing import Annotated

import typer

from workbench.command import exit_codes


def bench_end(
    ctx: typer.Context,
    format: Annotated[list[str] | None, typer.Option(help="svmlight or clicks; by default both.")] = None,
    megabytes: Annotated[
        list[int] | None, typer.Option(min=1, help="Size of the file to train on; by default 1, 10 and 100.")
    ] = None,
    candidate: Annotated[list[str] | None, typer.Option(help="A candidate alone; a wrong name lists all.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Files of 1 GB too.")] = False,
    results: Annotated[
        Path, typer.Option(help="Folder of records, page and files; what it has is not measured again.")
    ] = Path("runs/bench-end"),
) -> None:
    """Time whole processes from a file to predictions, with other libraries, to the same held-out loss."""
    from workbench.bench.end.files import choose_cases
    from workbench.command import end

    cases = choose_cases(tuple(format or ()), tuple(megabytes or ()), full)
    if not end.run(cases, candidate or (), results, exit_codes.original_command_line(ctx)):
        exit_codes.exit_interrupted(ctx, "Stopped")
