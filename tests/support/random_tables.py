"""Tables with columns of unlike scales and offsets, and minima of penalized losses by a solver that shares no code."""

import numpy as np
import scipy.sparse
from scipy.linalg import cho_factor, cho_solve

KINDS = ("plain", "one column", "one-hot", "constant", "near duplicates", "years", "places", "counts")
"""What is special about a table, by its number in turn."""


def table(seed):
    """Return dense X float64 [rows, columns] of random scales and offsets, and scores [rows] that columns explain."""
    generator = np.random.default_rng(seed)
    kind, rows = KINDS[seed % len(KINDS)], int(generator.integers(120, 600))
    features = 1 if kind == "one column" else int(generator.integers(2, 12))
    core = generator.normal(size=(rows, features))
    scales, offsets = (10.0 ** generator.uniform(-6, 9, features) for _ in range(2))
    parts = [core * scales + offsets * generator.choice([-1, 0, 1], features)]
    explained = [core]
    if kind == "one-hot":
        one_hot = np.eye(30)[generator.integers(0, 30, rows)]
        parts, explained = [*parts, one_hot], [*explained, one_hot]
    if kind == "constant":
        parts += [np.full((rows, 2), 10.0 ** generator.uniform(-6, 9, 2)), np.zeros((rows, 1))]
    if kind == "near duplicates":
        parts += [parts[0][:, :2] * (1 + 1e-6 * generator.normal(size=(rows, min(2, features))))]
    if kind == "years":
        years = generator.integers(1990, 2026, (rows, 1)).astype(float)
        parts, explained = [*parts, years], [*explained, (years - 2008) / 10]
    if kind == "places":
        places = generator.normal([[37.0, -119.0]], [[2.0, 2.0]], (rows, 2))
        parts, explained = [*parts, places], [*explained, places - [37.0, -119.0]]
    if kind == "counts":
        counts = generator.poisson(0.3, (rows, 20)).astype(float)
        parts, explained = [*parts, counts], [*explained, counts]
    explained = np.hstack(explained)
    scores = explained @ generator.normal(size=explained.shape[1]) / np.sqrt(features)
    return np.hstack(parts), scores + 0.3 * generator.normal(size=rows)


def task_of(scores, task):
    """Return labels [rows] for an estimator: the scores, two classes or three."""
    if task == "squared":
        return scores
    return np.digitize(scores, np.quantile(scores, [0.5] if task == "logistic" else [0.3, 0.6]))


def excess(estimator, x, y):
    """Return by which share the objective of a fitted linear estimator is above its least value, at its own alpha."""
    weights, intercept = np.atleast_2d(estimator.coef_).T, estimator.intercept_
    if not hasattr(estimator, "classes_"):
        loss, y = "squared", np.reshape(y, (len(y), -1))
    else:
        loss, y = "softmax", np.searchsorted(estimator.classes_, y)
        if len(estimator.classes_) == 2:
            loss, y = "logistic", y[:, None]
    least = least_objective(x, y, estimator.alpha_, loss, weights.shape[1], estimator.fit_intercept)
    return objective(x, y, estimator.alpha_, weights, intercept, loss) / least - 1


def objective(x, y, alpha, weights, intercept, loss):
    """Return the mean loss of X @ weights [D, N] + intercept [N] plus alpha / 2 * the sum of squared weights."""
    x = x.toarray() if scipy.sparse.issparse(x) else np.asarray(x, np.float64)
    weights, intercept = (np.asarray(array, np.float64) for array in (weights, intercept))
    scores = x @ weights + intercept
    return _losses(scores, y, loss).mean() + alpha / 2 * (weights**2).sum()


def _losses(scores, y, loss):
    if loss == "squared":
        return ((scores - y) ** 2).sum(axis=1) / 2
    if loss == "logistic":
        return (np.logaddexp(0, scores) - scores * y).sum(axis=1)
    largest = scores.max(axis=1, keepdims=True)
    return np.log(np.exp(scores - largest).sum(axis=1)) + largest[:, 0] - scores[np.arange(len(y)), y]


def least_objective(x, y, alpha, loss, outputs, has_intercept=True):
    """Return the least objective, found by damped Newton steps on centered and scaled columns in float64.

    Targets are [rows, N], or classes [rows] of softmax.
    """
    x = x.toarray().astype(np.float64) if scipy.sparse.issparse(x) else np.asarray(x, np.float64)
    rows, features = x.shape
    center = np.where(x.min(axis=0) == x.max(axis=0), x[0], x.mean(axis=0)) if has_intercept else np.zeros(features)
    z = x - center
    scale = np.sqrt((z**2).mean(axis=0))
    scale[scale == 0] = 1
    z = np.hstack([z / scale, np.full((rows, 1), float(has_intercept))])
    penalty = np.append(alpha / scale**2, 0.0)
    point = np.zeros((features + 1, outputs))
    targets = np.eye(outputs)[y] if loss == "softmax" else y
    if has_intercept and loss == "squared":
        point[-1] = targets.mean(axis=0)

    def value(point):
        return _losses(z @ point, y, loss).mean() + (penalty[:, None] * point**2).sum() / 2

    best = value(point)
    for _ in range(200):
        scores = z @ point
        if loss == "squared":
            means, blocks = scores, np.tile(np.eye(outputs), (rows, 1, 1))
        elif loss == "logistic":
            means = 1 / (1 + np.exp(-scores))
            blocks = (means * (1 - means))[:, :, None] * np.eye(outputs)
        else:
            exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
            means = exponentials / exponentials.sum(axis=1, keepdims=True)
            blocks = means[:, :, None] * np.eye(outputs) - means[:, :, None] * means[:, None]
        gradient = z.T @ (means - targets) / rows + penalty[:, None] * point
        size = (features + 1) * outputs
        hessian = np.einsum("ri,rab,rj->iajb", z, blocks, z, optimize=True).reshape(size, size) / rows
        diagonal = np.diag(hessian) + np.repeat(penalty, outputs)
        diagonal = np.where(diagonal > 0, diagonal, 1)
        hessian[np.arange(size), np.arange(size)] = diagonal * (1 + 1e-13) + 1e-13
        root = 1 / np.sqrt(diagonal)
        scaled = hessian * root * root[:, None]
        scaled[np.arange(size), np.arange(size)] += 1e-13
        step = (root * cho_solve(cho_factor(scaled), root * gradient.reshape(-1))).reshape(gradient.shape)
        length = 1.0
        while (new := value(point - length * step)) > best and length > 1e-9:
            length /= 2
        if not new < best:
            break
        point, gained, best = point - length * step, best - new, new
        if gained < 1e-13 * best:
            break
    return best
