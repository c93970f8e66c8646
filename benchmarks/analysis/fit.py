"""Trainings to a held-out quality, from their rows: the target of each case, and each candidate's time to it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import tables
from benchmarks.analysis.bench import PerformanceTarget, geometric_mean
from workbench.analysis.configurations import group_by, records
from workbench.analysis.formatting import format_bytes, format_count, format_number, format_seconds, join_items
from workbench.measure.posterior import Ratio
from workbench.measure.rounds import ratio_of

Record = Mapping[str, Any]
CASE = ("case", "held_out", "machine", "threads")
"""Columns that rows of one case agree in."""

ENDS = {"no gain": "no further gain", "done": "finished", "lost": "no longer finite"}
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
        """Whether the candidate belongs to this project, sparse or dense (`side` "ours" in its first record)."""
        return self.settings[0]["side"] == "ours"

    @property
    def is_dense(self) -> bool:
        """Whether the candidate is this project's dense baseline (`is_dense` of its first settings record)."""
        return bool(self.settings[0]["is_dense"])

    @property
    def by_round(self) -> dict[tuple[Any, Any], float]:
        """Seconds to the target, as a dict keyed by ("", (run, round)); rounds without a number are left out.

        The first key part is the same for all rounds, because each round ran in separate processes: `ratio_of` then
        treats them as rounds of one run.
        """
        known = (row for row in self.rounds if _is_number(row["seconds"]))
        return {("", (row["run"], row["round"])): row["seconds"] for row in known}

    @property
    def seconds(self) -> tuple[float, float, float] | None:
        """(median, minimum, maximum) of the seconds to the target over the rounds; None if no round reached it."""
        found = list(self.by_round.values())
        return (float(np.median(found)), min(found), max(found)) if found else None

    @property
    def value_best(self) -> float | None:
        """The best `value_best` of all settings: the largest if `larger_is_better`, else the smallest.

        None if none is known.
        """
        values = [row["value_best"] for row in self.settings if _is_number(row["value_best"])]
        return (max if self.larger_is_better else min)(values, default=None)

    @property
    def seconds_once(self) -> float | None:
        """Least seconds after which a settings training (each run once) first reached the target.

        None if none reached it.
        """
        return min((point[0] for row in self.settings if (point := self._reached(row))), default=None)

    @property
    def seconds_staying(self) -> float | None:
        """Least seconds after which one of the settings trainings never leaves the target again; None if none does.

        Only the settings trainings, each run once, are looked at, not the rounds.
        """
        return min((since for row in self.settings if (since := self._stays(row)) is not None), default=None)

    def _is_there(self, point: Sequence[Any]) -> bool:
        """Return whether a curve point (seconds, value, ...) reaches the target: value >= target, or <= for a loss.

        False if there is no target, or if the value is None, NaN or pandas.NA.
        """
        if self.target is None or not _is_number(point[1]):
            return False
        return bool(point[1] >= self.target if self.larger_is_better else point[1] <= self.target)

    def _reached(self, row: Record) -> Sequence[float] | None:
        """Return the first point (seconds, value, ...) of `row["curve"]` that reaches the target; None if none does."""
        return next((point for point in row["curve"] or [] if self._is_there(point)), None)

    def _stays(self, row: Record) -> float | None:
        """Return the seconds from which on all points of `row["curve"]` are at the target; None if the last is not."""
        since = None
        for point in reversed(row["curve"] or []):
            if not self._is_there(point):
                break
            since = float(point[0])
        return since

    @property
    def best(self) -> Record | None:
        """The settings record that first reached the target; if none did, that with the best `value_best`.

        None if no settings record has a number in `value_best`.
        """
        known = [row for row in self.settings if _is_number(row["value_best"])]
        reached = [(point[0], row) for row in known if (point := self._reached(row))]
        if reached:
            return min(reached, key=lambda each: each[0])[1]
        sign = -1 if self.larger_is_better else 1
        return min(known, key=lambda row: sign * row["value_best"], default=None)

    @property
    def state(self) -> str:
        """Short reason why there is no time to the target, such as "would need 12 GB"; "" if `seconds` is known.

        Other examples: "about 3.1 s, tried once", "rounds not run yet", "failed: ...", "not reached in 60 s".
        """
        if self.seconds:
            return ""
        if self.seconds_once is not None:
            return f"about {format_seconds(self.seconds_once, 2)}, tried once"
        if self.target is None and self.value_best is not None:
            return "rounds not run yet"
        ended = next((row for row in self.settings if row["status"] in ("unsupported", "memory")), None)
        if ended is None:
            failed = [row for row in self.settings if row["status"] == "failed"]
            return f"failed: {failed[0]['reason']}" if failed and self.best is None else self._not_reached()
        needed = ended["bytes_needed"]
        return f"would need {format_bytes(needed)}" if _is_number(needed) else ended["reason"]

    def _not_reached(self) -> str:
        """Return how the best training ended short of the target, as "not reached; no further gain after 3.1 s"."""
        ended = self.ended
        return f"not reached in {ended}" if ended[:1].isdigit() else f"not reached; {ended}"

    @property
    def ended(self) -> str:
        """How the training of the best setting ended: "no further gain after 3.1 s", or its time limit, "60 s"."""
        best = self.best or {}
        last = format_seconds(best["curve"][-1][0], 2) if best else ""
        if self.seconds_left is not None:
            return f"stopped after {last}, behind others"
        if best.get("left") in ENDS:
            return f"{ENDS[best['left']]} after {last}"
        return last if best.get("left") == "limit" else format_seconds(self.settings[0]["seconds_limit"])

    @property
    def seconds_left(self) -> float | None:
        """Seconds after which the best setting was stopped early because other settings were ahead.

        None if it ended otherwise.
        """
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
        """Name of the case: the `case` column of its record."""
        return str(self.row["case"])

    @property
    def quality(self) -> str:
        """The target as text: measure, sign and value, such as "AUC ≥ 0.81" or "log loss ≤ 0.3".

        "" if there is none.
        """
        sign = "≥" if self.row["larger_is_better"] else "≤"
        return "" if self.target is None else f"{self.row['measure']} {sign} {format_number(self.target, 4)}"

    @property
    def furthest(self) -> Entry | None:
        """The entry with the best `value_best` (largest or smallest, as the measure requires).

        None if none has a value.
        """
        able = [entry for entry in self.entries if entry.value_best is not None]
        sign = -1 if self.row["larger_is_better"] is True else 1
        return min(able, key=lambda entry: sign * (entry.value_best or 0.0), default=None)

    def fastest(self, kind: str) -> Entry | None:
        """Return the entry of a kind with the smallest median seconds to the target; None if none reached it.

        `kind` is "sparse" or "dense" (both of this project) or "competitor" (another library), as `kind_of` returns it.
        """
        able = [entry for entry in self.entries if kind_of(entry) == kind and entry.seconds]
        return min(able, key=lambda entry: (entry.seconds or (0.0,))[0], default=None)

    @property
    def left_too_soon(self) -> list[Entry]:
        """Entries without the target that were stopped earlier than the fastest entry of their kind needed to reach it.

        They might have been faster, so `ratio` and `ratio_staying` are None if there is any; dense trainings of this
        project, which neither compares, are left out.
        """
        found = []
        for entry in (one for one in self.entries if kind_of(one) != "dense"):
            fastest = self.fastest(kind_of(entry))
            needed = fastest.seconds[0] if fastest and fastest.seconds else 0.0
            if entry.seconds_once is None and entry.seconds_left is not None and entry.seconds_left < needed:
                found.append(entry)
        return found

    @property
    def ratio(self) -> Ratio | None:
        """Seconds of the fastest competitor over those of the fastest sparse candidate; above 1, sparse is faster.

        None if either did not reach the target, or if `left_too_soon` is not empty.
        """
        sparse, competitor = self.fastest("sparse"), self.fastest("competitor")
        if sparse is None or competitor is None or self.left_too_soon:
            return None
        return ratio_of(competitor.by_round, sparse.by_round)

    @property
    def ratio_staying(self) -> float | None:
        """Competitor over sparse, of the least seconds from which on a training stays at the target; settings run once.

        None if no candidate of either kind stays there, or if `left_too_soon` is not empty.
        """
        sparse, competitor = self._soonest_staying("sparse"), self._soonest_staying("competitor")
        return None if sparse is None or competitor is None or self.left_too_soon else competitor / sparse

    def _soonest_staying(self, kind: str) -> float | None:
        """Return the least `seconds_staying` of the entries of `kind` ("sparse", "dense", "competitor").

        None if none stays.
        """
        seconds = (entry.seconds_staying for entry in self.entries if kind_of(entry) == kind)
        return min((second for second in seconds if second), default=None)


def kind_of(entry: Entry) -> str:
    """Return the kind of an entry: "sparse" or "dense" for this project's candidates, "competitor" else."""
    return "competitor" if not entry.is_ours else "dense" if entry.is_dense else "sparse"


def newest_records(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame of training records without outdated ones; `frame` must be in the order written.

    Of each `key` the last record is kept, and of each (case, candidate) only records with the `source` (code version)
    of the last one.
    """
    rows = {row["key"]: row for row in records(frame)}.values()
    newest = {_trained(row): row["source"] for row in rows}
    return tables.FIT.frame(row for row in rows if row["source"] == newest[_trained(row)])


def _trained(row: Record) -> tuple:
    """Return (case, held_out, machine, threads, candidate) of a record: the identity of a candidate within a case."""
    return *(row[name] for name in CASE), row["candidate"]


def by_tolerance(frame: pd.DataFrame) -> dict[float, list[CaseResult]]:
    """Return {tolerance: results of all cases}, ascending, so the tightest tolerance comes first.

    `frame` holds training records in the order written; outdated ones are dropped. Tolerances are those of the records
    of stage "rounds", as fractions; without any it is 0.01 alone.
    """
    every = records(newest_records(frame))
    by_case = group_by(every, itemgetter(*CASE))
    tolerances = sorted({_tolerance(row) for row in every if row["stage"] == "rounds"}) or [OLD]
    return {tolerance: [_make_case(rows, tolerance) for rows in by_case.values()] for tolerance in tolerances}


def _tolerance(row: Record) -> float:
    """Return the `tolerance` of a record as a fraction, 0.01 if the column is empty (older records)."""
    return float(row["tolerance"]) if _is_number(row["tolerance"]) else OLD


def _make_case(rows: Sequence[Record], tolerance: float) -> CaseResult:
    """Return the `CaseResult` of the records of one case at a tolerance, with one `Entry` per candidate.

    The target is that of the last round at this tolerance (None without rounds); rounds to another target are left out.
    """
    settings = [row for row in rows if row["stage"] == "settings"]
    rounds = [row for row in rows if row["stage"] == "rounds" and _tolerance(row) == tolerance]
    target = rounds[-1]["target"] if rounds else None
    larger = any(row["larger_is_better"] is True for row in rows)
    names = dict.fromkeys(row["candidate"] for row in settings)
    entries = [
        Entry(
            name,
            [row for row in settings if row["candidate"] == name],
            [row for row in rounds if row["candidate"] == name and row["target"] == target],
            larger,
            target,
        )
        for name in names
    ]
    known = next((row for row in rows if _is_number(row["features"])), rows[0])
    return CaseResult(known, target, entries, tolerance)


def format_tolerance(tolerance: float) -> str:
    """Return a tolerance, a fraction, as per cent.

    >>> format_tolerance(0.003), format_tolerance(0.01)
    ('0.3 %', '1 %')
    """
    return f"{100 * tolerance:g} %"


def format_ratio(ratio: Ratio | None) -> str:
    """Return a ratio with its interval as text, two significant digits; "" for None.

    >>> format_ratio(Ratio(2.04, 1.5, 2.8))
    '2 x (1.5 to 2.8)'
    """
    if ratio is None:
        return ""
    low, high = (format_number(ratio.low, 2), "∞" if np.isinf(ratio.high) else format_number(ratio.high, 2))
    return f"{format_number(ratio.value, 2)} x ({low} to {high})"


def _is_number(value: Any) -> bool:
    """Return whether a value is neither None, NaN nor pandas.NA."""
    return value is not None and value == value and value is not pd.NA


# Targets of trainings to a held-out quality, and how far the choice of the target moves what is found.


BINARY, EACH, TOGETHER, SOFTMAX = "logistic", 5.0, 10.0, 5.0
"""The model of the sets of yes or no, the ratios wanted there of each set and of all, and that wanted of softmax."""

ByTolerance = Mapping[float, Sequence[CaseResult]]
"""The cases at each tolerance, tightest first."""


def list_targets(found: ByTolerance) -> list[PerformanceTarget]:
    """Return the three performance targets of trainings, with what was measured: each binary case, all binary, softmax.

    A target counts as met only if it is met at every tolerance in `found` ({tolerance: cases}).
    """
    return [
        _met_at_all_tolerances(found, make_target) for make_target in (_each_binary, _together_binary, _each_softmax)
    ]


def _met_at_all_tolerances(
    found: ByTolerance, make_target: Callable[[Sequence[CaseResult]], PerformanceTarget]
) -> PerformanceTarget:
    """Return one `PerformanceTarget` over all tolerances: met only if it is known and met at each.

    `make_target` makes the target of the cases of one tolerance. `measured` then lists all tolerances; with one
    tolerance, or if none is known, the target of the first tolerance is returned unchanged. `found` is {tolerance:
    results of all cases}.
    """
    each = {tolerance: make_target(cases) for tolerance, cases in found.items()}
    known = {tolerance: one for tolerance, one in each.items() if one.met is not None}
    first = next(iter(each.values()))
    if len(each) == 1 or not known:
        return first
    measured = ". ".join(f"At {format_tolerance(tolerance)}: {one.measured}" for tolerance, one in each.items())
    return first._replace(measured=measured, met=len(known) == len(each) and all(one.met for one in known.values()))


def _binary(cases: Sequence[CaseResult]) -> list[CaseResult]:
    """Return the cases whose record has the model "logistic" (binary classification)."""
    return [case for case in cases if case.row["model"] == BINARY]


def _each_binary(cases: Sequence[CaseResult]) -> PerformanceTarget:
    """Return the target that in each binary case sparse is at least 5 times as fast as the fastest competitor.

    `cases` are the results of all cases at one tolerance.
    """
    return _targets_of_each("each binary set, against the fastest competitor", _binary(cases), EACH)


def _together_binary(cases: Sequence[CaseResult]) -> PerformanceTarget:
    """Return the target that the geometric mean of the competitor / sparse ratios of all binary cases is at least 10.

    `cases` are the results of all cases at one tolerance.
    """
    return _targets_of_mean("binary sets together, geometric mean", _binary(cases), TOGETHER)


def _each_softmax(cases: Sequence[CaseResult]) -> PerformanceTarget:
    """Return the target that sparse is at least 5 times as fast in the softmax case of the data set "stdlib".

    `cases` are the results of all cases at one tolerance.
    """
    text = [case for case in cases if case.row["model"] == "softmax" and case.row["dataset"] == "stdlib"]
    return _targets_of_each("softmax on the standard library, against the fastest competitor", text, SOFTMAX)


def _targets_of_each(what: str, cases: Sequence[CaseResult], wanted: float) -> PerformanceTarget:
    """Return the target, named `what`, that each case's competitor / sparse ratio is at least `wanted`.

    `met` is False if sparse misses the target of a case that a competitor reaches, and None if no case has a ratio.
    """
    lost = [case.name for case in cases if not case.fastest("sparse") and case.fastest("competitor")]
    known = sorted((case.ratio.value, case.name) for case in cases if case.ratio)
    if lost:
        return PerformanceTarget(
            what, f"≥ {wanted:g} x", f"sparse does not reach the target of {join_items(lost)}", False
        )
    if not known:
        return PerformanceTarget(what, f"≥ {wanted:g} x", "not measured", None)
    measured = "; ".join(f"{format_number(value, 2)} x {name}" for value, name in known)
    return PerformanceTarget(what, f"≥ {wanted:g} x", measured, known[0][0] >= wanted)


def _targets_of_mean(what: str, cases: Sequence[CaseResult], wanted: float) -> PerformanceTarget:
    """Return the target, named `what`, that the geometric mean of the cases' ratios is at least `wanted`.

    Met only if every case has a ratio; `met` is None if no case has one.
    """
    known = [case.ratio.value for case in cases if case.ratio]
    mean = geometric_mean(known)
    if mean is None:
        return PerformanceTarget(what, f"≥ {wanted:g} x", "not measured", None)
    is_whole = len(known) == len(cases)
    measured = f"{format_number(mean, 2)} x over {len(known)} of {format_count(len(cases), 'set')}"
    return PerformanceTarget(what, f"≥ {wanted:g} x", measured, mean >= wanted and is_whole)


def ratio_touching(case: CaseResult) -> float | None:
    """Return competitor / sparse of the seconds until the target is first reached; None if unknown."""
    return case.ratio.value if case.ratio else None


def ratio_staying(case: CaseResult) -> float | None:
    """Return competitor / sparse of the seconds from which on the measure stays at the target; None if unknown."""
    return case.ratio_staying


Reading = Callable[[CaseResult], float | None]


def ratios_at_all_tolerances(found: ByTolerance, reading: Reading) -> dict[str, list[float]]:
    """Return {case name: its ratios in the order of the tolerances}, only for cases with a ratio at every tolerance.

    `reading` gets a `CaseResult` and returns its ratio or None. `found` is {tolerance: results of all cases}.
    """
    every = {each[0].name: list(map(reading, each)) for each in zip(*found.values(), strict=True)}
    return {name: [one for one in each if one is not None] for name, each in every.items() if None not in each}


def mean_ratios(found: ByTolerance, reading: Reading = ratio_touching) -> list[float | None]:
    """Return the geometric mean over cases at each tolerance, in the order of `found`.

    Cases lacking a ratio are left out. A case must have a ratio (by `reading`) at every tolerance. All None if no case
    has. `found` is {tolerance: results of all cases}.
    """
    each = list(ratios_at_all_tolerances(found, reading).values())
    return [geometric_mean(ratios) for ratios in zip(*each, strict=True)] if each else [None] * len(found)


def tolerance_sensitivity(found: ByTolerance) -> str:
    """Return sentences on how much the tolerance moves the geometric mean of the ratios, and which case it moves most.

    If there is one tolerance, or no case has a ratio at all of them, the text says that this is unknown. `found` is
    {tolerance: results of all cases}.
    """
    if len(found) < 2:
        only = format_tolerance(next(iter(found)))
        return f"The target was within {only} alone: how far that choice moves the ratios is not known."
    ratios = ratios_at_all_tolerances(found, ratio_touching)
    if not ratios:
        return "No case has a ratio at every tolerance: how far that choice moves the ratios is not known."
    mean = [value for value in mean_ratios(found) if value is not None]
    name = max(ratios, key=lambda name: _spread(ratios[name]))
    return (
        f"The choice of the tolerance moves the geometric mean by {format_number(_spread(mean), 2)} "
        f"x: it is "
        f"{_join_names(found, mean)}. It moves {name} most: {_join_names(found, ratios[name])}. "
        "None of the tolerances decides alone."
    )


def _spread(ratios: Sequence[float]) -> float:
    """Return the largest ratio divided by the smallest; at least one positive value is needed."""
    return max(ratios) / min(ratios)


def _join_names(found: ByTolerance, ratios: Sequence[float]) -> str:
    """Return the ratios with their tolerances as text, such as "2.1 x at 0.3 % and 1.9 x at 1 %".

    `ratios` are in the order of the tolerances in `found`; ValueError if the lengths differ.
    """
    each = zip(found, ratios, strict=True)
    return join_items(f"{format_number(value, 2)} x at {format_tolerance(tolerance)}" for tolerance, value in each)


def table(found: ByTolerance) -> tuple[tuple[str, ...], list[list[str]]]:
    """Return (column names, rows of text cells) on the ratios of each case, the last row with their geometric means.

    The columns are "case", one per tolerance ("0.3 %") for the first time at the target, then one per tolerance for
    staying there ("0.3 %, staying"). Unknown ratios are "", as are means of fewer than two cases. `found` is
    {tolerance: results of all cases}.
    """
    columns = (
        "case",
        *map(format_tolerance, found),
        *(f"{format_tolerance(tolerance)}, staying" for tolerance in found),
    )
    lines = [
        [each[0].name, *_shown(map(ratio_touching, each)), *_shown(map(ratio_staying, each))]
        for each in zip(*found.values(), strict=True)
    ]
    means = []
    for reading in (ratio_touching, ratio_staying):
        count = len(ratios_at_all_tolerances(found, reading))
        each = [text and f"{text}, {count} of {len(lines)}" for text in _shown(mean_ratios(found, reading))]
        means += each if count > 1 else [""] * len(found)
    return columns, [*lines, ["geometric mean, cases with all", *means]]


def _shown(values: Iterable[float | None]) -> list[str]:
    """Return ratios as text with two significant digits, such as "2.1 x"; "" for None."""
    return ["" if value is None else f"{format_number(value, 2)} x" for value in values]
