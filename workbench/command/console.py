"""The terminal that commands write to, apart from what they write: importing it costs rich alone."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from rich.table import Table

console, stderr = Console(), Console(stderr=True)


@contextmanager
def messages_on_stderr(is_so: bool = True) -> Iterator[None]:
    """Write the console's messages to standard error within the context, if `is_so`; the output has results only."""
    console.stderr = is_so
    try:
        yield
    finally:
        console.stderr = False


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

    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold", justify="right" if column in right else "left")
    colours = iter(styles) if styles is not None else iter(())
    for row in rows:
        table.add_row(*map(Text, row), style=next(colours, None))
    return table


def print_line(text: str) -> None:
    """Print text without markup: wrapped between words on a terminal, and as one line elsewhere."""
    console.print(text, markup=False, highlight=False, soft_wrap=not console.is_terminal)


def print_run_lines(folder: Path, lines: Iterable[str]) -> None:
    """Print the folder of a run in bold, and below it each of `lines`, indented, without markup."""
    console.print(str(folder), style="bold", markup=False, highlight=False, soft_wrap=True)
    for line in lines:
        console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
