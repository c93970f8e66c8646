"""Both sides, and whole epochs, compared with the best independent ones: time ratios, targets, and what is left out."""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from benchmarks.analysis.bench import PerformanceTarget, geometric_mean
from workbench.analysis.formatting import format_count, format_density, format_number
from workbench.analysis.pool import group_by
from workbench.measure.posterior import Ratio

Record = Mapping[str, Any]
KINDS = ("dense", "sparse")
EACH, DENSE_TOGETHER, SPARSE_TOGETHER = 1.15, 1.0, 0.6
"""Largest time ratio wanted of each configuration, and of the geometric means."""
EPOCH_EACH, EPOCH_TOGETHER = 1.0, 0.67
"""The same of whole epochs, with the fastest competitor."""
COLUMNS_APART = 2000
"""Columns from which on sparse training of one output has a separate target."""


@dataclass(frozen=True)
class Side:
    """The fastest record of the project and the fastest independent one of a kind; None if none was timed."""

    project: Record | None
    independent: Record | None

    @property
    def ratio(self) -> Ratio | None:
        """Time of the project over that of the independent candidate, None if either was not timed.

        The value is the median over their paired rounds, the bounds are the minimum and the maximum.
        """
        if self.project is None or self.independent is None:
            return None
        pairs = zip(self.project["samples"], self.independent["samples"], strict=False)
        each = [one / other for one, other in pairs]
        return Ratio(float(np.median(each)), min(each), max(each), len(each), 1)

    @property
    def seconds(self) -> float | None:
        """Seconds per batch of the project's fastest candidate; None if it was not timed."""
        return self.project["seconds"] if self.project else None

    @property
    def seconds_at_best(self) -> float | None:
        """Seconds per batch, divided by the project / independent ratio if that is above 1; None if not timed."""
        if self.seconds is None:
            return None
        return self.seconds / max(self.ratio.value, 1.0) if self.ratio else self.seconds


@dataclass(frozen=True)
class Compared:
    """A configuration: its records, and the fastest of each kind and side."""

    records: Sequence[Record]
    sides: Mapping[str, Side]

    @property
    def settings(self) -> Record:
        """The first record of the configuration, for columns that all its records share."""
        return self.records[0]

    @property
    def name(self) -> str:
        """Name of the configuration: columns, batch rows, outputs and density, such as "D16384-B256-N1-15%"."""
        return self.settings["configuration"]

    @property
    def family(self) -> tuple[int, int, int]:
        """(columns, batch rows, outputs): configurations equal in these differ in their density alone."""
        return self.settings["features"], self.settings["batch_rows"], self.settings["width"]

    @property
    def is_apart(self) -> bool:
        """Whether sparse training has a separate target here: one output and more than 2000 columns."""
        return self.settings["width"] == 1 and self.settings["features"] > COLUMNS_APART


def compare_all(records: Iterable[Record]) -> list[Compared]:
    """Return the configurations of `benchmarks fair` records in the order written, with their fastest sides."""
    return [_compared(group) for group in _newest(records)]


def compare_epochs(records: Iterable[Record]) -> list[Compared]:
    """Return the configurations of `benchmarks epochs` records in the order written; the only side is named "epoch"."""
    found = []
    for group in _newest(records):
        pair = (_fastest(group, side=side) for side in ("project", "competitor"))
        found.append(Compared(group, {"epoch": Side(*pair)}))
    return found


def _newest(records: Iterable[Record]) -> list[list[Record]]:
    """Return one list of records per configuration, machine and thread count: of the newest key, newest per candidate.

    `records` are in the order written.
    """
    by_place: dict[tuple, dict[str, dict[str, Record]]] = {}
    for record in records:
        keys = by_place.setdefault((record["configuration"], record["machine"], record["threads"]), {})
        of_key = keys.pop(record["key"], {})
        keys[record["key"]] = of_key | {record["candidate"]: record}  # last is the key that was written last
    return [list(list(keys.values())[-1].values()) for keys in by_place.values()]


def _compared(records: list[Record]) -> Compared:
    """Return a configuration with the fastest project and independent candidate of kinds "dense" and "sparse"."""
    pairs = {kind: [_fastest(records, side=side, kind=kind) for side in ("project", "independent")] for kind in KINDS}
    return Compared(records, {kind: Side(*pair) for kind, pair in pairs.items()})


def _fastest(records: Iterable[Record], **values: str) -> Record | None:
    """Return the record with the least `seconds` among those with these column values and a time; None without one."""
    timed = [record for record in records if record["status"] == "ok" and record["seconds"]]
    able = [record for record in timed if all(record[name] == value for name, value in values.items())]
    return min(able, key=lambda record: record["seconds"], default=None)


def list_epoch_targets(found: Sequence[Compared]) -> list[PerformanceTarget]:
    """Return the targets for epoch time / fastest competitor: each configuration <= 1, geometric means <= 0.67.

    The means are over all configurations and over those of each optimizer. `found` are the configurations of
    `compare_epochs`.
    """
    what = "epoch / fastest competitor"
    ratios = {one.name: one.sides["epoch"].ratio for one in found}
    rules = {str(one.settings["optimizer"]): None for one in found}
    own = {rule: {one.name: ratios[one.name] for one in found if one.settings["optimizer"] == rule} for rule in rules}
    return [
        _targets_of_each(f"{what}, each configuration", ratios, EPOCH_EACH),
        _targets_of_mean(f"{what}, geometric mean", ratios, EPOCH_TOGETHER),
        *(_targets_of_mean(f"the same, {rule}", own[rule], EPOCH_TOGETHER) for rule in rules),
    ]


def list_targets(found: Sequence[Compared]) -> list[PerformanceTarget]:
    """Return the four targets of project / independent time, for dense and for sparse training.

    Each has a target for every single configuration and one for the geometric mean. `found` are the configurations of
    `compare_all`.
    """
    dense = {one.name: one.sides["dense"].ratio for one in found}
    sparse = {one.name: one.sides["sparse"].ratio for one in found if not one.is_apart}
    several = f"but for N = 1 with D > {COLUMNS_APART:,}"
    return [
        _targets_of_each("best dense / fastest independent dense, each configuration", dense),
        _targets_of_mean("the same, geometric mean", dense, DENSE_TOGETHER),
        _targets_of_each(f"best sparse / fastest independent sparse, each configuration {several}", sparse),
        _targets_of_mean("the same, geometric mean", sparse, SPARSE_TOGETHER),
    ]


def separate_configurations(found: Sequence[Compared]) -> list[Compared]:
    """Return the configurations whose sparse training has a separate target (one output, more than 2000 columns).

    `found` are the configurations of `compare_all`.
    """
    return [one for one in found if one.is_apart]


def _targets_of_each(what: str, ratios: Mapping[str, Ratio | None], most: float = EACH) -> PerformanceTarget:
    """Return the target named `what` that each ratio is at most `most`.

    `ratios` is {configuration: ratio, None if unmeasured}; `met` is None if none is known.
    """
    known = {name: ratio.value for name, ratio in ratios.items() if ratio}
    wanted = f"≤ {most:g}"
    if not known:
        return PerformanceTarget(what, wanted, "not measured", None)
    worst = max(known, key=lambda name: known[name])
    above = sum(value > most for value in known.values())
    measured = f"at most {format_number(known[worst])} ({worst}); {above} of {len(known)} above {most:g}"
    return PerformanceTarget(what, wanted, measured, above == 0)


def _targets_of_mean(what: str, ratios: Mapping[str, Ratio | None], wanted: float) -> PerformanceTarget:
    """Return the target named `what` that the geometric mean of the known ratios is at most `wanted`."""
    mean = geometric_mean(ratio.value for ratio in ratios.values() if ratio)
    if mean is None:
        return PerformanceTarget(what, f"≤ {wanted:g}", "not measured", None)
    return PerformanceTarget(what, f"≤ {wanted:g}", format_number(mean), mean <= wanted)


def list_untimed(found: Sequence[Compared]) -> list[tuple[str, str, str, int]]:
    """Return (candidate, status, first reason, configurations) per candidate and status without a time.

    `found` are the configurations of `compare_all`.
    """
    untimed = [record for one in found for record in one.records if record["status"] != "ok"]
    alike = group_by(untimed, itemgetter("candidate", "status"))
    return [(name, status, each[0]["reason"], len(each)) for (name, status), each in alike.items()]


# The shift of the break-even that remaining unfairness could make: with the times measured, and with each side's best.
#
# A side's time is divided by its ratio to the fastest independent training of its kind if that ratio is above 1. The
# logarithm of sparse / dense is taken as linear in log(density), as `breakeven` does. A family has columns, rows a
# batch and outputs in common. Between two densities of a family on either side of 1 its break-even is interpolated;
# otherwise it follows from the density whose ratio is nearest to 1, by the slope that all configurations have
# together in a least-squares fit, in which columns, rows a batch and outputs shift the level.


SHIFTED = 12
"""Configurations from which on a fit has a level for columns, rows a batch and outputs."""
LOWEST, HIGHEST = 1e-4, 1.0
"""Densities outside of which there is no break-even to speak of: one side is faster at all that matter."""

Seconds = Callable[[Side], float | None]
Point = tuple[float, float]
"""(log density, log of sparse / dense)."""


@dataclass(frozen=True)
class Fit:
    """Slope of log(sparse / dense) over log(density), and the standard deviation of what the fit leaves over."""

    slope: float
    deviation: float


@dataclass(frozen=True)
class Shift:
    """Break-even of a family (D, rows a batch, N) by the times measured (`before`) and by each side's best (`after`).

    `is_between` says whether both lie between densities that were measured.
    """

    family: tuple[int, int, int]
    before: float
    after: float
    is_between: bool

    @property
    def factor(self) -> float:
        """Break-even after / before, both clipped to densities from 1e-4 to 1."""
        return _clip_density(self.after) / _clip_density(self.before)

    @property
    def is_within(self) -> bool:
        """Whether the break-even before or after lies at a density from 1e-4 to 1."""
        return any(LOWEST <= one <= HIGHEST for one in (self.before, self.after))

    @property
    def text(self) -> str:
        """How the break-even moves, such as "13 % to 15 %"."""
        return f"{format_breakeven(self.before)} to {format_breakeven(self.after)}"


def _clip_density(density: float) -> float:
    """Return the density clipped to [1e-4, 1]."""
    return min(max(density, LOWEST), HIGHEST)


def format_breakeven(density: float) -> str:
    """Return a break-even density as text.

    >>> format_breakeven(0.131), format_breakeven(3.0), format_breakeven(1e-6)
    ('13 %', 'above 100 %', 'below 0.01 %')
    """
    if density > HIGHEST:
        return f"above {format_density(HIGHEST)}"
    return f"below {format_density(LOWEST)}" if density < LOWEST else format_density(density, 2)


def measured_seconds(side: Side) -> float | None:
    """Return the measured seconds per batch of a side; None if it was not timed."""
    return side.seconds


def seconds_at_best(side: Side) -> float | None:
    """Return the seconds per batch of a side, divided by its project / independent ratio if above 1.

    None if untimed.
    """
    return side.seconds_at_best


def fit_slope(found: Sequence[Compared], seconds: Seconds = measured_seconds) -> Fit | None:
    """Return the slope of log(sparse / dense) over log(density) of all configurations, by least squares.

    None with fewer than three densities or a slope that is not positive. From 12 points on the logs of columns, batch
    rows and outputs are regressors, too. `seconds` takes a `Side` and returns its time. `found` are the configurations
    of `compare_all`.
    """
    points = [(one, point) for one in found if (point := point_of(one, seconds))]
    if len({point[0] for _, point in points}) < 3:
        return None
    design = [[x, 1.0, *(np.log(one.family) if len(points) >= SHIFTED else ())] for one, (x, _) in points]
    values = np.array([y for _, (_, y) in points])
    solved = np.linalg.lstsq(np.array(design), values, rcond=None)[0]
    left = values - np.array(design) @ solved
    freedom = max(len(values) - len(design[0]), 1)
    return Fit(float(solved[0]), math.sqrt(float(left @ left) / freedom)) if solved[0] > 0 else None


def point_of(compared: Compared, seconds: Seconds) -> Point | None:
    """Return (log density, log of sparse / dense seconds) of a configuration; None if a side was not timed."""
    dense, sparse = (seconds(compared.sides[kind]) for kind in ("dense", "sparse"))
    density = compared.settings["density"]
    return (math.log(density), math.log(sparse / dense)) if dense and sparse else None


def breakeven_shifts(found: Sequence[Compared]) -> list[Shift]:
    """Return the break-even before and after of each family that has one between 1e-4 and 1, in order of sizes.

    `found` are the configurations of `compare_all`.
    """
    families = group_by(found, lambda one: one.family)
    slopes = {seconds: fit_slope(found, seconds) for seconds in (measured_seconds, seconds_at_best)}
    every = []
    for family, members in sorted(families.items()):
        before, after = (
            _crossing(members, seconds, slopes[seconds]) for seconds in (measured_seconds, seconds_at_best)
        )
        if before and after:
            every.append(Shift(family, before[0], after[0], before[1] and after[1]))
    return [one for one in every if one.is_within]


def _crossing(members: Sequence[Compared], seconds: Seconds, fitted: Fit | None) -> tuple[float, bool] | None:
    """Return (density at which sparse takes as long as dense, whether it lies between measured ones), or None.

    It is interpolated between two measured densities, else extrapolated with the slope of `fitted` from the point
    nearest to equality. `members` are the configurations of a family; `seconds` takes a `Side` and returns its time.
    """
    points = sorted(point for member in members if (point := point_of(member, seconds)))
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        if y0 <= 0 < y1:
            return math.exp(x0 - y0 * (x1 - x0) / (y1 - y0)), True
    if not points or fitted is None:
        return None
    x, y = min(points, key=lambda point: abs(point[1]))
    return math.exp(min(max(x - y / fitted.slope, -700.0), 700.0)), False  # finite and above 0


def summary(found: Sequence[Compared]) -> str:
    """Return a sentence on how far the break-evens of all families could move, in the geometric mean and at most.

    `found` are the configurations of `compare_all`.
    """
    each = breakeven_shifts(found)
    if not each:
        return "Too few configurations were measured to compute how far the break-even could move."
    before = geometric_mean(_clip_density(one.before) for one in each) or math.nan
    after = geometric_mean(_clip_density(one.after) for one in each) or math.nan
    count = "1 family" if len(each) == 1 else f"{len(each)} families"
    largest = max(each, key=lambda one: abs(math.log(one.factor)))
    fitted = fit_slope(found)
    spread = f" The fit leaves a factor of {format_number(math.exp(fitted.deviation), 2)} over." if fitted else ""
    return (
        "With each side's time divided by its ratio where an independent one is faster, the break-even moves from "
        f"{format_breakeven(before)} to {format_breakeven(after)} in the geometric mean of {count}; at most from "
        f"{largest.text} ({family_text(largest.family)}).{spread}"
    )


def family_text(family: tuple[int, int, int]) -> str:
    """Return a family (columns, batch rows, outputs) as text.

    >>> family_text((2048, 256, 16))
    'D = 2,048, 256 rows a batch, N = 16'
    """
    features, batch_rows, width = family
    return f"D = {features:,}, {format_count(batch_rows, 'row')} a batch, N = {width}"
