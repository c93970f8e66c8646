"""NumPy with BLAS: a batch is copied, two products, the gradient of the scores between them; arrays are reused."""

from typing import final

import numpy as np

from benchmarks.fair.competitors import Candidate, register
from workbench.advising.frameworks.training import LoopTrainer, Problem, State


@final
class NumpyTrainer(LoopTrainer):
    """Training a batch at a time; labels are indicators [R, N], so both models have grad_scores = p - y."""

    def __init__(self, problem: Problem) -> None:
        """Allocate zeroed weights [D, N] and intercept, and work arrays for a batch, its scores and the gradient."""
        super().__init__(problem)
        rows, outputs = problem.batch_rows, problem.outputs
        self.w = np.zeros((problem.features, outputs), np.float32)
        self.b = np.zeros(outputs, np.float32)
        self.batch = np.empty((rows, problem.features), np.float32)
        self.scores = np.empty((rows, outputs), np.float32)
        self.gradient = np.empty_like(self.w)
        self.each = np.arange(rows)

    def train(self, order: np.ndarray, losses: np.ndarray) -> None:
        """Train on the rows of `order` in batches, in place; writes each batch's loss to `losses`."""
        rate = np.float32(self.problem.rate)
        for k, rows in enumerate(order.reshape(-1, self.problem.batch_rows)):
            np.take(self.problem.dense, rows, axis=0, out=self.batch, mode="clip")  # without mode it makes a copy more
            np.dot(self.batch, self.w, out=self.scores)
            self.scores += self.b
            losses[k] = self._grad_scores(self.problem.labels[rows])
            np.dot(self.batch.T, self.scores, out=self.gradient)
            self.gradient *= rate
            self.w -= self.gradient
            self.b -= rate * self.scores.sum(axis=0)

    def _grad_scores(self, labels: np.ndarray) -> float:
        """Replace the scores [rows, N] by the gradient of the mean loss in place; return the mean loss."""
        scores = self.scores
        if scores.shape[1] == 1:
            z, y = scores[:, 0], labels.astype(np.float32)
            small = np.exp(-np.abs(z))
            loss = np.maximum(z, 0) - z * y + np.log1p(small)
            z[...] = (np.where(z >= 0, 1, small) / (1 + small) - y) / np.float32(len(y))
            return float(loss.mean())
        scores -= scores.max(axis=1, keepdims=True)
        own = scores[self.each, labels]
        np.exp(scores, out=scores)
        total = scores.sum(axis=1, keepdims=True)
        scores /= total * np.float32(len(labels))
        scores[self.each, labels] -= np.float32(1 / len(labels))
        return float((np.log(total[:, 0]) - own).mean())

    def state(self) -> State:
        """Return the weights [D, N], the intercept [N] and the losses so far, not copied."""
        return State(self.w, self.b, self.losses)


register(Candidate("NumPy with BLAS", "independent", "dense", NumpyTrainer))
