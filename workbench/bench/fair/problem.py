"""Rows of a configuration, drawn, dense and as CSR; and what training on them should come to, in float64."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from kernels import aligned
from workbench.bench.fair.configurations import Configuration
from workbench.bench.fair.loops import reference
from workbench.formats.compressed import assemble

RATE = 0.5
NOISE = 0.1
"""Share of the labels that are drawn whatever the row."""
ELEMENTS_DRAWN = 2**24
"""Values of X that are drawn at once."""


@dataclass(frozen=True)
class State:
    """Weights [D, N], intercept [N], and the loss of each batch; None if a library does not tell it."""

    w: np.ndarray
    b: np.ndarray
    losses: np.ndarray | None = None


@dataclass(eq=False)
class Problem:
    """X [R, D] float32 dense and as CSR (`csr`, indices int32), `labels` int64 [R]; rows have length 1, about.

    `threads` is the thread count of every candidate, `rate` the learning rate.
    """

    configuration: Configuration
    dense: np.ndarray
    csr: scipy.sparse.csr_array
    labels: np.ndarray
    threads: int = 1
    rate: float = RATE
    states: dict[tuple, State] = field(default_factory=dict)

    @property
    def batch_rows(self) -> int:
        """Rows a batch."""
        return self.configuration.batch_rows

    @property
    def outputs(self) -> int:
        """Number of outputs N, columns of the weights."""
        return self.configuration.width

    @property
    def features(self) -> int:
        """Number of columns D of the data."""
        return self.configuration.features

    @property
    def batches(self) -> int:
        """Number of whole batches of an epoch."""
        return len(self.labels) // self.batch_rows

    @cached_property
    def targets(self) -> np.ndarray:
        """Labels as the project's models take them: float32 [R, 1] of logistic regression, else int64 [R]."""
        return self.labels.astype(np.float32)[:, None] if self.outputs == 1 else self.labels

    def order(self, epoch: int) -> np.ndarray:
        """Return the rows of an epoch in a random order, int64 [R]."""
        return np.random.default_rng((self.configuration.seed, epoch)).permutation(len(self.labels))

    def expected(self, order: np.ndarray, rate_intercept: float | None = None) -> State:
        """Return weights, intercept and losses after training on these rows by plain loops in float64."""
        rate_b = self.rate if rate_intercept is None else rate_intercept
        key = order.tobytes(), rate_b
        if key not in self.states:
            state = State(np.zeros((self.features, self.outputs)), np.zeros(self.outputs), self.new_losses(order))
            rows = self.csr.indptr, self.csr.indices, self.csr.data, self.labels, order, self.batch_rows
            reference(*rows, self.rate, rate_b, state.w, state.b, state.losses)
            self.states[key] = state  # most candidates train on the same rows
        return self.states[key]

    def new_losses(self, order: np.ndarray) -> np.ndarray:
        """Return a float64 array for the loss of each batch of these rows."""
        return np.zeros(order.size // self.batch_rows)


def error_of(state: State, expected: State) -> float:
    """Return largest error of weights, intercept and losses, each relative to the largest expected value of its
    kind."""
    pairs = [(state.w, expected.w), (state.b, expected.b)]
    if state.losses is not None and expected.losses is not None:
        pairs.append((state.losses, expected.losses))
    worst = float(np.max([np.abs(came - wanted).max() / (np.abs(wanted).max() or 1.0) for came, wanted in pairs]))
    return worst if np.isfinite(worst) else float("inf")


def draw(configuration: Configuration, threads: int = 1) -> Problem:
    """Draw the rows: each value is stored with the probability `density`, normal, scaled to rows of about length 1.

    The label is the largest of the scores of drawn weights, or drawn by chance for a share of `NOISE`.
    """
    rng = np.random.default_rng(configuration.seed)
    rows, features = configuration.rows, configuration.features
    dense = aligned.empty((rows * features,), np.float32).reshape(rows, features)
    indptr: list[Any] = [0]
    indices: list[np.ndarray] = []
    data: list[np.ndarray] = []
    scale = np.float32(1 / np.sqrt(max(configuration.density * features, 1.0)))
    at_once = max(1, ELEMENTS_DRAWN // features)
    for first in range(0, rows, at_once):
        part = dense[first : first + at_once]
        stored = rng.random(part.shape, np.float32) < configuration.density
        values = rng.standard_normal(np.count_nonzero(stored), np.float32) * scale
        part[...] = 0
        part[stored] = values
        indptr.append(np.cumsum(stored.sum(axis=1)) + sum(map(len, data)))
        indices.append((np.flatnonzero(stored) % features).astype(np.int32))
        data.append(values)
    starts = np.hstack(indptr).astype(np.int32)
    csr = assemble("csr", starts, np.concatenate(indices), np.concatenate(data), (rows, features))
    labels = _labels(csr, max(configuration.width, 2), rng)
    return Problem(configuration, dense, csr, labels, threads)


def _labels(csr: scipy.sparse.csr_array, classes: int, rng: np.random.Generator) -> np.ndarray:
    """Return class labels, int64 [rows], by a random linear teacher; a share `NOISE` is random."""
    scores = csr @ rng.standard_normal((csr.shape[1], classes)).astype(np.float32)
    by_chance = rng.integers(0, classes, csr.shape[0])
    return np.where(rng.random(csr.shape[0]) < NOISE, by_chance, scores.argmax(axis=1)).astype(np.int64)
