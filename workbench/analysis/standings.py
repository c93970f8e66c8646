"""The table of densities by candidates with marks.

The marks are words and signs, never colours alone. All of it comes from `compare.contests`, as every verdict does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from workbench.analysis import configurations, formatting
from workbench.analysis.answers import Shown, is_shown, letters_of
from workbench.analysis.compare import Contest, barred_of_group, contests_of_group, worse_of_group
from workbench.analysis.configurations import line_key
from workbench.analysis.intervals import interval_of
from workbench.analysis.verdict_text import missing_reason, verdict_with_factor

Record = Mapping[str, Any]
MARKS = {
    "wins": ("✓", "the winner"),
    "alike": ("≈", "cannot be distinguished from the winner"),
    "level": ("=", "the best sparse and the best dense are within 10 %"),
    "inconclusive": ("?", "the best sparse and dense, not decided"),
    "worse": ("†", "trained a worse model, so it may not win"),
    "other": ("‡", "trains another model than dense, so it may not win"),
    "": ("", "not the best of its side"),
}
"""Each mark's sign, and what it means."""


class Standing(NamedTuple):
    """One candidate at one density: its row, None if it was not measured, what to show, and a key of MARKS."""

    row: Record | None
    text: str
    mark: str = ""


class Line(NamedTuple):
    """One density: its label, a place for each candidate, who wins in words, and the contest behind that."""

    density: str
    places: tuple[Standing, ...]
    verdict: str
    contest: Contest


@dataclass(frozen=True)
class Standings:
    """The densities of a group, rising, by the letters of its candidates, in one measure."""

    measure: str
    candidates: tuple[str, ...]
    lines: tuple[Line, ...]

    @property
    def marks(self) -> tuple[str, ...]:
        """The keys of MARKS that occur in the table, in the order of MARKS."""
        met = {place.mark for line in self.lines for place in line.places}
        return tuple(mark for mark in MARKS if mark and mark in met)


def make_standings(group: configurations.Group, measure: str, shown: Shown = None) -> Standings:
    """Return the table of a group in `measure`: densities ascending by configurations, sparse ones first.

    Of records that differ only in seed or learning rate the best one counts. Only the configurations `shown` are in the
    table; verdicts and estimates are those of all. O(records).
    """
    rows = [row for row in group.rows if is_shown(row, shown)]
    found_lines, letters = configurations.group_by(rows, line_key), letters_of(group)
    lines = {line: found_lines[line] for line in letters if line in found_lines}
    found = contests_of_group(group, measure)
    at = configurations.by_density(rows)
    labels = {one.asked_density: one for one in found}
    ordered = sorted(at, key=lambda density: (labels[density].density or 0.0) if density in labels else 0.0)
    marks = dict.fromkeys(barred_of_group(group), "other") | dict.fromkeys(worse_of_group(group), "worse")
    met = [density for density in ordered if density in labels]
    table = [_line_of(lines, at[density], labels[density], marks, measure) for density in met]
    return Standings(measure, tuple(letters[line] for line in lines), tuple(table))


def _line_of(
    lines: Mapping[tuple, Sequence[Record]],
    at: Sequence[Record],
    contest: Contest,
    barred: Mapping[int, str],
    measure: str,
) -> Line:
    """Return the table row of one density: a standing for each configuration in `lines`, and the winner.

    `at` are the records of the density, `barred` has the marks of records that may not win by their id(). `contest` is
    that of the density in `measure`.
    """
    places = tuple(_make_standing([row for row in at if line_key(row) == line], contest, measure) for line in lines)
    places = tuple(
        place._replace(mark=barred[id(place.row)]) if place.row is not None and id(place.row) in barred else place
        for place in places
    )
    asked = at[0]
    label = configurations.density_label(asked)
    if asked["density"] is None and contest.density:
        label = f"{formatting.format_density(contest.density)}, {label}"
    return Line(label, places, verdict_with_factor(contest, measure), contest)


def _make_standing(rows: Sequence[Record], contest: Contest, measure: str) -> Standing:
    """Return the table cell of one configuration: value or reason of failure, and a mark; empty without records.

    `rows` are its records at the density, `contest` is that of the density in `measure`.
    """
    if not rows:
        return Standing(None, "")
    named = next((row for row in rows if row is contest.sparse or row is contest.dense), None)
    alike = next((row for row in rows if any(row is other for other in contest.level)), None)
    known = [(interval.value, k) for k, row in enumerate(rows) if (interval := interval_of(row, measure))]
    row = named or alike or rows[min(known, default=(0.0, 0))[1]]
    quantity = formatting.format_measured_quantity(row, measure)
    text = (
        quantity
        if quantity and row["status"] in configurations.NUMBERED
        else ", ".join(filter(None, (missing_reason(row), quantity)))
    )
    return Standing(row, text, _mark(row, contest, named is not None, alike is not None))


def _mark(row: Record, contest: Contest, is_named: bool, is_alike: bool) -> str:
    """Return the mark of a table cell, a key of MARKS, from the contest of its density.

    `is_named` says that the record is one of the contest's two, `is_alike` that it is equivalent to the winner.
    """
    if not is_named:
        return "alike" if is_alike and contest.verdict == "sparse" else ""
    if contest.verdict in ("sparse", "dense"):
        winner = contest.sparse if contest.verdict == "sparse" else contest.dense
        return "wins" if row is winner else ""
    return contest.verdict if row["status"] in configurations.NUMBERED else ""
