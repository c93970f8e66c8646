"""Words of one contest: the better side, the factor with its interval and probability, or why there is none."""

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from workbench.analysis import configurations, formatting
from workbench.analysis.compare import BOUNDED, HOLDS_ONE, PREDICTED, Contest
from workbench.analysis.formatting import Ratio

MEASURES = {"seconds_step": ("time", "is", "faster"), "bytes_peak": ("memory", "needs", "less memory")}
"""What a measure is about, and how the better side is called: it "is 3 times faster", "needs 3 times less memory"."""
DISTURBED = "other programs were running"
CUT = "was cut off when its time was out"
BY_SIZES = "predicted from the sizes, not measured"


def verdict_of(contest: Contest) -> str:
    """Return the verdict as text: "sparse", "probably sparse (88 %)", "equal (within 10 %)", "not decided"."""
    if contest.verdict in ("sparse", "dense"):
        return contest.verdict
    if contest.likely and contest.ratio:
        return f"probably {contest.likely} ({format_probability(contest.ratio.probability)})"
    return "equal (within 10 %)" if contest.verdict == "level" else "not decided"


def verdict_with_factor(contest: Contest, measure: str) -> str:
    """Return the verdict with its factor, such as "sparse, 3 times faster"; `measure` is a key of MEASURES."""
    if contest.verdict not in ("sparse", "dense"):
        return verdict_of(contest)
    if contest.ratio is None:
        return f"{contest.verdict}, the other has none"
    return f"{contest.verdict}, {format_factor(contest)} {MEASURES[measure][2].removesuffix(' memory')}"


def verdict_ranges(contests: Sequence[Contest], digits: int = 3) -> str:
    """Return the verdicts over ascending densities, such as "sparse from 0.1 to 3 %, dense from 10 to 30 %"."""
    parts = []
    for verdict, some in groupby(contests, key=lambda one: verdict_of(one).partition(" (")[0]):
        parts.append(f"{verdict} {_density_range(list(some), digits)}")
    return ", ".join(parts)


def _density_range(contests: Sequence[Contest], digits: int) -> str:
    """Return the densities of ascending contests, such as "from 0.1 to 3 %" or "at 1 %"; at least one is needed."""
    low, high = contests[0].density, contests[-1].density
    if low is None or high is None or len(contests) == 1:
        return f"at {formatting.format_densities(contests, digits)}"
    return f"from {formatting.format_span(low, high, lambda density: formatting.format_density(density, digits))}"


def chart_title(contests: Sequence[Contest], measure: str) -> str:
    """Return the title of a chart of contests over densities: which side is better where."""
    name, _, better = MEASURES[measure]
    if not any(contest.ratio for contest in contests):
        return f"No comparison of {name}: {next((one.why for one in contests if one.why), 'a side has no result')}"
    return f"{formatting.capitalized(better)}: {verdict_ranges(contests, 2)}"


def failure_reason(row: Mapping[str, Any]) -> str:
    """Return why a record has no result, such as "it needs 12 GB and the limit is 8 GB"."""
    if not row["bytes_needed"]:
        return f"it ended as {row['status']}"
    limit = f" and the limit is {formatting.format_bytes(row['bytes_limit'])}" if row["bytes_limit"] else ""
    return f"it needs {formatting.format_bytes(row['bytes_needed'])}{limit}"


def format_factor_with_interval(contest: Contest) -> str:
    """Return by which factor the better side is better, with its interval, or "at least 3 times" if only bounded."""
    ratio = contest.known[2]
    if contest.is_beside_others or contest.source == BOUNDED:
        return f"at least {formatting.format_factor(least_factor(contest), 2)} times"
    return format_estimate(ratio)


def least_factor(contest: Contest) -> float:
    """Return the lower bound of the factor by which the better side is better; below 1 the other may be better."""
    ratio = contest.known[2]
    return ratio.low if ratio.value > 1 else 1 / ratio.high


def format_factor(contest: Contest) -> str:
    """Return by which factor the better side is better as a range, or "at least 3 times" if only bounded."""
    return format_factor_with_interval(contest) if bound_reason(contest) else formatting.format_gain(contest.known[2])


def bound_reason(contest: Contest) -> str:
    """Return why only a bound of the factor is known, such as "dense was cut off ..."; "" if it is known."""
    if contest.source == BOUNDED:
        return f"{'dense' if contest.verdict == 'sparse' else 'sparse'} {CUT}"
    if contest.source == PREDICTED and contest.ratio is not None and not contest.ratio.rounds:
        return BY_SIZES
    return DISTURBED if contest.is_beside_others else ""


def contest_clause(contest: Contest, better: str) -> str:
    """Return what is known of the ratio of a contest, without naming its sides' values.

    `better` is what the winner is, such as "faster". Examples: "8 times faster; 95 %: 7 to 9", "either may be faster:
    sparse up to 5.9 times, dense up to 2.2 times".
    """
    if contest.ratio is None:
        return ""
    low, high = contest.ratio.low, contest.ratio.high
    is_bound = contest.is_beside_others or contest.source == BOUNDED
    if contest.verdict in ("sparse", "dense") or (contest.likely and not (is_bound and least_factor(contest) < 1)):
        factor, _, interval = format_factor_with_interval(contest).partition("; ")
        parts = [f"{factor} {better}", interval, bound_reason(contest)]
    elif contest.verdict == "level":
        parts = [f"no difference that matters; 95 %: {format_interval(contest.ratio)}"]
    elif contest.why != HOLDS_ONE:
        parts = [f"not decided: {contest.why}"]
    else:
        most = [formatting.format_factor(factor, 2) for factor in (high, 1 / low if low else math.inf)]
        parts = [f"either may be {better}: sparse up to {most[0]} times, dense up to {most[1]} times"]
        parts.append(bound_reason(contest))
    return "; ".join(filter(None, parts))


def format_estimate(ratio: Ratio) -> str:
    """Return a ratio as a factor above 1, with its 95 % interval unless that is narrow; the bound if it has only one.

    >>> format_estimate(Ratio(5.1, 3.6, 7.2)), format_estimate(Ratio(0.5, 0.49, 0.51))
    ('5.1 times; 95 %: 3.6 to 7.2', '2 times')
    >>> format_estimate(Ratio(33, 7.2, float("inf"))), format_estimate(Ratio(0.03, 0, 0.14))
    ('at least 7.2 times', 'at least 7.1 times')
    """
    ratio = ratio if ratio.value >= 1 else formatting.invert_ratio(ratio)
    if ratio.low > 0 and math.isinf(ratio.high):
        return f"at least {formatting.format_factor(ratio.low, 2)} times"
    value = f"{formatting.format_factor(ratio.value, 2)} times"
    if ratio.low <= 0 or math.isinf(ratio.high) or ratio.high < formatting.EQUIVALENCE_MARGIN * ratio.low:
        return value
    return f"{value}; 95 %: {format_interval(ratio)}"


def format_interval(ratio: Ratio) -> str:
    """Return both bounds of the interval of a ratio dense / sparse.

    >>> format_interval(Ratio(1.0, 0.948, 1.08))
    '0.95 to 1.1'
    """
    return formatting.format_span(ratio.low, ratio.high, lambda end: formatting.format_factor(end, 2))


def format_ratio(contest: Contest) -> str:
    """Return the interval of dense / sparse for a narrow column: "3.1 to 4", "≥ 4.4", or the side that has a result."""
    ratio = contest.ratio
    if ratio is None:
        return verdict_of(contest)
    is_bound = contest.verdict in ("sparse", "dense") and (contest.is_beside_others or contest.source == BOUNDED)
    if math.isinf(ratio.high) or (is_bound and ratio.value > 1):
        return f"≥ {formatting.format_factor(ratio.low, 2)}"
    if ratio.low <= 0 or is_bound:
        return f"≤ {formatting.format_factor(ratio.high, 2)}"
    return format_interval(ratio)


def format_probability(probability: float) -> str:
    """Return the probability of the likelier side in whole per cent, at most "99 %".

    Values below 0.5 are complemented.
    """
    return f"{min(math.floor(100 * max(probability, 1 - probability) + 0.5), 99)} %"


def comparison_facts(contest: Contest) -> dict[str, Any]:
    """Return the answer of a comparison for programs, as a dict with the keys explained here.

    `side` is sparse, dense, either (no difference that matters) or unknown, the likelier one if none is sure; `ratio`
    with `low` and `high`, its 95 % interval, is the time of dense over that of sparse, None if unknown; `probability`
    is that of the side being the faster one; `source` is measured, bounded or predicted.
    """
    side = contest.likely or {"level": "either", "inconclusive": "unknown"}.get(contest.verdict, contest.verdict)
    ratio = contest.ratio
    names = {"ratio": "value", "low": "low", "high": "high"}
    known = {name: _finite(getattr(ratio, column)) if ratio else None for name, column in names.items()}
    probability = None if ratio is None or side not in ("sparse", "dense") else ratio.probability
    if probability is not None and side == "dense":
        probability = 1 - probability
    return {"side": side, **known, "probability": probability, "source": contest.source}


def _finite(value: float) -> float | None:
    """Return the value, or None if it is infinite or NaN."""
    return value if math.isfinite(value) else None


def missing_reason(row: configurations.Record) -> str:
    """Return why a record has no number, such as "no memory: needs 12 GB" or "none: timeout"."""
    if row["bytes_needed"]:
        return f"no memory: needs {formatting.format_bytes(row['bytes_needed'], 2)}"
    if row["status"] == configurations.UNMEASURED:
        return configurations.status_text(row["status"])
    return "disturbed" if row["status"] == "disturbed" else f"none: {row['status']}"
