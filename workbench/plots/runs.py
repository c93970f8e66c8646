"""The best sparse and the best dense candidate of two runs against density, one run over the other."""

import pandas as pd
from matplotlib.figure import Figure

from workbench.analysis import configurations, formatting
from workbench.plots import density, style
from workbench.plots.chart import Control, message, register_chart

MEASURES = {"time": ("seconds_step", "time a step"), "memory": ("bytes_peak", "peak memory")}
RUN = "of_run"
"""Column of the frame that names the run of a record; the first run is drawn dotted."""


def shown_of(frame: pd.DataFrame, measure: str) -> dict[str, density.Shown]:
    """Return {run: what is shown of its largest group}, the best candidates alone, in the order of the frame."""
    parts = {str(run): configurations.pool_rounds(part) for run, part in frame.groupby(RUN, sort=False)}
    return {run: density.Shown.of(part, MEASURES[measure][0], None, "best") for run, part in parts.items()}


def draw(frame: pd.DataFrame, figure: Figure, *, measure: str) -> str:
    """Draw the best candidates of each run, the first run dotted; return the sentence below the chart.

    `measure` is "time" or "memory". A message if no run has it.
    """
    column, label = MEASURES[measure]
    found = shown_of(frame, measure)
    lines = [(run, rows, points) for run, shown in found.items() for rows in shown.lines
             if (points := density.points_of(rows, column))]  # fmt: skip
    if not lines:
        return message(figure, style.nothing(f"has a {label}"))
    axes = figure.add_subplot()
    axes.set_xscale("log")
    axes.set_yscale("log")
    style.log_axis(axes.xaxis, formatting.format_density, "density (stored entries / size)")
    style.log_axis(axes.yaxis, formatting.formatter_of(column), label)
    first, ends = next(iter(found)), []
    for run, rows, points in lines:
        look = style.look(rows[0]) | ({"linestyle": ":", "linewidth": 1.6} if run == first else {})
        name = f"{run}: {formatting.name_configuration(rows[0])}"
        style.draw_candidate(axes, name, points, look, is_best=True)
        ends.append((points[-1].x, points[-1].known.value, name, look["color"]))
    below = f"the best of each side; bands: 95 % intervals; dotted: {first}"
    sentence = f"{label.capitalize()} of {formatting.join_items(list(found))}"
    style.add_title_and_grid(figure, axes, sentence, below)
    style.label_ends(axes, ends)
    return f"{sentence}: the best sparse and the best dense candidate of each, {first} dotted."


def table(frame: pd.DataFrame, *, measure: str) -> pd.DataFrame:
    """Return run, configuration, density, the measure and the result as text, a row for each record that is drawn."""
    column = MEASURES[measure][0]
    parts = [density.table(shown.rows, [column]).assign(run=run) for run, shown in shown_of(frame, measure).items()]
    return pd.concat(parts, ignore_index=True)


register_chart(
    __name__,
    "Two runs over each other",
    (Control("measure", "what is drawn against density", tuple(MEASURES), "time"),),
    rows="runs",
)
