"""Interactive charts: the marks of a drawn Matplotlib figure as a figure of Plotly, in the JSON that its script reads.

No chart is written for it: what is drawn is read back. Pointing at a mark shows its value and interval, a click on a
name hides it, and buttons switch between logarithmic and linear axes. Plotly itself is only needed for its script.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Annotation, Text

from workbench.analysis import formatting
from workbench.plots import marks, style
from workbench.plots.chart import is_message

MIME = "application/vnd.plotly.v1+json"
"""Type of the JSON, by which notebooks find what draws it."""
UNITS: dict[Any, dict[str, str]] = {
    formatting.format_seconds: {"tickformat": "~s", "ticksuffix": "s"},
    formatting.format_bytes: {"tickformat": "~s", "ticksuffix": "B"},
    formatting.format_density: {"tickformat": ".3~%"},
}
"""Ticks of Plotly by the function that writes those of Matplotlib; others have plain numbers."""
DASHES = {"-": "solid", "--": "dash", ":": "dot", "-.": "dashdot"}
SYMBOLS = {"o": "circle", "s": "square", "D": "diamond", "x": "x-thin", "v": "triangle-down", "^": "triangle-up"}
WIDTH_OF_NAMES, CHARACTERS = 30, 95
"""Characters of a line of the names of bars, and of the subtitle."""
HEIGHT, LINE_OF_LIST = 460, 20
"""Height of a chart in pixels, and of a line of its list of names: a chart is higher if the list needs it."""
MOST_TICKS = 8
"""Ticks of a horizontal axis, next to which there is a list of names."""


def describe(figure: Figure) -> dict[str, Any] | None:
    """Return {"data", "layout", "config"} of a chart that `plots.draw` drew, as Plotly's JSON has it.

    None for a message, and for pictures of several plots. Of the texts above it has the subtitle; the page around the
    chart says what it shows.
    """
    if len(figure.axes) != 1 or is_message(figure):
        return None
    style.lay_out(figure)
    (axes,) = figure.axes
    data = list(_traces(axes))
    below = " ".join(text.get_text() for text in axes.texts if text.get_gid() == style.SUBTITLE).replace("\n", " ")
    lines = style.wrapped(below, CHARACTERS).split("\n")
    top, bottom, listed = 52 + 14 * len(lines), 50, sum(trace["showlegend"] for trace in data)
    room = top + bottom + LINE_OF_LIST * (listed + 1)
    layout: dict[str, Any] = {
        "title": {"text": "<br>".join(lines), "font": {"size": 11, "color": "#555555"}, "x": 0, "xanchor": "left",
                  "y": 1, "yanchor": "top", "pad": {"t": 18, "l": 4}},
        "template": "none", "height": max(HEIGHT, room), "autosize": True, "hovermode": "closest", "barmode": "overlay",
        "margin": {"l": 60, "r": 10, "t": top, "b": bottom}, "font": {"size": 13, "color": "#222222"},
        "paper_bgcolor": "#ffffff", "plot_bgcolor": "rgba(0,0,0,0)",
        "hoverlabel": {"bgcolor": "#ffffff", "bordercolor": "#888888", "font": {"color": "#222222"}},
        "legend": {"itemclick": "toggle", "itemdoubleclick": "toggleothers", "bgcolor": "rgba(0,0,0,0)",
                   "tracegroupgap": 0, "font": {"size": 12}},
        "xaxis": _axis(axes, axes.xaxis), "yaxis": _axis(axes, axes.yaxis),
        "showlegend": listed > 1, **_scale_buttons(axes),
    }  # fmt: skip
    return {"data": data, "layout": layout, "config": {"displaylogo": False}}


def _scale_buttons(axes: Axes) -> dict[str, Any]:
    """Return the buttons that make logarithmic axes linear and back; {} if there are no such axes.

    On a linear scale Plotly chooses the ticks.
    """
    names = [f"{axis.axis_name}axis" for axis in (axes.xaxis, axes.yaxis) if axis.get_scale() == "log"]
    if not names:
        return {}
    kinds = {"logarithmic": {"type": "log", "tickmode": "array"}, "linear": {"type": "linear", "tickmode": "auto"}}
    buttons = [
        {"label": label, "method": "relayout", "args": [{f"{name}.{what}": value for name in names
                                                        for what, value in (kind | {"autorange": True}).items()}]}
        for label, kind in kinds.items()
    ]  # fmt: skip
    return {"updatemenus": [{
        "type": "buttons", "direction": "right", "buttons": buttons, "x": 0, "xanchor": "left", "y": 1,
        "yanchor": "bottom", "pad": {"b": 6}, "bgcolor": "#ffffff", "bordercolor": "#bbbbbb",
        "font": {"size": 12, "color": "#222222"}}]}  # fmt: skip


def _axis(axes: Axes, axis: Axis) -> dict[str, Any]:
    """Return an axis of Plotly: scale, range, title, and Matplotlib's ticks."""
    is_log = axis.get_scale() == "log"
    shown: dict[str, Any] = {
        "type": "log" if is_log else "linear", "title": {"text": axis.get_label_text(), "standoff": 8},
        "gridcolor": "#dddddd", "zeroline": False, "automargin": True, "ticks": "outside", "tickcolor": "#999999",
    }  # fmt: skip
    low, high = axis.get_view_interval()
    shown |= {} if is_log else {"range": [float(low), float(high)]}
    if axis is axes.yaxis and (names := _names_of_bars(axes)):
        return shown | {"tickvals": list(names), "ticktext": list(names.values()), "showgrid": False}
    tell = marks.text_on_axis(axis)
    if is_log or tell not in UNITS:
        places = [float(at) for at in axis.get_majorticklocs() if min(low, high) <= at <= max(low, high)]
        places = places[:: -(-len(places) // MOST_TICKS)] if axis is axes.xaxis and places else places
        shown |= {"tickmode": "array", "tickvals": places, "ticktext": [tell(at) for at in places]}
    return shown | UNITS.get(tell, {})


def _names_of_bars(axes: Axes) -> dict[float, str]:
    """Return {place: name} of horizontal bars, long names in several lines; {} if there are none."""
    if not any(getattr(each, "orientation", "") == "horizontal" for each in axes.containers):
        return {}
    labels = zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)
    return {float(at): style.wrapped(label.get_text(), WIDTH_OF_NAMES).replace("\n", "<br>") for at, label in labels}


def _traces(axes: Axes) -> Iterator[dict[str, Any]]:
    """Yield the traces of all that the axes show: bands below lines, bars, lines and notes."""
    listed = set[str]()
    for band in axes.collections:
        if isinstance(band, PolyCollection):
            yield _area(axes, band.get_paths()[0].vertices, band, str(band.get_label()).removeprefix("_"))
    for patch in axes.patches:
        if isinstance(patch, Rectangle) and not any(patch in each for each in axes.containers):
            yield _area(axes, _in_data(axes, patch, patch.get_path().vertices, patch.get_patch_transform()), patch, "")
    for bar, name, text in marks.bars(axes):
        if not bar.get_width():
            continue
        yield _bar(bar, name, text) | {"showlegend": bool(name) and name not in listed}
        listed.add(name)
    named = dict(marks.lines(axes))
    for line in axes.get_lines():
        if np.size(line.get_xdata()):
            name = named.get(line, "")
            yield _line(axes, line, name) | {"showlegend": bool(name) and name not in listed}
            listed.add(name)
    elsewhere = (style.END, style.SHORT_NAME, style.SUBTITLE, style.NAMES_OF_BARS)
    notes = [note for note in axes.texts if note.get_gid() not in elsewhere]
    yield from (_note(axes, note) for note in notes if note.get_text())


def _in_data(axes: Axes, artist: Any, points: Any, inner: Any = None) -> np.ndarray:
    """Return points of an artist in the coordinates of the data, float64 `[points, 2]`."""
    transform = artist.get_transform() if inner is None else inner + artist.get_data_transform()
    return axes.transData.inverted().transform(transform.transform(np.asarray(points, np.float64)))


def _area(axes: Axes, points: Any, artist: Any, name: str) -> dict[str, Any]:
    """Return the trace of an area, filled in the colour of the artist."""
    colour = np.atleast_2d(to_rgba(artist.get_facecolor()[0] if name else artist.get_facecolor()))[0]
    x, y = np.asarray(points, np.float64).T
    fill = f"rgba({','.join(str(round(255 * part)) for part in colour[:3])},{colour[3]:.2g})"
    return {"type": "scatter", "mode": "lines", "x": _finite(x), "y": _finite(y), "fill": "toself", "fillcolor": fill,
            "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False, "legendgroup": name}  # fmt: skip


def _bar(bar: Rectangle, name: str, text: str) -> dict[str, Any]:
    """Return the trace of one bar; horizontal unless it stands on the axis."""
    fill = to_rgba(bar.get_facecolor())
    edge = {"color": to_hex(bar.get_edgecolor()), "width": bar.get_linewidth()}
    middle = bar.get_y() + bar.get_height() / 2
    return {"type": "bar", "orientation": "h", "y": [float(middle)], "x": [float(bar.get_width())],
            "base": [float(bar.get_x())], "width": [float(bar.get_height())],
            "marker": {"color": to_hex(fill), "opacity": fill[3], "line": edge},
            "hovertext": [text], "hoverinfo": "text", "name": name, "legendgroup": name or text}  # fmt: skip


def _line(axes: Axes, line: Line2D, name: str) -> dict[str, Any]:
    """Return the trace of a line, or of markers; the best candidates are bold in the list of names too."""
    points = _in_data(axes, line, np.column_stack(line.get_data()))
    texts = list(marks.texts_of_line(axes, line, name)) if name else []
    is_line, symbol = line.get_linestyle() not in ("None", "none", ""), SYMBOLS.get(str(line.get_marker()))
    colour = to_hex(line.get_color())
    face = line.get_markerfacecolor()
    is_hollow = isinstance(face, str) and face in ("white", "none")
    edge = {"color": to_hex(line.get_markeredgecolor()), "width": 1.5 if is_hollow or symbol == "x-thin" else 0}
    fill = "rgba(255,255,255,0)" if face == "none" else "#ffffff" if is_hollow else colour
    marker = {"symbol": symbol or "circle", "size": 1.6 * line.get_markersize(), "color": fill, "line": edge}
    is_best = line.get_linewidth() == style.BOLD
    return {
        "type": "scatter", "mode": "+".join(["lines"] * is_line + ["markers"] * bool(symbol)) or "lines",
        "x": _finite(points[:, 0]), "y": _finite(points[:, 1]), "opacity": line.get_alpha() or 1,
        "line": {"color": colour, "width": line.get_linewidth(), "dash": DASHES.get(str(line.get_linestyle()), "dash")},
        "marker": marker, "hovertext": texts, "hoverinfo": "text" if texts else "skip",
        "name": f"<b>{name}</b>" if is_best else name, "legendgroup": name,
    }  # fmt: skip


def _finite(values: np.ndarray) -> list[float | None]:
    """Return the values as JSON has them, to six digits; None for those that are not finite."""
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in values]


def _note(axes: Axes, text: Text) -> dict[str, Any]:
    """Return the trace of a text, at the side of its place that Matplotlib aligned it to."""
    box = Text.get_window_extent(text) if isinstance(text, Annotation) else text.get_window_extent()
    sides = {"left": (box.x0, "right"), "right": (box.x1, "left")}
    x, side = sides.get(text.get_horizontalalignment(), ((box.x0 + box.x1) / 2, "center"))
    ((at_x, at_y),) = axes.transData.inverted().transform([(x, (box.y0 + box.y1) / 2)])
    weight = ("<b>", "</b>") if text.get_fontweight() == "bold" else ("", "")
    return {"type": "scatter", "mode": "text", "x": [float(at_x)], "y": [float(at_y)],
            "text": [text.get_text().replace("\n", "<br>").join(weight)], "textposition": f"middle {side}",
            "textfont": {"color": to_hex(text.get_color()), "size": 12}, "hoverinfo": "skip", "showlegend": False,
            "cliponaxis": False}  # fmt: skip
