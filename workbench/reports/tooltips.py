"""Values that show where the pointer rests on a chart: invisible marks with a title, over the points of a figure.

A title is text that every browser shows by itself; no script is needed. The table below a chart has the same numbers.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from markupsafe import Markup, escape
from matplotlib.axes import Axes
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from workbench.analysis import formatting
from workbench.plots import style

POINTS_A_INCH = 72
RADIUS = 7
MOST = 60
"""Points of a line that have a title."""


def marks(figure: Figure) -> Markup:
    """SVG circles and boxes, to go before the end of the figure's own; call it after the figure was saved."""
    found = [mark for axes in figure.axes for mark in (*_points(figure, axes), *_bars(figure, axes))]
    return Markup('<g fill="transparent" stroke="none">{}</g>').format(Markup("").join(found)) if found else Markup("")


def _points(figure: Figure, axes: Axes) -> Iterator[Markup]:
    """Yield invisible SVG marks with a tooltip over the points of lines, at most `MOST` a line."""
    for line, label in _lines(axes):
        x, y = (np.asarray(values, dtype=np.float64) for values in line.get_data())
        every = max(-(-x.size // MOST), 1)
        for place in zip(x[::every], y[::every], strict=True):
            if np.isfinite(place).all():
                text = f"{label}: {_told(axes.xaxis, place[0])}, {_told(axes.yaxis, place[1])}"
                left, top = on_page(figure, *axes.transData.transform(place))
                yield _titled(f'<circle cx="{left:.1f}" cy="{top:.1f}" r="{RADIUS}">', text, "</circle>")


def _lines(axes: Axes) -> Iterator[tuple[Line2D, str]]:
    """Yield the lines that stand in the legend, with what they are called there."""
    of_errors = {}
    for each in axes.containers:
        if isinstance(each, ErrorbarContainer) and each.lines[0] is not None:
            of_errors[each.lines[0]] = str(each.get_label())
    for line in axes.get_lines():
        label = of_errors.get(line, str(line.get_label()))
        is_told = not label.startswith("_") or label.endswith(style.BESIDE)
        if is_told and line.get_transform() == axes.transData and np.size(line.get_xdata()):
            yield line, label.removeprefix("_")


def _bars(figure: Figure, axes: Axes) -> Iterator[Markup]:
    """Yield invisible SVG marks with a tooltip over bars."""
    names = [text.get_text() for text in axes.get_yticklabels()]
    for each in axes.containers:
        if not isinstance(each, BarContainer):
            continue
        label = str(each.get_label())
        label = "" if label.startswith("_container") else f", {label.removeprefix('_')}"
        for number, bar in enumerate(each.patches):
            box = bar.get_window_extent()
            left, top = on_page(figure, box.x0, box.y1)
            right, bottom = on_page(figure, box.x1, box.y0)
            if right - left < 1:
                continue
            at = round(bar.get_y() + bar.get_height() / 2)
            name = names[at] if 0 <= at < len(names) else names[number] if number < len(names) else ""
            shape = f'<rect x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{bottom - top:.1f}">'
            yield _titled(shape, f"{name}{label}: {_told(axes.xaxis, bar.get_width())}", "</rect>")


def on_page(figure: Figure, x: float, y: float) -> tuple[float, float]:
    """Place in the SVG, whose unit is a point, from the upper left, of a point in pixels from the lower left."""
    scale = POINTS_A_INCH / figure.dpi
    return x * scale, figure.get_figheight() * POINTS_A_INCH - y * scale


def _told(axis: Any, value: float) -> str:
    """Return a value as the axis says it."""
    formatter = axis.get_major_formatter()
    return formatter(value) if isinstance(formatter, FuncFormatter) else formatting.format_number(value)


def _titled(start: str, text: str, end: str) -> Markup:
    """Return an SVG element with an escaped title."""
    return Markup(f"{start}<title>{escape(' '.join(text.split()))}</title>{end}")
