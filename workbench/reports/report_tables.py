"""Tables of a report: headline numbers, densities by candidates, and every configuration with samples and command."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from workbench import settings
from workbench.analysis import configurations, formatting, outliers
from workbench.analysis.answers import Shown, letters_of
from workbench.analysis.compare import contests_of_group
from workbench.analysis.intervals import measured_interval_of, shown_value, values_of
from workbench.analysis.outliers import usual_deviation_of_records
from workbench.analysis.standings import MARKS, Standing, Standings, make_standings
from workbench.analysis.verdict_text import MEASURES, verdict_ranges
from workbench.reports.page import Table, table_of

# The top of a report: a headline number for each measure, and the table of densities by candidates with its marks.


Anchors = Mapping[int, str]
"""The place of a pooled row on the page, by its id."""


def answers_of_groups(groups: Sequence[configurations.Group]) -> Table:
    """Return a table with a row for each group: its settings, then the better sides over densities in each measure."""
    rows = [
        [group.label, *(verdict_ranges(contests_of_group(group, measure)) for measure in MEASURES)]
        for group in sorted(groups, key=lambda group: _natural(group.label))
    ]
    return table_of(("for", *(name for name, *_ in MEASURES.values())), rows)


def _natural(label: str) -> list[tuple[bool, int, str]]:
    """Return a sort key by which numbers in labels are compared as numbers."""
    parts = re.split(r"(\d+)", label)
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts]


def candidates(group: configurations.Group) -> Table:
    """Return the table of a group's candidates: letter and name."""
    letters = letters_of(group)
    named = {letters[configurations.line_key(row)]: formatting.name_configuration(row) for row in group.rows}
    return table_of(
        ("letter", "candidate"), sorted(named.items(), key=lambda item: (item[0][0] == "D", int(item[0][1:])))
    )


def tables(group: configurations.Group, anchors: Anchors, shown: Shown = None) -> list[dict[str, Any]]:
    """Return the table of densities by candidates of each measure, as values for the template.

    `anchors` has the anchor on the page of each record, by its id; `shown` are the configurations in the table.
    """
    return [_table(make_standings(group, measure, shown), anchors) for measure in MEASURES]


MOST_ACROSS = 6
"""Candidates that have a column each, at most, where fewer densities than candidates were measured; more have rows."""


def _table(found: Standings, anchors: Anchors) -> dict[str, Any]:
    """Return the table of densities by candidates as values for the template, transposed if it is too wide.

    A line has its `name`, an entry for each of the `columns`, and a text for each of the `last` columns.
    """
    timed = found.measure.startswith("seconds")
    measured = [place.row for line in found.lines for place in line.places if place.row is not None]
    usual = usual_deviation_of_records(measured)
    lines: list[dict[str, Any]] = [
        {
            "name": line.density,
            "last": [line.verdict],
            "places": [_place(place, anchors, usual if timed else None) for place in line.places],
        }
        for line in found.lines
    ]
    what = "Time a step" if timed else "Peak memory"
    legend = [f"{MARKS[mark][0]} {MARKS[mark][1]}" for mark in found.marks]
    if any(place["doubt"] for line in lines for place in line["places"]):
        legend.append("! uncertain: its record says why")
    if len(measured) < sum(len(line.places) for line in found.lines):
        legend.append("empty: not measured there")
    data = {"caption": f"{what} by density and candidate", "legend": legend}
    if len(lines) < len(found.candidates) > MOST_ACROSS:
        densities = [line["name"] for line in lines]
        return data | {
            "head": "configuration",
            "columns": densities,
            "last": [],
            "lines": _turn(lines, found.candidates),
        }
    return data | {"head": "density", "columns": found.candidates, "last": ["verdict"], "lines": lines}


def _turn(lines: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return lines by density transposed to lines by candidate name, with a last one of the verdicts."""
    found = [
        {"name": name, "last": [], "places": [line["places"][number] for line in lines]}
        for number, name in enumerate(names)
    ]
    nothing = dict.fromkeys(("sign", "meaning", "doubt", "anchor"), "")
    verdicts = [nothing | {"text": text, "mark": "said"} for line in lines for text in line["last"]]
    return [*found, {"name": "verdict", "last": [], "places": verdicts}]


def _place(place: Standing, anchors: Anchors, usual: float | None) -> dict[str, str]:
    """Return a table entry as a dict of texts: text, mark, sign, meaning, doubt and anchor of its record.

    Doubts are about times: `usual` is the usual deviation of these, None for memory.
    """
    row, (sign, meaning) = place.row, MARKS[place.mark]
    doubt = "; ".join(outliers.warnings_of_record(row, usual)) if row is not None and usual is not None else ""
    anchor = anchors.get(id(row), "") if row is not None else ""
    return {"text": place.text, "mark": place.mark, "sign": sign, "meaning": meaning, "doubt": doubt, "anchor": anchor}


def plain(data: Mapping[str, Any]) -> Table:
    """Return a table of `tables` with all entries as plain text and its legend joined."""
    rows = [[line["name"], *map(_in_text, line["places"]), *line["last"]] for line in data["lines"]]
    columns = data["head"], *data["columns"], *data["last"]
    return table_of(columns, rows) | {"legend": "; ".join(data["legend"])}


def _in_text(place: Mapping[str, str]) -> str:
    """Return an entry as plain text: sign, value, and "!" if in doubt."""
    return " ".join(filter(None, (place["sign"], place["text"], "!" if place["doubt"] else "")))


MOST_SAMPLES = 24
"""Samples of a cell that are shown; all are in the file of rows."""
ENERGY = "energy a step"
COLUMNS = ("configuration", "density", "status", "time a step", "measured", "peak memory", "spread", "quality", ENERGY)
NUMERIC = ("density", "time a step", "measured", "peak memory", "spread", "quality", ENERGY, "group")


def anchors(groups: Sequence[configurations.Group]) -> dict[int, str]:
    """Return {id(record): "cell-N"}, the anchor on the page of each record; keep the records alive."""
    rows = [row for group in groups for row in group.rows]
    return {id(row): f"cell-{number}" for number, row in enumerate(rows, 1)}


def table(groups: Sequence[configurations.Group], places: Mapping[int, str]) -> dict[str, Any]:
    """Return all records as values for the template, without columns that are empty everywhere.

    `places` are the records' anchors. With several groups a column has their number and "groups" their labels. O(rows *
    samples shown).
    """
    labels = [group.label for group in groups] if len(groups) > 1 else []
    columns = [*COLUMNS, *(["group"] if labels else [])]
    usual = usual_deviation_of_records(row for group in groups for row in group.rows)
    lines = [
        _line(row, places[id(row)], number if labels else None, usual)
        for number, group in enumerate(groups, 1)
        for row in group.rows
    ]
    filled = [k for k, _ in enumerate(columns) if any(line["cells"][k][0] for line in lines)]
    energies = {line["cells"][columns.index(ENERGY)] for line in lines}
    unmetered = next((text for text, order in energies if not order), "") if len(energies) == 1 < len(lines) else ""
    filled = [k for k in filled if not (unmetered and columns[k] == ENERGY)]
    for line in lines:
        line["cells"] = [line["cells"][k] for k in filled]
    runs = {run for line in lines for run, _ in line["rounds"]}
    only = runs.pop() if len(runs) == 1 else ""
    for line in lines:
        line["rounds"] = [f": {text}" if only else f" of run {run}: {text}" for run, text in line["rounds"]]
    kept = [(columns[k], columns[k] in NUMERIC) for k in filled]
    return {"columns": kept, "lines": lines, "groups": labels, "run": only, "energy": unmetered}


def _line(row: configurations.Record, anchor: str, group: int | None, usual: float) -> dict[str, Any]:
    """Return a record's line for the template: anchor, (text, sort key) cells, doubts, rounds, samples, command.

    `group` is the number of its group, None if there is one only; `usual` the usual deviation.
    """
    deviation = outliers.log_spread(row)
    shown = [
        (formatting.name_configuration(row), ""),
        (configurations.density_label(row), _order(configurations.density_of(row))),
        (row["status"], ""),
        (formatting.format_measured_quantity(row, "seconds_step"), _order(shown_value(row, "seconds_step"))),
        (_measured(row), _order(row["seconds_step"])),
        (formatting.format_measured_quantity(row, "bytes_peak"), _order(row["bytes_peak"])),
        ("" if deviation is None else formatting.format_density(deviation, 2), _order(deviation)),
        (_quality(row), _order(row["quality"])),
        (_energy(row), _order(row.get("joules_step"))),
        *([(str(group), "")] if group is not None else []),
    ]
    return {
        "anchor": anchor,
        "cells": shown,
        "doubts": list(outliers.warnings_of_record(row, usual)),
        "reason": row["reason"] or "",
        "rounds": list(_rounds(row)),
        "samples": samples_text(row),
        "command": settings.train_command(
            {setting.name: row[setting.column or setting.name] for setting in settings.SETTINGS}
        ),
    }


def _measured(row: configurations.Record) -> str:
    """Return the mean of the measured times of a record, as it is without the other candidates; "" without a time."""
    known = measured_interval_of(row, "seconds_step")
    return formatting.format_measured(*known[:3], formatting.format_seconds) if known else ""


def _order(value: Any) -> str:
    """Return a number as text for sorting a column in the page; "" for None."""
    return "" if value is None else f"{value:.6g}"


def _quality(row: configurations.Record) -> str:
    """Return the quality of a record with the measure's name; "" if unknown."""
    return (
        ""
        if row["quality"] is None
        else f"{formatting.format_number(row['quality'])} {row['quality_name'] or ''}".strip()
    )


def _energy(row: configurations.Record) -> str:
    """Return the energy of a step as text, else why it is unknown."""
    if row.get("joules_step") is None:
        return row.get("meter") or ""
    return f"{formatting.format_number(row['joules_step'], 2)} J"


def _rounds(row: configurations.Record) -> list[tuple[str, str]]:
    """Return (run, "1.2 ms, 1.3 ms, ...") for each run of a record: the trials' times in the order of rounds."""
    runs = configurations.group_by(values_of(row, "seconds_step").items(), lambda item: item[0][0])
    return [(run, ", ".join(formatting.format_seconds(value) for _, value in sorted(own))) for run, own in runs.items()]


def samples_text(row: configurations.Record) -> str:
    """Return the samples of a record in µs as text, of many only evenly picked ones; "" without any."""
    samples = [sample for sample in row["samples"] or () if sample is not None]
    every = -(-len(samples) // MOST_SAMPLES) or 1
    shown = ", ".join(f"{1e6 * sample:.4g}" for sample in samples[::every])
    left = f" (one in {every} of {len(samples):,})" if every > 1 else ""
    return f"{shown} µs{left}" if shown else ""
