"""Recommend a configuration for given data: the fastest one, compared with the best dense one, from records alone.

Rows of the data's own density choose; those of other densities and batches say what would change the answer. Each
sentence has the keys of the configurations behind it.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pandas as pd

from workbench import settings
from workbench.analysis import configurations, execution, verdict_text
from workbench.analysis.answers import MEMORY, Answer, answer_of, best_record, seconds_a_row, smallest_record
from workbench.analysis.breakeven import breakeven_of
from workbench.analysis.compare import (
    HOLDS_ONE,
    Contest,
    barred_of_group,
    compare_best,
    ratio_between,
    undominated_records,
)
from workbench.analysis.configurations import Record, line_key
from workbench.analysis.estimates import TIME
from workbench.analysis.formatting import (
    capitalized,
    device_suffix,
    format_bytes,
    format_count,
    format_density,
    format_measured_quantity,
    format_seconds,
    format_span,
    format_times,
    join_items,
    name_configuration,
)
from workbench.analysis.grades import (
    Statement,
    cost_clause,
    format_factor,
    format_factor_with_interval,
    format_interval,
    grade_comparison,
    keys_of,
    likely_factor,
)
from workbench.measure.posterior import EQUIVALENCE_MARGIN

# Best answer of all: of the candidates that take at most 10 % longer than the fastest the one of least memory.
#
# Verdicts compare training on sparse batches with training on dense ones. Data held as CSR may be trained on in dense
# batches: then the memory is about that of sparse training, and the time that of dense. If that is the best answer, the
# report says so, with what a dense array would have needed.


def is_dense_batch_of_compact_data(row: Record) -> bool:
    """Return whether a record trains on dense batches while its data are held in another form, such as CSR or uint8."""
    return configurations.is_dense(row) and configurations.storage_of(row) != configurations.HELD


def compare_with_dense_array(row: Record, rows: Iterable[Record]) -> str:
    """Return how the memory and time of a record with dense batches compare with those of a dense array, as a clause.

    `rows` are all records of its density. "" if `row` is not such a record or no array was tried; says so if it did not
    fit.
    """
    if not is_dense_batch_of_compact_data(row):
        return ""
    arrays = [other for other in configurations.dense_rows(rows) if not is_dense_batch_of_compact_data(other)]
    array = best_record(arrays)
    if array is None:
        unfit = next((other for other in arrays if other["status"] == "memory" and other["bytes_needed"]), None)
        return f"a dense array did not fit: it needs {format_bytes(unfit['bytes_needed'])}" if unfit else ""
    return _compare_memory_and_time(row, array)


def fastest_smaller_than_array(row: Record, rows: Iterable[Record]) -> Record | None:
    """Return the fastest record with dense batches whose peak memory is at least 10 % below that of the array `row`.

    None if `row` is not of a dense array, has no memory figure, or nothing smaller ran.
    """
    if not configurations.is_dense(row) or is_dense_batch_of_compact_data(row) or not row[MEMORY]:
        return None
    apart = [
        other
        for other in rows
        if is_dense_batch_of_compact_data(other) and EQUIVALENCE_MARGIN * (other[MEMORY] or math.inf) < row[MEMORY]
    ]
    return best_record(apart)


def _compare_memory_and_time(row: Record, array: Record) -> str:
    """Return a clause on the memory of both records and how many times as long `array` takes; "" if unknown."""
    ratio = ratio_between(array, row, TIME)
    sizes = [format_measured_quantity(one, MEMORY) for one in (row, array)]
    memory = f"it needs {sizes[0]} where a dense array needs {sizes[1]}" if all(sizes) else ""
    time = f"the dense array takes {format_times(ratio)} as long" if ratio else ""
    return ", and ".join(filter(None, (memory, time)))


def best_of_all_sentences(groups: Sequence[configurations.Group]) -> Iterator[str]:
    """Yield a sentence per density range in which dense batches of compact data are the best choice of all.

    `groups` hold pooled records of comparable configurations.
    """
    for group in groups:
        head = f"{capitalized(group.label)}: " if len(groups) > 1 else ""
        for best, density_range in groupby(_best_by_density(group), key=lambda one: _name(one[1])):
            if best:
                text = _sentence(best, list(density_range), group)
                yield f"{head}{text[:1].lower()}{text[1:]}" if head else text


def compact_storage_sentences(groups: Sequence[configurations.Group]) -> Iterator[str]:
    """Yield a sentence per group on the peak memory of a dense array, compact data in dense batches, and sparse.

    It is for the lowest density at which all three have a memory figure; a group without one is left out.
    """
    for group in groups:
        head = f"{capitalized(group.label)}: " if len(groups) > 1 else ""
        for rows in configurations.by_density(
            sorted(group.rows, key=lambda row: configurations.density_of(row) or 0.0)
        ).values():
            known = [row for row in rows if row["status"] in configurations.NUMBERED and row[MEMORY]]
            sides = (
                [row for row in known if configurations.is_dense(row) and not is_dense_batch_of_compact_data(row)],
                [row for row in known if is_dense_batch_of_compact_data(row)],
                [row for row in known if not configurations.is_dense(row)],
            )
            if all(sides):
                array, apart, sparse = (min(side, key=lambda row: row[MEMORY]) for side in sides)
                sizes = [format_measured_quantity(row, MEMORY) for row in (array, apart, sparse)]
                where = f"{'at' if head else 'At'} {format_density(configurations.density_of(array) or 0.0)} density"
                others = f"{name_configuration(apart)} {sizes[1]}, {name_configuration(sparse)} {sizes[2]}"
                yield f"{head}{where} a dense array needs {sizes[0]}, {others}."
                break


def _best_by_density(group: configurations.Group) -> list[tuple[float | None, Record | None]]:
    """Return (requested density, best record or None) for each density of a group, ascending.

    Other models are left out. The best is that of least memory among those at most 10 % slower than the fastest.
    """
    able = [row for row in group.rows if id(row) not in barred_of_group(group)]
    found = [(at, smallest_record(rows)) for at, rows in configurations.by_density(able).items()]
    return sorted(found, key=lambda one: (configurations.density_of(one[1]) if one[1] else one[0]) or 0.0)


def _name(row: Record | None) -> str:
    """Return the configuration's name if its dense batches come from compact data; "" for other records and None."""
    return name_configuration(row) if row is not None and is_dense_batch_of_compact_data(row) else ""


def _sentence(
    name: str, density_range: Sequence[tuple[float | None, Record | None]], group: configurations.Group
) -> str:
    """Return the sentence that `name` is the best of all over consecutive densities, with its gain over a dense array.

    `density_range` holds (density, record) of these densities, ascending.
    """
    rows = [row for _, row in density_range if row is not None]
    ends = [configurations.density_of(row) or 0.0 for row in (rows[0], rows[-1])]
    where = (
        f"At {format_density(ends[0])}" if len(rows) == 1 else f"From {format_span(ends[0], ends[1], format_density)}"
    )
    compared = compare_with_dense_array(rows[0], [row for row in group.rows if row["density"] == rows[0]["density"]])
    at = f" at {format_density(ends[0])}" if len(rows) > 1 and compared else ""
    more = f": {compared}{at}" if compared else ""
    return f"{where} density {name} is the best answer of all, at most 10 % slower than the fastest{more}."


CHOICE = (*settings.columns("line"), "device", "batch_rows")
"""What is recommended."""


@dataclass(frozen=True)
class Recommendation:
    """Recommended configuration. `verdict` is sparse, dense, level or inconclusive, in time; none if nothing ran.

    `settings` are the recommended ones (`CHOICE`) and `key` is that of their configuration, None if nothing ran.
    `time` and `memory` are the contests with the best dense configuration, or of a dense one with the best sparse.
    `grounds` say why, and `would_change` what the answer depends on.
    """

    verdict: str
    headline: Statement
    settings: dict[str, Any] | None = None
    key: str | None = None
    time: Contest | None = None
    memory: Contest | None = None
    grounds: tuple[Statement, ...] = ()
    would_change: tuple[Statement, ...] = ()
    answer: Answer | None = None

    @property
    def sentences(self) -> tuple[Statement, ...]:
        """All statements in reading order: headline, grounds, what would change the answer."""
        return (self.headline, *self.grounds, *self.would_change)

    def __str__(self) -> str:
        """Return all sentences, one per line."""
        return "\n".join(map(str, self.sentences))


def recommend(frame: pd.DataFrame) -> Recommendation:
    """Return the recommendation from trial records of one model on one data set, at any batch size, device and density.

    It words the answer of these records (`answers.answer_of`); other densities and batches tell what would change it.
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
        tuple(_sensitivities(best, rows, groups, accept, time)),
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
    if executed := execution.describe_contest(time, rows, TIME):
        yield Statement(executed, keys_of(time.sparse, time.dense))
    yield from _compact_storage_comparison(best, rows)
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


def _compact_storage_comparison(best: Record, rows: Sequence[Record]) -> Iterable[Statement]:
    """Yield statements that compare a dense array with compact data in dense batches, if `best` is either of them.

    `rows` are those of the same density.
    """
    if compared := compare_with_dense_array(best, rows):
        yield Statement(f"With {name_configuration(best)} {compared}.", keys_of(best))
    if (apart := fastest_smaller_than_array(best, rows)) is not None:
        yield Statement(
            f"With {name_configuration(apart)} {compare_with_dense_array(apart, rows)}.", keys_of(apart, best)
        )


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


def _sensitivities(
    best: Record,
    rows: Sequence[Record],
    groups: Sequence[configurations.Group],
    accept: Callable[[Record], bool],
    time: Contest,
) -> Iterable[Statement]:
    """Yield statements on what would change the answer: excluded faster records, densities, break-even, remedy.

    `rows` are the records that `best` was chosen from, `time` is its contest; `accept` excludes lazy updates.
    """
    against = [(row, ratio_between(best, row, TIME)) for row in rows if not accept(row)]
    faster = [(row, ratio) for row, ratio in against if ratio and ratio.low > 1]
    for row, ratio in sorted(faster, key=lambda one: -one[1].value)[:1]:
        text = (
            f"{name_configuration(row)} would be {format_times(ratio)} faster "
            f"still, but trains another model than dense"
        )
        yield Statement(f"{text}.", keys_of(best, row))
    yield from verdicts_at_other_densities(rows, groups, accept, time.verdict)
    yield from break_even(time, groups)
    if time.verdict == "inconclusive" and time.remedy:
        yield Statement(f"To decide it: {time.remedy}.", keys_of(time.sparse, time.dense))


def _without_times(rows: Sequence[Record]) -> Recommendation:
    """Return the recommendation "none", with the reasons of the records, if no record has a time."""
    reasons = list(dict.fromkeys(row["reason"] for row in rows if row["reason"]))
    text = "There is no answer: " + (" ".join(reasons) if reasons else "nothing was measured.")
    return Recommendation("none", Statement(text, keys_of(*rows)))


# Conditions that would change a recommendation: other batches, other devices, other densities.
#
# A side wins there against all that may win, as in the verdict: a configuration that was not measured there counts as
# beaten only where the other side, or another sparse one, beats it on the data as they are.


def verdicts_at_other_densities(
    rows: Sequence[Record], groups: Sequence[configurations.Group], accept: Callable[[Record], bool], verdict: str
) -> Iterable[Statement]:
    """Yield a statement on the winner at each density and batch of `groups` other than that of `rows`.

    `verdict` is that of `rows`, the data as they are; `accept` says which sparse records may win.
    """
    for group in groups:
        for _, at in sorted(configurations.by_density(group.rows).items(), key=lambda one: one[0] or 0.0):
            if not any(row is one for row in at for one in rows):
                yield from _winner_at(at, rows, accept, verdict)


def _winner_at(
    at: Sequence[Record], rows: Sequence[Record], accept: Callable[[Record], bool], verdict: str
) -> Iterable[Statement]:
    """Yield at most one statement on the winner among records `at` one density and batch; none if inconclusive.

    It says whether that is the side of `verdict`, or that configurations of `rows` which may be faster were not
    measured.
    """
    sparse, dense = _split_by_side(at, accept)
    found = compare_best(sparse, dense, TIME)
    if found.verdict == "inconclusive" or found.sparse is None or found.dense is None:
        return
    keys = keys_of(found.sparse, found.dense)
    lead = f", {format_factor(found)} faster" if found.ratio and found.verdict != "level" else ""
    if missing := _unmeasured_competitors(found, at, rows, accept):
        named = join_items(sorted({name_configuration(row) for row in missing}), "or")
        winner, loser = (found.dense, found.sparse) if found.verdict == "dense" else (found.sparse, found.dense)
        beats = "is level with" if found.verdict == "level" else "beats"
        text = (
            f"{name_configuration(winner)} {beats} {name_configuration(loser)}{lead}; "
            f"{named} may be faster, and was not measured there"
        )
        yield Statement(f"With {_condition_text(at, rows, found)} {text}.", keys)
        return
    same = "still" if found.verdict == verdict else "instead"
    text = "they are equal" if found.verdict == "level" else f"{found.verdict} wins {same}"
    yield Statement(f"With {_condition_text(at, rows, found)} {text}{lead}.", keys)


def _split_by_side(rows: Sequence[Record], accept: Callable[[Record], bool]) -> tuple[list[Record], list[Record]]:
    """Return (accepted sparse records, dense records)."""
    return [row for row in rows if not configurations.is_dense(row) and accept(row)], configurations.dense_rows(rows)


def _condition_text(at: Sequence[Record], rows: Sequence[Record], found: Contest) -> str:
    """Return the batch size, device and, if it differs, density of `at`, as "256 rows a batch at 3 % density"."""
    batch = f"{format_count(at[0]['batch_rows'], 'row')} a batch{device_suffix(at[0])}"
    is_denser = at[0]["density"] != rows[0]["density"] and found.density
    return f"{batch} at {format_density(found.density, 2)} density" if is_denser and found.density else batch


def _unmeasured_competitors(
    found: Contest, at: Sequence[Record], rows: Sequence[Record], accept: Callable[[Record], bool]
) -> list[Record]:
    """Return configurations of `rows`, not measured in `at`, that might still beat the winner of `found` there."""
    measured = {line_key(row) for row in at}
    sparse, dense = _split_by_side(rows, accept)
    absent = [row for row in undominated_records(sparse, TIME) if line_key(row) not in measured]
    missing = [] if found.verdict == "sparse" else [row for row in absent if _winner([row], dense) != "dense"]
    if found.verdict != "dense":
        absent = [row for row in undominated_records(dense, TIME, "dense") if line_key(row) not in measured]
        missing += [row for row in absent if _winner(sparse, [row]) != "sparse"]
    return [row for row in missing if row["status"] in configurations.NUMBERED]


def _winner(sparse: Sequence[Record], dense: Sequence[Record]) -> str:
    """Return the verdict on time: "sparse", "dense", "level" or "inconclusive"."""
    return compare_best(sparse, dense, TIME).verdict


def break_even(time: Contest, groups: Sequence[configurations.Group]) -> Iterable[Statement]:
    """Yield a statement with the break-even density in time of the contest's sparse side, if it was measured."""
    if time.sparse is None:
        return
    group = next(group for group in groups if any(row is time.sparse for row in group.rows))
    even = breakeven_of(group, time.sparse, TIME)
    if even is not None and even.status == "crossing":
        at = [row for row in group.rows if line_key(row) == line_key(time.sparse) or configurations.is_dense(row)]
        text = f"The break-even of {name_configuration(time.sparse)} is {even.place}."
        yield Statement(text, keys_of(*at))
