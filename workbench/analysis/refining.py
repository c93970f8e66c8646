"""Where to measure next so that break-evens become narrower: between the densities that bracket a crossing.

A crossing is bracketed by the last density where sparse surely wins and the first where dense does. Of the gaps between
the densities measured there, the one that holds the break-even is halved on the logarithmic axis, until the interval
of the break-even is narrow enough. It is drawn by straight lines, so the gap h must be small too: of a cost fixed +
slope * density, whose curvature in logarithms is 1/4 at most, they miss the crossing by about h**2 / 16, which is to be
a quarter of what is asked. Where the gap is narrower than half of that, noise keeps the interval wide: rounds help.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import pandas as pd

from workbench.analysis import cells, words
from workbench.analysis.breakeven import BreakEven, lines, of_group
from workbench.analysis.compare import Contest
from workbench.analysis.told import MEASURES


class Opening(NamedTuple):
    """A density to measure, and the keys of cells that are to be measured there: a sparse one and the dense ones."""

    density: float
    keys: tuple[str, ...]


def openings(frame: pd.DataFrame, until: float) -> list[Opening]:
    """The densities that would narrow the break-evens of a frame in time and memory, one for each that is too wide.

    An interval is narrow enough where its high end is at most 1 + `until` times the low one. Where no crossing was
    seen there is nothing to halve. O(groups * configurations * densities * rounds).
    """
    found: list[Opening] = []
    for group in cells.groups(frame):
        for measure in MEASURES:
            for even, met in _evens(group, measure):
                if even.status == "crossing" and (opening := _opening(even, met, group, until)):
                    found.append(_beside(opening, found, until))
    return list(dict.fromkeys(found))


def _evens(group: cells.Group, measure: str) -> Iterator[tuple[BreakEven, list[Contest]]]:
    """The break-even of each sparse configuration of a group with the contests that it comes from."""
    for even, (_, met) in zip(of_group(group, measure), lines(group, measure), strict=True):
        yield even, met


def is_narrow(even: BreakEven, until: float) -> bool:
    """Whether the interval of a crossing is as narrow as asked."""
    return even.low is not None and even.high is not None and even.high <= (1 + until) * even.low


def _opening(even: BreakEven, met: Sequence[Contest], group: cells.Group, until: float) -> Opening | None:
    compared = [one for one in met if one.ratio is not None and one.density]
    verdicts = [one.verdict for one in compared]
    won, lost = len(verdicts) - 1 - verdicts[::-1].index("sparse"), verdicts.index("dense")
    at = [one.density or 0.0 for one in compared[won : lost + 1]]
    place = even.density or math.sqrt((even.low or at[0]) * (even.high or at[-1]))
    low, high = next((gap for gap in pairwise(at) if gap[0] <= place <= gap[1]), (at[0], at[-1]))
    enough = 2 * math.sqrt(until) if is_narrow(even, until) else math.log1p(until / 2)
    sparse = compared[won].sparse
    if sparse is None or math.log(high / low) <= enough:
        return None
    beside = [row["key"] for row in cells.dense_rows(group.rows) if row["density"] == sparse["density"]]
    return Opening(float(f"{math.sqrt(low * high):.3g}"), (sparse["key"], *beside))


def _beside(opening: Opening, found: Sequence[Opening], until: float) -> Opening:
    """The opening at the density of another one that is as near as matters, so that they share a comparison."""
    near = math.log1p(until / 2)
    density = next((other.density for other in found if abs(math.log(other.density / opening.density)) <= near), None)
    return opening if density is None else opening._replace(density=density)


def told(frame: pd.DataFrame, until: float) -> list[str]:
    """How well each break-even of a frame is known, in a sentence: bracketed to so many per cent, or not bracketed."""
    several = len(groups := cells.groups(frame)) > 1
    return [
        (f"{group.label}: " if several else "") + _told(even, met, until)
        for group in groups
        for measure in MEASURES
        for even, met in _evens(group, measure)
    ]


def _told(even: BreakEven, met: Sequence[Contest], until: float) -> str:
    who = f"{words.line(even.settings)} in {MEASURES[even.measure][0]}"
    if even.status != "crossing" or even.low is None or even.high is None:
        return f"{who}: not bracketed, since no crossing was seen; {_reason(even, met)}."
    share = words.density(even.high / even.low - 1, 2)
    text = f"{who}: bracketed {even.place}, to {share}"
    return (
        f"{text}."
        if is_narrow(even, until)
        else f"{text}, more than {words.density(until, 2)}: rounds would narrow it."
    )


def _reason(even: BreakEven, met: Sequence[Contest]) -> str:
    at = [one.density for one in met if one.density]
    where = f" from {words.span(at[0], at[-1], words.density)}" if len(at) > 1 else ""
    reasons = {"sparse": f"sparse wins{where}", "dense": f"dense wins{where}", "level": f"the two are level{where}"}
    reasons |= {"several": "the winner changes more than once", "feasible": "dense did not fit where sparse did"}
    return reasons.get(even.status, f"nothing is decided{where}")
