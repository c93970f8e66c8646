"""Two runs of the same configurations: which became slower or faster, which kernels did, and what could have been seen.

Rounds of two runs are no neighbours: the whole machine may be slower during one of them. What configurations share of
that is the drift, and is taken out first (`analysis.drift`). The logarithm of after / before of a configuration is
then a difference of means of rounds; its variance is s^2 (1/n + 1/m + 2/SHARED), s the deviation of rounds within a
run, and that of the drift. Four rounds know little of their deviation, so s^2 is the configuration's own and the median
configuration's, weighted by degrees of freedom, the latter as PRIOR (Smyth 2004, Stat. Appl. Genet. Mol. Biol. 3, 3).
The tails of the intervals are divided among all configurations, and among all kernels, so that a build compared with
itself rarely has a slower one anywhere.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd

from workbench.analysis import configurations, formatting
from workbench.analysis.intervals import ONCE, interval_of, values_of
from workbench.analysis.pairs import CompareError, Pair, Pairs, name_of, pair_runs
from workbench.analysis.pool import COMPARISON
from workbench.measure.posterior import EQUIVALENCE_MARGIN, MIN_LOG_SD, Ratio
from workbench.measure.rounds import BETWEEN_RUN_VARIANCE_RATIO, INTERIM_ANALYSES, student_t
from workbench.store import external

# Drift: how much slower the whole machine was in one run than in another, taken out before they are compared.
#
# Sentinels are, the first that there are: configurations whose code, versions and settings are the same in both runs;
# the
# fixed work that every trial times in addition to its own (`seconds_sentinel`); none, and then DRIFT is allowed for in
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
    """Return the natural logs of `seconds_sentinel` (fixed reference work) of all rounds of `rows`, float64 [rounds].

    Values of 0 or less and disturbed rounds are left out.
    """
    seconds = (value for row in rows for value in values_of(row, "seconds_sentinel").values())
    return np.log([value for value in seconds if value > 0])


Record = Mapping[str, Any]
VERDICTS = {
    "same": "significantly within the factor that is allowed",
    "faster": "significantly less time",
    "slower": "significantly more time",
    "ambiguous": "the rounds tell neither",
}
ALPHA_ONE_SIDED = 0.0025
"""Probability that a build compared with itself has a slower configuration anywhere; the same of a slower kernel."""
PRIOR = 8
"""Degrees of freedom that the deviation of the median configuration counts for in addition to a configuration's own."""
PHASES = ("slice", "convert", "plan", "wait", "transfer", "forward", "loss", "gradient", "update", "graph", "batches")
SHARE = 0.05
"""A phase below this share of the step says nothing of its kernel: the clock is most of it."""


class Change(NamedTuple):
    """Ratio after / before of a configuration, or of all configurations of a kernel together.

    `verdict` is a key of VERDICTS; `configurations` are the names of those it was seen in.
    """

    name: str
    ratio: Ratio
    verdict: str
    configurations: tuple[str, ...]
    pair: Pair | None = None

    @property
    def minimum_detectable_ratio(self) -> float:
        """Smallest slow-down factor that these rounds could have detected; inf with fewer than four rounds."""
        return self.ratio.minimum_detectable_ratio if self.ratio.rounds >= INTERIM_ANALYSES[0] else math.inf


@dataclass(frozen=True)
class Changes:
    """Differences between two runs.

    `drift` is the common factor that was divided out; changes of time are listed by configuration and by kernel, those
    of peak memory in `memory` (more memory counts as "slower"); `pairs` holds the compared records and the lost ones.
    """

    drift: Drift
    configurations: tuple[Change, ...]
    kernels: tuple[Change, ...]
    memory: tuple[Change, ...]
    pairs: Pairs

    @property
    def is_worse(self) -> bool:
        """Whether anything is significantly slower, needs significantly more memory, or has lost its result."""
        every = (*self.configurations, *self.kernels, *self.memory)
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
        tuple(_by_kernel(pairs, drift, within)),
        tuple(_in_memory(pairs, within)),
        pairs,
    )


def compare_step_times(pairs: Iterable[Pair], drift: Drift, within: float = EQUIVALENCE_MARGIN) -> list[Change]:
    """Return the drift-corrected change in step time of each pair; CompareError if a side has no step time."""
    pairs = list(pairs)
    found = _differences(pairs, "seconds_step")
    if len(found) < len(pairs):
        raise CompareError("A pair has a side without the time of a step; pair what both have measured.")
    return _by_configuration(found, drift, within)


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
        changes.append(Change(one.pair.name, ratio, verdict(ratio, within), (one.pair.name,), one.pair))
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


def _by_kernel(pairs: Pairs, drift: Drift, within: float) -> list[Change]:
    """Return one drift-corrected change per kernel, over the pairs in which its phase takes >= 5 % of a step.

    Ratios within the factor `within` are "same".
    """
    of_kernel: dict[str, list[tuple[_Difference, float]]] = {}
    for phase in PHASES:
        found = [
            difference
            for difference in _differences(pairs.timed, f"seconds_{phase}")
            if _is_large(difference.pair, phase)
        ]
        for one, variance in zip(found, _variances(found), strict=True):
            of_kernel.setdefault(name_of(phase, one.pair.after), []).append((one, variance))
    return [_combined_phases(name, own, len(of_kernel), drift, within) for name, own in of_kernel.items()]


def _is_large(pair: Pair, phase: str) -> bool:
    """Return whether `phase` takes at least 5 % of the step time in either record of the pair."""
    shares = ((row[f"seconds_{phase}"] or 0.0) / (row["seconds_step"] or math.inf) for row in (pair.before, pair.after))
    return max(shares) >= SHARE


def _combined_phases(
    name: str, own: Sequence[tuple[_Difference, float]], among: int, drift: Drift, within: float
) -> Change:
    """Return the change named `name` of one kernel: the mean log ratio over the configurations that use it.

    `own` has (difference, variance of a round) of each; `among` is the number of kernels, by which the tail probability
    of the interval is divided; `within` is the factor up to which times count as the same.
    """
    values = np.array([one.value for one, _ in own])
    expected = float(np.mean([variance * one.share for one, variance in own]))
    scatter = float(values.var(ddof=1)) if values.size > 1 else 0.0
    spread = math.sqrt(max(expected, scatter) / values.size + drift.deviation**2)
    rounds = min(one.rounds for one, _ in own)
    ratio = _ratio(float(values.mean()) - drift.value, spread, PRIOR + values.size - 1, among, rounds)
    return Change(name, ratio, verdict(ratio, within), tuple(one.pair.name for one, _ in own))


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
        changes.append(Change(pair.name, ratio, verdict(ratio, within), (pair.name,), pair))
    return changes


def count_by_verdict(changes: Iterable[Change]) -> dict[str, int]:
    """Return {verdict: number of changes} with every key of VERDICTS, 0 included."""
    found = [change.verdict for change in changes]
    return {name: found.count(name) for name in VERDICTS}


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
COLUMNS = ("configuration", "verdict", "after / before", "could have shown from")


def headline(changes: Changes) -> str:
    """Return the answer in a few sentences: which kernels and configurations are slower, then the count per verdict."""
    slower, kernels = largest_changes(changes.configurations), largest_changes(changes.kernels)
    if not changes.configurations:
        return "Nothing can be compared: no configuration has a time in both runs that was measured anew."
    parts = [
        f"Slower: the kernel {kernel.name}, {format_change(kernel)} as long, {_detectable(kernel)}."
        for kernel in kernels[:NAMED]
    ]
    if slower:
        more = f"; the most: {slower[0].name}, {format_change(slower[0])} as long"
        parts.append(
            f"{formatting.format_count(len(slower), 'configuration')} of {len(changes.configurations)} "
            f"{_is_or_are(slower)} slower{more}."
        )
    if not parts:
        parts.append("Nothing is slower.")
    counts = count_by_verdict(changes.configurations)
    each = formatting.join_items(f"{number} {name}" for name, number in counts.items() if number)
    return " ".join([*parts, f"Of {formatting.format_count(len(changes.configurations), 'configuration')}: {each}."])


def sentences(changes: Changes) -> Iterator[str]:
    """Yield the details: drift, faster kernels, memory, lost results, detectable slow-downs, what was left out."""
    yield _drift(changes)
    for one in largest_changes(changes.kernels, "faster")[:NAMED]:
        yield f"Faster: the kernel {one.name}, {format_change(one)} as long, {_detectable(one)}."
    yield from _memory(changes)
    yield from _lost_sentence(changes)
    if changes.configurations:
        yield _detectable_sentence(changes)
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


def _is_or_are(some: Sequence[Change]) -> str:
    """Return "is" for exactly one change, "are" for any other number."""
    return "is" if len(some) == 1 else "are"


def _detectable(change: Change) -> str:
    """Return "in NAME" for a change seen in one configuration, "over 5 configurations together" for several."""
    return (
        f"over {formatting.format_count(len(change.configurations), 'configuration')} together"
        if len(change.configurations) > 1
        else f"in {change.configurations[0]}"
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
    machine = " That is a change of the machine, or of what no key tells, and is not looked for in the code."
    warns = machine if abs(drift.value) > math.log(LARGE) else ""
    if drift.kind == "cells":
        by = f"{formatting.format_count(drift.sentinels, 'configuration')} of the same code in both runs"
        return f"Drift: {by} took {all_of_it} in the second, at the median, and that is taken out.{warns}"
    if drift.kind == "work":
        return f"Drift: the fixed work next to each trial took {all_of_it} in the second run; that is taken out.{warns}"
    if drift.kind == "machines":
        first, second = changes.pairs.machines
        return f"The machines differ, {first} and {second}: what is compared is both, machine and code."
    return "Drift: nothing tells it, so each interval is wider by what whole runs of one machine have differed by."


def _memory(changes: Changes) -> Iterator[str]:
    """Yield up to two sentences, on more and on less memory, each with the number of configurations and the largest."""
    for which, word in (("slower", "more"), ("faster", "less")):
        some = largest_changes(changes.memory, which)
        if some:
            first = some[0]
            yield (
                f"Memory: {formatting.format_count(len(some), 'configuration')} of {len(changes.memory)} "
                f"{'takes' if len(some) == 1 else 'take'} {word}; the most: {first.name}, "
                f"{format_change(first)} as much."
            )


def _lost_sentence(changes: Changes) -> Iterator[str]:
    """Yield a sentence per configuration without a result in the second run, at most five, then the count left."""
    lost = changes.pairs.lost
    for pair in lost[:NAMED]:
        reason = (pair.after["reason"] or "no reason given").rstrip(".")
        yield f"No result any more: {pair.name}, {pair.after['status']} ({reason})."
    if len(lost) > NAMED:
        yield f"{len(lost) - NAMED} more configurations have no result any more."


def _detectable_sentence(changes: Changes) -> str:
    """Return a sentence with the smallest slow-downs that could have been shown, per configuration and per kernel."""
    by_configuration = sorted(configuration.minimum_detectable_ratio for configuration in changes.configurations)
    text = f"Could have been shown: in a configuration alone slow-downs {_span(by_configuration)}"
    by_kernel = sorted(changes.kernels, key=lambda one: one.minimum_detectable_ratio)
    if not by_kernel:
        return f"{text}."
    together = _span([one.minimum_detectable_ratio for one in by_kernel])
    return f"{text}; over all configurations of a kernel together {together}."


def _span(visible: Sequence[float]) -> str:
    """Return the finite ones of ascending ratios as "from 1.2 times on (1.1 to 1.5)": median, least, largest."""
    known = [one for one in visible if math.isfinite(one)]
    if not known:
        return "of no size, from fewer than four rounds"
    least, middle, most = (formatting.format_number(known[place], 2) for place in (0, len(known) // 2, -1))
    return f"from {middle} times on" if least == most else f"from {middle} times on ({least} to {most})"


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


# Compare records of other tools with this project's fastest sparse and dense configurations of equal settings.


NEAR = 0.02
"""How far a measured density may be from the one stated, as a share."""
EXTERNAL_COLUMNS = ("who", "against", "verdict", "theirs / ours", "could have shown from")


class ExternalComparison(NamedTuple):
    """A row of theirs against a configuration of ours; the ratio of `change` is theirs / ours."""

    who: str
    against: str
    change: Change
    is_one_machine: bool


def compare_external(
    frame: pd.DataFrame, theirs: Iterable[Record], within: float = EQUIVALENCE_MARGIN
) -> list[ExternalComparison]:
    """Compare each external record with the fastest sparse and dense configuration of the settings that it states.

    `frame` holds trial records of this project, `theirs` records of other tools with `seconds` per round; ratios are
    theirs / ours. The drift between both sources is unknown, so the intervals include the differences between whole
    runs. Raises CompareError if no configuration agrees, or those of several comparisons do. O(rows * configurations).
    """
    rows = [row for row in configurations.records(configurations.pool_rounds(frame)) if row["status"] == "ok"]
    pairs, labels = [], []
    for their in theirs:
        for row in _best_of(_matching_configurations(rows, their)):
            name = f"{formatting.name_configuration(row)} at {configurations.density_label(row)} density"
            seconds = {("theirs", number): value for number, value in enumerate(their["seconds"])}
            pairs.append(Pair(name, row, dict(their) | {"round_values": {"seconds_step": seconds}}))
            labels.append((their["who"], name, bool(their["machine"]) and their["machine"] == row["machine"]))
    changes = compare_step_times(pairs, Drift(0.0, DRIFT, "none"), within)
    return [
        ExternalComparison(who, name, change, is_one)
        for (who, name, is_one), change in zip(labels, changes, strict=True)
    ]


def _matching_configurations(rows: Sequence[Record], their: Record) -> list[Record]:
    """Return the records in `rows` with all settings that the external record `their` states (not None).

    Raises CompareError if there is none, listing the values that exist, or if the records found belong to several
    comparisons.
    """
    stated = {name: their[name] for name in external.SETTINGS if their[name] is not None}
    found = [row for row in rows if all(_is_alike(row, name, value) for name, value in stated.items())]
    if not found:
        known = {name: sorted({str(row[name]) for row in rows if row[name] is not None}) for name in stated}
        have = "; ".join(f"{name} {', '.join(values) or 'of the data'}" for name, values in known.items())
        asked = ", ".join(f"{name} {value}" for name, value in stated.items())
        raise CompareError(f"No configuration of the run is as {their['who']} states ({asked}). The run has: {have}.")
    varied = [name for name in COMPARISON if len({row[name] for row in found}) > 1]
    if varied:
        raise CompareError(
            f"Configurations of several comparisons are as {their['who']} states; "
            f"state {formatting.join_items(varied)} as well."
        )
    return found


def _is_alike(row: Record, name: str, value: Any) -> bool:
    """Return whether a record has `value` in the setting `name`; a measured density may differ by 2 %."""
    if name != "density":
        return row[name] == value
    return row[name] == value or abs((row["density_measured"] or 0.0) / value - 1) <= NEAR


def _best_of(rows: Sequence[Record]) -> list[Record]:
    """Return [fastest sparse, fastest dense] by `seconds_step`; a side without records is left out."""
    sides = ([row for row in rows if not configurations.is_dense(row)], configurations.dense_rows(rows))
    return [min(side, key=lambda row: row["seconds_step"]) for side in sides if side]


def external_table(held: Iterable[ExternalComparison]) -> list[list[str]]:
    """Return a row of five texts per comparison (see EXTERNAL_COLUMNS); the verdict is on the external tool."""
    return [
        [one.who, one.against, one.change.verdict, format_change(one.change), minimum_detectable_slowdown(one.change)]
        for one in held
    ]


def external_notes(held: Sequence[ExternalComparison]) -> list[str]:
    """Return the one or two sentences that apply to the whole table of external comparisons."""
    lines = ["Verdicts are those of theirs. Their times and ours are no neighbours, so intervals are wider."]
    if not all(one.is_one_machine for one in held):
        lines.append("Some of theirs are of another machine, or name none: what is compared is both, machine and code.")
    return lines
