"""One file that answers the question and can be checked: HTML with charts, or Markdown for a pull request.

Both are made from rows alone and open without a network or a server. They are read without a script: the page's own
sorts and filters the table of rows, nothing else.
"""

import base64
import gzip
import hashlib
import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup
from matplotlib.figure import Figure

from workbench import atomic_files, plots, store
from workbench.analysis import configurations, formatting
from workbench.analysis.answer_text import AnswerText, answer_text
from workbench.analysis.answers import answered_groups
from workbench.analysis.breakeven import breakevens_of_group
from workbench.analysis.compare import EQUIVALENCE_MARGIN
from workbench.analysis.intervals import MEMORY_SHARE
from workbench.analysis.verdict_text import MEASURES
from workbench.plots import interactive as live
from workbench.plots.style import NAMES_OF_BARS
from workbench.reports import page, report_tables
from workbench.reports.chart_svg import inline, is_drawn
from workbench.reports.page import (
    LONGEST,
    ExportError,
    Table,
    table_of,
    templates,
    written,
    written_frame,
)

# Method of the numbers of a report, for readers who want to judge them.


ROUNDS = (
    "Each trial ran in a process without any other candidate. The output of the timed call was checked against a "
    "float64 reference first; compiling and warm-up are in no time.",
    "A round measures all candidates of a comparison, so that what slows the machine for a while slows neighbours "
    "alike: two to four of them that take steps on the CPU in turns of 50 ms by processes that live over some rounds, "
    "others one after the other in fresh processes, in an order that turns from round to round. The other "
    "comparisons of the run come between. A trial gives one number, the lower quartile of its samples.",
    "A ratio has a probability distribution, the posterior of a normal model of log(dense / sparse): rounds of one run "
    "share some of their noise, and the noise of a comparison is shrunk towards that of all comparisons of the machine "
    "(moderated t). A trial that is far off counts for less, and the choice of the best of several candidates is in "
    "the interval. The interval holds 95 % of the probability. Runs are combined by their ratios; seconds of "
    "different runs are never compared.",
    "A side is called better if that has a probability of 97.5 % or more, probably better from 80 % on. If the "
    f"interval lies within a factor of {EQUIVALENCE_MARGIN:g} of 1 there is no difference that matters; else "
    f"the answer is "
    "inconclusive.",
    "A trial during which other programs took more than 10 % of the cores is disturbed. It counts, with more noise "
    "and with a bias that all disturbed rounds of a configuration share: it cannot decide a factor of 2, and it does "
    "decide one of 20.",
    "Seconds are the estimate that verdicts are made of, in the run that is shown, with a 95 % interval relative to "
    "the other candidates; the column measured has the mean of the rounds of that run. Memory is "
    f"the median of the peaks of all rounds, to 1 MiB, {100 * MEMORY_SHARE:g} % or half their range, whichever is "
    "most; other programs do not change it. Every number has the digits that its interval allows.",
    "A break-even lies between the last density at which sparse is better and the first at which dense is. Its "
    "interval takes in the noise, and all curves that rise between two measured densities, at most with the square of "
    "the density.",
)
"""What holds for all reports."""


def sentences(rows: Sequence[configurations.Record]) -> Iterator[str]:
    """Yield the sentences on the method, and on rounds, disturbances and errors in these records."""
    yield from ROUNDS
    ok = [row for row in rows if row["status"] == "ok"]
    yield from _baseline(rows)
    if ok:
        rounds, samples = [row["rounds"] for row in ok], [len(row["samples"] or ()) for row in ok]
        yield f"There are {_span(rounds, 'round')} a configuration, and {_span(samples, 'sample')}."
    if busy := sum(row["rounds_disturbed"] for row in rows):
        yield f"Disturbed: {formatting.format_count(busy, 'trial')}."
    if put_right := dict.fromkeys(
        f"{name} = {value}" for row in ok for name, value in (row["environment_removed"] or {}).items()
    ):
        yield f"Kept from the trials, since it would have distorted them: {formatting.join_items(put_right)}."
    checked = [row for row in ok if row["error"] is not None and row["error_allowed"]]
    if checked:
        worst = max(checked, key=lambda row: row["error"] / row["error_allowed"])
        errors = f"{worst['error']:.1e}; {worst['error_allowed']:.1e} is allowed there"
        yield f"The largest relative error against the reference is {errors}."


def _baseline(rows: Sequence[configurations.Record]) -> Iterator[str]:
    """Yield a sentence on the dense candidates, the best of which is the baseline; nothing without any."""
    names = list(
        dict.fromkeys(formatting.name_configuration(line[0]) for line in configurations.dense_lines(rows).values())
    )
    if not names:
        return
    known = f"{len(names)} candidates: {'; '.join(names)}" if len(names) > 1 else f"one candidate: {names[0]}"
    devices = {row["device"] for row in rows if configurations.is_dense(row)}
    blas = " and ".join(name for device, name in (("cpu", "BLAS"), ("cuda", "cuBLAS")) if device in devices)
    best = "The best of them at each density" if len(names) > 1 else "It"
    yield (
        f"Dense trains on dense batches of the same rows, with the same batches, model and optimizer. It has {known}. "
        f"{best} is what sparse is compared with. Its products are those of {blas}, but for what an epoch in one call "
        "computes by its own loops."
    )


def _span(counts: Sequence[int], noun: str) -> str:
    """Return "4 rounds" or "2 to 4 rounds" for counts and their noun."""
    least, most = min(counts), max(counts)
    return formatting.format_count(most, noun) if least == most else f"{least} to {formatting.format_count(most, noun)}"


SECTIONS = {
    "Speed": ("time_density",),
    "Memory": ("memory_density",),
    "Phases of a step": ("phases",),
    "Quality": ("learning",),
    "Roofline": ("bounds",),
}
"""Charts by the section of the page that they are in; others follow in one of their own."""
ELSEWHERE = "Other charts"
FIRST = tuple(name for names in SECTIONS.values() for name in names)
SCRIPT, LIVE = "rows.js", "live.js"
GROUPS_DRAWN, GROUPS_ANSWERED = 4, 12
FIGURE_INCHES = (9.0, 6.0)
NARROW_INCHES, LINE_INCHES = (4.25, 3.8), 0.19
"""Size of a chart on a telephone without its texts, and the height of a line of text.

The smallest text, 9 points, has 11 pixels where the page is 420 pixels wide.
"""
MARKDOWN_BYTES = 60_000  # comments on code hosts are cut not far above


def html(
    frame: pd.DataFrame,
    path: str | Path,
    *,
    title: str,
    command: str,
    machine: Mapping[str, Any],
    spec: str = "",
    predicted: AnswerText | None = None,
    interactive: bool = False,
) -> Path:
    """Write one self-contained HTML file and return its path.

    `frame` is what `store.frame` gives, also empty; `command` makes the same records again, with the text `spec` in the
    file spec.json if it takes one; `machine` is shown as a table, nested mappings flattened. `predicted` is the answer
    if `frame` has no records. Text from records is escaped, and cut if it is very long. Each chart is laid out twice:
    for wide windows and for narrow ones. `interactive` adds the script of Plotly, 2 MB, which draws the wide ones so
    that they answer to the pointer; ExportError without Plotly.
    """
    if interactive:
        plotly_script()  # that it is missing is said before the charts are drawn
    pooled = configurations.pool_rounds(written_frame(frame))
    content = _content(pooled, int(frame["run"].ne("").sum()), title, command, machine, predicted)
    content |= {"spec": written(spec, None)}
    charts = [
        _svg_chart(f"{chart[0]}-{number}", *chart, interactive) for number, chart in enumerate(charts_of(pooled), 1)
    ]
    content |= {"sections": _in_sections(charts), "first_chart": charts[0]}
    content |= scripts({chart["id"]: chart["live"] for chart in charts if chart["live"]} if interactive else {})
    path = Path(path)
    atomic_files.write(path, templates().get_template("report.html").render(content))
    return path


def markdown(
    frame: pd.DataFrame,
    path: str | Path,
    *,
    title: str,
    command: str,
    machine: Mapping[str, Any],
    spec: str = "",
    predicted: AnswerText | None = None,
    pictures: bool = False,
) -> Path:
    """Write the same report as `html` without charts as Markdown under 60 kB, and return its path.

    Long lists and texts are cut if needed, and say so. With `pictures` each chart is a PNG file next to it. Other
    arguments are those of `html`.
    """
    path, pooled = Path(path), configurations.pool_rounds(written_frame(frame))
    charts = [_png_chart(path, *chart) for chart in charts_of(pooled)] if pictures else []
    content = _content(pooled, int(frame["run"].ne("").sum()), title, command, machine, predicted)
    content |= {"spec": written(spec, None), "charts": charts}
    plain = [report_tables.plain(data) for data in content.pop("standings")]
    content |= {"standings_time": plain[0] if plain else None, "standings_memory": plain[1] if plain else None}
    content = {name: value for name, value in content.items() if name != "cells"}
    template = templates().get_template("report.md.jinja")
    for most, longest in ((1000, None), (100, None), (30, None), (10, 5000), (3, LONGEST), (3, 100)):
        shown = {name: written(_cut(value, most), longest) for name, value in content.items()}
        text = template.render(shown)
        if len(text.encode()) < MARKDOWN_BYTES:
            break
    atomic_files.write(path, text)
    return path


def _content(
    pooled: pd.DataFrame,
    count: int,
    title: str,
    command: str,
    machine: Mapping[str, Any],
    predicted: AnswerText | None,
) -> dict[str, Any]:
    """Return {name: value} of what the templates of both formats show; `pooled` are the records pooled, of `count`.

    Other arguments are those of `html`.
    """
    groups = answered_groups(pooled)
    rows = [row for group in groups for row in group.rows]
    answer, places = (predicted if predicted and not rows else answer_text(pooled)), report_tables.anchors(groups)
    return {
        "answer": answer,
        "candidates": report_tables.candidates(groups[0]) if groups else table_of((), []),
        "standings": report_tables.tables(groups[0], places) if groups else [],
        "of_group": groups[0].label if len(groups) > 1 else "",
        "of_groups": report_tables.answers_of_groups(_measured(groups[1:])[:GROUPS_ANSWERED]),
        "cells": report_tables.table(groups, places),
        "title": written(title),
        "about": _about(rows, written(machine), count),
        "command": written(command, None),
        "breakevens": _breakevens(groups),
        "failures": _failures(groups),
        "machine": table_of(("what", "value"), _of_machine(written(machine))),
        "versions": table_of(("what", "value"), _versions(rows)),
        "method": list(sentences(rows)),
        "columns": table_of(("column", "meaning"), ((c.name, c.meaning) for c in store.TRIALS.columns.values())),
        "rows": count,
        "groups_left": len(groups) - len(_shown(groups)),
    }


def _about(rows: Sequence[configurations.Record], machine: Mapping[str, Any], count: int) -> str:
    """Return data sets, models, machine, dates and number of records in one line, joined by " · "."""
    names = [_named(rows, "dataset"), _named(rows, "model"), str(machine.get("cpu") or machine.get("id") or "")]
    return " · ".join([*filter(None, (*names, page.date_span(rows))), formatting.format_count(count, "record")])


def _named(rows: Sequence[configurations.Record], column: str) -> str:
    """Return the distinct values of a column, joined; of "dataset" the file's name if there is one. "" without any."""
    values = dict.fromkeys(str(row["path"] or row[column]) if column == "dataset" else row[column] for row in rows)
    names = [Path(str(value)).name if "/" in str(value) else str(value) for value in values if value]
    return formatting.join_items(names) if names else ""


def _in_sections(charts: Sequence[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return [(section, its charts)] without empty ones; the first chart is left out, since it is on top."""
    section_of = {name: section for section, names in SECTIONS.items() for name in names}
    found: dict[str, list[dict[str, Any]]] = {section: [] for section in (*SECTIONS, ELSEWHERE)}
    for chart in charts[1:]:
        found[section_of.get(chart["name"], ELSEWHERE)].append(chart)
    return [(section, own) for section, own in found.items() if own]


def scripts(drawn: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return what a page has of scripts: `scripts`, their `digests` for its security policy, and the charts to draw.

    `drawn` is {id of a chart: its JSON for Plotly}; with any, Plotly's script is part of the page, packed by gzip.
    """
    names = [SCRIPT, LIVE] if drawn else [SCRIPT]
    texts = [(Path(__file__).parent / name).read_text(encoding="utf-8") for name in names]
    packed = {"plotly": "", "live": ""}
    if drawn:
        plotly = plotly_script()
        packed = {"plotly": _packed(plotly), "live": _packed(json.dumps(drawn, allow_nan=False))}
        texts.append(plotly)
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
    return packed | {"scripts": texts[: len(names)], "digests": digests}


def _packed(text: str) -> str:
    """Return the text packed by gzip, in letters that a page may have."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def plotly_script() -> str:
    """Return the script of Plotly; ExportError without the package."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise ExportError("Interactive charts need Plotly: pip install 'sparse-workbench[lab]'") from None
    return get_plotlyjs()


def _breakevens(groups: Sequence[configurations.Group]) -> Table:
    """Return the table of break-evens, a row for each configuration and measure.

    A column names the group if several.
    """
    several, rows = len(groups) > 1, []
    for measure, group in product(MEASURES, groups):
        for even in breakevens_of_group(group, measure):
            line = formatting.name_configuration(even.settings)
            counted = even.by_bytes.text if even.by_bytes else ""
            row = [line, MEASURES[measure][0], even.place or "none", counted, *([group.label] if several else [])]
            rows.append([*row, even.sentence.removeprefix(f"{line} ")])  # the first column says whose it is
    columns = (
        "configuration",
        "in",
        "break-even",
        "by the bytes of the formats",
        *(["cells"] if several else []),
        "what was found",
    )
    return table_of(columns, rows)


def _failures(groups: Sequence[configurations.Group]) -> Table:
    """Return the table of records without a result, with their reasons and bytes needed."""
    rows = [
        [
            formatting.name_configuration(row),
            configurations.density_label(row),
            group.label,
            configurations.status_text(row["status"]),
            (row["reason"] or "")[:400],
            formatting.format_bytes(row["bytes_needed"]) if row["bytes_needed"] else "",
        ]
        for group in groups
        for row in group.rows
        if row["status"] not in configurations.NUMBERED
    ]
    return table_of(("configuration", "density", "cells", "status", "reason", "bytes needed"), rows)


def _of_machine(machine: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (name, value) texts of a machine's record, without versions, which have their own table."""
    return [line for line in page.machine_lines(machine) if "versions: " not in line[0]]


def _versions(rows: Sequence[configurations.Record]) -> list[tuple[str, str]]:
    """Return (library, versions) of all records; several versions are joined, since such records are not comparable."""
    known = ((row["versions"] or {}) | {"BLAS": row["blas"], "code": row["source"]} for row in rows)
    return list(page.joined_values(known).items())


def _shown(groups: Sequence[configurations.Group]) -> Sequence[configurations.Group]:
    """Return the groups to draw: up to `GROUPS_DRAWN` with a result, else only the first."""
    return (_measured(groups) or groups[:1])[:GROUPS_DRAWN]


def _measured(groups: Sequence[configurations.Group]) -> list[configurations.Group]:
    """Return the groups that have at least one record with a result, in their order."""
    return [group for group in groups if any(row["status"] in configurations.NUMBERED for row in group.rows)]


def charts_of(frame: pd.DataFrame) -> list[tuple[str, pd.DataFrame, dict[str, str]]]:
    """Return (chart name, pooled frame, controls) of each chart to draw, in the order of the page.

    Charts against density are drawn for several groups, the others for the first.
    """
    pooled = configurations.pool_rounds(frame)
    order = sorted(plots.names(), key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
    labels: list[str | None] = [group.label for group in _shown(answered_groups(pooled))]
    labels = labels or [None]
    charts = []
    for name in order:
        controls = {control.name for control in plots.get(name).controls}
        each = labels if "group" in controls and "density" not in controls else labels[:1]
        charts += [(name, pooled, {"group": label} if label and "group" in controls else {}) for label in each]
    return charts


def _draw_chart(name: str, frame: pd.DataFrame, controls: dict[str, str]) -> tuple[Figure, dict[str, Any]]:
    """Return a figure with the chart drawn, and its name, heading, sentence and table for the template.

    Columns of the table without any text are left out.
    """
    figure = Figure(figsize=FIGURE_INCHES)
    sentence = plots.draw(name, frame, figure, **controls)
    table = plots.table(name, frame, **controls)
    heading = plots.get(name).title + (
        f": {controls['group']}" if controls and len(configurations.groups(frame)) > 1 else ""
    )
    filled = [column for column in table if column == "result" or (table[column] != "").any()]
    data = table_of(filled, table[filled].to_numpy().tolist())
    return figure, {"name": name, "heading": heading, "sentence": sentence, "data": data}


def _svg_chart(
    place: str, name: str, frame: pd.DataFrame, controls: dict[str, str], is_interactive: bool
) -> dict[str, Any]:
    """Return a chart as inline SVG, wide and narrow; `place` is its unique id on the page.

    "svg" is "" if the chart is only a message. "live" is the chart as JSON for Plotly if it is interactive, else None.
    """
    figure, chart = _draw_chart(name, frame, controls)
    if not is_drawn(figure):
        return chart | {"id": place, "svg": "", "narrow": "", "live": None}
    heading, sentence = chart["heading"], chart["sentence"]
    narrow = Figure(figsize=NARROW_INCHES)
    plots.draw(name, frame, narrow, **controls)
    narrow.set_figheight(_narrow_height(narrow))
    described = live.describe(figure) if is_interactive else None
    shown = {
        "svg": inline(figure, place, heading, sentence, has_tooltips=described is None),
        "narrow": _narrow_svg(narrow, place, heading, sentence),
        "live": described,
    }
    return chart | {"id": place} | shown


def _narrow_svg(figure: Figure, place: str, heading: str, sentence: str) -> Markup | str:
    """Return a narrow chart as SVG with id "PLACE-narrow"; "" if its labels leave no space for the axes.

    `heading` and `sentence` are for screen readers.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "constrained_layout not applied", UserWarning)
        try:
            return inline(figure, f"{place}-narrow", heading, sentence)
        except UserWarning:
            return ""


def _narrow_height(figure: Figure) -> float:
    """Return the height (inches) at which a narrow chart has space for its title and the names of its bars."""
    lines = sum(
        text.count("\n") + 1 for text in (figure.get_suptitle(), *(axes.get_title() for axes in figure.axes[:1]))
    )
    bars = sum(text.get_gid() == NAMES_OF_BARS for axes in figure.axes for text in axes.texts)
    return NARROW_INCHES[1] + LINE_INCHES * (lines + bars)


def _png_chart(path: Path, name: str, frame: pd.DataFrame, controls: dict[str, str]) -> dict[str, Any]:
    """Save a chart as PNG next to `path`; return its values for the template, the file name in "picture"."""
    figure, chart = _draw_chart(name, frame, controls)
    if not is_drawn(figure):
        return chart | {"picture": ""}
    group = re.sub(r"\W+", "-", controls.get("group", "")).strip("-").lower()
    picture = path.with_name("_".join(filter(None, (path.stem, name, group))) + ".png")
    with atomic_files.replacing(picture) as new:
        figure.savefig(new, dpi=110)
    return chart | {"picture": picture.name}


def _cut(value: Any, most: int) -> Any:
    """Return a table with at most `most` rows; others unchanged."""
    if isinstance(value, dict) and "rows" in value:
        return value | {"rows": value["rows"][:most], "left": len(value["rows"][most:])}
    return value
