"""The density from which on sparse no longer pays, with its interval, for each configuration and measure.

Between two measured densities log(sparse / dense) is taken as linear in log(density). The cost law of a sparse step,
fixed + slope * density, bends upwards in those coordinates, so the crossing found lies somewhat below the true one
where the fixed part matters and the densities are far apart; measure more densities near it to sharpen it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import isotonic_regression

from workbench.analysis import cells
from workbench.analysis.compare import verdict
from workbench.analysis.intervals import known
from workbench.analysis.sentences import of_breakeven

Row = Mapping[str, Any]
CONFIDENCE = 0.95
STATUSES = {
    "crossing": "sparse wins below `density`, dense above",
    "several": "the winner changes more than once, or from dense to sparse; `density` is the lowest change",
    "sparse": "sparse wins at every density measured; `low` is the highest of them",
    "dense": "dense wins at every density measured; `high` is the lowest of them",
    "undecided": "no density measured has a winner",
    "feasible": "dense did not fit in memory where sparse did; `low` is the highest such density",
    "infeasible": "sparse did not run at any density where dense did",
    "no_baseline": "no dense row to compare with",
    "too_few": "measured against dense at one density only",
}


@dataclass(frozen=True)
class BreakEven:
    """Where one sparse configuration stops beating dense in one measure.

    `density` and its interval `low`, `high` are nnz / size; None where there is none, an open end of the interval is
    None too. `status` is a key of STATUSES, `sentence` says it in words. `group` has the settings of the group of
    cells, `line` those of the configuration.
    """

    group: dict[str, Any]
    line: dict[str, Any]
    measure: str
    density: float | None
    low: float | None
    high: float | None
    status: str
    sentence: str

    @property
    def settings(self) -> dict[str, Any]:
        """Those of the group and of the configuration together, as a row has them."""
        return self.group | self.line


@dataclass(frozen=True)
class Pair:
    """One density: sparse and dense rows, and the values to resample."""

    density: float
    sparse: Row
    dense: Row
    measure: str

    @property
    def log_ratio(self) -> float:
        """log(sparse / dense): below zero sparse is better."""
        return float(np.log(self.sparse[self.measure] / self.dense[self.measure]))

    @property
    def verdict(self) -> str:
        """sparse, dense or undecided, from the intervals."""
        return verdict(self.sparse, self.dense, self.measure)

    def resampled(self, rng: np.random.Generator, times: int) -> np.ndarray:
        """log(sparse / dense) of medians over values drawn again, [times]."""
        drawn = [_medians(_values(row, self.measure), rng, times) for row in (self.sparse, self.dense)]
        return np.log(drawn[0] / drawn[1])


def breakeven(
    frame: pd.DataFrame, measure: str = "seconds_step", *, resamples: int = 1000, seed: int = 0
) -> list[BreakEven]:
    """The break-even of each sparse configuration in each group of a frame, in the order of `cells.groups`.

    `measure` is a column in seconds or bytes. The interval is the 95 % percentile bootstrap: the samples of each cell
    are drawn again `resamples` times; measures without samples draw rounds again, and with one round have no interval.
    O(groups * configurations * densities * resamples * samples). ValueError for a column that is neither.
    """
    if not measure.startswith(("seconds_", "bytes_")) or measure not in frame.columns:
        known_names = [name for name in frame.columns if name.startswith(("seconds_", "bytes_"))]
        raise ValueError(f"There is no measure {measure!r}; there is: {', '.join(known_names)}.")
    return [even for group in cells.groups(frame) for even in of_group(group, measure, resamples=resamples, seed=seed)]


def of_group(group: cells.Group, measure: str, *, resamples: int = 1000, seed: int = 0) -> list[BreakEven]:
    """The break-evens of one group, as `breakeven` gives them."""
    dense = cells.dense_rows(group.rows)
    evens = []
    for rows in cells.sparse_lines(group.rows).values():
        rng = np.random.default_rng(seed)  # each line its own, so that a line added does not move the others
        evens.append(_of_line(group, rows, dense, measure, rng, resamples))
    return evens


def _of_line(
    group: cells.Group, rows: list[Row], dense: list[Row], measure: str, rng: np.random.Generator, resamples: int
) -> BreakEven:
    pairs = pairs_of(rows, dense, measure)
    unfit = [row for row in rows if row["status"] == "ok" and _dense_status(row, dense) == "memory"]
    if not pairs:
        status = _without_pairs(rows, dense, unfit)
        ends = (None, max(map(cells.density_of, unfit)), None) if unfit else (None, None, None)
    elif len(pairs) == 1:
        status, ends = "too_few", (None, None, None)
    else:
        status, ends = _with_pairs(pairs, rng, resamples)
    head = rows[0]
    sentence = of_breakeven(status, ends, rows, pairs, dense, measure)
    return BreakEven(group.settings, cells.line_of(head), measure, *ends, status, sentence)


def pairs_of(rows: Iterable[Row], dense: Iterable[Row], measure: str) -> list[Pair]:
    """Each ok sparse row with the ok dense row of the same asked density, rising in measured density.

    Where several rows share a density (other seeds, other learning rates) the fastest or smallest stands for them.
    """
    pairs = {}
    baseline = cells.by_density(row for row in dense if _has(row, measure))
    for nominal, at in cells.by_density(row for row in rows if _has(row, measure)).items():
        if nominal in baseline:
            sparse, against = (min(side, key=lambda row: row[measure]) for side in (at, baseline[nominal]))
            density = np.mean([cells.density_of(row) for row in (sparse, against) if cells.density_of(row)])
            pairs[float(density)] = Pair(float(density), sparse, against, measure)
    return [pairs[density] for density in sorted(pairs)]


def crossings(densities: np.ndarray, log_ratios: np.ndarray) -> list[tuple[float, bool]]:
    """(density, upwards) of each change of sign, by log-log interpolation; upwards is from sparse to dense winning."""
    x, above = np.log(densities), log_ratios > 0
    at = np.flatnonzero(above[1:] != above[:-1])
    share = log_ratios[at] / (log_ratios[at] - log_ratios[at + 1])
    where = np.exp(x[at] + share * (x[at + 1] - x[at]))
    return [(float(density), bool(above[i + 1])) for density, i in zip(where, at, strict=True)]


def _with_pairs(pairs: list[Pair], rng: np.random.Generator, resamples: int) -> tuple[str, tuple]:
    """Status and (density, low, high) of two pairs or more."""
    densities = np.array([pair.density for pair in pairs])
    ratios = np.array([pair.log_ratio for pair in pairs])
    decided = [pair for pair in pairs if pair.verdict != "undecided"]
    if not decided:
        return "undecided", (None, None, None)
    changes = [pair.verdict for i, pair in enumerate(decided) if i == 0 or pair.verdict != decided[i - 1].verdict]
    if len(changes) > 2 or changes == ["dense", "sparse"]:
        points = crossings(densities, ratios)
        return "several", (points[0][0], points[0][0], points[-1][0])
    estimate = single_crossing(densities, ratios)
    if changes == ["sparse"] and estimate == np.inf:
        return "sparse", (None, decided[-1].density, None)
    if changes == ["dense"] and estimate == -np.inf:
        return "dense", (None, None, decided[0].density)
    drawn = np.column_stack([pair.resampled(rng, resamples) for pair in pairs])
    ends = np.array([single_crossing(densities, row) for row in drawn])
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(ends, (tail, 1 - tail), method="inverted_cdf")  # picks a value: inf cannot be averaged
    return "crossing", (estimate, *(float(end) if np.isfinite(end) else None for end in (low, high)))


def single_crossing(densities: np.ndarray, log_ratios: np.ndarray) -> float:
    """The one density where sparse stops winning; inf where it always wins, -inf where it never does.

    Where noise makes the sign change more than once, the monotone fit (least squares, in the logarithm) decides.
    """
    points = crossings(densities, log_ratios)
    if len(points) > 1 or (points and not points[0][1]):
        log_ratios = isotonic_regression(log_ratios).x
        points = crossings(densities, log_ratios)
    if points:
        return points[0][0]
    return -np.inf if log_ratios[0] > 0 else np.inf


def _without_pairs(rows: list[Row], dense: list[Row], unfit: list[Row]) -> str:
    if unfit:
        return "feasible"
    ran = any(row["status"] == "ok" for row in rows)
    return "infeasible" if not ran and any(row["status"] == "ok" for row in dense) else "no_baseline"


def _dense_status(row: Row, dense: list[Row]) -> str | None:
    return next((other["status"] for other in dense if other["density"] == row["density"]), None)


def _has(row: Row, measure: str) -> bool:
    return row["status"] == "ok" and (known(row[measure]) or 0) > 0 and cells.density_of(row) is not None


def _values(row: Row, measure: str) -> np.ndarray:
    """What is drawn again: samples for the time of a step, else the values of the rounds."""
    rounds = (row.get("round_values") or {}).get(measure) or [row[measure]]
    return np.asarray(row["samples"] if measure == "seconds_step" and row["samples"] else rounds, dtype=np.float64)


def _medians(values: np.ndarray, rng: np.random.Generator, times: int) -> np.ndarray:
    return np.median(rng.choice(values, (times, values.size)), axis=1)
