"""Two runs of the same cells: which became slower or faster, which kernels did, and what could have been seen.

Rounds of two runs are no neighbours: the whole machine may be slower during one of them. What cells share of that is
the drift, and is taken out first (`analysis.drift`). The logarithm of after / before of a cell is then a difference of
means of rounds; its variance is s^2 (1/n + 1/m + 2/SHARED), s the deviation of rounds within a run, and that of the
drift. Four rounds know little of their deviation, so s^2 is the cell's own and the median cell's, weighted by degrees
of freedom, the latter as PRIOR (Smyth 2004, Stat. Appl. Genet. Mol. Biol. 3, 3). The tails of the intervals are divided
among all cells, and among all kernels, so that a build compared with itself rarely has a slower one anywhere.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from workbench.analysis.drift import Drift, drift_of
from workbench.analysis.intervals import ONCE, interval_of, values_of
from workbench.analysis.pairs import CompareError, Pair, Pairs, name_of, paired
from workbench.measure.rounds import FLOOR, LEVEL, LOOKS, SHARED, Ratio, student_t

Row = Mapping[str, Any]
VERDICTS = {
    "same": "surely within the factor that is allowed",
    "faster": "surely less time",
    "slower": "surely more time",
    "ambiguous": "the rounds tell neither",
}
TAIL = 0.0025
"""Probability that a build compared with itself has a slower cell anywhere; the same of a slower kernel."""
PRIOR = 8
"""Degrees of freedom that the deviation of the median cell counts for beside a cell's own."""
PHASES = ("slice", "convert", "plan", "wait", "transfer", "forward", "loss", "gradient", "update", "graph", "batches")
SHARE = 0.05
"""A phase below this share of the step says nothing of its kernel: the clock is most of it."""


class Change(NamedTuple):
    """Ratio after / before of a cell, or of all cells of a kernel together.

    `verdict` is a key of VERDICTS; `cells` are the names of those it was seen in.
    """

    name: str
    ratio: Ratio
    verdict: str
    cells: tuple[str, ...]
    pair: Pair | None = None

    @property
    def visible(self) -> float:
        """The smallest slow-down that these rounds could have shown; inf from fewer than four."""
        return self.ratio.visible if self.ratio.rounds >= LOOKS[0] else math.inf


@dataclass(frozen=True)
class Changes:
    """Differences between two runs: the `drift` that was taken out, and changes in time by cell and by kernel.

    `memory` has the changes of peak memory, of which more is "slower"; `pairs` what was held against what, and what
    has no result any more.
    """

    drift: Drift
    cells: tuple[Change, ...]
    kernels: tuple[Change, ...]
    memory: tuple[Change, ...]
    pairs: Pairs

    @property
    def is_worse(self) -> bool:
        """Whether anything surely takes longer, takes more memory, or has no result any more."""
        every = (*self.cells, *self.kernels, *self.memory)
        return bool(self.pairs.lost) or any(one.verdict == "slower" for one in every)


class _Difference(NamedTuple):
    """The log ratio of one measure of a pair: its value, `share` times s^2 is its variance; squares of the rounds."""

    pair: Pair
    value: float
    share: float
    squares: float
    freedom: int
    rounds: int


def compared(before: pd.DataFrame, after: pd.DataFrame, within: float = LEVEL) -> Changes:
    """The changes from one frame of trial rows to another, cells as `cells.latest` pools them.

    `within` is the factor up to which two times are the same. Cells are paired by their settings; rows that are in both
    frames are no evidence of a change. O(rows). `CompareError` where no cell is in both, or `within` is not above 1.
    """
    if not within > 1:
        raise CompareError(f"Cells are the same within a factor above 1; {within:g} came.")
    pairs = paired(before, after)
    steps = _differences(pairs.timed, "seconds_step")
    drift = drift_of(steps, pairs)
    return Changes(
        drift,
        tuple(_by_cell(steps, drift, within)),
        tuple(_by_kernel(pairs, drift, within)),
        tuple(_in_memory(pairs, within)),
        pairs,
    )


def side_by_side(pairs: Iterable[Pair], drift: Drift, within: float = LEVEL) -> list[Change]:
    """The changes in the time of a step of these pairs; `CompareError` where a side of one has none."""
    pairs = list(pairs)
    found = _differences(pairs, "seconds_step")
    if len(found) < len(pairs):
        raise CompareError("A pair has a side without the time of a step; pair what both have measured.")
    return _by_cell(found, drift, within)


def _differences(pairs: Iterable[Pair], measure: str) -> list[_Difference]:
    """Differences of those pairs in which both sides have the measure."""
    found = []
    for pair in pairs:
        sides = [_by_run(values_of(row, measure)) for row in (pair.before, pair.after)]
        if all(sides):
            means = [float(np.mean([run.mean() for run in side])) for side in sides]
            runs = [run for side in sides for run in side]
            counts = [sum(map(len, side)) for side in sides]
            share = sum(1 / n + 1 / (SHARED * len(side)) for n, side in zip(counts, sides, strict=True))
            squares = sum(float(((run - run.mean()) ** 2).sum()) for run in runs)
            found.append(_Difference(pair, means[1] - means[0], share, squares, sum(counts) - len(runs), min(counts)))
    return found


def _by_run(values: Mapping[tuple[str, int], float]) -> list[np.ndarray]:
    """Logarithms of the values above zero, by run."""
    runs: dict[str, list[float]] = {}
    for (run, _), value in values.items():
        if value > 0:
            runs.setdefault(run, []).append(math.log(value))
    return [np.array(run) for run in runs.values()]


def _variances(found: Sequence[_Difference]) -> list[float]:
    """s^2 of each: of its own rounds and of the median cell's."""
    own = [one.squares / one.freedom for one in found if one.freedom]
    usual = max(float(np.median(own)) if own else 0.0, FLOOR**2)
    return [max((PRIOR * usual + one.squares) / (PRIOR + one.freedom), FLOOR**2) for one in found]


def _by_cell(found: Sequence[_Difference], drift: Drift, within: float) -> list[Change]:
    changes = []
    for one, variance in zip(found, _variances(found), strict=True):
        spread = math.sqrt(variance * one.share + drift.deviation**2)
        ratio = _ratio(one.value - drift.value, spread, PRIOR + one.freedom, len(found), one.rounds)
        changes.append(Change(one.pair.name, ratio, verdict(ratio, within), (one.pair.name,), one.pair))
    return changes


def _ratio(value: float, spread: float, freedom: int, among: int, rounds: int) -> Ratio:
    """The ratio of that logarithm, the tails divided among so many."""
    half = student_t(TAIL / max(among, 1), freedom) * spread
    return Ratio(math.exp(value), math.exp(value - half), math.exp(value + half), rounds, 2)


def verdict(ratio: Ratio, within: float = LEVEL) -> str:
    """A key of VERDICTS; ambiguous from fewer than four rounds of a side.

    >>> verdict(Ratio(1.02, 0.97, 1.07, 6, 2)), verdict(Ratio(2.0, 1.6, 2.5, 6, 2)), verdict(Ratio(1.2, 0.9, 1.6, 6, 2))
    ('same', 'slower', 'ambiguous')
    """
    if ratio.rounds < LOOKS[0]:
        return "ambiguous"
    if 1 / within < ratio.low and ratio.high < within:
        return "same"
    return "slower" if ratio.low > 1 else "faster" if ratio.high < 1 else "ambiguous"


def _by_kernel(pairs: Pairs, drift: Drift, within: float) -> list[Change]:
    """The phases of all cells that use a kernel, together: between them their scatter shows what one cell hides."""
    of_kernel: dict[str, list[tuple[_Difference, float]]] = {}
    for phase in PHASES:
        found = [one for one in _differences(pairs.timed, f"seconds_{phase}") if _is_large(one.pair, phase)]
        for one, variance in zip(found, _variances(found), strict=True):
            of_kernel.setdefault(name_of(phase, one.pair.after), []).append((one, variance))
    return [_together(name, own, len(of_kernel), drift, within) for name, own in of_kernel.items()]


def _is_large(pair: Pair, phase: str) -> bool:
    shares = ((row[f"seconds_{phase}"] or 0.0) / (row["seconds_step"] or math.inf) for row in (pair.before, pair.after))
    return max(shares) >= SHARE


def _together(name: str, own: Sequence[tuple[_Difference, float]], among: int, drift: Drift, within: float) -> Change:
    values = np.array([one.value for one, _ in own])
    expected = float(np.mean([variance * one.share for one, variance in own]))
    scatter = float(values.var(ddof=1)) if values.size > 1 else 0.0
    spread = math.sqrt(max(expected, scatter) / values.size + drift.deviation**2)
    rounds = min(one.rounds for one, _ in own)
    ratio = _ratio(float(values.mean()) - drift.value, spread, PRIOR + values.size - 1, among, rounds)
    return Change(name, ratio, verdict(ratio, within), tuple(one.pair.name for one, _ in own))


def _in_memory(pairs: Pairs, within: float) -> list[Change]:
    """Peak memory: other programs do not change it, and no machine drifts in it; its intervals tell."""
    changes = []
    for pair in pairs.numbered:
        sides = [interval_of(row, "bytes_peak") for row in (pair.before, pair.after)]
        first, second = sides
        if first is None or second is None or first.low <= 0 or second.low <= 0:
            continue
        rounds = 1 if ONCE in (first.why, second.why) else LOOKS[0]
        ratio = Ratio(second.value / first.value, second.low / first.high, second.high / first.low, rounds, 2)
        changes.append(Change(pair.name, ratio, verdict(ratio, within), (pair.name,), pair))
    return changes


def count(changes: Iterable[Change]) -> dict[str, int]:
    """Number of changes by verdict."""
    found = [one.verdict for one in changes]
    return {name: found.count(name) for name in VERDICTS}


def worst(changes: Iterable[Change], which: str = "slower") -> list[Change]:
    """Changes of a verdict, the largest first."""
    return sorted((one for one in changes if one.verdict == which), key=lambda one: -abs(math.log(one.ratio.value)))
