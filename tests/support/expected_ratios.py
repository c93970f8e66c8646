"""What trial rows bear, computed from the rows alone: times, memory, ratios and decisions, for tests of what is said.

Nothing of the analysis is used, but for the rules of `measure.rounds` and the model of `measure.posterior`, which are
what is to be obeyed. The noise that they are given is computed here.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import stats

from workbench.measure.posterior import (
    ANYWHERE,
    DEVIATION,
    FREEDOM,
    LIKELY,
    MIN_LOG_SD,
    NOISE,
    Posterior,
    Ratio,
    Scatter,
    Trial,
    posterior,
)
from workbench.measure.rounds import Decision, decide_comparison

Record = Mapping[str, Any]
MIB = 2**20
FORMATS = {"csr": "CSR", "csc": "CSC", "coo": "COO"}
GROUP = ("dataset", "width", "batch_rows", "threads", "device", "model", "optimizer", "machine")


def name(row: Record) -> str:
    """A configuration as tables call it."""
    call = ", whole epochs" if row["execution"] == "epoch" else ""
    serial = ", 1 thread" if row["serial"] else ""
    if row["format"] == "dense":
        return f"dense{' from CSR batches' if row['storage'] == 'csr' else ''}{call}{serial}"
    kind = "" if row["format"] == "csr" else f" {FORMATS[row['format']]}"
    lazy = "" if row["update"] == "standard" else f", {row['update']}"
    gradient = "" if row["gradient"] == "row_sparse" else f", {row['gradient']} gradient"
    return f"sparse{kind}{', SciPy' if row['engine'] == 'vendor' else ''}{lazy}{gradient}{call}{serial}"


@dataclass(frozen=True)
class Known:
    """A number and its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Configuration:
    """All rows of one configuration, one a round."""

    rows: tuple[Record, ...]

    @property
    def head(self) -> Record:
        """The first row, for the settings."""
        return self.rows[0]

    @property
    def name(self) -> str:
        """The configuration."""
        return name(self.head)

    @property
    def names(self) -> tuple[str, str]:
        """The configuration as it is called in sentences, and in legends."""
        return name(self.head), name(self.head)

    @property
    def is_dense(self) -> bool:
        """Whether it is a baseline."""
        return self.head["format"] == "dense"

    @cached_property
    def rounds(self) -> dict[tuple[str, int], float]:
        """Seconds by (run, round) of the rounds that count: the lower quartile of the samples."""
        return {
            (row["run"], row["round"]): float(np.quantile(row["samples"], 0.25))
            for row in self.rows
            if row["status"] == "ok"
        }

    @cached_property
    def trials(self) -> list[Trial]:
        """All trials that have a time, disturbed ones too; of those cut off alone what the last one reached."""
        return [
            Trial(
                self.head["key"],
                row["seconds_step"],
                row["run"],
                row["round"],
                row["status"] == "disturbed",
                severity=min(max(others / (1 - others), 1.0), 8.0),
            )
            for row in self.counted
            if row["status"] in ("ok", "disturbed", "timeout") and row["seconds_step"]
            for others in [row["busy_others"] or 0.0]
        ]

    @property
    def counted(self) -> tuple[Record, ...]:
        """The rows that have numbers; the last one where none has."""
        return tuple(row for row in self.rows if row["status"] in ("ok", "disturbed")) or self.rows[-1:]

    @cached_property
    def seconds(self) -> Known | None:
        """The geometric mean of the rounds with the 95 % interval of Student's t; None without a round.

        Without undisturbed rounds it is the median of the others, or what a trial reached, without an interval.
        """
        logs = np.log(list(self.rounds.values()))
        if not logs.size:
            alone = [trial.seconds for trial in self.trials]
            return Known(*[float(np.median(alone))] * 3) if alone else None
        if logs.size == 1:
            return Known(*[float(np.exp(logs[0]))] * 3)
        spread = max(float(logs.std(ddof=1)), 0.01) * math.sqrt(1 / logs.size + 1 / 16)
        half = float(stats.t.ppf(0.975, logs.size - 1)) * spread
        return Known(*(math.exp(float(logs.mean()) + sign * half) for sign in (0, -1, 1)))

    @cached_property
    def memory(self) -> Known | None:
        """The median of the peaks, also of disturbed rounds, to 1 MiB, 2 % or half their range."""
        peaks = [row["bytes_peak"] for row in self.rows if row["bytes_peak"] is not None]
        if not peaks:
            return None
        middle = float(np.median(peaks))
        half = max(MIB, 0.02 * middle, (max(peaks) - min(peaks)) / 2)
        return Known(middle, middle - half, middle + half)

    @cached_property
    def steps(self) -> int | None:
        """Steps until 99 % of the drop of the curve is made, of its medians of neighbours; None without a drop."""
        curve = [point for point in self.rows[-1]["curve"] or () if point[1] is not None]
        window = max(3, min(9, len(curve) // 8))
        medians = [
            float(np.median([loss for _, loss, _ in curve[max(0, end - window) : end]]))
            for end in range(window // 2 + 1, len(curve) + 1)
        ]
        if not medians:
            return None
        target = medians[-1] + 0.01 * (curve[0][1] - medians[-1])
        points = zip(medians, curve[window // 2 :], strict=True)
        return next((int(point[2]) for loss, point in points if loss <= target), None)

    @property
    def densities(self) -> tuple[float, ...]:
        """The density asked for, and the one measured."""
        known = (row[name] for row in self.rows for name in ("density", "density_measured"))
        return tuple(dict.fromkeys(density for density in known if density is not None))


@dataclass(frozen=True)
class Contest:
    """All configurations of one group at one density."""

    group: tuple
    density: float | None
    configurations: tuple[Configuration, ...]
    scatter: Scatter

    def only(self, names: set[str]) -> "Contest":
        """The same with the sparse configurations of these names alone."""
        return replace(
            self,
            configurations=tuple(
                configuration
                for configuration in self.configurations
                if configuration.is_dense or {*configuration.names} & names
            ),
        )

    @property
    def densities(self) -> tuple[float, ...]:
        """All that it may be called by."""
        return tuple(density for configuration in self.configurations for density in configuration.densities)

    @cached_property
    def decision(self) -> Decision:
        """The decision on time, of all trials of the configurations that may win."""
        able = [configuration for configuration in self.configurations if configuration not in self._worse()]
        able = sorted(able, key=lambda configuration: configuration.is_dense)
        dense = {configuration.head["key"] for configuration in able if configuration.is_dense}
        return decide_comparison(
            [trial for configuration in able for trial in configuration.trials], dense, scatter=self.scatter
        )

    @property
    def likely(self) -> str:
        """The side that is probably faster where none surely is; empty if none is likelier than `LIKELY`."""
        ratio = self.decision.ratio
        if self._fits() or ratio is None or ratio.verdict != "inconclusive":
            return ""
        return "sparse" if ratio.probability >= LIKELY else "dense" if 1 - ratio.probability >= LIKELY else ""

    def _worse(self) -> list[Configuration]:
        """Lazy configurations that trained a worse model than standard ones, which may not win; alone it is judged."""
        if len({configuration.name for configuration in self.configurations if not configuration.is_dense}) < 2:
            return []
        ends = [(c, c.rows[-1]["loss_last"], c.rows[-1]["quality"]) for c in self.configurations]
        fair = [
            (loss, quality)
            for configuration, loss, quality in ends
            if configuration.head["update"] == "standard" and loss
        ]
        if not fair:
            return []
        loss, quality = fair[0]
        lazy = [end for end in ends if end[0].head["update"] == "lazy" and end[1]]
        return [configuration for configuration, its, good in lazy if its > 1.01 * loss or good < quality - 0.005]

    @property
    def time(self) -> str:
        """Which side takes less time; a side that runs where the other does not fit has it."""
        return self._fits() or self.decision.verdict

    @property
    def memory(self) -> str:
        """Which side has the lower peak: where the intervals of the two least peaks lie apart."""
        sparse, dense = (self._least(is_dense) for is_dense in (False, True))
        if fits := self._fits():
            return fits
        if sparse is None or dense is None:
            return "inconclusive"
        return "sparse" if sparse.high < dense.low else "dense" if dense.high < sparse.low else "inconclusive"

    def _least(self, is_dense: bool) -> Known | None:
        known = [
            configuration.memory
            for configuration in self.configurations
            if configuration.is_dense == is_dense and configuration.memory
        ]
        return min(known, key=lambda one: one.value, default=None)

    def _fits(self) -> str:
        """The side with a result where all of the other did not fit in memory; empty where both or none has one."""
        ends = {
            dense: {row["status"] for c in self.configurations if c.is_dense == dense for row in c.rows}
            for dense in (True, False)
        }
        for dense, other in ((True, "sparse"), (False, "dense")):
            if ends[dense] == {"memory"} and "ok" in ends[not dense]:
                return other
        return ""

    @cached_property
    def found(self) -> Posterior:
        """The posterior of all candidates together."""
        return posterior([trial for one in self.configurations for trial in one.trials], scatter=self.scatter)

    def estimate(self, configuration: Configuration) -> Known | None:
        """The estimated seconds: the posterior's, in a run as slow as the rounds were on average; None without a trial.

        The interval is relative to the mean of the candidates, weighted by their trials of that kind.
        """
        found, timed = self.found, [one for one in self.configurations if one.trials]
        if configuration not in timed or len(timed) < 2:
            return configuration.seconds
        mean = dict(zip(found.names, found.mean, strict=True))
        trials = [trial for one in timed for trial in one.trials]
        trials = [trial for trial in trials if not trial.is_disturbed] or trials
        off: dict[int, list[float]] = {}
        for trial in trials:
            off.setdefault(trial.round, []).append(math.log(trial.seconds) - mean[trial.candidate])
        shares = np.array([sum(trial.candidate == name for trial in trials) / len(trials) for name in found.names])
        is_own = np.array([name == configuration.head["key"] for name in found.names])
        spread = math.sqrt((is_own - shares) @ found.covariance @ (is_own - shares))
        value = mean[configuration.head["key"]] + float(np.mean([np.mean(each) for each in off.values()]))
        half = float(stats.t.ppf(0.975, found.freedom)) * spread
        return Known(*(math.exp(value + sign * half) for sign in (0, -1, 1)))

    def ratios(self) -> Iterator[Ratio]:
        """Dense / sparse of every pair that ran, as such and as the best of both sides."""
        sparse, dense = (
            [configuration for configuration in self.configurations if configuration.is_dense == is_dense]
            for is_dense in (False, True)
        )
        for mine in sparse:  # those that trained worse, too
            for its in dense:
                if mine.trials and its.trials:
                    pair = its.head["key"], mine.head["key"]
                    able = [one for one in sparse if one not in self._worse()]
                    sides = [[one.head["key"] for one in side] for side in (dense, able)]
                    yield self.found.ratio(*pair)
                    yield self.found.ratio(*pair, *sides)
                    yield self.found.ratio(*pair, sides[0])

    def memory_ratios(self) -> Iterator[Known]:
        """Dense / sparse of every pair's peaks, the ends from the far ends."""
        sparse, dense = (
            [c.memory for c in self.configurations if c.is_dense == is_dense] for is_dense in (False, True)
        )
        for mine in filter(None, sparse):
            for its in filter(None, dense):
                yield Known(its.value / mine.value, its.low / mine.high, its.high / mine.low)


def contests(rows: Iterable[Record]) -> list[Contest]:
    """All comparisons of the rows: groups in the order met, densities in the order met."""
    places: dict[tuple, dict[tuple, list[Record]]] = {}
    for row in rows:
        place = tuple(row[name] for name in GROUP), row["density"]
        line = name(row), row["learning_rate"], row["seed"]
        places.setdefault(place, {}).setdefault(line, []).append(row)
    met = {place: tuple(Configuration(tuple(own)) for own in lines.values()) for place, lines in places.items()}
    noise = scatters(met)
    return [Contest(*place, of_place, noise[place]) for place, of_place in met.items()]


def scatters(met: Mapping[tuple, Iterable[Configuration]]) -> dict[tuple, Scatter]:
    """The noise of the comparison at each place: its residuals, shrunk towards those of all, and these to the usual.

    All are of one machine. Residuals are those of the least squares fit of a candidate's and a round's effects.
    """
    own = {
        place: _residuals([trial for configuration in configurations for trial in configuration.trials])
        for place, configurations in met.items()
    }
    squares, freedom = np.sum([*own.values()], axis=0)
    usual = max((ANYWHERE.freedom * DEVIATION**2 + squares) / (ANYWHERE.freedom + freedom), MIN_LOG_SD**2)
    return {
        place: Scatter(max(math.sqrt((FREEDOM * usual + its) / (FREEDOM + count)), MIN_LOG_SD), FREEDOM + count)
        for place, (its, count) in own.items()
    }


def _residuals(trials: Sequence[Trial]) -> tuple[float, float]:
    """Twice the sum of squares of log seconds, less the effects of candidate and round, and its rank.

    Quiet and disturbed trials have effects of their own, and the noise of these is `NOISE.wider` times as large where
    other programs took half of the cores.
    """
    squares = rank = 0.0
    for is_disturbed in (False, True):
        chosen = [trial for trial in trials if trial.is_disturbed == is_disturbed]
        if not chosen:
            continue
        labels = [{(0, trial.run, trial.candidate), (1, trial.run, trial.round)} for trial in chosen]
        effects = np.array([[label in own for label in sorted(set().union(*labels))] for own in labels], float)
        more = (NOISE.wider**2 - 1) * is_disturbed
        precise = np.diag([1 / np.sqrt(1 + more * trial.severity**2) for trial in chosen])
        left = np.eye(len(chosen)) - precise @ effects @ np.linalg.pinv(precise @ effects)
        logs = precise @ np.log([trial.seconds for trial in chosen])
        squares, rank = squares + 2 * float(logs @ left @ logs), rank + round(np.trace(left))
    return squares, float(rank)
