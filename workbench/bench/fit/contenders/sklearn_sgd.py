"""scikit-learn's stochastic gradient descent, row by row: SGDClassifier, SGDRegressor, one for each class."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from workbench.bench.fit.contract import Contender, Rows, Scorer, Value, grid, one_number, register

SMALLEST = 1e-12
"""Probabilities count as this at least."""


def parts(rows: Rows) -> list[slice]:
    """The rows up to each next point."""
    count, each = rows.x.shape[0], rows.rows_point
    return [slice(start, min(start + each, count)) for start in range(0, count, each)]


def _classifier(rows: Rows, value: Value):
    from sklearn.linear_model import SGDClassifier

    return SGDClassifier(
        loss="log_loss",
        alpha=value["strength"],
        average=value["average"],
        fit_intercept=rows.has_intercept,
        random_state=rows.seed,
        n_jobs=rows.threads,
    )


def log_probabilities(model, width: int, x) -> np.ndarray:
    """Scores [R, N] whose softmax is what the model says: those of classes one against the rest are no such scores.

    A class that no row has that is trained on is as good as impossible to it.
    """
    found = np.full((x.shape[0], width), np.log(SMALLEST))
    found[:, model.classes_] = np.log(np.maximum(model.predict_proba(x), SMALLEST))
    return found


def steps(rows: Rows, value: Value) -> Iterator[Scorer]:
    """Epochs of yes or no, or of classes; the rows are cut into parts once."""
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
    """Epochs of one model for each class."""
    from sklearn.multioutput import MultiOutputClassifier

    model = MultiOutputClassifier(_classifier(rows, value), n_jobs=rows.threads)
    y, classes = rows.y.astype(np.int64), [np.arange(2)] * rows.width
    cut = [(rows.x[part], y[part]) for part in parts(rows)]
    while True:
        for x, labels in cut:
            model.partial_fit(x, labels, classes=classes)
            yield lambda x: np.column_stack([one.decision_function(x) for one in model.estimators_])


def steps_of_numbers(rows: Rows, value: Value) -> Iterator[Scorer]:
    """Epochs of one number a row."""
    from sklearn.linear_model import SGDRegressor

    model = SGDRegressor(
        alpha=1e-6,
        eta0=value["rate"],
        average=value["average"],
        fit_intercept=rows.has_intercept,
        random_state=rows.seed,
    )
    cut = [(rows.x[part], rows.y[part, 0]) for part in parts(rows)]
    while True:
        for x, y in cut:
            model.partial_fit(x, y)
            yield model.predict


STRENGTHS = grid(strength=(1e-6, 1e-5, 3e-5, 1e-4, 1e-3), average=(False, True))
RATES = grid(rate=(0.001, 0.003, 0.01, 0.03, 0.1), average=(False, True))

NAME = "scikit-learn"
register(Contender(f"{NAME} SGDClassifier", "rival", ("logistic", "softmax"), lambda model: STRENGTHS, steps))
register(
    Contender(
        f"{NAME} MultiOutput SGDClassifier", "rival", ("multilabel",), lambda model: STRENGTHS, steps_of_each_class
    )
)
register(
    Contender(f"{NAME} SGDRegressor", "rival", ("linear",), lambda model: RATES, steps_of_numbers, why_not=one_number)
)
