"""Explanation of a graph: what each node computes, its formats, kernel and bytes, and what it makes dense."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, final

from workbench.graph.inference import Facts, Inference
from workbench.graph.picture import draw
from workbench.graph.words import cut

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
        """The cells of the table, in the order of `COLUMNS`."""
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
        self.inference = inference
        facts = inference.facts
        self.lines = [_line(node, facts[node], [facts[e] for e in node.inputs], notes or {}) for node in facts]
        self.lines = [replace(line, operator=(kinds or {}).get(line.name, line.operator)) for line in self.lines]
        self.edges = [(facts[entry].name, facts[node].name) for node in facts for entry in node.inputs]
        self.edges += [(maker, name) for name, maker in (made_by or {}).items()]

    @property
    def densified(self) -> list[Line]:
        """Lines of the nodes that make their inputs dense."""
        return [line for line in self.lines if line.densifies]

    def text(self) -> str:
        """Return the table as plain text; remarks of nodes that densify start with `!!`."""
        rows = [COLUMNS, *(line.cells for line in self.lines)]
        widths = [max(len(row[place]) for row in rows) for place in range(len(COLUMNS))]
        table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        table.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join(line.rstrip() for line in [*table, self.verdict])

    @property
    def verdict(self) -> str:
        """One sentence: what is made dense, with the bytes."""
        total = sum(facts.bytes_densified for facts in self.inference.densified)
        names = ", ".join(line.name for line in self.densified)
        return f"Made dense on the way: {total:,} bytes, by {names}." if names else "Nothing is made dense on the way."

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def svg(self) -> str:
        """Return the graph as an SVG picture, inputs above their users."""
        return draw(self.lines, self.edges)

    def html(self) -> str:
        """Return the table as HTML."""
        head = "".join(f"<th style='text-align:left'>{name}</th>" for name in COLUMNS)
        body = "".join(_html_row(line) for line in self.lines)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{escape(self.verdict)}</p>"

    def page(self) -> str:
        """Return the picture, unless the graph is too large, and the table as HTML."""
        picture = self.svg() if len(self.lines) <= MOST_DRAWN else ""
        return f"<div style='overflow-x:auto'>{picture}{self.html()}</div>"

    _repr_html_ = page


def _line(node: "Symbol", facts: Facts, inputs: list[Facts], notes: Mapping[str, str]) -> Line:
    """Return the line of a node from its facts and those of its inputs."""
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
    """Return the HTML of one table row."""
    style = " style='background:#fde7e9;color:#7a0010;font-weight:600'" if line.densifies else ""
    cells = [escape(cell) for cell in line.cells]
    cells[0] = f"<span title='{escape(line.name)}'>{cells[0]}</span>"
    if line.densifies:
        cells[-1] = cells[-1].replace("!!", "⚠", 1)
    return (
        f"<tr{style}>"
        + "".join(f"<td style='text-align:left;white-space:nowrap'>{cell}</td>" for cell in cells)
        + "</tr>"
    )
