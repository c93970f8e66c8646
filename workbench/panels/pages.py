"""Pieces of HTML that panel and notebook share: the latest rows, break-evens, advice. All text in them is escaped."""

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from workbench.analysis import Advice, advise, breakeven, configurations, formatting
from workbench.analysis.advisor import MEASURES
from workbench.analysis.answers import Shown, answered_groups
from workbench.analysis.configurations import density_of, on_its_device
from workbench.analysis.recommendation import Recommendation
from workbench.reports import report_tables
from workbench.reports.page import unbroken

SIGNS = {"ok": "✓", "skipped": "–", "unsupported": "⊘", "failed": "✗", "timeout": "⧖", "memory": "▣", "wrong": "≠"}
SIGNS |= {"stopped": "■", "disturbed": "≈"}
"""Next to each status, so that colour is never the only sign."""

LEFT = 'style="text-align: left"'
"""Notebooks align tables to the right."""

OUTDATED = "These results are of other settings."

MOST_ROWS = 12
LONGEST = 160


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """Return an HTML table of column titles and rows of texts, all escaped; `caption` "" for none."""
    head = "".join(f'<th scope="col" {LEFT}>{html.escape(name)}</th>' for name in columns)
    body = "".join(f"<tr>{''.join(f'<td {LEFT}>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    caption = f"<caption {LEFT}>{html.escape(caption)}</caption>" if caption else ""
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
        formatting.short_configuration_name(row),
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
        (formatting.short_configuration_name(even.settings), MEASURES[measure][0], even.place or "none", even.sentence)
        for measure in MEASURES
        for even in breakeven(frame, measure)
    ]
    caption = "Where the better side changes." if rows else "No sparse configuration has a result yet."
    return wrapped(table(("Configuration", "In", "Break-even", "What was found"), rows, caption))


def verdict(frame: pd.DataFrame) -> str:
    """Return HTML of the answer to whether sparse training pays: numbers and tables, then words."""
    pooled = configurations.pool_rounds(frame)
    return numbers(pooled) + _verdict_text(advise(pooled))


def verdict_with_grounds(frame: pd.DataFrame) -> tuple[str, str]:
    """Return the answer and the sentences that support it, as HTML and as plain text; pools and advises once."""
    pooled = configurations.pool_rounds(frame)
    advice = advise(pooled)
    return numbers(pooled) + _verdict_text(advice) + _list_of_grounds(advice), str(advice)


def numbers(frame: pd.DataFrame, shown: Shown = None) -> str:
    """Return HTML of a headline for time and one for memory, and a table for each; "" if nothing was compared.

    `shown` are the configurations in the tables.
    """
    groups = answered_groups(frame, shown)
    if not groups:
        return ""
    headlines = "".join(map(_headline, report_tables.headlines(groups[0], {})))
    opened = ("open", "")  # time, then memory
    tables = zip(report_tables.tables(groups[0], {}, shown), opened, strict=True)
    return f'<div class="wb-headlines">{headlines}</div>{"".join(_standings(*table) for table in tables)}'


def verdict_text(frame: pd.DataFrame, shown: Shown = None) -> str:
    """Return HTML of the answer in words, and of how certain it is, of the groups that have some of `shown`."""
    return _verdict_text(advise(frame, shown))


def _verdict_text(advice: Advice) -> str:
    """Return HTML of the verdict and the certainty of an advice."""
    sure = f'<p class="certainty">{html.escape(advice.certainty)}</p>' if advice.certainty else ""
    return f'<p class="verdict wb-told">{html.escape(advice.verdict)}</p>{sure}'


def recommendation_parts(recommendation: Recommendation) -> list[str]:
    """Return pieces of HTML: the headline of a recommendation, and its grounds."""
    parts = [f'<p class="verdict"><strong>{html.escape(recommendation.headline.text)}</strong></p>']
    items = "".join(f"<li>{html.escape(said.text)}</li>" for said in recommendation.grounds)
    parts += [f"<p><strong>Why</strong></p><ul>{items}</ul>"] if items else []
    return parts


def without_repetition(chart: str, text: str) -> str:
    """Return the chart's HTML without its caption if `text` has the same sentence, else unchanged."""
    before, found, after = chart.partition("<figcaption>")
    sentence, _, rest = after.partition("</figcaption>")
    return before + rest if found and sentence.strip() and sentence in text else chart


def _headline(one: Mapping[str, Any]) -> str:
    """Return HTML of one headline; `one` has the texts name, number, where and executed."""
    name, number, where, executed = (html.escape(one[part]) for part in ("name", "number", "where", "executed"))
    more = f"<br>{executed}" if executed else ""
    return f'<p><span>{name}</span><br><strong class="wb-number">{number}</strong><br>{where}{more}</p>'


def _standings(found: Mapping[str, Any], opened: str) -> str:
    """Return HTML of a foldable table of densities by candidates with its legend; `opened` is "open" or ""."""
    plain = report_tables.plain(found)
    legend = f"<p>{html.escape(plain['legend'])}</p>" if plain["legend"] else ""
    rows = [[unbroken(cell) for cell in row] for row in plain["rows"]]
    shown = wrapped(table(plain["columns"], rows))
    return f"<details {opened}><summary>{html.escape(found['caption'])}</summary>{shown}{legend}</details>"


def grounds(frame: pd.DataFrame) -> str:
    """Return HTML of a list of the sentences that support the verdict on these records."""
    return _list_of_grounds(advise(frame))


def _list_of_grounds(advice: Advice) -> str:
    """Return HTML of a list of the sentences that support an advice; a note if there are none."""
    grounds = advice.sentences[len([text for text in (advice.verdict, advice.certainty) if text]) :]
    items = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in grounds)
    return f"<ul>{items}</ul>" if items else "<p>Nothing was measured yet.</p>"


def counts(rows: Mapping[str, int]) -> str:
    """Return a text of the counts by status, each with its symbol.

    >>> counts({"ok": 3, "memory": 1})
    '✓ 3 ok, ▣ 1 memory'
    """
    return ", ".join(f"{SIGNS.get(status, '')} {count} {status}" for status, count in rows.items())
