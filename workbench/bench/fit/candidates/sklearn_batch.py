"""scikit-learn's solvers of all rows at once: LogisticRegression by each solver, Ridge. Each point is a fit."""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from workbench.bench.fit.candidates.sklearn_sgd import log_probabilities
from workbench.bench.fit.contract import STRENGTHS, Candidate, Rows, Scorer, Value, grid, register
from workbench.bench.fit.torch_loop import of_dense_rows, register_both

BYTES_NUMBER = 8
DUAL = " dual"
"""The end of the name of a solver that goes by its dual problem."""


def estimator(solver: str, rows: Rows, value: Value, iterations: int) -> Any:
    """Return a logistic regression with at most so many iterations.

    A solver that ends in " dual" goes by its dual problem.
    """
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(
        C=value["C"],
        solver=solver.removesuffix(DUAL),
        dual=solver.endswith(DUAL),
        max_iter=iterations,
        fit_intercept=rows.has_intercept,
        random_state=rows.seed,
    )


def refit(solver: str, rows: Rows, value: Value, iterations: int) -> tuple[Scorer, bool]:
    """Return a logistic or softmax regression with at most so many iterations."""
    from sklearn.exceptions import ConvergenceWarning

    model = estimator(solver, rows, value, iterations)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is left early on purpose
        model.fit(rows.x, rows.y.reshape(-1).astype(np.int64))
    is_done = int(np.max(model.n_iter_)) < iterations
    return (
        model.decision_function if rows.model == "logistic" else partial(log_probabilities, model, rows.width)
    ), is_done


def refit_of_each_class(solver: str, rows: Rows, value: Value, iterations: int) -> tuple[Scorer, bool]:
    """Return a logistic regression for each class, one against the rest, with at most so many iterations."""
    import joblib
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.multiclass import OneVsRestClassifier

    model = OneVsRestClassifier(estimator(solver, rows, value, iterations), n_jobs=rows.threads)
    with warnings.catch_warnings(), joblib.parallel_config("threading"):  # processes would have to be sent the rows
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is left early on purpose
        model.fit(rows.x, rows.y.astype(np.int64))
    is_done = max(int(np.max(one.n_iter_)) for one in model.estimators_) < iterations
    return model.decision_function, is_done


def refit_ridge(solver: str, rows: Rows, value: Value, iterations: int) -> tuple[Scorer, bool]:
    """Return a ridge regression by conjugate gradients with at most so many iterations, or by a factorization at
    once."""
    from sklearn.linear_model import Ridge

    model = Ridge(alpha=value["alpha"], solver=solver, max_iter=iterations, fit_intercept=rows.has_intercept)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is left early on purpose
        model.fit(rows.x, rows.y)
    return model.predict, solver == "cholesky"


def hessian(rows: Rows) -> int:
    """Return the bytes of the matrix [D N, D N] that newton-cholesky factors."""
    size = rows.x.shape[1] * (rows.width if rows.model == "softmax" else 1)
    return size * size * BYTES_NUMBER


def _too_many_columns(rows: Rows) -> str:
    """Return why a solver is left out (too many weights for the rows), or ""."""
    size = rows.x.shape[1] * (rows.width if rows.model == "softmax" else 1)
    advice = "scikit-learn advises this solver where rows are many more than weights"
    return "" if 10 * size <= rows.x.shape[0] else f"{advice}; here are {rows.x.shape[0]:,} rows and {size:,} weights."


def _solver(name: str, models: tuple[str, ...], registered: Callable = register_both, **more: Any) -> None:
    """Register LogisticRegression with the solver `name` for the given models."""
    shown = f"scikit-learn LogisticRegression {name}"
    registered(Candidate(shown, "rival", models, lambda model: STRENGTHS, refit=partial(refit, name), **more))


for _name in ("liblinear", f"liblinear{DUAL}"):
    _solver(_name, ("logistic",), register)  # it makes its own sparse rows of dense ones
for _name in ("lbfgs", "saga"):
    _solver(_name, ("logistic", "softmax"))
_solver(
    "newton-cholesky",
    ("logistic", "softmax"),
    partial(register_both, dtype="float64"),  # in float32 it gives up on dense rows, and goes on by lbfgs
    bytes_needed=hessian,
    why_not=_too_many_columns,
)
for _name in ("liblinear", f"liblinear{DUAL}", "lbfgs"):
    _shown, _refit = f"scikit-learn OneVsRest {_name}", partial(refit_of_each_class, _name)
    _registered = register_both if _name == "lbfgs" else register
    _registered(Candidate(_shown, "rival", ("multilabel",), lambda model: STRENGTHS, refit=_refit))
ALPHAS = grid(alpha=(0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0))
for _name, _registered in (("sparse_cg", register), ("cholesky", lambda one: register(of_dense_rows(one)))):
    _shown, _refit = f"scikit-learn Ridge {_name}", partial(refit_ridge, _name)
    _registered(Candidate(_shown, "rival", ("linear",), lambda model: ALPHAS, refit=_refit))
