"""Density after density in words: who wins in a group and by how much, or why nothing is decided."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from workbench.analysis import configurations, formatting
from workbench.analysis.compare import NO_DENSE, REMEDY, Contest, contests_of_group
from workbench.analysis.grades import bound_reason, format_factor_with_interval, grade_comparison

# what a measure is about, and how the better side is called: it "is 3 times faster", "needs 3 times less memory"
MEASURES = {"seconds_step": ("time", "is", "faster"), "bytes_peak": ("memory", "needs", "less memory")}


def density_range_sentences(group: configurations.Group, measure: str, several: bool) -> list[str]:
    """Return one sentence per range of consecutive densities with the same verdict in `measure` (a key of MEASURES).

    With `several` groups each sentence begins with the label of its group.
    """
    head = f"{formatting.capitalized(group.label)}: " if several else ""
    density_ranges = groupby(contests_of_group(group, measure), key=_verdict_key)
    return [
        head + _density_range_sentence(list(density_range), measure, bare=not head)
        for _, density_range in density_ranges
    ]


def contest_sentence(contest: Contest, measure: str) -> str:
    """Return the sentence on one contest: winner, factor, probability and both values, without a remedy."""
    return _density_range_sentence([contest], measure, bare=True, is_with_remedy=False)


def _verdict_key(contest: Contest) -> tuple:
    """Return (verdict, reason, likely side, has no ratio, configurations), equal if densities share a sentence."""
    lines = (configurations.line_of(row) if row else None for row in (contest.sparse, contest.dense))
    return contest.verdict, contest.why, contest.likely, contest.ratio is None, *lines


def _density_range_sentence(
    density_range: Sequence[Contest], measure: str, bare: bool, is_with_remedy: bool = True
) -> str:
    """Return the sentence on consecutive contests with the same verdict; it begins in lower case unless `bare`.

    `is_with_remedy` adds what to do about an inconclusive one. `density_range` holds the contests, ascending in
    density, `measure` is a key of MEASURES.
    """
    first, where = density_range[0], _density_condition(density_range)
    if first.ratio is None:
        text = f"{where} {_one_sided_sentence(first, measure)}"
    elif first.verdict in ("sparse", "dense"):
        text = f"{where} {_winner_sentence(density_range, measure)}"
    else:
        text = f"{where} {_inconclusive_sentence(first, measure, len(density_range) > 1, is_with_remedy)}"
    return text if bare else text[0].lower() + text[1:]


def _density_condition(density_range: Sequence[Contest]) -> str:
    """Return "At 1 % density", "From 1 to 3 % density", or "At the density of the data" if unknown."""
    densities = [one.density for one in density_range if one.density is not None]
    if not densities:
        return "At the density of the data"
    if len(densities) == 1:
        return f"At {formatting.format_density(densities[0])} density"
    return f"From {formatting.format_span(densities[0], densities[-1], formatting.format_density)} density"


def density_suffix(contest: Contest) -> str:
    """Return " at 1 %" with the density of a contest, to append to a clause; "" if it is unknown."""
    return f" at {formatting.format_density(contest.density)}" if contest.density else ""


def _winner_sentence(density_range: Sequence[Contest], measure: str) -> str:
    """Return the clause on who wins over a range of densities, by which factor, and which others are equivalent.

    `density_range` holds the contests of the range, ascending in density, `measure` is a key of MEASURES.
    """
    first, last = density_range[0], density_range[-1]
    sparse, dense = map(formatting.name_configuration, first.known[:2])
    if first.verdict == "dense":
        return f"{dense} beats the best sparse, {sparse}: {_gain_clause(first, last, measure)}."
    return f"{sparse} beats {dense}: {_gain_clause(first, last, measure)}{_equivalent_sentence(density_range)}."


def _gain_clause(first: Contest, last: Contest, measure: str) -> str:
    """Return values and factor of the winner in contest `first`, and the factor in `last` if that is another one."""
    sparse, dense, _ = first.known
    values = [formatting.format_measured_quantity(row, measure) for row in (sparse, dense)]
    less, more = values if first.verdict == "sparse" else values[::-1]
    peak = "at its peak on the device" if sparse["device"] == "cuda" else "at its peak (data included)"
    what = "a step" if measure.startswith("seconds") else peak
    instead = f" instead of {more}" if more else ""
    lead = f"{less} {what}{instead}, " if less else ""
    gain = f"{lead}{format_factor_with_interval(first)} {MEASURES[measure][2]}{bound_reason(first)}"
    return (
        gain
        if first is last
        else f"{gain},{density_suffix(first)}; {format_factor_with_interval(last)}{density_suffix(last)}"
    )


def _equivalent_sentence(density_range: Sequence[Contest]) -> str:
    """Return "; NAME cannot be distinguished from it" for configurations equivalent at all densities of the range."""
    lines = [{formatting.name_configuration(row) for row in one.level} for one in density_range]
    level = sorted(set.intersection(*lines))
    if not level:
        return ""
    if len(level) == 1:
        return f"; {level[0]} cannot be distinguished from it"
    return f"; {len(level)} other sparse configurations cannot be distinguished from it"


def _inconclusive_sentence(contest: Contest, measure: str, several: bool, is_with_remedy: bool) -> str:
    """Return the clause on a contest without a winner: how likely each side is, and both values.

    `several` says that it stands for a range of densities, so that its own density is given. `is_with_remedy` adds what
    to do about it.
    """
    sparse, dense, _ = contest.known
    quantities = (
        (row, formatting.format_measured_quantity(row, measure) or "was not measured") for row in (sparse, dense)
    )
    sides = " and ".join(
        f"{formatting.name_configuration(row)} {'' if said.startswith('was') else 'takes '}{said}"
        for row, said in quantities
    )
    here, there = (density_suffix(contest), " there") if several and contest.density else ("", "")
    is_open = contest.why and not contest.likely and measure.startswith("seconds") and is_with_remedy
    todo = f" To decide it: {contest.remedy}." if is_open else ""
    return f"{grade_comparison(contest, measure)}{here}: {sides}{there}.{todo}"


def _one_sided_sentence(contest: Contest, measure: str) -> str:
    """Return the clause on a contest without a ratio: which side ran, why the other did not, and what to do."""
    if contest.verdict == "sparse" and contest.sparse and contest.dense:
        takes = formatting.format_measured_quantity(contest.sparse, measure)
        more = f"; {formatting.name_configuration(contest.sparse)} takes {takes}" if takes else ""
        return f"only sparse runs: {failure_reason(contest.dense)}{more}."
    if contest.verdict == "dense" and contest.sparse:
        return f"only dense runs: {failure_reason(contest.sparse)}."
    if contest.why == NO_DENSE:
        return f"there is no dense baseline, so nothing can be said; {REMEDY[NO_DENSE]}."
    missing = next(
        (row for row in (contest.dense, contest.sparse) if row and row["status"] not in configurations.NUMBERED), None
    )
    reason = failure_reason(missing) if missing else contest.why
    return f"there is no comparison of {MEASURES[measure][0]}: {reason}. To decide it: {REMEDY[contest.why]}."


def failure_reason(row: Mapping[str, Any]) -> str:
    """Return why a record has no result, such as "dense needs 12 GB and the limit is 8 GB"."""
    need = (
        f"needs {formatting.format_bytes(row['bytes_needed'])}" if row["bytes_needed"] else f"ended as {row['status']}"
    )
    limit = (
        f" and the limit is {formatting.format_bytes(row['bytes_limit'])}"
        if row["bytes_needed"] and row["bytes_limit"]
        else ""
    )
    return f"{formatting.name_configuration(row)} {need}{limit}"
