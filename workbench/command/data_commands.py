"""`workbench data`: what there is to train on, and what it looks like. One sub-command per public function."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from workbench.command.exit_codes import Group

data = typer.Typer(cls=Group, help="Look at data before anything is measured: what there is, and how sparse it is.")
Named = Annotated[str, typer.Argument(metavar="SOURCE", help="Your file or folder, or the name of a data set.")]
Dataset = Annotated[str, typer.Option(help="Data set that reads SOURCE, by default guessed; a wrong name lists all.")]
Label = Annotated[str, typer.Option(help="Column or variable of labels; by default guessed, and told.")]
Labels = Annotated[str, typer.Option(help="Your file of labels (.npy or text), where the data has none.")]
Columns = Annotated[str, typer.Option(help="Your file of column kinds (.toml), for tables.")]
Kind = Annotated[str, typer.Option(help="What labels are: classes, numbers or multilabel; by default guessed.")]
Reading = Annotated[str, typer.Option(help="Parameters of the reader, name=value with commas between.")]
Charts = Annotated[Path | None, typer.Option(help="Folder to write the charts into, as SVG and as PNG.")]
Json = Annotated[bool, typer.Option("--json", help="JSON instead of a table.")]


@data.command("list")
def list_(json: Json = False) -> None:
    """List the data sets: their parameters and defaults, where they come from, their licence."""
    from workbench.command import data_list, data_screen

    data_screen.show_sources(data_list.sources(), json)


@data.command()
def profile(
    source: Named,
    dataset: Dataset = "",
    labels: Labels = "",
    columns: Columns = "",
    kind: Kind = "",
    label: Label = "",
    reading: Reading = "",
    json: Json = False,
    charts: Charts = None,
) -> None:
    """Say how sparse a data set is: row lengths, columns, active columns, bytes in each format, duplicates, labels."""
    from workbench.command import data_screen, data_source
    from workbench.data import contract
    from workbench.data import profile as profile_of

    reading = contract.with_label(reading, label)
    read = data_source.load_with_or_without_labels(source, dataset, labels, kind, reading, columns)
    known = asdict(profile_of(read))
    data_screen.show_profile(known, json)
    if charts is not None:
        from workbench.reports.profile import write_charts

        data_screen.print_files(write_charts(known, charts))


@data.command()
def columns(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Your table: CSV, TSV or Parquet.")],
    out: Annotated[
        Path | None, typer.Option(help="File to write (.toml), to be edited and given to others as --columns.")
    ] = None,
    columns: Columns = "",
    reading: Annotated[
        str, typer.Option(help="How to read it: separator, header, quotes, label, hashed, bins; name=value, commas.")
    ] = "",
) -> None:
    """Say what each column of a table is taken for: kind, encoding, distinct values, share missing, and why."""
    from workbench.command import data_source

    chosen = data_source.columns(source, columns, reading)
    typer.echo(chosen.text())
    if out is not None:
        chosen.save(out)
        typer.echo(f"Written: {out}")


@data.command()
def convert(
    source: Named,
    folder: Annotated[Path, typer.Argument(help="Folder to make, such as X.sparse.")],
    dataset: Dataset = "",
    labels: Labels = "",
    columns: Columns = "",
    kind: Kind = "",
    label: Label = "",
    reading: Reading = "",
    shuffle: Annotated[bool, typer.Option(help="Random order, without which no rows can be held out.")] = True,
    seed: Annotated[int, typer.Option(min=0, help="Draws the order.")] = 0,
    shard_bytes: Annotated[int, typer.Option(min=1024, help="Bytes of a shard; memory holds about three.")] = 2**27,
) -> None:
    """Convert data into a folder that may be larger than memory; train on it with --dataset sparse --path FOLDER."""
    from workbench.command import data_convert, data_source
    from workbench.data import contract

    reading = contract.with_label(reading, label)
    name, parameters = data_source.named_source(source, dataset, labels, kind, reading, columns)
    data_convert.convert(name, parameters, folder, seed if shuffle else None, shard_bytes)
