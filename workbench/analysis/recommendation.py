"""Recommend a configuration for given data: the fastest one, compared with the best dense one, from records alone.

Rows of the data's own density choose. Each
sentence has the keys of the configurations behind it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from workbench import settings
from workbench.analysis import configurations, execution, verdict_text
from workbench.analysis.answers import MEMORY, Answer, answer_of, seconds_a_row
from workbench.analysis.compare import (
    HOLDS_ONE,
    Contest,
    barred_of_group,
    ratio_between,
)
from workbench.analysis.configurations import Record
from workbench.analysis.estimates import TIME
from workbench.analysis.formatting import (
    device_suffix,
    format_count,
    format_seconds,
    format_times,
    join_items,
    name_configuration,
)
from workbench.analysis.grades import (
    Statement,
    cost_clause,
    format_factor_with_interval,
    format_interval,
    grade_comparison,
    keys_of,
    likely_factor,
)


def is_dense_batch_of_compact_data(row: Record) -> bool:
    """Return whether a record trains on dense batches while its data are held in another form, such as CSR or uint8."""
    return configurations.is_dense(row) and configurations.storage_of(row) != configurations.HELD


CHOICE = (*settings.columns("line"), "device", "batch_rows")
"""What is recommended."""


@dataclass(frozen=True)
class Recommendation:
    """Recommended configuration. `verdict` is sparse, dense, level or inconclusive, in time; none if nothing ran.

    `settings` are the recommended ones (`CHOICE`) and `key` is that of their configuration, None if nothing ran.
    `time` and `memory` are the contests with the best dense configuration, or of a dense one with the best sparse.
    `grounds` say why.
    """

    verdict: str
    headline: Statement
    settings: dict[str, Any] | None = None
    key: str | None = None
    time: Contest | None = None
    memory: Contest | None = None
    grounds: tuple[Statement, ...] = ()
    answer: Answer | None = None

    @property
    def sentences(self) -> tuple[Statement, ...]:
        """All statements in reading order: headline, grounds."""
        return (self.headline, *self.grounds)

    def __str__(self) -> str:
        """Return all sentences, one per line."""
        return "\n".join(map(str, self.sentences))


def recommend(frame: pd.DataFrame) -> Recommendation:
    """Return the recommendation from trial records of one model on one data set, at any batch size, device and density.

    It words the answer of these records (`answers.answer_of`).
    Lazy updates that train another model are reported. Without any time the verdict is "none". O(rows * rounds).
    """
    pooled = configurations.pool_rounds(frame)
    answer, groups = answer_of(pooled), configurations.groups(pooled)
    if answer is None or answer.best is None:
        return _without_times(
            [row for group in groups for row in group.rows if answer and row["density"] == answer.asked]
        )
    best, rows, time, memory = answer.best, answer.rows, answer.time, answer.memory
    barred = frozenset[int]().union(*(barred_of_group(group) for group in groups))
    accept: Callable[[Record], bool] = lambda row: id(row) not in barred  # noqa: E731
    return Recommendation(
        time.verdict,
        _headline(best, time, memory),
        {name: best[name] for name in CHOICE},
        best["key"],
        time,
        memory,
        tuple(_grounds(best, rows, time, memory, accept, answer.leaders)),
        answer,
    )


def _headline(best: Record, time: Contest, memory: Contest) -> Statement:
    """Return which side to take, by which factor it is better in time and memory, and how certain that is."""
    keys = keys_of(time.sparse, time.dense)
    side = "dense" if configurations.is_dense(best) else "sparse"
    if time.ratio is None:
        return Statement(f"{_advice(side, time)}{_missing_side_reason(time)}.", keys)
    if time.likely:
        return Statement(f"{_advice(side, time)}: {likely_factor(time)}{_memory_beside(side, memory)}.", keys)
    said = grade_comparison(time, TIME)
    if time.why == HOLDS_ONE:
        span = f"dense takes {format_interval(time.ratio)} times as long as sparse"
        return Statement(f"Inconclusive, take {side} for now: {span}; {cost_clause(side, time)}.", keys)
    said = f"it{said.removeprefix(side)}" if said.startswith(side) else said
    return Statement(f"{_advice(side, time)}: {said}{_memory_beside(side, memory)}.", keys)


def _advice(side: str, time: Contest) -> str:
    """Return the advice to take `side`, worded by its certainty: "Go sparse", "Probably sparse", ..."""
    if time.verdict == side:
        return "Go sparse" if side == "sparse" else "Stay dense"
    if time.likely == side:
        return f"Probably {side}"
    if time.verdict == "level":
        return f"Either side will do, take {side}"
    return f"Inconclusive, take {side} for now"


def _memory_beside(side: str, memory: Contest) -> str:
    """Return "; it needs 3 times less memory" (or more) for the chosen side; "" if memory has no winner."""
    if memory.verdict not in ("sparse", "dense"):
        return ""
    return f"; it needs {format_factor_with_interval(memory)} {'less' if memory.verdict == side else 'more'} memory"


def _missing_side_reason(time: Contest) -> str:
    """Return ": reason" why the other side has no time, to append to a sentence; "" if no reason is known."""
    other = time.dense if time.verdict == "sparse" else time.sparse
    if time.verdict in ("sparse", "dense") and other is not None:
        return f": {verdict_text.failure_reason(other)}"
    return f": {time.why}" if time.why else ""


def _grounds(
    best: Record,
    rows: Sequence[Record],
    time: Contest,
    memory: Contest,
    accept: Callable[[Record], bool],
    leaders: Sequence[Record],
) -> Iterable[Statement]:
    """Yield the statements that support the recommendation `best` among `rows`, each with the keys of its records.

    `leaders` holds the best record of each batch size and device, whose epochs are compared. `time` and `memory` are
    the contests with the other side; `accept` says which records may be recommended.
    """
    what = f"Take {name_configuration(best)}, with {format_count(best['batch_rows'], 'row')} a batch"
    yield Statement(f"{what}{_count_of_rounds(time)}.", keys_of(best))
    for found, measure in ((time, TIME), (memory, MEMORY)):
        yield Statement(verdict_text.contest_sentence(found, measure), keys_of(found.sparse, found.dense))
    if executed := execution.describe_sides(time):
        yield Statement(executed, keys_of(time.sparse, time.dense))
    if others := [row for row in rows if row is not best and accept(row) and not configurations.is_dense(row)]:
        yield _next_best_comparison(best, others)
    batches = sorted(leaders, key=lambda row: row["batch_rows"])
    if len(batches) > 1:
        yield _batch_comparison(best, batches)


def _count_of_rounds(time: Contest) -> str:
    """Return "; it was measured in 6 rounds with the other side", disturbed ones counted.

    "" if no round has both sides.
    """
    if time.ratio is None or not time.ratio.rounds:
        return ""
    disturbed_text = f", {time.ratio.disturbed} next to other programs" if time.ratio.disturbed else ""
    rounds = format_count(time.ratio.rounds, "round")
    return f"; it was measured in {rounds} with the other side{disturbed_text}"


def _next_best_comparison(best: Record, others: Sequence[Record]) -> Statement:
    """Return the statement on how many times as long as `best` the fastest of `others` takes."""
    known = [(row, ratio) for row in others if (ratio := ratio_between(row, best, TIME))]
    if not known:
        return Statement("No other sparse configuration ran.", keys_of(*others))
    row, ratio = min(known, key=lambda one: one[1].value)
    keys = keys_of(best, row)
    if ratio.low > 1:
        return Statement(
            (f"The next sparse one, {name_configuration(row)}, takes {format_times(ratio)} as long."), keys
        )
    return Statement(
        (f"{name_configuration(row)} cannot be distinguished from it: it takes {format_times(ratio)} as long."), keys
    )


def _batch_comparison(best: Record, leaders: Sequence[Record]) -> Statement:
    """Return the statement with the epoch time of the best configuration of each batch size and device."""
    parts = [
        f"{format_seconds(seconds_a_row(row) * (row['rows_trained'] or 1), 2)} with "
        f"{format_count(row['batch_rows'], 'row')} a batch"
        f"{device_suffix(row)}"
        + ("" if configurations.line_of(row) == configurations.line_of(best) else f" ({name_configuration(row)})")
        for row in leaders
    ]
    return Statement(f"An epoch takes {join_items(parts)}{_batch_reasons(best, leaders)}.", keys_of(*leaders))


def _batch_reasons(best: Record, leaders: Sequence[Record]) -> str:
    """Return a clause why this batch size is taken, with a caveat on larger batches; "" if there is none to state."""
    least = min(row["batch_rows"] for row in leaders)
    if best["batch_rows"] > least:
        return (
            ". The larger batch is taken by seconds an epoch alone: its epochs have fewer updates, which trains "
            f"another model, maybe a worse one after as many epochs; --batch-rows {least} keeps to the smaller one"
        )
    return "" if best is min(leaders, key=seconds_a_row) else "; a smaller batch has more updates an epoch"


def _without_times(rows: Sequence[Record]) -> Recommendation:
    """Return the recommendation "none", with the reasons of the records, if no record has a time."""
    reasons = list(dict.fromkeys(row["reason"] for row in rows if row["reason"]))
    text = "There is no answer: " + (" ".join(reasons) if reasons else "nothing was measured.")
    return Recommendation("none", Statement(text, keys_of(*rows)))
