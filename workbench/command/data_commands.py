"""`workbench data`: what there is to train on, and what it looks like. One sub-command per public function."""

import importlib
import inspect
import json as json_format
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from workbench import option_text
from workbench.command.exit_codes import Group
from workbench.command.options import with_options
from workbench.command.output import echo
from workbench.settings import BY_NAME, LABEL, READING


def sources() -> list[dict[str, Any]]:
    """Return the facts of each data set: name, what it is, needs, parameters with defaults, origin, licence."""
    from workbench.data import contract

    facts = []
    for source in map(contract.get, contract.names()):
        needed = [name for name, default in source.parameters.items() if default is inspect.Parameter.empty]
        defaults = {name: default for name, default in source.parameters.items() if name not in needed}
        module = importlib.import_module(f"workbench.data.sources.{source.name}")
        about = (inspect.getdoc(module) or "").partition("\n\n")[0].replace("\n", " ")
        known = {"name": source.name, "about": about, "needs": needed, "parameters": defaults}
        facts.append(known | {"origin": source.origin, "licence": source.licence})
    return facts


data = typer.Typer(cls=Group, help="Look at data before anything is measured: what there is, and how sparse it is.")
Named = Annotated[str, typer.Argument(metavar="SOURCE", help="Your file or folder, or the name of a data set.")]
Label = Annotated[str, typer.Option(help=LABEL.help)]
Columns = Annotated[str, typer.Option(help=BY_NAME["columns"].help)]
Charts = Annotated[Path | None, typer.Option(help="Folder to write the charts into, as SVG and as PNG.")]
Json = Annotated[bool, typer.Option("--json", help="JSON instead of a table.")]


with_files = with_options(*READING, missing="")
"""Gives a command the options that say how SOURCE is read; "" if not given."""


@data.command("list")
def list_(json: Json = False) -> None:
    """List the data sets: what each is, where it comes from, its licence, its parameters and defaults.

    Printed as text, or as JSON.

    Examples
    --------
    workbench data list
    workbench data list --json
    """
    show_sources(sources(), json)


@data.command()
@with_files
def profile(source: Named, *, json: Json = False, charts: Charts = None, **files: str) -> None:
    """Say how sparse a data set is: row lengths, columns, active columns, bytes in each format, duplicates, labels.

    The profile is printed; charts are written only with --charts. Exit status: 2 if the data cannot be read.

    Examples
    --------
    workbench data profile train.txt
    workbench data profile clicks.csv --label clicked
    workbench data profile likes.tsv --reading implicit=true
    """
    from workbench.command import data_source
    from workbench.data import profile as profile_of

    known = asdict(profile_of(data_source.load_with_or_without_labels(source, **files)))
    show_profile(known, json)
    if charts is not None:
        from workbench.reports.results import write_charts

        print_files(write_charts(known, charts))


@data.command()
def columns(
    source: Annotated[str, typer.Argument(metavar="SOURCE")],
    out: Path | None = None,
    columns: Columns = "",
    label: Label = "",
    reading: str = "",
) -> None:
    """Say what each column of a table is taken for: kind, encoding, distinct values, share missing, and why.

    Printed as a table; --out writes a TOML file as well. Exit status: 2 if the table cannot be read.

    Parameters
    ----------
    source
        Your table: CSV, TSV or Parquet.
    out
        File to write (.toml), to be edited and given to others as --columns.
    reading
        How to read it: separator, header, quotes, hashed, bins; name=value, commas between.

    Examples
    --------
    workbench data columns clicks.csv
    workbench data columns clicks.csv --out kinds.toml
    """
    from workbench.command import data_source

    chosen = data_source.columns(source, columns, reading, label)
    echo(option_text.worded(chosen.text()))
    if out is not None:
        chosen.save(out)
        echo(f"Written: {out}")


@data.command()
@with_files
def convert(
    source: Named,
    folder: Path,
    shuffle: Annotated[bool, typer.Option()] = True,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    **files: str,
) -> None:
    """Convert data into a folder that may be larger than memory; train on it with --dataset sparse --path FOLDER.

    Rows, bytes and order are printed. Exit status: 2 if the data cannot be read or the folder exists.

    Parameters
    ----------
    folder
        Folder to make, such as X.sparse.
    shuffle
        Random order, without which no rows can be held out.
    seed
        Draws the order.

    Examples
    --------
    workbench data convert train.txt X.sparse
    workbench data convert clicks.csv X.sparse --label clicked
    """
    from workbench.command import data_source

    name, parameters = data_source.named_source(source, **files)
    convert_data(name, parameters, folder, seed if shuffle else None)


def convert_data(name: str, parameters: Mapping[str, Any], folder: Path, shuffle: int | None) -> None:
    """Convert the data set `name` into `folder`, showing progress; print what was made.

    `shuffle` is the seed of the order, None to keep it. Raises data.DataError if it cannot be read.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from kernels.registry import format_count, format_size
    from workbench import data
    from workbench.command.console import console

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,} rows"))
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as shown:
        task = shown.add_task("reading", total=None)

        def tell(progress: data.Progress) -> None:
            """Update the bar to the stage and the number of rows that are done."""
            shown.update(task, description=progress.stage, completed=progress.rows, total=progress.total)

        made = data.convert(name, folder, shuffle=shuffle, progress=tell, **parameters)
    rows, features = made.shape
    about = f"{format_count(rows, 'row')} x {format_count(features, 'feature')}, {format_count(made.nnz, 'entry')}"
    about += f", labels: {made.labels}"
    order = "in the order they came" if made.shuffle is None else f"shuffled with seed {made.shuffle}"
    console.print(f"{folder}: {about}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"{format_size(sum(made.bytes.values()))}, {order}", markup=False, highlight=False, soft_wrap=True)


INDENT, WIDEST = "  ", 100
"""What stands before a line on a data set, and how wide it is at most."""


def show_sources(sources: Iterable[Mapping[str, Any]], as_json: bool) -> None:
    """Print what the data sets are, origin, licence, needs and parameters, wrapped between words, or as JSON."""
    if as_json:
        _print_json(list(sources))
        return
    import textwrap

    from workbench.command.console import console
    from workbench.option_text import Options

    for source in sources:
        console.print(source["name"], style="bold", markup=False, highlight=False)
        needs = f"needs {', '.join(source['needs'])}; " if source["needs"] else ""
        parameters = ", ".join(
            name if value is None else str(Options({name: value}))
            for name, value in sorted(source["parameters"].items())
        )
        whence = f"{source['origin']}; licence: {source['licence']}"
        for text in (source["about"], whence, f"{needs}{parameters}"):
            width = min(console.width, WIDEST) - len(INDENT)
            for line in textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False):
                console.print(f"{INDENT}{line}", markup=False, highlight=False, soft_wrap=True)


def show_profile(profile: Mapping[str, Any], as_json: bool) -> None:
    """Print the profile of a data set (a dict for JSON) as a table with a sentence on what it means, or as JSON."""
    if as_json:
        _print_json(profile)
        return
    from rich.table import Table
    from rich.text import Text

    from workbench.analysis import profiles
    from workbench.command.console import console
    from workbench.measure import memory

    title = Text(f"{profile['name']}: {profile['source']}", style="bold")
    shown = Table(title=title, title_justify="left", show_header=False)
    for what, lines in profiles.profile_facts(profile):
        shown.add_row(Text(what), Text("\n".join(lines)), end_section=True)
    console.print(shown)
    console.print(Text(profiles.profile_sentence(profile, memory.available_bytes())))


def print_files(paths: Iterable[Path]) -> None:
    """Print "Written: PATH" for each file to standard error, so that standard output has JSON alone."""
    for path in paths:
        echo(f"Written: {path}", err=True)


def _print_json(value: Any) -> None:
    """Print a value as strict JSON; types that JSON lacks become text."""
    echo(json_format.dumps(value, indent=1, allow_nan=False, default=str))
