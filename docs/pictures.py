"""Pictures of the documentation: packages by what they import, and a row-sparse gradient."""

import ast
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
WIDTH_BOX, LINE, GAP = 108, 17, 22
INK = "#222222"
GROUPS = {
    "kernels": "arrays in, arrays out",
    "formats, ops, graph": "sparse arrays and operators",
    "data": "readers, tables, labels, batches",
    "recommend": "factors of users and items, EASE",
    "executor, models, optimizers, training, module, metrics": "steps, epochs, saved models",
    "measure, store, analysis": "time and memory; records; answers",
    "sweeps": "candidates in rounds of trials",
    "bridges, cluster": "scikit-learn, PyTorch, ...; machines",
    "advising, study": "what to train with; specs from a file",
    "plots, reports": "charts and pages from records",
    "api, command, panels": "what users touch",
}
"""Subpackages that are one box of the architecture, and what they do."""
BESIDE = "benchmarks\nchecks on the project, not installed"


def write_pictures(folder: Path) -> None:
    """Write the pictures of architecture and gradients as SVG files into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    levels = level_packages(group_graph(import_graph()))
    rows = [[f"{name}\n{GROUPS.get(name, '')}" for name in level] for level in levels[::-1]]
    rows[0].append(BESIDE)
    title = "Groups of packages in levels: each imports only groups of the levels below it."
    (folder / "packages.svg").write_text(boxes_svg(rows, title), encoding="utf-8")
    (folder / "row_sparse.svg").write_text(row_sparse_svg(), encoding="utf-8")


def group_graph(graph: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return for each group the other groups that its packages import; a package without a group is its own."""
    group = {part: name for name in GROUPS for part in name.split(", ")}
    grouped: dict[str, set[str]] = {}
    for part, imported in graph.items():
        name = group.get(part, part)
        grouped.setdefault(name, set()).update({group.get(each, each) for each in imported} - {name})
    return grouped


def import_graph() -> dict[str, set[str]]:
    """Return for each subpackage of the project the subpackages that it imports."""
    graph: dict[str, set[str]] = {}
    for path in sorted([*(ROOT / "workbench").rglob("*.py"), *(ROOT / "kernels").rglob("*.py")]):
        part = _part(path.relative_to(ROOT).with_suffix("").parts)
        if part is not None:
            imported = {_part(tuple(name.split("."))) for name in _imports(path)}
            graph.setdefault(part, set()).update(imported - {part, None})
    return {part: imported & set(graph) for part, imported in graph.items()}


def level_packages(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return packages by level, lowest first: one above the highest package that is imported."""
    levels: list[list[str]] = []
    rest = dict(graph)
    while rest:
        placed = {each for level in levels for each in level}
        level = sorted(part for part, imported in rest.items() if imported <= placed)
        level = level or sorted(rest)  # packages that import each other inside functions share a level
        levels.append(level)
        rest = {part: imported for part, imported in rest.items() if part not in level}
    return levels


def boxes_svg(rows: Sequence[Sequence[str]], title: str) -> str:
    """Return an SVG of rows of boxes from top to bottom, with arrows between the rows; texts may have several lines."""
    lines = [text.split("\n") for row in rows for text in row]
    box = max(WIDTH_BOX, 6 * max(len(line) for text in lines for line in text) + 20)
    high = LINE * max(map(len, lines)) + 14
    width = max(len(row) for row in rows) * (box + GAP) + GAP
    height = len(rows) * (high + GAP) + GAP
    parts = []
    for line, row in enumerate(rows):
        left = (width - len(row) * (box + GAP) + GAP) / 2
        top = GAP + line * (high + GAP)
        for place, text in enumerate(row):
            parts.append(_box(left + place * (box + GAP), top, box, high, text))
        if line + 1 < len(rows):
            parts.append(_arrow(width / 2, top + high))
    return _svg(width, height, title, parts)


def row_sparse_svg() -> str:
    """Return an SVG of a CSR batch, its dense gradient and the row-sparse one."""
    entries = ((0, 1), (0, 4), (1, 4), (1, 6), (2, 1))
    active = sorted({column for _, column in entries})
    cell = 22
    parts = [_text(30, 20, "X: 3 rows, 7 columns"), _text(230, 20, "gradient, dense"), _text(390, 20, "row-sparse")]
    for row in range(3):
        parts += [_cell(30 + column * cell, 34 + row * cell, cell, (row, column) in entries) for column in range(7)]
    for row in range(7):
        parts += [_cell(230 + k * cell, 34 + row * cell, cell, row in active) for k in range(4)]
    for place, row in enumerate(active):
        parts.append(_text(390, 50 + place * cell, str(row)))
        parts += [_cell(412 + k * cell, 34 + place * cell, cell, True) for k in range(4)]
    title = "A batch with entries in columns 1, 4 and 6: three rows of its gradient are not zero."
    return _svg(520, 204, title, parts)


def _part(names: tuple[str, ...]) -> str | None:
    """Return the subpackage of a module's name, None for modules that are no packages or of others."""
    if names[0] == "kernels":
        return "kernels"
    if names[0] != "workbench" or len(names) < 2 or not (ROOT / "workbench" / names[1]).is_dir():
        return None
    return names[1]


def _imports(path: Path) -> Iterable[str]:
    """Yield the modules that a file imports at its top level."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _svg(width: float, height: float, title: str, parts: Iterable[str]) -> str:
    """Return an SVG of `parts` with a title."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
    head += f'height="{height:g}" role="img" font-family="sans-serif" font-size="12"><title>{escape(title)}</title>'
    return "\n".join([head, *parts, "</svg>\n"])


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    """Return a text at a position."""
    return f'<text x="{x:g}" y="{y:g}" fill="{INK}" text-anchor="{anchor}">{escape(text)}</text>'


def _box(x: float, y: float, width: float, height: float, text: str) -> str:
    """Return a box with lines of text in its middle, the first of them bold."""
    shape = f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4" fill="#eef3f8" stroke="{INK}"/>'
    first, *more = text.split("\n")
    texts = [_text(x + width / 2, y + 21 + LINE * (1 + place), line, "middle") for place, line in enumerate(more)]
    return "".join([shape, f'<g font-weight="bold">{_text(x + width / 2, y + 21, first, "middle")}</g>', *texts])


def _arrow(x: float, y: float) -> str:
    """Return an arrow from a row of boxes to the next."""
    return f'<path d="M{x:g} {y + 3:g}v{GAP - 8}m-4 -4l4 5l4 -5" fill="none" stroke="{INK}"/>'


def _cell(x: float, y: float, size: float, is_set: bool) -> str:
    """Return a square, filled if the element is not zero."""
    fill = "#0072b2" if is_set else "none"
    return f'<rect x="{x:g}" y="{y:g}" width="{size}" height="{size}" fill="{fill}" stroke="#888888"/>'
