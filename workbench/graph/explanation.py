"""Explanation of a graph: what each node computes, its formats, kernel and bytes, and what it makes dense."""

import itertools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, final

from workbench.graph.inference import Facts, Inference

if TYPE_CHECKING:
    from workbench.graph.symbol import Symbol

COLUMNS = ("node", "operator", "inputs", "result", "kernel", "bytes", "remark")
MOST_DRAWN = 80
"""Nodes up to which a notebook shows the picture, too."""
SIGN = {"exact": "", "estimated": "≈ ", "at most": "≤ "}


@final
@dataclass(frozen=True)
class Line:
    """One line of an explanation: a node."""

    name: str
    operator: str
    inputs: tuple[str, ...]
    """`format name` of each."""
    format: str
    result: str
    """Format, shape and dtype."""
    kernel: str
    bytes: str
    remark: str
    densifies: bool
    backward: bool
    """Whether the node was made by differentiation."""

    @property
    def cells(self) -> tuple[str, ...]:
        """Return the cells of the table as text, in the order of `COLUMNS`."""
        inputs = ", ".join(self.inputs)
        return cut(self.name), self.operator, inputs, self.result, self.kernel, self.bytes, self.remark


class Explanation:
    """Explanation of a graph: prints as a table, displays in notebooks as a picture with a table.

    `lines` has a `Line` for each node. Nodes that make their inputs dense are marked, with the formats that have no
    rule and the bytes of the dense copies.

    Parameters
    ----------
    inference : Inference
        Complete facts of all nodes.
    notes : mapping of str to str, optional
        Remarks by node name.
    made_by : mapping of str to str, optional
        For nodes that another node computes along the way: the name of that node.
    kinds : mapping of str to str, optional
        Descriptions to show instead of the operator, by node name.

    Examples
    --------
    >>> from workbench import graph
    >>> x = graph.variable("x", shape=(2, 3))
    >>> (x + x).explain().verdict
    'Nothing is made dense on the way.'
    """

    def __init__(
        self,
        inference: Inference,
        notes: Mapping[str, str] | None = None,
        made_by: Mapping[str, str] | None = None,
        kinds: Mapping[str, str] | None = None,
    ) -> None:
        """Make a line for each node and the edges between their names; see the class."""
        self.inference = inference
        facts = inference.facts
        self.lines = [_line(node, facts[node], [facts[e] for e in node.inputs], notes or {}) for node in facts]
        self.lines = [replace(line, operator=(kinds or {}).get(line.name, line.operator)) for line in self.lines]
        self.edges = [(facts[entry].name, facts[node].name) for node in facts for entry in node.inputs]
        self.edges += [(maker, name) for name, maker in (made_by or {}).items()]

    @property
    def densified(self) -> list[Line]:
        """Return the lines of the nodes that make their inputs dense."""
        return [line for line in self.lines if line.densifies]

    def text(self) -> str:
        """Return the table as plain text, a line for each node, and the verdict.

        Remarks of nodes that densify start with `!!`.
        """
        rows = [COLUMNS, *(line.cells for line in self.lines)]
        widths = [max(len(row[place]) for row in rows) for place in range(len(COLUMNS))]
        table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        table.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join(line.rstrip() for line in [*table, self.verdict])

    @property
    def verdict(self) -> str:
        """Return one sentence: which nodes make inputs dense, with the bytes, or that none does."""
        total = sum(facts.bytes_densified for facts in self.inference.densified)
        names = ", ".join(line.name for line in self.densified)
        return f"Made dense on the way: {total:,} bytes, by {names}." if names else "Nothing is made dense on the way."

    def __str__(self) -> str:
        """Return the table as plain text."""
        return self.text()

    __repr__ = __str__

    def svg(self) -> str:
        """Return the graph as an SVG picture, inputs above their users."""
        return draw(self.lines, self.edges)

    def html(self) -> str:
        """Return the explanation as HTML: a row for each node, and the verdict below."""
        head = "".join(f"<th style='text-align:left'>{name}</th>" for name in COLUMNS)
        body = "".join(_html_row(line) for line in self.lines)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{escape(self.verdict)}</p>"

    def page(self) -> str:
        """Return the picture, unless the graph is too large, and the table as HTML."""
        picture = self.svg() if len(self.lines) <= MOST_DRAWN else ""
        return f"<div style='overflow-x:auto'>{picture}{self.html()}</div>"

    _repr_html_ = page


def _line(node: "Symbol", facts: Facts, inputs: list[Facts], notes: Mapping[str, str]) -> Line:
    """Return the table row that explains a node: operator, inputs, format, result, kernel, bytes and a remark.

    `facts` are what was inferred of the node, `inputs` those of its inputs, `notes` the remarks {node name: text}.
    """
    rule, known = facts.rule, facts.complete
    shape = "[" + ", ".join(map(str, known.shape)) + "]"
    remark = notes.get(facts.name, "")
    if facts.densifies:
        formats = ", ".join(entry.complete.format for entry in inputs)
        remark = f"!! densifies: no rule for {formats}; {facts.bytes_densified:,} bytes made dense. {remark}".rstrip()
    return Line(
        name=facts.name,
        operator=node.kind,
        inputs=tuple(f"{entry.format} {cut(entry.name)}" for entry in inputs),
        format=known.format,
        result=f"{facts.format} {shape} {facts.dtype}",
        kernel=rule.kernel if rule else "",
        bytes=f"{SIGN[facts.bytes_are]}{facts.bytes:,}",
        remark=remark,
        densifies=facts.densifies,
        backward="backward_of" in node.attributes,
    )


def _html_row(line: Line) -> str:
    """Return the HTML of one table row, "<tr>...</tr>"; names and texts are escaped."""
    style = " style='background:#fde7e9;color:#7a0010;font-weight:600'" if line.densifies else ""
    cells = [escape(cell) for cell in line.cells]
    room = ";min-width:14em" if line.remark else ""
    cells[0] = f"<span title='{escape(line.name)}'>{cells[0]}</span>"
    if line.densifies:
        cells[-1] = cells[-1].replace("!!", "⚠", 1)
    return (
        f"<tr{style}>"
        + "".join(f"<td style='text-align:left;white-space:nowrap'>{cell}</td>" for cell in cells[:-1])
        + f"<td style='text-align:left;white-space:normal{room}'>{cells[-1]}</td></tr>"
    )


# A graph as an SVG picture: boxes in layers, edges in the colour of the format of their value.

# Shortening of names.


def cut(name: str, longest: int = 28) -> str:
    """Return the name, its middle replaced by an ellipsis if it has more than `longest` characters."""
    if len(name) <= longest:
        return name
    return f"{name[: longest - longest // 3 - 1]}…{name[-(longest // 3) :]}"


# Layout of the boxes of a picture: layers from top to bottom, few crossings, no overlaps.
#
# The way of Sugiyama, Tagawa and Toda, 1981: an edge that passes layers gets a place of its own in each of them, the
# order in a layer follows the means of the neighbours, and positions are the closest to these means that keep the order
# and the distances.


SWEEPS = 12
Place = Hashable
"""A box by its name, or (name, layer) where a line from that box passes a layer."""


@dataclass(frozen=True)
class Layout:
    """Layers and centre coordinates of boxes and of edges passing a layer, and the route of each edge."""

    layers: Mapping[Place, int]
    middles: Mapping[Place, float]
    routes: Mapping[tuple[str, str], Sequence[Place]]
    width: float


def arrange(names: Sequence[str], edges: Sequence[tuple[str, str]], box: float, passage: float, gap: float) -> Layout:
    """Return the layout of boxes of width `box`, passing edges of width `passage` and gaps `gap`, in pixels.

    `names` are in graph order, inputs first; `edges` are (source, target).
    """
    layers: dict[Place, int] = {name: layer for name, layer in _layers(names, edges).items()}  # noqa: C416 - of any key
    routes = {}
    for source, target in edges:
        passed = [(source, layer) for layer in range(layers[source] + 1, layers[target])]
        layers.update({place: place[1] for place in passed})
        routes[source, target] = [source, *passed, target]
    rows: list[list[Place]] = [[] for _ in range(max(layers.values(), default=0) + 1)]
    for place, layer in layers.items():
        rows[layer].append(place)
    above, below = _neighbours(routes)
    _order(rows, above, below)
    sizes = {place: passage if isinstance(place, tuple) else box for place in layers}
    middles = _positions(rows, sizes, above, below, gap)
    left = min((middles[place] - sizes[place] / 2 for place in layers), default=0)
    width = max((middles[place] + sizes[place] / 2 for place in layers), default=0) - left
    return Layout(layers, {place: middle - left for place, middle in middles.items()}, routes, width)


def _layers(names: Sequence[str], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Return the layer of each node, 0 at the top: users below their inputs; others just above their first user."""
    inputs: dict[str, list[str]] = {name: [] for name in names}
    for source, target in edges:
        inputs[target].append(source)
    layers: dict[str, int] = {}
    for name in names:
        layers[name] = 1 + max((layers[source] for source in inputs[name]), default=-1)
    for name in names:
        users = [layers[target] for source, target in edges if source == name]
        if not inputs[name] and users:
            layers[name] = min(users) - 1
    return layers


def _neighbours(routes: Mapping[tuple[str, str], Sequence[Place]]) -> tuple[dict, dict]:
    """Return (above, below): for each position the set of its neighbours in the adjacent layer."""
    above: dict[Place, set[Place]] = {}
    below: dict[Place, set[Place]] = {}
    for route in routes.values():
        for upper, lower in itertools.pairwise(route):
            above.setdefault(lower, set()).add(upper)
            below.setdefault(upper, set()).add(lower)
    return above, below


def _order(rows: list[list[Place]], above: Mapping, below: Mapping) -> None:
    """Sort every layer by the mean position of its neighbours, downwards and upwards in turn; `rows` in place."""
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        order = range(1, len(rows)) if down else range(len(rows) - 2, -1, -1)
        for layer in order:
            fixed = {place: at for at, place in enumerate(rows[layer - 1 if down else layer + 1])}
            near = above if down else below
            means = {
                place: _mean([fixed[n] for n in near.get(place, ()) if n in fixed], at)
                for at, place in enumerate(rows[layer])
            }
            rows[layer].sort(key=means.__getitem__)


def _mean(values: Sequence[float], otherwise: float) -> float:
    """Return the arithmetic mean of the values; `otherwise` if there are none."""
    return sum(values) / len(values) if values else otherwise


def _positions(rows, sizes: Mapping[Place, float], above: Mapping, below: Mapping, gap: float) -> dict[Place, float]:
    """Return the centre x coordinate of every position, near the mean of its neighbours, without overlaps.

    `rows` are the layers, `sizes` the widths, `above` and `below` the neighbours, `gap` the least distance, all in
    pixels.
    """
    middles: dict[Place, float] = {}
    for row in rows:
        middles |= dict(zip(row, _apart([0.0] * len(row), [sizes[place] for place in row], gap), strict=True))
    for sweep in range(SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            near = [(*above.get(place, ()), *below.get(place, ())) for place in row]
            targets = [
                _mean([middles[n] for n in around], middles[place]) for place, around in zip(row, near, strict=True)
            ]
            middles |= dict(zip(row, _apart(targets, [sizes[place] for place in row], gap), strict=True))
    return middles


def _apart(targets: Sequence[float], sizes: Sequence[float], gap: float) -> list[float]:
    """Return centres closest to `targets` in least squares, in this order, without overlap (pool adjacent violators).

    `sizes` are the widths, `gap` the least distance between them.
    """
    offsets = [0.0]
    for left, right in itertools.pairwise(sizes):
        offsets.append(offsets[-1] + (left + right) / 2 + gap)
    pools: list[tuple[float, int]] = []
    for middle, offset in zip(targets, offsets, strict=False):
        total, count = middle - offset, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            before = pools.pop()
            total, count = total + before[0], count + before[1]
        pools.append((total, count))
    starts = [total / count for total, count in pools for _ in range(count)]
    return [start + offset for start, offset in zip(starts, offsets, strict=False)]


COLOURS = {"dense": "#222222", "csr": "#0072B2", "csc": "#009E73", "coo": "#D55E00", "row_sparse": "#CC79A7"}
"""The colours of the charts: Okabe and Ito's."""
TINTS = {"dense": "#f2f2f2", "csr": "#e3f0f8", "csc": "#e0f4ee", "coo": "#fcebdf", "row_sparse": "#faeef4"}
INK, PLAIN = "#14171c", "#5b6270"
ALARM = "#c00020"
BOX, HEIGHT, PASSAGE, GAP, BETWEEN, MARGIN = 270, 96, 14, 26, 62, 20
FONT = "font-family='DejaVu Sans, Verdana, Arial, sans-serif'"
LEGEND = 34


def draw(lines: Sequence["Line"], edges: Sequence[tuple[str, str]]) -> str:
    """Return the graph as SVG text. Names are escaped and shortened; the full name shows on hover."""
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
        *(_edge(layout, route, by_name) for route in _edge_positions(edges)),
        *(_box(line, layout) for line in lines),
        "</svg>",
    ]
    return "\n".join(parts)


def _edge_positions(edges: Sequence[tuple[str, str]]) -> list[tuple[str, str, float]]:
    """Return (source, target, fraction of the target's width at which the edge arrives, in (0, 1)) of each edge."""
    count: dict[str, int] = {}
    total = {target: sum(other == target for _, other in edges) for _, target in edges}
    arrivals = []
    for source, target in edges:
        count[target] = count.get(target, 0) + 1
        arrivals.append((source, target, count[target] / (total[target] + 1)))
    return arrivals


def _top(layout: Layout, place) -> float:
    """Return the y coordinate, in pixels, of the top of the layer that `place`, a key of `layout.layers`, is in."""
    return MARGIN + LEGEND + layout.layers[place] * (HEIGHT + BETWEEN)


def _edge(layout: Layout, edge: tuple[str, str, float], lines: Mapping[str, "Line"]) -> str:
    """Return the SVG of an edge (source, target, fraction of the target's width), coloured by the source's format.

    Dashed if the target in `lines`, {name: line}, is of the backward pass.
    """
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
    """Return the SVG, "<g>...</g>", of a node at its place in `layout`: a box with four lines of text and a tooltip."""
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
    """Return the last line of text of a box: the remark, or the bytes such as "1,280 bytes"."""
    return line.remark or f"{line.bytes} bytes"


def _fit(text: str, size: int, weight: str) -> str:
    """Return the text shortened to the width of a box, for its font size in pixels and font weight such as "700"."""
    letters = int((BOX - 24) / (size * (0.6 if int(weight) > 500 else 0.55)))
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def _legend(lines: Sequence["Line"]) -> tuple[str, float]:
    """Return (SVG of the legend with the formats that occur, its width in pixels)."""
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
