"""scikit-learn's solvers of all rows at once: LogisticRegression by each solver, Ridge. Each point is a fit."""

import warnings
from functools import partial

import numpy as np

from workbench.bench.fit.contenders.sklearn_sgd import log_probabilities
from workbench.bench.fit.contract import Contender, Rows, Scorer, Value, grid, register

STRENGTHS = grid(C=(0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0))
BYTES_NUMBER = 8


def refit(solver: str, rows: Rows, value: Value, iterations: int) -> tuple[Scorer, bool]:
    """A logistic or softmax regression with at most so many iterations."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(
        C=value["C"], solver=solver, max_iter=iterations, fit_intercept=rows.has_intercept, random_state=rows.seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is left early on purpose
        model.fit(rows.x, rows.y.reshape(-1).astype(np.int64))
    is_done = int(np.max(model.n_iter_)) < iterations
    return (model.decision_function if rows.model == "logistic" else partial(log_probabilities, model)), is_done


def refit_ridge(rows: Rows, value: Value, iterations: int) -> tuple[Scorer, bool]:
    """A ridge regression by conjugate gradients with at most so many iterations."""
    from sklearn.linear_model import Ridge

    model = Ridge(alpha=value["alpha"], solver="sparse_cg", max_iter=iterations, fit_intercept=rows.has_intercept)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is left early on purpose
        model.fit(rows.x, rows.y)
    return model.predict, False


def hessian(rows: Rows) -> int:
    """Bytes of the matrix [D N, D N] that newton-cholesky factors."""
    size = rows.x.shape[1] * (rows.width if rows.model == "softmax" else 1)
    return size * size * BYTES_NUMBER


def _solver(name: str, models: tuple[str, ...], **more) -> None:
    shown = f"scikit-learn LogisticRegression {name}"
    register(Contender(shown, "rival", models, lambda model: STRENGTHS, refit=partial(refit, name), **more))


_solver("liblinear", ("logistic",))
_solver("lbfgs", ("logistic", "softmax"))
_solver("saga", ("logistic", "softmax"))
_solver("newton-cholesky", ("logistic", "softmax"), bytes_needed=hessian)
ALPHAS = grid(alpha=(0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0))
register(Contender("scikit-learn Ridge sparse_cg", "rival", ("linear",), lambda model: ALPHAS, refit=refit_ridge))
