"""The answer in plain words: whether to go sparse, with what, from which density on, and by how much."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pandas as pd

from workbench.analysis import by_device, cells, flags, words
from workbench.analysis.breakeven import BreakEven, breakeven
from workbench.analysis.compare import LEAST_SAMPLES, Contest, contests, too_few
from workbench.analysis.intervals import interval_of

# what a measure is about, and how the better side is called: it "is 3 times faster", "needs 3 times less memory"
MEASURES = {"seconds_step": ("time", "is", "faster"), "bytes_peak": ("memory", "needs", "less memory")}


@dataclass(frozen=True)
class Advice:
    """What the rows say, in sentences. `verdict` is the answer; the rest are its grounds, in the order to read them.

    `time` and `memory` go through the densities; `warnings` names what makes a win doubtful; `failures` counts the
    cells without a result; `would_change` says what the answer depends on.
    """

    verdict: str
    time: tuple[str, ...] = ()
    memory: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    would_change: tuple[str, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """All of it, verdict first."""
        return (self.verdict, *self.time, *self.memory, *self.warnings, *self.failures, *self.would_change)

    def __str__(self) -> str:
        return "\n".join(self.sentences)


def advise(frame: pd.DataFrame) -> Advice:
    """Advice from the rows of a frame, all groups in it; the verdict is about the largest group."""
    groups = cells.groups(frame)
    if not groups:
        return Advice("There is no answer yet: no rows were given.")
    evens = {measure: breakeven(frame, measure) for measure in MEASURES}
    several = len(groups) > 1
    sentences = {measure: [line for group in groups for line in _told(group, measure, several)] for measure in evens}
    return Advice(
        verdict=_verdict(groups, evens),
        time=(*sentences["seconds_step"], *by_device.sentences(groups)),
        memory=tuple(sentences["bytes_peak"]),
        warnings=tuple(flags.warnings(groups)),
        failures=tuple(flags.failures(groups)),
        would_change=tuple(flags.would_change(groups, evens["seconds_step"])),
    )


def _verdict(groups: Sequence[cells.Group], evens: Mapping[str, Sequence[BreakEven]]) -> str:
    group = groups[0]
    parts = [headline(group, measure, evens[measure])[1] for measure in MEASURES]
    which = f"cells {group.label}" if group.label.startswith(("on ", "with ")) else group.label
    where = f"This is for {which}, the largest of {len(groups)} groups measured." if len(groups) > 1 else ""
    return " ".join(filter(None, (*parts, where, flags.doubt(group.rows))))


def headline(group: cells.Group, measure: str, evens: Sequence[BreakEven]) -> tuple[str, str]:
    """What to do about one measure, short enough for the title of a chart, and in full; `evens` are of the measure."""
    name, verb, better = MEASURES[measure]
    comparisons = contests(group.rows, measure)
    won = [contest for contest in comparisons if contest.verdict == "sparse"]
    lost = [contest for contest in comparisons if contest.verdict == "dense"]
    if not won:
        return _without_win(comparisons, lost, measure)
    if all(contest.ratio is None for contest in won):
        does = f"it runs where {_did_not(won[0].dense)}"
        return f"Sparse runs where {_did_not(won[0].dense)}", f"For {name}, go sparse with {_line(won[0])}: {does}."
    first = next(contest for contest in won if contest.ratio is not None)
    most = f"{_line(first)} {verb} {first.ratio.gain()} {better} than dense{_at(first)}"
    if not lost:
        all_won = len(won) == len(comparisons)
        where = "every density measured" if all_won else f"{_listed(won)}; no other density is decided"
        most = f"For {name}, go sparse: {most}, and sparse wins at {where}{_among(comparisons) if all_won else ''}."
        return f"Sparse {verb} {better} than dense at {where}", most
    even = next((even for even in evens if _is_of(even, group, won[-1].sparse)), None)
    if even is None or even.status != "crossing":
        both = f"sparse wins at {_listed(won)}, dense at {_listed(lost)}"
        return f"Which {verb} {better} changes: {both}", f"For {name} it depends on the density: {both}."
    last = "" if _is_of(even, group, first.sparse) else f", and {_line(won[-1])} is the last to win"
    below = f"below {_crossing(even)}"
    return (
        f"Sparse {verb} {better} than dense {below}",
        f"For {name}, go sparse {below}: {most}{last}. Above that, stay dense.",
    )


def _without_win(comparisons: Sequence[Contest], lost: Sequence[Contest], measure: str) -> tuple[str, str]:
    name, verb, better = MEASURES[measure]
    if lost:
        most = f"no sparse configuration {verb} {better} than dense at any density measured{_among(comparisons)}"
        return f"Dense is never beaten in {name}{_among(comparisons)}", f"For {name}, stay dense: {most}."
    compared = [contest for contest in comparisons if contest.ratio]
    if compared:
        close = f"{_why_undecided(compared[0], measure)} at every density measured{_among(comparisons)}"
        return f"Undecided: {close}", f"For {name} it is undecided: {close}."
    none = "no density has a result from both sparse and dense"
    return f"No comparison: {none}", f"For {name} there is no answer yet: {none}."


def _why_undecided(contest: Contest, measure: str) -> str:
    few = too_few(contest.sparse, contest.dense, measure)
    return f"fewer than {LEAST_SAMPLES} samples decide nothing" if few else "the intervals overlap"


def _line(contest: Contest) -> str:
    return words.line(contest.sparse)


def _crossing(even: BreakEven) -> str:
    known = None not in (even.low, even.high) and words.density(even.low) != words.density(even.high)
    ends = f" (95 % interval {words.span(even.low, even.high, words.density)})" if known else ""
    return f"{words.density(even.density)} density{ends}"


def _among(comparisons: Sequence[Contest]) -> str:
    at = [contest.density for contest in comparisons if contest.density is not None]
    return f", {words.span(at[0], at[-1], words.density)}" if len(at) > 1 else ""


def _listed(comparisons: Sequence[Contest]) -> str:
    return words.join(words.density(contest.density) for contest in comparisons if contest.density)


def _at(contest: Contest) -> str:
    return f" at {words.density(contest.density)}" if contest.density else ""


def _is_of(even: BreakEven, group: cells.Group, row: Mapping[str, Any]) -> bool:
    return even.line == cells.line_of(row) and even.group == group.settings


def _told(group: cells.Group, measure: str, several: bool) -> list[str]:
    """A sentence for each stretch of densities with the same winner."""
    head = f"{group.label[:1].upper()}{group.label[1:]}: " if several else ""
    stretches = groupby(contests(group.rows, measure), key=_kind)
    return [head + _stretch(list(stretch), measure, bare=not head) for _, stretch in stretches]


def _kind(contest: Contest) -> tuple:
    line = cells.line_of(contest.sparse) if contest.sparse else None
    return contest.verdict, contest.ratio is None, line


def _stretch(stretch: Sequence[Contest], measure: str, bare: bool) -> str:
    first, last = stretch[0], stretch[-1]
    if first.ratio is None:
        text = f"{_where(stretch)} {_incomparable(first, measure)}"
    elif first.verdict == "undecided":
        sides = f"{_side(first.sparse, measure)}, {_side(first.dense, measure)}"
        more = f" (at {words.density(first.density)})" if len(stretch) > 1 else ""
        text = (
            f"{_where(stretch)} {MEASURES[measure][0]} is undecided: {sides}{more}; {_why_undecided(first, measure)}."
        )
    else:
        line = words.line(first.sparse)
        sides = f"{line} beats dense" if first.verdict == "sparse" else f"dense beats the best sparse, {line}"
        level = _level(stretch) if first.verdict == "sparse" else ""
        text = f"{_where(stretch)} {sides}: {_gains(first, last, measure)}{level}."
    return text if bare else text[0].lower() + text[1:]


def _where(stretch: Sequence[Contest]) -> str:
    at = [contest.density for contest in stretch if contest.density is not None]
    if not at:
        return "At the density of the data"
    if len(at) == 1:
        return f"At {words.density(at[0])} density"
    return f"From {words.span(at[0], at[-1], words.density)} density"


def _gains(first: Contest, last: Contest, measure: str) -> str:
    """What the winner takes instead of what the loser takes, and how many times less, at both ends of a stretch."""
    values = [words.quantity(row[measure], measure) for row in (first.sparse, first.dense)]
    less, more = values if first.verdict == "sparse" else values[::-1]
    peak = "at its peak on the device" if first.sparse["device"] == "cuda" else "at its peak"
    what = "a step" if measure.startswith("seconds") else peak
    gain = f"{less} {what} instead of {more}, {first.ratio.gain()} {MEASURES[measure][2]}"
    return gain if first is last else f"{gain},{_at(first)}; {last.ratio.gain()}{_at(last)}"


def _level(stretch: Sequence[Contest]) -> str:
    """The configurations that are as good as the best over the whole stretch."""
    lines = [{words.line(row) for row in contest.level} for contest in stretch]
    level = sorted(set.intersection(*lines))
    if not level:
        return ""
    if len(level) == 1:
        return f"; {level[0]} is level with it"
    return f"; {len(level)} other sparse configurations are level with it"


def _side(row: Mapping[str, Any], measure: str) -> str:
    known = interval_of(row, measure)
    ends = words.span(known.low, known.high, lambda value: words.quantity(value, measure))
    return f"{words.line(row)} takes {words.quantity(known.value, measure)} ({known.why or ends})"


def _incomparable(contest: Contest, measure: str) -> str:
    """What is known where one side has no number."""
    sparse, dense = contest.sparse, contest.dense
    if contest.verdict == "sparse":
        takes = words.quantity(sparse[measure], measure)
        return f"only sparse runs: {_did_not(dense)}; {words.line(sparse)} takes {takes}."
    if contest.verdict == "dense":
        return f"only dense runs: {_did_not(sparse)}."
    if dense is None:
        return "there is no dense baseline, so nothing can be said; measure dense for the same cells."
    missing = next((row for row in (dense, sparse) if row is not None and row["status"] != "ok"), None)
    return f"there is no comparison: {_did_not(missing) if missing else 'no sparse configuration was measured'}."


def _did_not(row: Mapping[str, Any]) -> str:
    need = f"needs {words.bytes_(row['bytes_needed'])}" if row["bytes_needed"] else f"ended as {row['status']}"
    limit = (
        f" and the limit is {words.bytes_(row['bytes_limit'])}" if row["bytes_needed"] and row["bytes_limit"] else ""
    )
    return f"{words.line(row)} {need}{limit}"
