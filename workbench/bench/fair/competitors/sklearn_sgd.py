"""scikit-learn's SGDClassifier on dense and on CSR rows: a step a row, of one output."""

from functools import partial
from typing import Any, final

import numpy as np

from workbench.bench.fair.competitors import Competitor, Trainer, register
from workbench.bench.fair.configurations import Problem, State

DECAY_SPARSE = 0.01
"""What scikit-learn multiplies the steps of the intercept by if X is sparse (`SPARSE_INTERCEPT_DECAY`)."""


@final
class SklearnTrainer(Trainer):
    """A training by `partial_fit` on all rows, which it shuffles itself; its first run, which is checked, does not."""

    def __init__(self, problem: Problem, kind: str) -> None:
        """Make an SGDClassifier without penalty at the problem's rate; X is CSR if `kind` is "sparse", else dense."""
        from sklearn.linear_model import SGDClassifier

        super().__init__(problem)
        self.kind, self.x = kind, problem.csr if kind == "sparse" else problem.dense
        self.model = SGDClassifier(
            loss="log_loss", penalty=None, learning_rate="constant", eta0=problem.rate, shuffle=False, random_state=0
        )
        self.y = problem.labels.astype(np.float64)
        self.runs = 0

    def first_order(self) -> np.ndarray:
        """Return the row indices of the first epoch in stored order, int64 [R], since it is not shuffled."""
        return np.arange(len(self.y))

    @property
    def rate_intercept(self) -> float:
        """Learning rate of the intercept, a hundredth of that of the weights on CSR rows."""
        return self.problem.rate * (DECAY_SPARSE if self.kind == "sparse" else 1.0)

    def run(self, batches: int) -> int:
        """Train on the first `batches` rows by `partial_fit`, shuffled from the second run on; return `batches`.

        Checks for finite values are switched off meanwhile.
        """
        import sklearn

        self.model.shuffle, self.runs = self.runs > 0, self.runs + 1
        is_whole = batches == len(self.y)  # a part of CSR rows is a copy
        x, y = (self.x, self.y) if is_whole else (self.x[:batches], self.y[:batches])
        with sklearn.config_context(assume_finite=True):
            self.model.partial_fit(x, y, classes=[0.0, 1.0])
        return batches

    def state(self) -> State:
        """Return coefficients [D, 1] and intercept [1]; scikit-learn reports no losses."""
        return State(self.model.coef_.T, self.model.intercept_)


def why_not(problem: Problem) -> str:
    """Return why SGDClassifier cannot do the same work (several outputs, or batches), or "" if it can."""
    if problem.outputs > 1:
        return "It has no softmax: one output against the rest is other work."
    return "" if problem.batch_rows == 1 else f"It steps after each row; the batches have {problem.batch_rows}."


def _competitor(kind: str, note: str) -> Competitor:
    """Return the SGDClassifier competitor on rows of a kind, "dense" or "sparse"."""
    make: Any = partial(SklearnTrainer, kind=kind)
    name = f"scikit-learn SGDClassifier, {'CSR' if kind == 'sparse' else 'dense'} rows"
    return Competitor(name, "independent", kind, make, why_not, note=note)


register(_competitor("dense", "checked without its shuffle; tells no losses"))
register(_competitor("sparse", "checked without its shuffle; tells no losses; shorter steps of the intercept"))
