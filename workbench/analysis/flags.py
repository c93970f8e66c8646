"""Flags that an honest answer adds: doubtful wins, cells without a result, and what the answer depends on."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from workbench import settings
from workbench.analysis import cells, doubts, execution, words
from workbench.analysis.best_of_all import is_held_apart
from workbench.analysis.breakeven import BreakEven
from workbench.analysis.compare import BUSY, FEW, REMEDY, contests
from workbench.analysis.intervals import ONCE
from workbench.analysis.worse import trained_worse
from workbench.measure.rounds import LOOKS

NOISY = 1.5
"""Where no smaller factor than this can be told, a warning says so."""
_SETTINGS = {setting.name: setting.noun for setting in settings.SETTINGS if setting.noun} | {"machine": "machine"}


def warnings(groups: Sequence[cells.Group]) -> Iterator[str]:
    """Sentences on lazy updates that trained worse, densified operations, disturbed, few, noisy and lost rounds."""
    rows = [row for group in groups for row in group.rows]
    yield from _unequal(groups)
    yield from _lazy(groups)
    yield from _densified(rows)
    yield from _prepared(rows)
    yield from _disturbed(rows)
    yield from _few(rows)
    yield from _noisy(groups)
    yield from _machine(rows)
    lost = Counter(name for row in rows for name in row["not_finite"] or ())
    if lost:
        counts = words.join(f"{name} in {words.plural(count, 'cell')}" for name, count in lost.items())
        yield f"Values that were not finite are missing: {counts}."


def _unequal(groups: Sequence[cells.Group]) -> Iterator[str]:
    """Executions that are not equal on both sides: of those of a group the one that could change most."""
    for group in groups:
        at = cells.by_density(group.rows)
        met = contests(group.rows, "seconds_step")
        told = [(one, execution.of_inequality(one, at[one.sparse["density"]])) for one in met if one.sparse]
        if unequal := [(one, text) for one, text in told if text]:
            near, text = min(unequal, key=lambda pair: abs(math.log(pair[0].known[2].value)))
            where = words.densities([near])
            yield f"At {where}{_in(group, groups)} {text[:1].lower()}{text[1:]}"


def _disturbed(rows: Sequence[cells.Row]) -> Iterator[str]:
    """Amount of the timing that was left out, since other programs were at work beside it."""
    left_out = sum(row["rounds_disturbed"] for row in rows)
    if left_out:
        trials = words.plural(left_out + sum(row["rounds"] for row in rows), "trial")
        yield f"{left_out} of {trials} with numbers ran beside other programs and are left out of all times."
    lost = sum(row["status"] == "disturbed" for row in rows)
    if lost:
        yield f"{_of(lost, rows)} never timed undisturbed, so nothing is said of the time there: {REMEDY[BUSY]}."


def _few(rows: Sequence[cells.Row]) -> Iterator[str]:
    few = sum(0 < row["rounds"] < LOOKS[0] for row in rows)
    if few:
        yield f"{_of(few, rows)} timed in fewer than four rounds; those decide nothing about time: {REMEDY[FEW]}."
    once = sum(row["status"] in cells.NUMBERED and row["rounds"] + row["rounds_disturbed"] == 1 for row in rows)
    if once:
        yield f"{_of(once, rows)} measured once, so differences in memory have no interval there: {REMEDY[ONCE]}."


def _noisy(groups: Sequence[cells.Group]) -> Iterator[str]:
    """Densities at which the rounds differ so much that large differences would not be seen."""
    for group in groups:
        compared = contests(group.rows, "seconds_step")
        blind = [one for one in compared if (one.visible or 0.0) > NOISY]
        if blind:
            most = max(one.visible or 0.0 for one in blind)
            where = "every density" if len(blind) == len(compared) > 1 else words.densities(blind)
            yield (
                f"At {where} rounds differ so much that differences below "
                f"{words.number(most, 2)} times may go unseen{_in(group, groups)}."
            )


def _machine(rows: Sequence[cells.Row]) -> Iterator[str]:
    """Disturbances of the machine beside the trials, and in how many cells."""
    met = [doubts.of_machine(row) for row in rows]
    kinds = Counter(kind for each in met for kind in each if kind != doubts.OTHERS)  # those are told by `_disturbed`
    if kinds:
        each = words.join(f"{kind} in {words.plural(count, 'cell')}" for kind, count in kinds.items())
        yield f"Beside the trials the machine had {each}; the rows say how much."


def failures(groups: Sequence[cells.Group]) -> list[str]:
    """Cells without a result, counted by status and reason; empty where every cell has one."""
    rows = [row for group in groups for row in group.rows]
    lost = [row for row in rows if row["status"] not in cells.NUMBERED]
    retried = sum(row["rounds_failed"] for row in rows if row["status"] in cells.NUMBERED)
    notes = (
        [f"{words.plural(retried, 'round')} failed in cells that have a result from other rounds."] if retried else []
    )
    if not lost:
        return notes
    each = "; ".join(_reason(status, lost) for status in dict.fromkeys(row["status"] for row in lost))
    return [f"{len(lost)} of {words.plural(len(rows), 'cell')} have no result: {each}.", *notes]


def _reason(status: str, rows: Sequence[cells.Row]) -> str:
    """A status with its count and its reason, or one of its reasons."""
    reasons = [row["reason"] or "no reason given" for row in rows if row["status"] == status]
    example = "" if len(set(reasons)) == 1 else "for example: "
    return f"{len(reasons)} {status} ({example}{reasons[0].rstrip('.')})"


def would_change(groups: Sequence[cells.Group], evens: Sequence[BreakEven]) -> Iterator[str]:
    """Effect on the break-even in time of each setting that was varied, and which were not."""
    varied = [name for name in _SETTINGS if len(_values(name, groups)) > 1]
    for name in varied:
        yield from _moves(name, evens)
    shared = [name for name in _SETTINGS if name not in varied and name in groups[0].settings and name != "machine"]
    fixed = cells.describe(groups[0].settings, shared)
    yield f"Everything was measured with {fixed}; of others these rows say nothing, so measure your own."


def _values(name: str, groups: Sequence[cells.Group]) -> set:
    """The values of a setting of groups, or of configurations."""
    return {group.settings[name] if name in group.settings else row[name] for group in groups for row in group.rows}


def _moves(name: str, evens: Sequence[BreakEven]) -> Iterator[str]:
    """One sentence where crossings that differ in one setting only lie surely apart: the first such set."""
    sets: dict[tuple, dict[Any, BreakEven]] = {}
    for even in evens:
        rest = tuple((key, value) for key, value in even.settings.items() if key != name)
        if even.status == "crossing":
            sets.setdefault(rest, {})[even.settings[name]] = even
    by_value = next((each for each in sets.values() if _lie_apart(list(each.values()))), None)
    if by_value:
        at = [(value, even) for value, even in by_value.items()]
        each = words.join(f"{even.place} with {_SETTINGS[name]} {value}" for value, even in sorted(at))
        line = words.line(at[0][1].settings | {"device": {"device": "cpu"}, "trainers": {"trainers": 1}}.get(name, {}))
        yield f"The break-even in time moves with {_SETTINGS[name]}: that of {line} is {each}."


def _lie_apart(evens: Sequence[BreakEven]) -> bool:
    """Whether the intervals of two crossings share nothing."""
    return any((one.high or 0.0) < (other.low or 0.0) for one in evens for other in evens)


def _lazy(groups: Sequence[cells.Group]) -> Iterator[str]:
    for group in groups:
        pairs = trained_worse(group.rows)
        for line in dict.fromkeys(words.line(lazy) for lazy, _ in pairs):
            worse = [(lazy, fair) for lazy, fair in pairs if words.line(lazy) == line]
            lazy, fair = worse[0]
            tried = [row for row in group.rows if row["status"] in cells.NUMBERED and words.line(row) == line]
            where = words.join(words.density(cells.density_of(row)) for row, _ in worse)
            where = "every density measured" if len(worse) == len(tried) else f"{where} density"
            yield (
                f"{line} trained a worse model than {words.line(fair)} at {where} ({_ends(lazy, fair)}), "
                f"so it does not count as a win{_in(group, groups)}."
            )


def _ends(row: cells.Row, fair: cells.Row) -> str:
    parts = []
    for name, column in (("loss", "loss_last"), (row["quality_name"] or "quality", "quality")):
        if row[column] is not None and fair[column] is not None:
            parts.append(f"{name} {words.number(row[column])} instead of {words.number(fair[column])}")
    return ", ".join(parts)


def _densified(rows: Iterable[cells.Row]) -> Iterator[str]:
    sizes_by_op: dict[tuple[str, str], list[int]] = {}
    for row in (row for row in rows if not is_held_apart(row)):  # whose batches are made dense, as their names say
        for one in row["densified"] or ():
            sizes_by_op.setdefault((words.line(row), str(one.get("op"))), []).append(one.get("bytes") or 0)
    for (line, op), sizes in sizes_by_op.items():
        yield f"{line} made a dense array in {op} ({words.bytes_(max(sizes))}), in {words.plural(len(sizes), 'cell')}."


def _prepared(rows: Iterable[cells.Row]) -> Iterator[str]:
    """Says where a step reuses prepared batches, and what preparing one costs."""
    costs: dict[str, float] = {}
    for row in rows:
        inside = sum(row[f"seconds_{phase}"] or 0.0 for phase in ("slice", "convert", "plan"))
        if not cells.is_dense(row) and row["status"] == "ok" and (row["seconds_prepare"] or 0.0) > 2 * inside:
            costs[words.line(row)] = max(costs.get(words.line(row), 0.0), row["seconds_prepare"] / row["seconds_step"])
    if costs:
        line, most = max(costs.items(), key=lambda item: item[1])
        steps = words.measured(most, most, most, words.number)
        yield (
            "Batches repeat, so cutting, converting and planning them is done once and is not in the time of a step; "
            f"it costs {steps} times as much as a step, a batch, at most ({line})."
        )


def _of(count: int, rows: Sequence[cells.Row]) -> str:
    return f"{count} of {words.plural(len(rows), 'cell')} {'was' if count == 1 else 'were'}"


def _in(group: cells.Group, groups: Sequence[cells.Group]) -> str:
    return f" ({group.label})" if len(groups) > 1 else ""
