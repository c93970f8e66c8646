"""The answer in plain words: whether to go sparse, with what, from which density on, and by how much."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from workbench.analysis import best_of_all, by_place, cells, flags, machines, told, words
from workbench.analysis.breakeven import BreakEven, breakeven
from workbench.analysis.certainty import certainty
from workbench.analysis.compare import BUSY, REMEDY, Contest, contests
from workbench.analysis.sentences import baseline, left_open, where
from workbench.analysis.told import MEASURES

__all__ = ["MEASURES", "Advice", "advise", "headline"]

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
        warnings=tuple(flags.warnings(groups)),
        failures=tuple(flags.failures(groups)),
        would_change=(*flags.would_change(groups, evens["seconds_step"]), *machines.sentences(frame)),
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
    sparse, dense, ratio = first.known
    at = "" if is_alone or not first.density else f" at {words.density(first.density, DIGITS)}"
    return f"{words.gain(ratio)} {better} than {words.line(dense)}{at}, with {words.line(sparse)}"


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
    if not any(one.ratio for one in compared) and BUSY not in reasons:
        none = f"no density has a result from both sparse and dense ({reasons[0]})"
        return f"No comparison: {reasons[0]}", f"For {name} there is no answer yet: {none}.{todo}"
    text = _open(compared).removeprefix(" Undecided ")
    return f"Undecided in {name}: {reasons[0]}", f"For {name} it is undecided {text}{todo}"


def _is_of(even: BreakEven, group: cells.Group, one: Contest) -> bool:
    return one.sparse is not None and even.line == cells.line_of(one.sparse) and even.group == group.settings
