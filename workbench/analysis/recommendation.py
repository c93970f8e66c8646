"""Recommendation of a configuration for data as it is: the fastest, held against the best dense one; from rows alone.

Rows of the data's own density choose; those of other densities and batches say what would change the answer. Each
sentence has the keys of the cells behind it.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from workbench import settings
from workbench.analysis import cells, execution, told, words
from workbench.analysis.best_of_all import beside_array, leader, smaller_than_array, times
from workbench.analysis.cells import Row
from workbench.analysis.compare import BUSY, REMEDY, Contest, contest, rivals_of
from workbench.analysis.elsewhere import break_even, by_usual_noise, elsewhere
from workbench.analysis.intervals import values_of
from workbench.analysis.said import Said, keys_of
from workbench.measure.racing import believed, least_expected
from workbench.measure.rounds import DEVIATION, LOOKS, Rounds, ratio_of

TIME, MEMORY = "seconds_step", "bytes_peak"
NEAR = 1.25
"""A smaller batch is preferred where its epoch takes at most so many times the least: it has more updates."""
CHOICE = (*settings.columns("line"), "device", "batch_rows")
"""What is recommended."""


@dataclass(frozen=True)
class Recommendation:
    """Recommended configuration. `verdict` is sparse, dense, level or undecided, in time; none where nothing ran.

    `settings` are the recommended ones (`CHOICE`) and `key` is that of their cell, None where nothing ran. `time` and
    `memory` are the contests with the best dense cell, or of a dense one with the best sparse. `grounds` say why, and
    `would_change` what the answer depends on.
    """

    verdict: str
    headline: Said
    settings: dict[str, Any] | None = None
    key: str | None = None
    time: Contest | None = None
    memory: Contest | None = None
    grounds: tuple[Said, ...] = ()
    would_change: tuple[Said, ...] = ()

    @property
    def sentences(self) -> tuple[Said, ...]:
        """All of it, in the order to read."""
        return (self.headline, *self.grounds, *self.would_change)

    def __str__(self) -> str:
        return "\n".join(map(str, self.sentences))


def recommend(
    frame: pd.DataFrame, accept: Callable[[Row], bool] = lambda row: True, density: float | None = None
) -> Recommendation:
    """The recommendation from the rows of one model on one data set, at any batches, devices and densities.

    It is for the `density` asked for, None for that of the data; rows of others tell what would change it.
    Only rows that `accept` may be recommended; others, lazy updates that train another model, are told of.
    O(rows * rounds).
    """
    groups = cells.groups(frame)
    own: list[list[Row]] = [[row for row in group.rows if row["density"] == density] for group in groups]
    leaders = {id(rows): first for rows in own if (first := leader(rows, accept))}
    if not leaders:
        return _without_times(own, accept, _beside_others(frame))
    rows = _chosen([rows for rows in own if id(rows) in leaders], leaders)
    best = leaders[id(rows)]
    time, memory = (_against(best, rows, accept, measure) for measure in (TIME, MEMORY))
    return Recommendation(
        time.verdict,
        _headline(best, time, memory),
        {name: best[name] for name in CHOICE},
        best["key"],
        time,
        memory,
        tuple(_grounds(best, rows, time, memory, accept, leaders)),
        tuple(_would_change(best, rows, groups, accept, time)),
    )


def seconds_a_row(row: Row) -> float:
    """Seconds of a step by rows of its batch: what an epoch takes, by rows of the data."""
    return row[TIME] / row["batch_rows"]


def _chosen(own: Sequence[list[Row]], leaders: dict[int, Row]) -> list[Row]:
    """The rows of the device and the batch to take: of batches nearly as fast as the fastest the smallest."""
    least = min(seconds_a_row(leaders[id(rows)]) for rows in own)
    near = [rows for rows in own if seconds_a_row(leaders[id(rows)]) <= NEAR * least]
    return min(near, key=lambda rows: (leaders[id(rows)]["batch_rows"], seconds_a_row(leaders[id(rows)])))


def _against(best: Row, rows: Sequence[Row], accept: Callable[[Row], bool], measure: str) -> Contest:
    """The best row against the other side: dense for a sparse one, and for a dense one the best sparse.

    Fewer rounds of time than a decision takes have the interval of the usual noise, and decide where far apart.
    """
    dense = cells.dense_rows(rows)
    sparse = [row for row in rows if not cells.is_dense(row) and accept(row)]
    if measure == MEMORY:  # which varies little: who left a race after a round is not needed for it
        dense, sparse = (_most_measured(side) for side in (dense, sparse))
    rivals = max(rivals_of(sparse, dense, measure), 1)
    if cells.is_dense(best):
        found = contest(sparse, [best] if best["status"] == "ok" else dense, measure, rivals)
    else:
        found = contest([best], dense, measure, rivals)
    return by_usual_noise(found) if measure == TIME else found


def _most_measured(rows: list[Row]) -> list[Row]:
    """The rows of most rounds, disturbed ones among them, and those without a number."""
    rounds = {row["key"]: len(values_of(row, MEMORY)) for row in rows}
    most = max(rounds.values(), default=0)
    return [row for row in rows if rounds[row["key"]] in (0, most)]


def _headline(best: Row, time: Contest, memory: Contest) -> Said:
    line, batch = words.line(best), f"{best['batch_rows']:,} rows a batch{_gain(time)}"
    keys = keys_of(time.sparse, time.dense)
    if cells.is_dense(best):
        if time.verdict == "undecided":
            return Said(f"It is undecided, {time.why}; dense is the likelier one, with {batch}{_apart(time)}.", keys)
        return Said(f"Stay dense: {line}, with {batch}.", keys)
    if time.verdict == "sparse":
        return Said(f"Go sparse: {line}, with {batch}.", keys)
    if time.verdict == "level":
        return Said(f"Sparse and dense take the same time, within 10 %: take {line}, with {batch}.", keys)
    saves = "; it needs less memory" if memory.verdict == "sparse" else ""
    return Said(f"It is undecided, {time.why}; {line} is the likelier one, with {batch}{_apart(time)}{saves}.", keys)


def _gain(time: Contest) -> str:
    """By how much the winner is faster, as a headline has it; nothing where no side won, or one did not run."""
    if time.ratio is None or time.verdict not in ("sparse", "dense"):
        return ""
    loser = "dense" if time.verdict == "sparse" else "the best sparse one"
    return f", {words.gain(time.ratio)} faster than {loser}"


def _apart(time: Contest) -> str:
    """Factors between which an undecided ratio lies, where there is one."""
    return f": dense takes {words.times(time.ratio)} as long as sparse" if time.ratio else ""


def _of_rounds(time: Contest) -> Iterable[Said]:
    """Ground of an interval from fewer rounds than a decision takes."""
    if time.ratio is not None and time.ratio.rounds < LOOKS[0]:
        rounds, noise = words.plural(time.ratio.rounds, "round"), words.density(DEVIATION)
        text = f"Time is known from {rounds}: its interval is that of the usual noise, {noise} from round to round."
        yield Said(text, keys_of(time.sparse, time.dense))


def _grounds(
    best: Row,
    rows: Sequence[Row],
    time: Contest,
    memory: Contest,
    accept: Callable[[Row], bool],
    leaders: dict[int, Row],
) -> Iterable[Said]:
    for found, measure in ((time, TIME), (memory, MEMORY)):
        yield Said(told.sentence(found, measure), keys_of(found.sparse, found.dense))
    if executed := execution.of_contest(time, rows, TIME):
        yield Said(executed, keys_of(time.sparse, time.dense))
    yield from _of_holding(best, rows)
    yield from _of_rounds(time)
    if others := [row for row in rows if row is not best and accept(row) and not cells.is_dense(row)]:
        yield _of_others(best, others)
    batches = sorted(leaders.values(), key=lambda row: row["batch_rows"])
    if len(batches) > 1:
        yield _of_batches(best, batches)


def _of_holding(best: Row, rows: Sequence[Row]) -> Iterable[Said]:
    """Comparison of a dense array with data that are held in less memory, if the best row is one of both."""
    if compared := beside_array(best, rows):
        yield Said(f"With {words.line(best)} {compared}.", keys_of(best))
    if (apart := smaller_than_array(best, rows)) is not None:
        yield Said(f"With {words.line(apart)} {beside_array(apart, rows)}.", keys_of(apart, best))


def _of_others(best: Row, others: Sequence[Row]) -> Said:
    """Comparison of the next best sparse configuration with the best row."""
    against = [(row, ratio_of(times(row), times(best))) for row in others if row["status"] == "ok"]
    known = [(row, believed(ratio)) for row, ratio in against if ratio]
    if not known:
        return Said("No other sparse configuration ran.", keys_of(*others))
    row, ratio = min(known, key=lambda one: one[1].value)
    keys = keys_of(best, row)
    if ratio.low > 1:
        return Said(f"The next sparse one, {words.line(row)}, takes {words.times(ratio)} as long.", keys)
    return Said(f"{words.line(row)} cannot be told from it: it takes {words.times(ratio)} as long.", keys)


def _of_batches(best: Row, leaders: Sequence[Row]) -> Said:
    """Seconds of an epoch with each batch and device, each at its fastest."""
    parts = [
        f"{words.seconds(seconds_a_row(row) * (row['rows_trained'] or 1), 2)} with {row['batch_rows']:,} rows a batch"
        f"{words.on_device(row)}" + ("" if cells.line_of(row) == cells.line_of(best) else f" ({words.line(row)})")
        for row in leaders
    ]
    return Said(f"An epoch takes {words.join(parts)}{_why_that_batch(best, leaders)}.", keys_of(*leaders))


def _why_that_batch(best: Row, leaders: Sequence[Row]) -> str:
    """Reasons for the batch, and what was not looked at: how much is learned in an epoch of fewer steps."""
    least = min(row["batch_rows"] for row in leaders)
    if best["batch_rows"] > least:
        return (
            ". The larger batch is taken by seconds an epoch alone: its epochs have fewer updates, which trains "
            f"another model, maybe a worse one after as many epochs; --batch-rows {least} keeps to the smaller one"
        )
    return "" if best is min(leaders, key=seconds_a_row) else "; a smaller batch has more updates an epoch"


def _would_change(
    best: Row, rows: Sequence[Row], groups: Sequence[cells.Group], accept: Callable[[Row], bool], time: Contest
) -> Iterable[Said]:
    lazy = [row for row in rows if row["status"] == "ok" and not accept(row)]
    against = [(row, ratio_of(times(best), times(row))) for row in lazy]
    faster = [(row, known) for row, ratio in against if ratio and (known := believed(ratio)).low > 1]
    for row, ratio in sorted(faster, key=lambda one: -one[1].value)[:1]:
        told_of = f"{words.line(row)} would be {words.times(ratio)} faster still, but trains another model than dense"
        yield Said(f"{told_of}.", keys_of(best, row))
    yield from elsewhere(rows, groups, accept, time.verdict)
    yield from break_even(time, groups)
    if time.verdict == "undecided" and time.why in REMEDY:
        yield Said(f"To decide it: {REMEDY[time.why]}.", keys_of(time.sparse, time.dense))


def _beside_others(frame: pd.DataFrame) -> dict[Hashable, Rounds]:
    """Seconds of disturbed rows by key: no ground for a verdict, but all there is where no other has a time."""
    found: dict[Hashable, dict[tuple[Hashable, int], float]] = {}
    for row in cells.records(frame):
        if row["status"] == "disturbed" and row[TIME]:
            found.setdefault(row["key"], {})[row["run"], row["round"]] = row[TIME]
    return dict(found)


def _without_times(
    own: Sequence[list[Row]], accept: Callable[[Row], bool], beside: Mapping[Hashable, Rounds]
) -> Recommendation:
    """Tell, where no row has a time alone, what it took beside other programs, and its memory; else why nothing ran."""
    places = [[row for row in rows if row["status"] == "disturbed" and row[MEMORY] and accept(row)] for rows in own]
    busy, at = max(zip(places, own, strict=True), key=lambda place: len(place[0]), default=([], []))
    if not busy:
        return _nothing([row for rows in own for row in rows])
    likeliest = least_expected({row["key"]: beside[row["key"]] for row in busy if row["key"] in beside})
    best = next((row for row in busy if row["key"] == likeliest), min(busy, key=lambda row: row[MEMORY]))
    least = "needs the least memory" if likeliest is None else "took the least time beside them"
    time, memory = (_against(best, at, accept, measure) for measure in (TIME, MEMORY))
    text = f"It is undecided in time: {BUSY} in every trial. {words.line(best)} {least}."
    grounds = (Said(told.sentence(memory, MEMORY), keys_of(memory.sparse, memory.dense)),)
    todo = (Said(f"To decide it: {REMEDY[BUSY]}.", keys_of(*busy)),)
    known = {name: best[name] for name in CHOICE}
    headline = Said(text, keys_of(best))
    return Recommendation("undecided", headline, known, best["key"], time, memory, grounds, todo)


def _nothing(rows: Sequence[Row]) -> Recommendation:
    """Reasons why nothing ran."""
    reasons = list(dict.fromkeys(row["reason"] for row in rows if row["reason"]))
    text = "There is no answer: " + (" ".join(reasons) if reasons else "nothing was measured.")
    return Recommendation("none", Said(text, keys_of(*rows)))
