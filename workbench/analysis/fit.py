"""Trainings to a held-out quality, from their rows: the target of each case, and each candidate's time to it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from workbench import store
from workbench.analysis import formatting
from workbench.analysis.bench import Goal, geometric_mean
from workbench.analysis.configurations import records
from workbench.measure.posterior import Ratio
from workbench.measure.rounds import ratio_of

Record = Mapping[str, Any]
CASE = ("case", "held_out", "machine", "threads")
"""Columns that rows of one case agree in."""

ENDS = {"no gain": "no gain any more", "done": "at its own end", "lost": "no number any more"}
"""Why a training ended before its time, in words, by the column `left`."""
OLD = 0.01
"""The tolerance of rounds that were stored before there were several."""


@dataclass(frozen=True)
class Entry:
    """Rows of one candidate of a case: of its settings, and of rounds those to the case's target."""

    name: str
    settings: Sequence[Record]
    rounds: Sequence[Record]
    larger_is_better: bool = False
    target: float | None = None

    @property
    def is_ours(self) -> bool:
        """Whether it is one of ours, sparse or dense."""
        return self.settings[0]["side"] == "ours"

    @property
    def is_dense(self) -> bool:
        """Whether it is the dense baseline of ours."""
        return bool(self.settings[0]["is_dense"])

    @property
    def by_round(self) -> dict[tuple[Any, Any], float]:
        """Seconds to the target by round, as of one run: each is of processes of its own, whenever it was measured."""
        known = (row for row in self.rounds if _is_number(row["seconds"]))
        return {("", (row["run"], row["round"])): row["seconds"] for row in known}

    @property
    def seconds(self) -> tuple[float, float, float] | None:
        """(median, least, most) of the rounds; None if the target was not reached."""
        found = list(self.by_round.values())
        return (float(np.median(found)), min(found), max(found)) if found else None

    @property
    def value_best(self) -> float | None:
        """The best value of all settings; None without a point."""
        values = [row["value_best"] for row in self.settings if _is_number(row["value_best"])]
        return (max if self.larger_is_better else min)(values, default=None)

    @property
    def seconds_once(self) -> float | None:
        """Seconds of the soonest setting, tried once; None if none reached the target."""
        return min((point[0] for row in self.settings if (point := self._reached(row))), default=None)

    @property
    def seconds_staying(self) -> float | None:
        """Seconds from which on the soonest setting, tried once, stays at the target to the end; None if none does."""
        return min((since for row in self.settings if (since := self._stays(row)) is not None), default=None)

    def _is_there(self, point: Sequence[Any]) -> bool:
        """Return whether a point (seconds, value, ...) reaches the target."""
        if self.target is None or not _is_number(point[1]):
            return False
        return bool(point[1] >= self.target if self.larger_is_better else point[1] <= self.target)

    def _reached(self, row: Record) -> Sequence[float] | None:
        """Return the first point of a training that reaches the target, or None."""
        return next((point for point in row["curve"] or [] if self._is_there(point)), None)

    def _stays(self, row: Record) -> float | None:
        """Return the seconds of the first of the last points that are all at the target."""
        since = None
        for point in reversed(row["curve"] or []):
            if not self._is_there(point):
                break
            since = float(point[0])
        return since

    @property
    def best(self) -> Record | None:
        """Return the record of the setting that reached the target first, else of the setting that came closest; None
        if there are no records."""
        known = [row for row in self.settings if _is_number(row["value_best"])]
        reached = [(point[0], row) for row in known if (point := self._reached(row))]
        if reached:
            return min(reached, key=lambda each: each[0])[1]
        sign = -1 if self.larger_is_better else 1
        return min(known, key=lambda row: sign * row["value_best"], default=None)

    @property
    def state(self) -> str:
        """Reason why there are no seconds, in a few words; "" if there are."""
        if self.seconds:
            return ""
        if self.seconds_once is not None:
            return f"about {formatting.format_seconds(self.seconds_once, 2)}, tried once"
        if self.target is None and self.value_best is not None:
            return "rounds not run yet"
        ended = next((row for row in self.settings if row["status"] in ("unsupported", "memory")), None)
        if ended is None:
            failed = [row for row in self.settings if row["status"] == "failed"]
            return f"failed: {failed[0]['reason']}" if failed and self.best is None else self._not_reached()
        needed = ended["bytes_needed"]
        return f"would need {formatting.format_bytes(needed)}" if _is_number(needed) else ended["reason"]

    def _not_reached(self) -> str:
        """End of the training that came furthest without reaching the target."""
        best = self.best or {}
        last = formatting.format_seconds(best["curve"][-1][0], 2) if best else ""
        if self.seconds_left is not None:
            return f"not reached in {last}; left there, behind others"
        if best.get("left") in ENDS:
            return f"not reached; {ENDS[best['left']]} after {last}"
        limit = formatting.format_seconds(self.settings[0]["seconds_limit"])
        return f"not reached in {last if best.get('left') == 'limit' else limit}"

    @property
    def seconds_left(self) -> float | None:
        """Seconds after which its furthest setting was left, others being ahead; None if it ended otherwise."""
        best = self.best
        if best is None or best["left"] != "limit" or not best["seconds_rung"] < best["seconds_limit"]:
            return None
        return float(best["curve"][-1][0])


@dataclass(frozen=True)
class CaseResult:
    """A case at a tolerance: a row with its facts, the target, its candidates in the order they were first written."""

    row: Record
    target: float | None
    entries: Sequence[Entry]
    tolerance: float = OLD

    @property
    def name(self) -> str:
        """Name of the case, as its rows have it."""
        return str(self.row["case"])

    @property
    def quality(self) -> str:
        """The target in words, such as "AUC ≥ 0.81"; "" if there is none."""
        sign = "≥" if self.row["larger_is_better"] else "≤"
        return "" if self.target is None else f"{self.row['measure']} {sign} {formatting.format_number(self.target, 4)}"

    @property
    def furthest(self) -> Entry | None:
        """The candidate that came to the best value with any setting."""
        able = [entry for entry in self.entries if entry.value_best is not None]
        sign = -1 if self.row["larger_is_better"] is True else 1
        return min(able, key=lambda entry: sign * (entry.value_best or 0.0), default=None)

    def fastest(self, kind: str) -> Entry | None:
        """Return the fastest that reached the target of a kind: sparse, dense (both ours) or competitor."""
        able = [entry for entry in self.entries if kind_of(entry) == kind and entry.seconds]
        return min(able, key=lambda entry: (entry.seconds or (0.0,))[0], default=None)

    @property
    def left_too_soon(self) -> list[Entry]:
        """Settings that did not reach the target and were left before the fastest of their kind was there.

        They might have been faster: nobody of that kind is called the fastest then.
        """
        found = []
        for entry in self.entries:
            fastest = self.fastest(kind_of(entry))
            needed = fastest.seconds[0] if fastest and fastest.seconds else 0.0
            if entry.seconds_once is None and entry.seconds_left is not None and entry.seconds_left < needed:
                found.append(entry)
        return found

    @property
    def ratio(self) -> Ratio | None:
        """Seconds of the fastest competitor by those of the fastest sparse one of ours; None if either is not known."""
        sparse, competitor = self.fastest("sparse"), self.fastest("rival")
        if sparse is None or competitor is None or self.left_too_soon:
            return None
        return ratio_of(competitor.by_round, sparse.by_round)

    @property
    def ratio_staying(self) -> float | None:
        """The same of seconds from which on the measure stays at the target, of settings tried once."""
        sparse, competitor = self._soonest_staying("sparse"), self._soonest_staying("rival")
        return None if sparse is None or competitor is None or self.left_too_soon else competitor / sparse

    def _soonest_staying(self, kind: str) -> float | None:
        """Return the least seconds from which on a candidate of `kind` stays at the target; None if none does."""
        seconds = (entry.seconds_staying for entry in self.entries if kind_of(entry) == kind)
        return min((second for second in seconds if second), default=None)


def kind_of(entry: Entry) -> str:
    """Return the kind of a candidate: sparse or dense, both of ours, or competitor."""
    return "rival" if not entry.is_ours else "dense" if entry.is_dense else "sparse"


def newest_records(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the newest row of each key, of those of a candidate's newest code in each case.

    `frame` has the order written.
    """
    rows = {row["key"]: row for row in records(frame)}.values()
    newest = {_trained(row): row["source"] for row in rows}
    return store.FIT.frame(row for row in rows if row["source"] == newest[_trained(row)])


def _trained(row: Record) -> tuple:
    """Case and candidate of a row."""
    return *(row[name] for name in CASE), row["contender"]


def by_tolerance(frame: pd.DataFrame) -> dict[float, list[CaseResult]]:
    """Return the cases of a frame at each tolerance of its rounds, tightest first.

    At that of older rounds without any.
    """
    by_case: dict[tuple, list[Record]] = {}
    for row in (every := records(newest_records(frame))):
        by_case.setdefault(tuple(row[name] for name in CASE), []).append(row)
    tolerances = sorted({_tolerance(row) for row in every if row["stage"] == "rounds"}) or [OLD]
    return {tolerance: [_make_case(rows, tolerance) for rows in by_case.values()] for tolerance in tolerances}


def _tolerance(row: Record) -> float:
    """Return the tolerance of a record; records of before it was stored had the usual one."""
    return float(row["tolerance"]) if _is_number(row["tolerance"]) else OLD


def _make_case(rows: Sequence[Record], tolerance: float) -> CaseResult:
    """Return the result of one data set and model at a tolerance, with an entry for each candidate."""
    settings = [row for row in rows if row["stage"] == "settings"]
    rounds = [row for row in rows if row["stage"] == "rounds" and _tolerance(row) == tolerance]
    target = rounds[-1]["target"] if rounds else None
    larger = any(row["larger_is_better"] is True for row in rows)
    names = dict.fromkeys(row["contender"] for row in settings)
    entries = [
        Entry(
            name,
            [row for row in settings if row["contender"] == name],
            [row for row in rounds if row["contender"] == name and row["target"] == target],
            larger,
            target,
        )
        for name in names
    ]
    known = next((row for row in rows if _is_number(row["features"])), rows[0])
    return CaseResult(known, target, entries, tolerance)


def format_tolerance(tolerance: float) -> str:
    """Return a tolerance in words.

    >>> format_tolerance(0.003), format_tolerance(0.01)
    ('0.3 %', '1 %')
    """
    return f"{100 * tolerance:g} %"


def format_ratio(ratio: Ratio | None) -> str:
    """Return a ratio with its interval.

    >>> format_ratio(Ratio(2.04, 1.5, 2.8))
    '2 x (1.5 to 2.8)'
    """
    if ratio is None:
        return ""
    low, high = (
        formatting.format_number(ratio.low, 2),
        "∞" if np.isinf(ratio.high) else formatting.format_number(ratio.high, 2),
    )
    return f"{formatting.format_number(ratio.value, 2)} x ({low} to {high})"


def _is_number(value: Any) -> bool:
    """Return whether a value is neither None, NaN nor pandas.NA."""
    return value is not None and value == value and value is not pd.NA


# Goals of trainings to a held-out quality, and how far the choice of the target moves what is found.


BINARY, EACH, TOGETHER, SOFTMAX = "logistic", 5.0, 10.0, 5.0
"""The model of the sets of yes or no, the ratios wanted there of each set and of all, and that wanted of softmax."""

ByTolerance = Mapping[float, Sequence[CaseResult]]
"""The cases at each tolerance, tightest first."""


def list_targets(found: ByTolerance) -> list[Goal]:
    """Return the goals of the cases, and what was reached.

    Each is met if it is at every tolerance, so that none decides alone.
    """
    return [_met_at_all_tolerances(found, goal) for goal in (_each_binary, _together_binary, _each_softmax)]


def _met_at_all_tolerances(found: ByTolerance, goal: Callable[[Sequence[CaseResult]], Goal]) -> Goal:
    """Return one target for all tolerances: met if it is met at each."""
    each = {tolerance: goal(cases) for tolerance, cases in found.items()}
    known = {tolerance: one for tolerance, one in each.items() if one.met is not None}
    first = next(iter(each.values()))
    if len(each) == 1 or not known:
        return first
    measured = ". ".join(f"At {format_tolerance(tolerance)}: {one.measured}" for tolerance, one in each.items())
    return first._replace(measured=measured, met=len(known) == len(each) and all(one.met for one in known.values()))


def _binary(cases: Sequence[CaseResult]) -> list[CaseResult]:
    """Return the cases of binary classification."""
    return [case for case in cases if case.row["model"] == BINARY]


def _each_binary(cases: Sequence[CaseResult]) -> Goal:
    """Return the target for each binary data set against its fastest competitor."""
    return _targets_of_each("each set of yes or no, against the fastest competitor", _binary(cases), EACH)


def _together_binary(cases: Sequence[CaseResult]) -> Goal:
    """Return the target for all binary data sets together, by the geometric mean."""
    return _targets_of_mean("sets of yes or no together, geometric mean", _binary(cases), TOGETHER)


def _each_softmax(cases: Sequence[CaseResult]) -> Goal:
    """Return the target for softmax on the standard library's text, against the fastest competitor."""
    text = [case for case in cases if case.row["model"] == "softmax" and case.row["dataset"] == "stdlib"]
    return _targets_of_each("softmax on the standard library, against the fastest competitor", text, SOFTMAX)


def _targets_of_each(what: str, cases: Sequence[CaseResult], wanted: float) -> Goal:
    """Return the target that each case's ratio is at least `wanted`; not met if sparse misses a case's quality."""
    lost = [case.name for case in cases if not case.fastest("sparse") and case.fastest("rival")]
    known = sorted((case.ratio.value, case.name) for case in cases if case.ratio)
    if lost:
        return Goal(
            what, f"≥ {wanted:g} x", f"sparse does not reach the target of {formatting.join_items(lost)}", False
        )
    if not known:
        return Goal(what, f"≥ {wanted:g} x", "not measured", None)
    measured = "; ".join(f"{formatting.format_number(value, 2)} x {name}" for value, name in known)
    return Goal(what, f"≥ {wanted:g} x", measured, known[0][0] >= wanted)


def _targets_of_mean(what: str, cases: Sequence[CaseResult], wanted: float) -> Goal:
    """Return the target that the geometric mean of the ratios is at least `wanted`, every case measured."""
    known = [case.ratio.value for case in cases if case.ratio]
    mean = geometric_mean(known)
    if mean is None:
        return Goal(what, f"≥ {wanted:g} x", "not measured", None)
    is_whole = len(known) == len(cases)
    measured = (
        f"{formatting.format_number(mean, 2)} x over {len(known)} of {formatting.format_count(len(cases), 'set')}"
    )
    return Goal(what, f"≥ {wanted:g} x", measured, mean >= wanted and is_whole)


def ratio_touching(case: CaseResult) -> float | None:
    """Return the seconds to the first touch of the target, competitor by sparse."""
    return case.ratio.value if case.ratio else None


def ratio_staying(case: CaseResult) -> float | None:
    """Return the seconds from which on the measure stays at the target, competitor by sparse."""
    return case.ratio_staying


Reading = Callable[[CaseResult], float | None]


def ratios_at_all_tolerances(found: ByTolerance, reading: Reading) -> dict[str, list[float]]:
    """Return the ratios of each case by tolerance, for cases with a ratio at every tolerance."""
    every = {each[0].name: list(map(reading, each)) for each in zip(*found.values(), strict=True)}
    return {name: [one for one in each if one is not None] for name, each in every.items() if None not in each}


def mean_ratios(found: ByTolerance, reading: Reading = ratio_touching) -> list[float | None]:
    """Return the geometric mean of the ratios at each tolerance, over the cases that have one at every tolerance."""
    each = list(ratios_at_all_tolerances(found, reading).values())
    return [geometric_mean(ratios) for ratios in zip(*each, strict=True)] if each else [None] * len(found)


def tolerance_sensitivity(found: ByTolerance) -> str:
    """Statement of how far the choice of the tolerance moves the geometric mean, and the case that it moves most."""
    if len(found) < 2:
        only = format_tolerance(next(iter(found)))
        return f"The target was within {only} alone: how far that choice moves the ratios is not known."
    ratios = ratios_at_all_tolerances(found, ratio_touching)
    if not ratios:
        return "No case has a ratio at every tolerance: how far that choice moves the ratios is not known."
    mean = [value for value in mean_ratios(found) if value is not None]
    name = max(ratios, key=lambda name: _spread(ratios[name]))
    return (
        f"The choice of the tolerance moves the geometric mean by {formatting.format_number(_spread(mean), 2)} "
        f"x: it is "
        f"{_join_names(found, mean)}. It moves {name} most: {_join_names(found, ratios[name])}. "
        "None of the tolerances decides alone."
    )


def _spread(ratios: Sequence[float]) -> float:
    """Return the largest ratio over the smallest."""
    return max(ratios) / min(ratios)


def _join_names(found: ByTolerance, ratios: Sequence[float]) -> str:
    """Return each tolerance's ratio as text, "2.1 x at 1 %, ..."."""
    each = zip(found, ratios, strict=True)
    return formatting.join_items(
        f"{formatting.format_number(value, 2)} x at {format_tolerance(tolerance)}" for tolerance, value in each
    )


def table(found: ByTolerance) -> tuple[tuple[str, ...], list[list[str]]]:
    """Return columns and lines of the ratios of each case, by first touch and staying, then their geometric means."""
    columns = (
        "case",
        *map(format_tolerance, found),
        *(f"{format_tolerance(tolerance)}, staying" for tolerance in found),
    )
    lines = [
        [each[0].name, *_shown(map(ratio_touching, each)), *_shown(map(ratio_staying, each))]
        for each in zip(*found.values(), strict=True)
    ]
    mean = ["geometric mean of cases with all", *_shown(mean_ratios(found)), *_shown(mean_ratios(found, ratio_staying))]
    return columns, [*lines, mean]


def _shown(values: Iterable[float | None]) -> list[str]:
    """Return ratios as text, "2.1 x"; "" for None."""
    return ["" if value is None else f"{formatting.format_number(value, 2)} x" for value in values]
