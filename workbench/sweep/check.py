"""Before a trial is timed: its own first step, checked stage by stage against float64 on sampled rows and columns.

Each stage is checked with the input it really got: scores against the batch and the weights, the slope against the
scores, the gradient against the slope, the new weights against the gradient and the optimizer's reference.
"""

from dataclasses import dataclass

import numpy as np

import kernels
from workbench import formats, optimizers
from workbench.train import Run
from workbench.train.device import DeviceRun

SAMPLED = 16
"""Rows and columns that are checked; the references are plain loops."""

ALLOWED = {"float32": 2e-4, "float64": 1e-10}
"""Largest error allowed, relative to the largest reference value of the stage."""


@dataclass(frozen=True)
class Checked:
    """The largest relative error of each stage, and what is allowed."""

    errors: dict[str, float]
    allowed: float

    @property
    def error(self) -> float:
        """The largest of all stages; NaN when any is."""
        return float(np.max(list(self.errors.values())))

    @property
    def reason(self) -> str:
        """Which stage is wrong by how much, or ""."""
        bad = {stage: error for stage, error in self.errors.items() if not error <= self.allowed}
        listed = ", ".join(f"{stage} by {error:.2g}" for stage, error in bad.items())
        return f"Wrong against the float64 reference: {listed}; allowed is {self.allowed:g}." if bad else ""


def _error(came: np.ndarray, expected: np.ndarray) -> float:
    scale = np.abs(expected).max(initial=0.0)
    return float(np.abs(came - expected).max(initial=0.0) / (scale or 1.0))


def _sampled(size: int, generator: np.random.Generator) -> np.ndarray:
    return np.sort(generator.choice(size, min(SAMPLED, size), replace=False))


def check_step(run: Run | DeviceRun) -> Checked:
    """Do the run's first step on random weights and compare; the run is as new afterwards."""
    generator = np.random.default_rng(0)
    batch = next(iter(run.batches.epoch(0)))
    prepared = run.prepare(batch)
    x = formats.to_format(batch.x, "csr").astype(np.float64)
    touched = np.unique(x.indices)
    run.write_rows(touched, 0.1 * generator.standard_normal((touched.size, run.width)).astype(run.dtype))
    before = _draw_intercept(run, generator)
    scores = run.scores_of(batch.x)
    run.forward(prepared)
    slope = run.slope()
    errors = {"forward": _forward(run, scores, x, generator), "loss": _loss(run, scores, slope, batch.y, generator)}
    columns = touched[_sampled(touched.size, generator)]
    part, sums = x[:, columns].T @ slope.astype(np.float64), slope.astype(np.float64).sum(axis=0)
    gradient = run.backward()
    if (came := run.gradient_rows(gradient, columns)) is not None:
        came = came.astype(np.float64)
        errors["gradient"], part = _error(came, part), came
    errors["update"] = _update(run, part, columns, gradient)
    if before is not None:
        errors["intercept"] = _error(run.intercept, _stepped(run, before[:, None], sums[:, None], decay=0.0)[:, 0])
    run.reset()
    return Checked(errors, ALLOWED[run.setup.dtype])


def _forward(run: Run | DeviceRun, scores: np.ndarray, x, generator) -> float:
    rows = _sampled(x.shape[0], generator)
    part = x[rows]
    used = np.unique(part.indices)
    expected = part[:, used] @ run.read_rows(used).astype(np.float64)
    return _error(scores[rows], expected + run.intercept if run.setup.intercept else expected)


def _loss(run: Run | DeviceRun, scores: np.ndarray, slope: np.ndarray, y: np.ndarray, generator) -> float:
    """Slope of the loss on sampled rows; a batch of fewer rows has a slope larger by the ratio of the rows."""
    rows = _sampled(len(y), generator)
    part = scores[rows].astype(np.float64)
    targets = y[rows] if y.dtype.kind == "i" else y[rows].astype(np.float64)
    expected = np.empty_like(part)
    kernels.get(run.model.loss).reference(part, targets, expected)
    return _error(slope[rows], expected * (rows.size / len(y)))


def _update(run: Run | DeviceRun, part: np.ndarray, columns: np.ndarray, gradient) -> float:
    """Rows `columns` of the weights after the update, against the optimizer's reference on the gradient's rows."""
    weights = run.read_rows(columns).astype(np.float64)
    run.update(gradient)
    return _error(run.read_rows(columns), _stepped(run, weights, part))


def _stepped(run: Run | DeviceRun, weights: np.ndarray, gradient: np.ndarray, **numbers: float) -> np.ndarray:
    """The weights after the first step of the optimizer's reference, with other `numbers` than the setup's."""
    optimizer = optimizers.get(run.setup.optimizer)
    expected = [weights, *optimizer.new_states(weights)]
    kernel = kernels.get(f"{optimizer.name}_dense")
    names = [name for name, _, _ in kernel.parsed][len(expected) + 1 :]
    numbers = {**optimizer.resolve(run.setup.options), "step": 1, **numbers}
    kernel.reference(*expected, gradient, *(numbers[name] for name in names))
    return weights


def _draw_intercept(run: Run | DeviceRun, generator) -> np.ndarray | None:
    """Give the intercept random numbers, where there is one; a copy of them, float64."""
    if not run.setup.intercept:
        return None
    run.intercept[...] = 0.1 * generator.standard_normal(run.width)
    return run.intercept.astype(np.float64)
