"""A chart as a picture with its sentence, for a widget or a page. Drawn off screen; nothing global is touched."""

import base64
import html
import io
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from workbench import plots

INCHES = (9.0, 5.4)


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
        image = (
            f'<img class="chart" alt="{alt}" src="data:image/svg+xml;base64,{data}" style="width:100%;max-width:900px">'
        )
        return f"<figure style='margin: 8px 0 0'>{image}<figcaption>{html.escape(self.sentence)}</figcaption></figure>"


def draw(name: str, frame: pd.DataFrame, **controls: Any) -> Picture:
    """The chart of that name (`ValueError` lists the known ones)."""
    figure = Figure(figsize=INCHES)
    sentence = plots.draw(name, frame, figure, **controls)
    file = io.BytesIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    return Picture(plots.get(name).title, sentence, file.getvalue())
