"""The answer in plain words: whether to go sparse, with what, from which density on, and by how much."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from workbench.analysis import configurations, outliers, verdict_text
from workbench.analysis.answers import Shown, answered_groups
from workbench.analysis.breakeven import (
    BreakEven,
    baseline,
    breakeven_of,
    format_density_ranges,
    list_open_contests,
    probable_clauses,
)
from workbench.analysis.compare import REMEDY, Contest, contests_of_group, is_decidable, trained_worse
from workbench.analysis.formatting import (
    capitalized,
    format_bytes,
    format_count,
    format_densities,
    format_density,
    format_measured,
    format_number,
    join_items,
    name_configuration,
)
from workbench.analysis.grades import bound_reason, format_factor_with_interval, grade_comparison
from workbench.analysis.recommendation import is_dense_batch_of_compact_data
from workbench.analysis.verdict_text import MEASURES

__all__ = ["MEASURES", "Advice", "advise", "headline"]


# Flags that an honest answer adds: doubtful wins, configurations without a result, and what the answer depends on.


NOISY = 1.5
"""Where no smaller factor than this can be told, a warning says so."""


def warnings(groups: Sequence[configurations.Group]) -> Iterator[str]:
    """Yield the caveats: worse lazy models, densified operations, hashed columns, disturbed trials.

    `groups` hold pooled records of comparable configurations. How disturbed and noisy the first one is, is left to
    `certainty_sentences`.
    """
    rows = [row for group in groups for row in group.rows]
    yield from _lazy(groups)
    yield from _densified(rows)
    yield from dict.fromkeys(row["hashed"] for row in rows if row.get("hashed"))
    yield from _prepared(rows)
    if groups and not _disturbed(groups[0]):
        yield from _disturbances(rows)
    yield from _noisy_densities(groups)
    yield from _machine(rows)
    lost = Counter(name for row in rows for name in row["not_finite"] or ())
    if lost:
        counts = join_items(f"{name} in {format_count(count, 'configuration')}" for name, count in lost.items())
        yield f"Values that were not finite are missing: {counts}."


def _disturbances(rows: Sequence[configurations.Record]) -> Iterator[str]:
    """Yield a sentence with the number of trials during which other programs ran; nothing if there was none.

    `rows` are pooled records.
    """
    disturbed = sum(row["rounds_disturbed"] for row in rows)
    if disturbed:
        trials = format_count(disturbed + sum(row["rounds"] for row in rows), "trial")
        yield (
            f"{disturbed} of {trials} ran next to other programs; they count for less, so factors are known less well."
        )


def _noisy_densities(groups: Sequence[configurations.Group]) -> Iterator[str]:
    """Yield per group but the first the densities at which differences below 1.5 times or more could have gone unseen.

    `groups` hold pooled records of comparable configurations.
    """
    for group in groups[1:]:
        compared = contests_of_group(group, "seconds_step")
        blind = [one for one in compared if (one.minimum_detectable_ratio or 0.0) > NOISY]
        if blind:
            most = max(one.minimum_detectable_ratio or 0.0 for one in blind)
            where = "every density" if len(blind) == len(compared) > 1 else format_densities(blind)
            yield (
                f"At {where} rounds differ so much that differences below "
                f"{format_number(most, 2)} times may go unseen{_densities_clause(group, groups)}."
            )


def _machine(rows: Sequence[configurations.Record]) -> Iterator[str]:
    """Yield at most one sentence: in how many configurations the machine drifted, throttled, swapped, ...

    `rows` are pooled records.
    """
    met = [outliers.machine_state(row) for row in rows]
    kinds = Counter(
        kind for each in met for kind in each if kind != outliers.OTHERS
    )  # those are determined by `_disturbances`
    if kinds:
        each = join_items(f"{kind} in {format_count(count, 'configuration')}" for kind, count in kinds.items())
        yield f"During the trials the machine had {each}; the rows say how much."


def count_failures(groups: Sequence[configurations.Group]) -> list[str]:
    """Return a sentence with the configurations without a result by status, and one on failed rounds.

    [] if none failed. `groups` hold pooled records of comparable configurations.
    """
    rows = [row for group in groups for row in group.rows]
    lost = [row for row in rows if row["status"] not in configurations.NUMBERED]
    retried = sum(row["rounds_failed"] for row in rows if row["status"] in configurations.NUMBERED)
    notes = (
        [f"{format_count(retried, 'round')} failed in configurations that have a result from other rounds."]
        if retried
        else []
    )
    if not lost:
        return notes
    each = "; ".join(_reason(status, lost) for status in dict.fromkeys(row["status"] for row in lost))
    return [f"{len(lost)} of {format_count(len(rows), 'configuration')} have no result: {each}.", *notes]


def _reason(status: str, rows: Sequence[configurations.Record]) -> str:
    """Return the count, the status and a reason, such as "3 memory (needs 12 GB)"; "for example:" if reasons differ.

    `rows` are the records without a result.
    """
    reasons = [row["reason"] or "no reason given" for row in rows if row["status"] == status]
    example = "" if len(set(reasons)) == 1 else "for example: "
    return f"{len(reasons)} {status} ({example}{reasons[0].rstrip('.')})"


def _lazy(groups: Sequence[configurations.Group]) -> Iterator[str]:
    """Yield a sentence per configuration whose lazy update trained a worse model than the dense update.

    `groups` hold pooled records of comparable configurations.
    """
    for group in groups:
        pairs = trained_worse(group.rows)
        for line in dict.fromkeys(name_configuration(lazy) for lazy, _ in pairs):
            worse = [(lazy, fair) for lazy, fair in pairs if name_configuration(lazy) == line]
            lazy, fair = worse[0]
            tried = [
                row
                for row in group.rows
                if row["status"] in configurations.NUMBERED and name_configuration(row) == line
            ]
            where = join_items(format_density(configurations.density_of(row) or 0.0) for row, _ in worse)
            where = "every density measured" if len(worse) == len(tried) else f"{where} density"
            yield (
                f"{line} trained a worse model than {name_configuration(fair)} at {where} "
                f"({_end_sentences(lazy, fair)}), "
                f"so it does not count as a win{_densities_clause(group, groups)}."
            )


def _end_sentences(row: configurations.Record, fair: configurations.Record) -> str:
    """Return "loss 0.31 instead of 0.28, AUC 0.8 instead of 0.82": final values of `row` against those of `fair`."""
    parts = []
    for name, column in (("loss", "loss_last"), (row["quality_name"] or "quality", "quality")):
        if row[column] is not None and fair[column] is not None:
            parts.append(f"{name} {format_number(row[column])} instead of {format_number(fair[column])}")
    return ", ".join(parts)


def _densified(rows: Iterable[configurations.Record]) -> Iterator[str]:
    """Yield a sentence per configuration and operation that made a dense array, with the largest size in bytes.

    Records whose batches are dense by design are left out. `rows` are pooled records.
    """
    sizes_by_op: dict[tuple[str, str], list[int]] = {}
    for row in (
        row for row in rows if not is_dense_batch_of_compact_data(row)
    ):  # whose batches are made dense, as their names say
        for one in row["densified"] or ():
            sizes_by_op.setdefault((name_configuration(row), str(one.get("op"))), []).append(one.get("bytes") or 0)
    for (line, op), sizes in sizes_by_op.items():
        yield (
            f"{line} made a dense array in {op} ({format_bytes(max(sizes))}), in "
            f"{format_count(len(sizes), 'configuration')}."
        )


def _prepared(rows: Iterable[configurations.Record]) -> Iterator[str]:
    """Yield at most one sentence: batches are prepared once outside the timed step, and what that costs in steps.

    `rows` are pooled records.
    """
    costs: dict[str, float] = {}
    for row in rows:
        inside = sum(row[f"seconds_{phase}"] or 0.0 for phase in ("slice", "convert", "plan"))
        if not configurations.is_dense(row) and row["status"] == "ok" and (row["seconds_prepare"] or 0.0) > 2 * inside:
            costs[name_configuration(row)] = max(
                costs.get(name_configuration(row), 0.0), row["seconds_prepare"] / row["seconds_step"]
            )
    if costs:
        line, most = max(costs.items(), key=lambda item: item[1])
        steps = format_measured(most, most, most, format_number)
        yield (
            "Batches repeat, so cutting, converting and planning them is done once and is not in the time of a step; "
            f"it costs {steps} times as much as a step, a batch, at most ({line})."
        )


def _densities_clause(group: configurations.Group, groups: Sequence[configurations.Group]) -> str:
    """Return " (label)" with the label of `group`, to end a sentence; "" if there is only one group."""
    return f" ({group.label})" if len(groups) > 1 else ""


# Certainty of a verdict about time: what it rests on, its interval, the smallest difference that could be seen.


ALIKE = 1.15
"""Differences that could be seen are alike up to this factor."""


def certainty_sentences(group: configurations.Group) -> str:
    """Return the sentences on how certain a verdict in time is: rounds, runs, detectable difference, disturbed trials.

    They are those of the contests in time of `group`.
    """
    contests, disturbed = contests_of_group(group, "seconds_step"), _disturbed(group)
    ratios = [contest.ratio for contest in contests if contest.ratio is not None]
    if not ratios:
        return f"How sure: no run has a time of both sides.{disturbed}"
    least, most = (end(ratio.rounds for ratio in ratios) for end in (min, max))
    rounds = format_count(most, "round") if least == most else f"{least} to {most} rounds"
    if not most:
        return (
            f"How sure: no round measured both sides; the interval is that of a prediction from the sizes.{disturbed}"
        )
    of_runs = f"{rounds} of {format_count(max(ratio.runs for ratio in ratios), 'run')}"
    seen = minimum_detectable_sentence(contests)
    prior = " The prior is the cost model's prediction." if _has_prior(contests) else ""
    return f"How sure: 95 % intervals from {of_runs}. {capitalized(seen)}.{prior}{disturbed}"


def _has_prior(contests: Sequence[Contest]) -> bool:
    """Return whether predicted times are the prior of the measured ones in any of the contests."""
    members = [row.get("member") for one in contests for row in (one.sparse, one.dense) if row is not None]
    return any(member.comparison.has_prior for member in members if member)


def minimum_detectable_sentence(contests: Sequence[Contest]) -> str:
    """Return a clause on the smallest detectable ratio, such as "differences from 1.1 times on ..."."""
    seen = sorted(
        (contest for contest in contests if contest.minimum_detectable_ratio),
        key=lambda one: one.minimum_detectable_ratio or 0.0,
    )
    if not seen:
        return "no difference could be detected"
    usual = seen[len(seen) // 2].minimum_detectable_ratio or 1.0
    worse = [one for one in seen if (one.minimum_detectable_ratio or 0.0) > ALIKE * usual]
    where = "" if len(contests) == 1 else " at every density" if len(seen) == len(contests) else " at most densities"
    text = f"differences from {format_number(usual, 2)} times on could be detected{where}"
    if not worse:
        return text
    far = f"{format_number(worse[-1].minimum_detectable_ratio or 0.0, 2)} times at {format_densities(worse[-1:], 2)}"
    return f"{text.removesuffix(where)} at most densities, from {far}"


def _disturbed(group: configurations.Group) -> str:
    """Return " Other programs ran next to 12 % of the trials, ..." for a group; "" if no trial was disturbed."""
    disturbed, timed = (sum(row[name] for row in group.rows) for name in ("rounds_disturbed", "rounds"))
    if not disturbed:
        return ""
    share = format_density(disturbed / (disturbed + timed), 2)
    return f" Other programs ran next to {share} of the trials, which count for less."


DIGITS = 2
"""Significant digits of numbers in a verdict: tables have more."""


@dataclass(frozen=True)
class Advice:
    """Conclusions from the rows, in sentences. `verdict` is the answer; the rest are its grounds, in reading order.

    `certainty_sentences` says how sure the verdict is; `time` and `memory` go through the densities; `warnings` names
    what makes a win doubtful; `count_failures` counts the configurations without a result.
    """

    verdict: str
    certainty: str = ""
    time: tuple[str, ...] = ()
    memory: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """All sentences in reading order: verdict, certainty, time, memory, warnings, failures."""
        grounds = (*self.time, *self.memory, *self.warnings, *self.failures)
        return (*filter(None, (self.verdict, self.certainty)), *grounds)

    def __str__(self) -> str:
        """Return all sentences, one per line."""
        return "\n".join(self.sentences)


def advise(frame: pd.DataFrame, shown: Shown = None) -> Advice:
    """Return the advice from trial records, over all groups of comparable ones; the verdict is on that of the answer.

    It is of the groups that have a configuration in `shown`. Without records the verdict says so.
    """
    pooled = configurations.pool_rounds(frame)  # once for all that follows
    groups = answered_groups(pooled, shown)
    if not groups:
        return Advice("There is no answer yet: no rows were given.")
    several = len(groups) > 1
    sentences = {
        measure: [line for group in groups for line in verdict_text.density_range_sentences(group, measure, several)]
        for measure in MEASURES
    }
    return Advice(
        verdict=_verdict(groups),
        certainty=certainty_sentences(groups[0]),
        time=tuple(sentences["seconds_step"]),
        memory=(*sentences["bytes_peak"],),
        warnings=tuple(warnings(groups)),
        failures=tuple(count_failures(groups)),
    )


def _verdict(groups: Sequence[configurations.Group]) -> str:
    """Return the verdict on the first group, a sentence or two per measure."""
    group = groups[0]
    parts = [headline(group, measure)[1] for measure in MEASURES]
    which = f"configurations {group.label}" if group.label.startswith(("on ", "with ")) else group.label
    of_several = f"This is for {which}, one of {len(groups)} groups measured." if len(groups) > 1 else ""
    return " ".join(filter(None, (*parts, of_several)))


def headline(group: configurations.Group, measure: str) -> tuple[str, str]:
    """Return (chart title, full sentence) of the advice in one measure, a key of MEASURES, for a group."""
    compared = contests_of_group(group, measure)
    won = [one for one in compared if one.verdict == "sparse"]
    lost = [one for one in compared if one.verdict == "dense"]
    if not won:
        return _without_win(compared, lost, measure)
    first = next((one for one in won if one.ratio is not None), None)
    if first is None:
        return _by_fitting(won[0], compared, measure)
    if not lost:
        return _sparse_at_some(first, won, compared, measure)
    even = breakeven_of(group, won[-1].sides[0], measure)
    if even is None or even.status != "crossing" or (won[-1].density or 0.0) >= (lost[0].density or 0.0):
        name, verb, better = MEASURES[measure]
        both = (
            f"sparse wins {format_density_ranges(won, compared, DIGITS)}, dense "
            f"{format_density_ranges(lost, compared, DIGITS)}"
        )
        return f"Which {verb} {better} changes: {both}", f"For {name} it depends on the density: {both}."
    is_of_first = even.line == configurations.line_of(first.sides[0])
    of = "" if is_of_first else name_configuration(won[-1].sides[0])
    return _sparse_below(even, of, compared, measure)


def _by_fitting(first: Contest, compared: Sequence[Contest], measure: str) -> tuple[str, str]:
    """Return (title, sentence) if sparse wins at `first` only because dense did not run.

    `compared` are the contests at all densities in `measure` (a key of MEASURES).
    """
    sparse, dense = first.sides
    does = f"runs where {verdict_text.failure_reason(dense)}"
    full = f"For {MEASURES[measure][0]}, go sparse with {name_configuration(sparse)}: it {does}."
    return f"Sparse {does}", f"{full}{_open_sentences(compared)}"


def _sparse_at_some(
    first: Contest, won: Sequence[Contest], compared: Sequence[Contest], measure: str
) -> tuple[str, str]:
    """Return (title, sentence) if sparse wins at the densities `won` and dense nowhere; `first` gives the factor.

    `compared` are the contests at all densities in `measure` (a key of MEASURES).
    """
    name, verb, better = MEASURES[measure]
    at = format_density_ranges(won, compared, DIGITS)
    gain = _gain(first, better, is_alone=len(won) == 1)
    return f"Sparse {verb} {better} than dense {at}", f"For {name}, go sparse {at}: {gain}.{_open_sentences(compared)}"


def _sparse_below(even: BreakEven, of: str, compared: Sequence[Contest], measure: str) -> tuple[str, str]:
    """Return (title, sentence) if sparse wins below a break-even and dense above it.

    `of` names the configuration of the break-even, "" if it is that which the sentence names anyway. `even` is the
    break-even, `compared` the contests at all densities in `measure`.
    """
    name, verb, better = MEASURES[measure]
    won = [one for one in compared if one.verdict == "sparse"]
    up_to = format_density(won[-1].density or 0.0, DIGITS)
    from_ = format_density(next(one.density for one in compared if one.verdict == "dense") or 0.0, DIGITS)
    first = next(one for one in won if one.ratio is not None)
    lost = [one for one in compared if one.verdict == "dense"]
    full = (
        f"For {name}, go sparse up to {up_to} density: {_gain(first, better, is_alone=False)}. "
        f"From {from_} on, {_stay_dense(lost)}. The break-even is {even.place}{f', that of {of}' if of else ''}."
    )
    return f"Sparse {verb} {better} than dense up to {up_to}; the break-even is {even.place}", full + _open_sentences(
        compared
    )


def _gain(first: Contest, better: str, is_alone: bool) -> str:
    """Return by which factor sparse wins in contest `first`, the density (unless `is_alone`), and the configuration."""
    sparse, dense, _ = first.known
    at = "" if is_alone or not first.density else f" at {format_density(first.density, DIGITS)}"
    return (
        f"{format_factor_with_interval(first)} {better} than "
        f"{name_configuration(dense)}{at}{bound_reason(first)}, with {name_configuration(sparse)}"
    )


def _stay_dense(lost: Sequence[Contest]) -> str:
    """Return "stay dense", or "stay with NAME" if one dense configuration of a special kind wins."""
    name = baseline(lost)
    return "stay dense" if name in ("dense", "the best dense") else f"stay with {name}"


def _open_sentences(compared: Sequence[Contest]) -> str:
    """Return " Sentence. Sentence." on densities without a winner, with reasons; "" if each has a winner."""
    clauses = (f"{what}: {why}" if why else what for what, why in list_open_contests(compared, DIGITS))
    return "".join(f" {capitalized(clause)}." for clause in clauses)


def _without_win(compared: Sequence[Contest], lost: Sequence[Contest], measure: str) -> tuple[str, str]:
    """Return (title, sentence) if sparse wins nowhere; `lost` are the contests that dense wins.

    `compared` are the contests at all densities in `measure`; the sentence says if they are equivalent or undecided.
    """
    name, verb, better = MEASURES[measure]
    if lost:
        at = format_density_ranges(lost, compared, DIGITS)
        most = f"dense wins {at}"
        if len(lost) == len(compared):
            most = f"no sparse configuration {verb} {better} than dense {at.replace('at every', 'at any')}"
        return f"Dense wins in {name} {at}", f"For {name}, {_stay_dense(lost)}: {most}.{_open_sentences(compared)}"
    level = [one for one in compared if one.verdict == "level"]
    if level and len(level) == len(compared):
        same = f"equal (within 10 %) {format_density_ranges(level, compared, DIGITS)}"
        return f"Sparse and dense are equal in {name}", f"For {name} sparse and dense are {same}."
    reasons = list(dict.fromkeys(one.why for one in compared if one.why)) or ["nothing was compared"]
    todo = "".join(
        f" To decide it: {REMEDY[why]}." for why in reasons[:1] if why in REMEDY and is_decidable(why, measure)
    )
    if not any(one.ratio for one in compared):
        none = f"no density has a result from both sparse and dense ({reasons[0]})"
        return f"No comparison: {reasons[0]}", f"For {name} there is no answer yet: {none}.{todo}"
    if len(compared) == 1 and compared[0].likely:
        said = f"{grade_comparison(compared[0], measure)} {format_density_ranges(compared, compared, DIGITS)}"
        return f"{capitalized(said)}", f"For {name}, {said}."
    if probable := probable_clauses(compared, DIGITS):
        sides = join_items(probable)
        return f"In {name} {sides}", f"For {name} no density has a certain winner.{_open_sentences(compared)}{todo}"
    text = _open_sentences(compared).removeprefix(" Inconclusive ")
    return f"Inconclusive in {name}: {reasons[0]}", f"For {name} it is inconclusive {text}{todo}"
