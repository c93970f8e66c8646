"""Two runs of the same configurations: which became slower or faster, and what could have been detected.

Rounds of two runs are no neighbours: the whole machine may be slower during one of them. What configurations share of
that is the drift, and is taken out first (`analysis.drift`). The logarithm of after / before of a configuration is
then a difference of means of rounds; its variance is s^2 (1/n + 1/m + 2/SHARED), s the deviation of rounds within a
run, and that of the drift. Four rounds know little of their deviation, so s^2 is the configuration's own and the median
configuration's, weighted by degrees of freedom, the latter as PRIOR (Smyth 2004, Stat. Appl. Genet. Mol. Biol. 3, 3).
The tails of the intervals are divided among all configurations, so that a build compared with itself rarely has a
slower one anywhere.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd

from workbench.analysis import configurations, formatting
from workbench.analysis.intervals import ONCE, interval_of, values_of
from workbench.analysis.pairs import CompareError, Pair, Pairs, pair_runs
from workbench.measure.posterior import EQUIVALENCE_MARGIN, MIN_LOG_SD, Ratio
from workbench.measure.rounds import BETWEEN_RUN_VARIANCE_RATIO, INTERIM_ANALYSES, student_t

# Drift: how much slower the whole machine was in one run than in another, taken out before they are compared.
#
# Sentinels are, the first that there are: configurations whose code, versions and settings are the same in both runs;
# the
# fixed work that every trial times in addition to its own (`seconds_reference`); none, and then DRIFT is allowed for in
# every interval.


LEAST = 4
"""Configurations of the same code whose median is believed."""
DRIFT = 0.12
"""Standard deviation of the logarithm by which whole runs of one machine differ, where nothing tells by how much.

Medians over the same configurations of 52 pairs of runs of one quiet two-core machine, minutes to hours apart: 0.11;
most 0.27.
"""
UNLIKE = 0.05
"""Share by which a configuration slows down more or less than the fixed work next to it."""
NORMAL = 1.4826
"""Standard deviation of a normal distribution by its median absolute deviation."""


class Difference(Protocol):
    """The logarithm of after / before of a pair."""

    @property
    def pair(self) -> Pair:
        """The configuration with its records in both runs that are compared."""

    @property
    def value(self) -> float:
        """Natural logarithm of seconds after / seconds before."""


class Drift(NamedTuple):
    """The logarithm of after / before that configurations share, its standard deviation, and which sentinels tell it.

    `kind` is configurations, work, none or machines (of two machines nothing is taken out); `sentinels` is how many.
    """

    value: float
    deviation: float
    kind: str
    sentinels: int = 0

    @property
    def factor(self) -> float:
        """Time of the whole machine in the second run over that in the first, exp(`value`); 1.2 is 20 % slower."""
        return math.exp(self.value)


def drift_of(steps: Sequence[Difference], pairs: Pairs) -> Drift:
    """Return the drift between two runs: the log of after / before that all configurations have in common.

    `steps` are the differences in the time of a step. Estimated by the median over configurations of unchanged code
    (kind "cells", at least 4), else by the fixed reference work ("work"). Otherwise 0 with a standard deviation of
    0.12: "machines" for two machines, "none" without evidence.
    """
    if not pairs.is_one_machine:
        return Drift(0.0, DRIFT, "machines")
    same = np.array([step.value for step in steps if step.pair.is_same_code])
    if same.size >= LEAST:
        middle = float(np.median(same))
        scatter = max(NORMAL * float(np.median(np.abs(same - middle))), MIN_LOG_SD)
        return Drift(middle, math.sqrt(math.pi / 2 / same.size) * scatter, "cells", same.size)
    works = [_work([pair.before for pair in pairs.timed]), _work([pair.after for pair in pairs.timed])]
    if all(work.size for work in works):
        error = math.sqrt(sum(float(work.var()) / work.size for work in works))
        value = float(np.median(works[1]) - np.median(works[0]))
        return Drift(value, math.hypot(error, UNLIKE), "work", sum(work.size for work in works))
    return Drift(0.0, DRIFT, "none")


def _work(rows: Iterable[Any]) -> np.ndarray:
    """Return the natural logs of `seconds_reference` (fixed reference work) of all rounds of `rows`, float64 [rounds].

    Values of 0 or less and disturbed rounds are left out.
    """
    seconds = (value for row in rows for value in values_of(row, "seconds_reference").values())
    return np.log([value for value in seconds if value > 0])


Record = Mapping[str, Any]
VERDICTS = {
    "same": "significantly within the factor that is allowed",
    "faster": "significantly less time",
    "slower": "significantly more time",
    "ambiguous": "the rounds tell neither",
}
ALPHA_ONE_SIDED = 0.0025
"""Probability that a build compared with itself has a slower configuration anywhere."""
PRIOR = 8
"""Degrees of freedom that the deviation of the median configuration counts for in addition to a configuration's own."""


class Change(NamedTuple):
    """Ratio after / before of the configuration `name`; `verdict` is a key of VERDICTS."""

    name: str
    ratio: Ratio
    verdict: str
    pair: Pair | None = None

    @property
    def minimum_detectable_ratio(self) -> float:
        """Smallest slow-down factor that these rounds could have detected; inf with fewer than four rounds."""
        return self.ratio.minimum_detectable_ratio if self.ratio.rounds >= INTERIM_ANALYSES[0] else math.inf


@dataclass(frozen=True)
class Changes:
    """Differences between two runs.

    `drift` is the common factor that was divided out; changes of time are listed by configuration, those of
    peak memory in `memory` (more memory counts as "slower"); `pairs` holds the compared records and the lost ones.
    """

    drift: Drift
    configurations: tuple[Change, ...]
    memory: tuple[Change, ...]
    pairs: Pairs

    @property
    def is_worse(self) -> bool:
        """Whether anything is significantly slower, needs significantly more memory, or has lost its result."""
        every = (*self.configurations, *self.memory)
        return bool(self.pairs.lost) or any(one.verdict == "slower" for one in every)


class _Difference(NamedTuple):
    """The log ratio of one measure of a pair: its value, `share` times s^2 is its variance; squares of the rounds."""

    pair: Pair
    value: float
    share: float
    squares: float
    freedom: int
    rounds: int


def compare_runs(before: pd.DataFrame, after: pd.DataFrame, within: float = EQUIVALENCE_MARGIN) -> Changes:
    """Compare two frames of trial records, `before` and `after`, pooled per configuration; return the `Changes`.

    `within` is the factor up to which two times count as the same. Raises CompareError if it is not above 1, if a frame
    is empty or if no configuration is in both.
    """
    if not within > 1:
        raise CompareError(f"Configurations are the same within a factor above 1; {within:g} came.")
    pairs = pair_runs(before, after)
    steps = _differences(pairs.timed, "seconds_step")
    drift = drift_of(steps, pairs)
    return Changes(
        drift,
        tuple(_by_configuration(steps, drift, within)),
        tuple(_in_memory(pairs, within)),
        pairs,
    )


def _differences(pairs: Iterable[Pair], measure: str) -> list[_Difference]:
    """Return the log ratio after / before of `measure` (a time column) for each pair in which both sides have it."""
    found = []
    for pair in pairs:
        sides = [_by_run(values_of(row, measure)) for row in (pair.before, pair.after)]
        if all(sides):
            means = [float(np.mean([run.mean() for run in side])) for side in sides]
            runs = [run for side in sides for run in side]
            counts = [sum(map(len, side)) for side in sides]
            share = sum(
                1 / n + 1 / (BETWEEN_RUN_VARIANCE_RATIO * len(side)) for n, side in zip(counts, sides, strict=True)
            )
            squares = sum(float(((run - run.mean()) ** 2).sum()) for run in runs)
            found.append(_Difference(pair, means[1] - means[0], share, squares, sum(counts) - len(runs), min(counts)))
    return found


def _by_run(values: Mapping[tuple[str, int], float]) -> list[np.ndarray]:
    """Return the natural logs of the positive values, a float64 array per run; `values` has keys (run, round)."""
    runs = configurations.group_by((place for place, value in values.items() if value > 0), lambda place: place[0])
    return [np.array([math.log(values[place]) for place in own]) for own in runs.values()]


def _variances(found: Sequence[_Difference]) -> list[float]:
    """Return the variance of a round's log time per difference: its own, shrunk towards the median of all (`PRIOR`)."""
    own = [one.squares / one.freedom for one in found if one.freedom]
    usual = max(float(np.median(own)) if own else 0.0, MIN_LOG_SD**2)
    return [max((PRIOR * usual + one.squares) / (PRIOR + one.freedom), MIN_LOG_SD**2) for one in found]


def _by_configuration(found: Sequence[_Difference], drift: Drift, within: float) -> list[Change]:
    """Return the drift-corrected change of each configuration; ratios within the factor `within` are "same"."""
    changes = []
    for one, variance in zip(found, _variances(found), strict=True):
        spread = math.sqrt(variance * one.share + drift.deviation**2)
        ratio = _ratio(one.value - drift.value, spread, PRIOR + one.freedom, len(found), one.rounds)
        changes.append(Change(one.pair.name, ratio, verdict(ratio, within), one.pair))
    return changes


def _ratio(value: float, spread: float, freedom: int, among: int, rounds: int) -> Ratio:
    """Return exp(`value`) as a `Ratio` with its interval, Student's t with `freedom` degrees of freedom.

    `value` is a log ratio, `spread` its standard deviation; the tail probability is divided by `among`, the number of
    comparisons (Bonferroni).
    """
    half = student_t(ALPHA_ONE_SIDED / max(among, 1), freedom) * spread
    return Ratio(math.exp(value), math.exp(value - half), math.exp(value + half), rounds, 2)


def verdict(ratio: Ratio, within: float = EQUIVALENCE_MARGIN) -> str:
    """Return a key of VERDICTS for a ratio after / before; "ambiguous" below four rounds of a side.

    >>> verdict(Ratio(1.02, 0.97, 1.07, 6, 2)), verdict(Ratio(2.0, 1.6, 2.5, 6, 2)), verdict(Ratio(1.2, 0.9, 1.6, 6, 2))
    ('same', 'slower', 'ambiguous')
    """
    if ratio.rounds < INTERIM_ANALYSES[0]:
        return "ambiguous"
    if 1 / within < ratio.low and ratio.high < within:
        return "same"
    return "slower" if ratio.low > 1 else "faster" if ratio.high < 1 else "ambiguous"


def _in_memory(pairs: Pairs, within: float) -> list[Change]:
    """Return the change in `bytes_peak` of each pair, without correction for drift, which memory does not have.

    Pairs without a positive lower bound of memory on both sides are left out. The bounds of the ratio follow from those
    of the two memory intervals; `within` is the factor up to which sizes count as the same.
    """
    changes = []
    for pair in pairs.numbered:
        sides = [interval_of(row, "bytes_peak") for row in (pair.before, pair.after)]
        first, second = sides
        if first is None or second is None or first.low <= 0 or second.low <= 0:
            continue
        rounds = 1 if ONCE in (first.why, second.why) else INTERIM_ANALYSES[0]
        ratio = Ratio(second.value / first.value, second.low / first.high, second.high / first.low, rounds, 2)
        changes.append(Change(pair.name, ratio, verdict(ratio, within), pair))
    return changes


def largest_changes(changes: Iterable[Change], which: str = "slower") -> list[Change]:
    """Return the changes whose verdict is `which`, those with the largest factor in either direction first."""
    return sorted(
        (change for change in changes if change.verdict == which), key=lambda one: -abs(math.log(one.ratio.value))
    )


# Changes between two runs, in sentences and tables: the answer first, then the drift and what could be seen.


NAMED = 5
"""Configurations that a sentence names."""
LARGE = 1.1
"""A drift from which on a sentence warns of it."""
COLUMNS = ("configuration", "verdict", "after / before", "detectable from")


def headline(changes: Changes) -> str:
    """Return the answer in a few sentences: which configurations are slower, then the count per verdict."""
    count = formatting.format_count(len(changes.configurations), "configuration")
    if not changes.configurations:
        return "Nothing can be compared: no configuration has a new measurement of its time in both runs."
    slower = largest_changes(changes.configurations)
    first = "Nothing is slower."
    if slower:
        first = f"Slower: {len(slower)} of {count}; the most: {slower[0].name}, {format_change(slower[0])} as long."
    found = [change.verdict for change in changes.configurations]
    each = formatting.join_items(f"{found.count(name)} {name}" for name in VERDICTS if name in found)
    return f"{first} Of {count}: {each}."


def sentences(changes: Changes) -> Iterator[str]:
    """Yield the details: drift, memory, lost results, detectable slow-downs, what was left out."""
    yield _drift(changes)
    for which, word in (("slower", "more"), ("faster", "less")):
        if some := largest_changes(changes.memory, which):
            count = f"{len(some)} of {formatting.format_count(len(changes.memory), 'configuration')}"
            yield f"{word.capitalize()} memory: {count}; the most: {some[0].name}, {format_change(some[0])} as much."
    yield from _lost_sentence(changes)
    if changes.configurations:
        detectable = sorted(one.minimum_detectable_ratio for one in changes.configurations)
        yield f"Detectable slow-downs of a configuration: {_span(detectable)}."
    yield from _excluded_sentence(changes)


def table(changes: Sequence[Change]) -> list[list[str]]:
    """Return one row of four texts per change (see COLUMNS): slower, faster, ambiguous, same; largest first."""
    order = ("slower", "faster", "ambiguous", "same")
    ordered = sorted(changes, key=lambda one: (order.index(one.verdict), -abs(math.log(one.ratio.value))))
    return [[one.name, one.verdict, format_change(one), minimum_detectable_slowdown(one)] for one in ordered]


def format_change(change: Change) -> str:
    """Return the factor after / before as text, such as "1.2 to 1.4 times"; "about 1.3 times" below four rounds."""
    return (
        formatting.format_times(change.ratio)
        if change.ratio.rounds >= INTERIM_ANALYSES[0]
        else f"about {formatting.format_number(change.ratio.value, 2)} times"
    )


def minimum_detectable_slowdown(change: Change) -> str:
    """Return the smallest slow-down that could have been shown, such as "1.08 times", or "fewer than four rounds"."""
    return (
        f"{formatting.format_number(change.minimum_detectable_ratio, 2)} times"
        if math.isfinite(change.minimum_detectable_ratio)
        else "fewer than four rounds"
    )


def _drift(changes: Changes) -> str:
    """Return the sentence on the drift between the two runs and how it was estimated; warns from a factor of 1.1 on."""
    drift = changes.drift
    all_of_it = f"{formatting.format_number(drift.factor, 3)} times as long"
    machine = " The machine has changed, or something that no key records."
    warns = machine if abs(drift.value) > math.log(LARGE) else ""
    if drift.kind == "cells":
        by = f"{formatting.format_count(drift.sentinels, 'configuration')} of the same code in both runs"
        return f"Drift: {by} took {all_of_it} in the second run (median); ratios are corrected for it.{warns}"
    if drift.kind == "work":
        return f"Drift: the reference workload took {all_of_it} in the second run; ratios are corrected for it.{warns}"
    if drift.kind == "machines":
        first, second = changes.pairs.machines
        return f"The machines differ, {first} and {second}: ratios include the difference between them."
    return "Drift: unknown. Intervals are widened by the usual difference between two runs on one machine."


def _lost_sentence(changes: Changes) -> Iterator[str]:
    """Yield a sentence per configuration without a result in the second run, at most five, then the count left."""
    lost = changes.pairs.lost
    for pair in lost[:NAMED]:
        reason = (pair.after["reason"] or "no reason given").rstrip(".")
        yield f"No result any more: {pair.name}, {pair.after['status']} ({reason})."
    if len(lost) > NAMED:
        yield f"{len(lost) - NAMED} more configurations have no result any more."


def _span(visible: Sequence[float]) -> str:
    """Return the finite ones of ascending ratios as "1.2 times or more (1.1 to 1.5)": median, least, largest."""
    known = [one for one in visible if math.isfinite(one)]
    if not known:
        return "none, with fewer than four rounds"
    least, middle, most = (formatting.format_number(known[place], 2) for place in (0, len(known) // 2, -1))
    return f"{middle} times or more" if least == most else f"{middle} times or more ({least} to {most})"


def _excluded_sentence(changes: Changes) -> Iterator[str]:
    """Yield a sentence for each cause of exclusion: identical records, too few rounds, disturbed, in one run only."""
    pairs = changes.pairs
    if pairs.again:
        yield (
            f"{formatting.format_count(pairs.again, 'configuration')} {'has' if pairs.again == 1 else 'have'} the same "
            f"rows in both runs."
        )
    if few := sum(configuration.ratio.rounds < INTERIM_ANALYSES[0] for configuration in changes.configurations):
        yield (
            f"{formatting.format_count(few, 'configuration')} {'has' if few == 1 else 'have'} fewer than four rounds "
            f"of a run: ambiguous."
        )
    disturbed = len(pairs.numbered) - len(pairs.timed)
    if disturbed:
        yield f"{formatting.format_count(disturbed, 'configuration')} never timed undisturbed in one of the runs."
    if pairs.only_before or pairs.only_after:
        yield f"Without a partner: {pairs.only_before} of the first run, {pairs.only_after} of the second."
