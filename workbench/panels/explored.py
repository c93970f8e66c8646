"""Results of an exploration as HTML: gains at a density, rows behind a cell, outliers. All text is escaped."""

import html
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from workbench.analysis import configurations, formatting, gains, quality_warnings
from workbench.analysis.outliers import find_outliers
from workbench.analysis.verdict_text import MEASURES
from workbench.panels import pages
from workbench.panels.exploring import Exploration
from workbench.panels.live import copied
from workbench.reports.cell_rows import command_of, samples_text

COLUMNS = ("Round", "Result", "Time a step", "Peak memory", "Other programs", "Tries", "Measured", "Run", "Reason")
NO_GAINS = "No sparse configuration was measured against dense here."
NO_CELLS = "No setting is left; choose other filters."
NO_OUTLIERS = "Nothing lies off: all have a result, none was disturbed, and no round is beyond the noise of all."


def gains_table(state: Exploration) -> str:
    """Return the table of the gain of each configuration at a density, and of the density up to which it gains a
    factor."""
    density = state.density
    found = list(_lines(state)) if density else []
    if not found or density is None:
        return f"<p>{NO_GAINS}</p>"
    here, asked = f"{formatting.format_density(density)} density", f"{formatting.format_number(state.factor)} x"
    names = [MEASURES[measure][0].capitalize() for measure in MEASURES]
    columns = ["Configuration", *(told for name in names for told in (f"{name} at {here}", f"{name}: {asked} or more"))]
    rows = [(name, *(told for line in lines for told in _gain(line, density, state.factor))) for name, lines in found]
    caption = f"Sparse against dense at {here}, and up to which density sparse gains {asked} or more"
    return pages.wrapped(pages.table(columns, rows, caption))


def _lines(state: Exploration) -> Iterator[tuple[str, tuple[gains.Line, ...]]]:
    """Yield each configuration of each group: what it is called, and itself in each measure."""
    groups = configurations.groups(state.frame)
    for group in groups:
        where = f" ({group.label})" if len(groups) > 1 else ""
        for lines in zip(*(gains.lines_of_group(group, measure) for measure in MEASURES), strict=True):
            yield f"{formatting.short_configuration_name(lines[0].rows[0])}{where}", lines


def _gain(line: gains.Line, density: float, factor: float) -> tuple[str, str]:
    """Return the gain of a configuration at a density, how that is known, what is doubtful.

    And how far a factor goes.
    """
    gain = gains.gain_at_density(line, density)
    source = gain.source if gain.ratio and gain.source != gains.MEASURED else ""
    told = gain.text.removeprefix("✓ ") if line.doubt else gain.text
    return "; ".join(filter(None, (told, source, line.doubt))), gains.highest_density_with_gain(line, factor).sentence


def behind(state: Exploration) -> str:
    """Return the rows behind the cell that is chosen.

    What it came to, what is doubtful, each trial, samples, the command.
    """
    found = state.cells.get(state.cell)
    if found is None:
        return f"<p>{NO_CELLS}</p>"
    row = found.pooled
    number = formatting.format_measured_quantity(row, "seconds_step")
    memory = formatting.format_measured_quantity(row, "bytes_peak")
    numbers = [f"{number} a step" if number else "", f"{memory} at most" if memory else "", _rounds(row)]
    result = f"{pages.SIGNS.get(row['status'], '')} {row['status']}"
    head = f"<p><strong>{html.escape(state.cell)}</strong><br>{html.escape(_join(result, *numbers))}</p>"
    reasons = [*([row["reason"]] if row["reason"] else []), *quality_warnings.warnings_of_record(row)]
    listed = "".join(f"<li>{html.escape(reason)}</li>" for reason in reasons)
    trials = _filled(
        [_trial(trial) for trial in found.rows], f"{formatting.format_count(len(found.rows), 'trial')} of this setting"
    )
    samples = samples_text(row)
    shown = f"<details><summary>Samples</summary><p>{html.escape(samples)}</p></details>" if samples else ""
    command = f"<p>Train with this setting again: {copied(command_of(dict(row)))}</p>"
    return f"{head}{f'<ul>{listed}</ul>' if listed else ''}{trials}{shown}{command}"


def _filled(rows: Sequence[Sequence[str]], caption: str) -> str:
    """Return a table of trials without the columns that none of them fills."""
    kept = [place for place, _ in enumerate(COLUMNS) if any(row[place] for row in rows)]
    shown = [[row[place] for place in kept] for row in rows]
    return pages.wrapped(pages.table([COLUMNS[place] for place in kept], shown, caption))


def _rounds(row: Mapping[str, Any]) -> str:
    """Return "mean of 3 rounds", or "" without rounds."""
    return f"mean of {formatting.format_count(row['rounds'], 'round')}" if row["rounds"] else ""


def _join(*parts: str) -> str:
    """Return the parts that are not empty, joined by a dot."""
    return " · ".join(filter(None, parts))


def _trial(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of a trial in the table of rounds, as text."""

    def shown(value: Any, tell: Any) -> str:
        return "" if value is None else tell(value)

    return (
        shown(row["round"], lambda number: str(number + 1)),
        f"{pages.SIGNS.get(row['status'], '')} {row['status']}",
        shown(row["seconds_step"], formatting.format_seconds),
        shown(row["bytes_peak"], formatting.format_bytes),
        shown(row["busy_others"], lambda share: formatting.format_density(share, 2)),
        shown(row["tries"], str),
        row["time"] or "",
        row["run"] or "",
        row["reason"] or "",
    )


def outliers_table(state: Exploration) -> str:
    """Return the rounds that lie off, cells to doubt, cells without a result; each with its reason."""
    named = {id(one.pooled): name for name, one in state.cells.items()}
    found = find_outliers([cell.pooled for cell in state.cells.values()])
    if not found:
        return f"<p>{NO_OUTLIERS if named else NO_CELLS}</p>"
    rows = [(named[id(one.row)], one.place or "all rounds", one.reason) for one in found]
    caption = f"{formatting.format_count(len(rows), 'finding')} to look at"
    return pages.wrapped(pages.table(("Setting", "Where", "Why"), rows, caption))
