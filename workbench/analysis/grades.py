"""Grades of an answer: one sentence of how much better a side is, how sure that is, and where it is known from.

From a ratio and its probability: faster, probably faster, no difference that matters, or inconclusive with what a wrong
choice would cost. Every page says a comparison in these words.
"""

import math
from dataclasses import dataclass
from typing import Any

from scipy import special

from workbench.analysis import formatting
from workbench.analysis.compare import BOUNDED, HOLDS_ONE, PREDICTED, Contest
from workbench.analysis.configurations import Record
from workbench.analysis.formatting import Ratio
from workbench.measure.posterior import SURE

# A sentence of advice, with the configurations that it rests on.


@dataclass(frozen=True)
class Statement:
    """A sentence, and the keys of the configurations whose rows it rests on."""

    text: str
    keys: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the sentence without its keys."""
        return self.text


def keys_of(*rows: Record | None) -> tuple[str, ...]:
    """Return the distinct `key` values of records, in order; None among `rows` is skipped."""
    return tuple(dict.fromkeys(row["key"] for row in rows if row))


BETTER = {"seconds_step": ("is", "faster"), "bytes_peak": ("needs", "less memory")}
"""How the better side is called in a measure: it "is 3 times faster", "needs 3 times less memory"."""
DISTURBED = "other programs were running"
KNOWN_MEMORY = 2.0
"""Upper over lower bound of a ratio of memories from which on nothing is said of the ratio."""
CUT = "was cut off when its time was out"
BY_SIZES = "predicted from the sizes, not measured"


def grade_comparison(contest: Contest, measure: str) -> str:
    """Return the clause that states what is known of a contest, such as "sparse is 3 times faster".

    `measure` is a key of BETTER. "" if the contest has no ratio.
    """
    if contest.ratio is None:
        return ""
    verb, better = BETTER[measure]
    side = contest.verdict if contest.verdict in ("sparse", "dense") else contest.likely
    if contest.verdict == "level":
        return f"no difference that matters ({format_interval(contest.ratio)})"
    if contest.verdict in ("sparse", "dense"):
        return f"{side} {verb} {format_factor_with_interval(contest)} {better}{bound_reason(contest)}"
    if contest.why != HOLDS_ONE:
        takes = "takes" if measure.startswith("seconds") else "needs"
        return f"dense {takes} {formatting.format_times(contest.ratio)} as much, but {contest.why}"
    if side:
        chance = f"{_value(contest.ratio)} times ({format_probability(contest.ratio.probability)})"
        return f"{side} {verb} probably {better}, {chance}{_reserve_of_prediction(contest)}"
    if not measure.startswith("seconds"):
        if contest.ratio.high < KNOWN_MEMORY * contest.ratio.low:
            return f"the two need about the same memory ({format_interval(contest.ratio)})"
        return "the difference in memory is smaller than the error with which memory is known"
    return f"inconclusive: dense takes {format_interval(contest.ratio)} times as long; {cost_clause('sparse', contest)}"


def cost_clause(side: str, contest: Contest) -> str:
    """Return the clause on the mean cost of choosing `side` in an inconclusive contest, as a factor of time."""
    cost = formatting.format_factor(max(expected_cost(side, contest.known[2]), 1.01), 2)
    return f"choosing {side} takes at most {cost} times as long on average{_reserve_of_prediction(contest)}"


def likely_factor(contest: Contest) -> str:
    """Return the likelier side's factor and probability, such as "1.3 times faster (86 %)"."""
    ratio = contest.known[2]
    return f"{_value(ratio)} times faster ({format_probability(ratio.probability)}){_reserve_of_prediction(contest)}"


def format_factor_with_interval(contest: Contest) -> str:
    """Return by which factor the better side is better, with its interval, or "at least 3 times" if only bounded."""
    ratio = contest.known[2]
    if contest.is_beside_others or contest.source == BOUNDED:
        least = ratio.low if ratio.value > 1 else 1 / ratio.high
        return f"at least {formatting.format_factor(least, 2)} times"
    return format_estimate(ratio)


def format_factor(contest: Contest) -> str:
    """Return by which factor the better side is better as a range, or "at least 3 times" if only bounded."""
    return format_factor_with_interval(contest) if bound_reason(contest) else formatting.format_gain(contest.known[2])


def bound_reason(contest: Contest) -> str:
    """Return why only a bound of the factor is known, such as " (dense was cut off ...)"; "" if it is known."""
    if contest.source == BOUNDED:
        return f" ({'dense' if contest.verdict == 'sparse' else 'sparse'} {CUT})"
    return _reserve_of_prediction(contest) or (f" ({DISTURBED})" if contest.is_beside_others else "")


def _reserve_of_prediction(contest: Contest) -> str:
    """Return " (predicted from the sizes, not measured)" if no round has both sides, else ""."""
    return (
        f" ({BY_SIZES})"
        if contest.source == PREDICTED and contest.ratio is not None and not contest.ratio.rounds
        else ""
    )


def format_estimate(ratio: Ratio) -> str:
    """Return a ratio as a factor above 1, with its 95 % interval unless that is narrow; the bound if it has only one.

    >>> format_estimate(Ratio(5.1, 3.6, 7.2)), format_estimate(Ratio(0.5, 0.49, 0.51))
    ('5.1 (95 %: 3.6 to 7.2) times', '2 times')
    >>> format_estimate(Ratio(33, 7.2, float("inf"))), format_estimate(Ratio(0.03, 0, 0.14))
    ('at least 7.2 times', 'at least 7.1 times')
    """
    ratio = ratio if ratio.value >= 1 else formatting.invert_ratio(ratio)
    if ratio.low > 0 and math.isinf(ratio.high):
        return f"at least {formatting.format_factor(ratio.low, 2)} times"
    if ratio.low <= 0 or math.isinf(ratio.high) or ratio.high < formatting.EQUIVALENCE_MARGIN * ratio.low:
        return f"{_value(ratio)} times"
    return f"{_value(ratio)} (95 %: {format_interval(ratio)}) times"


def _value(ratio: Ratio) -> str:
    """Return a ratio, inverted if below 1, with two significant digits."""
    return formatting.format_factor(max(ratio.value, 1 / ratio.value), 2)


def format_interval(ratio: Ratio) -> str:
    """Return both bounds of the interval of a ratio dense / sparse.

    >>> format_interval(Ratio(1.0, 0.948, 1.08))
    '0.95 to 1.1'
    """
    return formatting.format_span(ratio.low, ratio.high, lambda end: formatting.format_factor(end, 2))


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


def expected_cost(side: str, ratio: Ratio) -> float:
    """Return the expected time of `side` over that of the better side; 1.02 is 2 % lost.

    The ratio dense / sparse is taken as lognormal with its 95 % interval.
    """
    mean, spread = math.log(ratio.value), (math.log(ratio.high) - math.log(ratio.low)) / 2 / float(special.ndtri(SURE))
    mean = -mean if side == "sparse" else mean
    if spread == 0:
        return max(math.exp(mean), 1.0)
    worse = math.exp(mean + spread**2 / 2) * special.ndtr((mean + spread**2) / spread)
    return float(worse + special.ndtr(-mean / spread))
