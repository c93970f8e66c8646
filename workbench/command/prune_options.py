"""`workbench bench prune`: remove superseded records from a folder of results."""

from pathlib import Path
from typing import Annotated

import typer


def bench_prune(
    folder: Annotated[Path, typer.Argument(help="Folder of results, such as results/MACHINE; subfolders too.")],
    runs: Annotated[int, typer.Option(min=1, help="Runs kept of each configuration, the newest first.")] = 1,
    pack: Annotated[
        bool, typer.Option("--pack", help="Compress files of 200 kB or more to FILE.jsonl.gz, which is read as before.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be removed, and change nothing.")] = False,
) -> None:
    """Keep the newest records of each configuration, remove those of older code, compress on request."""
    from workbench.store.pruning import prune, table_of

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
            typer.echo(f"{path}: {records}, {pruned.bytes_before / 1e6:.2f} -> {pruned.bytes / 1e6:.2f} MB")
    typer.echo(f"Records: {before / 1e6:.1f} -> {after / 1e6:.1f} MB{' (nothing was changed)' if dry_run else ''}")
