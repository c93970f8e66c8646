"""What trial rows bear, computed from the rows alone: times, memory, ratios and decisions, for tests of what is said.

Nothing of the analysis is used, but for the rules of `measure.rounds`, which are what is to be obeyed.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import stats

from workbench.measure.rounds import Decision, Ratio, decide, ratio_of

Row = Mapping[str, Any]
MIB = 2**20
FORMATS = {"csr": "CSR", "csc": "CSC", "coo": "COO"}
GROUP = ("dataset", "width", "batch_rows", "threads", "device", "model", "optimizer", "machine")


def long_name(row: Row) -> str:
    """A configuration as sentences and tables call it."""
    if row["format"] == "dense":
        held = {"csr": "data held as CSR"}.get(row["hold"], "")
        call = "epochs in one call" if row["launch"] == "epoch" else ""
        more = ", ".join(part for part in (held, call) if part)
        return f"dense{', 1 thread' if row['serial'] else ''}{f' ({more})' if more else ''}"
    call = ", epochs in one call" if row["launch"] == "epoch" else ""
    return f"{FORMATS[row['format']]} {row['engine']} ({row['gradient']} gradient, {row['update']} update{call})"


def short_name(row: Row) -> str:
    """A configuration as legends call it."""
    call = " · epoch" if row["launch"] == "epoch" else ""
    if row["format"] == "dense":
        held = " · held as CSR" if row["hold"] == "csr" else ""
        return f"dense{', 1 thread' if row['serial'] else ''}{held}{call}"
    lazy = "" if row["update"] == "standard" else f" · {row['update']}"
    return f"{FORMATS[row['format']]} {row['engine']} · {row['gradient']} gradient{lazy}{call}"


@dataclass(frozen=True)
class Known:
    """A number and its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Cell:
    """All rows of one cell, one a round."""

    rows: tuple[Row, ...]

    @property
    def head(self) -> Row:
        """The first row, for the settings."""
        return self.rows[0]

    @property
    def name(self) -> str:
        """The configuration."""
        return long_name(self.head)

    @property
    def names(self) -> tuple[str, str]:
        """The configuration as it is called in sentences, and in legends."""
        return long_name(self.head), short_name(self.head)

    @property
    def is_dense(self) -> bool:
        """Whether it is a baseline."""
        return self.head["format"] == "dense"

    @cached_property
    def rounds(self) -> dict[tuple[str, int], float]:
        """Seconds by (run, round) of the rounds that count: the lower quartile of the samples."""
        return {
            (row["run"], row["round"]): float(np.quantile(row["samples"], 0.25))
            for row in self.rows
            if row["status"] == "ok"
        }

    @cached_property
    def seconds(self) -> Known | None:
        """The geometric mean of the rounds with the 95 % interval of Student's t; None without a round."""
        logs = np.log(list(self.rounds.values()))
        if not logs.size:
            return None
        if logs.size == 1:
            return Known(*[float(np.exp(logs[0]))] * 3)
        spread = max(float(logs.std(ddof=1)), 0.01) * math.sqrt(1 / logs.size + 1 / 16)
        half = float(stats.t.ppf(0.975, logs.size - 1)) * spread
        return Known(*(math.exp(float(logs.mean()) + sign * half) for sign in (0, -1, 1)))

    @cached_property
    def memory(self) -> Known | None:
        """The median of the peaks, also of disturbed rounds, to 1 MiB, 2 % or half their range."""
        peaks = [row["bytes_peak"] for row in self.rows if row["bytes_peak"] is not None]
        if not peaks:
            return None
        middle = float(np.median(peaks))
        half = max(MIB, 0.02 * middle, (max(peaks) - min(peaks)) / 2) if len(peaks) > 1 else 0.0
        return Known(middle, middle - half, middle + half)

    @cached_property
    def steps(self) -> int | None:
        """Steps until 99 % of the drop of the curve is made, of its medians of neighbours; None without a drop."""
        curve = [point for point in self.rows[-1]["curve"] or () if point[1] is not None]
        window = max(3, min(9, len(curve) // 8))
        medians = [
            float(np.median([loss for _, loss, _ in curve[max(0, end - window) : end]]))
            for end in range(window // 2 + 1, len(curve) + 1)
        ]
        if not medians:
            return None
        goal = medians[-1] + 0.01 * (curve[0][1] - medians[-1])
        points = zip(medians, curve[window // 2 :], strict=True)
        return next((int(point[2]) for loss, point in points if loss <= goal), None)

    @property
    def densities(self) -> tuple[float, ...]:
        """The density asked for, and the one measured."""
        known = (row[name] for row in self.rows for name in ("density", "density_measured"))
        return tuple(dict.fromkeys(density for density in known if density is not None))


@dataclass(frozen=True)
class Contest:
    """All cells of one group at one density."""

    group: tuple
    density: float | None
    cells: tuple[Cell, ...]
    rivals: int = 1

    def only(self, names: set[str]) -> "Contest":
        """The same with the sparse configurations of these names alone."""
        cells = tuple(cell for cell in self.cells if cell.is_dense or {*cell.names} & names)
        return replace(self, cells=cells, rivals=self.count)

    @property
    def count(self) -> int:
        """How many contenders the better side was chosen of."""
        able = [cell.is_dense for cell in self.cells if cell not in self._worse() and cell.rounds]
        return max(able.count(True), able.count(False), self.rivals)

    @property
    def densities(self) -> tuple[float, ...]:
        """All that it may be called by."""
        return tuple(density for cell in self.cells for density in cell.densities)

    @cached_property
    def decision(self) -> Decision:
        """The decision on time, of the rounds that count."""
        cells = [cell for cell in self.cells if cell not in self._worse()]
        sides = {dense: {c.name: c.rounds for c in cells if c.is_dense == dense} for dense in (True, False)}
        return decide(sides[False], sides[True], self.rivals)

    def _worse(self) -> list[Cell]:
        """Lazy cells that trained a worse model than standard ones, which may not win; alone it is judged."""
        if len({cell.name for cell in self.cells if not cell.is_dense}) < 2:
            return []
        ends = [(c, c.rows[-1]["loss_last"], c.rows[-1]["quality"]) for c in self.cells]
        fair = [(loss, quality) for cell, loss, quality in ends if cell.head["update"] == "standard" and loss]
        if not fair:
            return []
        loss, quality = fair[0]
        lazy = [end for end in ends if end[0].head["update"] == "lazy" and end[1]]
        return [cell for cell, its, good in lazy if its > 1.01 * loss or good < quality - 0.005]

    @property
    def time(self) -> str:
        """Which side takes less time; a side that runs where the other does not fit has it."""
        return self._fits() or self.decision.verdict

    @property
    def memory(self) -> str:
        """Which side has the lower peak: where the intervals of the two least peaks lie apart."""
        sparse, dense = (self._least(is_dense) for is_dense in (False, True))
        if fits := self._fits():
            return fits
        if sparse is None or dense is None or min(len(c.rows) for c in self.cells) < 2:
            return "undecided"
        return "sparse" if sparse.high < dense.low else "dense" if dense.high < sparse.low else "undecided"

    def _least(self, is_dense: bool) -> Known | None:
        known = [cell.memory for cell in self.cells if cell.is_dense == is_dense and cell.memory]
        return min(known, key=lambda one: one.value, default=None)

    def _fits(self) -> str:
        """The side with a result where all of the other did not fit in memory; empty where both or none has one."""
        ends = {
            dense: {row["status"] for c in self.cells if c.is_dense == dense for row in c.rows}
            for dense in (True, False)
        }
        for dense, other in ((True, "sparse"), (False, "dense")):
            if ends[dense] == {"memory"} and "ok" in ends[not dense]:
                return other
        return ""

    def ratios(self) -> Iterator[Ratio]:
        """Dense / sparse of every pair, for one rival and up to as many as there are."""
        sparse, dense = ([cell for cell in self.cells if cell.is_dense == is_dense] for is_dense in (False, True))
        counts = range(1, max(2, len(sparse), len(dense)) + 1)  # those that trained worse are none
        for mine in sparse:
            for its in dense:
                yield from filter(None, (ratio_of(its.rounds, mine.rounds, rivals) for rivals in counts))

    def memory_ratios(self) -> Iterator[Known]:
        """Dense / sparse of every pair's peaks, the ends from the far ends."""
        sparse, dense = ([c.memory for c in self.cells if c.is_dense == is_dense] for is_dense in (False, True))
        for mine in filter(None, sparse):
            for its in filter(None, dense):
                yield Known(its.value / mine.value, its.low / mine.high, its.high / mine.low)


def contests(rows: Iterable[Row]) -> list[Contest]:
    """All comparisons of the rows: groups in the order met, densities in the order met."""
    places: dict[tuple, dict[tuple, list[Row]]] = {}
    for row in rows:
        place = tuple(row[name] for name in GROUP), row["density"]
        line = long_name(row), row["learning_rate"], row["seed"]
        places.setdefault(place, {}).setdefault(line, []).append(row)
    return [
        Contest(group, density, tuple(Cell(tuple(of_cell)) for of_cell in lines.values()))
        for (group, density), lines in places.items()
    ]
