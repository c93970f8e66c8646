"""Selection that a chart against density shows: one group, its lines, its dense candidates, its break-evens."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from workbench.analysis import cells, words
from workbench.analysis.breakeven import BreakEven, of_group
from workbench.analysis.compare import LEVEL, contests
from workbench.plots import style

MOST_BASELINES = 3
"""Dense candidates that are all drawn; of more only those that are the best somewhere."""


@dataclass(frozen=True)
class Shown:
    """Part of a frame that a chart shows: one group, its sparse lines of one update or all, its break-evens.

    Of rows that differ in seed or learning rate alone, the best stands for all, as in the break-evens.
    """

    measure: str
    group: cells.Group
    lines: list[list[cells.Row]]
    evens: list[BreakEven]

    @classmethod
    def of(cls, frame: pd.DataFrame, measure: str, group: str | None, update: str) -> "Shown":
        """Selection by the chosen values of the controls."""
        picked = style.pick(frame, group)
        lines = [rows for rows in cells.sparse_lines(picked.rows).values() if update in ("all", rows[0]["update"])]
        return cls(measure, picked, [_standing(rows, measure) for rows in lines], of_group(picked, measure))

    @property
    def dense_lines(self) -> list[list[cells.Row]]:
        """The rows of each dense candidate."""
        return [_standing(rows, self.measure) for rows in cells.dense_lines(self.group.rows).values()]

    @property
    def baselines(self) -> list[list[cells.Row]]:
        """The dense candidates that are drawn: all of a few; of more the best of those whose data are held alike."""
        lines = self.dense_lines
        if len(lines) <= MOST_BASELINES:
            return lines
        held: dict[str, list[list[cells.Row]]] = {}
        for rows in lines:
            held.setdefault(cells.held(rows[0]), []).append(rows)
        return [rows for alike in held.values() for rows in self._best_of(alike)]

    def _best_of(self, lines: Sequence[list[cells.Row]]) -> list[list[cells.Row]]:
        """The line that is the least at most densities, and those that are less by more than 10 % at another one."""
        best = _standing([row for rows in lines for row in rows], self.measure)
        least = {row["density"]: row[self.measure] for row in style.drawable(best, self.measure)}
        near = 1.0 if self.measure.startswith("seconds") else LEVEL  # memory is alike, whatever computes
        wins = [sum(row[self.measure] <= near * least[row["density"]] for row in style.drawable(rows, self.measure))
                for rows in lines]  # fmt: skip
        first = lines[wins.index(max(wins))]
        usual = {row["density"]: row[self.measure] for row in style.drawable(first, self.measure)}
        far = [row for row in best if LEVEL * (row[self.measure] or 0.0) < usual.get(row["density"], math.inf)]
        return [rows for rows in lines if rows is first or any(row is one for row in rows for one in far)]

    @property
    def dense(self) -> list[cells.Row]:
        """The rows of all dense candidates."""
        return [row for rows in self.dense_lines for row in rows]

    @property
    def rows(self) -> list[cells.Row]:
        """All rows that are shown or counted."""
        return [*self.dense, *(row for rows in self.lines for row in rows)]

    @property
    def single(self) -> bool:
        """Whether one density is all there is: then bars are drawn."""
        return len({row["density"] for row in self.rows}) < 2

    def even_of(self, row: cells.Row) -> BreakEven | None:
        """The break-even of a row's configuration."""
        return next((even for even in self.evens if even.line == cells.line_of(row)), None)

    def label(self, row: cells.Row) -> str:
        """The legend's text: configuration and break-even."""
        even = self.even_of(row)
        place = f", break-even {even.place.removesuffix(' density')}" if even and even.place else ""
        return f"{words.short_line(row)}{place}"

    def best(self) -> list[BreakEven]:
        """The break-even of the configuration that the advice names; empty where that one has none."""
        wins = [contest.sparse for contest in contests(self.group.rows, self.measure) if contest.verdict == "sparse"]
        best = self.even_of(wins[-1]) if wins and wins[-1] is not None else None
        return [even for even in self.crossing() if even is best]

    def crossing(self) -> list[BreakEven]:
        """Break-evens of the lines shown, the highest first."""
        evens = [self.even_of(rows[0]) for rows in self.lines]
        return sorted(
            (even for even in evens if even and even.status == "crossing"), key=lambda even: -(even.high or 0)
        )


def _standing(rows: Sequence[cells.Row], measure: str) -> list[cells.Row]:
    """One row a density, that of the least measure; one without a result where none has it."""
    best = [min(at, key=lambda row: _rank(row, measure)) for at in cells.by_density(rows).values()]
    return sorted(best, key=lambda row: cells.density_of(row) or 0.0)


def _rank(row: cells.Row, measure: str) -> tuple[bool, float]:
    return not style.drawable([row], measure), row[measure] or 0.0
