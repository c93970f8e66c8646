"""From rows to cells: which rows measure the same thing, and which cells may be compared."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from workbench import settings, store
from workbench.analysis import words
from workbench.analysis.intervals import known, median_interval

Row = Mapping[str, Any]

CELL = (*(name for name in store.SETTINGS if name != "round"), "machine")
LINE = (*settings.columns("line"), "index_dtype")
GROUP = (*settings.columns("group"), "machine")
ADDED = ("device", "launch", "intercept")
"""Settings that older rows do not have: they were measured with what is usual."""
MEMORY = ("bytes_predicted", "bytes_held", "bytes_peak")
NATURAL = "the data's own"
_POOLED = tuple(name for name, column in store.COLUMNS.items() if column.kind in ("number", "integer"))
_EXTRA = ("rounds", "rounds_failed", "round_values")


class Group(NamedTuple):
    """Cells alike but for density and configuration: what one chart shows. `label` tells it from the other groups."""

    settings: dict[str, Any]
    label: str
    rows: list[dict[str, Any]]


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a frame as dictionaries, null as None, numbers as Python's own."""
    values = {name: frame[name].astype(object).tolist() for name in frame.columns}
    values = {name: [None if _is_null(value) else value for value in column] for name, column in values.items()}
    return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


def on_its_device(row: dict[str, Any]) -> dict[str, Any]:
    """The row with the memory of where it trains: on a CUDA device the device's, as far as it was measured there."""
    if row["device"] != "cuda":
        return row
    there = {name: row[f"bytes_device_{name.removeprefix('bytes_')}"] for name in MEMORY}
    return row | {name: value for name, value in there.items() if value is not None}


def latest(frame: pd.DataFrame) -> pd.DataFrame:
    """One row a cell: what is known now of each cell of a frame whose rows are in the order they were written.

    The rows of a cell agree in all settings but `round`, and in the machine. Where some of them are ok
    - failures are left out and counted in `rounds_failed`,
    - only rows of the newest code (`source`) count, and of a round measured twice the later row,
    - rounds are pooled: samples are joined, `seconds_step` and its interval are recomputed from them, every other
      number is the median over rounds, and the rest is as in the last round.
    Where none is ok the last failure stands. Bytes are those of the device that trained (`on_its_device`).
    Three columns are added: `rounds` pooled, `rounds_failed`, and `round_values`, a dictionary of each number's values
    by round. A frame that has these columns is returned as it is.
    """
    if "rounds" in frame.columns:
        return frame
    cells: dict[tuple, list[dict[str, Any]]] = {}
    for row in map(on_its_device, records(frame)):
        cells.setdefault(tuple(row[name] for name in CELL), []).append(row)
    pooled = [_pool(rows) for rows in cells.values()]
    result = store.frame({name: row[name] for name in store.COLUMNS} for row in pooled)
    for name in _EXTRA:
        result[name] = pd.Series([row[name] for row in pooled], dtype="object" if name == "round_values" else "int64")
    return result


def _pool(rows: list[dict[str, Any]]) -> dict[str, Any]:
    good = [row for row in rows if row["status"] == "ok"]
    failed = {"rounds_failed": len(rows) - len(good)}
    if not good:
        return rows[-1] | {"rounds": 0, "round_values": {}} | failed
    rounds = list({row["round"]: row for row in good if row["source"] == good[-1]["source"]}.values())
    values = {name: [row[name] for row in rounds if row[name] is not None] for name in _POOLED}
    medians = {name: _middle(values[name], rounds[-1][name]) for name in _POOLED}
    samples = [sample for row in rounds for sample in row["samples"] or () if sample is not None]
    pooled = rounds[-1] | medians | failed | {"rounds": len(rounds), "round_values": values}
    if samples:
        keys = ("seconds_step", "seconds_step_low", "seconds_step_high")
        pooled |= {"samples": samples} | dict(zip(keys, median_interval(samples), strict=True))
    return pooled


def _middle(values: list[float], last: Any) -> Any:
    if not values:
        return None
    return type(last)(np.median(values)) if last is not None else float(np.median(values))


def groups(frame: pd.DataFrame) -> list[Group]:
    """The groups of a frame, largest first (equal sizes in the order written); rows as `latest` pools them."""
    by_key: dict[tuple, list[dict[str, Any]]] = {}
    # Whole rows first: one that failed early may not know the sizes of its data; it joins a group that agrees so far.
    for row in sorted(records(latest(frame)), key=lambda row: row["status"] != "ok"):
        row |= {name: settings.usual(name, row[name]) for name in ADDED}
        key = tuple(row[name] for name in GROUP)
        by_key.setdefault(next((other for other in by_key if _agrees(key, other)), key), []).append(row)
    varying = [name for i, name in enumerate(GROUP) if len({key[i] for key in by_key}) > 1]
    ordered = sorted(by_key.items(), key=lambda item: -len(item[1]))
    named = [(dict(zip(GROUP, key, strict=True)), rows) for key, rows in ordered]
    return [Group(group, _label(group, varying), rows) for group, rows in named]


def _label(group: Row, varying: list[str]) -> str:
    """What tells a group from the others; only one without an intercept among some with one has nothing to tell."""
    return describe(group, varying or GROUP) or "without an intercept"


def _agrees(key: tuple, other: tuple) -> bool:
    return all(mine is None or mine == theirs for mine, theirs in zip(key, other, strict=True))


def describe(group: Row, names: Iterable[str] = GROUP) -> str:
    """The settings of a group in words, of those named.

    >>> describe({"width": 16, "batch_rows": 256, "threads": 1}, ("width", "batch_rows", "threads"))
    'width 16, 256 rows a batch, 1 thread'
    """
    say = {setting.column or setting.name: setting.say for setting in settings.SETTINGS}
    say["machine"] = lambda machine: f"machine {machine}"
    return ", ".join(filter(None, (say[name](group[name]) for name in names if group.get(name) is not None)))


def line_of(row: Row) -> dict[str, Any]:
    """The settings of a row that tell its line from the others of a chart."""
    return {name: row[name] for name in LINE}


def sparse_lines(rows: Iterable[Row]) -> dict[tuple, list[Row]]:
    """Rows of each sparse configuration, in the order met; the dense baseline is left out."""
    lines: dict[tuple, list[Row]] = {}
    for row in rows:
        if not is_dense(row):
            lines.setdefault(tuple(line_of(row).values()), []).append(row)
    return lines


def dense_rows(rows: Iterable[Row]) -> list[Row]:
    """Rows of the dense baseline."""
    return [row for row in rows if is_dense(row)]


def is_dense(row: Row) -> bool:
    """Whether a row is the baseline: dense data, dense kernels."""
    return row["format"] == "dense"


def density_of(row: Row) -> float | None:
    """The density to draw a row at: measured, else asked for (a row that failed was not measured)."""
    measured = known(row["density_measured"])
    return known(row["density"]) if measured is None else measured


def density_label(row: Row) -> str:
    """The density asked for, in words."""
    return NATURAL if row["density"] is None else words.density(row["density"])


def by_density(rows: Iterable[Row]) -> dict[float | None, list[Row]]:
    """Rows by the density asked for, which is what pairs a sparse row with its baseline."""
    rows_at: dict[float | None, list[Row]] = {}
    for row in rows:
        rows_at.setdefault(row["density"], []).append(row)
    return rows_at


def failures(rows: Iterable[Row]) -> Counter:
    """How many rows are not ok, by (status, reason)."""
    return Counter((row["status"], row["reason"] or "") for row in rows if row["status"] != "ok")


def _is_null(value: Any) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))
