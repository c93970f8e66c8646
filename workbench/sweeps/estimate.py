"""Estimate of a sweep before it runs: how many configurations and trials, about how long, about how much memory.

Configurations are counted without being made: whether a combination means anything depends on few of its settings, and
every value of the others multiplies it. A spec of a million configurations is counted in milliseconds.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench import data, models
from workbench.measure.posterior import DEVIATION
from workbench.measure.rounds import FIRST, minimum_detectable_ratio
from workbench.sweeps import grid, problem
from workbench.sweeps.progress import format_duration
from workbench.sweeps.spec import Configuration, Spec, SpecError

FREE = (
    *("density", "features", "rows", "batch_rows", "dtype", "shuffle", "ahead"),
    *("learning_rate", "decay", "epochs", "seed"),
)
"""Axes whose values never decide whether a combination is valid (a test compares with the configurations made)."""

MOST_KINDS = 20_000
"""Combinations of the other axes that are looked at one by one."""

MOST_CONFIGURATIONS = 100_000
"""Configurations that a sweep may have: above, its plan alone would take minutes, and its trials weeks."""

SECONDS_OVERHEAD = 0.5
"""Start, data, kernels and checks of a trial, where no row tells: measured on two cores, 0.2 with 400 rows of a file
and 0.8 with the data sets of the demo, which are drawn."""
SECONDS_SEVERAL = 4.0
"""The same of a trial by several trainers, each of which is a process that joins the others."""


@dataclass(frozen=True)
class Size:
    """Size of a sweep: configurations, rounds at most, what is left out by reason, what was completed, configurations
    by kind.

    The configurations of `kinds` have the largest value of every axis that is free.
    """

    configurations: int
    rounds: int
    dropped: Counter
    notes: tuple[str, ...]
    kinds: tuple[Configuration, ...]

    @property
    def trials(self) -> int:
        """Trials at least: each configuration once in each of the first `FIRST` rounds."""
        return self.configurations * min(self.rounds, FIRST)

    @property
    def trials_most(self) -> int:
        """Trials at most: each configuration in every round."""
        return self.configurations * self.rounds


def size_of(spec: Spec) -> Size:
    """Count the configurations and trials of a spec without making all of them.

    Only combinations of axes that can be invalid are made; the others multiply the counts. Raises SpecError if there
    are no configurations, or more than `MOST_CONFIGURATIONS`.
    """
    configurations = math.prod(len(values) for values in spec.axes.values()) * max(len(spec.candidates), 1)
    has_trainers = any("trainers" in part for part in (spec.axes, *spec.candidates))
    free = tuple(axis for axis in FREE if not (has_trainers and axis == "batch_rows"))
    lengths = {axis: len(values) for axis, values in spec.axes.items() if axis in free}
    times = math.prod(lengths.values())
    if configurations // times > MOST_KINDS:
        raise SpecError(_too_many_message(configurations, spec))
    most = {axis: None if None in values else max(values) for axis, values in spec.axes.items() if axis in free}
    axes = {**spec.axes, **{axis: (value,) for axis, value in most.items()}}  # None, all of the data, is most
    kinds = grid.expand_grid(spec.model_copy(update={"axes": axes}))
    dropped = Counter({reason: times * count for reason, count in kinds.dropped.items()})
    size = Size(
        times * len(kinds.configurations), spec.measure.rounds, dropped, tuple(kinds.notes), tuple(kinds.configurations)
    )
    if size.configurations > MOST_CONFIGURATIONS:
        raise SpecError(_too_many_message(size.configurations, spec))
    if not size.configurations:
        reasons = " ".join(f"{count:,} left out: {reason}" for reason, count in dropped.items())
        raise SpecError(f"No configuration is left of the spec {spec.name!r}. {reasons}")
    return size


def _too_many_message(configurations: int, spec: Spec) -> str:
    """Return the message for a spec with too many combinations: the time they take, the longest axes."""
    lengths = sorted(((len(values), axis) for axis, values in spec.axes.items() if len(values) > 1), reverse=True)
    axes = ", ".join(f"{axis} has {count:,} values" for count, axis in lengths)
    seconds = configurations * min(spec.measure.rounds, FIRST) * seconds_a_trial(spec)
    return (
        f"The spec {spec.name!r} has {configurations:,} combinations, which would take {format_duration(seconds)}; a "
        f"sweep has at most {MOST_CONFIGURATIONS:,} configurations. Make its axes shorter ({axes}), or give "
        f"settings that go together as candidates."
    )


def seconds_of(size: Size, spec: Spec, rows: Iterable[Mapping[str, Any]] = ()) -> tuple[float, float]:
    """Return (least, most) seconds that the trials of the spec take, no more than its budget.

    From warm-up and sampling times, and the overhead of trials in `rows` (records) or the default; epochs of training
    are not included.
    """
    return seconds_of_trials((size.trials, size.trials_most), size.kinds, spec, rows)


def seconds_of_trials(
    trials: tuple[int, int], configurations: Sequence[Configuration], spec: Spec, rows: Iterable[Mapping[str, Any]] = ()
) -> tuple[float, float]:
    """Return (least, most) seconds of `trials` (least, most) trials such as those of `configurations`.

    Overheads come from the records `rows`, else defaults; samples take the least time if steps are short and other
    programs leave the cores alone. Neither exceeds the spec's budget.
    """
    rows, counts = list(rows), Counter(configuration.trainers > 1 for configuration in configurations)
    known = {several: seconds_a_trial(spec, rows, several) for several in counts}
    each = sum(count * known[several] for several, count in counts.items()) / max(len(configurations), 1)
    least, most = seconds_sampled(spec)
    budget = spec.limits.budget or math.inf
    return min(trials[0] * each, budget), min(trials[1] * (each + most - least), budget)


def seconds_sampled(spec: Spec) -> tuple[float, float]:
    """Return (least, most) seconds that the samples of a trial take.

    The least for samples of the shortest time without other programs at work: each then counts for more than it takes.
    """
    policy = spec.measure.policy()
    share = min(policy.seconds_sample / policy.seconds_counted, 1.0) if policy.seconds_counted else 1.0
    least = max(share * policy.seconds_total, policy.samples_least * policy.seconds_sample)
    return least, max(least, policy.seconds_total)


def seconds_a_trial(spec: Spec, rows: Iterable[Mapping[str, Any]] = (), several: bool = False) -> float:
    """Return the least seconds of one trial: warm-up, sampling and overhead, with one trainer or with `several`.

    The overhead is the median of the records `rows` with as many trainers, a measured default without any.
    """
    alike = [row for row in rows if ((row.get("trainers") or 1) > 1) == several]
    known = sorted(row["seconds_overhead"] for row in alike if row["seconds_overhead"] is not None)
    overhead = known[len(known) // 2] if known else SECONDS_SEVERAL if several else SECONDS_OVERHEAD
    return overhead + spec.measure.seconds_warmup + seconds_sampled(spec)[0]


def format_time_span(seconds: tuple[float, float]) -> str:
    """Return (least, most) seconds as rounded text, one duration if both are the same when rounded.

    >>> format_time_span((48, 200)), format_time_span((60, 200)), format_time_span((5400,
    ... 9000)), format_time_span((200, 201))
    ('50 s to 3 minutes', '1 to 3 minutes', '1.5 to 2.5 hours', '3 minutes')
    """
    least, most = map(format_duration, seconds)
    (first, unit), (_, units) = (text.split(" ") for text in (least, most))
    if least == most:
        return least
    return f"{first if units.startswith(unit) else least} to {most}"


def format_time_left(seconds: float | None, most: float | None) -> str:
    """Return text to append after a comma, "about 3 minutes left, at most 5 minutes"; "" if `seconds` is None or 0.

    `most` is the upper bound in seconds; it is left out if unknown or the same when rounded.
    """
    if not seconds:
        return ""
    longest = format_duration(most or seconds)
    return f"about {format_duration(seconds)} left" + (
        f", at most {longest}" if longest != format_duration(seconds) else ""
    )


def minimum_detectable_sentence(spec: Spec) -> str:
    """Return a sentence on the smallest ratio that the rounds of the spec can detect."""
    rounds = spec.measure.rounds
    factor = minimum_detectable_ratio(rounds)
    return (
        f"{rounds} round{'s' * (rounds != 1)} can tell apart what differs by {factor:.2g} times or more, if times vary "
        f"by {100 * DEVIATION:.0f} %, as is usual on a shared machine."
    )


def bytes_of(configuration: Configuration) -> int:
    """Return the bytes of the arrays of a configuration's training, predicted by formula.

    Data files are read for their sizes; raises data.DataError if that fails.
    """
    rows, features, nnz, width, facts = _sizes(configuration)
    stored = _stored_rows(configuration)
    parts = grid.predicted_bytes(
        configuration,
        rows=rows,
        features=features,
        nnz=nnz,
        width=width,
        facts=facts,
        active=min(features, nnz * min(configuration.batch_rows, rows) // max(rows, 1)),
        stored=stored is not None,
    )
    if stored is not None:
        parts["data"] = data.StoredBatches(stored, None, configuration.batch_rows, shuffle=configuration.shuffle).nbytes
    return sum(parts.values())


def _stored_rows(configuration: Configuration) -> data.StoredRows | None:
    """Return the rows on disk of a data set that is never loaded whole; None for any other data set."""
    if data.get(configuration.dataset).is_cached:
        return None
    x = data.load(configuration.dataset, **problem.parameters_of_file(vars(configuration))).x
    return x if isinstance(x, data.StoredRows) else None


def _sizes(configuration: Configuration) -> tuple[int, int, int, int, dict[str, Any]]:
    """Return (rows, features, stored entries, width, facts) of a configuration's data.

    Synthetic data is not generated, files are read. Entries follow from the density; the width is the setting's, else
    the model's natural one.
    """
    facts: dict[str, Any] = {}
    if problem.is_synthetic(configuration.dataset):
        rows, features = (
            configuration.rows or problem.SYNTHETIC_ROWS,
            configuration.features or problem.SYNTHETIC_FEATURES,
        )
        density, width = configuration.density or problem.SYNTHETIC_DENSITY, problem.SYNTHETIC_CLASSES
    else:
        read = data.load(configuration.dataset, **problem.parameters_of_file(vars(configuration)))
        rows, features = (
            min(configuration.rows or read.rows, read.rows),
            min(configuration.features or read.features, read.features),
        )
        density, width = configuration.density or read.x.nnz / max(read.rows * read.features, 1), len(read.classes) or 1
        facts = problem.facts_of(read)
    model = models.get(configuration.model)
    natural = model.width or next((each for each in (width, 1) if model.allows(each)), 1)
    return rows, features, int(rows * features * density), configuration.width or natural, facts
