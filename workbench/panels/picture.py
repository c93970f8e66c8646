"""A chart as a picture with its sentence, for a widget or a page. Drawn off screen; nothing global is touched."""

import base64
import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from workbench import plots
from workbench.analysis.configurations import Record, configuration_of, density_of, pool_rounds
from workbench.analysis.formatting import format_density, format_measured_quantity, short_configuration_name
from workbench.plots.chart import is_message
from workbench.plots.density import Shown
from workbench.reports import page

INCHES, INCHES_SMALL = (9.0, 5.4), (5.6, 4.0)
WIDE = "width:100%;max-width:1200px;background:#fff"
THEMES = """<style>
:is(img, div).chart { background: transparent !important; }
:is([data-jp-theme-light="false"], .vscode-dark, html[theme="dark"]) .chart { filter: invert(1) hue-rotate(180deg); }
div.chart > svg { width: 100%; height: auto; }
</style>"""
"""Charts have no ground of their own, and dark themes turn light and dark around, hues kept. Where a front end drops
style sheets, as JupyterLab does in notebooks that are not trusted, the image's own white ground stays."""


@dataclass(frozen=True)
class Picture:
    """SVG of a chart; `sentence` says what it shows."""

    title: str
    sentence: str
    svg: bytes
    is_message: bool = False
    """Whether there is nothing to draw, and the sentence says why."""

    @property
    def html(self) -> str:
        """HTML figure with the SVG embedded as an image and the sentence as caption and alternative text.

        Only the sentence if there is nothing to draw.
        """
        if self.is_message:
            return _paragraph(self.sentence)
        data = base64.b64encode(self.svg).decode("ascii")
        alt = html.escape(f"{self.title}. {self.sentence}", quote=True)
        image = f'<img class="chart" alt="{alt}" src="data:image/svg+xml;base64,{data}" style="{WIDE}">'
        return _figure(image, self.sentence)


def _paragraph(sentence: str) -> str:
    """Return a sentence as a paragraph of HTML, escaped."""
    return f"<p>{html.escape(sentence)}</p>"


def _figure(chart: str, sentence: str) -> str:
    """Return HTML of a chart (an image or SVG element) with its sentence, escaped, as caption."""
    caption = f"<figcaption>{html.escape(sentence)}</figcaption>"
    return f"{THEMES}<figure style='margin: 8px 0 0'>{chart}{caption}</figure>"


def draw(name: str, frame: pd.DataFrame, **controls: Any) -> Picture:
    """Return the chart `name` of the records in `frame`; ValueError, listing the known ones, for unknown names."""
    return _drawn(name, frame, INCHES, controls)


def draw_small(name: str, frame: pd.DataFrame) -> Picture:
    """Return the chart `name` at a smaller size, to stand next to another one, with default controls."""
    return _drawn(name, frame, INCHES_SMALL, {})


def _drawn(name: str, frame: pd.DataFrame, inches: tuple[float, float], controls: dict[str, Any]) -> Picture:
    """Draw the chart `name` with these controls at `inches` (width, height); return SVG, title and sentence."""
    figure = Figure(figsize=inches)
    sentence = plots.draw(name, frame, figure, **controls)
    title = plots.get(name).title
    if is_message(figure):
        return Picture(title, sentence, b"", True)
    return Picture(title, sentence, page.inline(figure, name, title, sentence).encode())


# Charts whose points can be clicked: a click chooses the cell in the drop-down below, which tells the kernel.
#
# The chart is part of the page instead of an image, with an invisible mark over each point. What a mark does when it is
# clicked needs no kernel and no script of its own: it changes the drop-down as a user would.


CHART, MEASURE = "time_density", "seconds_step"
"""The chart whose points are cells, and the measure that it shows."""
PICKER = "wb-cell-picker"
"""The class of the drop-down that a click changes."""
CLICK = (
    f"var list=this.closest('.workbench-lab').querySelector('.{PICKER} select');list.selectedIndex={{}};"
    "list.dispatchEvent(new Event('change',{{bubbles:true}}))"
)


def drawn(name: str, frame: pd.DataFrame, cells_: Sequence[Record], **controls: Any) -> str:
    """Return HTML of a chart as inline SVG; in that of time by density, a click on a point selects a configuration.

    `cells_` are the pooled records of the drop-down's options, in its order. Only the sentence if there is nothing to
    draw.
    """
    figure = Figure(figsize=INCHES)
    title = plots.get(name).title
    sentence = plots.draw(name, frame, figure, **controls)
    if is_message(figure):
        return _paragraph(sentence)
    svg = str(page.inline(figure, f"explored-{name}", title, sentence))
    if name == CHART:
        marks = "".join(_marks(figure, _shown(frame, controls), cells_))
        svg = f"{svg.removesuffix('</svg>')}<g fill='transparent'>{marks}</g></svg>"
    return _figure(f'<div class="chart" style="{WIDE}">{svg}</div>', sentence)


def _shown(frame: pd.DataFrame, controls: dict[str, Any]) -> Shown:
    """Return the points that the chart of time against density shows for these records and controls."""
    chosen = plots.get(CHART).chosen(pool_rounds(frame), controls)
    return Shown.of(pool_rounds(frame), MEASURE, chosen["group"], chosen["update"])


def _marks(figure: Figure, shown: Shown, cells_: Sequence[Record]) -> Iterator[str]:
    """Yield an invisible SVG circle over each point, whose click selects its index in the drop-down.

    `cells_` are the records of the options. Nothing if the chart has no axes or is of a single density.
    """
    if shown.single or not figure.axes:
        return
    places = {configuration_of(row): place for place, row in enumerate(cells_)}
    for row in shown.rows:
        density, seconds, place = (density_of(row), row[MEASURE], places.get(configuration_of(row)))
        if density and seconds and place is not None:
            left, top = page.on_page(figure, *figure.axes[0].transData.transform((density, seconds)))
            number = format_measured_quantity(row, MEASURE)
            text = f"{short_configuration_name(row)} at {format_density(density)}: {number}; a click shows its rows"
            click = html.escape(CLICK.format(place), quote=True)
            mark = f'<circle cx="{left:.1f}" cy="{top:.1f}" r="{page.RADIUS + 2}" onclick="{click}"'
            yield f'{mark} style="cursor: pointer"><title>{html.escape(text)}</title></circle>'
