"""HTML of results, advice and profiles for notebooks, in light and dark themes, with their charts."""

from collections.abc import Iterable, Sequence
from typing import Any

TEXT, LINE = "var(--jp-ui-font-color1, inherit)", "var(--jp-border-color2, #8884)"
SHEET = f"""<style>
.workbench-card {{ color: {TEXT}; max-width: 1000px; line-height: 1.45; }}
.workbench-card table {{ border-collapse: collapse; color: inherit; }}
.workbench-card th, .workbench-card td {{ text-align: left !important; padding: 3px 14px 3px 0; vertical-align: top;
  background: transparent !important; border-bottom: 1px solid {LINE}; }}
.workbench-card .scroll {{ overflow-x: auto; }}
.workbench-card .verdict {{ font-size: 115%; margin: 4px 0; }}
.workbench-card code {{ overflow-wrap: anywhere; }}
</style>"""
"""Colours follow the theme of the notebook: none is set but for lines."""


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """Return an HTML table of texts.

    >>> "<td" in table(("a",), [("1",)])
    True
    """
    from workbench.panels import pages

    return pages.table(columns, rows, caption)


def page(body: str, frame: Any = None, chart: str = "") -> str:
    """Return a card with a body and, if there are records to draw, a chart below it."""
    picture = ""
    if chart and frame is not None and len(frame):
        from workbench.panels import picture as pictures

        picture = pictures.draw(chart, frame).html
    return f'{SHEET}<div class="workbench-card">{body}{picture}</div>'


def plot(chart: str, frame: Any, figure: Any = None, **controls: Any) -> Any:
    """Draw a chart on a figure, by default a new one, and return its first Axes."""
    from workbench import plots

    if figure is None:
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=(9.0, 5.4))
    plots.draw(chart, frame, figure, **controls)
    return figure.axes[0]
