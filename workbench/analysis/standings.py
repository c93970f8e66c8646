"""The verdict as a person takes it in: a headline number, and a table of densities by candidates with marks.

The marks are words and signs, never colours alone. All of it comes from `compare.contests`, as every verdict does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from workbench.analysis import configurations, execution, formatting
from workbench.analysis.advisor import headline
from workbench.analysis.answers import Shown, answered_density, is_shown
from workbench.analysis.compare import Contest, barred_of_group, contests_of_group, worse_of_group
from workbench.analysis.configurations import line_key
from workbench.analysis.grades import format_factor, format_probability, grade_comparison
from workbench.analysis.intervals import interval_of
from workbench.analysis.verdict_text import MEASURES

Record = Mapping[str, Any]
MARKS = {
    "wins": ("✓", "the winner"),
    "alike": ("≈", "cannot be distinguished from the winner"),
    "level": ("=", "the best sparse and the best dense are within 10 %"),
    "inconclusive": ("?", "the best sparse and dense, not decided: the verdict says why"),
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
    """The densities of a group, rising, by its candidates, dense first, in one measure."""

    measure: str
    candidates: tuple[str, ...]
    lines: tuple[Line, ...]

    @property
    def marks(self) -> tuple[str, ...]:
        """The keys of MARKS that occur in the table, in the order of MARKS."""
        met = {place.mark for line in self.lines for place in line.places}
        return tuple(mark for mark in MARKS if mark and mark in met)


class Headline(NamedTuple):
    """The number to begin with: of which measure, the number in words, where it holds, and the rows that it is of.

    `executed` says how both sides were held and executed, and what an unequal execution could change.
    """

    measure: str
    number: str
    where: str
    finding: str
    rows: tuple[Record, ...]
    executed: str = ""


def make_standings(group: configurations.Group, measure: str, shown: Shown = None) -> Standings:
    """Return the table of a group in `measure`: densities ascending by configurations, dense ones first.

    Of records that differ only in seed or learning rate the best one counts. Only the configurations `shown` are in the
    table; verdicts and estimates are those of all. O(records).
    """
    rows = [row for row in group.rows if is_shown(row, shown)]
    lines = {**configurations.dense_lines(rows), **configurations.sparse_lines(rows)}
    found = contests_of_group(group, measure)
    at = configurations.by_density(rows)
    labels = {one.asked_density: one for one in found}
    ordered = sorted(at, key=lambda density: (labels[density].density or 0.0) if density in labels else 0.0)
    marks = dict.fromkeys(barred_of_group(group), "other") | dict.fromkeys(worse_of_group(group), "worse")
    met = [density for density in ordered if density in labels]
    table = [_line_of(lines, at[density], labels[density], marks, measure) for density in met]
    return Standings(
        measure, tuple(formatting.short_configuration_name(rows[0]) for rows in lines.values()), tuple(table)
    )


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
    return Line(label, places, winner_text(contest, measure), contest)


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
    text = quantity if quantity and row["status"] in configurations.NUMBERED else _missing_reason(row, quantity)
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


def _missing_reason(row: Record, reached: str) -> str:
    """Return why a record has no number, such as "no memory: needs 12 GB" or "none: timeout"; `reached` is appended."""
    if row["bytes_needed"]:
        return f"no memory: needs {formatting.format_bytes(row['bytes_needed'], 2)}"
    if row["status"] == "disturbed":
        return "disturbed"
    return ", ".join(filter(None, (f"none: {row['status']}", reached)))


def winner_text(contest: Contest, measure: str) -> str:
    """Return the winner and its factor, the probable side, or why there is none, such as "sparse, 3 times faster".

    `measure` is a key of MEASURES.
    """
    better = MEASURES[measure][2]
    if contest.verdict in ("sparse", "dense"):
        if contest.ratio is None:
            return f"{contest.verdict}, the other has none"
        return f"{contest.verdict}, {format_factor(contest)} {better}"
    if contest.likely and contest.ratio:
        return f"probably {contest.likely}, {format_probability(contest.ratio.probability)}"
    return "equal (within 10 %)" if contest.verdict == "level" else f"inconclusive: {contest.why}"


def headline_of(group: configurations.Group, measure: str) -> Headline:
    """Return the leading number of a group in `measure`, with where it holds and the records behind it.

    It is from the density that the answer of the group is about (`answers.answered_density`); "Not known" without a
    ratio there.
    """
    asked, finding = answered_density(group), headline(group, measure)[0]
    one = next(one for one in contests_of_group(group, measure) if one.asked_density == asked)
    if one.ratio is None:
        return Headline(measure, "Not known", "", finding, ())
    sparse, dense, _ = one.known
    each = " a step" if measure.startswith("seconds") else ""
    values = [formatting.format_measured_quantity(row, measure) for row in (sparse, dense)]
    sides = [
        f"{formatting.name_configuration(row)}: {value + each if value else 'not measured'}"
        for row, value in zip((sparse, dense), values, strict=True)
    ]
    if all(values):  # the unit once, at the end
        sides[0] = sides[0].removesuffix(each)
    own = ", the data's own density" if one.asked_density is None else " density"
    where = f"At {formatting.format_density(one.density or 0.0)}{own}. {'; '.join(sides)}."
    executed = execution.describe_sides(one)
    return Headline(measure, _number(one, measure), where, finding, (sparse, dense), executed)


def _number(contest: Contest, measure: str) -> str:
    """Return the grade of a contest as text with a capital letter, such as "Sparse is 3 times faster"."""
    return formatting.capitalized(grade_comparison(contest, measure))
