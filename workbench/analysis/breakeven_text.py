"""Sentences about break-evens."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from workbench.analysis import configurations, formatting
from workbench.analysis.compare import REMEDY, Contest
from workbench.analysis.grades import format_factor, format_probability

Record = Mapping[str, Any]


def breakeven_sentence(
    status: str, ends: tuple, rows: Sequence[Record], contests: Sequence[Contest], dense: Sequence[Record], measure: str
) -> str:
    """Return the sentence of one break-even: its status, (density, low, high), the rows and contests it was made of."""
    who, what = formatting.name_configuration(rows[0]), _measure_noun(measure)
    compared = [contest for contest in contests if contest.ratio is not None]
    against = baseline(compared)
    won, lost = ([one for one in compared if one.verdict == side] for side in ("sparse", "dense"))
    say = {
        "crossing": lambda: (
            f"{who} beats {against} in {what} up to {_format_density_of(won[-1])} density, "
            f"{baseline(lost[:1])} wins from {_format_density_of(lost[0])} on; "
            f"the break-even is {formatting.format_breakeven(*ends)}{inconclusive_clause(contests)}."
        ),
        "several": lambda: (
            f"{who}: the winner in {what} changes more than once, {_segments(compared)}; no one break-even."
        ),
        "sparse": lambda: f"{who} beats {against} in {what} {_one_sided_sentence(won, contests, -1)}.",
        "dense": lambda: f"{_capital(against)} beats {who} in {what} {_one_sided_sentence(lost, contests, 0)}.",
        "level": lambda: f"{who} and {against} are level in {what}, within 10 %, at every density, {_range(compared)}.",
        "inconclusive": lambda: (
            f"{who} and {against} have no certain winner in {what}{inconclusive_clause(contests)}{_remedy(contests)}."
        ),
        "feasible": lambda: (
            f"{who} wins by fitting: {_missing_requirements(dense)}; it ran up to "
            f"{formatting.format_density(ends[1])} density."
        ),
        "infeasible": lambda: f"{who} gave no result where dense did: {_reasons(rows)}.",
        "no_baseline": lambda: f"{who} has nothing to be compared with: {_reasons(dense) or 'dense was not measured'}.",
        "too_few": lambda: f"{who} was compared at one density, {_unique(compared[0])}; a break-even needs two.",
    }
    return say[status]()


def baseline(compared: Sequence[Contest]) -> str:
    """Return the name of the best dense configuration of some contests.

    "the best dense" if it changes from one to another.
    """
    names = {formatting.name_configuration(one.dense) for one in compared if one.dense is not None}
    return names.pop() if len(names) == 1 else "the best dense" if names else "dense"


def _format_density_of(contest: Contest) -> str:
    """Return the density of a contest as per cent; 0 % if it is unknown."""
    return formatting.format_density(contest.density or 0.0)


def _capital(text: str) -> str:
    """Return the text with its first letter in upper case."""
    return f"{text[:1].upper()}{text[1:]}"


def _measure_noun(measure: str) -> str:
    """Return "time" or "memory" for the column of a measure."""
    return "time" if measure.startswith("seconds") else "memory"


def _one_sided_sentence(won: Sequence[Contest], contests: Sequence[Contest], end: int) -> str:
    """Tell, where one side wins all that is decided, by how much at its ends, and what is not decided."""
    at = _format_density_of(won[end])
    if len(won) == len(contests):
        towards = "from" if end == 0 else "up to"
        return f"at every density measured, {towards} {at}, where it is {format_factor(won[end])} better"
    return (
        f"{format_density_ranges(won, contests)}, by {format_factor(won[end])} at {at}{inconclusive_clause(contests)}"
    )


def inconclusive_clause(contests: Sequence[Contest]) -> str:
    """Return the end of a sentence on the contests without a winner, with the reasons; "" if all have one."""
    return "".join(f"; {what} ({why})" if why else f"; {what}" for what, why in list_open_contests(contests))


def list_open_contests(contests: Sequence[Contest], digits: int = 3) -> list[tuple[str, str]]:
    """Return (clause, reason or "") of the contests without a winner: probable sides, inconclusive and level ones.

    Densities have so many digits.
    """
    clauses = [(clause, "") for clause in probable_clauses(contests, digits)]
    clauses += [
        (f"inconclusive {format_density_ranges(some, contests, digits)}", why)
        for why, some in group_inconclusive(contests).items()
    ]
    if level := [contest for contest in contests if contest.verdict == "level"]:
        clauses.append((f"level, within 10 %, {format_density_ranges(level, contests, digits)}", ""))
    return clauses


def probable_clauses(contests: Sequence[Contest], digits: int = 3) -> list[str]:
    """Return a clause for each side that is probably better at some densities, with the range of its probabilities.

    An example is "probably sparse from 1 to 3 % (86 to 97 %)".
    """
    clauses = []
    for side in ("sparse", "dense"):
        probable = [contest for contest in contests if contest.likely == side]
        ratios = [contest.ratio for contest in probable if contest.ratio is not None]
        if ratios:
            chances = sorted(max(ratio.probability, 1 - ratio.probability) for ratio in ratios)
            span = format_probability(chances[0])
            if format_probability(chances[-1]) != span:
                span = f"{span.removesuffix(' %')} to {format_probability(chances[-1])}"
            clauses.append(f"probably {side} {format_density_ranges(probable, contests, digits)} ({span})")
    return clauses


def group_inconclusive(contests: Sequence[Contest]) -> dict[str, list[Contest]]:
    """Group the contests in which no side wins and none is probably better by the reason."""
    groups: dict[str, list[Contest]] = {}
    for contest in contests:
        if contest.verdict == "inconclusive" and not contest.likely:
            groups.setdefault(contest.why, []).append(contest)
    return groups


def format_density_ranges(some: Sequence[Contest], contests: Sequence[Contest], digits: int = 3) -> str:
    """Return the densities of `some` of the `contests` in words, neighbours as a range, with so many digits.

    Examples: "from 0.1 to 3 % and at 30 %"; "at every density, from 0.1 to 30 %" where `some` are all.
    """
    if len(some) == len(contests) > 1 and contests[0].density:
        return f"at every density, {_range(contests, digits)}"
    chosen = {id(one) for one in some}
    stretches = [list(stretch) for is_in, stretch in groupby(contests, lambda one: id(one) in chosen) if is_in]
    return formatting.join_items(_range(stretch, digits) for stretch in stretches)


def _remedy(contests: Sequence[Contest]) -> str:
    """Return what to do about the most frequent reason why contests have no winner; "" if all have one."""
    reasons = Counter(contest.why for contest in contests if contest.why)
    return f". To decide it: {REMEDY[reasons.most_common(1)[0][0]]}" if reasons else ""


def _segments(compared: Sequence[Contest]) -> str:
    """Return the verdicts over the densities as text, consecutive equal ones joined."""
    parts: list[list[Contest]] = []
    for one in compared:
        if parts and parts[-1][0].verdict == one.verdict:
            parts[-1].append(one)
        else:
            parts.append([one])
    return formatting.join_items(f"{part[0].verdict} {_range(part)}" for part in parts)


def _range(contests: Sequence[Contest], digits: int = 3) -> str:
    """Return the densities of contests as text, "from 0.1 % to 3 %" or "at 1 %"."""
    low, high = contests[0].density, contests[-1].density
    if low is None or high is None or len(contests) == 1:
        return f"at {formatting.format_densities(contests, digits)}"
    return f"from {formatting.format_span(low, high, lambda density: formatting.format_density(density, digits))}"


def _missing_requirements(dense: Sequence[Record]) -> str:
    """Return what memory dense needs and what the limit is, if it did not fit."""
    unfit = [row for row in dense if row["status"] == "memory"]
    needed = max((row["bytes_needed"] for row in unfit if row["bytes_needed"]), default=None)
    limit = max((row["bytes_limit"] for row in unfit if row["bytes_limit"]), default=None)
    need = f"dense needs {formatting.format_bytes(needed)}" if needed else "dense did not fit in memory"
    return f"{need} and the limit is {formatting.format_bytes(limit)}" if limit else need


def _reasons(rows: Sequence[Record]) -> str:
    """Return the statuses of failed configurations with their reasons, joined by semicolons."""
    return "; ".join(f"{status}: {reason or 'no reason given'}" for status, reason in configurations.failures(rows))


def _unique(contest: Contest) -> str:
    """Return the verdict at the only density that was compared."""
    at = _format_density_of(contest)
    if contest.verdict in ("sparse", "dense"):
        return f"{at}: {contest.verdict} is {format_factor(contest)} better there"
    if contest.verdict == "level":
        return f"{at}: the two are level there, within 10 %"
    if contest.likely and contest.ratio is not None:
        return f"{at}: probably {contest.likely} there ({format_probability(contest.ratio.probability)})"
    return f"{at}: inconclusive there, {contest.why} ({REMEDY[contest.why]})"
