"""What an honest answer adds: doubtful wins, cells without a result, and what the answer depends on."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from workbench import settings
from workbench.analysis import cells, words
from workbench.analysis.compare import LEAST_SAMPLES, trained_worse
from workbench.analysis.intervals import interval_of

BUSY = 0.1  # other programs on more of the cores than this hold up parallel code
DOUBTFUL = 0.2  # with more than this share of the cells so disturbed, the verdict says so itself
NOISY = 0.1  # an interval wider than this share of its median says little about differences of that size
_SETTINGS = {setting.name: setting.noun for setting in settings.SETTINGS if setting.noun} | {"machine": "machine"}


def warnings(groups: Sequence[cells.Group]) -> Iterator[str]:
    """Sentences on lazy updates that trained worse, densified operations, noisy and lost measurements."""
    rows = [row for group in groups for row in group.rows]
    yield from _lazy(groups)
    yield from _densified(rows)
    yield from _prepared(rows)
    ok = [row for row in rows if row["status"] == "ok"]
    noisy = sum(_is_noisy(row) for row in ok)
    if noisy:
        yield f"{_of(noisy, ok)} timed with an interval wider than {words.number(100 * NOISY)} % of the median."
    busy = disturbed(ok)
    if busy:
        most = words.number(100 * max(row["busy_others"] for row in busy))
        yield (
            f"{_of(len(busy), ok)} timed while other programs took up to {most} % of the cores; "
            "times there are too long, those on several threads most of all."
        )
    few = sum(len(row["samples"] or ()) < LEAST_SAMPLES for row in ok)
    if few:
        yield f"{_of(few, ok)} timed with fewer than {LEAST_SAMPLES} samples; those decide nothing about time."
    if any(row["rounds"] == 1 and not cells.is_dense(row) for row in ok):
        yield "Memory was measured once in some cells, so differences in it have no interval there."
    lost = Counter(name for row in rows for name in row["not_finite"] or ())
    if lost:
        counts = words.join(f"{name} in {words.plural(count, 'cell')}" for name, count in lost.items())
        yield f"Values that were not finite are missing: {counts}."


def disturbed(rows: Iterable[cells.Row]) -> list[cells.Row]:
    """The rows with a result that were timed while other programs were at work."""
    return [row for row in rows if row["status"] == "ok" and (row["busy_others"] or 0.0) > BUSY]


def doubt(rows: Sequence[cells.Row]) -> str:
    """A sentence to stand beside a verdict that rests on disturbed rows, or nothing."""
    ok, busy = sum(row["status"] == "ok" for row in rows), len(disturbed(rows))
    if busy <= DOUBTFUL * ok:
        return ""
    return f"Doubtful: other programs were at work beside {busy} of {words.plural(ok, 'cell')}; measure again alone."


def failures(groups: Sequence[cells.Group]) -> list[str]:
    """Cells without a result, counted by status and reason; empty where every cell has one."""
    rows = [row for group in groups for row in group.rows]
    counts = cells.failures(rows)
    retried = sum(row["rounds_failed"] for row in rows if row["status"] == "ok")
    notes = (
        [f"{words.plural(retried, 'round')} failed in cells that have a result from other rounds."] if retried else []
    )
    if not counts:
        return notes
    each = "; ".join(_reason(status, rows) for status in dict.fromkeys(status for status, _ in counts))
    return [f"{counts.total()} of {words.plural(len(rows), 'cell')} have no result: {each}.", *notes]


def _reason(status: str, rows: Sequence[cells.Row]) -> str:
    """A status with its count and its reason, or one of its reasons."""
    reasons = [row["reason"] or "no reason given" for row in rows if row["status"] == status]
    example = "" if len(set(reasons)) == 1 else "for example: "
    return f"{len(reasons)} {status} ({example}{reasons[0].rstrip('.')})"


def would_change(groups: Sequence[cells.Group], evens: Sequence[Any]) -> Iterator[str]:
    """How the break-even in time moves with each setting that was varied, and which were not."""
    varied = [name for name in _SETTINGS if len({group.settings[name] for group in groups}) > 1]
    for name in varied:
        yield from _moves(name, evens)
    fixed = cells.describe(groups[0].settings, [name for name in _SETTINGS if name not in varied and name != "machine"])
    yield f"Everything was measured with {fixed}; the break-even moves with these, so measure your own."


def _moves(name: str, evens: Sequence[Any]) -> Iterator[str]:
    """One sentence where break-evens differ in one setting only: the first such set of each name."""
    sets: dict[tuple, dict[Any, Any]] = {}
    for even in evens:
        rest = tuple((key, value) for key, value in even.group.items() if key != name)
        sets.setdefault((*even.line.values(), rest), {})[even.group[name]] = even
    several = (each for each in sets.values() if sum(even.density is not None for even in each.values()) > 1)
    by_value = next(several, None)
    if by_value:
        at = [(value, even) for value, even in by_value.items() if even.density is not None]
        each = words.join(f"{words.density(even.density)} at {_SETTINGS[name]} {value}" for value, even in sorted(at))
        line = words.line(at[0][1].settings | ({"device": "cpu"} if name == "device" else {}))
        yield f"The break-even in time moves with {_SETTINGS[name]}: {line} crosses at {each}."


def _lazy(groups: Sequence[cells.Group]) -> Iterator[str]:
    for group in groups:
        pairs = trained_worse(group.rows)
        for line in dict.fromkeys(words.line(lazy) for lazy, _ in pairs):
            worse = [(lazy, fair) for lazy, fair in pairs if words.line(lazy) == line]
            lazy, fair = worse[0]
            tried = [row for row in group.rows if row["status"] == "ok" and words.line(row) == line]
            where = words.join(words.density(cells.density_of(row)) for row, _ in worse)
            where = "every density measured" if len(worse) == len(tried) else f"{where} density"
            yield (
                f"{line} trained a worse model than {words.line(fair)} at {where} ({_ends(lazy, fair)}), "
                f"so its time does not count as a win{_in(group, groups)}."
            )


def _ends(row: cells.Row, fair: cells.Row) -> str:
    parts = []
    for name, column in (("loss", "loss_last"), (row["quality_name"] or "quality", "quality")):
        if row[column] is not None and fair[column] is not None:
            parts.append(f"{name} {words.number(row[column])} instead of {words.number(fair[column])}")
    return ", ".join(parts)


def _densified(rows: Iterable[cells.Row]) -> Iterator[str]:
    sizes_by_op: dict[tuple[str, str], list[int]] = {}
    for row in rows:
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
        yield (
            "Batches repeat, so cutting, converting and planning them is done once and is not in the time of a step; "
            f"it costs as much as {words.number(most)} steps a batch at most ({line})."
        )


def _is_noisy(row: cells.Row) -> bool:
    time = interval_of(row, "seconds_step")
    return time is not None and time.high - time.low > NOISY * time.value


def _of(count: int, rows: Sequence[cells.Row]) -> str:
    return f"{count} of {words.plural(len(rows), 'cell')} with a result {'was' if count == 1 else 'were'}"


def _in(group: cells.Group, groups: Sequence[cells.Group]) -> str:
    return f" ({group.label})" if len(groups) > 1 else ""
