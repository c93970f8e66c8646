"""Process of a candidate: make the data, warm up on a slice of it, train with each setting asked for.

Answers are `{"facts": ...}` once, then of each setting `{"setting": number}`, `{"point": [...]}` as they are reached,
and `{"done": {...}}`.

>>> ticks = iter(range(100))
>>> judged = iter([3.0, 2.0, 1.0, 0.5])
>>> leave = StopCondition(seconds=100, target=1.0)
>>> points = points_of_steps(iter([None] * 4), lambda scorer: next(judged), leave, lambda: next(ticks))
>>> [(point.seconds, point.value) for point in points]
[(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from benchmarks.contest import set_threads
from benchmarks.fit.candidates import POINTS_EPOCH, Candidate, Rows, Scorer, Value, get
from benchmarks.fit.cases import TOLERANCE, Case, Judge, is_reached, judge_of
from workbench.measure.machine import OtherPrograms

# The course of one training: the seconds it took to each point, what was reached there, and when it is left.


APART, APART_TRIED, APART_ORDER = 1.05, 1.1, 1.2
"""Seconds of a point by those of the point judged before it, at least: the time to a target is known to this factor.

The second is where there is no target yet, the third of an order, of which judging takes longer."""
EVERY = 64
"""First points of a training that are judged each: one that goes up and down on its way is else at the target in one
round, and past it unseen in the next, or past its best value unseen when settings are tried."""
LADDER = (1, 2, 3, 4, 6, 8, 11, 15, 20, 27, 36, 50, 70, 100, 140, 200, 300, 400, 600, 800, 1200, 1600, 2400, 3200)
"""Most iterations of a training that is begun anew for each point."""
SPENT = 2.0
"""Seconds of all fits of a training that is begun anew for each point, by those of `StopCondition`, at most: with the
fits before it one of so many seconds takes about four times as long."""
WITHOUT_GAIN, LEAST = 0.55, POINTS_EPOCH
"""A training is left where the best point lies before this share of its seconds, and so many points back: those of an
epoch, in which the measure may go up and down."""
GAIN, SECONDS_FAST = TOLERANCE / 30, 0.5
"""After so many seconds a point is better by this share at least: at a lesser pace a training of 20 s does not come as
much further as the tightest target allows for. Before, when many trainings are slow, any gain counts."""

Clock = Callable[[], float]
Measured = Callable[[Scorer], float]


class Point(NamedTuple):
    """Seconds from the start of the training, the measure there, and the number of the point or of iterations."""

    seconds: float
    value: float
    number: int


@dataclass
class StopCondition:
    """Conditions to stop a training: after `seconds`, at a target, or when nothing improves any more."""

    seconds: float
    target: float | None = None
    larger_is_better: bool = False
    best: Point | None = None
    seen: int = 0
    of_best: int = 0
    why: str = "done"
    """target, lost (no number), limit (of the seconds) or no gain; done where the training came to its own end."""

    @property
    def apart(self) -> float:
        """Least ratio of a point's seconds to those of the last judged one; points that are nearer are not judged."""
        if self.larger_is_better:
            return APART_ORDER
        if self.seen < EVERY:
            return 1.0
        return APART_TRIED if self.target is None else APART

    def at(self, point: Point) -> bool:
        """Record the next point; return whether the training stops there, with the reason in `why`."""
        self.seen += 1
        if self.best is None or self._is_better(point, self.best):
            self.best, self.of_best = point, self.seen
        is_old = self.best.seconds < WITHOUT_GAIN * point.seconds and self.seen - self.of_best >= LEAST
        is_stale = is_old and self.target is None  # to a target only those go that have come there before
        ends = {
            "target": self.target is not None and is_reached(point.value, self.target, self.larger_is_better),
            "lost": not math.isfinite(point.value),
            "no gain": is_stale,
            "limit": point.seconds >= self.seconds,
        }
        self.why = next((why for why, is_so in ends.items() if is_so), self.why)
        return any(ends.values())

    def _is_better(self, point: Point, best: Point) -> bool:
        """Return whether a point is better than the best one.

        In the first 0.5 s any improvement counts, later one by at least the share `GAIN`.
        """
        sign = -1.0 if self.larger_is_better else 1.0
        least = GAIN * abs(best.value) if point.seconds > SECONDS_FAST else 0.0
        return sign * point.value < sign * best.value - least


def points_of_steps(
    points: Iterator[Scorer], measured: Measured, leave: StopCondition, clock: Clock = perf_counter
) -> Iterator[Point]:
    """Yield the judged points of a stepwise training until `leave` stops it; judging is not timed.

    `points` yields a scorer per step, `measured` gives the value of a scorer.
    """
    seconds, judged = 0.0, 0.0
    for number in range(1, 1 << 62):
        start = clock()
        scorer = next(points)
        seconds += clock() - start
        if seconds < leave.apart * judged and seconds < leave.seconds:
            continue
        judged = seconds
        point = Point(float(seconds), measured(scorer), number)
        yield point
        if leave.at(point):
            return


def points_of_refits(
    refit: Callable[[int], tuple[Scorer, bool]],
    measured: Measured,
    leave: StopCondition,
    clock: Clock = perf_counter,
    ladder: Iterable[int] = LADDER,
    before: Sequence[Point] = (),
) -> Iterator[Point]:
    """Yield the points of a training that is fitted anew for each; their seconds are those of that fit alone.

    `ladder` has the iteration limits. Points from `before` come first and are not trained again. Stops when all fits
    together took twice the seconds, at convergence, or as `leave` says. `refit(iterations)` returns (scorer, whether it
    converged), `measured` the value of a scorer.
    """
    for point in before:
        yield point
        leave.at(point)
    most, spent = max((point.number for point in before), default=0), sum(point.seconds for point in before)
    for iterations in (each for each in ladder if each > most):
        start = clock()
        scorer, is_done = refit(iterations)
        point = Point(float(clock() - start), measured(scorer), iterations)
        spent += point.seconds
        yield point
        is_left = leave.at(point)
        if is_done or is_left or spent >= SPENT * leave.seconds:
            leave.why = "done" if is_done else leave.why if is_left else "limit"
            return


def training_points(
    candidate: Candidate,
    rows: Rows,
    value: Value,
    measured: Measured,
    leave: StopCondition,
    ladder: Iterable[int] = LADDER,
    before: Sequence[Point] = (),
) -> Iterator[Point]:
    """Return the points of a candidate with one setting, as an iterator; `candidate.prepare` is called before, untimed.

    `before` are known points of a training that is fitted anew, `ladder` its iteration limits. `measured` gives the
    value of a scorer, `leave` says when to stop.
    """
    candidate.prepare(rows)
    if candidate.steps is not None:
        return points_of_steps(candidate.steps(rows, value), measured, leave)
    refit = candidate.refit
    assert refit is not None
    return points_of_refits(
        lambda iterations: refit(rows, value, iterations), measured, leave, ladder=ladder, before=before
    )


ROWS_WARM = 2048
POINTS_WARM = POINTS_EPOCH + 1
"""Points of a warm-up: it reaches the second epoch, which may take other compiled code than the first."""

Answer = dict[str, Any]


def answers(request: Answer) -> Iterator[Answer]:
    """Yield `{"facts": ...}`, then for each requested setting its number, its points and `{"done": ...}`.

    `request` has case, candidate, values (number, setting, known points), target, ladder, seconds, threads and
    bytes_limit. If the candidate cannot train the rows, `{"ended": ...}` follows the facts.
    """
    set_threads(request["threads"])
    candidate, case = get(request["candidate"]), Case(**request["case"])
    judge = judge_of(case, request["threads"])
    yield {"facts": facts_of(judge)}
    if ended := refusal_columns(candidate, judge.rows, request["bytes_limit"]):
        yield {"ended": ended}
        return
    few = slice_of(judge.rows)
    for value in kinds_of([value for _, value, _ in request["values"]]):
        warm_up(candidate, few, value, judge)
    set_threads(request["threads"])  # of the libraries that were loaded meanwhile, too
    for number, value, before in request["values"]:
        yield {"setting": number}
        yield from train_setting(candidate, judge, value, request, [Point(*point) for point in before])


def train_setting(
    candidate: Candidate, judge: Judge, value: Value, request: Answer, before: Sequence[Point] = ()
) -> Iterator[Answer]:
    """Yield `{"point": ...}` for each point of one setting, then `{"done": ...}` with end reason and measures.

    `request` has seconds, target and ladder; `before` are known points of a training that is fitted anew.
    """
    last: list[Scorer] = []

    def measured(scorer: Scorer) -> float:
        """Return the judged value of a scorer, and keep the scorer as the last one."""
        last[:] = [scorer]
        return judge.value(scorer)

    others = OtherPrograms()
    leave = StopCondition(request["seconds"], request["target"], judge.larger_is_better)
    for point in training_points(candidate, judge.rows, value, measured, leave, request["ladder"] or LADDER, before):
        yield {"point": list(point)}
    measures = judge.measures(last[0]) if last else None  # without a scorer nothing was left to train
    yield {"done": {"busy_others": others.share(), "left": leave.why, "measures": measures}}


def facts_of(judge: Judge) -> Answer:
    """Return the record columns that follow from the data: sizes, entries, outputs, quality measure, bytes."""
    rows = judge.rows
    return {
        "rows": rows.x.shape[0],
        "rows_held_out": judge.x.shape[0],
        "features": rows.x.shape[1],
        "nnz": int(rows.x.nnz),
        "width": rows.width,
        "measure": judge.name,
        "larger_is_better": judge.larger_is_better,
        "bytes_dense": rows.bytes_dense,
    }


def refusal_columns(candidate: Candidate, rows: Rows, bytes_limit: int) -> Answer:
    """Return status and reason of a candidate that cannot train these rows or exceeds `bytes_limit`; {} if it can."""
    if reason := candidate.why_not(rows):
        return {"status": "unsupported", "reason": reason}
    if (needed := candidate.bytes_needed(rows)) > bytes_limit:
        reason = f"Needs {needed} bytes; the limit is {bytes_limit}."
        return {"status": "memory", "reason": reason, "bytes_needed": needed, "bytes_limit": bytes_limit}
    return {}


def slice_of(rows: Rows) -> Rows:
    """Return up to 2,048 random rows for a warm-up, with at least one row of each class."""
    count = rows.x.shape[0]
    picked = np.random.default_rng(rows.seed).choice(count, min(ROWS_WARM, count), replace=False)
    if rows.y.ndim == 1 or rows.y.shape[1] == 1:
        picked = np.union1d(picked, np.unique(rows.y.reshape(-1).astype(np.int64), return_index=True)[1])
    return replace(rows, x=rows.x[picked], y=rows.y[picked])


def kinds_of(values: Iterable[Value]) -> list[Value]:
    """Return one setting per kind; settings of a kind differ in floats only, so that they share compiled code."""

    def kind(value: Value) -> tuple:
        """Return the setting with floats replaced by None, as a hashable tuple."""
        return tuple((name, None if isinstance(number, float) else number) for name, number in value.items())

    return list({kind(value): value for value in values}.values())


def warm_up(candidate: Candidate, rows: Rows, value: Value, judge: Judge) -> None:
    """Train and score a few points on a slice of rows, so that imports and compilation are done; nothing is kept.

    `value` is a setting; `judge` scores on the held-out rows.
    """
    if candidate.steps is not None:
        for scorer in islice(candidate.steps(rows, value), POINTS_WARM):
            judge.value(scorer)
        return
    assert candidate.refit is not None
    judge.value(candidate.refit(rows, value, 2)[0])
