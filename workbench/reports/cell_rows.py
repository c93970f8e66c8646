"""The table of every configuration: its numbers, the samples behind them, and the command that trains it again."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from workbench import settings
from workbench.analysis import configurations, formatting, outliers
from workbench.analysis.intervals import values_of
from workbench.analysis.outliers import usual_deviation_of_records

MOST_SAMPLES = 24
"""Samples of a cell that are shown; all are in the file of rows."""
COLUMNS = ("configuration", "density", "status", "time a step", "peak memory", "spread", "quality", "energy a step")
NUMERIC = ("density", "time a step", "peak memory", "spread", "quality", "energy a step", "group")


def anchors(groups: Sequence[configurations.Group]) -> dict[int, str]:
    """Return the place on the page of each row of these groups, by its id; the rows must be kept."""
    rows = [row for group in groups for row in group.rows]
    return {id(row): f"cell-{number}" for number, row in enumerate(rows, 1)}


def table(groups: Sequence[configurations.Group], places: Mapping[int, str]) -> dict[str, Any]:
    """Return all configurations as the template takes them, without columns that no configuration fills; O(rows *
    samples shown).

    Several groups have numbers, which are a column; `groups` says what they are.
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
    for line in lines:
        line["cells"] = [line["cells"][k] for k in filled]
    return {"columns": [(columns[k], columns[k] in NUMERIC) for k in filled], "lines": lines, "groups": labels}


def _line(row: configurations.Record, anchor: str, group: int | None, usual: float) -> dict[str, Any]:
    """Return a configuration's row as values for the template: cells, warnings, rounds, command."""
    deviation = outliers.log_spread(row)
    shown = [
        (formatting.name_configuration(row), ""),
        (configurations.density_label(row), _order(configurations.density_of(row))),
        (row["status"], ""),
        (formatting.format_measured_quantity(row, "seconds_step"), _order(row["seconds_step"])),
        (formatting.format_measured_quantity(row, "bytes_peak"), _order(row["bytes_peak"])),
        ("" if deviation is None else formatting.format_density(deviation, 2), _order(deviation)),
        (_quality(row), _order(row["quality"])),
        (_energy(row), _order(row.get("joules_step"))),
        *([(str(group), str(group))] if group is not None else []),
    ]
    return {
        "anchor": anchor,
        "cells": shown,
        "doubts": list(outliers.warnings_of_record(row, usual)),
        "reason": row["reason"] or "",
        "rounds": list(_rounds(row)),
        "samples": samples_text(row),
        "command": command_of(row),
    }


def _order(value: Any) -> str:
    """Return the key that a column is sorted by."""
    return "" if value is None else f"{value:.9g}"


def _quality(row: configurations.Record) -> str:
    """Return the quality of a configuration with its name, "" if unknown."""
    return (
        ""
        if row["quality"] is None
        else f"{formatting.format_number(row['quality'])} {row['quality_name'] or ''}".strip()
    )


def _energy(row: configurations.Record) -> str:
    """Return the energy of a step, or why it is unknown."""
    if row.get("joules_step") is None:
        return row.get("meter") or ""
    return f"{formatting.format_number(row['joules_step'], 2)} J"


def _rounds(row: configurations.Record) -> list[str]:
    """Return each run's rounds: the number of each trial, in the order of the rounds."""
    runs: dict[str, list[tuple[int, float]]] = {}
    for (run, number), value in values_of(row, "seconds_step").items():
        runs.setdefault(run, []).append((number, value))
    return [
        f"{run}: {', '.join(formatting.format_seconds(value) for _, value in sorted(own))}" for run, own in runs.items()
    ]


def samples_text(row: configurations.Record) -> str:
    """Return the samples of a trial, or of the run that is shown of a configuration, evenly picked where there are
    many."""
    samples = [sample for sample in row["samples"] or () if sample is not None]
    every = -(-len(samples) // MOST_SAMPLES) or 1
    shown = ", ".join(f"{1e6 * sample:.4g}" for sample in samples[::every])
    left = f" (one in {every} of {len(samples):,})" if every > 1 else ""
    return f"{shown} µs{left}" if shown else ""


def command_of(row: configurations.Record) -> str:
    """Return the command that trains one configuration again, with every setting that is not as usual.

    >>> from collections import defaultdict
    >>> command_of(defaultdict(lambda: None, format="csr", update="lazy", batch_rows=512, seed=0, serial=True))
    'workbench train --batch-rows 512 --format csr --update lazy --serial'
    """
    words_ = ["workbench", "train"]
    for setting in settings.SETTINGS:
        value = row[setting.column or setting.name]
        usual = setting.default if setting.train is None else setting.train
        is_named = setting.name in ("format", "engine", "gradient", "update")
        if value is None or (value == usual and not is_named) or (setting.name == "epochs" and not value):
            continue
        option = setting.name.replace("_", "-")
        if setting.type is bool:
            words_.append(f"--{option}" if value else f"--no-{option}")
        else:
            words_ += [f"--{option}", f"{value:g}" if isinstance(value, float) else str(value)]
    return shlex.join(words_)
