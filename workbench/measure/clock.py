"""The clock: warm-up, calibration until a sample is long enough, samples until the budget is spent, phases apart.

Garbage is not collected while samples are taken: when Python would, depends on all that was allocated before.

>>> from workbench.measure.clock import Policy, sample
>>> timed = sample(lambda: {"work": 1e-3}, Policy(seconds_warmup=0, seconds_sample=0, seconds_total=0, samples_least=5))
>>> len(timed.seconds), round(timed.phases["work"], 6)
(5, 0.001)
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter


@dataclass(frozen=True)
class Policy:
    """Time to measure for. A sample is the mean of as many steps as make it `seconds_sample` long.

    Sampling ends after `seconds_total` once there are `samples_least`, or at `samples_most`. After `seconds_most`,
    warm-up and all, it ends with what there is: one warm-up step and one sample at least.
    """

    seconds_warmup: float = 0.1
    steps_warmup: int = 3
    seconds_sample: float = 0.005
    seconds_total: float = 0.15
    samples_least: int = 7
    samples_most: int = 200
    seconds_most: float = float("inf")


@dataclass
class Samples:
    """Samples: seconds a step, one number a sample; mean seconds a step of each phase; steps behind them."""

    seconds: list[float] = field(default_factory=list)
    phases: dict[str, float] = field(default_factory=dict)
    steps: int = 0
    steps_a_sample: int = 1
    """Calls of the step, for each sample."""
    seconds_sampled: float = 0.0
    seconds_warmup: float = 0.0
    is_cut: bool = False
    """Whether it ended by `seconds_most`, before the policy had all it asks for."""


Step = Callable[[], dict[str, float]]
"""Does one step, or some at once, and returns the seconds of its phases."""


def warm_up(step: Step, policy: Policy) -> tuple[float, float]:
    """Run steps until the warm-up is over; returns (seconds it took, shortest step: the estimate to calibrate by)."""
    start, shortest, steps = perf_counter(), float("inf"), 0
    while steps < policy.steps_warmup or perf_counter() - start < policy.seconds_warmup:
        if steps and perf_counter() - start > policy.seconds_most:
            break
        before = perf_counter()
        step()
        shortest = min(shortest, perf_counter() - before)
        steps += 1
    return perf_counter() - start, shortest


def sample(step: Step, policy: Policy, steps_done: Callable[[], int] = lambda: 1) -> Samples:
    """Warm up, calibrate, then sample `step` as the policy says; `steps_done` tells how many the last call did."""
    samples = Samples()
    samples.seconds_warmup, shortest = warm_up(step, policy)
    samples.steps_a_sample = max(1, round(policy.seconds_sample / max(shortest, 1e-9)))
    with garbage_kept():
        _take(samples, step, policy, steps_done)
    samples.phases = {phase: seconds / samples.steps for phase, seconds in samples.phases.items()}
    return samples


@contextmanager
def garbage_kept() -> Iterator[None]:
    """Collect no garbage while the context lasts; afterwards it is as before."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _take(samples: Samples, step: Step, policy: Policy, steps_done: Callable[[], int]) -> None:
    """Fill the samples, the phases summed."""
    start = perf_counter()
    while not _enough(samples, policy, perf_counter() - start):
        before, steps = perf_counter(), 0
        for _ in range(samples.steps_a_sample):
            for phase, seconds in step().items():
                samples.phases[phase] = samples.phases.get(phase, 0.0) + seconds
            steps += steps_done()
        seconds = perf_counter() - before
        samples.seconds.append(seconds / steps)
        samples.seconds_sampled += seconds
        samples.steps += steps


def _enough(samples: Samples, policy: Policy, seconds: float) -> bool:
    count = len(samples.seconds)
    if count >= policy.samples_most or (count >= policy.samples_least and seconds >= policy.seconds_total):
        return True
    samples.is_cut = bool(count) and samples.seconds_warmup + seconds > policy.seconds_most
    return samples.is_cut
