"""The grid of cells: a row for each comparison, a column for each contender, in each what came of it so far."""

import functools
import html
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from workbench.analysis import words
from workbench.panels.pages import SIGNS
from workbench.panels.state import LabState
from workbench.settings import BY_NAME
from workbench.sweep import grid, run_folder
from workbench.sweep.schedule import ALIKE, comparisons

WAITING, AT_WORK = "·", "▶ now"
NUMBER = ("ok", "disturbed")
"""Statuses of rows that may have a time."""


class Planned(NamedTuple):
    """The cells of a run: contenders in words, and of each comparison its name and its cells' keys by contender."""

    contenders: tuple[str, ...]
    comparisons: tuple[tuple[str, Mapping[str, str]], ...]


@functools.lru_cache(4)
def planned(folder: Path, _stamp: tuple[int, int]) -> Planned | None:
    """The cells of the run in `folder`, made once for a state of its spec's file; None where it cannot be read."""
    try:
        spec = run_folder.read_spec(folder)
    except run_folder.RunError:
        return None
    groups = comparisons(grid.expand(spec).cells)
    firsts = [next(iter(group.cells.values())).model_dump() for group in groups]
    names = [name for name in ALIKE if len({str(first[name]) for first in firsts}) > 1]
    rows = tuple(
        (_name_of(first, names), {words.short_line(cell.model_dump()): key for key, cell in group.cells.items()})
        for first, group in zip(firsts, groups, strict=True)
    )
    return Planned(tuple(dict.fromkeys(name for _, keys in rows for name in keys)), rows)


def _name_of(cell: Mapping[str, Any], names: Iterable[str]) -> str:
    """Name that tells a comparison from the others of its run."""
    shown = [_said(name, cell[name]) for name in names]
    return ", ".join(filter(None, shown)) or "all"


def _said(name: str, value: Any) -> str:
    if value is None:
        return f"natural {name.replace('_', ' ')}" if name != "density" else "natural"
    return words.density(value) if name == "density" else BY_NAME[name].say(value)


def of_run(state: LabState) -> str:
    """The grid of the run in a study's folder, folded once it is over; nothing where there is none."""
    path = state.folder / run_folder.SPEC
    if state.progress is None or not path.exists():
        return ""
    known = path.stat()
    cells = planned(state.folder, (known.st_size, known.st_mtime_ns))
    if cells is None:
        return ""
    now = state.progress.current_key if state.alive else ""
    shown = table(cells, state.rows, now)
    return f"<details{' open' if state.alive else ''}><summary>Settings of this run</summary>{shown}</details>"


def table(cells: Planned, rows: Sequence[Mapping[str, Any]], now: str = "") -> str:
    """HTML of the grid; `now` is the key of the cell at work. What failed unfolds its reason at a click."""
    by_key: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_key.setdefault(row["key"], []).append(row)
    reasons: dict[str, int] = {}
    body = "".join(
        f'<tr><th scope="row">{html.escape(name)}</th>'
        + "".join(_cell(keys.get(contender), by_key, now, reasons) for contender in cells.contenders)
        + "</tr>"
        for name, keys in cells.comparisons
    )
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in ("Settings", *cells.contenders))
    listed = "".join(f"<li>{html.escape(reason)}</li>" for reason in reasons)
    below = f'<ol class="wb-reasons" aria-label="Reasons">{listed}</ol>' if listed else ""
    shown = f'<table class="wb-cells"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="scroll">{shown}</div>{below}'


def _cell(key: str | None, by_key: Mapping[str, Sequence[Mapping[str, Any]]], now: str, reasons: dict[str, int]) -> str:
    """One cell: median time and rounds of what was measured, else the status of the newest row."""
    if key is None:
        return '<td title="not part of this comparison"></td>'
    rows = by_key.get(key, ())
    told, status = _told(rows, reasons)
    if key == now:
        told = f"{told} {AT_WORK}" if rows else AT_WORK
    return f'<td class="wb-cell-{status}">{told}</td>'


def _told(rows: Sequence[Mapping[str, Any]], reasons: dict[str, int]) -> tuple[str, str]:
    if not rows:
        return WAITING, "waiting"
    good = [row["seconds_step"] for row in rows if row["status"] == "ok" and row["seconds_step"]]
    newest = rows[-1]
    status = "ok" if good else newest["status"]
    sign = f"{SIGNS.get(status, '')} "
    told = f"{words.seconds(median(good), 2)} × {len(good)}" if good else html.escape(status)
    if newest["reason"] and newest["status"] not in NUMBER:
        number = reasons.setdefault(newest["reason"], len(reasons) + 1)
        reason = html.escape(newest["reason"])
        return f"<details><summary>{sign}{told} [{number}]</summary>{reason}</details>", status
    return sign + told, status
