"""The verdict of a sweep for a terminal: a number for each measure, tables of densities by candidates, then words."""

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console, Group
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from workbench.analysis.standings import MARKS, Headline, Line, Standing, Standings
from workbench.analysis.verdict_text import MEASURES
from workbench.command.conclusion import Conclusion

CAPTIONS = {"seconds_step": "Time a step", "bytes_peak": "Peak memory"}
DENSE = "dense"
UNBOUNDED = 10_000
"""Columns of a terminal on which every table fits."""
SIDES = ("best sparse", "best dense")
"""The columns of a table whose contenders have no room beside each other."""


def format_verdict(ended: Conclusion, console: Console, width: int) -> Group:
    """Return the verdict to print: numbers, tables of at most `width` columns, words."""
    said = "\n".join(filter(None, (ended.verdict, ended.certainty)))
    tables = [part for found in ended.standings for part in (*_table_of(found, console, width), Text())]
    return Group(*map(_headline, ended.headlines), Text(), *tables, Text(said))


def _headline(headline: Headline) -> Text:
    """Return a headline number as styled text."""
    executed = (f"\n  {headline.executed}" if headline.executed else "", "dim")
    return Text.assemble(
        (f"{MEASURES[headline.measure][0].capitalize()}: {headline.number}. ", "bold"), headline.where, executed
    )


def _table_of(found: Standings, console: Console, width: int) -> Iterable[Table | Text]:
    """Yield the table of one measure and its legend; the best of each side alone where all candidates are too wide."""
    caption = CAPTIONS[found.measure]
    full = _table(
        caption, found.candidates, found.lines, [[_mark_cell(place) for place in line.places] for line in found.lines]
    )
    if Measurement.get(console, console.options.update_width(UNBOUNDED), full).maximum > width:
        full = _table(caption, SIDES, found.lines, _best_of_sides(found))
    yield full
    if found.marks:
        yield Text("; ".join(" ".join(MARKS[mark]) for mark in found.marks), style="dim")


def _table(caption: str, columns: Sequence[str], lines: Sequence[Line], places: Sequence[Sequence[str]]) -> Table:
    """Return the table of densities by candidates."""
    table = Table("density", *columns, "verdict", title=caption, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for line, shown in zip(lines, places, strict=True):
        table.add_row(line.density, *shown, line.verdict.partition(":")[0])
    return table


def _best_of_sides(found: Standings) -> list[list[str]]:
    """Return the best place of each side, with its candidate's name where that is another one than above."""
    rows, above = [], ["", DENSE]
    for line in found.lines:
        best = [_best(found, line, row) for row in (line.contest.sparse, line.contest.dense)]
        named = zip(best, above, strict=True)
        rows.append([", ".join(filter(None, (text, name if name != other else ""))) for (text, name), other in named])
        above = [name or other for (_, name), other in zip(best, above, strict=True)]
    return rows


def _best(found: Standings, line: Line, row: Any) -> tuple[str, str]:
    """Return the place of a row in its line, and the candidate's name; both empty if it has none."""
    named = zip(found.candidates, line.places, strict=True)
    return next(((_mark_cell(place), name) for name, place in named if row is not None and place.row is row), ("", ""))


def _mark_cell(place: Standing) -> str:
    """Return the mark and the text of a cell."""
    return " ".join(filter(None, (MARKS[place.mark][0], place.text)))
