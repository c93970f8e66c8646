"""The page of a suite: targets, tables, charts and machine, as Markdown from records alone, by one template."""

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.compare import Target
from workbench import atomic_files
from workbench.plots import style
from workbench.reports import chart_svg
from workbench.reports import page as pages

if TYPE_CHECKING:
    from benchmarks.harness import Suite

TEXTS = tomllib.loads(Path(__file__).with_name("pages.toml").read_text(encoding="utf-8"))
"""Title and text of each suite's page; names in braces are filled in from `Page.values`."""
OUTCOME = {True: "met", False: "missed", None: "-"}


@dataclass(frozen=True)
class Section:
    """A heading with text, a table (columns, rows) and a chart: its file, and what draws it and returns a sentence."""

    title: str
    columns: Sequence[str] = ()
    rows: Iterable[Sequence[str]] = ()
    text: str = ""
    lines: Sequence[str] = ()
    file: str = ""
    draw: Callable[[Figure], str] | None = None
    inches: tuple[float, float] = (9.0, 6.0)


@dataclass(frozen=True)
class Page:
    """What the page of a suite shows: `targets`, `sections`, the `summary` that the command prints as well.

    `values` are filled into the text of `pages.toml`.
    """

    targets: Sequence[Target] = ()
    sections: Sequence[Section] = ()
    summary: Sequence[str] = ()
    values: Mapping[str, Any] = field(default_factory=dict)


def frame(figure: Figure, axes: Axes, title: str, below: str) -> None:
    """Add title, subtitle, grid, and the legend below the axes to a chart."""
    style.add_title_and_grid(figure, axes, title, below)
    figure.legend(loc="outside lower center", ncols=2, fontsize=style.SMALL, frameon=False)


def met_sentence(targets: Iterable[Target]) -> str:
    """Return "3 of 5 measured targets are met."; another sentence if none was measured."""
    met = [each.met for each in targets if each.met is not None]
    return f"{sum(met)} of {len(met)} measured targets are met." if met else "No target was measured."


def write(suite: "Suite", folder: str | Path, command: str = "") -> Path:
    """Write the page of a suite and its charts next to the records of a folder; return its path.

    `command` is cited as what makes it. OSError if it cannot be written.
    """
    folder = Path(folder)
    records = [pages.written(record) for record in suite.table.read(folder)]
    content, text = suite.page(records), TEXTS[suite.name]
    sections = [_rendered(one, folder) for one in content.sections]
    environment = pages.templates().overlay(
        loader=jinja2.FileSystemLoader([Path(__file__).parent, Path(pages.__file__).parent])
    )
    known = {
        "title": text["title"],
        "text": text["text"].strip().format(**content.values),
        "verdict": met_sentence(content.targets) if content.targets else "",
        "summary": content.summary,
        "targets": pages.targets_table(content.targets, "not measured") if content.targets else None,
        "sections": [one for one in sections if one["table"] or one["sentence"] or one["text"] or one["lines"]],
        "machine": pages.machine_table(folder, records),
        "command": command or f"python -m benchmarks {suite.name} --results {pages.folder_to_type(folder)}",
    }
    path = folder / suite.page_file
    atomic_files.write(path, environment.get_template("page.md.jinja").render(known))
    return path


def _rendered(section: Section, folder: Path) -> dict[str, Any]:
    """Return a section as the template takes it, its chart drawn and saved in `folder`."""
    sentence, rows = "", [list(map(str, row)) for row in section.rows]
    if section.draw:
        figure = Figure(figsize=section.inches)
        sentence = section.draw(figure)
        chart_svg.save(figure, folder / section.file)
    table = pages.table_of(section.columns, rows) if rows else None
    text = section.text if rows or sentence or not section.columns else ""
    return {
        "title": section.title,
        "text": text.strip(),
        "lines": section.lines,
        "file": section.file,
        "sentence": sentence,
        "table": table,
    }
