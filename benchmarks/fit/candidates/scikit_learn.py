"""scikit-learn: stochastic gradient descent row by row, and solvers of all rows at once."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks.fit.candidates import STRENGTHS, Candidate, Rows, Scorer, Value, grid, one_number, register
from benchmarks.fit.torch_loop import densify_candidate, register_both

# scikit-learn's stochastic gradient descent, row by row: SGDClassifier, SGDRegressor, one for each class.
#
# Each is tried by its schedules of the learning rate: its optimal one, constant ones, and ones that fall with the rows.


SMALLEST = 1e-12
"""Probabilities count as this at least."""
LITTLE = 1e-6
"""The penalty of settings that try learning rates."""

Steps = Callable[[Rows, Value], Iterator[Scorer]]


def parts(rows: Rows) -> list[slice]:
    """Return slices of consecutive rows, each up to the next point at which the training is judged."""
    count, each = rows.x.shape[0], rows.rows_point
    return [slice(start, min(start + each, count)) for start in range(0, count, each)]


def schedule_of(value: Value) -> dict[str, Any]:
    """Return the learning-rate arguments of scikit-learn's SGD estimators for a setting.

    Without a "schedule" the estimators use their optimal rate. Their adaptive schedule is constant with `partial_fit`,
    so it is not tried.
    """
    if "schedule" not in value:
        return {"alpha": value["strength"]}
    known = {"alpha": LITTLE, "learning_rate": value["schedule"], "eta0": value["rate"]}
    return known | ({"power_t": value["power"]} if "power" in value else {})


def _classifier(rows: Rows, value: Value):
    """Return an unfitted SGDClassifier (log loss) with the average and schedule of `value`.

    Intercept, seed and threads are those of `rows`.
    """
    from sklearn.linear_model import SGDClassifier

    return SGDClassifier(
        loss="log_loss",
        average=value["average"],
        fit_intercept=rows.has_intercept,
        random_state=rows.seed,
        n_jobs=rows.threads,
        **schedule_of(value),
    )


def ones_beside(x) -> scipy.sparse.csr_array:
    """Return a copy of X csr with a last column of ones, csr [R, D + 1]."""
    ones = np.ones((x.shape[0], 1), x.dtype)
    return scipy.sparse.csr_array(scipy.sparse.hstack([x, ones], format="csr", dtype=x.dtype))


def _score_with_ones(scorer: Scorer, x: Any) -> np.ndarray:
    """Return the scores, by `scorer`, of X csr with a column of ones appended, as it was trained."""
    return scorer(ones_beside(x))


def with_ones(steps: Steps) -> Steps:
    """Return the same training with a column of ones in place of the intercept of sparse rows.

    The intercept of sparse rows has a hundredth of the learning rate in scikit-learn (`SPARSE_INTERCEPT_DECAY`), by
    which some data are hardly learned; a column of ones has all of it.
    """

    def steps_with_ones(rows: Rows, value: Value) -> Iterator[Scorer]:
        """Yield the scorers of the training on X with a column of ones; unchanged if dense or without an intercept."""
        if not rows.has_intercept or not scipy.sparse.issparse(rows.x):
            yield from steps(rows, value)
            return
        for scorer in steps(replace(rows, x=ones_beside(rows.x), has_intercept=False), value):
            yield partial(_score_with_ones, scorer)

    return steps_with_ones


def log_probabilities(model, width: int, x) -> np.ndarray:
    """Return scores [R, N], log probabilities of the model; classes without training rows get log(1e-12).

    `width` is N, `x` the rows to score.
    """
    found = np.full((x.shape[0], width), np.log(SMALLEST))
    found[:, model.classes_] = np.log(np.maximum(model.predict_proba(x), SMALLEST))
    return found


def steps(rows: Rows, value: Value) -> Iterator[Scorer]:
    """Train an SGDClassifier by `partial_fit` without end; yield a scorer after each part of the rows.

    `value` is the setting, by which the estimator is made.
    """
    model, classes = _classifier(rows, value), np.arange(max(rows.width, 2))
    y = rows.y.reshape(-1).astype(np.int64)
    cut = [(rows.x[part], y[part]) for part in parts(rows)]
    scorer = (
        model.decision_function
        if classes.size == 2 and rows.model != "softmax"
        else partial(log_probabilities, model, rows.width)
    )
    while True:
        for x, labels in cut:
            model.partial_fit(x, labels, classes=classes)
            yield scorer


def steps_of_each_class(rows: Rows, value: Value) -> Iterator[Scorer]:
    """Train one SGDClassifier per label without end; yield a scorer [R, labels] after each part of the rows.

    `value` is the setting, by which the estimator is made.
    """
    from sklearn.multioutput import MultiOutputClassifier

    model = MultiOutputClassifier(_classifier(rows, value), n_jobs=rows.threads)
    y, classes = rows.y.astype(np.int64), [np.arange(2)] * rows.width
    cut = [(rows.x[part], y[part]) for part in parts(rows)]
    while True:
        for x, labels in cut:
            model.partial_fit(x, labels, classes=classes)
            yield lambda x: np.column_stack([one.decision_function(x) for one in model.estimators_])


def steps_of_numbers(rows: Rows, value: Value) -> Iterator[Scorer]:
    """Train an SGDRegressor by `partial_fit` without end; yield a scorer after each part of the rows.

    `value` is the setting, by which the estimator is made.
    """
    from sklearn.linear_model import SGDRegressor

    average, seed = value["average"], rows.seed
    model = SGDRegressor(average=average, fit_intercept=rows.has_intercept, random_state=seed, **schedule_of(value))
    cut = [(rows.x[part], rows.y[part, 0]) for part in parts(rows)]
    while True:
        for x, y in cut:
            model.partial_fit(x, y)
            yield model.predict


AVERAGE = (False, True)
SGD_STRENGTHS = grid(strength=(1e-6, 1e-5, 3e-5, 1e-4, 1e-3), average=AVERAGE)
CONSTANT = grid(schedule=("constant",), rate=(0.003, 0.01, 0.03, 0.1, 0.3), average=AVERAGE)
INVERSE = [
    *grid(schedule=("invscaling",), power=(0.25,), rate=(0.03, 0.1, 0.3, 1.0, 3.0), average=(False,)),
    *grid(schedule=("invscaling",), power=(0.5,), rate=(0.3, 1.0, 3.0, 10.0, 30.0), average=(False,)),
]
RATES = grid(schedule=("invscaling",), rate=(0.001, 0.003, 0.01, 0.03, 0.1), average=AVERAGE)
"""Rates of numbers, by the power 0.25 that is the default of their estimator."""
RATES_CONSTANT = grid(schedule=("constant",), rate=(0.001, 0.003, 0.01, 0.03, 0.1), average=AVERAGE)


def _register(name: str, models: tuple[str, ...], values: Sequence[Value], steps: Steps, **more: Any) -> None:
    """Register a stochastic-gradient candidate on sparse and on dense rows, with its ten settings.

    Settings with learning rates get a column of ones instead of an intercept. `values` are the settings, `steps` is the
    training; `more` are further fields of the candidate.
    """
    given = steps if "strength" in values[0] else with_ones(steps)
    tried = [dict(value) for value in values]
    register_both(Candidate(f"scikit-learn {name}", "competitor", models, lambda model: tried, given, **more))


for _name, _models, _steps in (
    ("SGDClassifier", ("logistic", "softmax"), steps),
    ("MultiOutput SGDClassifier", ("multilabel",), steps_of_each_class),
):
    _register(_name, _models, SGD_STRENGTHS, _steps)
    _register(f"{_name} constant", _models, CONSTANT, _steps)
    _register(f"{_name} inverse scaling", _models, INVERSE, _steps)
_register("SGDRegressor", ("linear",), RATES, steps_of_numbers, why_not=one_number)
_register("SGDRegressor constant", ("linear",), RATES_CONSTANT, steps_of_numbers, why_not=one_number)


# Solvers of all rows at once: LogisticRegression by each solver, Ridge. Each point is a fit.


BYTES_NUMBER = 8
DUAL = " dual"
"""The end of the name of a solver that goes by its dual problem."""


def estimator(solver: str, rows: Rows, value: Value, iterations: int) -> Any:
    """Return an unfitted LogisticRegression by `solver` with at most `iterations` and the C of `value`.

    A name ending in " dual" solves the dual problem.
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
    """Fit a logistic or softmax regression anew; return (scorer, whether it converged before `iterations`).

    `solver` names that of LogisticRegression, `value` has C.
    """
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
    """Fit a logistic regression per label, one against the rest; return (scorer, whether all converged).

    `solver` names that of LogisticRegression, `value` has C.
    """
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
    """Fit a ridge regression with at most `iterations`; return (scorer, whether it is exact: "cholesky").

    `solver` is "sparse_cg" or "cholesky", `value` has alpha.
    """
    from sklearn.linear_model import Ridge

    model = Ridge(alpha=value["alpha"], solver=solver, max_iter=iterations, fit_intercept=rows.has_intercept)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is left early on purpose
        model.fit(rows.x, rows.y)
    return model.predict, solver == "cholesky"


def hessian(rows: Rows) -> int:
    """Return the bytes of the float64 matrix that newton-cholesky factors, [D N, D N] for softmax, else [D, D]."""
    size = rows.x.shape[1] * (rows.width if rows.model == "softmax" else 1)
    return size * size * BYTES_NUMBER


def _too_many_columns(rows: Rows) -> str:
    """Return why newton-cholesky is left out (fewer than 10 rows per weight), or "" if it takes part."""
    size = rows.x.shape[1] * (rows.width if rows.model == "softmax" else 1)
    advice = "scikit-learn advises this solver where rows are many more than weights"
    return "" if 10 * size <= rows.x.shape[0] else f"{advice}; here are {rows.x.shape[0]:,} rows and {size:,} weights."


def _solver(name: str, models: tuple[str, ...], registered: Callable = register_both, **more: Any) -> None:
    """Register LogisticRegression with the solver `name` for these models, by the function `registered`."""
    shown = f"scikit-learn LogisticRegression {name}"
    registered(Candidate(shown, "competitor", models, lambda model: STRENGTHS, refit=partial(refit, name), **more))


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
    _registered(Candidate(_shown, "competitor", ("multilabel",), lambda model: STRENGTHS, refit=_refit))
ALPHAS = grid(alpha=(0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0))
for _name, _registered in (("sparse_cg", register), ("cholesky", lambda one: register(densify_candidate(one)))):
    _shown, _refit = f"scikit-learn Ridge {_name}", partial(refit_ridge, _name)
    _registered(Candidate(_shown, "competitor", ("linear",), lambda model: ALPHAS, refit=_refit))
