"""The terminal that commands write to, apart from what they write: importing it costs rich alone."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from workbench.command.output import escape_controls

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table


class PlainConsole(Console):
    """A console on which text is neither markup nor emoji codes, and control characters in it are escaped."""

    def __init__(self, **options: Any) -> None:
        """Set up a console of rich with these options."""
        super().__init__(markup=False, emoji=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Yield the segments of what is printed, and of each part of it, such as a cell of a table."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(escape_controls(text), style)


console, stderr = PlainConsole(), PlainConsole(stderr=True)


@contextmanager
def messages_on_stderr(is_so: bool = True) -> Iterator[None]:
    """Write the console's messages to standard error within the context, if `is_so`; the output has results only."""
    console.stderr = is_so
    try:
        yield
    finally:
        console.stderr = False


@contextmanager
def live(renderable: RenderableType | None = None, **options: Any) -> Iterator["Live"]:
    """Show a display of rich that is updated in a `with` block; elsewhere than on a terminal its last state, a line."""
    from rich.live import Live

    try:
        with Live(renderable, console=console, **options) as display:
            yield display
    finally:
        if not console.is_terminal:  # there Live leaves the line open
            console.print()


def make_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    title: str | None = None,
    styles: Iterable[str | None] | None = None,
    right: Sequence[str] = (),
) -> "Table":
    """Return a table of plain text, in which nothing is markup and long cells wrap.

    `styles` has the colour of each row or None; columns named in `right` are aligned right.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title and escape_controls(title), title_justify="left")
    for column in map(escape_controls, columns):
        table.add_column(column, overflow="fold", justify="right" if column in right else "left")
    colours = iter(styles) if styles is not None else iter(())
    for row in rows:
        table.add_row(*(Text(escape_controls(cell)) for cell in row), style=next(colours, None))
    return table


def print_line(text: str) -> None:
    """Print text without markup: wrapped between words on a terminal, and as one line elsewhere."""
    console.print(text, markup=False, highlight=False, soft_wrap=not console.is_terminal)


def print_run_lines(folder: Path, lines: Iterable[str]) -> None:
    """Print the folder of a run in bold, and below it each of `lines`, indented, without markup."""
    console.print(str(folder), style="bold", markup=False, highlight=False, soft_wrap=True)
    for line in lines:
        console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
