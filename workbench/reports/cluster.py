"""The chart of what training on several machines takes, from rows alone."""

from pathlib import Path

from matplotlib.figure import Figure

from workbench import plots, store
from workbench.reports import page

FILE = "cluster-steps.svg"
FIGURE_INCHES = (9.0, 6.0)


def write(folder: str | Path) -> tuple[Path, str]:
    """(path of the chart, what it shows), of the rows in a folder."""
    figure, path = Figure(figsize=FIGURE_INCHES), Path(folder) / FILE
    sentence = plots.draw("cluster_steps", store.CLUSTER.frame(store.CLUSTER.read(folder)), figure)
    page.save(figure, path)
    return path, sentence
