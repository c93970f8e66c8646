"""The course of one training: the seconds it took to each point, what was reached there, and when it is left.

>>> ticks = iter(range(100))
>>> judged = iter([3.0, 2.0, 1.0, 0.5])
>>> leave = Leave(seconds=100, target=1.0)
>>> points = of_steps(iter([None] * 4), lambda scorer: next(judged), leave, lambda: next(ticks))
>>> [(point.seconds, point.value) for point in points]
[(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

from workbench.bench.fit.contract import Contender, Rows, Scorer, Value
from workbench.bench.fit.judge import is_reached

APART, APART_ORDER = 1.05, 1.2
"""Seconds of a point by those of the point judged before it, at least: the time to a target is known to this factor.

The second is of an order, of which judging takes longer."""
LADDER = (1, 2, 3, 4, 6, 8, 11, 15, 20, 27, 36, 50, 70, 100, 140, 200, 300, 400, 600, 800, 1200, 1600, 2400, 3200)
"""Most iterations of a training that is begun anew for each point."""
WITHOUT_GAIN, LEAST = 0.6, 6
"""A training is left where the best point lies before this share of its seconds, and so many points back."""

Clock = Callable[[], float]
Measured = Callable[[Scorer], float]


class Point(NamedTuple):
    """Seconds from the start of the training, the measure there, and the number of the point or of iterations."""

    seconds: float
    value: float
    number: int


@dataclass
class Leave:
    """When a training is left: after `seconds`, at the target where there is one, where nothing is gained any more."""

    seconds: float
    target: float | None = None
    larger_is_better: bool = False
    best: Point | None = None
    seen: int = 0
    of_best: int = 0

    def at(self, point: Point) -> bool:
        """Whether this point, the next one, is the last."""
        self.seen += 1
        sign = -1.0 if self.larger_is_better else 1.0
        if self.best is None or sign * point.value < sign * self.best.value:
            self.best, self.of_best = point, self.seen
        if self.target is not None and is_reached(point.value, self.target, self.larger_is_better):
            return True
        is_stale = self.best.seconds < WITHOUT_GAIN * point.seconds and self.seen - self.of_best >= LEAST
        return point.seconds >= self.seconds or not math.isfinite(point.value) or is_stale


def of_steps(
    points: Iterator[Scorer], measured: Measured, leave: Leave, clock: Clock = perf_counter
) -> Iterator[Point]:
    """The points of a training that goes on from one to the next; judging is beside the clock."""
    seconds, judged = 0.0, 0.0
    for number in range(1, 1 << 62):
        start = clock()
        scorer = next(points)
        seconds += clock() - start
        apart = APART_ORDER if leave.larger_is_better else APART
        if seconds < apart * judged and seconds < leave.seconds:
            continue
        judged = seconds
        point = Point(float(seconds), measured(scorer), number)
        yield point
        if leave.at(point):
            return


def of_refits(
    refit: Callable[[int], tuple[Scorer, bool]],
    measured: Measured,
    leave: Leave,
    clock: Clock = perf_counter,
    ladder: Iterable[int] = LADDER,
) -> Iterator[Point]:
    """The points of a training that is begun anew for each: its seconds are those of that one fit alone."""
    for iterations in ladder:
        start = clock()
        scorer, is_done = refit(iterations)
        point = Point(float(clock() - start), measured(scorer), iterations)
        yield point
        if leave.at(point) or is_done:
            return


def course(
    contender: Contender, rows: Rows, value: Value, measured: Measured, leave: Leave, ladder: Iterable[int] = LADDER
) -> Iterator[Point]:
    """The points of a contender with one setting."""
    if contender.steps is not None:
        return of_steps(contender.steps(rows, value), measured, leave)
    refit = contender.refit
    assert refit is not None
    return of_refits(lambda iterations: refit(rows, value, iterations), measured, leave, ladder=ladder)
