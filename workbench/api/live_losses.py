"""Losses of a training shown while it runs: a bar in a terminal, a line in a notebook, lines in a log."""

import abc
import contextlib
import html
import sys
import time
from collections.abc import Iterator
from typing import Any, final

from workbench.api.inputs import in_notebook, say
from workbench.watching import Reached, watched_by

SECONDS_HIDDEN = 0.5
"""A training that takes no longer shows nothing."""
KNOWN_END = ("epoch", "iteration")
"""Stages whose parts take about the same time each, so that the time to come can be told."""
SECONDS_BETWEEN, SECONDS_BETWEEN_LINES = 0.25, 10.0


@contextlib.contextmanager
def live_losses(is_shown: bool = True) -> Iterator[None]:
    """Show the losses of trainings within the context, and take them away at its end; nothing unless `is_shown`."""
    if not is_shown:
        yield
        return
    shown = _InNotebook() if in_notebook() else _InTerminal() if sys.stderr.isatty() else _InLog()
    try:
        with watched_by(shown.watch):
            yield
    finally:
        shown.close()


class _Shown(abc.ABC):
    """What is shown of a training, at most once in `seconds_between`; it begins after `SECONDS_HIDDEN`."""

    seconds_between = SECONDS_BETWEEN

    def __init__(self) -> None:
        """Start the clock; nothing is shown yet."""
        self.start = time.perf_counter()
        self.stage, self.since = "", self.start

    def watch(self, reached: Reached) -> float:
        """Show how far the training is, if that is due; return the seconds until it is due again."""
        now = time.perf_counter()
        if reached.stage != self.stage:
            self.stage, self.since = reached.stage, now if self.stage else self.start
        if now - self.start < SECONDS_HIDDEN:
            return SECONDS_HIDDEN - (now - self.start)
        self.show(reached.share, f"{reached}; {self.text_of_time(reached, now)}".capitalize())
        return self.seconds_between

    def text_of_time(self, reached: Reached, now: float) -> str:
        """Return the seconds so far, and about how many are expected to come if the end is known."""
        spent, share = f"{now - self.start:.0f} s", reached.share
        if not share or reached.stage not in KNOWN_END:
            return spent
        return f"{spent}, about {(now - self.since) * (1 - share) / share:.0f} s left"

    @abc.abstractmethod
    def show(self, share: float | None, text: str) -> None:
        """Show a text, and the share of the training that is done."""

    @abc.abstractmethod
    def close(self) -> None:
        """Take away what is shown."""


@final
class _InLog(_Shown):
    """A line from time to time."""

    seconds_between = SECONDS_BETWEEN_LINES

    def show(self, share: float | None, text: str) -> None:
        """Print the text."""
        say(text)

    def close(self) -> None:
        """Leave the lines as they are."""


@final
class _InTerminal(_Shown):
    """A bar on standard error."""

    bar: Any = None

    def show(self, share: float | None, text: str) -> None:
        """Draw the bar; no thread does so in between, which would slow the training."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        if self.bar is None:
            columns = BarColumn(bar_width=20), TextColumn("{task.description}", markup=False)
            self.bar = Progress(*columns, console=Console(stderr=True), auto_refresh=False, transient=True)
            self.task = self.bar.add_task("", total=None)
            self.bar.start()
        self.bar.update(self.task, total=None if share is None else 1.0, completed=share or 0.0, description=text)
        self.bar.refresh()

    def close(self) -> None:
        """Take the bar away."""
        if self.bar is not None:
            self.bar.stop()


@final
class _InNotebook(_Shown):
    """A line of the cell's output, which is empty in the end: exported notebooks keep nothing of it."""

    handle: Any = None

    def show(self, share: float | None, text: str) -> None:
        """Display the line, or replace it."""
        from IPython.display import HTML, display

        value = "" if share is None else f' value="{share:.3f}"'
        line = HTML(f'<p role="status"><progress{value} aria-label="Training"></progress> {html.escape(text)}</p>')
        if self.handle is None:
            self.handle = display(line, display_id=True)
        else:
            self.handle.update(line)

    def close(self) -> None:
        """Empty the line."""
        if self.handle is not None:
            from IPython.display import HTML

            self.handle.update(HTML(""))
