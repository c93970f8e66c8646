"""Density after density in words: who wins in a group and by how much, or why nothing is decided."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from workbench.analysis import cells, words
from workbench.analysis.compare import NO_DENSE, REMEDY, Contest, contests
from workbench.analysis.grades import amount, grade, reserve

# what a measure is about, and how the better side is called: it "is 3 times faster", "needs 3 times less memory"
MEASURES = {"seconds_step": ("time", "is", "faster"), "bytes_peak": ("memory", "needs", "less memory")}


def densities(group: cells.Group, measure: str, several: bool) -> list[str]:
    """A sentence for each stretch of densities with the same winner; with `several` groups it begins with the group."""
    head = f"{group.label[:1].upper()}{group.label[1:]}: " if several else ""
    stretches = groupby(contests(group.rows, measure), key=_kind)
    return [head + _stretch(list(stretch), measure, bare=not head) for _, stretch in stretches]


def sentence(one: Contest, measure: str) -> str:
    """Tell who wins one contest, by how much and how sure, in the words of `measure`, a column of time or bytes."""
    return _stretch([one], measure, bare=True)


def _kind(one: Contest) -> tuple:
    lines = (cells.line_of(row) if row else None for row in (one.sparse, one.dense))
    return one.verdict, one.why, one.likely, one.ratio is None, *lines


def _stretch(stretch: Sequence[Contest], measure: str, bare: bool) -> str:
    first, where = stretch[0], _where(stretch)
    if first.ratio is None:
        text = f"{where} {_incomparable(first, measure)}"
    elif first.verdict in ("sparse", "dense"):
        text = f"{where} {_won(stretch, measure)}"
    else:
        text = f"{where} {_open(first, measure, several=len(stretch) > 1)}"
    return text if bare else text[0].lower() + text[1:]


def _where(stretch: Sequence[Contest]) -> str:
    densities = [one.density for one in stretch if one.density is not None]
    if not densities:
        return "At the density of the data"
    if len(densities) == 1:
        return f"At {words.density(densities[0])} density"
    return f"From {words.span(densities[0], densities[-1], words.density)} density"


def at(one: Contest) -> str:
    """Place of a contest, to go on a sentence; empty at the data's own density."""
    return f" at {words.density(one.density)}" if one.density else ""


def _won(stretch: Sequence[Contest], measure: str) -> str:
    first, last = stretch[0], stretch[-1]
    sparse, dense = map(words.line, first.known[:2])
    if first.verdict == "dense":
        return f"{dense} beats the best sparse, {sparse}: {_gains(first, last, measure)}."
    return f"{sparse} beats {dense}: {_gains(first, last, measure)}{_level(stretch)}."


def _gains(first: Contest, last: Contest, measure: str) -> str:
    """Tell what the winner takes instead of what the loser takes, and the ratio, at both ends of a stretch."""
    sparse, dense, _ = first.known
    values = [words.measured_quantity(row, measure) for row in (sparse, dense)]
    less, more = values if first.verdict == "sparse" else values[::-1]
    peak = "at its peak on the device" if sparse["device"] == "cuda" else "at its peak"
    what = "a step" if measure.startswith("seconds") else peak
    instead = f" instead of {more}" if more else ""
    lead = f"{less} {what}{instead}, " if less else ""
    gain = f"{lead}{amount(first)} {MEASURES[measure][2]}{reserve(first)}"
    return gain if first is last else f"{gain},{at(first)}; {amount(last)}{at(last)}"


def _level(stretch: Sequence[Contest]) -> str:
    """The configurations that are as good as the best over the whole stretch."""
    lines = [{words.line(row) for row in one.level} for one in stretch]
    level = sorted(set.intersection(*lines))
    if not level:
        return ""
    if len(level) == 1:
        return f"; {level[0]} cannot be told from it"
    return f"; {len(level)} other sparse configurations cannot be told from it"


def _open(one: Contest, measure: str, several: bool) -> str:
    """Tell, if neither surely wins, how likely a side is, and what both take."""
    sparse, dense, _ = one.known
    quantities = ((row, words.measured_quantity(row, measure) or "was not measured") for row in (sparse, dense))
    sides = " and ".join(
        f"{words.line(row)} {'' if said.startswith('was') else 'takes '}{said}" for row, said in quantities
    )
    here, there = (at(one), " there") if several and one.density else ("", "")
    todo = f" To decide it: {REMEDY[one.why]}." if one.why and not one.likely else ""
    return f"{grade(one, measure)}{here}: {sides}{there}.{todo}"


def _incomparable(one: Contest, measure: str) -> str:
    """Tell what is known where one side has no number."""
    if one.verdict == "sparse" and one.sparse and one.dense:
        takes = words.measured_quantity(one.sparse, measure)
        more = f"; {words.line(one.sparse)} takes {takes}" if takes else ""
        return f"only sparse runs: {did_not(one.dense)}{more}."
    if one.verdict == "dense" and one.sparse:
        return f"only dense runs: {did_not(one.sparse)}."
    if one.why == NO_DENSE:
        return f"there is no dense baseline, so nothing can be said; {REMEDY[NO_DENSE]}."
    missing = next((row for row in (one.dense, one.sparse) if row and row["status"] not in cells.NUMBERED), None)
    reason = did_not(missing) if missing else one.why
    return f"there is no comparison of {MEASURES[measure][0]}: {reason}. To decide it: {REMEDY[one.why]}."


def did_not(row: Mapping[str, Any]) -> str:
    """Reason why a row has no result."""
    need = f"needs {words.bytes_(row['bytes_needed'])}" if row["bytes_needed"] else f"ended as {row['status']}"
    limit = (
        f" and the limit is {words.bytes_(row['bytes_limit'])}" if row["bytes_needed"] and row["bytes_limit"] else ""
    )
    return f"{words.line(row)} {need}{limit}"
