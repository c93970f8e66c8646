"""What a break-even says, in one sentence."""

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.analysis import cells, words
from workbench.analysis.compare import ratio
from workbench.analysis.intervals import interval_of

Row = Mapping[str, Any]


def of_breakeven(
    status: str, ends: tuple, rows: Sequence[Row], pairs: Sequence[Any], dense: Sequence[Row], measure: str
) -> str:
    """The sentence of one break-even: its status, (density, low, high), the rows and pairs it was made of."""
    who = words.line(rows[0])
    won = [pair for pair in pairs if pair.verdict != "undecided"]
    what = _what(measure)
    say = {
        "crossing": lambda: f"{who} beats dense in {what} below {_at(ends, pairs, measure)}, dense wins above.",
        "several": lambda: (
            f"{who}: the winner in {what} changes more than once, {_segments(pairs)}; no one break-even."
        ),
        "sparse": lambda: f"{who} beats dense in {what} {_where(won, pairs, 'up to', -1)}.",
        "dense": lambda: f"Dense beats {who} in {what} {_where(won, pairs, 'from', 0)}.",
        "undecided": lambda: f"{who} cannot be told from dense in {what} at any density measured, {_range(pairs)}.",
        "feasible": lambda: f"{who} wins by fitting: {_needs(dense)}; it ran up to {words.density(ends[1])} density.",
        "infeasible": lambda: f"{who} gave no result where dense did: {_reasons(rows)}.",
        "no_baseline": lambda: f"{who} has nothing to be compared with: {_reasons(dense) or 'dense was not measured'}.",
        "too_few": lambda: f"{who} was measured at one density, {_once(pairs[0], measure)}; a break-even needs two.",
    }
    return say[status]()


def _what(measure: str) -> str:
    return "time" if measure.startswith("seconds") else "memory"


def _where(won: Sequence[Any], pairs: Sequence[Any], towards: str, end: int) -> str:
    """Where one side wins all that is decided: the last density, by how much there, and what is undecided."""
    at = f"{towards} {words.density(won[end].density)}, where it is {_gain(won[end])} better"
    doubt = [words.density(pair.density) for pair in pairs if pair.verdict == "undecided"]
    return f"{at}; undecided at {words.join(doubt)}" if doubt else f"at every density measured, {at}"


def _at(ends: tuple, pairs: Sequence[Any], measure: str) -> str:
    density, low, high = ends
    text = f"{words.density(density)} density"
    if measure != "seconds_step" and all(
        _rounds(row, measure) < 2 for pair in pairs for row in (pair.sparse, pair.dense)
    ):
        why = interval_of(pairs[0].sparse, measure).why
        return f"{text} ({why}, so no interval)"
    if low is None and high is None:
        return f"{text} (the interval is wider than the densities measured)"
    if low is None:
        return f"{text} (95 % interval: below {words.density(high)})"
    if high is None:
        return f"{text} (95 % interval: above {words.density(low)})"
    return f"{text} (95 % interval {words.span(low, high, words.density)})"


def _rounds(row: Row, measure: str) -> int:
    return len((row.get("round_values") or {}).get(measure) or ())


def _segments(pairs: Sequence[Any]) -> str:
    parts: list[list[Any]] = []
    for pair in pairs:
        if parts and parts[-1][0].verdict == pair.verdict:
            parts[-1].append(pair)
        else:
            parts.append([pair])
    return words.join(f"{part[0].verdict} {_range(part)}" for part in parts)


def _range(pairs: Sequence[Any]) -> str:
    low, high = pairs[0].density, pairs[-1].density
    return f"at {words.density(low)}" if low == high else f"from {words.span(low, high, words.density)}"


def _gain(pair: Any) -> str:
    return ratio(pair.sparse, pair.dense, pair.measure).gain()


def _needs(dense: Sequence[Row]) -> str:
    unfit = [row for row in dense if row["status"] == "memory"]
    needed = max((row["bytes_needed"] for row in unfit if row["bytes_needed"]), default=None)
    limit = max((row["bytes_limit"] for row in unfit if row["bytes_limit"]), default=None)
    need = f"dense needs {words.bytes_(needed)}" if needed else "dense did not fit in memory"
    return f"{need} and the limit is {words.bytes_(limit)}" if limit else need


def _reasons(rows: Sequence[Row]) -> str:
    return "; ".join(f"{status}: {reason or 'no reason given'}" for status, reason in cells.failures(rows))


def _once(pair: Any, measure: str) -> str:
    winner = {"sparse": "sparse is better there", "dense": "dense is better there", "undecided": "undecided there"}
    return f"{words.density(pair.density)}: {winner[pair.verdict]}, {_gain(pair)}"
