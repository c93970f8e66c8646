"""The command `compare`: what it takes, and what its exit status means."""

from pathlib import Path
from typing import Annotated

import typer


def compare(
    before: Annotated[
        str, typer.Argument(help="A run folder, a .jsonl file of rows, or REVISION:FILE, as git has it at a commit.")
    ],
    after: Annotated[str | None, typer.Argument(help="What is compared with it, of the same kinds.")] = None,
    with_files: Annotated[
        list[Path] | None,
        typer.Option(
            "--with",
            metavar="FILE.jsonl",
            help="Rows of another tool or person beside the first run: who, seconds (a list, one number a run), and "
            "the settings they are for, such as density; an unknown column lists all.",
        ),
    ] = None,
    within: Annotated[float, typer.Option(min=1.001, help="The factor up to which two times are the same.")] = 1.1,
    out: Annotated[Path | None, typer.Option(help="Markdown file to write as well, for a pull request.")] = None,
) -> None:
    """Say which configurations and kernels are slower, faster, the same or ambiguous in a second run, drift taken out.

    Exit status, for CI: 0 if nothing is significantly worse (ambiguous is not), 1 where a configuration or kernel is
    significantly slower, takes significantly more memory, or has no result any more, 2 for wrong input.
    """
    from workbench.command import comparing

    comparing.run(before, after, with_files or (), within, out)
