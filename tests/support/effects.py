"""The posterior of times with every effect of the model as an unknown of its own: slow, and independent of the product.

The product integrates the effects out and works on the covariance of trials. Here they are all solved for, by their
normal equations, which is another way to the same distribution.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from workbench.measure.posterior import FREEDOM, LARGE, Noise, Trial


def posterior_with_effects(
    trials: Sequence[Trial], deviation: float, noise: Noise, predictions: Mapping[str, float] | None = None
) -> tuple[dict[str, float], np.ndarray]:
    """Mean log seconds by candidate, and their covariance, if a round's log ratio has that standard deviation."""
    predictions = predictions or {}
    noise = replace(noise, bias=_usual_and_seen_bias(trials, noise.bias))
    names = list(dict.fromkeys([*(trial.candidate for trial in trials), *predictions]))
    half = deviation**2 / 2
    middle = np.mean(np.log(list(predictions.values()) or [trial.seconds for trial in trials]))
    variance_of = {name: (noise.predicted if name in predictions else noise.unknown) ** 2 / 2 for name in names}
    mean_of = {name: np.log(predictions[name]) if name in predictions else middle for name in names}
    variances: dict[tuple, float] = {("m", name): variance for name, variance in variance_of.items()}
    means = {("m", name): mean for name, mean in mean_of.items()}
    rows = [_loads(trial, trials, index, noise, half, variances) for index, trial in enumerate(trials)]
    unknown = list(variances)
    design = np.array([[row.get(name, 0.0) for name in unknown] for row in rows])
    more = [(noise.wider**2 - 1) * trial.severity**2 * trial.is_disturbed for trial in trials]
    own = half * (1 - noise.process) * (1 + np.array(more))
    start = np.array([means.get(name, 0.0) for name in unknown])
    precision = np.diag([1 / variances[name] for name in unknown]) + design.T @ (design / own[:, None])
    logs = np.log([trial.seconds for trial in trials]) - design @ start
    solved = start + np.linalg.solve(precision, design.T @ (logs / own))
    covariance = np.linalg.inv(precision)[: len(names), : len(names)]
    return dict(zip(names, solved[: len(names)].tolist(), strict=True)), covariance


def _usual_and_seen_bias(trials: Sequence[Trial], usual: float) -> float:
    """The bias that counts as `FREEDOM` observations, and those of each run that has quiet and disturbed trials of two.

    Here by the sum of squares of all pairs, which is the number of candidates times that around the mean.
    """
    squares, count = FREEDOM * usual**2, FREEDOM
    for run in {trial.run for trial in trials}:
        own = [trial for trial in trials if trial.run == run]
        shifts = []
        for name in {trial.candidate for trial in own}:
            logs = [[np.log(t.seconds) for t in own if t.candidate == name and t.is_disturbed == s] for s in (0, 1)]
            if all(logs):
                severity = np.mean([t.severity for t in own if t.is_disturbed])
                shifts.append((np.mean(logs[1]) - np.mean(logs[0])) / severity)
        if shifts:
            squares += 2 * sum((a - b) ** 2 for a, b in combinations(shifts, 2)) / len(shifts)
            count += len(shifts) - 1
    return float(np.sqrt(squares / count))


def _loads(
    trial: Trial, trials: Sequence[Trial], index: int, noise: Noise, half: float, variances: dict[tuple, float]
) -> dict[tuple, float]:
    """The effects of one trial, and by how much each counts; their variances are added to `variances`."""
    of_run = [one.is_disturbed for one in trials if one.run == trial.run]
    candidate, run = trial.candidate, trial.run
    process = (run, trial.process) if trial.process is not None else (run, "alone", index)
    effects = {
        ("m", candidate): (1.0, variances["m", candidate]),
        ("level", run): (1.0, LARGE**2),
        ("speed", run, trial.round): (1.0, noise.speed**2),
        ("shared", candidate, run): (1.0, half * noise.shared),
        ("process", candidate, *process): (1.0, half * noise.process),
        ("unrest", candidate, run): (sum(of_run) / len(of_run), noise.unrest**2 / 2),
    }
    if trial.is_disturbed:
        effects |= {
            ("slowdown", run): (1.0, noise.slowdown**2),
            ("bias", candidate): (
                np.mean([t.severity for t in trials if t.run == run and t.is_disturbed]),
                noise.bias**2 / 2,
            ),
        }
    variances |= {name: variance for name, (_, variance) in effects.items()}
    return {name: load for name, (load, _) in effects.items()}
