"""What is shown of an exploration, as HTML: gains at a density, rows behind a cell, outliers. All text is escaped."""

import html
from collections.abc import Iterator, Mapping
from typing import Any

from workbench.analysis import cells, doubts, gains, words
from workbench.analysis.outliers import outliers
from workbench.analysis.told import MEASURES
from workbench.panels import pages
from workbench.panels.exploring import Exploration
from workbench.panels.live import copied
from workbench.reports.cell_rows import command_of, samples_text

COLUMNS = ("Round", "Result", "Time a step", "Peak memory", "Other programs", "Tries", "Measured", "Run", "Reason")
NO_GAINS = "No sparse configuration was measured against dense here."
NO_CELLS = "No cell is left; choose other filters."
NO_OUTLIERS = "Nothing lies off: every cell has a result, its rounds agree to 10 %, and none was disturbed."


def gains_table(state: Exploration) -> str:
    """What each configuration gains at the density asked for, and up to which density it gains what is asked for."""
    density = state.density
    rows = list(_gains(state, density)) if density else []
    if not rows or density is None:
        return f"<p>{NO_GAINS}</p>"
    here, asked = f"{words.density(density)} density", f"{words.number(state.factor)} x"
    columns = ("Configuration", "In", f"At {here}", "Known", f"{asked} or more")
    return pages.table(columns, rows, f"Sparse against dense at {here}, and where sparse gains {asked} or more")


def _gains(state: Exploration, density: float) -> Iterator[tuple[str, ...]]:
    groups = cells.groups(state.frame)
    for group in groups:
        where = f" ({group.label})" if len(groups) > 1 else ""
        for measure in MEASURES:
            for line in gains.of_group(group, measure):
                gain = gains.at_density(line, density)
                told = "; ".join(filter(None, (gain.text, line.doubt)))
                source = gain.source if gain.ratio else ""
                reach = gains.reach(line, state.factor).sentence
                yield f"{words.short_line(line.rows[0])}{where}", MEASURES[measure][0], told, source, reach


def behind(state: Exploration) -> str:
    """The rows behind the cell that is chosen: what it came to, what is doubtful, each trial, samples, the command."""
    found = state.cells.get(state.cell)
    if found is None:
        return f"<p>{NO_CELLS}</p>"
    row = found.pooled
    number = words.measured_quantity(row, "seconds_step")
    memory = words.measured_quantity(row, "bytes_peak")
    numbers = [f"{number} a step" if number else "", f"{memory} at most" if memory else "", _rounds(row)]
    result = f"{pages.SIGNS.get(row['status'], '')} {row['status']}"
    head = f"<p><strong>{html.escape(state.cell)}</strong><br>{html.escape(_join(result, *numbers))}</p>"
    reasons = [*([row["reason"]] if row["reason"] else []), *doubts.of_row(row)]
    listed = "".join(f"<li>{html.escape(reason)}</li>" for reason in reasons)
    trials = pages.table(COLUMNS, map(_trial, found.rows), f"{words.plural(len(found.rows), 'trial')} of this cell")
    samples = samples_text(row)
    shown = f"<details><summary>Samples</summary><p>{html.escape(samples)}</p></details>" if samples else ""
    command = f"<p>Train this cell again with: {copied(command_of(dict(row)))}</p>"
    return f"{head}{f'<ul>{listed}</ul>' if listed else ''}{trials}{shown}{command}"


def _rounds(row: Mapping[str, Any]) -> str:
    return f"mean of {words.plural(row['rounds'], 'round')}" if row["rounds"] else ""


def _join(*parts: str) -> str:
    return " · ".join(filter(None, parts))


def _trial(row: Mapping[str, Any]) -> tuple[str, ...]:
    def shown(value: Any, tell: Any) -> str:
        return "" if value is None else tell(value)

    return (
        shown(row["round"], lambda number: str(number + 1)),
        f"{pages.SIGNS.get(row['status'], '')} {row['status']}",
        shown(row["seconds_step"], words.seconds),
        shown(row["bytes_peak"], words.bytes_),
        shown(row["busy_others"], lambda share: words.density(share, 2)),
        shown(row["tries"], str),
        row["time"] or "",
        row["run"] or "",
        row["reason"] or "",
    )


def outliers_table(state: Exploration) -> str:
    """Rounds that lie off, cells to doubt, cells without a result; each with its reason."""
    named = {id(one.pooled): name for name, one in state.cells.items()}
    found = outliers([one.pooled for one in state.cells.values()])
    if not found:
        return f"<p>{NO_OUTLIERS if named else NO_CELLS}</p>"
    rows = [(named[id(one.row)], one.place or "all rounds", one.reason) for one in found]
    return pages.table(("Cell", "Where", "Why"), rows, f"{words.plural(len(rows), 'finding')} to look at")
