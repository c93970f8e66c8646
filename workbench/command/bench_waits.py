"""The commands `bench end` and `bench waits`, which time what a user waits for: whole processes, reading, starting."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workbench.command import exit_codes
from workbench.command.bench import Folder, Threads, bench, exit_unless, print_sentence, print_targets, progress_line

if TYPE_CHECKING:
    from rich.table import Table

    from workbench.analysis import end


@bench.command("end")
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
    """Time whole processes from a file to predictions, with other libraries, to the same held-out loss.

    Records, page and charts are in the folder of --results. Exit status: 130 after Ctrl-C, 2 for a wrong name.
    """
    from workbench import store
    from workbench.analysis import end as analysis
    from workbench.bench.end import Runner, choose_cases
    from workbench.command.console import console
    from workbench.reports.suites import write_end

    cases = choose_cases(tuple(format or ()), tuple(megabytes or ()), full)
    with progress_line() as progress:
        is_whole = Runner(results, progress).run(cases, candidate or ())
    if store.is_stored(results / store.END.file):
        records = store.END.read(results)
        console.print(end_table(records))
        print_sentence(analysis.summary(records))
        typer.echo(f"Page: {write_end(results, exit_codes.original_command_line(ctx))}")
    exit_unless(ctx, is_whole)


def end_table(records: Sequence["end.Record"]) -> "Table":
    """Return a table with the seconds of the project and of the soonest competitor, warm and cold, for each case."""
    from workbench.analysis import end as analysis
    from workbench.command.console import make_table
    from workbench.reports import suites

    cases = analysis.cases_of(records).items()
    rows = [suites.end_line(case, own, start) for case, own in cases for start in analysis.STARTS]
    return make_table(suites.END_COLUMNS, rows)


@bench.command("waits")
def bench_waits(
    ctx: typer.Context,
    part: Annotated[list[str] | None, typer.Option(help="A part alone; a wrong name lists all.")] = None,
    threads: Threads = None,
    seed: Annotated[int, typer.Option(min=0, help="Draws the synthetic rows and the rows held out.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="Small files and few rounds, in about a minute.")] = False,
    results: Folder = Path("runs/bench-waits"),
) -> None:
    """Time what a user waits for apart from training: reading, starting, compiling, predicting, few rows, defaults.

    Records and page are in the folder of --results. Exit status: 130 after Ctrl-C, 2 for a wrong name.
    """
    from workbench import store
    from workbench.analysis import waits as analysis
    from workbench.bench.waits import Runner
    from workbench.reports.suites import write_waits

    with progress_line() as progress:
        is_whole = Runner(results, quick, threads, seed, progress).run(part or ())
    if store.is_stored(results / store.WAITS.file):
        found = analysis.compare_all(store.WAITS.read(results))
        print_targets(analysis.list_targets(found))
        print_sentence(analysis.summary(found))
        typer.echo(f"Page: {write_waits(results, exit_codes.original_command_line(ctx))}")
    exit_unless(ctx, is_whole)
