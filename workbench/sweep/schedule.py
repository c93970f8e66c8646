"""The schedule of a sweep: comparisons in rounds, until each is decided or has all its rounds.

A comparison is the cells that are alike but for the contender; in a round they are measured one right after the other,
in an order that turns, so that a slow spell of the machine hits all of them. Every comparison has its round, in an
order drawn anew, then the next round begins: rounds of one comparison are far apart in time.

In a race contenders that are far behind the fastest have no more rounds. Rounds go on until the fastest of all is known
to a tenth; then the best of each side meet, until sparse against dense is decided. Updates that train another model
than an exact one beside them are measured once, and set no pace: they are told of, not chosen.

A round that was not ended when a sweep stopped is not continued by a resume, since its other half would not be measured
next to the first; its rows stay, and a whole round with the next number takes its place.
"""

import random
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from workbench import settings
from workbench.measure.racing import far_behind, is_open
from workbench.measure.rounds import LOOKS, Decision, Times, decide, next_look, rounds_due, turned
from workbench.sweep import grid
from workbench.sweep.spec import Cell, Spec

Row = Mapping[str, Any]

HOPELESS = ("memory", "unsupported", "wrong")
"""Statuses that another trial would not change."""
LOST = ("failed", "timeout")
"""Statuses after which a cell waits for the next start of the sweep."""
FINAL = ("ok", *HOPELESS)
"""Statuses of rows that a resumed sweep takes as they are."""

ALIKE = (*settings.names(role="group"), *settings.names(role="axis"))
"""Settings in which the cells of a comparison agree."""


@dataclass(frozen=True)
class Task:
    """One trial to do."""

    cell: Cell
    key: str
    round: int


@dataclass(frozen=True)
class Comparison:
    """Cells alike but for the contender, by the key of their rows.

    `baselines` are the keys of those to be beaten, `unfaithful` of those that train another model than dense: lazy ones
    beside an exact one.
    """

    cells: Mapping[str, Cell]
    baselines: frozenset[str]
    unfaithful: frozenset[str] = frozenset()


def comparisons(cells: Iterable[Cell]) -> list[Comparison]:
    """The comparisons of cells, in the order met; dense is the baseline."""
    alike: dict[tuple, dict[str, Cell]] = {}
    for cell in cells:
        alike.setdefault(tuple(getattr(cell, name) for name in ALIKE), {})[grid.key(cell)] = cell
    return [
        Comparison(
            by_key, frozenset(key for key, cell in by_key.items() if cell.format == "dense"), _unfaithful(by_key)
        )
        for by_key in alike.values()
    ]


def _unfaithful(cells: Mapping[str, Cell]) -> frozenset[str]:
    """Keys of lazy cells beside which there is an exact one: only where lazy is not exact is there any."""
    rest = {key: cell.model_dump_json(exclude={"update"}) for key, cell in cells.items()}
    exact = {rest[key] for key, cell in cells.items() if cell.update == "exact"}
    return frozenset(key for key, cell in cells.items() if cell.update == "lazy" and rest[key] in exact)


class Course:
    """A comparison on its way: the numbers of its rounds, who is out, and how many rounds are due."""

    def __init__(self, comparison: Comparison, most: int = LOOKS[-1], is_race: bool = False) -> None:
        self.comparison, self.most, self.is_race = comparison, most, is_race
        self.seconds: dict[Hashable, dict[tuple[Hashable, int], float]] = {key: {} for key in comparison.cells}
        self.out: set[str] = set()
        self.again: set[str] = set()
        self.measured = 0
        self.next_round = 0

    def resume(self, rows: Iterable[Row]) -> int:
        """Take stored rows, in the order written; gives how many of them answer."""
        rows = [row for row in rows if row["key"] in self.comparison.cells]
        newest = {row["key"]: row["status"] for row in rows if row["status"] != "stopped"}
        self.out = {key for key, status in newest.items() if status in HOPELESS}
        self.again = {key for key, status in newest.items() if status in LOST}
        self.next_round = max((row["round"] for row in rows), default=-1) + 1
        kept: dict[int, list[Row]] = {}
        for row in rows:
            if row["status"] in FINAL:
                kept.setdefault(row["round"], []).append(row)
        answered = 0
        for _, of_round in sorted(kept.items()):
            if self._is_whole({row["key"] for row in of_round}):
                self.measured, answered = self.measured + 1, answered + len(of_round)
                for row in of_round:
                    self._take(row)
        return answered if self.measured else len(self.out)

    def _is_whole(self, keys: set[str]) -> bool:
        """Whether a round has all that are still in."""
        needed = set(self.running()) - self.again
        return bool(needed) and needed <= keys

    def add(self, row: Row) -> None:
        """Take the row of a trial of the round at work; one without a number is out, or waits for the next start."""
        self.again.discard(row["key"])
        if row["status"] in (*HOPELESS, *LOST):
            self.out.add(row["key"])
        self._take(row)

    def _take(self, row: Row) -> None:
        if row["status"] == "ok" and row["seconds_step"]:
            self.seconds[row["key"]][row["run"], row["round"]] = row["seconds_step"]

    def round(self) -> list[Task]:
        """The trials of the next round, in its order; the round counts as measured from now on."""
        number, keys = self.next_round, self.running()
        self.next_round, self.measured = number + 1, self.measured + 1
        keys = self._by_pace(keys, number) if self.is_race and number else turned(keys, number)
        return [Task(self.comparison.cells[key], key, number) for key in keys]

    def _by_pace(self, keys: Sequence[str], number: int) -> list[str]:
        """The two in front in turns, then those never timed, then the rest: what time cuts off decides least."""
        timed = sorted((key for key in keys if self.seconds[key]), key=lambda key: fmean(self.seconds[key].values()))
        return [*turned(timed[:2], number), *(key for key in keys if not self.seconds[key]), *timed[2:]]

    def running(self) -> list[str]:
        """Keys of the cells that take part in the next round."""
        able = [key for key in self.comparison.cells if key not in self.out]
        return self._racing() if self.is_race and self.measured else able

    def _racing(self) -> list[str]:
        """Keys of those that may still be the fastest; once that one is known, of the best of each side."""
        if ahead := self._ahead():
            return ahead
        decision = self.decision()
        both = {decision.sparse, decision.dense} - self.out
        return [key for key in self.comparison.cells if key in both]

    def _ahead(self) -> list[str]:
        """Keys of those that may still be the fastest, none where it is known to a tenth which one is."""
        paced: Times = {key: self.seconds[key] for key in self.comparison.cells if key in self._pacing()}
        behind = far_behind(paced)
        ahead: Times = {key: seconds for key, seconds in paced.items() if key not in behind}
        is_one_untimed = self.measured < LOOKS[0] and not all(ahead.values())
        return [str(key) for key in ahead] if is_one_untimed or is_open(ahead) else []

    def _pacing(self) -> set[str]:
        """Keys of those that can be chosen."""
        return set(self.comparison.cells) - self.out - self.comparison.unfaithful

    def decision(self) -> Decision:
        """The best sparse contender against the best baseline, as far as it is known."""
        sides: tuple[dict, dict] = ({}, {})
        for key in self.comparison.cells:
            if key not in self.comparison.unfaithful:
                sides[key in self.comparison.baselines][key] = self.seconds[key]
        return decide(*sides)

    def due(self) -> int:
        """Rounds up to the next look; 0 where the comparison is over."""
        if len(self.out) == len(self.comparison.cells):
            return 0
        return max(self._due(), bool(self.again))

    def _due(self) -> int:
        """Rounds up to the next look, whoever is measured again anyway."""
        decision = self.decision()
        if self.is_race and self.measured:
            if self._ahead():
                return next_look(self.measured, self.most)
            if decision.sparse is None or decision.dense is None:
                return 0
        return rounds_due(decision, self.measured, self.most)

    def trials(self, rounds: int) -> int:
        """Number of trials of so many rounds."""
        return rounds * len(self.running())


@dataclass
class Schedule:
    """Work of a run, how much of it was done before, and the settings that were left out, by reason."""

    courses: list[Course] = field(default_factory=list)
    reused: int = 0
    seed: int = 0
    dropped: Counter = field(default_factory=Counter)
    working: Course | None = None

    @classmethod
    def of(cls, spec: Spec, stored: Iterable[Row]) -> "Schedule":
        """The schedule of a spec where these rows are stored."""
        cells = grid.expand(spec)
        schedule = cls(seed=spec.seed, dropped=cells.dropped)
        schedule.extend(cells.cells, spec, stored)
        return schedule

    def extend(self, cells: Iterable[Cell], spec: Spec, stored: Iterable[Row]) -> None:
        """Add the comparisons of cells, as far as they are not in these rows."""
        courses = [Course(comparison, spec.measure.rounds, spec.measure.race) for comparison in comparisons(cells)]
        by_key = {key: course for course in courses for key in course.comparison.cells}
        rows: dict[int, list[Row]] = {}
        for row in stored:
            if row["key"] in by_key:
                rows.setdefault(id(by_key[row["key"]]), []).append(row)
        self.reused += sum(course.resume(rows.get(id(course), ())) for course in courses)
        self.courses += courses

    @property
    def cells(self) -> dict[str, Cell]:
        """All cells by key."""
        return {key: cell for course in self.courses for key, cell in course.comparison.cells.items()}

    @property
    def keys(self) -> list[str]:
        """Keys of all cells."""
        return list(self.cells)

    def rounds(self) -> Iterator[list[Task]]:
        """Round after round of the comparisons that are not over; `add` each row before the next is asked for."""
        turn = 0
        while due := [course for course in self.courses if course.due()]:
            random.Random(f"{self.seed} {turn}").shuffle(due)
            for course in due:
                self.working = course
                yield course.round()
            turn += 1

    def add(self, row: Row) -> None:
        """Take the row of a task of the round at work."""
        assert self.working is not None, "rows belong to a round"
        self.working.add(row)

    @property
    def round_at_work(self) -> tuple[int, int]:
        """Number, from 1, of the round of its comparison at work, and the most there are; zeros before the first."""
        return (self.working.measured, self.working.most) if self.working is not None else (0, 0)

    def trials_due(self) -> int:
        """Trials up to the next look of every comparison; more where it decides nothing."""
        return sum(course.trials(course.due()) for course in self.courses)

    def trials_most(self) -> int:
        """Trials that are due where no look decides anything before the last."""
        return sum(course.trials(course.most - course.measured) for course in self.courses if course.due())
