"""The command `report`: which runs it takes, and the kinds of file that it writes."""

import json as json_format
from pathlib import Path
from typing import Annotated

import typer

Markdown = Annotated[bool, typer.Option("--markdown", help="Markdown instead of HTML, as for an --out *.md.")]


def report(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Run folders, or .jsonl files of rows; all make one report.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write, by default report.html beside the rows: .html, .md, .pdf (printed by a Chromium of "
            "this machine), or the rows alone as .csv or .parquet."
        ),
    ] = None,
    markdown: Markdown = False,
    results: Annotated[
        Path | None,
        typer.Option(help="Put rows, report and charts of each run into this folder, such as results/MACHINE."),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the answer of each density as JSON for programs; write nothing.")
    ] = False,
) -> None:
    """Write the report of runs: headline, verdict table, charts, words, tables, every row with its samples."""
    from workbench.reports import export
    from workbench.reports import results as kept

    if json:
        if out is not None or results is not None or markdown:
            raise typer.BadParameter("--json prints; leave out --out, --results and --markdown.")
        print_answers(runs)
        return
    if results is not None:
        export.refuse_options(out, markdown)
    written = [file for run in runs for file in kept.put(run, results)] if results else []
    for path in written or [export.write_report(runs, out, markdown=markdown)]:
        typer.echo(path)


def print_answers(runs: list[Path]) -> None:
    """Print the findings of runs as JSON."""
    from workbench.reports import export
    from workbench.reports.answers import answers

    typer.echo(json_format.dumps(answers(export.frame_of(runs)), indent=1, allow_nan=False))
