"""The terminal that commands write to, apart from what they write: importing it costs rich alone."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

console, stderr = Console(), Console(stderr=True)


@contextmanager
def messages_on_stderr(is_so: bool = True) -> Iterator[None]:
    """Write all that is for people to the standard error within the context, so that the output holds results alone."""
    console.stderr = is_so
    try:
        yield
    finally:
        console.stderr = False


def print_run_lines(folder: Path, lines: Iterable[str]) -> None:
    """Print lines about a run, below its folder."""
    console.print(str(folder), style="bold", markup=False, highlight=False, soft_wrap=True)
    for line in lines:
        console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
