"""What commands write to the terminal: text from outside, such as names in files, cannot control it."""

import re

import typer

CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""C0 and C1 controls but tab and line feed, marks of direction and of line ends, and bytes that are no UTF-8."""


def escape_controls(text: str) -> str:
    r"""Return the text with control characters as escapes of Python; tabs and line feeds stay.

    >>> print(escape_controls("a\x1b[31mred\u202e"))
    a\x1b[31mred\u202e
    """
    return CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def escape_line(text: str) -> str:
    r"""Return the text as one line: as `escape_controls`, with line feeds as \n too."""
    return escape_controls(text).replace("\n", "\\n")


def echo(text: object = "", err: bool = False, fg: str | None = None) -> None:
    """Print text to standard output, or to standard error; control characters are escaped."""
    typer.secho(escape_controls(str(text)), err=err, fg=fg)
