"""Certainty of a verdict about time: what it rests on, its interval, the smallest difference that could be seen."""

from collections.abc import Sequence

from workbench.analysis import cells, words
from workbench.analysis.compare import BUSY, FEW, REMEDY, Contest
from workbench.measure.rounds import LOOKS

ALIKE = 1.15
"""Differences that could be seen are alike up to this factor."""


def certainty(group: cells.Group, contests: Sequence[Contest]) -> str:
    """The sentences that stand right under a verdict; `contests` are those in time of the group it is about."""
    left_out = _left_out(group)
    ratios = [one.ratio for one in contests if one.ratio is not None]
    if not ratios:
        return f"How sure: no round has a time of both sides.{left_out}"
    least, most = (end(ratio.rounds for ratio in ratios) for end in (min, max))
    rounds = words.plural(most, "round") if least == most else f"{least} to {most} rounds"
    of_runs = f"{rounds} of {words.plural(max(ratio.runs for ratio in ratios), 'run')}"
    if most < LOOKS[0]:
        why = FEW if not any(one.why == BUSY for one in contests) else BUSY
        return f"How sure: {of_runs}, and fewer than four decide nothing.{left_out} To decide it: {REMEDY[why]}."
    seen = visible(contests)
    return f"How sure: 95 % intervals from {of_runs}. {seen[:1].upper()}{seen[1:]}.{left_out}"


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


def _left_out(group: cells.Group) -> str:
    """Sentence on the share of trials that were left out as disturbed; "" where none was."""
    disturbed, timed = (sum(row[name] for row in group.rows) for name in ("rounds_disturbed", "rounds"))
    if not disturbed:
        return ""
    share = words.density(disturbed / (disturbed + timed), 2)
    return f" Other programs disturbed {share} of the trials, which are left out."
