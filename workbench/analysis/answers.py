"""The one answer of some records: which side trains faster, by how much, what it needs in memory, up to which density.

Advice, cards, the terminal, `wb.open`, panels and reports show this answer, however they word it. It is about one group
of configurations at one density: the data's own if that was measured, else the lowest that is decided of those at which
most configurations were measured. Of batch sizes and devices it is the smallest batch that is nearly as fast as any.
"""

import math
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

import pandas as pd

from workbench import settings
from workbench.analysis import configurations
from workbench.analysis.breakeven import BreakEven, breakeven_of
from workbench.analysis.compare import PREDICTED, Contest, barred_of_group, contests_of_group, fastest_predicted
from workbench.analysis.configurations import Group, Record, once_per_frame
from workbench.analysis.estimates import PREDICTION, TIME, estimate_of, posterior_of
from workbench.analysis.formatting import invert_ratio
from workbench.analysis.intervals import ONCE, Interval, interval_of
from workbench.analysis.verdict_text import comparison_facts
from workbench.measure.posterior import EQUIVALENCE_MARGIN

MEMORY = "bytes_peak"
NEAR = 1.25
"""A smaller batch is preferred where its epoch takes at most so many times the least: it has more updates."""
CHOSEN = ("batch_rows", "device")
"""Settings of a group that the answer may choose."""
CHOICE = (*settings.columns("line"), *reversed(CHOSEN))
"""Settings of a record that are recommended."""
EPOCHS = 20
"""Epochs that a training with an optimizer has by default, and that training times are said for."""

Shown = Set[tuple] | None
"""Configurations that are shown, as `configuration_of` identifies them; None for all. Estimates are of all records."""


@dataclass(frozen=True, eq=False)
class Answer:
    """What records answer. `time` and `memory` are the contests of `group` at the density that the answer is about.

    `rows` are the records of the group there, `best` is the one to train with: on the faster side the fastest one, of
    those equally fast that of least memory. `leaders` are the best records of each batch size and device, `groups`
    all groups of the records. `epochs` are those that `seconds` are for.
    """

    group: Group
    rows: Sequence[Record]
    time: Contest
    memory: Contest
    best: Record | None
    leaders: Sequence[Record]
    groups: Sequence[Group] = ()
    epochs: int = EPOCHS

    @property
    def verdict(self) -> str:
        """The verdict in time: sparse, dense, level or inconclusive; "none" if nothing has a time."""
        return "none" if self.best is None else self.time.verdict

    @property
    def settings(self) -> dict[str, Any] | None:
        """The recommended settings (`CHOICE`), None if nothing has a time."""
        return None if self.best is None else {name: self.best[name] for name in CHOICE}

    @property
    def key(self) -> str | None:
        """The key of the recommended configuration, None if nothing has a time."""
        return None if self.best is None else self.best["key"]

    @property
    def seconds(self) -> dict[str, Interval | None]:
        """Training time (s) of `epochs` epochs by side, "sparse" and "dense"; None if unknown.

        If a predicted ratio is the answer and one side was measured, the other is that time and the ratio, so that the
        three agree.
        """
        sides = {"sparse": self.time.sparse, "dense": self.time.dense}
        known = {name: training_seconds(row, self.epochs) if row else None for name, row in sides.items()}
        measured = [name for name, row in sides.items() if row and interval_of(row, TIME)]
        ratio, seconds = self.time.ratio, known.get(measured[0]) if len(measured) == 1 else None
        if self.time.source != PREDICTED or ratio is None or seconds is None:
            return known
        of_other = ratio if measured == ["sparse"] else invert_ratio(ratio)
        low, high = (seconds.value * end for end in (of_other.low, of_other.high))
        other = Interval(seconds.value * of_other.value, low, high, ONCE)
        return {name: seconds if name == measured[0] else other for name in sides}

    @property
    def asked(self) -> float | None:
        """The requested density that the answer is about; None is the data's own."""
        return self.rows[0]["density"]

    @property
    def break_even(self) -> BreakEven | None:
        """The break-even in time of the sparse side of `time`; None if it has none."""
        return breakeven_of(self.group, self.time.sparse, TIME) if self.time.sparse else None

    @property
    def facts(self) -> dict[str, Any]:
        """The answer for programs: `time` and `memory` with the fields of `verdict_text.comparison_facts`.

        `density` is that of the answer, `seconds` the training time of
        `epochs` epochs by side, `break_even` the density up to which sparse is faster, with
        its interval.
        """
        even = self.break_even
        crossing = even is not None and even.status == "crossing"
        return {
            "density": self.time.density,
            "epochs": self.epochs,
            "seconds": {name: known.value if known else None for name, known in self.seconds.items()},
            "time": comparison_facts(self.time),
            "memory": comparison_facts(self.memory),
            "break_even": {name: getattr(even, name) for name in ("density", "low", "high")} if crossing else None,
        }


def answer_of(frame: pd.DataFrame) -> Answer | None:
    """Return the answer of trial records; None without any. O(records * rounds)."""
    return once_per_frame(_answer, configurations.pool_rounds(frame))


_NOTHING = Contest(None, None, None, "inconclusive")
NO_ANSWER = Answer(configurations.Group({}, "", []), (), _NOTHING, _NOTHING, None, ())
"""The answer without any record."""


def training_seconds(row: Record, epochs: int) -> Interval | None:
    """Return the time (s) that a record's configuration trains for `epochs`; None without a time or number of rows."""
    known, rows = interval_of(row, TIME), row["rows_trained"]
    if known is None and row.get(PREDICTION):
        known = Interval(row[PREDICTION], row[PREDICTION], row[PREDICTION], ONCE)
    if known is None or not rows:
        return None
    steps = epochs * math.ceil(rows / row["batch_rows"])
    return Interval(steps * known.value, steps * known.low, steps * known.high, known.why)


@configurations.once_per_group
def letters_of(group: Group) -> dict[tuple, str]:
    """Return {configuration: letter} of a group, such as "S1" and "D2": the best at the answer's density first."""
    asked = answered_density(group)
    time = _contest_at(group, TIME, asked)
    named = [configurations.line_key(row) for row in (time.sparse, time.dense) if row is not None]
    found: dict[tuple, str] = {}
    for letter, lines in (
        ("S", configurations.sparse_lines(group.rows)),
        ("D", configurations.dense_lines(group.rows)),
    ):
        times = {line: _seconds_at(rows, asked) for line, rows in lines.items()}
        ordered = sorted(lines, key=lambda line: (line not in named, times[line]))
        found |= {line: f"{letter}{number}" for number, line in enumerate(ordered, 1)}
    return found


def _seconds_at(rows: Sequence[Record], asked: float | None) -> float:
    """Return the least time a step (s) of a configuration's records at a requested density; inf without one."""
    known = (interval_of(row, TIME) for row in rows if row["density"] == asked)
    return min((one.value for one in known if one), default=math.inf)


def answered_groups(frame: pd.DataFrame, shown: Shown = None) -> list[Group]:
    """Return the groups of comparable configurations, that of the answer first; [] without records.

    Groups without a configuration in `shown` are left out.
    """
    pooled = configurations.pool_rounds(frame)
    answer = answer_of(pooled)
    groups = [group for group in configurations.groups(pooled) if any(is_shown(row, shown) for row in group.rows)]
    return sorted(groups, key=lambda group: answer is None or group is not answer.group)


def is_shown(row: Record, shown: Shown) -> bool:
    """Return whether the configuration of a pooled record is among those that are shown."""
    return shown is None or configurations.configuration_of(row) in shown


def _answer(pooled: pd.DataFrame) -> Answer | None:
    """Return the answer of a frame of pooled records."""
    groups = configurations.groups(pooled)
    if not groups:
        return None
    asked = answered_density(groups[0])
    alike = [group for group in groups if _choices_apart(group) == _choices_apart(groups[0])]
    rows_of = {id(group): [row for row in group.rows if row["density"] == asked] for group in alike}
    able_of = {
        id(group): [row for row in rows_of[id(group)] if id(row) not in barred_of_group(group)] for group in alike
    }
    leaders = {id(group): first for group in alike if (first := best_record(able_of[id(group)]))}
    if not leaders:  # no trial had the time to end
        leaders = {id(group): first for group in alike if (first := fastest_predicted(able_of[id(group)]))}
    group = _fastest_group(alike, leaders) if leaders else groups[0]
    time, memory = (_contest_at(group, measure, asked) for measure in (TIME, MEMORY))
    best = _of_better_side(leaders.get(id(group)), able_of[id(group)], time)
    return Answer(group, rows_of[id(group)], time, memory, best, list(leaders.values()), groups)


def _choices_apart(group: Group) -> dict[str, Any]:
    """Return the settings of a group but for those that the answer may choose."""
    return {name: value for name, value in group.settings.items() if name not in CHOSEN}


def answered_density(group: Group) -> float | None:
    """Return the requested density that the answer of a group is about; None is the data's own."""
    counts = Counter(row["density"] for row in group.rows)
    if None in counts:
        return None
    most = [density for density, count in counts.items() if count == max(counts.values())]
    found = [one for one in contests_of_group(group, TIME) if one.asked_density in most]
    decided = [one for one in found if one.ratio and one.verdict in ("sparse", "dense")]
    return next(iter([*decided, *(one for one in found if one.ratio), *found])).asked_density


def _contest_at(group: Group, measure: str, density: float | None) -> Contest:
    """Return the contest of a group in a measure at a requested density at which it has records."""
    return next(one for one in contests_of_group(group, measure) if one.asked_density == density)


def best_record(rows: Sequence[Record]) -> Record | None:
    """Return the record of least expected time loss, or an equivalent one that needs less memory; None if none ran.

    "Expected loss" is the mean of time / least time - 1 over the posterior of the rounds. A tenth less memory is less:
    what differs by kilobytes is no reason to take a time that may be a tenth longer.
    """
    found = posterior_of(rows, TIME)
    first = found.best()
    if first is None:
        return None
    most = (rows[first][MEMORY] or 0) / EQUIVALENCE_MARGIN
    alike = [rows[k] for k in found.names if k != first and found.ratio(k, first).verdict == "level"]
    return min(
        (row for row in alike if (row[MEMORY] or 0) < most), key=lambda row: row[MEMORY] or 0, default=rows[first]
    )


def seconds_a_row(row: Record) -> float:
    """Return the estimated time (s) of a step divided by the batch rows; the predicted time if it was not measured."""
    estimate = estimate_of(row)
    return (estimate.value if estimate else row[TIME] or row[PREDICTION]) / row["batch_rows"]


def _fastest_group(groups: Sequence[Group], leaders: dict[int, Record]) -> Group:
    """Return the group of the smallest batch size and device within 1.25 times the least time of an epoch.

    `leaders` maps the id() of groups to their best records; groups without one are left out.
    """
    able = [group for group in groups if id(group) in leaders]
    least = min(seconds_a_row(leaders[id(group)]) for group in able)
    near = [group for group in able if seconds_a_row(leaders[id(group)]) <= NEAR * least]
    return min(near, key=lambda group: (leaders[id(group)]["batch_rows"], seconds_a_row(leaders[id(group)])))


def _of_better_side(best: Record | None, rows: Sequence[Record], time: Contest) -> Record | None:
    """Return the record to train with: `best`, or the best of `rows` on the side that wins `time` or is likelier.

    Of two predicted times the smaller one decides.
    """
    side = time.likely or time.verdict
    if time.source == PREDICTED and time.ratio is not None and side not in ("sparse", "dense"):
        side = "sparse" if time.ratio.value > 1 else "dense"
    named = {"sparse": time.sparse, "dense": time.dense}.get(side)
    if named is None or (best is not None and configurations.is_dense(best) == configurations.is_dense(named)):
        return best
    return best_record([row for row in rows if configurations.is_dense(row) == configurations.is_dense(named)]) or named
