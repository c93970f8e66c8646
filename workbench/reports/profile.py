"""The charts of a data set's profile as files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from workbench import plots
from workbench.reports import page

FIGURE_INCHES = (9.0, 5.4)
FORMATS = ("svg", "png")


def write_charts(profile: Mapping[str, Any], folder: str | Path) -> list[Path]:
    """Draw the charts of a profile, as JSON keeps it, into a folder, each as SVG and as PNG; returns the files."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    frame, written = pd.DataFrame([profile]), []
    for name in plots.names("profile"):
        figure = Figure(figsize=FIGURE_INCHES, facecolor="white")
        plots.draw(name, frame, figure)
        for kind in FORMATS:
            written.append(folder / f"{name.replace('_', '-')}.{kind}")
            page.save(figure, written[-1])
    return written
