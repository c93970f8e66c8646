"""Quality of advice: the time of what was recommended over the least time of a full sweep, beside simpler rules.

Two numbers for each case. Of the choice between sparse and dense: the fastest cell of the side that was chosen, over
the fastest of all. Of the whole configuration: the cell that was chosen, over the fastest of all. Cells that train
another model than dense count on neither side. A cell that did not run takes as long as the slowest one that did.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pandas as pd

from workbench.analysis import words
from workbench.analysis.bench import geometric_mean
from workbench.analysis.cells import records
from workbench.analysis.goal import Goal

Row = Mapping[str, Any]
LINE = ("format", "engine", "gradient", "update", "launch", "serial")
DENSE = {"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard", "launch": "kernels"}
SPARSE = {"format": "csr", "engine": "ours", "gradient": "fused", "launch": "kernels"}
"""What always sparse trains with, lazy where that is exact, else exact."""
SIDE, WHOLE, MOST, SHARE = 1.02, 1.05, 1.25, 0.2
"""Wanted: geometric means of both numbers, none over the third, and at most that share of the sweep's time."""


@dataclass(frozen=True)
class Score:
    """Result of one rule in one case, as times of the least: its side, sparse or dense, and its whole choice."""

    case: str
    rule: str
    cell: Row
    side: float
    whole: float


Rule = Callable[[Row, Sequence[Row]], Row]
"""`rule(case, other cases)` gives settings of the cell that it chooses; cases of the same data are not among others."""


def latest(frame: pd.DataFrame) -> list[Row]:
    """The newest good row of each case: one of whose cells has a time."""
    good = (row for row in records(frame) if row["status"] == "ok" and _able(row))
    return list({row["case"]: row for row in good}.values())


def failed(frame: pd.DataFrame) -> list[Row]:
    """The newest row of each case that has no good one."""
    good = {row["case"] for row in latest(frame)}
    return list({row["case"]: row for row in records(frame) if row["case"] not in good}.values())


def scores(frame: pd.DataFrame) -> list[Score]:
    """Every rule in every case, cases in the order written."""
    rows = latest(frame)
    return [
        _score(row, name, rule(row, [other for other in rows if other["data"] != row["data"]]))
        for row in rows
        for name, rule in RULES.items()
    ]


def _score(row: Row, name: str, chosen: Row) -> Score:
    able = _able(row)
    least = min(cell["seconds"] for cell in able)
    side = min(cell["seconds"] for cell in _of_side(able, chosen["format"] == "dense") or [_slowest(able)])
    return Score(row["case"], name, chosen, side / least, seconds_of(row, chosen) / least)


def _able(row: Row) -> list[Row]:
    return [cell for cell in row["cells"] if cell["status"] == "ok" and cell["seconds"] and cell["is_faithful"]]


def _of_side(able: Sequence[Row], is_dense: bool) -> list[Row]:
    return [cell for cell in able if (cell["format"] == "dense") == is_dense]


def _slowest(able: Sequence[Row]) -> Row:
    return max(able, key=lambda cell: cell["seconds"])


def seconds_of(row: Row, chosen: Row) -> float:
    """Seconds of a step of the cell with these settings; of one that did not run those of the slowest that did."""
    able = _able(row)
    named = (cell for cell in able if all(cell[name] == chosen[name] for name in LINE if name in chosen))
    return next(named, _slowest(able))["seconds"]


def _recommended(row: Row, others: Sequence[Row]) -> Row:
    return row["recommended"]


def _sparse(row: Row, others: Sequence[Row]) -> Row:
    return SPARSE


def _dense(row: Row, others: Sequence[Row]) -> Row:
    return DENSE | {"serial": False}


def _by_bytes(row: Row, others: Sequence[Row]) -> Row:
    return _sparse(row, others) if row["bytes_csr"] < row["bytes_dense"] else _dense(row, others)


def _fitted(row: Row, others: Sequence[Row]) -> Row:
    """Sparse below a density, dense above: density and both cells are those that fit the other cases best.

    The density lies in the middle of two of the cases; of equally good ones it is the highest.
    """
    sparse, dense = (_best_of_all(others, is_dense) for is_dense in (False, True))
    sparse, dense = sparse or SPARSE, dense or DENSE | {"serial": False}
    known = sorted({other["density"] for other in others})
    bounds = [1.0, *(math.sqrt(low * high) for low, high in pairwise(known)), 0.0]
    bound = min(sorted(bounds, reverse=True), key=lambda at: _cost(others, at, sparse, dense))
    return sparse if row["density"] <= bound else dense


def _cost(cases: Sequence[Row], bound: float, sparse: Row, dense: Row) -> float:
    chosen = ((row, sparse if row["density"] <= bound else dense) for row in cases)
    return sum(math.log(seconds_of(row, cell)) for row, cell in chosen)


def _best_of_all(cases: Sequence[Row], is_dense: bool) -> Row | None:
    """The settings of a side that take least over some cases, by the geometric mean."""
    lines = {tuple(cell[name] for name in LINE) for row in cases for cell in _of_side(_able(row), is_dense)}
    named = [dict(zip(LINE, line, strict=True)) for line in sorted(lines, key=str)]
    return min(named, key=lambda line: sum(math.log(seconds_of(row, line)) for row in cases), default=None)


RULES: dict[str, Rule] = {
    "advice": _recommended,
    "always sparse": _sparse,
    "always dense": _dense,
    "the bytes rule": _by_bytes,
    "a fitted density": _fitted,
}
"""The rules that are judged; all but advice know nothing of the machine, and the last is fitted on the other cases."""


def goals(frame: pd.DataFrame) -> list[Goal]:
    """Goals of advice, then what each other rule reaches."""
    rows, found = latest(frame), scores(frame)
    if not rows:
        return [Goal("advice", "", "not measured", None)]
    by_rule = {name: [score for score in found if score.rule == name] for name in RULES}
    own = by_rule["advice"]
    share = [row["seconds_advice"] / row["seconds_sweep"] for row in rows]
    worst = max(own, key=lambda score: score.whole)
    return [
        _mean_goal("advice: sparse or dense, times the least, geometric mean", [score.side for score in own], SIDE),
        _mean_goal("advice: whole configuration, geometric mean", [score.whole for score in own], WHOLE),
        Goal("advice: worst case", f"≤ {MOST:g} x", f"{worst.whole:.3f} x: {worst.case}", worst.whole <= MOST),
        Goal("time of the advice, of the sweep's", f"≤ {SHARE:.0%}", _span(share), max(share) <= SHARE + 0.005),
        *(_of_rule(name, by_rule[name]) for name in RULES if name != "advice"),
    ]


def _mean_goal(what: str, values: Sequence[float], wanted: float) -> Goal:
    mean = geometric_mean(values)
    assert mean is not None, "there is a case"
    return Goal(what, f"≤ {wanted:g} x", f"{mean:.3f} x over {words.plural(len(values), 'case')}", mean <= wanted)


def _of_rule(name: str, own: Sequence[Score]) -> Goal:
    sides, wholes = ([getattr(score, part) for score in own] for part in ("side", "whole"))
    means = [geometric_mean(values) or 1.0 for values in (sides, wholes)]
    text = f"side {means[0]:.3f} x, whole {means[1]:.3f} x, worst {max(wholes):.2f} x"
    return Goal(f"beside it: {name}", "", text, None)


def _span(shares: Sequence[float]) -> str:
    return f"{min(shares):.0%} to {max(shares):.0%}"
