"""The clock: warm-up, calibration until a sample is long enough, samples until the budget is spent, phases apart.

Garbage is not collected while samples are taken: when Python would, depends on all that was allocated before.

>>> from workbench.measure.clock import Policy, Sampler
>>> policy = Policy(seconds_warmup=0, seconds_sample=0, seconds_total=0, samples_least=5)
>>> sampler = Sampler(lambda: {"work": 1e-3}, policy)
>>> sampler.take_all()
>>> len(sampler.samples.seconds), round(sampler.phases()["work"], 6)
(5, 0.001)
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import final

import numpy as np

MOST_ROUNDS = 12
"""Rounds of a comparison, unless others are asked for."""

# Statistics of samples: a quantile and the interval between ranks that holds it.
#
# Distributions are those of `scipy.special`, imported by the functions: a command that measures nothing starts without
# it. `scipy.stats` would take a quarter of the time in which a sweep or panel starts.


CONFIDENCE = 0.95


def quantile_interval(samples: Sequence[float], quantile: float) -> tuple[float, float, float]:
    """Return (quantile, low, high) of samples: low and high are the ranks that bracket the true quantile.

    It assumes no distribution, but that the samples are independent: how many of n lie below the quantile q is
    binomial(n, q), and the ranks are the innermost with at least `CONFIDENCE`. If no ranks reach that, as below six
    samples for a median at 95 %, the smallest and the largest are returned. Same unit as the samples. O(n log n).
    ValueError without samples or if one is not finite.
    """
    ordered = np.sort(np.asarray(samples, dtype=np.float64))
    if ordered.size == 0 or not np.isfinite(ordered).all():
        bad = np.count_nonzero(~np.isfinite(ordered))
        raise ValueError(f"A quantile needs finite samples; {ordered.size} came, of which {bad} are not finite.")
    from scipy import special

    at_most = special.bdtr(np.arange(ordered.size + 1), ordered.size, quantile)
    ranks = np.searchsorted(at_most, ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2))
    low, high = max(ranks[0], 1), min(ranks[1] + 1, ordered.size)
    return float(np.quantile(ordered, quantile)), float(ordered[low - 1]), float(ordered[high - 1])


def median_interval(samples: Sequence[float]) -> tuple[float, float, float]:
    """Return (median, low, high) of independent samples, as `quantile_interval` does for the quantile 0.5."""
    return quantile_interval(samples, 0.5)


@dataclass(frozen=True)
class Policy:
    """Time to measure for. A sample is the mean of as many steps as make it `seconds_sample` long.

    Sampling ends after `seconds_total` once there are `samples_least`, or at `samples_most`. If no other program
    disturbs the machine, each sample counts for `seconds_counted` at least: short steps then have as many samples as
    longer ones, and end sooner. After `seconds_most`, warm-up and all, it ends with what there is: one warm-up step and
    one sample at least. Steps took their usual time 5 ms after the first one, in seven setups of a small data set.
    """

    seconds_warmup: float = 0.02
    steps_warmup: int = 3
    seconds_sample: float = 0.001
    seconds_total: float = 0.15
    seconds_counted: float = 0.0
    samples_least: int = 7
    samples_most: int = 200
    seconds_most: float = float("inf")


@dataclass
class Samples:
    """Samples: seconds a step, one number a sample; seconds of each phase and steps, summed over all samples."""

    seconds: list[float] = field(default_factory=list)
    phases: dict[str, float] = field(default_factory=dict)
    steps: int = 0
    steps_a_sample: int = 1
    """Calls of the step, for each sample."""
    seconds_sampled: float = 0.0
    seconds_counted: float = 0.0
    """Those of the samples, of each at least what the policy says."""
    seconds_warmup: float = 0.0


Step = Callable[[], dict[str, float]]
"""Does one step, or some at once, and returns the seconds of its phases."""


def warm_up(step: Step, policy: Policy) -> tuple[float, float]:
    """Run steps until the policy's warm-up is over; return (seconds it took, seconds of the shortest step)."""
    start, shortest, steps = perf_counter(), float("inf"), 0
    while steps < policy.steps_warmup or perf_counter() - start < policy.seconds_warmup:
        if steps and perf_counter() - start > policy.seconds_most:
            break
        before = perf_counter()
        step()
        shortest = min(shortest, perf_counter() - before)
        steps += 1
    return perf_counter() - start, shortest


@final
class Sampler:
    """Sampler of a step, warmed up and calibrated when it is made: it takes all samples in one go, or in turns.

    `steps_done` returns the number of steps that all calls did so far; without it a call is one. Calls come in cycles
    of `cycle`, such as the batches of an epoch, of which the last one is smaller: a sample that is longer has whole
    ones. `is_quiet` says whether no other programs have disturbed the samples.
    """

    def __init__(
        self,
        step: Step,
        policy: Policy,
        steps_done: Callable[[], int] | None = None,
        cycle: int = 1,
        is_quiet: Callable[[], bool] = lambda: True,
    ) -> None:
        """Warm up `step` and calibrate the steps per sample; no sample is taken yet."""
        self.step, self.policy, self.steps_done = step, policy, steps_done
        self.cycle, self.is_quiet = cycle, is_quiet
        seconds, self.shortest = warm_up(step, policy)
        self.samples = self._new(seconds)

    def begin(self, seconds_most: float) -> None:
        """Discard the samples so far; the next ones are taken within `seconds_most`."""
        self.policy = replace(self.policy, seconds_most=seconds_most)
        self.samples = self._new(0.0)

    def take_all(self) -> None:
        """Take all samples that the policy asks for, with garbage collection off."""
        with garbage_kept():
            while not self.is_enough:
                self._take()

    def take_turn(self, seconds: float, seconds_settle: float) -> None:
        """Append samples to `samples` for `seconds`, at least one unless the policy's maximum is reached.

        Unrecorded steps for `seconds_settle` come first, since the process before has used the caches; not if a step is
        longer than the turn.
        """
        with garbage_kept():
            if self.shortest <= seconds:
                self._run_for(self.step, seconds_settle)
            if len(self.samples.seconds) < self.policy.samples_most:
                self._take_for(min(seconds, self.policy.seconds_total))

    @property
    def is_enough(self) -> bool:
        """Whether the policy asks for no more samples, or there is no time for more."""
        return self._is_complete or self.is_cut

    @property
    def is_cut(self) -> bool:
        """Whether `seconds_most` ended sampling before the policy was satisfied."""
        samples = self.samples
        is_late = samples.seconds_warmup + samples.seconds_sampled > self.policy.seconds_most
        return bool(samples.seconds) and is_late and not self._is_complete

    @property
    def _is_complete(self) -> bool:
        """Whether there are samples enough, by number and by total seconds."""
        count, policy = len(self.samples.seconds), self.policy
        if count >= policy.samples_most or count < policy.samples_least:
            return count >= policy.samples_most
        if self.samples.seconds_sampled >= policy.seconds_total:
            return True
        return self.samples.seconds_counted >= policy.seconds_total and self.is_quiet()

    def phases(self) -> dict[str, float]:
        """Return {phase: mean seconds per step} over all samples."""
        return {phase: seconds / self.samples.steps for phase, seconds in self.samples.phases.items()}

    def _new(self, seconds_warmup: float) -> Samples:
        """Return empty samples with as many steps per sample as fill the policy's sample time."""
        steps = max(1, round(self.policy.seconds_sample / max(self.shortest, 1e-9)))
        if steps > self.cycle:
            steps = round(steps / self.cycle) * self.cycle
        return Samples(steps_a_sample=steps, seconds_warmup=seconds_warmup)

    @staticmethod
    def _run_for(act: Callable[[], object], seconds: float) -> None:
        """Call `act` at least once, then until `seconds` have passed."""
        start = perf_counter()
        act()
        while perf_counter() - start < seconds:
            act()

    def _take_for(self, seconds: float) -> None:
        """Take samples, at least one, that count for `seconds`."""
        most = self.samples.seconds_counted + seconds
        self._take()
        while self.samples.seconds_counted < most:
            self._take()

    def _take(self) -> None:
        """Measure one sample of `steps_a_sample` steps; append its seconds per step, add the seconds of each phase."""
        samples, steps = self.samples, self.samples.steps_a_sample
        done = self.steps_done() if self.steps_done else 0
        before = perf_counter()
        for _ in range(samples.steps_a_sample):
            for phase, seconds in self.step().items():
                samples.phases[phase] = samples.phases.get(phase, 0.0) + seconds
        seconds = perf_counter() - before
        if self.steps_done:
            steps = self.steps_done() - done
        samples.seconds.append(seconds / steps)
        samples.seconds_sampled += seconds
        samples.seconds_counted += max(seconds, self.policy.seconds_counted)
        samples.steps += steps


@contextmanager
def garbage_kept() -> Iterator[None]:
    """Disable garbage collection within the context, then restore the previous state."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
