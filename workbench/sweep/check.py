"""Before a trial is timed: its own first step, checked stage by stage against float64 on sampled rows and columns.

Each stage is checked with the input it really got: scores against the batch and the weights, the slope against the
scores, the gradient against the slope, the new weights against the gradient and the optimizer's reference.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import kernels
from workbench import formats
from workbench.train import Prepared, Run

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


def check_step(run: Run) -> Checked:
    """Do the run's first step on random weights and compare; the run is as new afterwards."""
    generator = np.random.default_rng(0)
    batch = next(iter(run.batches.epoch(0)))
    prepared = run.prepare(batch)
    x = formats.convert(batch.x, "csr").astype(np.float64)
    touched = np.unique(x.indices)
    run.weights[touched] = 0.1 * generator.standard_normal((touched.size, run.weights.shape[1]))
    run.step = 1
    errors = {"forward": _forward(run, prepared, x, generator)}
    errors["loss"] = _loss(run, batch.y, generator)
    slope = run.slope[: x.shape[0]]
    columns = touched[_sampled(touched.size, generator)]
    expected = x[:, columns].T @ slope.astype(np.float64)
    if run.setup.gradient == "fused":
        errors["update"] = _update(run, expected, columns, lambda: run.update_fused(prepared, slope))
    else:
        gradient = run.backward(prepared, slope)
        part = _rows_of(gradient, columns).astype(np.float64)
        errors["gradient"] = _error(part, expected)
        errors["update"] = _update(run, part, columns, lambda: run.update(gradient))
    run.reset()
    return Checked(errors, ALLOWED[run.setup.dtype])


def _forward(run: Run, prepared: Prepared, x, generator) -> float:
    rows = _sampled(x.shape[0], generator)
    part = x[rows]
    used = np.unique(part.indices)
    expected = part[:, used] @ run.weights[used].astype(np.float64)
    return _error(run.forward(prepared)[rows], expected)


def _loss(run: Run, y: np.ndarray, generator) -> float:
    """Slope of the loss on sampled rows; a batch of fewer rows has a slope larger by the ratio of the rows."""
    scores = run.scores[: len(y)]
    run.model.evaluate(scores, y, run.slope[: len(y)])
    rows = _sampled(len(y), generator)
    part = scores[rows].astype(np.float64)
    targets = y[rows] if y.dtype.kind == "i" else y[rows].astype(np.float64)
    expected = np.empty_like(part)
    kernels.get(run.model.loss).reference(part, targets, expected)
    return _error(run.slope[rows], expected * (rows.size / len(y)))


def _rows_of(gradient, columns: np.ndarray) -> np.ndarray:
    if isinstance(gradient, formats.RowSparse):
        return gradient.values[np.searchsorted(gradient.indices, columns)]
    return gradient[columns].copy()


def _update(run: Run, part: np.ndarray, columns: np.ndarray, update: Callable[[], None]) -> float:
    """The rows of weights `columns` after `update`, against the optimizer's reference on the gradient's rows `part`."""
    expected = [run.weights[columns].astype(np.float64)]
    expected += [state[columns].astype(np.float64) for state in run.states]
    update()
    kernel = kernels.get(f"{run.optimizer.name}_dense")
    names = [name for name, _, _ in kernel.parsed][len(expected) + 1 :]
    kernel.reference(*expected, part, *({**run.options, "step": run.step}[name] for name in names))
    return _error(run.weights[columns], expected[0])
