"""scikit-learn: SGDClassifier on dense and on CSR rows, a step a row; and SparseClassifier in its place."""

from functools import partial
from typing import final

import numpy as np

from workbench.bench.fair.competitors import Trainer
from workbench.bench.fair.competitors.sklearn_sgd import SklearnTrainer
from workbench.bench.fair.competitors.sklearn_sgd import why_not as why_not_sgd
from workbench.bench.fair.configurations import Problem, State
from workbench.bench.frameworks.ways import register_way, why_no_dense


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
    why_not=lambda problem: why_not_sgd(problem) or why_no_dense(problem),
)
_register("SGDClassifier, CSR rows", "sparse", partial(SklearnTrainer, kind="sparse"), "sparse", why_not=why_not_sgd)
_register("SparseClassifier", "sparse", Bridge, "bridge", side="project")
