"""The chart of measured against predicted times as a file, or the numbers behind it."""

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from workbench import plots
from workbench.reports import page
from workbench.reports.export import ExportError

FIGURE_INCHES = (9.0, 6.8)
PICTURES, KINDS = (".svg", ".png"), (".svg", ".png", ".csv")


def write(frame: pd.DataFrame, path: Path) -> str:
    """Draw the predictions of a frame, or write its table for a file .csv; returns the sentence that says what is seen.

    `ExportError` for another suffix.
    """
    refuse_unknown(path)
    figure = Figure(figsize=FIGURE_INCHES, facecolor="white")
    sentence = plots.draw("predicted", frame, figure)
    if path.suffix in PICTURES:
        page.save(figure, path)
    else:
        plots.table("predicted", frame).to_csv(path, index=False)
    return sentence


def refuse_unknown(path: Path) -> None:
    """`ExportError` for a file of a kind that is not written."""
    if path.suffix not in KINDS:
        raise ExportError(f"Predictions are not written as {path.name!r}; its name may end in {', '.join(KINDS)}.")
