"""A chart as a picture with its sentence, for a widget or a page. Drawn off screen; nothing global is touched."""

import base64
import html
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from workbench import plots
from workbench.plots import interactive
from workbench.plots.chart import is_message
from workbench.reports import chart_svg

INCHES = (9.0, 5.4)
WIDE = "width:100%;max-width:1200px;background:#fff"
THEMES = """<style>
.chart { background: transparent !important; }
:is([data-jp-theme-light="false"], .vscode-dark, html[theme="dark"]) .chart { filter: invert(1) hue-rotate(180deg); }
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
    described: dict[str, Any] | None = None
    """The chart as Plotly's JSON, None if it is only a picture."""

    @property
    def html(self) -> str:
        """HTML figure with the SVG embedded as an image and the sentence as caption and alternative text.

        Only the sentence if there is nothing to draw.
        """
        if self.is_message:
            return f"<p>{html.escape(self.sentence)}</p>"
        data = base64.b64encode(self.svg).decode("ascii")
        alt = html.escape(f"{self.title}. {self.sentence}", quote=True)
        image = f'<img class="chart" alt="{alt}" src="data:image/svg+xml;base64,{data}" style="{WIDE}">'
        caption = f"<figcaption>{html.escape(self.sentence)}</figcaption>"
        return f"{THEMES}<figure style='margin: 8px 0 0'>{image}{caption}</figure>"

    def _repr_mimebundle_(self, **_options: Any) -> dict[str, Any]:
        """Return the chart as Plotly's JSON for notebooks that draw it, and as a picture for the others."""
        live = {interactive.MIME: self.described} if self.described else {}
        return live | {"text/html": self.html, "text/plain": self.sentence}


def draw(name: str, frame: pd.DataFrame, **controls: Any) -> Picture:
    """Return the chart `name` of the records in `frame`; ValueError, listing the known ones, for unknown names."""
    figure = Figure(figsize=INCHES)
    sentence = plots.draw(name, frame, figure, **controls)
    title = plots.get(name).title
    if is_message(figure):
        return Picture(title, sentence, b"", True)
    svg = chart_svg.inline(figure, name, title, sentence).encode()
    return Picture(title, sentence, svg, described=interactive.describe(figure))
