"""The answer in plain words: whether to go sparse, with what, from which density on, and by how much."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from workbench import settings
from workbench.analysis import best_of_all, by_place, cells, doubts, execution, machines, told, words
from workbench.analysis.best_of_all import is_held_apart
from workbench.analysis.breakeven import BreakEven, breakeven
from workbench.analysis.compare import REMEDY, Contest, contests, trained_worse
from workbench.analysis.grades import amount, reserve
from workbench.analysis.sentences import baseline, left_open, where
from workbench.analysis.told import MEASURES

__all__ = ["MEASURES", "Advice", "advise", "headline"]


# Flags that an honest answer adds: doubtful wins, cells without a result, and what the answer depends on.


NOISY = 1.5
"""Where no smaller factor than this can be told, a warning says so."""
_SETTINGS = {setting.name: setting.noun for setting in settings.SETTINGS if setting.noun} | {"machine": "machine"}


def warnings(groups: Sequence[cells.Group]) -> Iterator[str]:
    """Sentences on lazy updates that trained worse, densified operations, disturbed, noisy and lost rounds."""
    rows = [row for group in groups for row in group.rows]
    yield from _unequal(groups)
    yield from _lazy(groups)
    yield from _densified(rows)
    yield from _prepared(rows)
    yield from _disturbances(rows)
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


def _disturbances(rows: Sequence[cells.Row]) -> Iterator[str]:
    """Share of the trials beside which other programs ran, which count for less."""
    disturbed = sum(row["rounds_disturbed"] for row in rows)
    if disturbed:
        trials = words.plural(disturbed + sum(row["rounds"] for row in rows), "trial")
        yield f"{disturbed} of {trials} ran beside other programs; they count for less, so factors are known less well."


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
    kinds = Counter(kind for each in met for kind in each if kind != doubts.OTHERS)  # those are told by `_disturbances`
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


# Certainty of a verdict about time: what it rests on, its interval, the smallest difference that could be seen.


ALIKE = 1.15
"""Differences that could be seen are alike up to this factor."""


def certainty(group: cells.Group, contests: Sequence[Contest]) -> str:
    """The sentences that stand right under a verdict; `contests` are those in time of the group it is about."""
    disturbed = _disturbed(group)
    ratios = [one.ratio for one in contests if one.ratio is not None]
    if not ratios:
        return f"How sure: no run has a time of both sides.{disturbed}"
    least, most = (end(ratio.rounds for ratio in ratios) for end in (min, max))
    rounds = words.plural(most, "round") if least == most else f"{least} to {most} rounds"
    of_runs = f"{rounds} of {words.plural(max(ratio.runs for ratio in ratios), 'run')}"
    seen = visible(contests)
    return f"How sure: 95 % intervals from {of_runs}. {seen[:1].upper()}{seen[1:]}.{disturbed}"


def visible(contests: Sequence[Contest]) -> str:
    """The smallest difference between sparse and dense that the rounds of these contests could have told."""
    seen = sorted((one for one in contests if one.visible), key=lambda one: one.visible or 0.0)
    if not seen:
        return "no difference could be told"
    usual = seen[len(seen) // 2].visible or 1.0
    worse = [one for one in seen if (one.visible or 0.0) > ALIKE * usual]
    where = "" if len(contests) == 1 else " at every density" if len(seen) == len(contests) else " at most densities"
    text = f"differences from {words.number(usual, 2)} times on could be told{where}"
    if not worse:
        return text
    far = f"{words.number(worse[-1].visible or 0.0, 2)} times at {words.densities(worse[-1:], 2)}"
    return f"{text.removesuffix(where)} at most densities, from {far}"


def _disturbed(group: cells.Group) -> str:
    """Sentence on the share of trials beside which other programs ran; "" if there was none."""
    disturbed, timed = (sum(row[name] for row in group.rows) for name in ("rounds_disturbed", "rounds"))
    if not disturbed:
        return ""
    share = words.density(disturbed / (disturbed + timed), 2)
    return f" Other programs ran beside {share} of the trials, which count for less."


DIGITS = 2
"""Significant digits of numbers in a verdict: tables have more."""


@dataclass(frozen=True)
class Advice:
    """Conclusions from the rows, in sentences. `verdict` is the answer; the rest are its grounds, in reading order.

    `certainty` says how sure the verdict is; `time` and `memory` go through the densities; `warnings` names what makes
    a win doubtful; `failures` counts the cells without a result; `would_change` says what the answer depends on.
    """

    verdict: str
    certainty: str = ""
    time: tuple[str, ...] = ()
    memory: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    would_change: tuple[str, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """All of it, verdict first, how sure it is second."""
        grounds = (*self.time, *self.memory, *self.warnings, *self.failures, *self.would_change)
        return (*filter(None, (self.verdict, self.certainty)), *grounds)

    def __str__(self) -> str:
        return "\n".join(self.sentences)


def advise(frame: pd.DataFrame) -> Advice:
    """Advice from the rows of a frame, all groups in it; the verdict is about the largest group."""
    groups = cells.groups(frame)
    if not groups:
        return Advice("There is no answer yet: no rows were given.")
    evens = {measure: breakeven(frame, measure) for measure in MEASURES}
    several = len(groups) > 1
    sentences = {
        measure: [line for group in groups for line in told.densities(group, measure, several)] for measure in evens
    }
    return Advice(
        verdict=_verdict(groups, evens),
        certainty=certainty(groups[0], contests(groups[0].rows, "seconds_step")),
        time=(*sentences["seconds_step"], *by_place.sentences(groups)),
        memory=(*sentences["bytes_peak"], *best_of_all.of_holding(groups), *best_of_all.sentences(groups)),
        warnings=tuple(warnings(groups)),
        failures=tuple(failures(groups)),
        would_change=(*would_change(groups, evens["seconds_step"]), *machines.sentences(frame)),
    )


def _verdict(groups: Sequence[cells.Group], evens: Mapping[str, Sequence[BreakEven]]) -> str:
    group = groups[0]
    parts = [headline(group, measure, evens[measure])[1] for measure in MEASURES]
    which = f"cells {group.label}" if group.label.startswith(("on ", "with ")) else group.label
    of_several = f"This is for {which}, the largest of {len(groups)} groups measured." if len(groups) > 1 else ""
    return " ".join(filter(None, (*parts, of_several)))


def headline(group: cells.Group, measure: str, evens: Sequence[BreakEven]) -> tuple[str, str]:
    """Advice about one measure, short enough for the title of a chart, and in full; `evens` are of the measure."""
    compared = contests(group.rows, measure)
    won = [one for one in compared if one.verdict == "sparse"]
    lost = [one for one in compared if one.verdict == "dense"]
    if not won:
        return _without_win(compared, lost, measure)
    first = next((one for one in won if one.ratio is not None), None)
    if first is None:
        return _by_fitting(won[0], compared, measure)
    if not lost:
        return _throughout(first, won, compared, measure)
    even = next((even for even in evens if _is_of(even, group, won[-1])), None)
    if even is None or even.status != "crossing" or won[-1].density >= lost[0].density:
        name, verb, better = MEASURES[measure]
        both = f"sparse wins {where(won, compared, DIGITS)}, dense {where(lost, compared, DIGITS)}"
        return f"Which {verb} {better} changes: {both}", f"For {name} it depends on the density: {both}."
    return _up_to(even, "" if _is_of(even, group, first) else words.line(won[-1].sparse), compared, measure)


def _by_fitting(first: Contest, compared: Sequence[Contest], measure: str) -> tuple[str, str]:
    """Headline where sparse wins because dense did not run."""
    does = f"runs where {told.did_not(first.dense)}"
    full = f"For {MEASURES[measure][0]}, go sparse with {words.line(first.sparse)}: it {does}."
    return f"Sparse {does}", f"{full}{_open(compared)}"


def _throughout(first: Contest, won: Sequence[Contest], compared: Sequence[Contest], measure: str) -> tuple[str, str]:
    """Headline where sparse wins at some densities and dense at none."""
    name, verb, better = MEASURES[measure]
    at = where(won, compared, DIGITS)
    gain = _gain(first, better, is_alone=len(won) == 1)
    return f"Sparse {verb} {better} than dense {at}", f"For {name}, go sparse {at}: {gain}.{_open(compared)}"


def _up_to(even: BreakEven, of: str, compared: Sequence[Contest], measure: str) -> tuple[str, str]:
    """Headline where sparse wins below a break-even; `of` is its configuration, "" for the one named first."""
    name, verb, better = MEASURES[measure]
    won = [one for one in compared if one.verdict == "sparse"]
    up_to = words.density(won[-1].density or 0.0, DIGITS)
    from_ = words.density(next(one.density for one in compared if one.verdict == "dense") or 0.0, DIGITS)
    first = next(one for one in won if one.ratio is not None)
    lost = [one for one in compared if one.verdict == "dense"]
    full = (
        f"For {name}, go sparse up to {up_to} density: {_gain(first, better, is_alone=False)}. "
        f"From {from_} on, {_stay(lost)}. The break-even is {even.place}{f', that of {of}' if of else ''}."
    )
    return f"Sparse {verb} {better} than dense up to {up_to}; the break-even is {even.place}", full + _open(compared)


def _gain(first: Contest, better: str, is_alone: bool) -> str:
    """Factor by which sparse wins at its lowest density, and its configuration; without the density if `is_alone`."""
    sparse, dense, _ = first.known
    at = "" if is_alone or not first.density else f" at {words.density(first.density, DIGITS)}"
    return f"{amount(first)} {better} than {words.line(dense)}{at}{reserve(first)}, with {words.line(sparse)}"


def _stay(lost: Sequence[Contest]) -> str:
    """Advice to train dense, with the name of the dense configuration that wins unless it is the usual one."""
    name = baseline(lost)
    return "stay dense" if name in ("dense", "the best dense") else f"stay with {name}"


def _open(compared: Sequence[Contest]) -> str:
    """Sentences that go on a headline: what is undecided and why, and what is level. "" where all is decided."""
    clauses = (f"{what}: {why}" if why else what for what, why in left_open(compared, DIGITS))
    return "".join(f" {clause[0].upper()}{clause[1:]}." for clause in clauses)


def _without_win(compared: Sequence[Contest], lost: Sequence[Contest], measure: str) -> tuple[str, str]:
    name, verb, better = MEASURES[measure]
    if lost:
        at = where(lost, compared, DIGITS)
        most = f"dense wins {at}"
        if len(lost) == len(compared):
            most = f"no sparse configuration {verb} {better} than dense {at.replace('at every', 'at any')}"
        return f"Dense wins in {name} {at}", f"For {name}, {_stay(lost)}: {most}.{_open(compared)}"
    level = [one for one in compared if one.verdict == "level"]
    if level and len(level) == len(compared):
        same = f"within 10 %, {where(level, compared, DIGITS)}"
        return f"Sparse and dense are level in {name}", f"For {name} sparse and dense are level, {same}."
    reasons = list(dict.fromkeys(one.why for one in compared if one.why)) or ["nothing was compared"]
    todo = "".join(f" To decide it: {REMEDY[why]}." for why in reasons[:1] if why in REMEDY)
    if not any(one.ratio for one in compared):
        none = f"no density has a result from both sparse and dense ({reasons[0]})"
        return f"No comparison: {reasons[0]}", f"For {name} there is no answer yet: {none}.{todo}"
    text = _open(compared).removeprefix(" Undecided ")
    return f"Undecided in {name}: {reasons[0]}", f"For {name} it is undecided {text}{todo}"


def _is_of(even: BreakEven, group: cells.Group, one: Contest) -> bool:
    return one.sparse is not None and even.line == cells.line_of(one.sparse) and even.group == group.settings
