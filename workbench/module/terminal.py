"""Progress in a terminal, for who wants it: `fit(..., batch_end=shown.batch_end, epoch_end=shown.epoch_end)`."""

from typing import final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from workbench.module.training import BatchEnd, EpochEnd, Value


@final
class Shown:
    """A bar for the epoch that is trained, and a line for each that is done; only lines where output is no terminal."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console()
        columns = (TextColumn("epoch {task.fields[epoch]}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        metric = TextColumn("{task.fields[metric]}")
        self.progress = Progress(*columns, metric, console=self.console, transient=True, refresh_per_second=4)
        self.task = None

    def batch_end(self, event: BatchEnd) -> None:
        """Move the bar."""
        if not self.console.is_terminal:
            return
        if self.task is None:
            self.progress.start()
            self.task = self.progress.add_task("", total=event.batches, epoch=event.epoch, metric="")
        said = "" if event.metric is None else in_words(event.metric.value)
        self.progress.update(self.task, completed=event.batch + 1, metric=said)

    def epoch_end(self, event: EpochEnd) -> None:
        """Print the epoch's line."""
        if self.task is not None:
            self.progress.stop()
            self.progress.remove_task(self.task)
            self.task = None
        said = [f"epoch {event.epoch}", in_words(event.metric)]
        if event.validation is not None:
            said.append(f"validation {in_words(event.validation)}")
        self.console.print("  ".join(part for part in said if part), highlight=False)


def in_words(value: Value) -> str:
    """A metric's value as text.

    >>> in_words(0.25), in_words({"mse": 2.0, "mae": 1.5}), in_words(None)
    ('0.25', 'mse 2, mae 1.5', '')
    """
    if value is None:
        return ""
    if isinstance(value, dict):
        return ", ".join(f"{name} {number:.6g}" for name, number in value.items())
    return f"{value:.6g}"
