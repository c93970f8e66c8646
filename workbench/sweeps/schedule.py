"""The schedule of a sweep: comparisons in rounds, until each is decided or has all its rounds.

A comparison is the configurations that are alike but for the candidate; in a round they are measured one right after
the other, in an order that turns, so that a slow spell of the machine hits all of them. Every comparison has its
round, in an order drawn anew, then the next round begins: rounds of one comparison are far apart in time.

In a race candidates that are significantly slower than the fastest have no more rounds, but for the best of each side.
Rounds go on until the expected loss of taking the best one is below 1 %. Updates that train another model than an
exact one next to them are measured once, and set no pace: they are reported, not chosen.

A round that was not ended when a sweep stopped is not continued by a resume, since its other half would not be measured
next to the first; its rows stay, and a whole round with the next number takes its place.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench import settings, store
from workbench.measure.posterior import Posterior, Scatter, Trial, posterior, residuals, severity_of, usual_scatter
from workbench.measure.rounds import MOST, Decision, counterbalanced_order, decide_comparison, rounds_due
from workbench.sweeps import grid
from workbench.sweeps.problem import Contents
from workbench.sweeps.spec import Configuration, Spec

# Configurations that a sweep adds by itself: at densities around each break-even, until it is known as well as asked.


MOST_ADDED = 12
"""Times that densities are added at most; each halves a gap, so a factor of ten comes below 1 % in nine."""


def refinement_configurations(
    configurations: Mapping[str, Configuration], rows: Iterable[Mapping[str, Any]], until: float
) -> list[Configuration]:
    """Return new configurations, at further densities, that would narrow break-evens known too roughly.

    `configurations` are those of the sweep by key, `rows` its records, `until` the relative width to reach, such as
    0.1. Densities that earlier runs added (records whose key is not in `configurations`) are included; those of the
    sweep are not.
    """
    from workbench.analysis.refinement import densities_to_add  # late: few sweeps ask for break-evens

    rows = list(rows)
    frame = store.frame(row for row in rows if row["key"] in configurations)
    asked = [
        (configurations[key], opening.density) for opening in densities_to_add(frame, until) for key in opening.keys
    ]
    known = set(configurations.values())
    asked += [
        (configuration, row["density"])
        for row in rows
        if row["key"] not in configurations
        for configuration in _matching_configuration(row, configurations)
    ]
    wanted = [configuration.model_copy(update={"density": density}) for configuration, density in asked]
    return [configuration for configuration in dict.fromkeys(wanted) if configuration not in known]


def _matching_configuration(
    row: Mapping[str, Any], configurations: Mapping[str, Configuration]
) -> Iterator[Configuration]:
    """Yield the first configuration that differs from the record in nothing but the density; at most one.

    A setting that is None is like any value.
    """
    names = [name for name in Configuration.model_fields if name in row and name != "density"]
    for configuration in configurations.values():
        values = configuration.model_dump()
        if all(values[name] in (None, row[name]) for name in names):
            yield configuration
            return


Record = Mapping[str, Any]

PATIENCE = 4
"""Rounds in a row that may be disturbed before a comparison waits for the next start of the sweep."""
HOPELESS = ("memory", "unsupported", "wrong")
"""Statuses that another trial would not change."""
TIMED = ("ok", "disturbed")
"""Statuses of rows with a time."""
LOST = ("failed", "timeout")
"""Statuses after which a configuration waits for the next start of the sweep."""
FINAL = ("ok", "disturbed", *HOPELESS)
"""Statuses of rows that a resumed sweep takes as they are."""

ALIKE = (*settings.names(role="group"), *settings.names(role="axis"))
"""Settings in which the configurations of a comparison agree."""


@dataclass(frozen=True)
class Task:
    """One trial to do."""

    configuration: Configuration
    key: str
    round: int


@dataclass(frozen=True)
class Comparison:
    """Configurations that differ only in the candidate, by the key of their records.

    `baselines` are the keys of the dense candidates to beat; `unfaithful` those of lazy updates that train another
    model than dense, if an exact update is among the candidates.
    """

    configurations: Mapping[str, Configuration]
    baselines: frozenset[str]
    unfaithful: frozenset[str] = frozenset()


def place_of(configuration: Configuration) -> tuple:
    """Return the tuple of settings that all configurations of a comparison share; equal tuples, same comparison."""
    return tuple(getattr(configuration, name) for name in ALIKE)


def comparisons(configurations: Iterable[Configuration], contents: Contents | None = None) -> list[Comparison]:
    """Group configurations into comparisons, in the order met; dense candidates are the baselines.

    `contents` reads the data files for the keys, by default anew.
    """
    contents = contents or Contents()
    alike: dict[tuple, dict[str, Configuration]] = {}
    for configuration in configurations:
        alike.setdefault(place_of(configuration), {})[grid.configuration_key(configuration, contents)] = configuration
    return [
        Comparison(
            by_key,
            frozenset(key for key, configuration in by_key.items() if configuration.format == "dense"),
            _inexact_lazy_keys(by_key),
        )
        for by_key in alike.values()
    ]


def _inexact_lazy_keys(configurations: Mapping[str, Configuration]) -> frozenset[str]:
    """Return the keys of lazy configurations that `configurations` (by key) also has with an exact update."""
    rest = {key: configuration.model_dump_json(exclude={"update"}) for key, configuration in configurations.items()}
    exact = {rest[key] for key, configuration in configurations.items() if configuration.update == "exact"}
    return frozenset(
        key for key, configuration in configurations.items() if configuration.update == "lazy" and rest[key] in exact
    )


class ComparisonState:
    """State of a comparison: the statistics of its rounds, which candidates are eliminated, and how many rounds are
    due."""

    def __init__(self, comparison: Comparison, most: int = MOST, is_race: bool = False) -> None:
        """Begin a comparison of at most `most` rounds in which nothing is measured.

        `is_race` eliminates slow candidates.
        """
        self.comparison, self.most, self.is_race = comparison, most, is_race
        self.trials: list[Trial] = []
        self.out: set[str] = set()
        self.again: set[str] = set()
        self.measured = 0
        self.next_round = 0
        self.usual, self.disturbed, self.is_disturbed, self.is_stopped = Scatter(), 0, False, False
        self._posterior: Posterior | None = None
        self._decision: Decision | None = None

    def resume(self, rows: Iterable[Record]) -> int:
        """Load stored records, in the order written; return how many of them need no new trial.

        Records of other configurations are ignored. Only rounds that have all candidates still in count; candidates
        whose newest status is hopeless are out, and those failed or timed out are tried again.
        """
        rows = [row for row in rows if row["key"] in self.comparison.configurations]
        newest = {row["key"]: row["status"] for row in rows if row["status"] != "stopped"}
        self.out = {key for key, status in newest.items() if status in HOPELESS}
        self.again = {key for key, status in newest.items() if status in LOST}
        self.next_round = max((row["round"] for row in rows), default=-1) + 1
        kept: dict[int, list[Record]] = {}
        for row in rows:
            if row["status"] in FINAL:
                kept.setdefault(row["round"], []).append(row)
        answered = 0
        for _, of_round in sorted(kept.items()):
            if self._is_whole({row["key"] for row in of_round}):
                self.measured, answered = self.measured + 1, answered + len(of_round)
                for row in of_round:
                    self._take(row)
        return answered if self.measured else len(self.out)

    def _is_whole(self, keys: set[str]) -> bool:
        """Return whether `keys`, those with a record in a round, include all candidates still running.

        False if none is.
        """
        needed = set(self.running()) - self.again
        return bool(needed) and needed <= keys

    def take_usual(self, usual: Scatter) -> None:
        """Set the scatter of round ratios that is usual in the sweep; discards cached results."""
        self.usual = usual
        self._posterior = self._decision = None

    def add(self, row: Record) -> None:
        """Add the record of a finished trial of the round at work.

        A candidate with a hopeless, failed or timed-out status drops out; a stopped round is counted as not measured.
        """
        self.again.discard(row["key"])
        if row["status"] in (*HOPELESS, *LOST):
            self.out.add(row["key"])
        self.is_disturbed |= row["status"] == "disturbed"
        if row["status"] == "stopped" and not self.is_stopped:  # its round is still to be measured
            self.measured, self.is_stopped = self.measured - 1, True
        self._take(row)

    def _take(self, row: Record) -> None:
        """Keep the time of a record with status ok or disturbed; discards the cached posterior and decision."""
        if row["status"] in TIMED and row["seconds_step"]:
            is_disturbed = row["status"] == "disturbed"
            place = row["run"], row["round"], is_disturbed, row.get("process"), severity_of(row.get("busy_others"))
            self.trials.append(Trial(row["key"], row["seconds_step"], *place))
            self._posterior = self._decision = None

    def round(self) -> list[Task]:
        """Return the trials of the next round in their order, and count the round as measured.

        Orders alternate so that no candidate is always first; in a race the two fastest come first.
        """
        self.disturbed, self.is_disturbed = self.disturbed + 1 if self.is_disturbed else 0, False
        number, keys = self.next_round, self.running()
        self.next_round, self.measured = number + 1, self.measured + 1
        keys = self._by_pace(keys, number) if self.is_race and number else counterbalanced_order(keys, number)
        return [Task(self.comparison.configurations[key], key, number) for key in keys]

    def _by_pace(self, keys: Sequence[str], number: int) -> list[str]:
        """Return `keys` with the two fastest first (alternating by round), then those never timed, then the others.

        If time runs out, the trials that are cut off decide least.
        """
        losses = self.posterior.losses(keys)
        timed = sorted(losses, key=lambda key: losses[key])
        return [*counterbalanced_order(timed[:2], number), *(key for key in keys if key not in losses), *timed[2:]]

    @property
    def posterior(self) -> Posterior:
        """Posterior of the candidates' log times from the trials added so far; cached until the next trial."""
        if self._posterior is None:
            self._posterior = posterior(self.trials, scatter=self.scatter)
        return self._posterior

    @property
    def scatter(self) -> Scatter:
        """Scatter of a round's log ratio: the sweep's usual one, combined with the residuals of these rounds."""
        return self.usual.shrunk(*residuals(self.trials))

    def running(self) -> list[str]:
        """Return the keys of the configurations that take part in the next round, in their fixed order.

        All that have not dropped out; in a race only those not significantly slower, and the best of each side.
        """
        able = [key for key in self.comparison.configurations if key not in self.out]
        if not self.is_race or not self.measured:
            return able
        decision, kept = self.decision(), self._ahead()
        if not decision.is_narrow:
            kept |= {key for key in (decision.sparse, decision.dense) if isinstance(key, str)}
        return [key for key in able if key in kept]

    def _ahead(self) -> set[str]:
        """Return the keys of candidates that may be chosen and are not significantly slower than the fastest.

        Unfaithful lazy updates are never among them; all others if nothing was timed yet.
        """
        out = self.out | self.comparison.unfaithful
        pacing = [key for key in self.comparison.configurations if key not in out]
        best = self.posterior.best(pacing)
        if best is None:
            return set(pacing)
        timed = [key for key in pacing if key in self.posterior.names and key != best]
        return set(pacing) - {key for key in timed if self.posterior.ratio(key, best).low > 1}

    def decision(self) -> Decision:
        """Return the comparison of the best sparse candidate with the best baseline so far.

        Cached until the next trial.
        """
        if self._decision is None:
            able = [trial for trial in self.trials if trial.candidate not in self.comparison.unfaithful]
            self._decision = decide_comparison(able, self.comparison.baselines, scatter=self.scatter)
        return self._decision

    def due(self) -> int:
        """Return how many rounds are due at least; 0 if the comparison is over.

        Over means decided, at its last round, without candidates, or disturbed `PATIENCE` times in a row.
        """
        if len(self.out) == len(self.comparison.configurations) or self.disturbed + self.is_disturbed >= PATIENCE:
            return 0
        due = rounds_due(self.decision(), self.measured, self.most, self.is_race)
        return max(due, bool(self.again))

    def trials_of(self, rounds: int) -> int:
        """Return the number of trials in `rounds` rounds of the present candidates."""
        return rounds * len(self.running())


@dataclass
class Schedule:
    """Work of a run, how much of it was done before, and the settings that were left out, by reason."""

    comparisons: list[ComparisonState] = field(default_factory=list)
    reused: int = 0
    seed: int = 0
    dropped: Counter = field(default_factory=Counter)
    contents: Contents = field(default_factory=Contents)
    current: ComparisonState | None = None

    @classmethod
    def of(cls, spec: Spec, stored: Iterable[Record], contents: Contents | None = None) -> "Schedule":
        """Return the schedule of a spec's configurations, in which matching records of `stored` count as done.

        `contents` reads the data files for the keys, by default anew.
        """
        configurations = grid.expand_grid(spec)
        schedule = cls(seed=spec.seed, dropped=configurations.dropped, contents=contents or Contents())
        schedule.extend(configurations.configurations, spec, stored)
        return schedule

    def extend(self, configurations: Iterable[Configuration], spec: Spec, stored: Iterable[Record]) -> None:
        """Add the comparisons of `configurations`, resumed from matching records among `stored`; updates `reused`."""
        states = [
            ComparisonState(comparison, spec.measure.rounds, spec.measure.race)
            for comparison in comparisons(configurations, self.contents)
        ]
        by_key = {key: course for course in states for key in course.comparison.configurations}
        rows: dict[int, list[Record]] = {}
        for row in stored:
            if row["key"] in by_key:
                rows.setdefault(id(by_key[row["key"]]), []).append(row)
        self.reused += sum(course.resume(rows.get(id(course), ())) for course in states)
        self.comparisons += states
        self._share_noise()

    @property
    def configurations(self) -> dict[str, Configuration]:
        """All configurations of the sweep by key, a new dict."""
        return {
            key: configuration
            for course in self.comparisons
            for key, configuration in course.comparison.configurations.items()
        }

    @property
    def keys(self) -> list[str]:
        """Keys of all configurations, in the order of their comparisons."""
        return list(self.configurations)

    def rounds(self, stays: Callable[[], bool] = lambda: False) -> Iterator[list[Task]]:
        """Yield the trials of one round after another, until no comparison is due.

        Pass each record to `add` before the next item. Comparisons take turns in random order (by `seed`); while
        `stays()` is true, the next round is of the same comparison.
        """
        turn = 0
        while due := [course for course in self.comparisons if course.due()]:
            random.Random(f"{self.seed} {turn}").shuffle(due)
            for course in due:
                self.current = course
                yield course.round()
                while stays() and course.due():
                    yield course.round()
            turn += 1
            self._share_noise()

    def _share_noise(self) -> None:
        """Set the usual scatter of every comparison to that of all comparisons together."""
        usual = usual_scatter(residuals(course.trials) for course in self.comparisons)
        for course in self.comparisons:
            course.take_usual(usual)

    def add(self, row: Record) -> None:
        """Add the record of a task of the round yielded last; AssertionError before the first round."""
        assert self.current is not None, "rows belong to a round"
        self.current.add(row)

    @property
    def round_at_work(self) -> tuple[int, int]:
        """(number of the round of the comparison at work, counted from 1, its largest number).

        (0, 0) before the first.
        """
        return (self.current.measured, self.current.most) if self.current is not None else (0, 0)

    def trials_due(self) -> int:
        """Return the number of trials in the next due rounds of all comparisons, a lower bound of those left."""
        return sum(course.trials_of(course.due()) for course in self.comparisons)

    def trials_most(self) -> int:
        """Return the number of trials left if no comparison is decided before its last round, an upper bound."""
        return sum(course.trials_of(course.most - course.measured) for course in self.comparisons if course.due())
