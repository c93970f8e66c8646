"""The options of `advise` and of `bench advise`. Imports wait until either runs."""

from pathlib import Path
from typing import Annotated

import typer

from workbench.aliases import END
from workbench.command import data_commands, exit_codes


def advise(
    ctx: typer.Context,
    source: data_commands.Named,
    model: Annotated[str, typer.Option(help="What is trained, by default what suits the labels.")] = "",
    seconds: Annotated[
        float, typer.Option("--budget", "--seconds", help="Seconds that it may take, 5 or more.")
    ] = 60.0,
    optimizer: Annotated[str, typer.Option(help="Rule by which a gradient changes the weights.")] = "adagrad",
    batch_rows: Annotated[
        int | None, typer.Option(min=1, help="Rows of a batch; by default 256, and a larger one is tried.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda alone; by default all there are.")] = "",
    framework: Annotated[
        str,
        typer.Option(
            "--for",
            help="pytorch, tensorflow, keras or sklearn: which way to train inside that framework; then 120 seconds.",
        ),
    ] = "",
    lazy: Annotated[
        bool, typer.Option("--lazy", help="An update may be recommended that trains another model than dense.")
    ] = False,
    dataset: data_commands.Dataset = "",
    label: data_commands.Label = "",
    labels: data_commands.Labels = "",
    columns: data_commands.Columns = "",
    kind: data_commands.Kind = "",
    reading: data_commands.Reading = "",
    run: Annotated[
        Path | None,
        typer.Option(
            help="Run folder, by default runs/advise-DATA-MODEL, with a hash of the file's path; gone on with."
        ),
    ] = None,
    json: data_commands.Json = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show the keys of the records that each sentence rests on.")
    ] = False,
) -> None:
    """Say what to train your data with: sparse or dense, how, how much faster; measured here, within a minute."""
    from workbench.sweeps import run_folder

    files = {"dataset": dataset, "labels": labels, "kind": kind, "columns": columns}
    if framework:
        budget = None if exit_codes.is_default(ctx, "seconds") else seconds
        _show_framework(source, framework, _read_as(files, reading, label), budget, batch_rows, json)
        return
    with run_folder.supervisor_in_waiting():  # before what takes long is imported
        from workbench.command import advising

        given = {"model": model, "optimizer": optimizer, "batch_rows": batch_rows, "device": device}
        answer = advising.advise(source, _read_as(files, reading, label), given, seconds, lazy, run, json, verbose)
    if answer.is_stopped:
        exit_codes.exit_interrupted(ctx, "Stopped")
    if answer.recommendation.verdict == "none":
        raise typer.Exit(exit_codes.WRONG_INPUT)


def _read_as(files: dict[str, str], reading: str, label: str) -> dict[str, str]:
    """Return the settings of the reader, the label column among them."""
    from workbench.data.contract import with_label

    return files | {"reading": with_label(reading, label)}


def _show_framework(
    source: str, framework: str, files: dict[str, str], budget: float | None, batch_rows: int | None, as_json: bool
) -> None:
    """Show which way to train inside a framework."""
    from workbench.command import framework_advice

    framework_advice.show(source, framework, files, budget, batch_rows, as_json)


def bench_advise(
    ctx: typer.Context,
    quick: Annotated[bool, typer.Option("--quick", help="Twelve cases, about half an hour; all take an hour.")] = False,
    case: Annotated[list[str] | None, typer.Option(help="A case of the suite; a wrong name lists all.")] = None,
    results: Annotated[
        Path, typer.Option(help="Folder of rows and page; cases that it has are not measured again.")
    ] = Path("runs/bench-advise"),
    runs: Annotated[Path, typer.Option(help="Folder of the trials, gone on with.")] = Path("runs/bench-advise"),
    replay: Annotated[
        bool, typer.Option("--replay", help="Measure nothing: play races of the cases in RESULTS back, 50 of each.")
    ] = False,
) -> None:
    """Judge `advise` by full sweeps, beside always sparse, always dense, the bytes rule and a fitted density."""
    from workbench.command import advice_suite

    if replay:
        advice_suite.replay(tuple(case or ()), results)
        return
    if not advice_suite.run(tuple(case or ()), quick, results, runs, exit_codes.original_command_line(ctx)):
        exit_codes.exit_interrupted(ctx, "Stopped")


Runs = Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders, or .jsonl files of records.")]
Chart = Annotated[
    Path | None, typer.Option(help="A chart of measured against predicted, .svg or .png, or its numbers, .csv.")
]


def forecast(runs: Runs, out: Chart = None) -> None:
    """Fit a cost model on records: how well it predicts, how break-evens move with width, batch, features and skew."""
    from workbench.command import predicting

    predicting.predict(runs, out)


def predict(runs: Runs, out: Chart = None) -> None:
    """Run `forecast`, which had this name up to 0.2."""
    text = f"'workbench predict' is called 'workbench forecast' now; the old name ends with version {END}."
    typer.echo(f"Note: {text}", err=True)
    forecast(runs, out)
