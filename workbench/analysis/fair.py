"""Both sides beside the best independent ones: time ratios, goals, and what is left out of each configuration."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.analysis import words
from workbench.analysis.bench import geometric_mean
from workbench.analysis.goal import Goal
from workbench.measure.rounds import Ratio

Record = Mapping[str, Any]
KINDS = ("dense", "sparse")
EACH, DENSE_TOGETHER, SPARSE_TOGETHER = 1.15, 1.0, 0.6
"""Largest time ratio wanted of each configuration, and of the geometric means."""
COLUMNS_APART = 2000
"""Columns from which on sparse training of one output has a separate goal."""


@dataclass(frozen=True)
class Side:
    """The fastest record of the project and the fastest independent one of a kind; None if none was timed."""

    project: Record | None
    independent: Record | None

    @property
    def ratio(self) -> Ratio | None:
        """Time of the project / that of the independent one: median, least and most of the rounds that both have."""
        if self.project is None or self.independent is None:
            return None
        pairs = zip(self.project["samples"], self.independent["samples"], strict=False)
        each = [one / other for one, other in pairs]
        return Ratio(float(np.median(each)), min(each), max(each), len(each), 1)

    @property
    def seconds(self) -> float | None:
        """Seconds a batch of the project's best."""
        return self.project["seconds"] if self.project else None

    @property
    def seconds_at_best(self) -> float | None:
        """Seconds a batch of the project's best, divided by its ratio if an independent one is faster."""
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
        """Any record, for the columns that all of a configuration share."""
        return self.records[0]

    @property
    def name(self) -> str:
        """Name of the configuration."""
        return self.settings["configuration"]

    @property
    def family(self) -> tuple[int, int, int]:
        """D, rows a batch, N."""
        return self.settings["features"], self.settings["batch_rows"], self.settings["width"]

    @property
    def is_apart(self) -> bool:
        """Whether sparse training has a separate goal here: one output, many columns."""
        return self.settings["width"] == 1 and self.settings["features"] > COLUMNS_APART


def found_in(records: Iterable[Record]) -> list[Compared]:
    """Configurations in the order they were first measured, each by the records of its newest key.

    The newest record of a candidate counts.
    """
    by_place: dict[tuple, dict[str, dict[str, Record]]] = {}
    for one in records:
        keys = by_place.setdefault((one["configuration"], one["machine"], one["threads"]), {})
        of_key = keys.pop(one["key"], {})
        keys[one["key"]] = of_key | {one["candidate"]: one}  # last is the key that was written last
    return [_compared(list(list(keys.values())[-1].values())) for keys in by_place.values()]


def _compared(records: list[Record]) -> Compared:
    timed = [one for one in records if one["status"] == "ok" and one["seconds"]]

    def fastest(side: str, kind: str) -> Record | None:
        able = [one for one in timed if (one["side"], one["kind"]) == (side, kind)]
        return min(able, key=lambda one: one["seconds"], default=None)

    sides = {kind: Side(fastest("project", kind), fastest("independent", kind)) for kind in KINDS}
    return Compared(records, sides)


def goals(found: Sequence[Compared]) -> list[Goal]:
    """Goals of each configuration and of the geometric mean, of dense and of sparse training."""
    dense = {one.name: one.sides["dense"].ratio for one in found}
    sparse = {one.name: one.sides["sparse"].ratio for one in found if not one.is_apart}
    several = f"but for N = 1 with D > {COLUMNS_APART:,}"
    return [
        _each("best dense / fastest independent dense, each configuration", dense),
        _together("the same, geometric mean", dense, DENSE_TOGETHER),
        _each(f"best sparse / fastest independent sparse, each configuration {several}", sparse),
        _together("the same, geometric mean", sparse, SPARSE_TOGETHER),
    ]


def apart(found: Sequence[Compared]) -> list[Compared]:
    """Configurations of which sparse training is the goal of other work."""
    return [one for one in found if one.is_apart]


def _each(what: str, ratios: Mapping[str, Ratio | None]) -> Goal:
    known = {name: ratio.value for name, ratio in ratios.items() if ratio}
    wanted = f"≤ {EACH:g}"
    if not known:
        return Goal(what, wanted, "not measured", None)
    worst = max(known, key=lambda name: known[name])
    above = sum(value > EACH for value in known.values())
    measured = f"at most {words.number(known[worst])} ({worst}); {above} of {len(known)} above {EACH:g}"
    return Goal(what, wanted, measured, above == 0)


def _together(what: str, ratios: Mapping[str, Ratio | None], wanted: float) -> Goal:
    mean = geometric_mean(ratio.value for ratio in ratios.values() if ratio)
    if mean is None:
        return Goal(what, f"≤ {wanted:g}", "not measured", None)
    return Goal(what, f"≤ {wanted:g}", words.number(mean), mean <= wanted)


def not_timed(found: Sequence[Compared]) -> list[tuple[str, str, str, int]]:
    """(candidate, status, a reason, configurations) of candidates that have no time, alike reasons together."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for one in found:
        for record in one.records:
            if record["status"] != "ok":
                reasons.setdefault((record["candidate"], record["status"]), []).append(record["reason"])
    return [(name, status, each[0], len(each)) for (name, status), each in reasons.items()]
