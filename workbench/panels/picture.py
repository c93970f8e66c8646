"""A chart as a picture with its sentence, for a widget or a page. Drawn off screen; nothing global is touched."""

import base64
import html
import io
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from workbench import plots

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

    @property
    def html(self) -> str:
        """An image that carries its own data, with the sentence as text for those who do not see it and below it."""
        data = base64.b64encode(self.svg).decode("ascii")
        alt = html.escape(f"{self.title}. {self.sentence}", quote=True)
        image = f'<img class="chart" alt="{alt}" src="data:image/svg+xml;base64,{data}" style="{WIDE}">'
        return _figure(image, self.sentence)


def in_page(svg: str, sentence: str) -> str:
    """A chart that is part of the page, so that its points can be clicked, as `Picture.html` shows an image."""
    return _figure(f'<div class="chart" style="{WIDE}">{svg}</div>', sentence)


def _figure(chart: str, sentence: str) -> str:
    caption = f"<figcaption>{html.escape(sentence)}</figcaption>"
    return f"{THEMES}<figure style='margin: 8px 0 0'>{chart}{caption}</figure>"


def draw(name: str, frame: pd.DataFrame, **controls: Any) -> Picture:
    """The chart of that name (`ValueError` lists the known ones)."""
    return _drawn(name, frame, INCHES, controls)


def draw_small(name: str, frame: pd.DataFrame) -> Picture:
    """The same, to stand beside another: of fewer inches, its letters as large."""
    return _drawn(name, frame, INCHES_SMALL, {})


def _drawn(name: str, frame: pd.DataFrame, inches: tuple[float, float], controls: dict[str, Any]) -> Picture:
    figure = Figure(figsize=inches)
    sentence = plots.draw(name, frame, figure, **controls)
    file = io.BytesIO()
    figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    return Picture(plots.get(name).title, sentence, file.getvalue())
