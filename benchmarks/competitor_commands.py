"""The commands of `bench` that compare with competitors at equal work: fair, epochs, end, waits; and prune."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchmarks import tables
from benchmarks.commands import (
    Folder,
    Named,
    Threads,
    bench,
    exit_unless,
    print_sentence,
    print_targets,
    progress_line,
)
from workbench.command import exit_codes
from workbench.command.options import add_help_texts
from workbench.command.output import echo

if TYPE_CHECKING:
    from rich.table import Table

    from benchmarks.analysis import end


@bench.command("fair")
def bench_fair(
    ctx: typer.Context,
    configuration: Named = None,
    features: int | None = None,
    batch_rows: int | None = None,
    width: int | None = None,
    density: float | None = None,
    rounds: Annotated[int, typer.Option(min=1)] = 7,
    threads: Threads = None,
    quick: bool = False,
    results: Folder = Path("runs/bench-fair"),
) -> None:
    """Compare the best dense and the best sparse training with the best independent ones at equal work.

    Records and page are in the folder of --results. Exit status: 130 after Ctrl-C, 2 for a wrong name.

    Parameters
    ----------
    features
        Only configurations with this number of columns.
    batch_rows
        Only those with this number of rows a batch.
    width
        Only those with this number of outputs.
    density
        Only those of this density, such as 0.15.
    rounds
        Rounds in which all candidates that are near are timed.
    quick
        Ten configurations, in about five minutes.

    Examples
    --------
    python -m benchmarks fair --quick
    python -m benchmarks fair --density 0.15 --threads 1
    """
    from benchmarks.analysis import fair as analysis
    from benchmarks.experiment import CandidateRunner
    from benchmarks.fair.configurations import choose_configurations
    from benchmarks.fair.measure import Policy
    from benchmarks.fair.runner import SUITE
    from benchmarks.pages.suites import write_fair
    from workbench import store

    only = {"features": features, "batch_rows": batch_rows, "width": width, "density": density}
    configurations = choose_configurations(configuration or (), quick, only)
    with progress_line() as progress:
        is_whole = CandidateRunner(SUITE, results, Policy(rounds=rounds), threads, progress).run(configurations)
    if store.is_stored(results / tables.FAIR.file):
        found = analysis.compare_all(tables.FAIR.read(results))
        print_targets(analysis.list_targets(found))
        print_sentence(analysis.summary(found))
        echo(f"Page: {write_fair(results, exit_codes.original_command_line(ctx))}")
    exit_unless(ctx, is_whole)


@bench.command("epochs")
def bench_epochs(
    ctx: typer.Context,
    configuration: Named = None,
    optimizer: str = "",
    rounds: Annotated[int, typer.Option(min=1)] = 9,
    threads: Threads = None,
    budget: Annotated[float, typer.Option(min=0)] = 2400.0,
    quick: bool = False,
    full: bool = False,
    results: Folder = Path("runs/bench-epochs"),
) -> None:
    """Compare whole epochs of sgd, adagrad, adam and ftrl with the fastest loop or library at equal work.

    Records and page are in the folder of --results. Exit status: 130 after Ctrl-C, 2 for a wrong name.

    Parameters
    ----------
    optimizer
        Only configurations of sgd, adagrad, adam or ftrl.
    rounds
        Rounds in which all candidates that are near are timed.
    budget
        Seconds after which no configuration is begun.
    quick
        Eight configurations, in about two minutes.
    full
        All configurations, twice as many; no budget.

    Examples
    --------
    python -m benchmarks epochs --quick
    python -m benchmarks epochs --optimizer adagrad --budget 1200
    """
    from benchmarks import epoch_problem, epochs
    from benchmarks.analysis import fair as analysis
    from benchmarks.experiment import CandidateRunner
    from benchmarks.pages.suites import write_epochs
    from workbench import store

    chosen = epoch_problem.choose_configurations(configuration or (), quick, full, optimizer)
    seconds = float("inf") if full and exit_codes.is_default(ctx, "budget") else budget
    with progress_line() as progress:
        policy = replace(epochs.POLICY, rounds=rounds)
        is_whole = CandidateRunner(epochs.SUITE, results, policy, threads, progress, seconds).run(chosen)
    if store.is_stored(results / tables.EPOCHS.file):
        found = analysis.compare_epochs(tables.EPOCHS.read(results))
        print_targets(analysis.list_epoch_targets(found))
        echo(f"Page: {write_epochs(results, exit_codes.original_command_line(ctx))}")
    exit_unless(ctx, is_whole)


@bench.command("prune")
def bench_prune(
    folder: Path, runs: Annotated[int, typer.Option(min=1)] = 1, pack: bool = False, dry_run: bool = False
) -> None:
    """Keep the newest records of each configuration, remove those of older code, compress on request.

    Files are replaced unless --dry-run is given; what was saved is printed.

    Parameters
    ----------
    folder
        Folder of results, such as results/MACHINE; subfolders too.
    runs
        Runs kept of each configuration, the newest first.
    pack
        Compress files of 200 kB or more to FILE.jsonl.gz, which is read as before.
    dry_run
        Print what would be removed, and change nothing.

    Examples
    --------
    python -m benchmarks prune results --dry-run
    python -m benchmarks prune results --pack
    """
    from benchmarks.pruning import prune, table_of

    if not folder.is_dir():
        raise typer.BadParameter(f"{folder} is not a folder; give the folder of the results.")
    before = after = 0
    files = {path.with_name(path.name.removesuffix(".gz")) for path in folder.rglob("*.jsonl*")}
    for path in sorted(path for path in files if path.suffix == ".jsonl"):
        if table_of(path) is None:
            continue
        pruned = prune(path, runs, dry_run=dry_run, pack=pack)
        before, after = before + pruned.bytes_before, after + pruned.bytes
        if pruned.bytes < pruned.bytes_before:
            records = f"{pruned.records} of {pruned.records_before} records"
            echo(f"{path}: {records}, {pruned.bytes_before / 1e6:.2f} -> {pruned.bytes / 1e6:.2f} MB")
    echo(f"Records: {before / 1e6:.1f} -> {after / 1e6:.1f} MB{' (nothing was changed)' if dry_run else ''}")


@bench.command("end")
def bench_end(
    ctx: typer.Context,
    format: list[str] | None = None,
    megabytes: Annotated[list[int] | None, typer.Option(min=1)] = None,
    candidate: list[str] | None = None,
    full: bool = False,
    results: Path = Path("runs/bench-end"),
) -> None:
    """Time whole processes from a file to predictions, with other libraries, to the same held-out loss.

    Records, page and charts are in the folder of --results. Exit status: 130 after Ctrl-C, 2 for a wrong name.

    Parameters
    ----------
    format
        svmlight or clicks; by default both.
    megabytes
        Size of the file to train on; by default 1, 10 and 100.
    candidate
        A candidate alone; a wrong name lists all.
    full
        Files of 1 GB too.
    results
        Folder of records, page and files; what it has is not measured again.

    Examples
    --------
    python -m benchmarks end --megabytes 10
    python -m benchmarks end --format clicks --megabytes 1
    """
    from benchmarks.analysis import end as analysis
    from benchmarks.end import Runner, choose_cases
    from benchmarks.pages.suites import write_end
    from workbench import store
    from workbench.command.console import console

    cases = choose_cases(tuple(format or ()), tuple(megabytes or ()), full)
    with progress_line() as progress:
        is_whole = Runner(results, progress).run(cases, candidate or ())
    if store.is_stored(results / tables.END.file):
        records = tables.END.read(results)
        console.print(end_table(records))
        print_sentence(analysis.summary(records))
        echo(f"Page: {write_end(results, exit_codes.original_command_line(ctx))}")
    exit_unless(ctx, is_whole)


def end_table(records: Sequence["end.Record"]) -> "Table":
    """Return a table with the seconds of the project and of the soonest competitor, warm and cold, for each case."""
    from benchmarks.analysis import end as analysis
    from benchmarks.pages import suites
    from workbench.command.console import make_table

    cases = analysis.cases_of(records).items()
    rows = [suites.end_line(case, own, start) for case, own in cases for start in analysis.STARTS]
    return make_table(suites.END_COLUMNS, rows)


@bench.command("waits")
def bench_waits(
    ctx: typer.Context,
    part: list[str] | None = None,
    threads: Threads = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    quick: bool = False,
    results: Folder = Path("runs/bench-waits"),
) -> None:
    """Time what a user waits for apart from training: reading, starting, compiling, predicting, few rows, defaults.

    Records and page are in the folder of --results. Exit status: 130 after Ctrl-C, 2 for a wrong name.

    Parameters
    ----------
    part
        A part alone; a wrong name lists all.
    seed
        Draws the synthetic rows and the rows held out.
    quick
        Small files and few rounds, in about a minute.

    Examples
    --------
    python -m benchmarks waits --quick
    python -m benchmarks waits --part reading --part defaults
    """
    from benchmarks.analysis import waits as analysis
    from benchmarks.pages.suites import write_waits
    from benchmarks.waits import Runner
    from workbench import store

    with progress_line() as progress:
        is_whole = Runner(results, quick, threads, seed, progress).run(part or ())
    if store.is_stored(results / tables.WAITS.file):
        found = analysis.compare_all(tables.WAITS.read(results))
        print_targets(analysis.list_targets(found))
        print_sentence(analysis.summary(found))
        echo(f"Page: {write_waits(results, exit_codes.original_command_line(ctx))}")
    exit_unless(ctx, is_whole)


add_help_texts(bench, "benchmarks")
