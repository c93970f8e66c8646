"""scikit-learn: SGDClassifier on dense and on CSR rows, a step a row; and SparseClassifier in its place."""

from functools import partial
from typing import final

import numpy as np

from workbench.advising.frameworks.training import Problem, State, Trainer
from workbench.advising.frameworks.ways import register_way, why_no_dense

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


@final
class Bridge(Trainer):
    """`SparseClassifier.partial_fit` with a step a row, as SGDClassifier does."""

    def __init__(self, problem: Problem) -> None:
        """Make this project's SparseClassifier with plain SGD, without shuffling in the first run."""
        from workbench.bridges.sklearn import SparseClassifier

        super().__init__(problem)
        self.model = SparseClassifier(
            optimizer="sgd", learning_rate=problem.rate, batch_rows=problem.batch_rows, shuffle=False, random_state=0
        )
        self.runs = 0

    def first_order(self) -> np.ndarray:
        """Return the row indices of the first epoch in stored order, int64 [R], since it is not shuffled."""
        return np.arange(len(self.problem.labels))

    def run(self, batches: int) -> int:
        """Train on the first `batches` batches by `partial_fit`, shuffled from the second run on; return `batches`."""
        one, rows = self.problem, batches * self.problem.batch_rows
        self.model.set_params(shuffle=self.runs > 0)
        self.runs += 1
        is_whole = rows == len(one.labels)
        x, y = (one.csr, one.labels) if is_whole else (one.csr[:rows], one.labels[:rows])
        self.model.partial_fit(x, y, classes=np.unique(one.labels))
        return batches

    def state(self) -> State:
        """Return the coefficients as weights [D, N] and the intercept [N]; losses are unknown."""
        return State(np.atleast_2d(self.model.coef_).T, np.atleast_1d(self.model.intercept_))


_register = partial(register_way, "sklearn")
_register(
    "SGDClassifier, dense rows",
    "dense",
    partial(SklearnTrainer, kind="dense"),
    "dense",
    why_not=lambda problem: why_not(problem) or why_no_dense(problem),
)
_register("SGDClassifier, CSR rows", "sparse", partial(SklearnTrainer, kind="sparse"), "sparse", why_not=why_not)
_register("SparseClassifier", "sparse", Bridge, "bridge", side="project")
