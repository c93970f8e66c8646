"""The command `apply`: a saved model predicts the rows of a file, into a CSV file or onto the screen."""

import csv
import os
from pathlib import Path
from typing import Annotated, Any

import typer

SHOWN = 10
"""Rows that are shown if no file is written."""


def apply(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder that train --save wrote.")],
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="File to predict, of the kind trained on.")],
    out: Annotated[Path | None, typer.Option(help="CSV file to write: row, prediction, a probability a class.")] = None,
    labels: Annotated[Path | None, typer.Option(help="File of labels (.npy or text), to measure quality.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file of --out.")] = False,
) -> None:
    """Predict the rows of a file with a saved model, and print its quality if the file has labels."""
    from workbench.training.trained import ModelFolderError, load_model

    if out is not None and out.exists() and not force:
        raise ModelFolderError(f"{out} is there already.\nType --force to replace it.")
    made = load_model(model)
    predicted = made.apply(source, labels)
    if out is not None:
        write(out, predicted.values, predicted.probabilities, predicted.classes)
        typer.echo(f"{out}: {len(predicted.values):,} rows")
    else:
        for line in lines_of(predicted.values[:SHOWN], predicted.probabilities, predicted.classes):
            typer.echo(",".join(line))
        if len(predicted.values) > SHOWN:
            typer.echo(f"... {len(predicted.values):,} rows in all. Type --out scores.csv to write them.")
    if predicted.note:
        typer.echo(f"No quality: {predicted.note}.", err=True)
    else:
        typer.echo("quality: " + ", ".join(f"{name} {value:.4f}" for name, value in predicted.quality.items()))


def lines_of(values: Any, probabilities: Any, classes: tuple[str, ...]) -> list[list[str]]:
    """Return the lines of the table.

    A header, then the row from 0, its prediction and the probability of each class.
    """
    several = values.ndim == 2
    heads = [f"prediction_{place}" for place in range(values.shape[1])] if several else ["prediction"]
    lines = [["row", *heads, *(f"probability_{name}" for name in classes)]]
    for row, value in enumerate(values.tolist()):
        shown = [f"{one:.9g}" if isinstance(one, float) else str(one) for one in (value if several else [value])]
        chances = [] if probabilities is None else [f"{chance:.6g}" for chance in probabilities[row]]
        lines.append([str(row), *shown, *chances])
    return lines


def write(out: Path, values: Any, probabilities: Any, classes: tuple[str, ...]) -> None:
    """Write the table; the file is there whole or not at all."""
    new = out.with_name(f".{out.name}.new")
    try:
        with new.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(lines_of(values, probabilities, classes))
        os.replace(new, out)
    finally:
        new.unlink(missing_ok=True)
