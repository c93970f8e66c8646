"""Trainings to a held-out quality, from their rows: the target of each case, and each contender's time to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from workbench import store
from workbench.analysis import words
from workbench.analysis.cells import records
from workbench.measure.rounds import Ratio, ratio_of

Row = Mapping[str, Any]
CASE = ("case", "held_out", "machine", "threads")
"""Columns that rows of one case agree in."""

ENDS = {"no gain": "no gain any more", "done": "at its own end", "lost": "no number any more"}
"""Why a training ended before its time, in words, by the column `left`."""
OLD = 0.01
"""The tolerance of rounds that were stored before there were several."""


@dataclass(frozen=True)
class Entry:
    """Rows of one contender of a case: of its settings, and of rounds those to the case's target."""

    name: str
    settings: Sequence[Row]
    rounds: Sequence[Row]
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
        """(median, least, most) of the rounds; None where the target was not reached."""
        found = list(self.by_round.values())
        return (float(np.median(found)), min(found), max(found)) if found else None

    @property
    def value_best(self) -> float | None:
        """The best value of all settings; None without a point."""
        values = [row["value_best"] for row in self.settings if _is_number(row["value_best"])]
        return (max if self.larger_is_better else min)(values, default=None)

    @property
    def seconds_once(self) -> float | None:
        """Seconds of the soonest setting, tried once; None where none reached the target."""
        return min((point[0] for row in self.settings if (point := self._reached(row))), default=None)

    @property
    def seconds_staying(self) -> float | None:
        """Seconds from which on the soonest setting, tried once, stays at the target to the end; None if none does."""
        return min((since for row in self.settings if (since := self._stays(row)) is not None), default=None)

    def _is_there(self, point: Sequence[Any]) -> bool:
        if self.target is None or not _is_number(point[1]):
            return False
        return bool(point[1] >= self.target if self.larger_is_better else point[1] <= self.target)

    def _reached(self, row: Row) -> Sequence[float] | None:
        return next((point for point in row["curve"] or [] if self._is_there(point)), None)

    def _stays(self, row: Row) -> float | None:
        """Seconds of the first of the last points that are all at the target."""
        since = None
        for point in reversed(row["curve"] or []):
            if not self._is_there(point):
                break
            since = float(point[0])
        return since

    @property
    def best(self) -> Row | None:
        """The row of the setting that was soonest at the target, else of the one that came furthest; None without."""
        known = [row for row in self.settings if _is_number(row["value_best"])]
        reached = [(point[0], row) for row in known if (point := self._reached(row))]
        if reached:
            return min(reached, key=lambda each: each[0])[1]
        sign = -1 if self.larger_is_better else 1
        return min(known, key=lambda row: sign * row["value_best"], default=None)

    @property
    def state(self) -> str:
        """Reason why there are no seconds, in a few words; "" where there are."""
        if self.seconds:
            return ""
        if self.seconds_once is not None:
            return f"about {words.seconds(self.seconds_once, 2)}, tried once"
        if self.target is None and self.value_best is not None:
            return "rounds not run yet"
        ended = next((row for row in self.settings if row["status"] in ("unsupported", "memory")), None)
        if ended is None:
            failed = [row for row in self.settings if row["status"] == "failed"]
            return f"failed: {failed[0]['reason']}" if failed and self.best is None else self._not_reached()
        needed = ended["bytes_needed"]
        return f"would need {words.bytes_(needed)}" if _is_number(needed) else ended["reason"]

    def _not_reached(self) -> str:
        """End of the training that came furthest without reaching the target."""
        best = self.best or {}
        last = words.seconds(best["curve"][-1][0], 2) if best else ""
        if self.seconds_left is not None:
            return f"not reached in {last}; left there, behind others"
        if best.get("left") in ENDS:
            return f"not reached; {ENDS[best['left']]} after {last}"
        limit = words.seconds(self.settings[0]["seconds_limit"])
        return f"not reached in {last if best.get('left') == 'limit' else limit}"

    @property
    def seconds_left(self) -> float | None:
        """Seconds after which its furthest setting was left, others being ahead; None where it ended otherwise."""
        best = self.best
        if best is None or best["left"] != "limit" or not best["seconds_rung"] < best["seconds_limit"]:
            return None
        return float(best["curve"][-1][0])


@dataclass(frozen=True)
class Found:
    """A case at a tolerance: a row with its facts, the target, its contenders in the order they were first written."""

    row: Row
    target: float | None
    entries: Sequence[Entry]
    tolerance: float = OLD

    @property
    def name(self) -> str:
        """Name of the case, as its rows have it."""
        return str(self.row["case"])

    @property
    def quality(self) -> str:
        """The target in words, such as "AUC ≥ 0.81"; "" where there is none."""
        sign = "≥" if self.row["larger_is_better"] else "≤"
        return "" if self.target is None else f"{self.row['measure']} {sign} {words.number(self.target, 4)}"

    @property
    def furthest(self) -> Entry | None:
        """The contender that came to the best value with any setting."""
        able = [entry for entry in self.entries if entry.value_best is not None]
        sign = -1 if self.row["larger_is_better"] is True else 1
        return min(able, key=lambda entry: sign * (entry.value_best or 0.0), default=None)

    def fastest(self, kind: str) -> Entry | None:
        """The fastest that reached the target of a kind: sparse, dense (both ours) or rival."""
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
        """Seconds of the fastest rival by those of the fastest sparse one of ours; None where either is not known."""
        sparse, rival = self.fastest("sparse"), self.fastest("rival")
        if sparse is None or rival is None or self.left_too_soon:
            return None
        return ratio_of(rival.by_round, sparse.by_round)

    @property
    def ratio_staying(self) -> float | None:
        """The same of seconds from which on the measure stays at the target, of settings tried once."""
        sparse, rival = self._soonest_staying("sparse"), self._soonest_staying("rival")
        return None if sparse is None or rival is None or self.left_too_soon else rival / sparse

    def _soonest_staying(self, kind: str) -> float | None:
        seconds = (entry.seconds_staying for entry in self.entries if kind_of(entry) == kind)
        return min((one for one in seconds if one), default=None)


def kind_of(entry: Entry) -> str:
    """Kind of a contender: sparse or dense, both of ours, or rival."""
    return "rival" if not entry.is_ours else "dense" if entry.is_dense else "sparse"


def latest(frame: pd.DataFrame) -> pd.DataFrame:
    """The newest row of each key, of those of a contender's newest code in each case; `frame` has the order written."""
    rows = {row["key"]: row for row in records(frame)}.values()
    newest = {_trained(row): row["source"] for row in rows}
    return store.FIT.frame(row for row in rows if row["source"] == newest[_trained(row)])


def _trained(row: Row) -> tuple:
    """Case and contender of a row."""
    return *(row[name] for name in CASE), row["contender"]


def by_tolerance(frame: pd.DataFrame) -> dict[float, list[Found]]:
    """The cases of a frame at each tolerance of its rounds, tightest first; at that of older rounds without any."""
    by_case: dict[tuple, list[Row]] = {}
    for row in (every := records(latest(frame))):
        by_case.setdefault(tuple(row[name] for name in CASE), []).append(row)
    tolerances = sorted({_tolerance(row) for row in every if row["stage"] == "rounds"}) or [OLD]
    return {tolerance: [_found(rows, tolerance) for rows in by_case.values()] for tolerance in tolerances}


def _tolerance(row: Row) -> float:
    return float(row["tolerance"]) if _is_number(row["tolerance"]) else OLD


def _found(rows: Sequence[Row], tolerance: float) -> Found:
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
    return Found(known, target, entries, tolerance)


def share(tolerance: float) -> str:
    """A tolerance in words.

    >>> share(0.003), share(0.01)
    ('0.3 %', '1 %')
    """
    return f"{100 * tolerance:g} %"


def times(ratio: Ratio | None) -> str:
    """A ratio with its interval.

    >>> times(Ratio(2.04, 1.5, 2.8))
    '2.04 x (1.5 to 2.8)'
    """
    if ratio is None:
        return ""
    low, high = words.number(ratio.low, 2), "∞" if np.isinf(ratio.high) else words.number(ratio.high, 2)
    return f"{words.number(ratio.value)} x ({low} to {high})"


def _is_number(value: Any) -> bool:
    return value is not None and value == value and value is not pd.NA
