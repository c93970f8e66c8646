"""Charts as SVG in pages and files: text that can be read aloud, tooltips over the marks, equal bytes for equal charts.

A tooltip is an invisible mark with a title, which every browser shows by itself; no script is needed. The table below a
chart has the same numbers.
"""

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import matplotlib
import numpy as np
from markupsafe import Markup, escape
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workbench import atomic_files
from workbench.plots import marks

POINTS_A_INCH = 72
RADIUS = 7
Place = TypeVar("Place", float, np.ndarray)
"""A coordinate, or those of several points."""


def tooltips(figure: Figure) -> Markup:
    """Return an SVG group of invisible shapes with tooltips over the figure's points and bars; "" without any.

    Call it after the figure was saved, which fixes its layout. It goes before the closing tag of the SVG.
    """
    found = [shape for axes in figure.axes for shapes in (_points, _bars) for shape in shapes(figure, axes)]
    return Markup('<g fill="transparent" stroke="none">{}</g>').format(Markup("").join(found)) if found else Markup("")


def _points(figure: Figure, axes: Axes) -> Iterator[Markup]:
    """Yield invisible SVG circles with tooltips over points of lines, thinned so that they fit side by side."""
    most = max(int(figure.get_figwidth() * POINTS_A_INCH / (2 * RADIUS)), 1)
    for line, name in marks.lines(axes):
        points = np.array(line.get_data(), dtype=np.float64).T
        texts = np.array(marks.texts_of_line(axes, line, name), dtype=object)
        kept = np.flatnonzero(np.isfinite(points).all(1))[:: max(-(-len(points) // most), 1)]
        left, top = on_page(figure, *axes.transData.transform(points[kept]).T)
        for text, across, down in zip(texts[kept], left, top, strict=True):
            yield _titled(f'<circle cx="{across:.1f}" cy="{down:.1f}" r="{RADIUS}">', text, "</circle>")


def _bars(figure: Figure, axes: Axes) -> Iterator[Markup]:
    """Yield an invisible SVG rectangle with a tooltip over each bar that is wider than a pixel."""
    for bar, _, text in marks.bars(axes):
        box = bar.get_window_extent()
        (left, right), (top, bottom) = on_page(figure, box.intervalx, box.intervaly[::-1])
        if right - left >= 1:
            shape = f'<rect x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{bottom - top:.1f}">'
            yield _titled(shape, text, "</rect>")


def on_page(figure: Figure, x: Place, y: Place) -> tuple[Place, Place]:
    """Return (x, y) in points from the upper left of the SVG, of a point in pixels from the figure's lower left.

    `x` and `y` are numbers, or arrays of several points.
    """
    scale = POINTS_A_INCH / figure.dpi
    return x * scale, figure.get_figheight() * POINTS_A_INCH - y * scale


def _titled(start: str, text: str, end: str) -> Markup:
    """Return an SVG element, from its tags `start` and `end`, with an escaped title (tooltip)."""
    return Markup(f"{start}<title>{escape(' '.join(text.split()))}</title>{end}")


TEXT: dict[Any, Any] = {"svg.fonttype": "none", "font.sans-serif": ["DejaVu Sans", "Verdana"]}
"""Text in an SVG is text: it can be read aloud, searched and copied, and a chart has a quarter of the size. Where the
first font is missing the second one has the same width."""


def save(figure: Figure, path: Path) -> None:
    """Write the figure to a file as SVG or PNG, by the suffix; equal pictures give equal bytes."""
    if path.suffix != ".svg":
        with atomic_files.replacing(path) as new:
            figure.savefig(new, dpi=150)
        return
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": path.stem, **TEXT}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    atomic_files.write(path, _with_short_numbers(buffer.getvalue()))


def _with_short_numbers(svg: str, decimals: int = 2) -> str:
    """Return an SVG whose coordinates have at most so many decimals, 1 or 2.

    >>> _with_short_numbers('<path d="M 0.123456 12.5 "/>')
    '<path d="M 0.12 12.5 "/>'
    """
    places = r'((?<= d=")[^"]*|(?<= x=")[^"]*|(?<= y=")[^"]*|(?<=translate\()[^)]*)'
    texts = re.split(places, svg)
    pieces = re.split(rf"(-?\d+\.\d{{{decimals + 1},}})", "\0".join(texts[1::2]))
    pieces[1::2] = [f"{float(number):.{decimals}f}".rstrip("0").rstrip(".") for number in pieces[1::2]]
    texts[1::2] = "".join(pieces).split("\0")
    return "".join(texts)


def is_drawn(figure: Figure) -> bool:
    """Return whether the figure has visible axes, rather than only a message."""
    return any(axes.axison for axes in figure.axes)


def _svg_of(figure: Figure, place: str) -> str:
    """Return the figure as a file of SVG, whose ids `place` makes its own."""
    buffer = io.StringIO()
    unsigned = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    engine = figure.get_layout_engine()
    with matplotlib.rc_context({"svg.hashsalt": place, **TEXT}):
        if engine is not None:
            engine.execute(figure)
        figure.set_layout_engine(None)  # with an engine Matplotlib draws each figure twice, the first time for it
        try:
            figure.savefig(buffer, format="svg", transparent=True, metadata=unsigned)
        finally:
            figure.set_layout_engine(engine)
    return buffer.getvalue()


FAMILY = "font-family: 'DejaVu Sans', 'Verdana', sans-serif"
"""Style of each text that Matplotlib writes; an inline picture has it once."""


def _shortened(svg: str) -> str:
    """Return an SVG with one decimal, no line ends, no rotations by 0 and no font in each text: half of its size.

    >>> _shortened('''<path d="M 0.123456 12.5 \\nL 2 3"/>\\n <text transform="rotate(-0 1 2)">a</text>''')
    '<path d="M 0.1 12.5 L 2 3"/><text>a</text>'
    """
    text = re.sub(r' transform="rotate\(-0 [^"]*\)"', "", _with_short_numbers(svg, 1))
    return re.sub(r">\s+<", "><", re.sub(r"(?<=[\d.])\s+(?=[A-Za-z])", " ", text)).replace(f"; {FAMILY}", "")


def inline(figure: Figure, place: str, heading: str, sentence: str, has_tooltips: bool = True) -> Markup:
    """Return the figure as an <svg> element for a page with several: ids prefixed by `place`, tooltips added.

    `heading` and `sentence` become its title and description for screen readers. It has tooltips unless an interactive
    chart stands in its place.
    """
    text = _svg_of(figure, place)
    text = _shortened(re.sub(r"<!--.*?-->", "", text[text.index("<svg") :], flags=re.DOTALL))
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', text))
    text = re.sub(r' id="([^"]*)"', lambda found: f' id="{place}-{found[1]}"' if found[1] in used else "", text)
    text = re.sub(r'(href="#|url\(#)', rf"\g<1>{place}-", text)
    start, rest = text[: text.rindex("</svg>")].split(">", 1)
    named = f' class="chart" style="{FAMILY}" role="img" aria-labelledby="{place}-title {place}-desc"'
    described = f'<title id="{place}-title">{escape(heading)}</title><desc id="{place}-desc">{escape(sentence)}</desc>'
    shapes = tooltips(figure) if has_tooltips else ""
    return Markup(f"{start}{named}>{described}{rest}{shapes}</svg>")
