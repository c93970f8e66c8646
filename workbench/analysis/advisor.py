"""The answer in plain words: whether to go sparse, with what, from which density on, and by how much."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from workbench.analysis import by_place, cells, flags, machines, told, words
from workbench.analysis.breakeven import BreakEven, breakeven
from workbench.analysis.certainty import certainty
from workbench.analysis.compare import BUSY, REMEDY, Contest, contests
from workbench.analysis.sentences import unsettled
from workbench.analysis.told import MEASURES

__all__ = ["MEASURES", "Advice", "advise", "headline"]


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
        memory=tuple(sentences["bytes_peak"]),
        warnings=tuple(flags.warnings(groups)),
        failures=tuple(flags.failures(groups)),
        would_change=(*flags.would_change(groups, evens["seconds_step"]), *machines.sentences(frame)),
    )


def _verdict(groups: Sequence[cells.Group], evens: Mapping[str, Sequence[BreakEven]]) -> str:
    group = groups[0]
    parts = [headline(group, measure, evens[measure])[1] for measure in MEASURES]
    which = f"cells {group.label}" if group.label.startswith(("on ", "with ")) else group.label
    where = f"This is for {which}, the largest of {len(groups)} groups measured." if len(groups) > 1 else ""
    return " ".join(filter(None, (*parts, where)))


def headline(group: cells.Group, measure: str, evens: Sequence[BreakEven]) -> tuple[str, str]:
    """Advice about one measure, short enough for the title of a chart, and in full; `evens` are of the measure."""
    name, verb, better = MEASURES[measure]
    compared = contests(group.rows, measure)
    won = [one for one in compared if one.verdict == "sparse"]
    lost = [one for one in compared if one.verdict == "dense"]
    if not won:
        return _without_win(compared, lost, measure)
    first = next((one for one in won if one.ratio is not None), None)
    if first is None or first.ratio is None:
        does = f"it runs where {told.did_not(won[0].dense)}"
        full = f"For {name}, go sparse with {words.line(won[0].sparse)}: {does}{unsettled(compared)}."
        return f"Sparse runs where {told.did_not(won[0].dense)}", full
    gain = f"{verb} {words.gain(first.ratio)} {better} than {words.line(first.dense)}"
    most = f"{words.line(first.sparse)} {gain}{told.at(first)}"
    if not lost:
        where = _everywhere(won, compared)
        full = f"For {name}, go sparse: {most}, and sparse wins at {where}{_among(won, compared)}{unsettled(compared)}."
        return f"Sparse {verb} {better} than dense at {where}", full
    even = next((even for even in evens if _is_of(even, group, won[-1])), None)
    if even is None or even.status != "crossing" or won[-1].density >= lost[0].density:
        both = f"sparse wins at {words.densities(won)}, dense at {words.densities(lost)}"
        return f"Which {verb} {better} changes: {both}", f"For {name} it depends on the density: {both}."
    last = "" if _is_of(even, group, first) else f", and {words.line(won[-1].sparse)} is the last to win"
    up_to, from_ = words.density(won[-1].density), words.density(lost[0].density)
    full = (
        f"For {name}, go sparse up to {up_to} density: {most}{last}. From {from_} on, stay dense. "
        f"The break-even is {even.place}{unsettled(compared)}."
    )
    return f"Sparse {verb} {better} than dense up to {up_to}; the break-even is {even.place}", full


def _without_win(compared: Sequence[Contest], lost: Sequence[Contest], measure: str) -> tuple[str, str]:
    name, verb, better = MEASURES[measure]
    if lost:
        where = _everywhere(lost, compared)
        most = f"dense wins at {where}{_among(lost, compared)}{unsettled(compared)}"
        if len(lost) == len(compared):
            most = f"no sparse configuration {verb} {better} than dense at {where}{_among(lost, compared)}"
        return f"Dense wins in {name} at {where}", f"For {name}, stay dense: {most}."
    level = [one for one in compared if one.verdict == "level"]
    if level and len(level) == len(compared):
        same = f"within 10 % at {_everywhere(level, compared)}{_among(level, compared)}"
        return f"Sparse and dense are level in {name}", f"For {name} sparse and dense are level, {same}."
    reasons = list(dict.fromkeys(one.why for one in compared if one.why)) or ["nothing was compared"]
    todo = "".join(f" To decide it: {REMEDY[why]}." for why in reasons[:1] if why in REMEDY)
    if not any(one.ratio for one in compared) and BUSY not in reasons:
        none = f"no density has a result from both sparse and dense ({reasons[0]})"
        return f"No comparison: {reasons[0]}", f"For {name} there is no answer yet: {none}.{todo}"
    undecided = unsettled(compared).removeprefix("; undecided ")
    return f"Undecided in {name}: {reasons[0]}", f"For {name} it is undecided {undecided}.{todo}"


def _everywhere(some: Sequence[Contest], compared: Sequence[Contest]) -> str:
    return "every density measured" if len(some) == len(compared) else words.densities(some)


def _among(some: Sequence[Contest], compared: Sequence[Contest]) -> str:
    """The range of the densities where these are all there are."""
    at = [one.density for one in compared if one.density is not None]
    all_of_several = len(some) == len(compared) and len(at) > 1
    return f", {words.span(at[0], at[-1], words.density)}" if all_of_several else ""


def _is_of(even: BreakEven, group: cells.Group, one: Contest) -> bool:
    return one.sparse is not None and even.line == cells.line_of(one.sparse) and even.group == group.settings
