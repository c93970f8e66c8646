"""Explanation of a graph: what each node computes, its formats, kernel and bytes, and what it makes dense."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
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
    """Explanation of a graph: prints as a table; notebooks show it with a picture if Graphviz is installed.

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

    def dot(self) -> str:
        """Return the graph as text for Graphviz, inputs above their users."""
        return draw(self.lines, self.edges)

    def html(self) -> str:
        """Return the explanation as HTML: a row for each node, and the verdict below."""
        head = "".join(f"<th style='text-align:left'>{name}</th>" for name in COLUMNS)
        body = "".join(_html_row(line) for line in self.lines)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{escape(self.verdict)}</p>"

    def page(self) -> str:
        """Return the picture, if Graphviz is installed and the graph is not too large, and the table as HTML."""
        picture = _render(self.dot()) if len(self.lines) <= MOST_DRAWN else ""
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


# Shortening of names.


def cut(name: str, longest: int = 28) -> str:
    """Return the name, its middle replaced by an ellipsis if it has more than `longest` characters."""
    if len(name) <= longest:
        return name
    return f"{name[: longest - longest // 3 - 1]}…{name[-(longest // 3) :]}"


# A graph in the language of Graphviz: boxes, edges in the colour of the format of their value.

COLOURS = {"dense": "#222222", "csr": "#0072B2", "csc": "#009E73", "coo": "#D55E00", "row_sparse": "#CC79A7"}
"""The colours of the charts: Okabe and Ito's."""
PLAIN, ALARM = "#5b6270", "#c00020"
SECONDS_DRAW = 20


def draw(lines: Sequence[Line], edges: Sequence[tuple[str, str]]) -> str:
    """Return the graph as text for Graphviz; what belongs to the backward pass is dashed."""
    places = {line.name: f"n{place}" for place, line in enumerate(lines)}
    by_name = {line.name: line for line in lines}
    look = 'node [shape=box style=rounded fontname="sans-serif" fontsize=11] edge [penwidth=1.6]'
    nodes = [_box(line, places[line.name]) for line in lines]
    for source, target in edges:
        colour = COLOURS.get(by_name[source].format, PLAIN)
        dash = " style=dashed" if by_name[target].backward else ""
        nodes.append(f'{places[source]} -> {places[target]} [color="{colour}"{dash}]')
    return "\n".join(["digraph {", look, *nodes, "}"])


def _box(line: Line, place: str) -> str:
    """Return the statement of Graphviz for a node called `place`: four lines of text, and a tooltip."""
    last = "⚠ makes its inputs dense" if line.densifies else cut(line.remark or f"{line.bytes} bytes", 44)
    what = line.operator if not line.kernel else f"{line.operator} · {line.kernel}"
    label = "\\n".join(map(_quote, (cut(line.name), cut(what, 44), line.result, last)))
    title = _quote(f"{line.name}: {line.operator}({', '.join(line.inputs)}) -> {line.result}. {line.remark}")
    colour = ALARM if line.densifies else COLOURS.get(line.format, PLAIN)
    dash = ' style="rounded,dashed"' if line.backward else ""
    return f'{place} [label="{label}" tooltip="{title}" color="{colour}"{dash}]'


def _quote(text: str) -> str:
    """Return text for a string of Graphviz, which takes entities of HTML in it: all but letters and digits escaped."""
    return escape(text).replace("\\", "&#92;")


def _render(dot: str) -> str:
    """Return the SVG that Graphviz makes of its text; "" if it is not installed or fails."""
    if not (program := shutil.which("dot")):
        return ""
    made = subprocess.run(
        [program, "-Tsvg"], input=dot, capture_output=True, text=True, timeout=SECONDS_DRAW, check=False
    )
    return made.stdout[made.stdout.find("<svg") :] if made.returncode == 0 and "<svg" in made.stdout else ""
