"""Charts whose points can be clicked: a click chooses the cell in the drop-down below, which tells the kernel.

The chart is part of the page instead of an image, with an invisible mark over each point. What a mark does when it is
clicked needs no kernel and no script of its own: it changes the drop-down as a user would.
"""

import html
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from workbench import plots
from workbench.analysis import cells, words
from workbench.panels import picture
from workbench.plots.density import Shown
from workbench.reports import hover, page

CHART, MEASURE = "time_density", "seconds_step"
"""The chart whose points are cells, and the measure that it shows."""
PICKER = "wb-cell-picker"
"""The class of the drop-down that a click changes."""
CLICK = (
    f"var list=this.closest('.workbench-lab').querySelector('.{PICKER} select');list.selectedIndex={{}};"
    "list.dispatchEvent(new Event('change',{{bubbles:true}}))"
)


def drawn(name: str, frame: pd.DataFrame, cells_: Sequence[cells.Row], **controls: Any) -> str:
    """A chart as HTML; `cells_` are the pooled rows of the drop-down's options, in its order."""
    figure = Figure(figsize=picture.INCHES)
    title = plots.get(name).title
    sentence = plots.draw(name, frame, figure, **controls)
    svg = str(page.inline(figure, f"explored-{name}", title, sentence))
    if name == CHART:
        marks = "".join(_marks(figure, _shown(frame, controls), cells_))
        svg = f"{svg.removesuffix('</svg>')}<g fill='transparent'>{marks}</g></svg>"
    return picture.in_page(svg, sentence)


def _shown(frame: pd.DataFrame, controls: dict[str, Any]) -> Shown:
    chosen = plots.get(CHART).chosen(cells.latest(frame), controls)
    return Shown.of(cells.latest(frame), MEASURE, chosen["group"], chosen["update"])


def _marks(figure: Figure, shown: Shown, cells_: Sequence[cells.Row]) -> Iterator[str]:
    if shown.single or not figure.axes:
        return
    places = {cells.cell_of(row): place for place, row in enumerate(cells_)}
    for row in shown.rows:
        density, seconds, place = cells.density_of(row), row[MEASURE], places.get(cells.cell_of(row))
        if density and seconds and place is not None:
            left, top = hover.on_page(figure, *figure.axes[0].transData.transform((density, seconds)))
            number = words.measured_quantity(row, MEASURE)
            text = f"{words.short_line(row)} at {words.density(density)}: {number}; a click shows its rows"
            click = html.escape(CLICK.format(place), quote=True)
            mark = f'<circle cx="{left:.1f}" cy="{top:.1f}" r="{hover.RADIUS + 2}" onclick="{click}"'
            yield f'{mark} style="cursor: pointer"><title>{html.escape(text)}</title></circle>'
