"""Quality against training seconds, of ours and of others: a frame with a row for each point of each training.

Its columns are `COLUMNS`: `who` trained, on which `side` (ours or competitor; or a level that is no training: a
reference is to be beaten, a bound cannot be), `repeat`, which pairs trainings of the same split of the data, the
`epoch`, training `seconds` so far, and the `value` of a `measure` on held-out rows. `points_of_trials` makes it of
trial rows; whoever trains another library adds its points.

>>> first = {"who": "als", "side": "competitor", "repeat": 0, "epoch": 1}
>>> points = [first | {"seconds": 2.0, "measure": "AUC", "value": 0.7}]
>>> frame(points)["value"].tolist()
[0.7]
"""

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from workbench import settings
from workbench.analysis import configurations, formatting
from workbench.analysis.compare import pair_with_dense_update
from workbench.analysis.intervals import number_or_none
from workbench.measure.posterior import Ratio
from workbench.measure.rounds import INTERIM_ANALYSES, Rounds, mean_interval, ratio_of, student_t

COLUMNS = {
    "who": "str",
    "side": "str",
    "repeat": "float64",
    "epoch": "float64",
    "seconds": "float64",
    "measure": "str",
    "value": "float64",
}
"""Types of the columns, also of no points."""
TRAINED = ("ours", "competitor")
"""Sides that are trainings."""
SMALLER = ("log loss", "RMSE", "MAE")
"""Measures of which less is better."""
NEAR = 0.01
"""A quality is reached where all but this share of it is."""
SAME = 1e-6
"""Differences below it are of rounding."""
FEW = "fewer than four repeats"
SWITCHES = {"serial": ("all threads", "1 thread")}
"""How False and True of a setting are called; by default "no NAME" and "NAME"."""
REPEATED = ("seed",)
"""Settings that tell repeats from each other, and no candidate from another."""


class End(NamedTuple):
    """End of a training: its seconds, and the value of the measure there."""

    seconds: float
    value: float


Ends = Mapping[int, End]
"""Ends of the trainings of one candidate, by repeat."""


def frame(points: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return points (mappings with exactly the keys of COLUMNS) as a typed DataFrame; ValueError for other keys."""
    points = list(points)
    for point in points:
        if set(point) != set(COLUMNS):
            raise ValueError(f"A point has {', '.join(sorted(point))}; it has {', '.join(sorted(COLUMNS))}.")
    return pd.DataFrame({name: [point[name] for point in points] for name in COLUMNS}).astype(COLUMNS)


def points_of_trials(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the curve points of trial records that trained epochs as a frame, side "ours", of the last round each.

    A candidate is named by its model, its update, and the settings in which records with that model differ.
    """
    rows = [
        row
        for row in configurations.records(configurations.pool_rounds(trials))
        if row["status"] in configurations.NUMBERED and row["quality_curve"]
    ]
    names = [
        name
        for name in (*configurations.LINE, *configurations.BEST, *configurations.GROUP)
        if name not in ("model", "rows_trained", "rows_total")
    ]
    points: list[dict[str, Any]] = []
    for row in rows:
        alike = [other for other in rows if other["model"] == row["model"]]
        varied = [name for name in names if len({other[name] for other in alike}) > 1 and name not in REPEATED]
        points += _points(row, _name(row, varied))
    return frame(points)


def _name(row: Mapping[str, Any], varied: list[str]) -> str:
    """Return the candidate's name: its model, its update, and the settings in `varied`, as "logistic, lazy update"."""
    texts = [] if row["update"] == "standard" and "update" not in varied else [f"{row['update']} update"]
    others = [name for name in varied if name not in ("update", "gradient")]
    say = {setting.column or setting.name: setting for setting in settings.SETTINGS}
    for name in others:
        spoken = say[name].say(row[name]) if name in say else str(row[name])
        if isinstance(row[name], bool | np.bool_):
            spoken = SWITCHES.get(name, (f"no {name}", name))[row[name]]
        texts.append(f"{name.replace('_', ' ')} {row[name]:g}" if isinstance(row[name], float) else spoken)
    return ", ".join([row["model"], *filter(None, dict.fromkeys(texts))])


def _points(row: Mapping[str, Any], who: str) -> Iterable[dict[str, Any]]:
    """Yield one mapping with the keys of COLUMNS per point and measure of `row["quality_curve"]`.

    `who` is the candidate.
    """
    for point in row["quality_curve"]:
        known = {
            "who": who,
            "side": "ours",
            "repeat": row["seed"],
            "epoch": point["epoch"],
            "seconds": point["seconds"],
        }
        for measure, value in point.items():
            if measure not in ("epoch", "seconds"):
                yield known | {"measure": measure, "value": value}


def list_measures(curves: pd.DataFrame) -> tuple[str, ...]:
    """Return the distinct measures that trainings (sides "ours" and "competitor") have, in the order of the frame."""
    return tuple(dict.fromkeys(curves.loc[curves["side"].isin(TRAINED), "measure"]))


def final_values(curves: pd.DataFrame, measure: str) -> Mapping[str, Ends]:
    """Return {candidate: {repeat: End(seconds, value) at the last epoch}} of the trainings that have `measure`.

    `curves` is a frame with the columns COLUMNS.
    """
    trained = curves[(curves["measure"] == measure) & curves["side"].isin(TRAINED)]
    last = trained.sort_values("epoch", kind="stable").groupby(["who", "repeat"], sort=False).last()
    found: dict[str, dict[int, End]] = {}
    for (who, repeat), row in last.iterrows():
        found.setdefault(who, {})[repeat] = End(float(row["seconds"]), float(row["value"]))
    return found


def best_candidate(curves: pd.DataFrame, measure: str, side: str | None = None) -> str:
    """Return the candidate with the best mean final value of `measure`.

    `side` ("ours" or "competitor") restricts the candidates. For a loss the smallest mean is best. Raises ValueError if
    there is no training with the measure.
    """
    of_side = curves if side is None else curves[curves["side"] == side]
    found = final_values(of_side, measure)
    if not found:
        raise ValueError(
            f"No training of {side or 'any side'} has the measure {measure!r}; there is: {list_measures(curves)}."
        )
    sign = -1 if measure in SMALLER else 1
    return max(found, key=lambda who: sign * statistics.fmean(end.value for end in found[who].values()))


def reference_levels(curves: pd.DataFrame, measure: str, side: str | None = None) -> dict[str, float]:
    """Return {name: mean value over repeats} of references and bounds (no trainings), of one `side` if given.

    `curves` is a frame with the columns COLUMNS, of which only `measure` is looked at.
    """
    of_measure = curves[(curves["measure"] == measure) & ~curves["side"].isin(TRAINED)]
    of_side = of_measure if side is None else of_measure[of_measure["side"] == side]
    return {str(who): float(value) for who, value in of_side.groupby("who", sort=False)["value"].mean().items()}


def seconds_to(curves: pd.DataFrame, who: str, measure: str, targets: Mapping[int, float]) -> dict[int, float]:
    """Return {repeat: seconds at which candidate `who` first reached `targets[repeat]`}.

    Repeats that never did are missing. `curves` is a frame with the columns COLUMNS; for a loss reaching means <=.
    """
    mine = curves[(curves["who"] == who) & (curves["measure"] == measure)]
    found = {}
    for repeat, points in mine.groupby("repeat"):
        if repeat in targets:
            good = points["value"] <= targets[repeat] if measure in SMALLER else points["value"] >= targets[repeat]
            if good.any():
                found[repeat] = float(points.loc[good, "seconds"].min())
    return found


def targets_by_repeat(first: Ends, second: Ends, measure: str) -> dict[int, float]:
    """Return {repeat: the worse of both final values, relaxed by 1 %} for the repeats that both candidates have.

    `first` and `second` are {repeat: End(seconds, value)} of two candidates.
    """
    worse, ease = (max, 1 + NEAR) if measure in SMALLER else (min, 1 - NEAR)
    return {repeat: ease * worse(first[repeat].value, second[repeat].value) for repeat in first.keys() & second.keys()}


def headline(curves: pd.DataFrame, measure: str) -> tuple[str, str]:
    """Return (short title, full sentence): the best final value, and the best of ours against the best competitor.

    Without a second candidate or without ours the sentence is on the best candidate alone. `curves` is a frame with the
    columns COLUMNS.
    """
    trained = curves[(curves["measure"] == measure) & curves["side"].isin(TRAINED)]
    found = final_values(trained, measure)
    first = best_candidate(trained, measure)
    title = f"{first} ends with the best {measure}, {_format_value(found[first])}"
    if len(found) < 2 or "ours" not in set(trained["side"]):
        return title, f"{first} ends with {measure} {_describe_end(found[first])}."
    leader = best_candidate(trained, measure, "ours")
    others = trained[trained["who"] != leader]
    second = best_candidate(others, measure, "competitor" if "competitor" in set(others["side"]) else "ours")
    return title, compare_paired_repeats(trained, measure, leader, second)


def sentences(curves: pd.DataFrame, measure: str) -> list[str]:
    """Return sentences: each candidate's final value, the references, then pairwise comparisons.

    The best of ours is compared with the others of ours, and each competitor with those of ours whose model begins its
    name, else with those of the best one's model. Below four repeats nothing is compared. `curves` is a frame with the
    columns COLUMNS.
    """
    found = final_values(curves, measure)
    if not found:
        return [f"No training has the measure {measure}."]
    said = [f"{who} ends with {measure} {_describe_end(found[who])}." for who in found]
    said += [
        f"{who}: {measure} {_exact(value)}, with no training."
        for who, value in reference_levels(curves, measure).items()
    ]
    if "ours" not in set(curves.loc[curves["measure"] == measure, "side"]):
        return said
    if min(map(len, found.values())) < INTERIM_ANALYSES[0]:
        return [*said, f"{formatting.capitalized(FEW)}: which is better, and which is faster, is inconclusive."]
    return said + [compare_paired_repeats(curves, measure, *pair) for pair in _pairs(curves, measure, found)]


def _pairs(curves: pd.DataFrame, measure: str, found: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield (first, second) candidates to compare: our best with our others, then ours with each competitor.

    `found` names the candidates with final values. A competitor is paired with ours of the model that its name begins
    with, else with ours of the best one's model.
    """
    leader, mine = best_candidate(curves, measure, "ours"), set(curves.loc[curves["side"] == "ours", "who"])
    ours = [who for who in found if who in mine]
    yield from ((leader, who) for who in ours if who != leader)
    for competitor in (who for who in found if who not in mine):
        alike = [who for who in ours if competitor.startswith(model_of(who))]
        yield from ((who, competitor) for who in alike or ours if alike or model_of(who) == model_of(leader))


def model_of(who: str) -> str:
    """Return the model of one of this project's candidates: its name up to the first comma.

    >>> model_of("bpr, lazy update")
    'bpr'
    """
    return who.partition(",")[0]


def _describe_end(of_who: Ends) -> str:
    """Return mean final value and seconds of a candidate over its repeats, such as "0.812 after 3.1 to 3.4 s".

    `of_who` is {repeat: End(seconds, value)}.
    """
    seconds = formatting.format_measured(
        *_interval([end.seconds for end in of_who.values()]), formatting.format_seconds
    )
    return f"{_format_value(of_who)} after {seconds}"


def _format_value(of_who: Ends) -> str:
    """Return the mean final value over repeats ({repeat: End}) as text, with the digits that the interval allows."""
    return formatting.format_measured(*_interval([end.value for end in of_who.values()]), _exact)


def _exact(value: float, digits: int = 3) -> str:
    """Return a number with `digits` significant digits, at least three."""
    return formatting.format_number(value, max(digits, 3))


def _interval(values: list[float]) -> tuple[float, float, float]:
    """Return (mean, lower, upper): geometric mean and 95 % interval, or mean and range if a value is not above 0."""
    if min(values) <= 0:
        return statistics.fmean(values), min(values), max(values)
    mean = mean_interval(values)
    return mean.value, mean.low, mean.high


def compare_paired_repeats(curves: pd.DataFrame, measure: str, first: str, second: str) -> str:
    """Return a sentence that compares two candidates over the repeats that both have, paired by repeat.

    It gives the difference of `measure` at the end, and the ratio of the times until each reaches the worse of both
    final values, less 1 %. `curves` is a frame with the columns COLUMNS; `first` and `second` name candidates.
    """
    found = final_values(curves, measure)
    least = targets_by_repeat(found[first], found[second], measure)
    times = [seconds_to(curves, who, measure, least) for who in (second, first)]
    ratio = ratio_of(_rounds(times[0]), _rounds(times[1]))
    parts = (_compare_quality(found, measure, first, second), _compare_time(ratio, first, second))
    return f"{first} and {second}: {'; '.join(parts)}."


def mean_difference(first: Ends, second: Ends) -> Ratio | None:
    """Return the mean final value of first - second over common repeats, with its 95 % interval; None below four.

    Student's t of the differences, which come from the same splits (Student 1908).
    """
    apart = np.array([first[repeat].value - second[repeat].value for repeat in sorted(first.keys() & second.keys())])
    if len(apart) < INTERIM_ANALYSES[0]:
        return None
    half = student_t(0.025, len(apart) - 1) * float(apart.std(ddof=1)) / len(apart) ** 0.5
    mean = float(apart.mean())
    return Ratio(mean, mean - half, mean + half, len(apart), 1)


def _rounds(values: Mapping[int, float]) -> Rounds:
    """Return the positive values keyed by ("repeats", repeat), the form in which `ratio_of` takes rounds."""
    return {("repeats", repeat): value for repeat, value in values.items() if value > 0}


def _compare_quality(found: Mapping[str, Ends], measure: str, first: str, second: str) -> str:
    """Return a clause on which candidate ends better in `measure` and by how much, or that it cannot be decided.

    `found` is {candidate: {repeat: End(seconds, value)}}; `first` and `second` name the two.
    """
    apart = mean_difference(found[first], found[second])
    if apart is None:
        return f"which ends with the better {measure} is inconclusive, {FEW} of both"
    if max(-apart.low, apart.high) < SAME:
        return f"their {measure} is the same"
    if apart.low <= 0 <= apart.high:
        return f"their {measure} cannot be distinguished ({formatting.format_span(apart.low, apart.high, _exact)})"
    is_first = (apart.value > 0) != (measure in SMALLER)
    low, high = sorted(map(abs, (apart.low, apart.high)))
    size = formatting.format_span(low, high, lambda end: formatting.format_number(end, 2))
    return f"{first if is_first else second} ends with the better {measure}, by {size}"


def _compare_time(ratio: Ratio | None, first: str, second: str) -> str:
    """Return a clause on which candidate reaches the common quality sooner and by which factor, if conclusive.

    `ratio` is time of second / time of first; None if unknown.
    """
    where = "to within 1 % of the lesser of both ends"
    if ratio is None or ratio.rounds < INTERIM_ANALYSES[0]:
        return f"the time {where} is inconclusive, {FEW}"
    if ratio.verdict in ("inconclusive", "level"):
        known = "equal (within 10 %)" if ratio.verdict == "level" else f"inconclusive, {formatting.format_times(ratio)}"
        return f"the time {where} is {known}"
    faster = first if ratio.verdict == "sparse" else second
    return f"{faster} is {formatting.format_gain(ratio)} faster {where}"


# Quality compared with speed: what a training came to on held-out rows, how long it took to a given one, what updates
# change.
#
# All of it is of rows that trained epochs. The target is what the slowest-moving honest side comes to: the dense
# baseline with a standard update, less 1 %; a configuration that never gets there has no time, however fast its steps
# are.


Record = Mapping[str, Any]


class Target(NamedTuple):
    """A value of a measure on held-out rows to be reached; of a loss less is better."""

    measure: str
    value: float

    @property
    def is_loss(self) -> bool:
        """Whether smaller values are better (the measure is one of SMALLER)."""
        return self.measure in SMALLER


class TrainedRecord(NamedTuple):
    """A row that trained epochs: seconds of training, quality at the end, seconds to the target, None if never."""

    row: Record
    seconds: float
    quality: float
    reached: float | None


class UpdateDifference(NamedTuple):
    """Difference of an update from the standard one: last loss and quality less those of the standard one."""

    row: Record
    standard: Record
    loss: float | None
    quality: float | None


def trained_records(rows: Iterable[Record]) -> list[TrainedRecord]:
    """Return the records with a quality and a training time, ascending in time, with their time to the common target.

    The target is `quality_target` of these records. O(rows * points). `rows` are pooled records of trainings.
    """
    able = [
        row for row in rows if row["status"] == "ok" and row["epochs"] and number_or_none(row["quality"]) is not None
    ]
    timed = [(row, seconds) for row in able if (seconds := _seconds(row)) is not None]
    target = quality_target(able)
    found = [TrainedRecord(row, seconds, float(row["quality"]), _reached(row, target)) for row, seconds in timed]
    return sorted(found, key=lambda one: one.seconds)


def _seconds(row: Record) -> float | None:
    """Return the training time (s): that of the last curve point, else epochs times `seconds_epoch`.

    None if unknown.
    """
    points = row["quality_curve"] or ()
    seconds = number_or_none(points[-1].get("seconds")) if points else None
    epoch = number_or_none(row["seconds_epoch"])
    return seconds if seconds is not None else None if epoch is None else epoch * row["epochs"]


def quality_target(rows: Sequence[Record]) -> Target | None:
    """Return the worst final value of the dense records, relaxed by 1 %, as the target; None if no dense one has it.

    The measure is a held-out loss if the curves have one, else the quality. `rows` are pooled records of trainings.
    """
    dense = [row for row in configurations.dense_rows(rows) if row["quality_curve"]]
    if not dense:
        return None
    last = dense[0]["quality_curve"][-1]
    measure = next((name for name in SMALLER if number_or_none(last.get(name)) is not None), dense[0]["quality_name"])
    ends = [value for row in dense if (value := number_or_none(row["quality_curve"][-1].get(measure))) is not None]
    if not ends or not measure:
        return None
    worst = max(ends) if measure in SMALLER else min(ends)
    return Target(measure, worst + NEAR * abs(worst) if measure in SMALLER else worst - NEAR * abs(worst))


def _reached(row: Record, target: Target | None) -> float | None:
    """Return the seconds of the first curve point that reaches the target; None if none does or there is no target.

    `row` is a record with `quality_curve`.
    """
    for point in (row["quality_curve"] or ()) if target else ():
        value = number_or_none(point.get(target.measure)) if target else None
        if value is not None and target and (value <= target.value if target.is_loss else value >= target.value):
            return number_or_none(point.get("seconds"))
    return None


def pareto_front(found: Sequence[TrainedRecord]) -> list[TrainedRecord]:
    """Return the records that no other one beats in both time and quality, ascending in time. O(n log n)."""
    best: list[TrainedRecord] = []
    for one in sorted(found, key=lambda one: (one.seconds, -one.quality)):
        if not best or one.quality > best[-1].quality:
            best.append(one)
    return best


def differences_from_dense_update(rows: Iterable[Record]) -> list[UpdateDifference]:
    """Return final loss and quality of each lazy or exact update minus those of the alike "standard" one.

    `rows` are pooled records of trainings.
    """
    return [
        UpdateDifference(
            row, fair, _difference_or_none(row, fair, "loss_last"), _difference_or_none(row, fair, "quality")
        )
        for row, fair in pair_with_dense_update(rows)
    ]


def _difference_or_none(row: Record, fair: Record, name: str) -> float | None:
    """Return row[name] - fair[name] as a float; None if either is None or NaN."""
    value, other = number_or_none(row[name]), number_or_none(fair[name])
    return None if value is None or other is None else value - other
