"""Densities to measure next so that break-evens become narrower: inside the bracket of a crossing.

A crossing is bracketed by the last density where sparse wins significantly and the first where dense does. Of the gaps
between the densities measured there, the gap with the break-even is halved on the logarithmic axis, until the
interval of the break-even is narrow enough. Where the gap is narrower than half of that, noise keeps the interval wide:
rounds help.

The best sparse configuration against the best dense one comes first, then each configuration against dense. A crossing
configuration is measured with all of either side that may be the best at an end of the gap: a verdict at the new
density needs them.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import pandas as pd

from workbench.analysis import configurations
from workbench.analysis.breakeven import BreakEven, locate_crossing, records_and_contests
from workbench.analysis.compare import Contest, contests_of_group, undominated_records
from workbench.analysis.verdict_text import MEASURES


class DensityToAdd(NamedTuple):
    """A density to measure next, and the keys of the sparse and dense configurations to measure there."""

    density: float
    keys: tuple[str, ...]


class _Crossing(NamedTuple):
    """A break-even and its interval, and the contests between its two sure verdicts, rising in density."""

    density: float
    low: float
    high: float
    met: Sequence[Contest]


def densities_to_add(frame: pd.DataFrame, until: float) -> list[DensityToAdd]:
    """Return the densities to measure next to narrow break-evens in time and memory that are too wide.

    `until` is the wanted width as a fraction: upper <= (1 + until) * lower. Per group and measure the best sparse
    configuration comes first; single configurations follow only if that is narrow enough. `frame` holds trial records.
    """
    found: list[DensityToAdd] = []
    for group in configurations.groups(frame):
        for measure in MEASURES:
            best = _densities_of_series([contests_of_group(group, measure)], group, measure, until)
            each = best or _densities_of_series(
                [met for _, met in records_and_contests(group, measure)], group, measure, until
            )
            for opening in each:
                found.append(_near_existing(opening, found, until))
    return list(dict.fromkeys(found))


def _densities_of_series(
    series: Sequence[Sequence[Contest]], group: configurations.Group, measure: str, until: float
) -> list[DensityToAdd]:
    """Return for each series of contests (ascending in density) the density that would narrow its crossing, if any.

    `until` is the wanted width as a fraction, `measure` a key of MEASURES.
    """
    crossings = [one for met in series if (one := _crossing(met, measure))]
    return [opening for crossing in crossings if (opening := _density_to_add(crossing, group, measure, until))]


def _crossing(met: Sequence[Contest], measure: str) -> _Crossing | None:
    """Return the crossing of sparse and dense in ascending contests in `measure`, with what brackets it, or None."""
    compared = [one for one in met if one.ratio is not None and one.density]
    status, ends = locate_crossing(compared, measure)
    density, low, high = ends
    if status != "crossing" or density is None or low is None or high is None:
        return None
    verdicts = [one.verdict for one in compared]
    won, lost = len(verdicts) - 1 - verdicts[::-1].index("sparse"), verdicts.index("dense")
    return _Crossing(density, low, high, compared[won : lost + 1])


def is_narrow(even: BreakEven | _Crossing, until: float) -> bool:
    """Return whether the upper bound is at most (1 + `until`) times the lower one; False if a bound is unknown."""
    return even.low is not None and even.high is not None and even.high <= (1 + until) * even.low


def _density_to_add(even: _Crossing, group: configurations.Group, measure: str, until: float) -> DensityToAdd | None:
    """Return the density to measure next, the geometric mean of the gap around the crossing, with its configurations.

    None if the gap is narrow enough; if the interval stays wide in a narrow gap, more rounds help, not densities.
    `even` is the crossing, `until` the wanted width as a fraction: upper <= (1 + until) * lower.
    """
    gaps = [gap for gap in pairwise(even.met) if (gap[0].density or 0.0) <= even.density <= (gap[1].density or 0.0)]
    ends = gaps[0] if gaps else (even.met[0], even.met[-1])
    low, high = (end.density or 0.0 for end in ends)
    if is_narrow(even, until) or math.log(high / low) <= math.log1p(until / 2):
        return None
    return DensityToAdd(float(f"{math.sqrt(low * high):.3g}"), _keys(ends, group, measure))


def _keys(ends: Sequence[Contest], group: configurations.Group, measure: str) -> tuple[str, ...]:
    """Return the keys of the records that cross at both ends of a gap, and of all that may be the best there.

    `ends` are the two contests at the ends of the gap; `measure` is a key of MEASURES.
    """
    keys: list[str] = []
    for end in ends:
        crossing, dense, _ = end.known
        there = [row for row in group.rows if row["density"] == crossing["density"]]
        able = (row for side in ("sparse", "dense") for row in undominated_records(there, measure, side))
        keys += [row["key"] for row in (crossing, dense, *able)]
    return tuple(dict.fromkeys(keys))


def _near_existing(opening: DensityToAdd, found: Sequence[DensityToAdd], until: float) -> DensityToAdd:
    """Return `opening` moved to the density of one in `found`, if that is near enough to share a comparison."""
    near = math.log1p(until / 2)
    density = next((other.density for other in found if abs(math.log(other.density / opening.density)) <= near), None)
    return opening if density is None else opening._replace(density=density)
