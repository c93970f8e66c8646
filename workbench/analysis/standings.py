"""The verdict as a person takes it in: a headline number, and a table of densities by contenders with marks.

The marks are words and signs, never colours alone. All of it comes from `compare.contests`, as every verdict does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from workbench.analysis import cells, execution, words
from workbench.analysis.advisor import headline
from workbench.analysis.breakeven import BreakEven
from workbench.analysis.compare import Contest, contests, trained_worse
from workbench.analysis.grades import gain, grade, percent
from workbench.analysis.told import MEASURES

Row = Mapping[str, Any]
MARKS = {
    "wins": ("✓", "the winner"),
    "alike": ("≈", "cannot be told from the winner"),
    "level": ("=", "the best sparse and the best dense are within 10 %"),
    "undecided": ("?", "the best sparse and the best dense, which the rounds do not tell apart"),
    "worse": ("†", "trained a worse model, so it may not win"),
    "": ("", "not the best of its side"),
}
"""Each mark's sign, and what it means."""


class Place(NamedTuple):
    """One contender at one density: its row, None where it was not measured, what to show, and a key of MARKS."""

    row: Row | None
    text: str
    mark: str = ""


class Line(NamedTuple):
    """One density: its label, a place for each contender, who wins in words, and the contest behind that."""

    density: str
    places: tuple[Place, ...]
    verdict: str
    contest: Contest


@dataclass(frozen=True)
class Standings:
    """The densities of a group, rising, by its contenders, dense first, in one measure."""

    measure: str
    contenders: tuple[str, ...]
    lines: tuple[Line, ...]

    @property
    def marks(self) -> tuple[str, ...]:
        """The keys of MARKS that occur, in the order of MARKS."""
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
    rows: tuple[Row, ...]
    executed: str = ""


def standings(group: cells.Group, measure: str) -> Standings:
    """The table of one group; of rows that differ in seed or learning rate alone the best stands for all. O(rows)."""
    lines = {**cells.dense_lines(group.rows), **cells.sparse_lines(group.rows)}
    found = contests(group.rows, measure)
    at = cells.by_density(group.rows)
    labels = {_asked(one): one for one in found}
    ordered = sorted(at, key=lambda density: _rank(labels[density]) if density in labels else 0.0)
    worse = {id(row) for row, _ in trained_worse(group.rows)}
    met = [density for density in ordered if density in labels]
    table = [_line_of(lines, at[density], labels[density], worse, measure) for density in met]
    return Standings(measure, tuple(words.short_line(rows[0]) for rows in lines.values()), tuple(table))


def _asked(one: Contest) -> float | None:
    row = one.sparse or one.dense
    return row["density"] if row else one.density


def _rank(one: Contest) -> float:
    return one.density or 0.0


def _line(row: Row) -> tuple:
    return tuple(cells.line_of(row).values())


def _line_of(
    lines: Mapping[tuple, Sequence[Row]], at: Sequence[Row], one: Contest, worse: set[int], measure: str
) -> Line:
    places = tuple(_place([row for row in at if _line(row) == line], one, measure) for line in lines)
    places = tuple(
        place._replace(mark="worse") if place.row is not None and id(place.row) in worse else place for place in places
    )
    asked = at[0]
    label = cells.density_label(asked)
    if asked["density"] is None and one.density:
        label = f"{words.density(one.density)}, {label}"
    return Line(label, places, verdict(one, measure), one)


def _place(rows: Sequence[Row], one: Contest, measure: str) -> Place:
    if not rows:
        return Place(None, "")
    named = next((row for row in rows if row is one.sparse or row is one.dense), None)
    alike = next((row for row in rows if any(row is other for other in one.level)), None)
    row = named or alike or min(rows, key=lambda row: (row.get(measure) is None, row.get(measure) or 0.0))
    told = words.measured_quantity(row, measure)
    text = told if told and row["status"] in cells.NUMBERED else _without(row, told)
    return Place(row, text, _mark(row, one, named is not None, alike is not None))


def _mark(row: Row, one: Contest, is_named: bool, is_alike: bool) -> str:
    if not is_named:
        return "alike" if is_alike and one.verdict == "sparse" else ""
    if one.verdict in ("sparse", "dense"):
        winner = one.sparse if one.verdict == "sparse" else one.dense
        return "wins" if row is winner else ""
    return one.verdict if row["status"] in cells.NUMBERED else ""


def _without(row: Row, reached: str) -> str:
    """Reason for a missing number, short enough for a table; of what ran out of time what it `reached`."""
    if row["bytes_needed"]:
        return f"no memory: needs {words.bytes_(row['bytes_needed'], 2)}"
    if row["status"] == "disturbed":
        return "disturbed"
    return ", ".join(filter(None, (f"none: {row['status']}", reached)))


def verdict(one: Contest, measure: str) -> str:
    """Winner and its lead, in a few words."""
    better = MEASURES[measure][2]
    if one.verdict in ("sparse", "dense"):
        if one.ratio is None:
            return f"{one.verdict}, the other has none"
        return f"{one.verdict}, {gain(one)} {better}"
    if one.likely and one.ratio:
        return f"probably {one.likely}, {percent(one.ratio.probability)}"
    return "level, within 10 %" if one.verdict == "level" else f"undecided: {one.why}"


def headline_of(group: cells.Group, measure: str, evens: Sequence[BreakEven]) -> Headline:
    """The number at the data's own density where that is decided, else at the lowest density that is, else none."""
    found = contests(group.rows, measure)
    finding = headline(group, measure, evens)[0]
    decided = [one for one in found if one.ratio and one.verdict in ("sparse", "dense")]
    natural = [one for one in decided if _asked(one) is None]
    one = next(iter([*natural, *decided, *(one for one in found if one.ratio), *found]), None)
    if one is None or one.ratio is None:
        return Headline(measure, "Not known", "", finding, ())
    sparse, dense, _ = one.known
    quantities = [f"{words.line(row)}: {words.measured_quantity(row, measure)}" for row in (sparse, dense)]
    each = " a step" if measure.startswith("seconds") else ""
    own = ", the data's own density" if _asked(one) is None else " density"
    where = f"At {words.density(one.density or 0.0)}{own}. {'; '.join(quantities)}{each}."
    executed = execution.of_contest(one, group.rows, measure)
    return Headline(measure, _number(one, measure), where, finding, (sparse, dense), executed)


def _number(one: Contest, measure: str) -> str:
    text = grade(one, measure)
    return text[:1].upper() + text[1:]
