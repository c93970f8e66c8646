"""Sparse against dense at one density: the best of each side, their ratio with its probability, and where it is from.

Time is judged by the posterior of all rounds (`measure.posterior`), of which disturbed ones count less. Memory is
arithmetic, which the measured peak confirms: it varies little, and one trial is enough.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

from workbench.analysis import configurations
from workbench.analysis.configurations import line_key
from workbench.analysis.estimates import PREDICTION, posterior_of
from workbench.analysis.intervals import COMPUTED, Interval, interval_of, number_or_none, trials_of
from workbench.measure.posterior import EQUIVALENCE_MARGIN, LIKELY, Ratio, posterior
from workbench.measure.rounds import share_a_run

Record = Mapping[str, Any]

HOLDS_ONE = "neither is significantly better"
PARTLY = "a configuration that may be better was not measured here"
NO_DENSE = "dense was not measured"
NO_SPARSE = "no sparse configuration was measured"
WORSE = "every sparse configuration trained a worse model"
NO_RESULT = "a side has no result"
APART = "no run has both"
REMEDY = {
    HOLDS_ONE: "more rounds, or a quieter machine, detect smaller differences",
    PARTLY: "measure all configurations at this density",
    NO_DENSE: "measure dense for the same configurations",
    NO_SPARSE: "measure a sparse format for the same configurations",
    WORSE: "measure a standard or an exact update",
    NO_RESULT: "see the reasons of the configurations without a result",
    APART: "measure both in one run",
}
"""Why a contest is inconclusive, and what to do about it."""
LARGER_BUDGET = "a larger budget, or the same one again: compiled code is kept, and trials of both sides have to end"
"""Remedy for a comparison of predictions, of which no trial ended."""
MEASURED, BOUNDED, PREDICTED = "measured", "bounded", "predicted"
"""Where an answer is from: trials of both sides, a side that did not fit or was cut off, or a model of the costs."""


class Contest(NamedTuple):
    """Comparison of the best sparse with the best dense record at one density, in one measure.

    `verdict` is sparse, dense, level (within 10 %) or inconclusive; `ratio` is dense / sparse, None if a side has no
    number; `why` is a key of REMEDY if the verdict is inconclusive, else ""; `level` lists the other sparse records
    that win and cannot be distinguished from the named one; `source` is MEASURED, BOUNDED or PREDICTED.
    """

    density: float | None
    sparse: Record | None
    dense: Record | None
    verdict: str
    ratio: Ratio | None = None
    why: str = ""
    level: tuple[Record, ...] = ()
    source: str = MEASURED

    @property
    def likely(self) -> str:
        """The probably better side, "sparse" or "dense", of an inconclusive contest (probability >= 0.8).

        "" if neither.
        """
        if self.verdict != "inconclusive" or self.ratio is None or self.why != HOLDS_ONE:
            return ""
        probability = self.ratio.probability
        return "sparse" if probability >= LIKELY else "dense" if probability <= 1 - LIKELY else ""

    @property
    def asked_density(self) -> float | None:
        """The requested density (None is the data's own), or the measured one without records."""
        row = self.sparse or self.dense
        return row["density"] if row else self.density

    @property
    def remedy(self) -> str:
        """What to do to get a winner, such as "measure both in one run"; "" if there is one."""
        is_unmeasured = self.source == PREDICTED and self.ratio is not None and self.ratio.rounds == 0
        return LARGER_BUDGET if self.why == HOLDS_ONE and is_unmeasured else REMEDY.get(self.why, "")

    @property
    def is_beside_others(self) -> bool:
        """Whether other programs ran in every round with both sides, so that only a bound of the factor is known."""
        return self.ratio is not None and 0 < self.ratio.rounds == self.ratio.disturbed

    @property
    def sides(self) -> tuple[Record, Record]:
        """(sparse record, dense record); ValueError if either is None."""
        if self.sparse is None or self.dense is None:
            raise ValueError(f"A side of the contest at density {self.density} has no record ({self.why}).")
        return self.sparse, self.dense

    @property
    def known(self) -> tuple[Record, Record, Ratio]:
        """(sparse record, dense record, ratio); ValueError if any is None."""
        if self.sparse is None or self.dense is None or self.ratio is None:
            raise ValueError(f"A side of the contest at density {self.density} has no number ({self.why}).")
        return self.sparse, self.dense, self.ratio

    @property
    def minimum_detectable_ratio(self) -> float | None:
        """Smallest factor between both sides that these rounds could have detected; None if unknown or infinite."""
        return (
            self.ratio.minimum_detectable_ratio
            if self.ratio is not None and math.isfinite(self.ratio.minimum_detectable_ratio)
            else None
        )


def contests(rows: Iterable[dict[str, Any]], measure: str) -> list[Contest]:
    """Compare the best eligible sparse record of a group with the best dense one at each density, in ascending order.

    `rows` are pooled records (`pool_rounds`), `measure` a column of seconds or bytes. Records that trained another
    model than dense (`barred_of_group`) may not win. No side wins if only some configurations of the other were
    measured, as at densities that were added around a break-even, and an unmeasured one may be faster. If several
    configurations win equally at a density, the configuration that wins at most densities is named. All texts, charts
    and tables take their verdicts and ratios from here. O(rows * rounds).
    """
    return list(contests_of_group(configurations.Group({}, "", list(rows)), measure))


@configurations.once_per_group
def worse_of_group(group: configurations.Group) -> frozenset[int]:
    """Return the id() of each record of a group that trained a worse model (`trained_worse`)."""
    return frozenset(id(row) for row, _ in trained_worse(group.rows))


@configurations.once_per_group
def barred_of_group(group: configurations.Group) -> frozenset[int]:
    """Return the id() of each record of a group that may not win, since it trains another model than dense.

    It trained a worse one, or is a lazy update of which the group has an exact one.
    """
    exact = {line_key({**row, "update": "lazy"}) for row in group.rows if row["update"] == "exact"}
    return worse_of_group(group) | {id(row) for row in group.rows if row["update"] == "lazy" and line_key(row) in exact}


@configurations.once_per_group
def contests_of_group(group: configurations.Group, measure: str) -> tuple[Contest, ...]:
    """Return the `contests` of the records of a group in `measure`, a column of seconds or bytes."""
    rows, barred = group.rows, barred_of_group(group)
    met = [_compare_without_other_models(at, barred, measure) for at in configurations.by_density(rows).values()]
    wins = Counter(
        line for contest, _ in met for line in {line_key(row) for row in (contest.sparse, *contest.level) if row}
    )
    named = [_with_most_frequent_winner(contest, ratios, wins) for contest, ratios in met]
    able = [row for row in rows if id(row) not in barred]
    complete = (_inconclusive_if_incomplete(one, able, measure) for one in named)
    return tuple(sorted(complete, key=lambda one: one.density or 0.0))


def _inconclusive_if_incomplete(found: Contest, rows: Sequence[Record], measure: str) -> Contest:
    """Return the contest, made inconclusive if the losing side has an unmeasured configuration that may win.

    A configuration may win if, at the nearest density where it was measured, neither the other side nor its own side
    was significantly better. `rows` are the eligible records of all densities.
    """
    row = found.sparse or found.dense
    if found.verdict == "inconclusive" or row is None or not found.density:
        return found
    here = {line_key(other) for other in rows if other["density"] == row["density"]}
    others = (other for other in rows if found.verdict != ("dense" if configurations.is_dense(other) else "sparse"))
    absent = {line for other in others if (line := line_key(other)) not in here}
    are_beaten = all(_lost_at_nearest_density(line, rows, found.density, measure) for line in absent)
    return found if are_beaten else found._replace(verdict="inconclusive", why=PARTLY, level=())


def _lost_at_nearest_density(line: tuple, rows: Sequence[Record], density: float, measure: str) -> bool:
    """Return whether a configuration lost at the density nearest (in log) to `density` at which it was measured.

    It lost if another configuration of its own side, or the other side, is significantly better there. `line` are its
    identifying settings.
    """
    own = [row for row in rows if line_key(row) == line]
    near = min(own, key=lambda row: abs(math.log((configurations.density_of(row) or density) / density)))["density"]
    there = [row for row in rows if row["density"] == near]
    mine = [row for row in own if row["density"] == near]
    side, other = ("dense", "sparse") if configurations.is_dense(mine[0]) else ("sparse", "dense")
    if not any(line_key(row) == line for row in undominated_records(there, measure, side)):
        return True
    met = {"sparse": undominated_records(there, measure), "dense": configurations.dense_rows(there)} | {side: mine}
    return compare_best(met["sparse"], met["dense"], measure).verdict == other


def undominated_records(rows: Iterable[Record], measure: str, side: str = "sparse") -> list[Record]:
    """Return the records of `side` at one density that are not significantly worse in `measure` than the best one.

    Records without a number in the measure are left out; smaller is better. O(rows * rounds).
    """
    own = [row for row in rows if configurations.is_dense(row) == (side == "dense")]
    if measure.startswith("seconds"):
        found = posterior_of(own, measure)
        best = found.best()
        return [own[k] for k in found.names if best is not None and (k == best or found.ratio(k, best).low <= 1)]
    sizes = [(row, size) for row in own if row["status"] in configurations.NUMBERED and (size := _size(row, measure))]
    least = min((size.high for _, size in sizes), default=0.0)
    return [row for row, size in sizes if size.low <= least]


def compare_best(sparse: Sequence[Record], dense: Sequence[Record], measure: str) -> Contest:
    """Compare the best of some sparse records with the best dense one at one density; smaller values are better.

    The best record of a side has the least expected loss. Every text and chart that compares these two records shows
    this ratio. A side that did not fit in memory loses to a side that ran.
    """
    return _compare_lines(sparse, dense, measure)[0]


def contest_verdict(sparse_row: Record, dense_row: Record, measure: str) -> str:
    """Return the verdict on two records in `measure`: "sparse", "dense", "level" or "inconclusive".

    Smaller is better.
    """
    return compare_best([sparse_row], [dense_row], measure).verdict


def _compare_without_other_models(
    at: Sequence[Record], barred: Set[int], measure: str
) -> tuple[Contest, dict[tuple, Ratio]]:
    """Return (contest, ratios by configuration) of the records at one density, without sparse ones that may not win.

    `barred` holds the id() of these records. If no sparse one is left, the contest is inconclusive with the reason
    WORSE.
    """
    sparse = [row for row in at if not configurations.is_dense(row)]
    found, ratios = _compare_lines(
        [row for row in sparse if id(row) not in barred], configurations.dense_rows(at), measure
    )
    return (found._replace(why=WORSE) if found.why == NO_SPARSE and sparse else found), ratios


def _compare_lines(
    sparse: Sequence[Record], dense: Sequence[Record], measure: str
) -> tuple[Contest, dict[tuple, Ratio]]:
    """Return (contest, {configuration: ratio dense / sparse}) of the best records; ratios only of those it names.

    A configuration is the tuple of its settings (`line_key`). The density is measured if known, else the requested one.
    """
    judge = _compare_times if measure.startswith("seconds") else _compare_memory
    found, ratios = judge(sparse, dense, measure)
    densities = (configurations.density_of(row) for row in (*sparse, *dense) if row["density_measured"] is not None)
    asked = next((row["density"] for row in (*sparse, *dense)), None)
    return found._replace(density=next(densities, asked)), ratios


def _with_most_frequent_winner(found: Contest, ratios: Mapping[tuple, Ratio], wins: Mapping[tuple, int]) -> Contest:
    """Return the contest with another, equally good sparse record if its configuration wins at more densities.

    `wins` counts wins by configuration, `ratios` has dense / sparse of the candidates; "equally good" is within 10 %.
    """
    if not found.level or found.sparse is None:
        return found
    least = ratios[line_key(found.sparse)].value / EQUIVALENCE_MARGIN
    alike = [row for row in (found.sparse, *found.level) if ratios[line_key(row)].value >= least]
    sparse = max(alike, key=lambda row: wins[line_key(row)])
    others = tuple(row for row in (found.sparse, *found.level) if row is not sparse)
    return found._replace(sparse=sparse, ratio=ratios[line_key(sparse)], level=others)


def _compare_times(
    sparse: Sequence[Record], dense: Sequence[Record], measure: str
) -> tuple[Contest, dict[tuple, Ratio]]:
    """Return (contest, {configuration: ratio}) in a column of seconds, by least expected loss of each side.

    Ratios are given only if sparse wins, for the named record and those not significantly slower. A side without times
    is judged by a bound or a prediction; two sides without a common run stay inconclusive. `sparse` and `dense` are the
    records at one density; above 1 the ratio dense / sparse means that sparse is faster.
    """
    rows = [*sparse, *dense]
    found = posterior_of(rows, measure)
    first, against = (
        found.best([k for k in found.names if (k < len(sparse)) == is_sparse]) for is_sparse in (True, False)
    )
    best = _most_informative(sparse) if first is None else rows[first]
    base = _most_informative(dense) if against is None else rows[against]
    if first is None or against is None or best is None or base is None:
        return _of_unmeasured(sparse, dense, best, base, measure), {}
    if not share_a_run(found, first, against):
        return _without_ratio(best, base), {}
    sides = [k for k in found.names if k >= len(sparse)], [k for k in found.names if k < len(sparse)]
    judged = _with_ratio(best, base, found.ratio(against, first, *sides))
    if judged.verdict != "sparse":
        return judged, {}
    ratios = {line_key(best): judged.known[2]}
    level = []
    for k in found.names:
        if k >= len(sparse) or k == first or found.ratio(k, first).low > 1 or line_key(rows[k]) in ratios:
            continue
        ratio = found.ratio(against, k, *sides)
        if share_a_run(found, against, k) and ratio.verdict == "sparse":
            ratios[line_key(rows[k])] = ratio
            level.append(rows[k])
    return judged._replace(level=tuple(level)), ratios


def _of_unmeasured(
    sparse: Sequence[Record], dense: Sequence[Record], best: Record | None, base: Record | None, measure: str
) -> Contest:
    """Return a contest in time in which a side has no measured time.

    It is decided by a bound or by predicted times, else it has no ratio. `best` and `base` are the most informative
    records of `sparse` and `dense`, None if a side is empty.
    """
    if best is None or base is None:
        return _without_ratio(best, base)
    timed = [
        row if trials_of(row, measure, "") else fastest_predicted(side) for row, side in ((best, sparse), (base, dense))
    ]
    bound = bound_by_time(base, best, measure)
    first, against = timed
    if first is not None and against is not None and measure == "seconds_step":
        ratio = posterior((), {0: against[PREDICTION], 1: first[PREDICTION]}).ratio(0, 1)
        if bound is None or ratio.low > bound.low:
            why = HOLDS_ONE if ratio.verdict == "inconclusive" else ""
            return Contest(None, first, against, ratio.verdict, ratio, why, source=PREDICTED)
    if bound is not None:
        return Contest(None, best, base, bound.verdict, bound, source=BOUNDED)
    return _without_ratio(best, base)


def fastest_predicted(rows: Iterable[Record]) -> Record | None:
    """Return the record of least predicted step time among the unmeasured ones; None without a prediction."""
    able = [row for row in rows if row["status"] in UNTRIED and number_or_none(row.get(PREDICTION))]
    return min(able, key=lambda row: float(row[PREDICTION]), default=None)


def ratio_between(first: Record, second: Record, measure: str) -> Ratio | None:
    """Return the ratio first / second of two records in a column of seconds; disturbed rounds have less weight.

    None if one has no trial or they share no run. O(rounds^3).
    """
    found = posterior_of((first, second), measure)
    if len(found.names) < 2 or not share_a_run(found, 0, 1):
        return None
    return found.ratio(0, 1)


def bound_by_time(dense: Record, sparse: Record, measure: str) -> Ratio | None:
    """Return a bound of dense / sparse if one side was measured and the other ended before its first step.

    None if no bound follows or `measure` is not "seconds_step". The open end of the interval is inf or 0.
    """
    if measure != "seconds_step":
        return None
    if times := [trial.seconds for trial in trials_of(sparse, measure, "")]:
        least = max(_least_to_read(dense, sparse), _least_of_first_step(dense)) / max(times)
        return Ratio(least, least, math.inf, 0, 0, 1.0) if least > 1 else None
    if times := [trial.seconds for trial in trials_of(dense, measure, "")]:
        least = _least_of_first_step(sparse) / max(times)
        return Ratio(1 / least, 0.0, 1 / least, 0, 0, 0.0) if least > 1 else None
    return None


def _least_to_read(dense: Record, sparse: Record) -> float:
    """Return the least time (s) to read one batch of a timed-out dense record at 1e11 bytes/s.

    The result is 0.0 for any other record.
    """
    sizes = [dense[name] or sparse[name] for name in ("batch_rows", "features")]
    if dense["status"] != "timeout" or not all(sizes):
        return 0.0
    itemsize = 8 if dense["dtype"] == "float64" else 4
    return sizes[0] * sizes[1] * itemsize / BYTES_A_SECOND


def _least_of_first_step(row: Record) -> float:
    """Return half the time (s) of the first step of a record without a step time, a bound on later steps; else 0.0."""
    seconds = number_or_none(row.get("seconds_first_step"))
    was_ended = row["status"] in UNTRIED and not number_or_none(row.get("seconds_step"))
    return STEADY * seconds if was_ended and seconds else 0.0


UNTRIED = ("timeout", "stopped", "skipped")
"""Statuses of rows that were not measured, or not to the end, for want of time."""
SIZED = ((*configurations.NUMBERED, "timeout"), UNTRIED, ("memory",))
"""Statuses of rows with bytes, measured or by formula, the first of which that a side has stand for it."""
OFF, BYTES_OFF = 0.1, 8e6
"""How far a measured peak may be from the predicted bytes: a share and bytes."""
STEADY = 0.5
"""Share of the first step that a later one takes at least: memory is not touched for the first time."""
BYTES_A_SECOND = 1e11
"""More than the caches and the memory of a machine with few cores give; so bytes by it are a least time."""


def _with_ratio(sparse: Record, dense: Record, ratio: Ratio | None) -> Contest:
    """Return the contest of two records with a known ratio; its source is BOUNDED if either timed out."""
    assert ratio is not None, "both were measured in one run"
    source = BOUNDED if "timeout" in (sparse["status"], dense["status"]) else MEASURED
    why = HOLDS_ONE if ratio.verdict == "inconclusive" else ""
    return Contest(None, sparse, dense, ratio.verdict, ratio, why, source=source)


def _compare_memory(
    sparse: Sequence[Record], dense: Sequence[Record], measure: str
) -> tuple[Contest, dict[tuple, Ratio]]:
    """Return (contest, {configuration: ratio dense / sparse}) of the smallest sparse and dense records in bytes.

    Measured sizes of a side come first, then those of unmeasured records, then predicted ones. `level` of the contest
    lists sparse records within the interval of the smallest.
    """
    known_of = [
        next(filter(None, (_sizes(side, measure, statuses) for statuses in SIZED)), []) for side in (sparse, dense)
    ]
    if not all(known_of):
        best, base = (
            min(found, key=lambda pair: pair[1].value)[0] if found else _most_informative(side)
            for found, side in zip(known_of, (sparse, dense), strict=True)
        )
        return _without_ratio(best, base), {}
    best, size = min(known_of[0], key=lambda pair: pair[1].value)
    least = min(interval.high for _, interval in known_of[1])
    base, against = next(pair for pair in known_of[1] if pair[1].value <= least)  # alike, the first has the name
    found = _disjoint_intervals_ratio(best, size, base, against)
    ratios = {line_key(best): found.known[2]}
    level = []
    for row, interval in known_of[0]:
        other = _disjoint_intervals_ratio(row, interval, base, against)
        if interval.value <= size.high and other.verdict == found.verdict and line_key(row) not in ratios:
            ratios[line_key(row)] = other.known[2]
            level.append(row)
    return found._replace(level=tuple(level)), ratios


def _sizes(rows: Sequence[Record], measure: str, statuses: Sequence[str]) -> list[tuple[Record, Interval]]:
    """Return (record, interval of its bytes) for the records with one of `statuses` and a known size.

    `measure` is a column of bytes.
    """
    return [(row, interval) for row in rows if row["status"] in statuses and (interval := _size(row, measure))]


def _size(row: Record, measure: str) -> Interval | None:
    """Return the interval of a record's bytes in `measure`; None if unknown or 0.

    A missing peak is replaced by the predicted bytes, with an error of 10 % and 8 MB on either side.
    """
    interval = interval_of(row, measure)
    predicted = number_or_none(row.get("bytes_predicted"))
    if interval is None and predicted and measure == "bytes_peak":
        interval = Interval(
            predicted,
            max(predicted * (1 - OFF) - BYTES_OFF, predicted / 4),
            predicted * (1 + OFF) + BYTES_OFF,
            COMPUTED,
        )
    return interval if interval and interval.value > 0 else None


def _disjoint_intervals_ratio(sparse: Record, size: Interval, dense: Record, against: Interval) -> Contest:
    """Return the contest in memory of two records: a side wins only if the two intervals do not overlap.

    `size` and `against` are the intervals of the bytes of `sparse` and `dense`.
    """
    low, high = against.low / size.high, against.high / size.low if size.low else math.inf
    source = PREDICTED if COMPUTED in (size.why, against.why) else MEASURED
    is_apart = low > 1 or high < 1
    probability = float(low > 1) if is_apart else 0.5
    ratio = Ratio(against.value / size.value, low, high, 1, 1, probability)
    if is_apart:
        return Contest(None, sparse, dense, "sparse" if low > 1 else "dense", ratio, source=source)
    level = low > 0 and high < EQUIVALENCE_MARGIN * low
    verdict = "level" if level else "inconclusive"
    return Contest(None, sparse, dense, verdict, ratio, "" if level else HOLDS_ONE, source=source)


def _most_informative(rows: Sequence[Record]) -> Record | None:
    """Return the first record with the most telling status (ok, disturbed, timeout, memory, others); None if empty."""
    order = ("ok", "disturbed", "timeout", "memory")
    return min(rows, key=lambda row: order.index(row["status"]) if row["status"] in order else len(order), default=None)


def _without_ratio(sparse: Record | None, dense: Record | None) -> Contest:
    """Return the contest of two records of which at least one has no number or is missing (None).

    A side that ran beats a side that did not fit in memory. Otherwise the contest is inconclusive, with the reason: no
    record of a side, no result, or no common run.
    """
    if sparse is None or dense is None:
        return Contest(None, sparse, dense, "inconclusive", None, NO_SPARSE if sparse is None else NO_DENSE)
    ran = [row["status"] in configurations.NUMBERED for row in (sparse, dense)]
    fits = [row["status"] in (*configurations.NUMBERED, *UNTRIED) for row in (sparse, dense)]
    if "memory" in (sparse["status"], dense["status"]) and any(fits):
        return Contest(None, sparse, dense, "sparse" if fits[0] else "dense", source=BOUNDED)
    return Contest(None, sparse, dense, "inconclusive", None, APART if all(ran) else NO_RESULT)


# Rows of a lazy or an exact update that trained a worse model than the standard one next to them.


# A lazy update that ends this much worse than the standard one has trained another model.
LOSS_ALLOWED = 0.01
QUALITY_ALLOWED = 0.005


def trained_worse(rows: Iterable[Record]) -> list[tuple[Record, Record]]:
    """Return (lazy record, dense-update record) pairs of equal density in which the lazy one trained a worse model.

    Worse is a final loss more than 1 % higher or a quality more than 0.005 lower.
    """
    return [
        (row, fair) for row, fair in pair_with_dense_update(rows) if row["update"] == "lazy" and _is_worse(row, fair)
    ]


def pair_with_dense_update(rows: Iterable[Record]) -> list[tuple[Record, Record]]:
    """Return (record, reference) for each lazy or exact update with the "standard" update that is alike otherwise.

    Dense references come first, of these one alike in all other settings; records without a reference are left out.
    """
    pairs = []
    for at in configurations.by_density(row for row in rows if row["status"] in configurations.NUMBERED).values():
        standard = sorted(
            (row for row in at if row["update"] == "standard"), key=lambda row: not configurations.is_dense(row)
        )
        for other in (row for row in at if row["update"] != "standard"):
            equal = [row for row in standard if _differ_in_update_only(row, other)]
            alike = (row for row in equal if all(row[name] == other[name] for name in _ALIKE))
            fair = next(alike, equal[0] if equal else None)
            if fair is not None:
                pairs.append((other, fair))
    return pairs


_ALIKE = tuple(name for name in configurations.LINE if name not in ("update", "execution"))


def _differ_in_update_only(row: Record, other: Record) -> bool:
    """Return whether two trainings have equal optimizer settings and seed, and ended at the same step.

    A timing run stops when it knows enough, so the step at which it ended has to be compared too. `row` and `other` are
    records of the same density.
    """
    steps = [one["curve"][-1][2] if one["curve"] else None for one in (row, other)]
    return (
        all(row[name] == other[name] for name in configurations.BEST) and steps[0] is not None and steps[0] == steps[1]
    )


def _is_worse(row: Record, fair: Record) -> bool:
    """Return whether the final loss of `row` is over 1 % above that of `fair`, or its quality more than 0.005 below."""
    loss, fair_loss = number_or_none(row["loss_last"]), number_or_none(fair["loss_last"])
    quality, fair_quality = number_or_none(row["quality"]), number_or_none(fair["quality"])
    if loss is not None and fair_loss is not None and loss > fair_loss + LOSS_ALLOWED * abs(fair_loss):
        return True
    return quality is not None and fair_quality is not None and quality < fair_quality - QUALITY_ALLOWED
