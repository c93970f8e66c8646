"""scikit-learn's solvers of all rows at once: LogisticRegression by each solver, Ridge. Each point is a fit."""

import warnings
from functools import partial

import numpy as np

from workbench.bench.fit.contenders.sklearn_sgd import log_probabilities
from workbench.bench.fit.contract import STRENGTHS, Contender, Rows, Scorer, Value, grid, register

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
    return (
        model.decision_function if rows.model == "logistic" else partial(log_probabilities, model, rows.width)
    ), is_done


def refit_of_each_class(solver: str, rows: Rows, value: Value, iterations: int) -> tuple[Scorer, bool]:
    """A logistic regression for each class, one against the rest, with at most so many iterations."""
    import joblib
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    one = LogisticRegression(
        C=value["C"], solver=solver, max_iter=iterations, fit_intercept=rows.has_intercept, random_state=rows.seed
    )
    model = OneVsRestClassifier(one, n_jobs=rows.threads)
    with warnings.catch_warnings(), joblib.parallel_config("threading"):  # processes would have to be sent the rows
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is left early on purpose
        model.fit(rows.x, rows.y.astype(np.int64))
    is_done = max(int(np.max(one.n_iter_)) for one in model.estimators_) < iterations
    return model.decision_function, is_done


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


def _too_many_columns(rows: Rows) -> str:
    size = rows.x.shape[1] * (rows.width if rows.model == "softmax" else 1)
    advice = "scikit-learn advises this solver where rows are many more than weights"
    return "" if 10 * size <= rows.x.shape[0] else f"{advice}; here are {rows.x.shape[0]:,} rows and {size:,} weights."


def _solver(name: str, models: tuple[str, ...], **more) -> None:
    shown = f"scikit-learn LogisticRegression {name}"
    register(Contender(shown, "rival", models, lambda model: STRENGTHS, refit=partial(refit, name), **more))


_solver("liblinear", ("logistic",))
_solver("lbfgs", ("logistic", "softmax"))
_solver("saga", ("logistic", "softmax"))
_solver("newton-cholesky", ("logistic", "softmax"), bytes_needed=hessian, why_not=_too_many_columns)
for _name in ("liblinear", "lbfgs"):
    _shown, _refit = f"scikit-learn OneVsRest {_name}", partial(refit_of_each_class, _name)
    register(Contender(_shown, "rival", ("multilabel",), lambda model: STRENGTHS, refit=_refit))
ALPHAS = grid(alpha=(0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0))
register(Contender("scikit-learn Ridge sparse_cg", "rival", ("linear",), lambda model: ALPHAS, refit=refit_ridge))
