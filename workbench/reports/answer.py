"""The top of a report: a headline number for each measure, and the table of densities by candidates with its marks."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.analysis import configurations, outliers
from workbench.analysis.breakeven import BreakEven
from workbench.analysis.outliers import usual_deviation_of_records
from workbench.analysis.standings import MARKS, Headline, Standing, Standings, headline_of, make_standings
from workbench.analysis.verdict_text import MEASURES
from workbench.reports.page import Table, table_of

Anchors = Mapping[int, str]
"""The place of a pooled row on the page, by its id."""


def headlines(
    group: configurations.Group, evens: Mapping[str, Sequence[BreakEven]], anchors: Anchors
) -> list[dict[str, Any]]:
    """Return the headline of each measure for the template: name, number, where, finding, executions, links to rows."""
    return [_headline(headline_of(group, measure, evens[measure]), anchors) for measure in MEASURES]


def _headline(found: Headline, anchors: Anchors) -> dict[str, Any]:
    """Return a headline as values for the template, with links to its records."""
    links = [anchors[id(row)] for row in found.rows if id(row) in anchors]
    name = MEASURES[found.measure][0].capitalize()
    said = {"where": found.where, "finding": found.finding, "executed": found.executed}
    return {"name": name, "number": found.number, "links": links, **said}


def answers_of_groups(groups: Sequence[configurations.Group], evens: Mapping[str, Sequence[BreakEven]]) -> Table:
    """Return the table of the answers of several groups: the settings of each, then number and finding by measure."""
    rows = []
    for group in sorted(groups, key=lambda group: _natural(group.label)):
        found = [headline_of(group, measure, evens[measure]) for measure in MEASURES]
        rows.append([group.label, *(f"{one.number}. {one.finding}." for one in found)])
    return table_of(("for", *(name for name, *_ in MEASURES.values())), rows)


def _natural(label: str) -> list[tuple[bool, int, str]]:
    """Return a key that sorts labels by the numbers in them."""
    parts = re.split(r"(\d+)", label)
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts]


def tables(group: configurations.Group, anchors: Anchors) -> list[dict[str, Any]]:
    """Return the table of each measure as the templates take it."""
    return [_table(make_standings(group, measure), anchors) for measure in MEASURES]


def _table(found: Standings, anchors: Anchors) -> dict[str, Any]:
    """Return the table of densities by candidates as values for the template."""
    timed = found.measure.startswith("seconds")
    measured = [place.row for line in found.lines for place in line.places if place.row is not None]
    usual = usual_deviation_of_records(measured)
    lines: list[dict[str, Any]] = [
        {
            "density": line.density,
            "verdict": line.verdict,
            "places": [_place(place, anchors, usual if timed else None) for place in line.places],
        }
        for line in found.lines
    ]
    what = "Time a step" if timed else "Peak memory"
    legend = [f"{MARKS[mark][0]} {MARKS[mark][1]}" for mark in found.marks]
    if any(place["doubt"] for line in lines for place in line["places"]):
        legend.append("! doubtful: its row says why")
    if len(measured) < sum(len(line.places) for line in found.lines):
        legend.append("empty: not measured there")
    return {
        "caption": f"{what} by density and candidate",
        "columns": found.candidates,
        "lines": lines,
        "legend": legend,
    }


def _place(place: Standing, anchors: Anchors, usual: float | None) -> dict[str, str]:
    """Entry of one place: sign and word of its mark, the quantity, doubts, and its row's place.

    Doubts are about times, which have a `usual` deviation.
    """
    row, (sign, meaning) = place.row, MARKS[place.mark]
    doubt = "; ".join(outliers.warnings_of_record(row, usual)) if row is not None and usual is not None else ""
    anchor = anchors.get(id(row), "") if row is not None else ""
    return {"text": place.text, "mark": place.mark, "sign": sign, "meaning": meaning, "doubt": doubt, "anchor": anchor}


def plain(data: Mapping[str, Any]) -> Table:
    """Return a table of `tables` as one of text alone, its legend below the caption."""
    rows = [
        [line["density"], *(_in_text(place) for place in line["places"]), line["verdict"]] for line in data["lines"]
    ]
    return table_of(("density", *data["columns"], "verdict"), rows) | {"legend": "; ".join(data["legend"])}


def _in_text(place: Mapping[str, str]) -> str:
    """Return a cell as plain text: sign, value, and "!" if in doubt."""
    return " ".join(filter(None, (place["sign"], place["text"], "!" if place["doubt"] else "")))
