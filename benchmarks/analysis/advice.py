"""Quality of advice: the time of what was recommended over the least time of a full sweep, compared with simpler rules.

Two numbers for each case. Of the choice between sparse and dense: the fastest configuration of the side that was
chosen, over the fastest of all. Of the whole configuration: the configuration that was chosen, over the fastest of all.
Configurations that train another model than dense count on neither side. A simpler rule is not judged by a case
in which its choice did not run; advice is, and takes as long as the slowest configuration that did.

A suite judges something only if always the same answer fails it: dense must win some cases, and others must be close.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pandas as pd

from benchmarks.analysis.bench import PerformanceTarget, geometric_mean
from workbench import settings
from workbench.analysis import formatting
from workbench.analysis.configurations import records
from workbench.measure.posterior import EQUIVALENCE_MARGIN

Record = Mapping[str, Any]
LINE = ("format", "storage", "engine", "gradient", "update", "execution", "serial")
STEPS = {"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard", "execution": "step"}
DENSE: tuple[Record, ...] = tuple(
    {**STEPS, "execution": execution, "storage": "same", "serial": False} for execution in ("epoch", "step")
)
"""What always dense trains with: the first of these that ran."""
SPARSE: tuple[Record, ...] = (
    {"format": "csr", "engine": "ours", "gradient": "row_sparse", "update": "lazy", "execution": "epoch"},
    {"format": "csr", "engine": "ours", "gradient": "row_sparse", "update": "exact", "execution": "epoch"},
    {"format": "csr", "engine": "ours", "gradient": "fused", "update": "lazy", "execution": "step"},
    {"format": "csr", "engine": "ours", "gradient": "fused", "update": "exact", "execution": "step"},
)
"""What always sparse trains with: the first of these that ran and trains the model that dense does."""
SIDE, WHOLE, MOST, SHARE = 1.02, 1.05, 1.25, 0.2
"""Wanted: geometric means of both numbers, none over the third, and at most that share of the sweep's time."""
CASES, WON_BY_DENSE, CLOSE, NEAR = 12, 4, 4, 1.5
"""Wanted of the suite: cases, those that dense wins, those whose sides are within the last factor of each other."""


@dataclass(frozen=True)
class Score:
    """Result of one rule in one case, as times of the least: its side, sparse or dense, and its whole choice.

    Both are None if the choice did not run.
    """

    case: str
    rule: str
    side: float | None
    whole: float | None


Rule = Callable[[Record, Sequence[Record]], Record | None]
"""`rule(case, other cases)` gives settings of the configuration that it chooses, None if no such configuration ran.

Cases of the same data are not among others.
"""


def newest_good_records(frame: pd.DataFrame) -> list[Record]:
    """Return the newest record of each case with status "ok" and at least one usable configuration time.

    `frame` holds advice records (`tables.ADVICE`), in the order written.
    """
    good = (row for row in records(frame) if row["status"] == "ok" and _that_ran(row))
    return list({row["case"]: row for row in good}.values())


def newest_failed_records(frame: pd.DataFrame) -> list[Record]:
    """Return the newest record of each case that has no good record.

    `frame` holds advice records (`tables.ADVICE`), in the order written.
    """
    good = {row["case"] for row in newest_good_records(frame)}
    return list({row["case"]: row for row in records(frame) if row["case"] not in good}.values())


def score_rules(frame: pd.DataFrame) -> list[Score]:
    """Return a `Score` for every rule in every case, cases in the order written.

    A rule gets as training cases only those on other data. `frame` holds advice records (`tables.ADVICE`), in the order
    written.
    """
    rows = newest_good_records(frame)
    return [
        _score(row, name, rule(row, [other for other in rows if other["data"] != row["data"]]))
        for row in rows
        for name, rule in RULES.items()
    ]


def _score(row: Record, name: str, chosen: Record | None) -> Score:
    """Return a rule's time over the least one in a case, for the chosen side and the chosen configuration.

    `chosen` are the settings that the rule chose, None for none. Both values are None if that configuration did not
    run; the advice is scored by the slowest one then. `row` is the record of the case, `name` the name of the rule.
    """
    able = _that_ran(row)
    ran = chosen is not None and any(matches_settings(configuration, chosen) for configuration in able)
    if chosen is None or not (ran or name == ADVICE):
        return Score(row["case"], name, None, None)
    least = min(configuration["seconds"] for configuration in able)
    side = min(
        configuration["seconds"]
        for configuration in _configurations_of_side(able, chosen["format"] == "dense") or [_slowest(able)]
    )
    return Score(row["case"], name, side / least, seconds_of(row, chosen) / least)


def matches_settings(configuration: Record, chosen: Record) -> bool:
    """Return whether a configuration equals `chosen` in the settings of LINE that `chosen` has.

    Unset ones have defaults.
    """
    return all(
        settings.value_or_default(name, configuration.get(name)) == settings.value_or_default(name, chosen[name])
        for name in LINE
        if name in chosen
    )


def dense_over_sparse_seconds(row: Record) -> float | None:
    """Return the time of the fastest dense over that of the fastest sparse configuration.

    None if one side did not run.
    """
    able = _that_ran(row)
    dense, sparse = (_configurations_of_side(able, is_dense) for is_dense in (True, False))
    if not dense or not sparse:
        return None
    return min(configuration["seconds"] for configuration in dense) / min(
        configuration["seconds"] for configuration in sparse
    )


def _that_ran(row: Record) -> list[Record]:
    """Return the configurations (`cells`) of a case with status "ok", a time, and the same model as dense."""
    return [
        configuration
        for configuration in row["cells"]
        if configuration["status"] == "ok" and configuration["seconds"] and configuration["is_faithful"]
    ]


def _configurations_of_side(able: Sequence[Record], is_dense: bool) -> list[Record]:
    """Return the configurations with format "dense" if `is_dense`, else the others."""
    return [configuration for configuration in able if (configuration["format"] == "dense") == is_dense]


def _slowest(able: Sequence[Record]) -> Record:
    """Return the configuration with the most seconds; ValueError if there is none."""
    return max(able, key=lambda configuration: configuration["seconds"])


def seconds_of(row: Record, chosen: Record) -> float:
    """Return the seconds per step of the configuration with the settings `chosen`, else of the slowest that ran."""
    able = _that_ran(row)
    return next((configuration for configuration in able if matches_settings(configuration, chosen)), _slowest(able))[
        "seconds"
    ]


def _first_able(row: Record, ways: Sequence[Record]) -> Record | None:
    """Return the first of the settings `ways` with which a configuration of the case ran; None if none did."""
    able = _that_ran(row)
    return next((way for way in ways if any(matches_settings(configuration, way) for configuration in able)), None)


def _sparse(row: Record, others: Sequence[Record]) -> Record | None:
    """Return the first of the settings SPARSE that ran in the case, or None; `others` is not used."""
    return _first_able(row, SPARSE)


def _dense(row: Record, others: Sequence[Record]) -> Record | None:
    """Return the first of the settings DENSE that ran in the case, or None; `others` is not used."""
    return _first_able(row, DENSE)


def _by_bytes(row: Record, others: Sequence[Record]) -> Record | None:
    """Return sparse settings if CSR takes fewer bytes than dense, else dense ones; None if they did not run.

    `row` is the record of a case; `others` is not used.
    """
    return _sparse(row, others) if row["bytes_csr"] < row["bytes_dense"] else _dense(row, others)


def _fitted(row: Record, others: Sequence[Record]) -> Record:
    """Return the settings chosen by a density threshold fitted to the `others`: sparse up to it, dense above.

    The threshold is 1, 0 or the geometric mean of neighbouring densities, whichever costs least over `others`; of equal
    ones the highest. Each side has its settings of least total time.
    """
    sparse, dense = (_best_of_all(others, is_dense) for is_dense in (False, True))
    sparse, dense = sparse or SPARSE[0], dense or DENSE[0]
    known = sorted({other["density"] for other in others})
    bounds = [1.0, *(math.sqrt(low * high) for low, high in pairwise(known)), 0.0]
    bound = min(sorted(bounds, reverse=True), key=lambda at: _cost(others, at, sparse, dense))
    return sparse if row["density"] <= bound else dense


def _cost(cases: Sequence[Record], bound: float, sparse: Record, dense: Record) -> float:
    """Return the sum of log seconds over `cases` if `sparse` is taken up to density `bound` and `dense` above it."""
    chosen = ((row, sparse if row["density"] <= bound else dense) for row in cases)
    return sum(math.log(seconds_of(row, configuration)) for row, configuration in chosen)


def _best_of_all(cases: Sequence[Record], is_dense: bool) -> Record | None:
    """Return the settings of a side with the least geometric mean time over `cases`; None if none ran."""
    able = [configuration for row in cases for configuration in _configurations_of_side(_that_ran(row), is_dense)]
    lines = {tuple(settings.value_or_default(name, configuration.get(name)) for name in LINE) for configuration in able}
    named = [dict(zip(LINE, line, strict=True)) for line in sorted(lines, key=str)]
    return min(named, key=lambda line: sum(math.log(seconds_of(row, line)) for row in cases), default=None)


ADVICE, ALWAYS_SPARSE, ALWAYS_DENSE = "advice", "always sparse", "always dense"
RULES: dict[str, Rule] = {
    ADVICE: lambda row, others: row["recommended"],
    ALWAYS_SPARSE: _sparse,
    ALWAYS_DENSE: _dense,
    "the bytes rule": _by_bytes,
    "a fitted density": _fitted,
}
"""The rules that are judged; all but advice know nothing of the machine, and the last is fitted on the other cases."""


def list_targets(frame: pd.DataFrame) -> list[PerformanceTarget]:
    """Return the targets of the advice, what each simpler rule reaches, then whether the cases can judge advice.

    `frame` holds advice records (`tables.ADVICE`), in the order written.
    """
    rows, found = newest_good_records(frame), score_rules(frame)
    if not rows:
        return [PerformanceTarget("advice", "", "not measured", None)]
    by_rule = {name: [score for score in found if score.rule == name] for name in RULES}
    sides, wholes, worst = _reached_by_rule(by_rule[ADVICE])
    share = [row["seconds_advice"] / row["seconds_sweep"] for row in rows]
    return [
        _mean_target("advice: sparse or dense, times the least, geometric mean", sides, SIDE),
        _mean_target("advice: whole configuration, geometric mean", wholes, WHOLE),
        PerformanceTarget("advice: worst case", f"≤ {MOST:g} x", f"{max(wholes):.3f} x: {worst}", max(wholes) <= MOST),
        PerformanceTarget(
            "time of the advice, of the sweep's", f"≤ {SHARE:.0%}", _span(share), max(share) <= SHARE + 0.005
        ),
        *(_rule_statement(name, by_rule[name]) for name in RULES if name != ADVICE),
        *_case_targets(rows),
    ]


def _reached_by_rule(own: Sequence[Score]) -> tuple[list[float], list[float], str]:
    """Return (side ratios, whole ratios, name of the case with the largest whole ratio) of scores that have both.

    `own` are the scores of one rule.
    """
    ran = [(score.side, score.whole, score.case) for score in own if score.side is not None and score.whole is not None]
    worst = max(ran, key=lambda one: one[1], default=(None, None, ""))[2]
    return [side for side, _, _ in ran], [whole for _, whole, _ in ran], worst


def _case_targets(rows: Sequence[Record]) -> list[PerformanceTarget]:
    """Return the targets of the suite itself: cases, cases that dense wins by 10 %, cases within a factor of 1.5.

    `rows` are the newest good records of the cases.
    """
    ratios = [ratio for row in rows if (ratio := dense_over_sparse_seconds(row)) is not None]
    won = sum(ratio < 1 / EQUIVALENCE_MARGIN for ratio in ratios)
    close = sum(1 / NEAR <= ratio <= NEAR for ratio in ratios)
    return [
        PerformanceTarget("cases", f"≥ {CASES}", str(len(rows)), len(rows) >= CASES),
        PerformanceTarget(
            f"cases that dense wins, by {EQUIVALENCE_MARGIN:g} x or more",
            f"≥ {WON_BY_DENSE}",
            str(won),
            won >= WON_BY_DENSE,
        ),
        PerformanceTarget(
            f"cases with the sides within {NEAR:g} x of each other", f"≥ {CLOSE}", str(close), close >= CLOSE
        ),
    ]


def _mean_target(what: str, values: Sequence[float], wanted: float) -> PerformanceTarget:
    """Return the target named `what` that the geometric mean of `values` (at least one) is at most `wanted`."""
    mean = geometric_mean(values)
    assert mean is not None, "there is a case"
    return PerformanceTarget(
        what, f"≤ {wanted:g} x", f"{mean:.3f} x over {formatting.format_count(len(values), 'case')}", mean <= wanted
    )


def _rule_statement(name: str, own: Sequence[Score]) -> PerformanceTarget:
    """Return what a simpler rule reaches, as a target; "always sparse" and "always dense" meet it by missing a target.

    `name` is the rule, `own` its scores in all cases; those in which its choice did not run are left out and counted.
    """
    sides, wholes, worst = _reached_by_rule(own)
    without = len(own) - len(sides)
    left_out = f"; {formatting.format_count(without, 'case')} left out, where it did not run" if without else ""
    if not sides:
        return PerformanceTarget(f"compared with: {name}", "", f"not measured{left_out}", None)
    side, whole = (geometric_mean(values) or 1.0 for values in (sides, wholes))
    text = f"side {side:.3f} x, whole {whole:.3f} x, worst {max(wholes):.2f} x: {worst}"
    misses = side > SIDE or whole > WHOLE or max(wholes) > MOST
    is_always = name in (ALWAYS_SPARSE, ALWAYS_DENSE)
    return PerformanceTarget(
        f"compared with: {name}", "misses one" if is_always else "", text + left_out, misses if is_always else None
    )


def _span(shares: Sequence[float]) -> str:
    """Return the range of fractions as text, such as "3% to 12%"."""
    return f"{min(shares):.0%} to {max(shares):.0%}"
