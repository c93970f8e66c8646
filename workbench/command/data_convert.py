"""A conversion into shards, its progress shown in the terminal."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from workbench import data
from workbench.command.console import console


def convert(name: str, parameters: Mapping[str, Any], folder: Path, shuffle: int | None, shard_bytes: int) -> None:
    """Convert the data set of that name, show how far it is, and say what was made (`data.DataError`)."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,} rows"))
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as shown:
        task = shown.add_task("reading", total=None)

        def tell(progress: data.Progress) -> None:
            shown.update(task, description=progress.stage, completed=progress.rows, total=progress.total)

        made = data.convert(name, folder, shuffle=shuffle, shard_bytes=shard_bytes, progress=tell, **parameters)
    size = sum(entry.bytes for shard in made.shards for entry in shard.files.values())
    rows, features = made.shape
    about = f"{rows:,} rows x {features:,} features, {made.nnz:,} entries, labels: {made.labels}"
    order = "in the order they came" if made.shuffle is None else f"shuffled with seed {made.shuffle}"
    console.print(f"{folder}: {about}", markup=False, highlight=False, soft_wrap=True)
    shards = "1 shard" if len(made.shards) == 1 else f"{len(made.shards):,} shards"
    console.print(f"{size / 2**20:,.1f} MiB in {shards}, {order}", markup=False, highlight=False, soft_wrap=True)
