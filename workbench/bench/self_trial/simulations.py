"""The parts that simulate: how often intervals hold the truth, and how often a difference is decided.

The interval is the one that a verdict comes with: that of the last look, at which the comparison was decided or had all
its rounds. It is held to more than 95 % at each look since there are several; how often it holds the truth at the end
is found here.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from workbench.bench.self_trial.noise import Noise
from workbench.bench.self_trial.outcomes import counted
from workbench.bench.self_trial.simulate import Added, Ends, draw, ends
from workbench.measure import rounds

SWEEPS = 10_000
TRUTHS = (1.0, 1.1, 1.2, 1.5, 2.0, 4.0)
CSR, VENDOR, DENSE = range(3)
"""Places of the contenders in a recording."""
PAIRS = ((CSR, 0),), ((VENDOR, 0),)
"""The sparse side of comparisons of two."""
RIVALS = {
    1: PAIRS[0],
    2: ((CSR, 0), (VENDOR, 0)),
    4: ((CSR, 0), (VENDOR, 0), (CSR, 1), (VENDOR, 1)),
}
"""Sparse contenders as (contender, half), by how many the best is chosen of."""
COVERED = (0.93, 0.97)
QUIET_SD = 0.1
CONDITIONS = {
    "recorded noise": Added(),
    "and what all rounds of a run share": Added(run=math.sqrt(1 / rounds.SHARED)),
    "and drift": Added(drift=0.02, slope=0.1),
    "and bursts": Added(bursts=0.05),
}
"""Noise that simulations are made with: that of the recording, alone or with what is added."""


def simulated(
    noise: Noise, truth: float, sparse: tuple[tuple[int, int], ...], added: Added, seed: int, sweeps: int
) -> Ends:
    """The ends of sweeps in which every contender of `sparse`, (contender, half), is `truth` times as fast as dense."""
    slots = (*sparse, (DENSE, 0))
    logs = draw(noise, slots, sweeps, seed, added)
    return ends(logs[:, :-1] - math.log(truth), logs[:, -1:])


def coverage(noise: Noise, sweeps: int | None = None) -> Iterator[dict[str, Any]]:
    """Outcomes: of each condition and number of rivals, all truths together, then each truth alone."""
    what, sweeps = "the interval at the end holds the true ratio", sweeps or SWEEPS
    for condition, added in CONDITIONS.items():
        for rivals in RIVALS:
            total = 0
            for seed, truth in enumerate(TRUTHS):
                found = simulated(noise, truth, RIVALS[rivals], added, seed, sweeps // len(TRUTHS))
                hits = int(found.covers(truth).sum())
                total += hits
                alone = {"truth": truth, "rivals": rivals, "rounds": float(found.rounds.mean())}
                yield counted(
                    "coverage",
                    f"{what}, {truth:g} x of {rivals}",
                    condition,
                    hits,
                    len(found.low),
                    (None, None),
                    **alone,
                )
            count = sweeps // len(TRUTHS) * len(TRUTHS)
            yield counted("coverage", f"{what}, best of {rivals}", condition, total, count, COVERED, rivals=rivals)


def power(noise: Noise, sweeps: int | None = None) -> Iterator[dict[str, Any]]:
    """Outcomes: how often a true difference is decided rightly, and equals are decided at all."""
    sweeps = sweeps or SWEEPS
    quiet = noise.scaled(QUIET_SD / _sd(noise))
    wanted: Sequence[tuple[Noise, str, float, tuple[float | None, float | None]]] = (
        (noise, "recorded noise", 1.0, (None, 0.05)),
        (noise, "recorded noise", 1.1, (None, None)),
        (noise, "recorded noise", 1.2, (None, None)),
        (noise, "recorded noise", 1.5, (0.75, None)),
        (noise, "recorded noise", 2.0, (0.98, None)),
        (noise, "recorded noise", 4.0, (None, None)),
        (quiet, f"scaled to {QUIET_SD:g}", 1.0, (None, 0.05)),
        (quiet, f"scaled to {QUIET_SD:g}", 1.1, (None, None)),
        (quiet, f"scaled to {QUIET_SD:g}", 1.2, (0.95, None)),
        (quiet, f"scaled to {QUIET_SD:g}", 1.5, (None, None)),
    )
    for one, condition, truth, limits in wanted:
        found = [simulated(one, truth, pair, Added(), 100, sweeps // len(PAIRS)) for pair in PAIRS]
        decided = ("sparse", "dense") if truth == 1.0 else ("sparse",)
        hits = sum(int(ended.decided(verdict).sum()) for ended in found for verdict in decided)
        what = "equals get a winner" if truth == 1.0 else f"{truth:g} x is decided for sparse"
        more = {"truth": truth, "rivals": 1, "rounds": float(np.mean([ended.rounds.mean() for ended in found]))}
        condition = f"{condition}, sd of a ratio {_sd(one):.2f}"
        yield counted("power", what, condition, hits, sweeps // len(PAIRS) * len(PAIRS), limits, **more)


def _sd(noise: Noise) -> float:
    """Standard deviation of a log ratio sparse / dense of the recording."""
    return float(np.mean([noise.pair_sd(contender, DENSE) for ((contender, _),) in PAIRS]))
