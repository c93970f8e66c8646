"""The posterior of times with every effect of the model as an unknown of its own: slow, and independent of the product.

The product integrates the effects out and works on the covariance of trials. Here they are all solved for, by their
normal equations, which is another way to the same distribution.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from workbench.measure.posterior import LARGE, Noise, Trial


def posterior_with_effects(
    trials: Sequence[Trial], deviation: float, noise: Noise, predictions: Mapping[str, float] | None = None
) -> tuple[dict[str, float], np.ndarray]:
    """Mean log seconds by candidate, and their covariance, if a round's log ratio has that standard deviation."""
    predictions = predictions or {}
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
    own = np.array([half * (1 - noise.process) * (noise.wider**2 if trial.is_disturbed else 1.0) for trial in trials])
    start = np.array([means.get(name, 0.0) for name in unknown])
    precision = np.diag([1 / variances[name] for name in unknown]) + design.T @ (design / own[:, None])
    logs = np.log([trial.seconds for trial in trials]) - design @ start
    solved = start + np.linalg.solve(precision, design.T @ (logs / own))
    covariance = np.linalg.inv(precision)[: len(names), : len(names)]
    return dict(zip(names, solved[: len(names)].tolist(), strict=True)), covariance


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
        effects |= {("slowdown", run): (1.0, noise.slowdown**2), ("bias", candidate): (1.0, noise.bias**2 / 2)}
    variances |= {name: variance for name, (_, variance) in effects.items()}
    return {name: load for name, (load, _) in effects.items()}
