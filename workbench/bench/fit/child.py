"""Process of a contender: make the data, warm up on a slice of it, train with each setting asked for.

Answers are `{"facts": ...}` once, then of each setting `{"setting": number}`, `{"point": [...]}` as they are reached,
and `{"done": {...}}`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from workbench.bench.child import set_threads
from workbench.bench.fit.cases import Case, judge_of
from workbench.bench.fit.contract import Contender, Rows, Scorer, Value, get
from workbench.bench.fit.course import LADDER, Leave, Point, course
from workbench.bench.fit.judge import Judge
from workbench.measure.machine import OtherPrograms

ROWS_WARM = 2048
POINTS_WARM = 3

Answer = dict[str, Any]


def answers(request: Answer) -> Iterator[Answer]:
    """All that is asked of one contender: `values` by number, each until `target` or for `seconds`.

    A value comes with the points that are known of it, where a training is begun anew for each.
    """
    set_threads(request["threads"])
    contender, case = get(request["contender"]), Case(**request["case"])
    judge = judge_of(case, request["threads"])
    yield {"facts": facts_of(judge)}
    if ended := refused(contender, judge.rows, request["bytes_limit"]):
        yield {"ended": ended}
        return
    few = slice_of(judge.rows)
    for value in kinds_of([value for _, value, _ in request["values"]]):
        warm_up(contender, few, value, judge)
    set_threads(request["threads"])  # of the libraries that were loaded meanwhile, too
    for number, value, before in request["values"]:
        yield {"setting": number}
        yield from trained(contender, judge, value, request, [Point(*point) for point in before])


def trained(
    contender: Contender, judge: Judge, value: Value, request: Answer, before: Sequence[Point] = ()
) -> Iterator[Answer]:
    """The points of one setting, then what else is known of it."""
    last: list[Scorer] = []

    def measured(scorer: Scorer) -> float:
        last[:] = [scorer]
        return judge.value(scorer)

    others = OtherPrograms()
    leave = Leave(request["seconds"], request["target"], judge.larger_is_better)
    for point in course(contender, judge.rows, value, measured, leave, request["ladder"] or LADDER, before):
        yield {"point": list(point)}
    measures = judge.measures(last[0]) if last else None  # without a scorer nothing was left to train
    yield {"done": {"busy_others": others.share(), "left": leave.why, "measures": measures}}


def facts_of(judge: Judge) -> Answer:
    """The columns that the data settles."""
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


def refused(contender: Contender, rows: Rows, bytes_limit: int) -> Answer:
    """The columns of a contender that cannot train these rows, or nothing."""
    if reason := contender.why_not(rows):
        return {"status": "unsupported", "reason": reason}
    if (needed := contender.bytes_needed(rows)) > bytes_limit:
        reason = f"Needs {needed} bytes; the limit is {bytes_limit}."
        return {"status": "memory", "reason": reason, "bytes_needed": needed, "bytes_limit": bytes_limit}
    return {}


def slice_of(rows: Rows) -> Rows:
    """Some rows, of each class at least one where there are classes."""
    count = rows.x.shape[0]
    picked = np.random.default_rng(rows.seed).choice(count, min(ROWS_WARM, count), replace=False)
    if rows.y.ndim == 1 or rows.y.shape[1] == 1:
        picked = np.union1d(picked, np.unique(rows.y.reshape(-1).astype(np.int64), return_index=True)[1])
    return replace(rows, x=rows.x[picked], y=rows.y[picked])


def kinds_of(values: Iterable[Value]) -> list[Value]:
    """One setting of each kind: those that differ in more than fractions, for which other code may be compiled."""

    def kind(value: Value) -> tuple:
        return tuple((name, None if isinstance(number, float) else number) for name, number in value.items())

    return list({kind(value): value for value in values}.values())


def warm_up(contender: Contender, rows: Rows, value: Value, judge: Judge) -> None:
    """Import, and compile or load, all that a training needs: a few points on a slice, predictions too."""
    if contender.steps is not None:
        for scorer in islice(contender.steps(rows, value), POINTS_WARM):
            judge.value(scorer)
        return
    assert contender.refit is not None
    judge.value(contender.refit(rows, value, 2)[0])
