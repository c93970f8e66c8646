"""A graph as an SVG picture: boxes in layers, lines in the colour of the format that flows along them."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from workbench.graph.layout import Layout, arrange
from workbench.graph.words import cut

if TYPE_CHECKING:
    from workbench.graph.explanation import Line

COLOURS = {"dense": "#222222", "csr": "#0072B2", "csc": "#009E73", "coo": "#D55E00", "row_sparse": "#CC79A7"}
"""The colours of the charts: Okabe and Ito's."""
TINTS = {"dense": "#f2f2f2", "csr": "#e3f0f8", "csc": "#e0f4ee", "coo": "#fcebdf", "row_sparse": "#faeef4"}
INK, PLAIN = "#14171c", "#5b6270"
ALARM = "#c00020"
BOX, HEIGHT, PASSAGE, GAP, BETWEEN, MARGIN = 270, 96, 14, 26, 62, 20
FONT = "font-family='DejaVu Sans, Verdana, Arial, sans-serif'"
LEGEND = 34


def draw(lines: Sequence["Line"], edges: Sequence[tuple[str, str]]) -> str:
    """The SVG text. Names are escaped, and cut where they are long; the full one shows on hover."""
    layout = arrange([line.name for line in lines], edges, BOX, PASSAGE, GAP)
    height = (max(layout.layers.values(), default=0) + 1) * (HEIGHT + BETWEEN) - BETWEEN + 2 * MARGIN + LEGEND
    legend, legend_width = _legend(lines)
    width = max(layout.width, legend_width) + 2 * MARGIN
    by_name = {line.name: line for line in lines}
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width:.0f}' height='{height:.0f}' "
        f"viewBox='0 0 {width:.0f} {height:.0f}' {FONT} role='img' aria-label='graph of operators'>",
        "<rect width='100%' height='100%' fill='#ffffff'/>",
        legend,
        *(_edge(layout, route, by_name) for route in _numbered(edges)),
        *(_box(line, layout) for line in lines),
        "</svg>",
    ]
    return "\n".join(parts)


def _numbered(edges: Sequence[tuple[str, str]]) -> list[tuple[str, str, float]]:
    """Edges with the part of the target's width at which they arrive."""
    count: dict[str, int] = {}
    total = {target: sum(other == target for _, other in edges) for _, target in edges}
    arrivals = []
    for source, target in edges:
        count[target] = count.get(target, 0) + 1
        arrivals.append((source, target, count[target] / (total[target] + 1)))
    return arrivals


def _top(layout: Layout, place) -> float:
    return MARGIN + LEGEND + layout.layers[place] * (HEIGHT + BETWEEN)


def _edge(layout: Layout, edge: tuple[str, str, float], lines: Mapping[str, "Line"]) -> str:
    source, target, part = edge
    route = layout.routes[source, target]
    colour = COLOURS.get(lines[source].format, PLAIN)
    x, y = layout.middles[source] + MARGIN, _top(layout, source) + HEIGHT
    path = [f"M{x:.1f},{y:.1f}"]
    for place in route[1:]:
        last = place == target
        to_x = layout.middles[place] + MARGIN + (BOX * (part - 0.5) if last else 0)
        to_y = _top(layout, place) - (7 if last else 0)
        middle = (y + to_y) / 2
        path.append(f"C{x:.1f},{middle:.1f} {to_x:.1f},{middle:.1f} {to_x:.1f},{to_y:.1f}")
        x, y = to_x, to_y
        if not last:
            y += HEIGHT
            path.append(f"V{y:.1f}")
    dash = " stroke-dasharray='7 4'" if lines[target].backward else ""
    tip = f"<path d='M{x - 5:.1f},{y:.1f} h10 l-5,7 z' fill='{colour}'/>"
    return f"<path d='{' '.join(path)}' fill='none' stroke='{colour}' stroke-width='2.4'{dash}/>{tip}"


def _box(line: "Line", layout: Layout) -> str:
    x, y = layout.middles[line.name] + MARGIN - BOX / 2, _top(layout, line.name)
    edge = ALARM if line.densifies else COLOURS.get(line.format, PLAIN)
    dash = " stroke-dasharray='7 4'" if line.backward else ""
    what = line.operator if not line.kernel else f"{line.operator} · {line.kernel}"
    texts = [
        (22, 16, "700", INK, cut(line.name, 23)),
        (43, 14, "400", INK, what),
        (64, 14, "600", INK, line.result),
        (85, 14, *(("700", ALARM, "⚠ makes its inputs dense") if line.densifies else ("400", INK, _last(line)))),
    ]
    shown = "".join(
        f"<text x='{x + 12:.1f}' y='{y + down:.1f}' font-size='{size}' font-weight='{weight}' fill='{colour}'>"
        f"{escape(_fit(text, size, weight))}</text>"
        for down, size, weight, colour, text in texts
    )
    title = escape(f"{line.name}: {line.operator}({', '.join(line.inputs)}) -> {line.result}. {line.remark}")
    thick = 4 if line.densifies else 2
    return (
        f"<g><title>{title}</title><rect x='{x:.1f}' y='{y:.1f}' width='{BOX}' height='{HEIGHT}' rx='8' "
        f"fill='{'#fde7e9' if line.densifies else TINTS.get(line.format, '#ffffff')}' stroke='{edge}' "
        f"stroke-width='{thick}'{dash}/>{shown}</g>"
    )


def _last(line: "Line") -> str:
    return line.remark or f"{line.bytes} bytes"


def _fit(text: str, size: int, weight: str) -> str:
    """Cut the text to what fits in the width of the box."""
    letters = int((BOX - 24) / (size * (0.6 if int(weight) > 500 else 0.55)))
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def _legend(lines: Sequence["Line"]) -> tuple[str, float]:
    """(SVG, width) of the formats that occur."""
    formats = [format for format in COLOURS if any(line.format == format for line in lines)]
    entries = [(COLOURS[format], format) for format in formats]
    entries += [(ALARM, "makes dense")] if any(line.densifies for line in lines) else []
    parts, x = [], float(MARGIN)
    for colour, word in entries:
        parts.append(f"<rect x='{x:.0f}' y='{MARGIN - 6}' width='16' height='16' rx='3' fill='{colour}'/>")
        parts.append(f"<text x='{x + 22:.0f}' y='{MARGIN + 7}' font-size='14' fill='{INK}'>{word}</text>")
        x += 40 + 9 * len(word)
    if any(line.backward for line in lines):
        word = "dashed: made by differentiation"
        parts.append(f"<text x='{x:.0f}' y='{MARGIN + 7}' font-size='14' fill='{INK}'>{word}</text>")
        x += 9 * len(word)
    return "".join(parts), x
