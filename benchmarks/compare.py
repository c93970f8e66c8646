"""Records compared: the newest of each case, the fastest of a side, ratios with their interval, and targets."""

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from workbench.advising.racing import Race, Timing
from workbench.analysis.formatting import format_count, format_number, format_seconds, format_with_interval
from workbench.analysis.pool import group_by
from workbench.measure.posterior import Ratio

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Compared:
    """The newest records of a case on a machine, one a candidate."""

    records: Sequence[Record]

    @property
    def settings(self) -> Record:
        """The first record, for columns that all records of the case share."""
        return self.records[0]

    @property
    def name(self) -> str:
        """Name of the case."""
        return str(self.settings["case"])

    def fastest(self, **values: Any) -> Record | None:
        """Return the record with the least `seconds` among those with these column values and a time; None if none."""
        able = [one for one in self.timed if all(one[name] == value for name, value in values.items())]
        return min(able, key=lambda one: one["seconds"], default=None)

    @cached_property
    def timed(self) -> list[Record]:
        """The records with a time."""
        return [one for one in self.records if one["status"] == "ok" and one["seconds"]]

    def ratio(self, first: Mapping[str, Any], second: Mapping[str, Any]) -> Ratio | None:
        """Return the time ratio of the fastest records with the column values `first` and `second`; None without both.

        With 95 % interval and the probability that it is above 1.
        """
        one, other = self.fastest(**first), self.fastest(**second)
        return ratio(one, other) if one and other else None


def ratio(first: Record, second: Record) -> Ratio:
    """Return the time ratio of two records whose samples are of the same rounds.

    Interval and probability are those of the posterior, as in `wb.race`; the value is the median over the rounds, which
    one that other programs slow a hundred times does not move.
    """
    sides = {name: one["samples"] or [one["seconds"]] for name, one in (("first", first), ("second", second))}
    least = min(map(len, sides.values()))
    share = max(first["busy_others"] or 0.0, second["busy_others"] or 0.0)
    timings = {name: Timing(1, samples[:least], [share] * least) for name, samples in sides.items()}
    found = Race(timings, "", {}).posterior.ratio("first", "second")
    pairs = zip(*(timing.seconds for timing in timings.values()), strict=True)
    middle = statistics.median(one / other for one, other in pairs)
    return found._replace(value=middle, low=min(found.low, middle), high=max(found.high, middle))


def newest(records: Iterable[Record], by: Sequence[str] = ("case", "machine", "threads")) -> list[Compared]:
    """Return each case on each machine, in the order written: of the newest key the newest record of each candidate."""
    cases: dict[tuple, dict[str, dict[str, Record]]] = {}
    for record in records:
        keys = cases.setdefault(tuple(record[name] for name in by), {})
        of_key = keys.pop(record["key"], {})
        keys[record["key"]] = of_key | {record["candidate"]: record}  # last is the key that was written last
    return [Compared(list(list(keys.values())[-1].values())) for keys in cases.values()]


def geometric_mean(values: Iterable[float]) -> float | None:
    """Return the geometric mean of positive values; None without any.

    >>> round(geometric_mean([1.0, 4.0]), 9)
    2.0
    """
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs)) if logs else None


class Target(NamedTuple):
    """A target in words, what was measured, and whether it is met; None if no record says."""

    what: str
    wanted: str
    measured: str
    met: bool | None


def target(
    what: str,
    values: Mapping[str, float | None],
    *,
    most: float | None = None,
    least: float | None = None,
    is_mean: bool = False,
    tell: Callable[[float], str] = format_number,
) -> Target:
    """Return the target that each of `values`, by case, or their geometric mean is at most or at least a number.

    Unknown values (None) are left out; without any it is "not measured".

    >>> target("time", {"a": 1.0, "b": 3.0}, most=2.0)
    Target(what='time', wanted='≤ 2', measured='3 (b); 1 of 2 above', met=False)
    >>> target("time, geometric mean", {"a": 1.0, "b": 4.0}, least=2.0, is_mean=True).measured
    '2 over 2 cases'
    """
    sign, bound = (1, most) if most is not None else (-1, least)
    assert bound is not None, "one of both is given"
    wanted = f"{'≤' if sign > 0 else '≥'} {tell(bound)}"
    known = {name: value for name, value in values.items() if value is not None}
    if not known:
        return Target(what, wanted, "not measured", None)
    if is_mean:
        mean = geometric_mean(known.values()) or 0.0
        return Target(
            what, wanted, f"{tell(mean)} over {format_count(len(known), 'case')}", sign * mean <= sign * bound
        )
    worst = max(known, key=lambda name: sign * known[name])
    off = sum(sign * value > sign * bound for value in known.values())
    count = f"; {off} of {len(known)} {'above' if sign > 0 else 'below'}" if len(known) > 1 and off else ""
    return Target(what, wanted, f"{tell(known[worst])} ({worst}){count}", not off)


def value_of(ratio: Ratio | None) -> float | None:
    """Return the value of a ratio, None without one."""
    return ratio.value if ratio else None


def ratio_text(ratio: Ratio | None) -> str:
    """Return a ratio with its interval as text; "" for None.

    >>> ratio_text(Ratio(0.841, 0.8, 0.9)), ratio_text(None)
    ('0.841 (0.8 to 0.9)', '')
    """
    return "" if ratio is None else format_with_interval(ratio.value, ratio.low, ratio.high, format_number)


def time_text(record: Record | None, name: bool = True) -> str:
    """Return the median seconds of a record with its interval, and its candidate's `name`; "not timed" for None."""
    if record is None:
        return "not timed"
    low, high = record["seconds_low"] or record["seconds"], record["seconds_high"] or record["seconds"]
    text = format_with_interval(record["seconds"], low, high, format_seconds)
    return f"{text}, {record['candidate'].removeprefix('project, ')}" if name else text


def untimed(found: Iterable[Compared]) -> list[list[str]]:
    """Return [candidate, status, first reason, count of cases] per candidate and status without a time."""
    lost = [record for one in found for record in one.records if record["status"] != "ok"]
    alike = group_by(lost, lambda record: (record["candidate"], record["status"]))
    return [[name, status, each[0]["reason"], str(len(each))] for (name, status), each in alike.items()]


def notes(found: Iterable[Compared]) -> list[list[str]]:
    """Return [candidate, what of its work differs] of the candidates that have a time and a note."""
    noted = {one["candidate"]: one["note"] for compared in found for one in compared.timed if one["note"]}
    return [[name, text] for name, text in sorted(noted.items())]


def method(found: Sequence[Compared]) -> dict[str, str]:
    """Return the counts of cases and rounds, threads, largest error and share of other programs, as texts by name."""
    timed = [one for compared in found for one in compared.timed]
    return {
        "cases": format_count(len(found), "case"),
        "rounds": str(max((len(one["samples"] or ()) for one in timed), default=0)),
        "threads": ", ".join(sorted({str(one["threads"]) for one in timed})),
        "error": f"{max((one['error'] or 0.0 for one in timed), default=0.0):.1e}",
        "busy": f"{100 * max((one['busy_others'] or 0.0 for one in timed), default=0.0):.0f} %",
    }
