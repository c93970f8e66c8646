"""Estimates of the times of candidates that were compared: those that verdicts are made of, and that tables show.

All candidates of a comparison have one posterior (`measure.posterior`). Whatever is compared, of all of them or
of some, and whatever is shown or filtered, is read from it, so that two candidates have one ratio everywhere. Estimates
in seconds are those of the run that is shown: its measured times say how long a second of the posterior is.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from workbench.analysis.intervals import ONCE, Interval, number_or_none, trials_of
from workbench.measure.posterior import SURE, Posterior, Scatter, posterior
from workbench.measure.rounds import mean_interval

Record = Mapping[str, Any]
PREDICTION = "seconds_predicted"
TIME = "seconds_step"


class Comparison:
    """The pooled records of the candidates of one comparison, and the posterior of their times."""

    def __init__(self, rows: Sequence[Record]) -> None:
        """Store the records, each of another candidate; computes nothing."""
        self.rows = rows
        self._posteriors: dict[str, Posterior[int]] = {}

    @cached_property
    def has_prior(self) -> bool:
        """Whether predicted step times are the prior: all measured records have one."""
        timed = [row for k, row in enumerate(self.rows) if trials_of(row, TIME, k)]
        return bool(timed) and all(number_or_none(row.get(PREDICTION)) for row in timed)

    def posterior(self, measure: str) -> Posterior[int]:
        """Return the posterior of the times in a column of seconds; candidates are named by their index in `rows`.

        The noise is that of the pooled records. Predicted step times are the prior if `measure` is "seconds_step" and
        all measured records have one.
        """
        if measure not in self._posteriors:
            rows = self.rows
            trials = [trial for k, row in enumerate(rows) for trial in trials_of(row, measure, k)]
            noise = next(
                ((row["deviation"], row["freedom"]) for row in rows if number_or_none(row.get("deviation"))), None
            )
            is_predicted = measure == TIME and self.has_prior
            predicted = (
                {one.candidate: float(rows[one.candidate][PREDICTION]) for one in trials} if is_predicted else None
            )
            self._posteriors[measure] = posterior(trials, predicted, Scatter(*noise) if noise else None)
        return self._posteriors[measure]

    @cached_property
    def seconds(self) -> dict[int, Interval]:
        """Estimated seconds of a step by candidate, in the run that its record shows; without those not measured.

        The mean of log seconds is shifted by what it differs from the measured times of that run, on average over the
        rounds. The interval is that of a candidate relative to the others of the run, which is what decides: what slows
        all of them alike is not in it. A candidate alone has the interval of its rounds.
        """
        from scipy import special  # late: see `measure.clock`

        found, estimates = self.posterior(TIME), {}
        half_of = float(special.stdtrit(found.freedom, SURE))
        for run in dict.fromkeys(str(self.rows[k].get("run")) for k in found.names):
            own = [k for k in found.names if str(self.rows[k].get("run")) == run]
            trials = [trial for trial in found.trials if trial.candidate in own and str(trial.run) == run]
            trials = [trial for trial in trials if not trial.is_disturbed] or trials
            means, off = dict(zip(found.names, found.mean.tolist(), strict=True)), dict[int, list[float]]()
            for trial in trials:
                off.setdefault(trial.round, []).append(math.log(trial.seconds) - means[trial.candidate])
            if not off:
                continue
            shift = mean_interval([math.exp(float(np.mean(each))) for each in off.values()])
            share = np.array([sum(trial.candidate == k for trial in trials) / len(trials) for k in found.names])
            for place, k in enumerate(found.names):
                if k in own:
                    contrast = (np.arange(len(share)) == place) - share
                    spread = half_of * math.sqrt(max(float(contrast @ found.covariance @ contrast), 0.0))
                    half = spread if len(own) > 1 else math.log(shift.high / shift.low) / 2
                    value = means[k] + math.log(shift.value)
                    mean, low, high = (math.exp(value + sign * half) for sign in (0, -1, 1))
                    estimates[k] = Interval(mean, low, high, "" if half else ONCE)
        return estimates


@dataclass(frozen=True, eq=False)
class Member:
    """The place of a pooled record in its comparison."""

    comparison: Comparison
    index: int

    @property
    def estimate(self) -> Interval | None:
        """Return the estimate of the record's seconds a step; None if no trial of it was measured."""
        return self.comparison.seconds.get(self.index)


def posterior_of(rows: Sequence[Record], measure: str) -> Posterior[int]:
    """Return the posterior of the times of `rows` in a column of seconds, by index in `rows`.

    Of records of one comparison it is a part of the posterior of all its candidates.
    """
    members: list[Member] = [one for row in rows if (one := row.get("member"))]
    named = {one.index: k for k, one in enumerate(members)}
    if len(named) == len(rows) and len({id(one.comparison) for one in members}) == 1:
        return members[0].comparison.posterior(measure).among(named)
    return Comparison(rows).posterior(measure)


def estimate_of(row: Record) -> Interval | None:
    """Return the estimate of a record's seconds a step with its 95 % interval; None without a comparison or a trial."""
    member = row.get("member")
    return member.estimate if member else None
