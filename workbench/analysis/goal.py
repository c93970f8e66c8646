"""A goal in words, what was measured, and by how much it was missed."""

from collections.abc import Iterable
from typing import NamedTuple

from workbench.analysis import words
from workbench.analysis.bench import Ratio, geometric_mean


class Goal(NamedTuple):
    """A goal in words, what was measured, and whether it is met; None where no row says."""

    what: str
    wanted: str
    measured: str
    met: bool | None


def at_least(what: str, measured: Iterable[Ratio], wanted: float) -> Goal:
    """The goal that the geometric mean of ratios is at least `wanted`."""
    ratios = list(measured)
    mean = geometric_mean(ratio.value for ratio in ratios)
    if mean is None:
        return Goal(what, f"≥ {wanted:g} x", "not measured", None)
    over = f"{words.number(mean)} x over {words.plural(len(ratios), 'cell')}"
    return Goal(what, f"≥ {wanted:g} x", over + _missed_by(mean, wanted), mean >= wanted)


def _missed_by(mean: float, least: float) -> str:
    return "" if mean >= least else f", {words.number(100 * (1 - mean / least))} % short"
