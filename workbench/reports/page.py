"""Tools that pages of reports are made with: the templates of this folder, their filters, tables, and inline charts."""

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import matplotlib
from markupsafe import Markup, escape
from matplotlib.figure import Figure

from workbench.analysis import changes, external
from workbench.analysis.changes import Changes
from workbench.analysis.external import ExternalComparison
from workbench.json_text import parsed
from workbench.reports import tooltips
from workbench.store import RowError

Table = dict[str, Any]  # columns: list of str; rows: list of lists of str; left: rows left out


@cache
def templates() -> jinja2.Environment:
    """Return the templates of this folder, with the filters that they use."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=jinja2.select_autoescape(["html"]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"plain": _plain, "fenced": _fenced, "unbroken": _unbroken, "coded": _coded}
    environment.filters["plain_but_code"] = _plain_but_code
    return environment


def _plain(value: Any) -> str:
    """Return the text that Markdown takes literally, on one line."""
    return _escaped(" ".join(str(value).split()))


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*<>|\[\]])", r"\\\1", text)


def _plain_but_code(value: Any) -> str:
    """Return Markdown in which what stands between backticks is code, and all else is taken literally.

    >>> _plain_but_code("4 * 2: type `a_b` now")
    '4 \\\\* 2: type `a_b` now'
    """
    pieces = re.split(r"(`[^`]+`)", " ".join(str(value).split()))
    return "".join(piece if place % 2 else _escaped(piece) for place, piece in enumerate(pieces))


def _unbroken(value: Any) -> str:
    """Return text whose numbers stay on the line of their sign, of their unit, and of the word width."""
    units = r"(?<=\d) (?=(%|ns|µs|ms|s|B|kB|MB|GB|TB|times)(?!\w))"
    return re.sub(rf"(?<=≤) (?=\d)|(?<=width) (?=\d)|{units}", "\u00a0", str(value))


def _coded(value: Any) -> Markup:
    """Return HTML in which what stands between backticks is code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(_unbroken(value)))))


def _fenced(value: str) -> str:
    """Return a code block that no run of backticks in the text can end."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", value)), default=0))
    return f"{fence}\n{value}\n{fence}"


def record(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file, such as `machine.json`; empty without a file (`RowError` for all else)."""
    if not path.exists():
        return {}
    try:
        value = parsed(path.read_bytes())
    except ValueError as error:
        raise RowError(f"{path} is not JSON ({error}); mend or remove it.") from None
    if not isinstance(value, dict):
        raise RowError(f"{path} is a {type(value).__name__}; an object is expected.")
    return value


def table_of(columns: Iterable[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a table as the templates take it."""
    return {"columns": list(columns), "rows": [list(row) for row in rows], "left": 0}


def targets_table(targets: Iterable[Any], unmeasured: str = "") -> Table:
    """Return performance targets as a table; `unmeasured` is the outcome of one that was not measured."""
    outcome = {True: "met", False: "missed", None: unmeasured}
    rows = ([each.what, each.wanted, each.measured, outcome[each.met]] for each in targets)
    return table_of(("target", "wanted", "measured", "outcome"), rows)


def flat(mapping: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Flatten nested mappings to (name, value) pairs as text; names of inner ones begin with the outer name."""
    pairs = []
    for name, value in mapping.items():
        if isinstance(value, Mapping):
            pairs += flat(value, f"{prefix}{name}: ")
        else:
            items = value if isinstance(value, list | tuple) else [value]
            pairs.append((f"{prefix}{name}", ", ".join(map(_item, items))))
    return pairs


def _item(value: Any) -> str:
    """Return a value as text, a mapping as its names and values."""
    return " ".join(f"{name} {one}" for name, one in flat(value)) if isinstance(value, Mapping) else str(value)


TEXT: dict[Any, Any] = {"svg.fonttype": "none", "font.sans-serif": ["DejaVu Sans", "Verdana"]}
"""Text in an SVG is text: it can be read aloud, searched and copied, and a chart has a quarter of the size. Where the
first font is missing the second one has the same width."""


def save(figure: Figure, path: Path) -> None:
    """Write the figure as SVG or PNG, by the suffix: the same bytes for the same picture, so that rows tell changes."""
    if path.suffix != ".svg":
        figure.savefig(path, dpi=150)
        return
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": path.stem, **TEXT}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    path.write_text(_with_short_numbers(buffer.getvalue()), encoding="utf-8")


def _with_short_numbers(svg: str) -> str:
    """Return an SVG whose coordinates have two decimals: a hundredth of a point cannot be seen.

    >>> _with_short_numbers('<path d="M 0.123456 12.5 "/>')
    '<path d="M 0.12 12.5 "/>'
    """
    places = r'(?<= d=")[^"]*|(?<= x=")[^"]*|(?<= y=")[^"]*|(?<=translate\()[^)]*'
    return re.sub(places, lambda text: re.sub(r"-?\d+\.\d{3,}", _short_number, text[0]), svg)


def _short_number(found: re.Match) -> str:
    """Return a decimal number in a text with two decimals at most."""
    return f"{float(found[0]):.2f}".rstrip("0").rstrip(".")


def is_drawn(figure: Figure) -> bool:
    """Return whether a chart has more to see than its sentence."""
    return any(axes.axison for axes in figure.axes)


def inline(figure: Figure, place: str, heading: str, sentence: str) -> Markup:
    """Return the figure as an <svg> that can share a page with others.

    Own ids, a title and a description, no metadata.
    """
    buffer = io.StringIO()
    unsigned = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with matplotlib.rc_context({"svg.hashsalt": place, **TEXT}):
        figure.savefig(buffer, format="svg", transparent=True, metadata=unsigned)
    text = _with_short_numbers(buffer.getvalue())
    text = re.sub(r"<!--.*?-->", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{place}-', text)
    text = re.sub(r'(href="#|url\(#)', rf"\g<1>{place}-", text)
    text = text[: text.rindex("</svg>")] + str(tooltips.marks(figure)) + "</svg>"
    start, rest = text.split(">", 1)
    named = f' role="img" aria-labelledby="{place}-title {place}-desc"'
    described = f'<title id="{place}-title">{escape(heading)}</title><desc id="{place}-desc">{escape(sentence)}</desc>'
    return Markup(f"{start}{named}>{described}{rest}")


# A comparison of two runs, or of a run with rows of another tool, as Markdown for a pull request.


MOST = 200
"""Rows of a table."""


def of_runs(found: Changes, before: str, after: str) -> str:
    """Return the answer, its grounds, every kernel, and the cells, what is slower first."""
    tables = [("Kernels", ("kernel", *changes.COLUMNS[1:]), changes.table(found.kernels))]
    tables += [("Cells", changes.COLUMNS, changes.table(found.cells))]
    tables += [("Peak memory", changes.COLUMNS, changes.table(found.memory))]
    return _page(f"{before} and {after}", changes.headline(found), list(changes.sentences(found)), tables)


def of_others(held: Sequence[ExternalComparison], theirs: str, run: str) -> str:
    """Return the rows of another tool beside a run."""
    tables = [("Theirs and ours", external.COLUMNS, external.table(held))]
    return _page(f"{theirs} beside {run}", "", external.external_notes(held), tables)


def _page(title: str, headline: str, sentences: Sequence[str], tables: Sequence[tuple]) -> str:
    """Return the Markdown page of a comparison; tables are cut to `MOST` rows."""
    cut = [(name, table_of(columns, rows[:MOST]) | {"left": len(rows[MOST:])}) for name, columns, rows in tables]
    content = {"title": title, "headline": headline, "sentences": sentences, "tables": cut}
    return templates().get_template("changes.md.jinja").render(content)
