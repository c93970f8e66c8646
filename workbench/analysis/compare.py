"""Sparse against dense at one density: a verdict from rounds, or the reason why there is none.

Time is judged by `measure.rounds`: ratios of neighbours within a round, runs combined by their ratios, the best of
several rivals paying for the choice. Memory varies little, and is judged by the intervals of `intervals.interval_of`.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from workbench.analysis import cells
from workbench.analysis.intervals import ONCE, Interval, interval_of, values_of
from workbench.analysis.worse import trained_worse
from workbench.measure.rounds import LEVEL, LOOKS, Ratio, Rounds, decide, outpaced, ratio_of

Row = Mapping[str, Any]

BUSY = "other programs were at work"
FEW = "fewer than four rounds"
HOLDS_ONE = "neither is surely better"
PARTLY = "a configuration that may be faster was not measured here"
NO_DENSE = "dense was not measured"
NO_SPARSE = "no sparse configuration was measured"
WORSE = "every sparse configuration trained a worse model"
NO_RESULT = "a side has no result"
APART = "no round has both"
REMEDY = {
    BUSY: "measure again while nothing else runs",
    FEW: "measure at least four rounds",
    HOLDS_ONE: "more rounds, or a quieter machine, tell smaller differences",
    ONCE: "measure at least two rounds",
    PARTLY: "measure all configurations at this density",
    NO_DENSE: "measure dense for the same cells",
    NO_SPARSE: "measure a sparse format for the same cells",
    WORSE: "measure a standard or an exact update",
    NO_RESULT: "see the reasons of the cells without a result",
    APART: "measure both in one run",
}
"""Why a contest is undecided, and what to do about it."""


class Contest(NamedTuple):
    """The best sparse row against the best dense one at one density, in one measure.

    `verdict` is sparse, dense, level (within 10 %) or undecided; `ratio` is dense / sparse, None where a side has no
    number; `why` is a key of REMEDY where it is undecided, else empty; `level` are the other sparse rows that win as
    well and cannot be told from the one named.
    """

    density: float | None
    sparse: Row | None
    dense: Row | None
    verdict: str
    ratio: Ratio | None = None
    why: str = ""
    level: tuple[Row, ...] = ()

    @property
    def known(self) -> tuple[Row, Row, Ratio]:
        """(sparse, dense, ratio) where both sides have a number; ValueError where not."""
        if self.sparse is None or self.dense is None or self.ratio is None:
            raise ValueError(f"A side of the contest at density {self.density} has no number ({self.why}).")
        return self.sparse, self.dense, self.ratio

    @property
    def visible(self) -> float | None:
        """The smallest factor between the two sides that these rounds could have told; None where they tell nothing."""
        enough = self.ratio is not None and self.why not in (FEW, ONCE, BUSY)
        return self.ratio.visible if enough and math.isfinite(self.ratio.visible) else None


def contests(rows: Iterable[Row], measure: str) -> list[Contest]:
    """Contests, by rising density of a group's rows, of the best sparse row that may win against the best dense one.

    Rows are as `cells.latest` pools them. Rows of a lazy update that trained to a worse model (`trained_worse`) may not
    win. No side wins if only some configurations of the other were measured, as at densities that were added around a
    break-even, and another may be faster. Of configurations that win alike at a density, the one that does at most
    densities stands for them. This is the only source of verdicts and ratios: what is said, drawn or listed of a
    density comes from here. O(rows * rounds).
    """
    rows = list(rows)
    worse = {id(row) for row, _ in trained_worse(rows)}
    met = [_meet_fairly(at, worse, measure) for at in cells.by_density(rows).values()]
    wins = Counter(
        line for contest, _ in met for line in {_line(row) for row in (contest.sparse, *contest.level) if row}
    )
    named = [_named(contest, ratios, wins) for contest, ratios in met]
    able = [row for row in rows if id(row) not in worse]
    return sorted((_unless_partly(one, able, measure) for one in named), key=lambda one: one.density or 0.0)


def _unless_partly(found: Contest, rows: Sequence[Row], measure: str) -> Contest:
    """The contest; undecided where a side would win, or be level, without a configuration of the other that may win.

    That is one which, at the density nearest to this one at which it was measured, the other side does not beat, and
    which no other one of its own side surely beats.
    """
    row = found.sparse or found.dense
    if found.verdict == "undecided" or row is None or not found.density:
        return found
    here = {_line(other) for other in rows if other["density"] == row["density"]}
    others = (other for other in rows if found.verdict != ("dense" if cells.is_dense(other) else "sparse"))
    absent = {line for other in others if (line := _line(other)) not in here}
    are_beaten = all(_beaten_nearest(line, rows, found.density, measure) for line in absent)
    return found if are_beaten else found._replace(verdict="undecided", why=PARTLY, level=())


def _beaten_nearest(line: tuple, rows: Sequence[Row], density: float, measure: str) -> bool:
    """Whether a configuration has lost at the density nearest to this one at which it has rows."""
    own = [row for row in rows if _line(row) == line]
    near = min(own, key=lambda row: abs(math.log((cells.density_of(row) or density) / density)))["density"]
    there = [row for row in rows if row["density"] == near]
    mine = [row for row in own if row["density"] == near]
    side, other = ("dense", "sparse") if cells.is_dense(mine[0]) else ("sparse", "dense")
    if not any(_line(row) == line for row in front(there, measure, side)):
        return True
    met = {"sparse": front(there, measure), "dense": cells.dense_rows(there)} | {side: mine}
    return contest(met["sparse"], met["dense"], measure).verdict == other


def front(rows: Iterable[Row], measure: str, side: str = "sparse") -> list[Row]:
    """The rows of one side at one density that may be its best there: those which no other one surely beats.

    Rows without a number in the measure are not among them. O(rows * rounds).
    """
    own = [row for row in rows if cells.is_dense(row) == (side == "dense")]
    if measure.startswith("seconds"):
        by_place = {place: times for place, row in enumerate(own) if (times := _times(row, measure))}
        behind = outpaced(by_place)
        return [own[place] for place in by_place if place not in behind]
    sizes = [(row, size) for row in own if row["status"] in cells.NUMBERED and (size := _size(row, measure))]
    least = min((size.high for _, size in sizes), default=0.0)
    return [row for row, size in sizes if size.low <= least]


def rivals_at(rows: Sequence[Row], worse: set[int], measure: str) -> int:
    """Count the contenders that the better side of a density was chosen from; rows of worse models are none."""
    able = [row for row in rows if id(row) not in worse]
    return rivals_of([row for row in able if not cells.is_dense(row)], cells.dense_rows(able), measure)


def rivals_of(first: Sequence[Row], second: Sequence[Row], measure: str) -> int:
    """Count the contenders with a time on the larger of two sides."""
    return max(sum(bool(_times(row, measure)) for row in side) for side in (first, second))


def contest(sparse: Sequence[Row], dense: Sequence[Row], measure: str, rivals: int = 1) -> Contest:
    """The best of some rows against the best of others, all of one density; smaller is better.

    `rivals` is how many contenders the density has, where these are some of them: with it the same two have the same
    interval, and the same verdict, wherever they are spoken of.

    A side that did not fit in memory loses to one that ran. Disturbed rows take no part in time: where a baseline has
    no others sparse cannot win, and where a side has no others nothing is decided.
    """
    return _meet(sparse, dense, measure, rivals)[0]


def verdict(sparse_row: Row, dense_row: Row, measure: str) -> str:
    """Better of two rows in a measure: sparse, dense, level or undecided."""
    return contest([sparse_row], [dense_row], measure).verdict


def _meet_fairly(at: Sequence[Row], worse: set[int], measure: str) -> tuple[Contest, dict[tuple, Ratio]]:
    """The contest of the rows at one density, without those sparse ones that trained a worse model."""
    sparse = [row for row in at if not cells.is_dense(row)]
    found, ratios = _meet([row for row in sparse if id(row) not in worse], cells.dense_rows(at), measure)
    return (found._replace(why=WORSE) if found.why == NO_SPARSE and sparse else found), ratios


def _meet(
    sparse: Sequence[Row], dense: Sequence[Row], measure: str, rivals: int = 1
) -> tuple[Contest, dict[tuple, Ratio]]:
    """A contest, and the ratio of each row that is named in it, by its line."""
    in_time = measure.startswith("seconds")
    found, ratios = _in_time(sparse, dense, measure, rivals) if in_time else _in_memory(sparse, dense, measure)
    densities = (cells.density_of(row) for row in (*sparse, *dense) if row["density_measured"] is not None)
    asked = next((row["density"] for row in (*sparse, *dense)), None)
    return found._replace(density=next(densities, asked)), ratios


def _named(found: Contest, ratios: Mapping[tuple, Ratio], wins: Mapping[tuple, int]) -> Contest:
    """The contest with the line that wins most often, of those that cannot be told apart, in the place of the best."""
    if not found.level:
        return found
    alike = [found.sparse, *found.level]
    sparse = max(alike, key=lambda row: wins[_line(row)])
    others = tuple(row for row in alike if row is not sparse)
    return found._replace(sparse=sparse, ratio=ratios[_line(sparse)], level=others)


def _in_time(
    sparse: Sequence[Row], dense: Sequence[Row], measure: str, rivals: int
) -> tuple[Contest, dict[tuple, Ratio]]:
    sides = [{k: times for k, row in enumerate(side) if (times := _times(row, measure))} for side in (sparse, dense)]
    decision = decide(*sides, rivals)
    best = _standing(sparse) if decision.sparse is None else sparse[decision.sparse]
    base = _standing(dense) if decision.dense is None else dense[decision.dense]
    if decision.ratio is None:
        return _without_ratio(best, base, "disturbed"), {}
    found = _judged(best, base, decision.ratio, decision.verdict)
    hidden = any(row["status"] == "disturbed" for row in dense)
    if hidden and found.verdict != "dense":
        return found._replace(verdict="undecided", why=BUSY), {}
    if found.verdict != "sparse":
        return found, {}
    rivals = max(rivals, *map(len, sides))
    first, against = sides[0][decision.sparse], sides[1][decision.dense]
    ratios = {_line(best): decision.ratio}
    level = []
    for k, times in sides[0].items():
        slower, ratio = ratio_of(times, first, rivals), ratio_of(against, times, rivals)
        alike = k != decision.sparse and slower and slower.rounds >= LOOKS[0] and slower.low <= 1
        if alike and ratio and ratio.verdict == "sparse" and _line(sparse[k]) not in ratios:
            ratios[_line(sparse[k])] = ratio
            level.append(sparse[k])
    return found._replace(level=tuple(level)), ratios


def _times(row: Row, measure: str) -> Rounds:
    """The seconds of a row by (run, round)."""
    values = values_of(row, measure) if row["status"] == "ok" else {}
    return {place: value for place, value in values.items() if value > 0}


def _judged(sparse: Row, dense: Row, ratio: Ratio, verdict: str) -> Contest:
    """A contest with a ratio, and the reason where it is undecided."""
    why = ""
    if verdict == "undecided":
        disturbed = any(row.get("rounds_disturbed") for row in (sparse, dense))
        why = HOLDS_ONE if ratio.rounds >= LOOKS[0] else BUSY if disturbed else FEW
    return Contest(None, sparse, dense, verdict, ratio, why)


def _in_memory(sparse: Sequence[Row], dense: Sequence[Row], measure: str) -> tuple[Contest, dict[tuple, Ratio]]:
    known_of = [
        [(row, interval) for row in side if row["status"] in cells.NUMBERED and (interval := _size(row, measure))]
        for side in (sparse, dense)
    ]
    if not all(known_of):
        best, base = (
            min(found, key=lambda pair: pair[1].value)[0] if found else _standing(side)
            for found, side in zip(known_of, (sparse, dense), strict=True)
        )
        return _without_ratio(best, base, ""), {}
    best, size = min(known_of[0], key=lambda pair: pair[1].value)
    least = min(interval.high for _, interval in known_of[1])
    base, against = next(pair for pair in known_of[1] if pair[1].value <= least)  # alike, the first has the name
    found = _told_apart(best, size, base, against)
    ratios = {_line(best): found.ratio}
    level = []
    for row, interval in known_of[0]:
        other = _told_apart(row, interval, base, against)
        if interval.value <= size.high and other.verdict == found.verdict and _line(row) not in ratios:
            ratios[_line(row)] = other.ratio
            level.append(row)
    return found._replace(level=tuple(level)), ratios


def _size(row: Row, measure: str) -> Interval | None:
    interval = interval_of(row, measure)
    return interval if interval and interval.value > 0 else None


def _told_apart(sparse: Row, size: Interval, dense: Row, against: Interval) -> Contest:
    """Memory: a side wins where the intervals lie apart."""
    rounds = min(len(values_of(row, "bytes_peak")) for row in (sparse, dense))
    low = against.low / size.high
    ratio = Ratio(against.value / size.value, low, against.high / size.low if size.low else float("inf"), rounds, 1)
    if ONCE in (size.why, against.why):
        return Contest(None, sparse, dense, "undecided", ratio, ONCE)
    if ratio.low > 1 or ratio.high < 1:
        return Contest(None, sparse, dense, "sparse" if ratio.low > 1 else "dense", ratio)
    level = ratio.low > 0 and ratio.high < LEVEL * ratio.low
    return Contest(None, sparse, dense, "level" if level else "undecided", ratio, "" if level else HOLDS_ONE)


def _standing(rows: Sequence[Row]) -> Row | None:
    """The row that says most of a side without a number."""
    order = ("ok", "disturbed", "memory")
    return min(rows, key=lambda row: order.index(row["status"]) if row["status"] in order else 3, default=None)


def _without_ratio(sparse: Row | None, dense: Row | None, unheard: str) -> Contest:
    """A contest in which a side has no number; rows of the status `unheard` say nothing of the measure."""
    if sparse is None or dense is None:
        return Contest(None, sparse, dense, "undecided", None, NO_SPARSE if sparse is None else NO_DENSE)
    statuses = {row["status"] for row in (sparse, dense)}
    if unheard in statuses:
        return Contest(None, sparse, dense, "undecided", None, BUSY)
    ran = [row["status"] in cells.NUMBERED for row in (sparse, dense)]
    if "memory" in statuses and any(ran):
        return Contest(None, sparse, dense, "sparse" if ran[0] else "dense")
    return Contest(None, sparse, dense, "undecided", None, APART if all(ran) else NO_RESULT)


def _line(row: Row) -> tuple:
    return tuple(cells.line_of(row).values())
