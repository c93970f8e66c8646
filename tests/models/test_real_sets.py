"""Models on sets that scikit-learn ships: as good as its own where the problem is convex, above the trivial."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import datasets, linear_model
from sklearn.preprocessing import StandardScaler

from workbench import data, models, training
from workbench.data.dataset.record import canonical

SETS = {"classes": datasets.load_digits, "binary": datasets.load_breast_cancer, "numbers": datasets.load_diabetes}
"""A real set for each kind of target."""


def real(target: str) -> data.Dataset:
    """The set, its columns scaled, in random order."""
    x, y = SETS[target](return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))
    x, y = StandardScaler().fit_transform(x)[order] / x.shape[1] ** 0.5, y[order]
    matrix = canonical(sp.csr_array(x))
    if target == "numbers":
        y = ((y - y.mean()) / y.std()).astype(np.float32)
        return data.Dataset(target, matrix, y, data.Labels("numbers", span=(-3.0, 3.0)), "", "")
    return data.Dataset(target, matrix, y, data.Labels("classes", tuple(map(str, range(y.max() + 1)))), "", "")


def trained(model: models.Model, epochs: int, **settings) -> tuple[training.Training, np.ndarray, np.ndarray]:
    """A training that left a fifth of the set out; X and y of all of it."""
    made = real("classes" if model.target == "multilabel" else model.target)
    width = model.width or data.natural_width(made, model.target)
    y = data.targets(made, model.target, model.outputs or width, np.float64)
    x, held_out = made.x.astype(np.float64), made.rows // 5
    setup = training.Setup(**{"model": model.name, "dtype": "float64", "batch_rows": 32, **settings})
    run = training.make_run(setup, x[held_out:], y[held_out:], width)
    for _ in run.events(epochs):
        pass
    return run, x[:held_out], y[:held_out]


@pytest.mark.parametrize("name", [name for name in models.names() if not models.get(name).needs])
def test_a_model_beats_the_answer_without_features_on_a_real_set(name):
    run, x, y = trained(models.get(name), epochs=20)
    assert run.quality(x, y) > run.quality_without_x(x, y) + 0.2


CONVEX = {
    "linear": linear_model.LinearRegression,
    "logistic": lambda: linear_model.LogisticRegression(tol=1e-8, max_iter=10_000),
    "softmax": lambda: linear_model.LogisticRegression(tol=1e-8, max_iter=10_000),
}


@pytest.mark.parametrize("name", CONVEX)
def test_a_convex_model_ends_where_that_of_scikit_learn_does(name):
    """The whole set in one batch, the loss at its minimum: scores agree to 1 % of their spread."""
    model, made = models.get(name), real(models.get(name).target)
    width = data.natural_width(made, model.target)
    x, y = made.x.astype(np.float64), data.targets(made, model.target, width, np.float64)
    decay = 0.0 if name == "linear" else 1 / made.rows
    setup = training.Setup(
        model=name, dtype="float64", batch_rows=made.rows, optimizer="momentum", shuffle=False, gradient="dense",
        update="standard", options={"learning_rate": 2.0, "beta": 0.95, "decay": decay},
    )  # fmt: skip
    run = training.make_run(setup, x, y, width)
    for _ in run.events(600):
        pass
    theirs = CONVEX[name]().fit(x.toarray(), y.ravel())
    scores = theirs.predict(x.toarray()) if name == "linear" else theirs.decision_function(x.toarray())
    ours = run.predict(x)
    scores = scores.reshape(ours.shape)
    if name == "softmax":  # a number added to all classes of a row changes nothing
        ours, scores = (each - each.mean(axis=1, keepdims=True) for each in (ours, scores))
    np.testing.assert_allclose(ours, scores, atol=0.01 * scores.std())
