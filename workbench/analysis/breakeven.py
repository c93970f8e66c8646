"""The density from which on sparse no longer pays, with its interval, for each configuration and measure.

Between two measured densities a time is known only to rise with the density, at most as its `STEEPEST`th power: laws
fixed + slope * density, powers and such as level off are all among these. So from a density at which sparse wins the
break-even is some way up, from one at which dense wins some way down, by how far the interval of the ratio is from 1.
The interval of a break-even is what both leave: it takes in the noise and what was not measured, and lies between the
last win of sparse and the first of dense, so it never contradicts a verdict. It becomes narrow with densities near the
break-even, which `refinement` adds. Bytes follow the formulas of the formats: their interval is where straight lines in
density and in its logarithm cross. The break-even itself is read from a straight line in density.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from kernels.registry import unknown_name
from workbench.analysis import configurations, formatting
from workbench.analysis.compare import Contest, compare_best, worse_of_group
from workbench.analysis.intervals import number_or_none
from workbench.analysis.verdict_text import verdict_ranges

# Break-even in memory by bytes: from the predicted bytes of rows, which the formulas of the formats give.
#
# An entry of CSR takes its value and an index, an element of a dense array its value: 8 bytes against 4 for float32
# values and int32 indices, so half of the elements. Row pointers, batches, weights and states move that, and are in the
# predictions.


Record = Mapping[str, Any]
PREDICTED = "bytes_predicted"
ALIKE = 0.02
"""Predicted bytes that differ by less than this share at every density have no crossing worth naming."""


class ByBytes(NamedTuple):
    """Density up to which a sparse configuration has fewer predicted bytes than the dense candidate of fewest.

    `density` is None if there is none up to 100 %; then `is_less` says whether sparse has fewer everywhere.
    `is_beyond` tells that it lies beyond the densities of the rows, on the line through the last two. `is_level` tells
    that the two differ by less than 2 % at each of these.
    """

    density: float | None
    is_less: bool
    is_beyond: bool
    is_level: bool
    dense: Record

    @property
    def text(self) -> str:
        """The density as text, such as "50 % density"; without one, which side is smaller, or that both are alike."""
        if self.is_level:
            return "the two are alike within 2 %"
        if self.density is None:
            return "sparse is smaller up to 100 %" if self.is_less else "dense is smaller at every density"
        return f"{formatting.format_density(self.density, 2)} density"


def breakeven_by_bytes(sparse: Iterable[Record], dense: Iterable[Record]) -> ByBytes | None:
    """Return the break-even by predicted bytes of one sparse configuration against the smallest dense candidate.

    `sparse` are the records of one configuration, `dense` those of all dense candidates. The smallest candidate may
    differ from one density to the next; only candidates predicted at every density of `sparse` count. None if `sparse`
    has fewer than two densities or no candidate is left. O(rows).
    """
    mine = _predicted_by_density(sparse)
    heads = {line: rows[0] for line, rows in configurations.dense_lines(dense).items()}
    sizes = {line: _predicted_by_density(rows) for line, rows in configurations.dense_lines(dense).items()}
    sizes = {line: own for line, own in sizes.items() if own.keys() >= mine.keys()}
    if len(mine) < 2 or not sizes:
        return None
    asked = sorted(mine, key=lambda density: mine[density][0])
    at = [mine[density][0] for density in asked]
    best = [min(sizes, key=lambda line: sizes[line][density][1]) for density in asked]
    gaps = [mine[density][1] - sizes[line][density][1] for density, line in zip(asked, best, strict=True)]
    changes = [k for k in range(1, len(at)) if gaps[k - 1] < 0 <= gaps[k]]
    last = changes[0] if changes else len(at) - 1
    density = _density_of_zero(at[last - 1 : last + 1], gaps[last - 1 : last + 1])
    is_level = all(abs(gap) < ALIKE * mine[one][1] for gap, one in zip(gaps, asked, strict=True))
    is_known = not is_level and (bool(changes) or (gaps[-1] < 0 and density is not None and density <= 1))
    return ByBytes(density if is_known else None, gaps[-1] < 0, not changes, is_level, heads[best[last]])


def _density_of_zero(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Return the x at which the line through two points (`x`, `y`) crosses zero; None if it does not rise."""
    if y[1] <= y[0]:
        return None
    return float(x[0] - y[0] * (x[1] - x[0]) / (y[1] - y[0]))


def _predicted_by_density(rows: Iterable[Record]) -> dict[float | None, tuple[float, float]]:
    """Return {requested density: (measured density, least predicted bytes)}; records without either are left out."""
    found: dict[float | None, tuple[float, float]] = {}
    for row in rows:
        density, size = configurations.density_of(row), number_or_none(row.get(PREDICTED))
        if density and size:
            least = found.get(row["density"], (density, np.inf))[1]
            found[row["density"]] = density, min(size, least)
    return found


STATUSES = {
    "crossing": "sparse wins below, dense above; the break-even is `density`, with 95 % between `low` and `high`",
    "several": "the winner changes more than once, or from dense to sparse, between `low` and `high`",
    "sparse": "sparse wins wherever there is a winner; `low` is the highest such density",
    "dense": "dense wins wherever there is a winner; `high` is the lowest such density",
    "level": "the two are within 10 % of each other at every density measured",
    "inconclusive": "no density measured has a winner",
    "feasible": "dense did not fit in memory where sparse did; `low` is the highest such density",
    "infeasible": "sparse did not run at any density where dense did",
    "no_baseline": "no dense row to compare with",
    "too_few": "measured against dense at one density only",
}
STEEPEST = 2.0
"""The highest power of the density with which the ratio of a sparse to a dense time rises between measured ones."""
Bounds = tuple[float | None, float | None, float | None]
"""Density of a break-even and the lower and upper bound of its interval, None if there is none."""
FARTHEST = 700.0
"""The logarithm of a ratio that is as good as infinite."""


@dataclass(frozen=True)
class BreakEven:
    """Density at which one sparse configuration stops beating dense in one measure.

    `density` and its interval `low`, `high` are nnz / size, None if there is none. `density` is None too where the
    interval spans a factor of two or more (`is_range`): then only the range is known; `place` says either in words.
    `status` is a key of STATUSES, `sentence` says it in words. `group` has the settings of the group of
    configurations, `line` those of the configuration.
    """

    group: dict[str, Any]
    line: dict[str, Any]
    measure: str
    density: float | None
    low: float | None
    high: float | None
    status: str
    sentence: str
    by_bytes: ByBytes | None = None
    """In memory: the break-even by the predicted bytes."""

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the group and of the configuration in one dict, with the names of record columns."""
        return self.group | self.line

    @property
    def is_range(self) -> bool:
        """Whether a crossing's upper bound is at least twice its lower one, so that only the range is shown."""
        return _is_range(self.status, self.low, self.high)

    @property
    def place(self) -> str:
        """The break-even as text, such as "at 8.2 % density", with no more digits than are known.

        "" without a crossing.
        """
        if self.status != "crossing" or self.low is None or self.high is None:
            return ""
        return formatting.format_breakeven(self.density, self.low, self.high)


def breakeven(frame: pd.DataFrame, measure: str = "seconds_step") -> list[BreakEven]:
    """Return the break-even of each sparse configuration of each group, in the order of `configurations.groups`.

    `frame` holds trial records. `measure` is a column in seconds or bytes; ValueError for any other. O(groups *
    configurations * densities * rounds).
    """
    if not measure.startswith(("seconds_", "bytes_")) or measure not in frame.columns:
        known_names = [name for name in frame.columns if name.startswith(("seconds_", "bytes_"))]
        raise ValueError(unknown_name("measure", measure, known_names))
    return [even for group in configurations.groups(frame) for even in breakevens_of_group(group, measure)]


@configurations.once_per_group
def breakevens_of_group(group: configurations.Group, measure: str) -> tuple[BreakEven, ...]:
    """Return one break-even per sparse configuration of a group, in `measure`; for bytes also by predicted bytes.

    The sentence of a configuration that trained a worse model says so. `group` holds pooled records of comparable
    configurations.
    """
    dense, worse = configurations.dense_rows(group.rows), worse_of_group(group)
    evens = []
    for rows, contests in records_and_contests(group, measure):
        even = _breakeven_of_line(group, rows, contests, dense, measure)
        warning = _quality_warning(rows, [row for row in rows if id(row) in worse])
        by_bytes = breakeven_by_bytes(rows, dense) if measure.startswith("bytes") else None
        evens.append(replace(even, sentence=even.sentence.removesuffix(".") + warning, by_bytes=by_bytes))
    return tuple(evens)


def breakeven_of(group: configurations.Group, row: Record, measure: str) -> BreakEven | None:
    """Return the break-even in `measure` of the configuration of a group's record; None for a dense configuration."""
    line = configurations.line_of(row)
    return next((even for even in breakevens_of_group(group, measure) if even.line == line), None)


def records_and_contests(group: configurations.Group, measure: str) -> Iterator[tuple[list[Record], list[Contest]]]:
    """Yield (records, contests with dense in `measure`) of each sparse configuration; contests ascend in density.

    `group` holds pooled records of comparable configurations.
    """
    dense = configurations.dense_rows(group.rows)
    for rows in configurations.sparse_lines(group.rows).values():
        yield rows, contests_of(rows, dense, measure)


def _quality_warning(rows: list[Record], worse: list[Record]) -> str:
    """Return the end of a sentence: at which densities `worse`, some of `rows`, trained a worse model; "." if none."""
    if not worse:
        return "."
    at = formatting.join_items(formatting.format_density(configurations.density_of(row) or 0.0) for row in worse)
    where = "" if len(worse) == len(rows) else f" at {at}"
    return f"; it trained a worse model{where} and may not win{' there' if where else ''}."


def _breakeven_of_line(
    group: configurations.Group, rows: list[Record], contests: list[Contest], dense: list[Record], measure: str
) -> BreakEven:
    """Return the break-even of one sparse configuration, given its contests in ascending density.

    Without a crossing `status` (a key of STATUSES) says why; `density` is None if only a range is known. `rows` are its
    records, `dense` those of all dense candidates; `measure` is a column of seconds or bytes.
    """
    compared = [contest for contest in contests if contest.ratio is not None and contest.density]
    if not compared:
        status, ends = _without_ratios(rows, dense, contests)
    elif len(compared) == 1:
        status, ends = "too_few", (None, None, None)
    else:
        status, ends = locate_crossing(compared, measure)
    density, low, high = ends
    ends = (None if _is_range(status, low, high) else density, low, high)
    sentence = breakeven_sentence(status, ends, rows, contests, dense, measure)
    return BreakEven(group.settings, configurations.line_of(rows[0]), measure, *ends, status, sentence)


def contests_of(rows: Sequence[Record], dense: Sequence[Record], measure: str) -> list[Contest]:
    """Return the contests of one sparse configuration with the dense records of the same requested density, ascending.

    If several records share a density (other seeds, other learning rates) the best of them is compared. `measure` is a
    column of seconds or bytes.
    """
    baseline = configurations.by_density(dense)
    contests = [
        compare_best(at, baseline.get(density, []), measure) for density, at in configurations.by_density(rows).items()
    ]
    return sorted(contests, key=lambda one: one.density or 0.0)


def _is_range(status: str, low: float | None, high: float | None) -> bool:
    """Return whether the status is "crossing" with an upper bound at least `RANGE` (2) times the lower one."""
    return status == "crossing" and low is not None and high is not None and high >= formatting.RANGE * low


def locate_crossing(compared: list[Contest], measure: str) -> tuple[str, Bounds]:
    """Return (status, (density, lower, upper)) from two or more contests with a ratio, ascending in density.

    `status` is a key of STATUSES: "crossing" if sparse wins first and dense after it. Of the three densities each that
    the status does not define is None. `measure` is a column of seconds or bytes.
    """
    decided = [one for one in compared if one.verdict in ("sparse", "dense")]
    if not decided:
        status = "level" if all(one.verdict == "level" for one in compared) else "inconclusive"
        return status, (None, None, None)
    changes = [one for i, one in enumerate(decided) if i == 0 or one.verdict != decided[i - 1].verdict]
    winners = [change.verdict for change in changes]
    if winners == ["sparse", "dense"]:
        return "crossing", _crossing(compared, measure)
    if len(winners) > 1:
        before = decided[decided.index(changes[1]) - 1]
        return "several", (None, before.density, changes[-1].density)
    if winners == ["sparse"]:
        return "sparse", (None, decided[-1].density, None)
    return "dense", (None, None, decided[0].density)


def _crossing(compared: list[Contest], measure: str) -> tuple[float, float, float]:
    """Return (density, lower, upper) at which the ratio is 1; sparse must win first and dense last.

    All lie between the last win of sparse and the first of dense; the density is read from a monotone fit.
    """
    verdicts = [one.verdict for one in compared]
    won, lost = len(verdicts) - 1 - verdicts[::-1].index("sparse"), verdicts.index("dense")
    x = np.log([one.density or 0.0 for one in compared])
    y, low, high = (np.array([-_log(getattr(one.ratio, end)) for one in compared]) for end in ("value", "high", "low"))
    between = slice(won, lost + 1)
    if measure.startswith("seconds"):
        ends = max(x[high < 0] - high[high < 0] / STEEPEST), min(x[low > 0] - low[low > 0] / STEEPEST)
        if ends[0] > ends[1]:  # steeper than thought
            ends = x[won], x[lost]
    else:
        ends = (
            min(_zero_crossings(x[between], high[between])) if high[won + 1] > 0 else x[won],
            max(_zero_crossings(x[between], low[between])) if low[lost - 1] <= 0 else x[lost],
        )
    from scipy.optimize import isotonic_regression  # half a second to import, and only a break-even needs it

    middle = _zero_crossings(x[between], isotonic_regression(y[between]).x)[1]
    low_end, high_end = (float(np.exp(np.clip(end, x[won], x[lost]))) for end in ends)
    return float(np.clip(np.exp(middle), low_end, high_end)), low_end, high_end


def _log(ratio: float) -> float:
    """Return the natural log of a ratio, clipped to [-700, 700]; 0 and inf are allowed."""
    with np.errstate(divide="ignore"):
        return float(np.clip(np.log(ratio), -FARTHEST, FARTHEST))


def _zero_crossings(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return the x at which `y`, float64 [points], first turns positive, by lines in x and as exp(y) in exp(x).

    `y` must not be positive at first and positive later; `x` ascends.
    """
    after = int(np.argmax(y > 0))
    (x0, x1), (y0, y1) = x[after - 1 : after + 1], y[after - 1 : after + 1]
    share = np.expm1(y0) / (np.expm1(y0) - np.expm1(y1))
    return float(x0 + (x1 - x0) * y0 / (y0 - y1)), float(x0 + np.log1p(share * np.expm1(x1 - x0)))


def _without_ratios(rows: list[Record], dense: list[Record], contests: list[Contest]) -> tuple[str, Bounds]:
    """Return (status, (density, lower, upper)) if no density has a measured number of both sides.

    "feasible" if sparse ran where dense did not fit (lower is the highest such density), "infeasible" if only dense
    ran, else "no_baseline". `rows` are the sparse records, `contests` those of each density.
    """
    fits = [contest.density for contest in contests if contest.verdict == "sparse" and contest.density]
    if fits:
        return "feasible", (None, max(fits), None)
    none = (None, None, None)
    ran = [any(row["status"] in configurations.NUMBERED for row in side) for side in (rows, dense)]
    return ("infeasible" if ran == [False, True] else "no_baseline"), none


# Sentences about break-evens.


def breakeven_sentence(
    status: str, ends: tuple, rows: Sequence[Record], contests: Sequence[Contest], dense: Sequence[Record], measure: str
) -> str:
    """Return the sentence on one break-even: the configuration, the better side over the densities, and where it is.

    `status` is a key of STATUSES, `ends` (density, lower, upper), `rows` the sparse and `dense` the dense records,
    `contests` those compared, ascending in density.
    """
    who, what = formatting.name_configuration(rows[0]), "time" if measure.startswith("seconds") else "memory"
    if status == "feasible":
        return f"{who} runs up to {formatting.format_density(ends[1])} density; dense did not fit in memory."
    if status == "infeasible":
        return f"{who} gave no result where dense did: {_reasons(rows)}."
    if status == "no_baseline":
        return f"{who} has nothing to be compared with: {_reasons(dense) or 'dense was not measured'}."
    at = "; a break-even needs two densities" if status == "too_few" else ""
    if status == "crossing":
        at = f"; the break-even is {formatting.format_breakeven(*ends)}{density_clause(*ends)}"
    return f"{who} in {what}: {verdict_ranges(contests)}{at}."


def density_clause(value: float | None, low: float, high: float) -> str:
    """Return the clause on which density to measure next, to append to a break-even known as a range; else "".

    >>> density_clause(None, 0.02, 0.32), density_clause(0.1, 0.09, 0.11)
    (' (measure at 8 % density to narrow it)', '')
    """
    if value is not None:
        return ""
    return f" (measure at {formatting.format_density(math.sqrt(low * high), 2)} density to narrow it)"


def _reasons(rows: Sequence[Record]) -> str:
    """Return the distinct failures of records as "status: reason; status: reason", no full stop; "" if none failed."""
    return "; ".join(
        f"{status}: {(reason or 'no reason given').removesuffix('.')}"
        for status, reason in configurations.failures(rows)
    )
