"""`benchmarks fair`: how it measures, its targets, and the shift of the break-even that unfairness could make."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from benchmarks import compare, tables
from benchmarks.compare import Compared, geometric_mean, ratio_text, target, time_text, value_of
from benchmarks.contest import Record, roots_of
from benchmarks.fair.competitors import list_competitors, origin
from benchmarks.fair.configurations import Configuration, all_configurations, quick_configurations
from benchmarks.harness import Run, Suite
from benchmarks.page import Page, Section
from benchmarks.shapes import BenchError
from workbench.analysis.formatting import format_bytes, format_density
from workbench.analysis.pool import group_by
from workbench.measure import race

KINDS = ("dense", "sparse")
EACH, DENSE_TOGETHER, SPARSE_TOGETHER = 1.15, 1.0, 0.6
"""Largest time ratio wanted of each configuration, and of the geometric means."""
COLUMNS_APART = 2000
"""Columns from which on sparse training of one output has a separate target."""
SIDES = {"independent": "competitor"}
"""Sides of the frameworks' candidates by the name that records have."""


def candidates(case: Configuration) -> dict[str, Record]:
    """Return the columns `side`, `kind` and `note` of each candidate by its name."""
    return {
        one.name: {"side": SIDES.get(one.side, one.side), "kind": one.kind, "note": one.note}
        for one in list_competitors()
    }


@cache
def roots(case: Configuration | None = None) -> frozenset[str]:
    """Return the modules whose code draws the rows, trains them and times it."""
    dense = {"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard"}
    own = {"benchmarks.fair.contest", "benchmarks.contest", "workbench.measure.child"}
    return (
        roots_of(("logistic", "softmax"), ({"gradient": "fused"}, dense))
        | own
        | {origin(one.name) for one in list_competitors()}
    )


def measure(
    run: Run,
    features: int | None = None,
    batch_rows: int | None = None,
    width: int | None = None,
    density: float | None = None,
    rounds: int = 7,
) -> Iterator[Record]:
    """Compare the best dense and the best sparse training with the best independent ones at equal work.

    Records and page are in the folder of --results. Exit status: 130 after Ctrl-C, 2 for a wrong name.

    Parameters
    ----------
    features
        Only configurations with this number of columns.
    batch_rows
        Only those with this number of rows a batch.
    width
        Only those with this number of outputs.
    density
        Only those of this density, such as 0.15.
    rounds
        Rounds in which all candidates that are near are timed.

    Examples
    --------
    python -m benchmarks fair --quick
    python -m benchmarks fair --density 0.15 --threads 1
    """
    only = {"features": features, "batch_rows": batch_rows, "width": width, "density": density}
    cases = only_with(run.choose(all_configurations(), quick_configurations()), only)
    yield from run.contests(
        cases,
        "benchmarks.fair.contest:contest",
        candidates,
        race.Policy(rounds=rounds),
        roots=lambda case: roots(),
        libraries=("torch", "scikit-learn"),
        preload=["benchmarks.preload"],
    )


def only_with(cases: Sequence[Configuration], only: Mapping[str, Any]) -> list[Configuration]:
    """Return the configurations with the values of `only` that are not None; BenchError if none has them."""
    found = list(cases)
    for axis, value in only.items():
        if value is not None and value not in {getattr(one, axis) for one in found}:
            values = ", ".join(f"{each:g}" for each in sorted({getattr(one, axis) for one in found}))
            raise BenchError(f"No configuration has {axis} {value:g}. Expected one of: {values}.")
        found = [one for one in found if value is None or getattr(one, axis) == value]
    return found


# What the records say.


def side_ratio(one: Compared, kind: str) -> compare.Ratio | None:
    """Return the time of the project's fastest training of a kind over that of the fastest independent one."""
    return one.ratio({"side": "project", "kind": kind}, {"side": "competitor", "kind": kind})


def is_apart(one: Compared) -> bool:
    """Whether sparse training has a separate target here: one output and more than 2000 columns."""
    return one.settings["width"] == 1 and one.settings["features"] > COLUMNS_APART


def list_targets(found: Sequence[Compared]) -> list[compare.Target]:
    """Return the four targets of project / independent time: of each configuration and of the means."""
    dense = {one.name: value_of(side_ratio(one, "dense")) for one in found}
    sparse = {one.name: value_of(side_ratio(one, "sparse")) for one in found if not is_apart(one)}
    several = f"but for N = 1 with D > {COLUMNS_APART:,}"
    return [
        target("best dense / fastest independent dense, each configuration", dense, most=EACH),
        target("the same, geometric mean", dense, most=DENSE_TOGETHER, is_mean=True),
        target(f"best sparse / fastest independent sparse, each configuration {several}", sparse, most=EACH),
        target("the same, geometric mean", sparse, most=SPARSE_TOGETHER, is_mean=True),
    ]


# The shift of the break-even that remaining unfairness could make: with the times measured, and with each side's time
# divided by its ratio to the fastest independent one if that is above 1.
#
# The logarithm of sparse / dense is taken as linear in log(density), as `breakeven` does, with the slope that all
# configurations have together by least squares; columns, rows a batch and outputs shift its level. Of each family,
# equal in these three, the configuration nearest to the break-even tells where it lies.


LOWEST, HIGHEST = 1e-4, 1.0
"""Densities outside of which there is no break-even to speak of: one side is faster at all that matter."""
Seconds = Callable[[Compared, str], float | None]


def measured_seconds(one: Compared, kind: str) -> float | None:
    """Return the seconds per batch of the project's fastest training of a kind; None if none was timed."""
    record = one.fastest(side="project", kind=kind)
    return record["seconds"] if record else None


def seconds_at_best(one: Compared, kind: str) -> float | None:
    """Return the measured seconds divided by the project / independent ratio if that is above 1."""
    seconds, ratio = measured_seconds(one, kind), side_ratio(one, kind)
    return seconds / max(ratio.value, 1.0) if seconds and ratio else seconds


def family_of(one: Compared) -> tuple[int, int, int]:
    """Return (columns, batch rows, outputs): configurations equal in these differ in their density alone."""
    return one.settings["features"], one.settings["batch_rows"], one.settings["width"]


def breakevens(found: Sequence[Compared], seconds: Seconds) -> dict[tuple[int, int, int], float]:
    """Return {family: break-even density}; {} with fewer than three densities or a slope that is not positive."""
    points = []
    for one in found:
        sparse, dense = seconds(one, "sparse"), seconds(one, "dense")
        if sparse and dense:
            points.append((family_of(one), math.log(one.settings["density"]), math.log(sparse / dense)))
    if len({x for _, x, _ in points}) < 3:
        return {}
    design = np.array([[x, 1.0, *np.log(family)] for family, x, _ in points])
    slope = float(np.linalg.lstsq(design, np.array([y for *_, y in points]), rcond=None)[0][0])
    if slope <= 0:
        return {}
    nearest = {
        family: min(own, key=lambda one: abs(one[2])) for family, own in group_by(points, lambda one: one[0]).items()
    }
    return {family: math.exp(min(max(x - y / slope, -700.0), 700.0)) for family, (_, x, y) in sorted(nearest.items())}


def breakeven_shifts(found: Sequence[Compared]) -> dict[tuple[int, int, int], tuple[float, float]]:
    """Return {family: break-even measured and with each side at its best}, those outside of 1e-4 to 1 left out."""
    before, after = (breakevens(found, seconds) for seconds in (measured_seconds, seconds_at_best))
    both = {family: (before[family], after[family]) for family in before.keys() & after.keys()}
    return {family: pair for family, pair in sorted(both.items()) if any(LOWEST <= one <= HIGHEST for one in pair)}


def clip_density(density: float) -> float:
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


def shift_sentence(shifts: Mapping[tuple[int, int, int], tuple[float, float]]) -> str:
    """Return a sentence on how far the break-evens of all families could move, in the geometric mean and at most."""
    if not shifts:
        return "Too few configurations were measured to compute how far the break-even could move."
    clipped = [tuple(map(clip_density, pair)) for pair in shifts.values()]
    before, after = (geometric_mean(each) or math.nan for each in zip(*clipped, strict=True))
    largest = max(shifts.values(), key=lambda pair: abs(math.log(clip_density(pair[1]) / clip_density(pair[0]))))
    return (
        "With each side's time divided by its ratio where an independent one is faster, the break-even moves from "
        f"{format_breakeven(before)} to {format_breakeven(after)} in the geometric mean of {len(shifts)} families; at "
        f"most from {format_breakeven(largest[0])} to {format_breakeven(largest[1])}."
    )


COLUMNS = (
    *("configuration", "project dense", "best independent dense", "dense ratio"),
    *("project sparse", "best independent sparse", "sparse ratio"),
)


def line(one: Compared) -> list[str]:
    """Return the table row of a configuration as texts: for dense and sparse both times and their ratio."""
    texts = [one.name]
    for kind in KINDS:
        sides = (one.fastest(side=side, kind=kind) for side in ("project", "competitor"))
        texts += [*map(time_text, sides), ratio_text(side_ratio(one, kind))]
    return texts


def page(records: Sequence[Record]) -> Page:
    """Return the page: configurations, the shift of the break-even, candidates without a time."""
    found = compare.newest(records)
    shifts = breakeven_shifts(found)
    sizes = [4 * one.settings["rows"] * one.settings["features"] for one in found]
    dense = f"{format_bytes(min(sizes, default=0))} to {format_bytes(max(sizes, default=0))}"
    apart = [one for one in found if is_apart(one)]
    return Page(
        list_targets(found),
        [
            Section(
                "Shift of the break-even",
                ("columns", "rows a batch", "outputs", "break-even measured", "each side at its best"),
                ([*(f"{n:,}" for n in family), *map(format_breakeven, pair)] for family, pair in shifts.items()),
            ),
            Section("Configurations", COLUMNS, map(line, found)),
            Section(
                "Sparse training of one output with more than 2,000 columns",
                COLUMNS,
                map(line, apart),
                text="Their sparse ratios are left to other work and count for no performance target here.",
            ),
            Section("Candidates without a time", ("candidate", "status", "reason", "cases"), compare.untimed(found)),
            Section("What of the work differs", ("candidate", "what differs"), compare.notes(found)),
        ],
        [shift_sentence(shifts)],
        compare.method(found) | {"dense": dense},
    )


SUITE = Suite("fair", tables.FAIR, measure, page)
