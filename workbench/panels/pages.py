"""Pieces of HTML that panel and notebook share: the latest rows, break-evens, advice. All text in them is escaped."""

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from workbench.analysis import answer_text, breakeven, configurations, formatting
from workbench.analysis.answers import Shown, answered_groups
from workbench.analysis.configurations import density_of, on_its_device
from workbench.analysis.verdict_text import MEASURES
from workbench.reports import report_tables
from workbench.reports.page import unbroken

SIGNS = {"ok": "✓", "skipped": "–", "unsupported": "⊘", "failed": "✗", "timeout": "⧖", "memory": "▣", "wrong": "≠"}
SIGNS |= {"stopped": "■", "disturbed": "≈"}
"""Next to each status, so that colour is never the only sign."""

OUTDATED = "These results are of other settings."

MOST_ROWS = 12
LONGEST = 160


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """Return an HTML table of column titles and rows of texts, all escaped; `caption` "" for none."""
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    caption = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return f'<div class="scroll"><table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def wrapped(shown: str) -> str:
    """Return the HTML of a table in an element whose texts may wrap, so that it fits the panel."""
    return f'<div class="wb-wrap">{shown}</div>'


def latest_rows(rows: Sequence[Mapping[str, Any]], most: int = MOST_ROWS) -> str:
    """Return an HTML table of the newest `most` records, newest first; a caption says so if there are none."""
    shown = list(rows)[-most:][::-1]
    caption = f"Latest trials: {len(shown)} of {len(rows)}" if rows else "No trial has ended yet."
    columns = ("Result", "Configuration", "Density", "Width", "Time a step", "Peak memory", "Loss", "Round", "Reason")
    return wrapped(table(columns, map(_cells, shown), caption))


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of a record in the table of latest records as texts, "" for missing values."""

    def shown(value: Any, tell: Any) -> str:
        """Return `tell(value)`; "" for None."""
        return "" if value is None else tell(value)

    row = on_its_device(dict(row))
    return (
        f"{SIGNS.get(row['status'], '')} {row['status']}",
        formatting.name_configuration(row),
        shown(density_of(row), formatting.format_density),
        shown(row["width"], str),
        shown(row["seconds_step"], formatting.format_seconds),
        shown(row["bytes_peak"], formatting.format_bytes),
        shown(row["loss_last"], formatting.format_number),
        shown(row["round"], lambda number: str(number + 1)),
        _short(row["reason"] or ""),
    )


def _short(text: str) -> str:
    """Return the text, cut to `LONGEST` characters with an ellipsis."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def break_evens(frame: pd.DataFrame) -> str:
    """Return an HTML table of the densities where each sparse configuration stops winning, in time and in memory.

    Each row has a sentence, which says why if none is known.
    """
    rows = [
        (formatting.name_configuration(even.settings), MEASURES[measure][0], even.place or "none", even.sentence)
        for measure in MEASURES
        for even in breakeven(frame, measure)
    ]
    caption = "Where the better side changes." if rows else "No sparse configuration has a result yet."
    return wrapped(table(("Configuration", "In", "Break-even", "What was found"), rows, caption))


def answer(frame: pd.DataFrame, shown: Shown = None) -> tuple[str, str]:
    """Return the answer of the records as HTML and as plain text, with tables of the configurations `shown`."""
    pooled = configurations.pool_rounds(frame)
    text = answer_text(pooled, shown)
    groups = answered_groups(pooled, shown)
    tables = report_tables.tables(groups[0], {}, shown) if groups else []
    opened = zip(tables, ("open", ""), strict=False)  # time, then memory
    shown_tables = "".join(_standings(*table) for table in opened)
    return text.html + shown_tables + (_candidates(groups[0]) if groups else ""), str(text)


def _candidates(group: configurations.Group) -> str:
    """Return HTML of a foldable table of the letters of all candidates, of which the answer names a few."""
    found = report_tables.candidates(group)
    shown = wrapped(table(found["columns"], found["rows"]))
    return f"<details><summary>Letters of the candidates</summary>{shown}</details>"


def _standings(found: Mapping[str, Any], opened: str) -> str:
    """Return HTML of a foldable table of densities by candidates with its legend; `opened` is "open" or ""."""
    plain = report_tables.plain(found)
    legend = f"<p>{html.escape(plain['legend'])}</p>" if plain["legend"] else ""
    rows = [[unbroken(cell) for cell in row] for row in plain["rows"]]
    shown = wrapped(table(plain["columns"], rows))
    return f"<details {opened}><summary>{html.escape(found['caption'])}</summary>{shown}{legend}</details>"


def counts(rows: Mapping[str, int]) -> str:
    """Return a text of the counts by status, each with its symbol.

    >>> counts({"ok": 3, "memory": 1})
    '✓ 3 ok, ▣ 1 memory'
    """
    return ", ".join(f"{SIGNS.get(status, '')} {count} {status}" for status, count in rows.items())
