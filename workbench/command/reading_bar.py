"""A bar while a large file is read: bytes done, MB/s and the time left."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from workbench.command.console import console
from workbench.data import content

BYTES_SHOWN = 1 << 24
"""Size of the smallest file that has a bar: a smaller one is read before a bar is seen."""


@contextmanager
def show_reading() -> Iterator[None]:
    """Show a bar in a terminal while data files are read within the block; it disappears at the end."""
    if not console.is_terminal:
        yield
        return
    bars: dict[str, Any] = {}

    def watch(name: str, done: int, size: int) -> None:
        if size < BYTES_SHOWN:
            return
        if not bars:
            bars[""] = _new_progress()
        if name not in bars:
            bars[name] = bars[""].add_task(Path(name).name, total=size)
        bars[""].update(bars[name], completed=done)

    try:
        with content.watching(watch):
            yield
    finally:
        if bars:
            bars[""].stop()


def _new_progress() -> Any:
    """Return a progress display that has been started."""
    from rich import progress

    columns = (progress.TextColumn("reading {task.description}", markup=False), progress.BarColumn())
    speed = progress.DownloadColumn(), progress.TransferSpeedColumn(), progress.TimeRemainingColumn()
    made = progress.Progress(*columns, *speed, console=console, transient=True)
    made.start()
    return made
