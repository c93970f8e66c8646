"""The density from which on sparse no longer pays, with its interval, for each configuration and measure.

Between two measured densities log(sparse / dense) is taken as linear in log(density). The cost law of a sparse step,
fixed + slope * density, bends upwards in those coordinates, so the crossing found lies somewhat below the true one
where the fixed part matters and the densities are far apart; measure more densities near it to sharpen it.

The interval of a break-even is where the interval of the ratio, which comes from whole rounds, holds 1 (the inversion
of an interval; Fieller 1954, J. R. Stat. Soc. B 16, 175): from the density where its upper end reaches dense to the
one where its lower end does. So it can never contradict the verdicts, which come from the same intervals.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from kernels.registry import unknown_name
from workbench.analysis import configurations, formatting
from workbench.analysis.breakeven_text import breakeven_sentence
from workbench.analysis.compare import Contest, compare_best, trained_worse
from workbench.analysis.intervals import number_or_none

# Break-even in memory by bytes: from the predicted bytes of rows, which the formulas of the formats give.
#
# An entry of CSR takes its value and an index, a place of a dense array its value: 8 bytes against 4 for float32 values
# and int32 indices, so half of the places. Indptr, batches, weights and states move that, and are in the predictions.


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
    def place(self) -> str:
        """The density in words, as it goes on a sentence, or that there is none."""
        if self.density is None:
            return self.text
        return f"it is at {self.text}{', beyond what was measured' if self.is_beyond else ''}"

    @property
    def text(self) -> str:
        """The density in words, or that there is none."""
        if self.is_level:
            return "the two are alike within 2 %"
        if self.density is None:
            return "sparse is smaller up to 100 %" if self.is_less else "dense is smaller at every density"
        return f"{formatting.format_density(self.density, 2)} density"


def breakeven_by_bytes(sparse: Iterable[Record], dense: Iterable[Record]) -> ByBytes | None:
    """Return the break-even in memory by bytes of one sparse configuration against the best of dense candidates.

    None without predictions at two densities of both. O(rows).
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


def breakeven_by_bytes_clause(sparse: Sequence[Record], dense: Sequence[Record]) -> str:
    """Return break-even by bytes against a dense array, and against the dense candidate of fewest bytes if that is
    another.

    Data that are held as CSR on both sides differ by their batches alone, so the array comes first. "" without
    predictions.
    """
    best = breakeven_by_bytes(sparse, dense)
    if best is None:
        return ""
    array = breakeven_by_bytes(sparse, [row for row in dense if configurations.storage_of(row) == configurations.HELD])
    text = _sentence(array or best, sparse[0])
    if array is None or configurations.storage_of(best.dense) == configurations.HELD:
        return text
    return f"{text}; against {formatting.name_configuration(best.dense)} {best.place}"


def _density_of_zero(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Return the crossing of zero by the line through two points; None if it does not rise."""
    if y[1] <= y[0]:
        return None
    return float(x[0] - y[0] * (x[1] - x[0]) / (y[1] - y[0]))


def _predicted_by_density(rows: Iterable[Record]) -> dict[float | None, tuple[float, float]]:
    """Return the density measured and the least predicted bytes, by the density asked for."""
    found: dict[float | None, tuple[float, float]] = {}
    for row in rows:
        density, size = configurations.density_of(row), number_or_none(row.get(PREDICTED))
        if density and size:
            least = found.get(row["density"], (density, np.inf))[1]
            found[row["density"]] = density, min(size, least)
    return found


def _sentence(found: ByBytes, row: Record) -> str:
    """Return clause about a break-even by bytes, with the bytes of an entry and of a place of the row's types."""
    value = 8 if row.get("dtype") == "float64" else 4
    index = 8 if row.get("index_dtype") == "int64" else 4
    rule = f"by bytes, {value + index} an entry against {value} a place of a dense array"
    against = (
        ""
        if configurations.storage_of(found.dense) == configurations.HELD
        else f", against {formatting.name_configuration(found.dense)}"
    )
    return f"{rule}, {found.place}{against}"


STATUSES = {
    "crossing": "sparse wins below, dense above; the break-even is `density`, significantly between `low` and `high`",
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
        """Settings of the group and of the configuration together, as a row has them."""
        return self.group | self.line

    @property
    def is_range(self) -> bool:
        """Whether the break-even is known to a factor of two at best, so that a range is shown."""
        return _is_range(self.status, self.low, self.high)

    @property
    def place(self) -> str:
        """The break-even as text, as precisely as it is known; "" without a crossing."""
        if self.status != "crossing" or self.low is None or self.high is None:
            return ""
        return formatting.format_breakeven(self.density, self.low, self.high)


def breakeven(frame: pd.DataFrame, measure: str = "seconds_step") -> list[BreakEven]:
    """Return the break-even of each sparse configuration in each group of a frame, in the order of
    `configurations.groups`.

    `measure` is a column in seconds or bytes. O(groups * configurations * densities * rounds). ValueError for a column
    that is neither.
    """
    if not measure.startswith(("seconds_", "bytes_")) or measure not in frame.columns:
        known_names = [name for name in frame.columns if name.startswith(("seconds_", "bytes_"))]
        raise ValueError(unknown_name("measure", measure, known_names))
    return [even for group in configurations.groups(frame) for even in breakevens_of_group(group, measure)]


def breakevens_of_group(group: configurations.Group, measure: str) -> list[BreakEven]:
    """Return the break-evens of one group of configurations."""
    dense, worse = configurations.dense_rows(group.rows), {id(row) for row, _ in trained_worse(group.rows)}
    evens = []
    for rows, contests in records_and_contests(group, measure):
        even = _breakeven_of_line(group, rows, contests, dense, measure)
        doubt = _quality_warning(rows, [row for row in rows if id(row) in worse])
        by_bytes = breakeven_by_bytes(rows, dense) if measure.startswith("bytes") else None
        counted = f"; {breakeven_by_bytes_clause(rows, dense)}" if by_bytes else ""
        evens.append(replace(even, sentence=even.sentence.removesuffix(".") + counted + doubt, by_bytes=by_bytes))
    return evens


def records_and_contests(group: configurations.Group, measure: str) -> Iterator[tuple[list[Record], list[Contest]]]:
    """Return the records of each sparse configuration of a group and its contests with dense, ascending in density."""
    dense = configurations.dense_rows(group.rows)
    for rows in configurations.sparse_lines(group.rows).values():
        yield rows, contests_of(rows, dense, measure)


def _quality_warning(rows: list[Record], worse: list[Record]) -> str:
    """End of the sentence about a line of which some rows trained a worse model."""
    if not worse:
        return "."
    at = formatting.join_items(formatting.format_density(configurations.density_of(row) or 0.0) for row in worse)
    where = "" if len(worse) == len(rows) else f" at {at}"
    return f"; it trained a worse model{where}, so this is no win{' there' if where else ''}."


def _breakeven_of_line(
    group: configurations.Group, rows: list[Record], contests: list[Contest], dense: list[Record], measure: str
) -> BreakEven:
    """Return the break-even of one sparse configuration with dense in a measure; its status says why there is none."""
    compared = [contest for contest in contests if contest.ratio is not None and contest.density]
    if not compared:
        status, ends = _without_ratios(rows, dense, contests)
    elif len(compared) == 1:
        status, ends = "too_few", (None, None, None)
    else:
        status, ends = locate_crossing(compared)
    density, low, high = ends
    ends = (None if _is_range(status, low, high) else density, low, high)
    told = breakeven_sentence(status, ends, rows, contests, dense, measure)
    return BreakEven(group.settings, configurations.line_of(rows[0]), measure, *ends, status, told)


def contests_of(rows: Sequence[Record], dense: Sequence[Record], measure: str) -> list[Contest]:
    """Return the rows of one line against the dense rows of the same asked density, rising.

    If several rows share a density (other seeds, other learning rates) the best stands for them.
    """
    baseline = configurations.by_density(dense)
    contests = [
        compare_best(at, baseline.get(density, []), measure) for density, at in configurations.by_density(rows).items()
    ]
    return sorted(contests, key=lambda one: one.density or 0.0)


def _is_range(status: str, low: float | None, high: float | None) -> bool:
    """Return whether a crossing has bounds so far apart that it is given as a range."""
    return status == "crossing" and low is not None and high is not None and high >= formatting.RANGE * low


def locate_crossing(compared: list[Contest]) -> tuple[str, Bounds]:
    """Return the status and (density, lower, upper) of the crossing of two or more contests that have a ratio."""
    decided = [one for one in compared if one.verdict in ("sparse", "dense")]
    if not decided:
        status = "level" if all(one.verdict == "level" for one in compared) else "inconclusive"
        return status, (None, None, None)
    changes = [one for i, one in enumerate(decided) if i == 0 or one.verdict != decided[i - 1].verdict]
    winners = [change.verdict for change in changes]
    if winners == ["sparse", "dense"]:
        return "crossing", _crossing(compared)
    if len(winners) > 1:
        before = decided[decided.index(changes[1]) - 1]
        return "several", (None, before.density, changes[-1].density)
    if winners == ["sparse"]:
        return "sparse", (None, decided[-1].density, None)
    return "dense", (None, None, decided[0].density)


def _crossing(compared: list[Contest]) -> tuple[float, float, float]:
    """Return (density, low, high) where sparse wins at first and dense at last; it lies between these two verdicts."""
    verdicts = [one.verdict for one in compared]
    won, lost = len(verdicts) - 1 - verdicts[::-1].index("sparse"), verdicts.index("dense")
    x = np.log([one.density or 0.0 for one in compared])
    value, low, high = (
        np.array([-_log(getattr(one.ratio, end)) for one in compared]) for end in ("value", "high", "low")
    )
    ends = (
        _zero_crossing(x[won : won + 2], high[won : won + 2]) if high[won + 1] > 0 else x[won],
        _zero_crossing(x[lost - 1 : lost + 1], low[lost - 1 : lost + 1]) if low[lost - 1] <= 0 else x[lost],
    )
    between = slice(won, lost + 1)
    from scipy.optimize import isotonic_regression  # half a second to import, and only a break-even needs it

    middle = float(np.clip(_zero_crossing(x[between], isotonic_regression(value[between]).x), *ends))
    return float(np.exp(middle)), float(np.exp(ends[0])), float(np.exp(ends[1]))


def _log(ratio: float) -> float:
    """Return log(ratio), clipped to a finite range."""
    with np.errstate(divide="ignore"):
        return float(np.clip(np.log(ratio), -FARTHEST, FARTHEST))


def _zero_crossing(x: np.ndarray, y: np.ndarray) -> float:
    """Return where a line through points, negative at first and positive at last, crosses zero."""
    after = int(np.argmax(y > 0))
    (x0, x1), (y0, y1) = x[after - 1 : after + 1], y[after - 1 : after + 1]
    return float(x0 + (x1 - x0) * y0 / (y0 - y1))


def _without_ratios(rows: list[Record], dense: list[Record], contests: list[Contest]) -> tuple[str, Bounds]:
    """Return status and (density, low, high) where no density has a number of both sides."""
    fits = [contest.density for contest in contests if contest.verdict == "sparse" and contest.density]
    if fits:
        return "feasible", (None, max(fits), None)
    none = (None, None, None)
    ran = [any(row["status"] in configurations.NUMBERED for row in side) for side in (rows, dense)]
    return ("infeasible" if ran == [False, True] else "no_baseline"), none
