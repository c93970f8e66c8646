"""All suites, by the name of their command, and the commands that are no suite: report and prune."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from benchmarks import advise, cluster_suite, epochs_suite, kernel_suites, libraries, waits_suite
from benchmarks.end import suite as end
from benchmarks.fair import suite as fair
from benchmarks.fit import suite as fit
from benchmarks.harness import Suite, command_of
from benchmarks.self_trial import suite as self_trial
from workbench import store
from workbench.command.exit_codes import Commands
from workbench.command.options import add_help_texts
from workbench.command.output import echo

bench = typer.Typer(cls=Commands, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
_ALL: tuple[Suite, ...] = (*kernel_suites.SUITES, fair.SUITE, epochs_suite.SUITE, fit.SUITE, end.SUITE)
_ALL += (waits_suite.SUITE, cluster_suite.SUITE, advise.SUITE, libraries.SUITE, self_trial.SUITE)
SUITES: dict[str, Suite] = {suite.name: suite for suite in _ALL}


@bench.callback()
def about() -> None:
    """Measure kernels, training steps and whole trainings against other libraries; records and pages are kept."""


for _suite in SUITES.values():
    bench.command(_suite.name)(command_of(_suite))


@bench.command("recommend")
def recommend(
    folder: Path = Path("runs/bench-recommend"),
    python: str = sys.executable,
    rounds: Annotated[int, typer.Option(min=1)] = 1,
    quick: bool = False,
    threads: Annotated[int, typer.Option(min=1)] = 1,
    entries: Path | None = None,
) -> None:
    """Time factors of what users took, and EASE, against the library implicit and NumPy, at an equal loss.

    Parameters
    ----------
    folder
        Folder of records and page.
    python
        Python of an environment that has implicit.
    rounds
        Rounds of each side.
    quick
        One set and few factors.
    threads
        Threads allowed.
    entries
        An .npz of SciPy, users x items, that is measured in place of the generated sets.

    Examples
    --------
    python -m benchmarks recommend --quick
    """
    from benchmarks import recommend as measured

    echo(measured.run(folder, python, rounds, quick, threads, entries))


@bench.command("path")
def path(
    folder: Path = Path("runs/bench-path"),
    python: str = sys.executable,
    rounds: Annotated[int, typer.Option(min=1)] = 3,
    quick: bool = False,
    threads: Annotated[int, typer.Option(min=1)] = 1,
    only: Annotated[list[str] | None, typer.Option()] = None,
) -> None:
    """Time paths over alpha with an L1 penalty against the list of linear competitors, at an equal objective.

    Parameters
    ----------
    folder
        Folder of records and page.
    python
        Python of an environment that has the competitors; missing ones are named.
    rounds
        Rounds of each side.
    quick
        A twentieth of the rows.
    threads
        Threads allowed.
    only
        Sets: text, clicks, dense, tall; by default all.

    Examples
    --------
    python -m benchmarks path --quick
    python -m benchmarks path --only dense --only tall
    """
    from benchmarks import alpha_path as measured

    sets = tuple(only or measured.SETS)
    if unknown := [name for name in sets if name not in measured.SETS]:
        raise typer.BadParameter(f"Unknown set {unknown[0]!r}; expected one of: {', '.join(measured.SETS)}.")
    echo(measured.run(folder, python, rounds, quick, threads, sets))


@bench.command("data")
def generate_data(
    sizes: Annotated[list[str], typer.Argument(metavar="SIZE")],
    folder: Path = Path("runs/generated"),
    kind: Annotated[list[str] | None, typer.Option()] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    source: Path | None = None,
) -> None:
    """Write generated texts (svmlight) and click logs (CSV) of any size, the same for the same seed.

    Parameters
    ----------
    sizes
        Bytes of each file, such as 100MB or 1GB.
    folder
        Folder for a folder of each size.
    kind
        texts or clicks; by default both.
    seed
        Seed of the rows.
    source
        svmlight text whose rows are drawn with replacement in place of generated ones; rare columns are new ones in
        each copy of it.

    Examples
    --------
    python -m benchmarks data 100MB 1GB
    python -m benchmarks data 1GB --source data/train.svm
    python -m benchmarks data 10GB --kind texts --folder /tmp/generated
    """
    from benchmarks import generated

    if source is not None and not source.is_file():
        raise typer.BadParameter(f"{source} is no file; give svmlight text.", param_hint="--source")
    for line in generated.run(sizes, folder, kind or list(generated.KINDS), seed, source):
        echo(line)


@bench.command("momentum")
def momentum(
    steps: Annotated[int, typer.Option(min=10)] = 10_000,
    rows: Annotated[int, typer.Option(min=1)] = 100_000,
    width: Annotated[int, typer.Option(min=1)] = 16,
    ids: Annotated[int, typer.Option(min=1)] = 64,
) -> None:
    """Time a step and measure the memory of PyTorch's momentum on row-sparse gradients, and of our lazy optimizers.

    Parameters
    ----------
    steps
        Steps of each optimizer.
    rows
        Rows of the embedding.
    width
        Columns of the embedding.
    ids
        Ids in a batch.

    Examples
    --------
    python -m benchmarks momentum --steps 1000
    """
    from benchmarks import momentum as measured

    echo(measured.run(steps, rows, width, ids))


@bench.command("report")
def report(folder: Path) -> None:
    """Write the page of each suite in a folder of results again, from its records.

    Parameters
    ----------
    folder
        A folder of results, or one file of records in it.

    Examples
    --------
    python -m benchmarks report results/MACHINE
    """
    from benchmarks.page import write

    parent, only = (folder, "") if folder.is_dir() else (folder.parent, folder.name.removesuffix(".gz"))
    known = [
        one for one in SUITES.values() if only in ("", one.table.file) and store.is_stored(parent / one.table.file)
    ]
    if not known:
        raise typer.BadParameter(f"{folder} has no records of a suite; give a folder such as results/MACHINE.")
    for suite in known:
        echo(write(suite, parent))


@bench.command("breakevens")
def write_breakevens(folder: Path) -> None:
    """Write the break-evens of `libraries` that `workbench advise --for` shows, from the records of a folder.

    Parameters
    ----------
    folder
        A folder of results.

    Examples
    --------
    python -m benchmarks breakevens results/MACHINE
    """
    from workbench import atomic_files
    from workbench.advising import breakevens

    if not store.is_stored(folder / libraries.SUITE.table.file):
        raise typer.BadParameter(f"{folder} has no records of libraries; type: python -m benchmarks libraries.")
    atomic_files.write(breakevens.FILE, libraries.measurement_of(folder).as_toml())
    echo(breakevens.FILE)


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


add_help_texts(bench, "benchmarks")
