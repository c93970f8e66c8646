"""Predictions by one product over all rows are those of batches, to the bit where the same kernel computes them."""

import numpy as np
import pytest
import scipy.sparse

from workbench import data, formats, training
from workbench.training.run import Run

ROWS, FEATURES = 70, 30


def trained(**settings) -> tuple[training.Training, scipy.sparse.csr_array]:
    made = data.load("uniform", rows=ROWS, features=FEATURES, density=0.2, classes=3, seed=1, cache=False)
    x = made.x.astype(settings.get("dtype", "float32"))
    setup = training.Setup(**{"model": "softmax", "format": "csr", "gradient": "fused", "batch_rows": 16, **settings})
    run = training.make_run(setup, x.toarray() if setup.format == "dense" else x, made.y, width=3)
    list(run.events(epochs=2))
    return run, x


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "settings", [{}, {"update": "exact", "options": {"decay": 0.1}}, {"execution": "epoch", "gradient": "row_sparse"}]
)
def test_one_product_is_what_batches_give(settings, dtype, intercept, monkeypatch):
    run, x = trained(dtype=dtype, intercept=intercept, **settings)
    at_once = run.predict(x)
    monkeypatch.setattr(Run, "_product", lambda self, x: None)
    np.testing.assert_array_equal(at_once, run.predict(x))
    assert at_once.dtype == np.dtype(dtype)


@pytest.mark.parametrize("given", ["csr", "csc", "coo", "array"])
@pytest.mark.parametrize("held", ["csr", "dense"])
def test_rows_in_any_format_are_predicted(held, given):
    dense = {"gradient": "dense", "update": "standard", "engine": "dense"} if held == "dense" else {}
    run, x = trained(format=held, **dense)
    expected = x.toarray().astype(np.float64) @ run.read_rows(np.arange(FEATURES)) + run.read_rows(np.arange(3), "b")
    rows = x.toarray() if given == "array" else x.asformat(given)
    np.testing.assert_allclose(run.predict(rows), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["data", "indices", "indptr"])
@pytest.mark.parametrize("change", ["read-only", "strided", "int64", "several times"])
def test_few_rows_in_arrays_of_any_kind_have_the_same_scores(name, change):
    run, x = trained()
    expected = run.predict(x)
    rows = x.copy()
    part = getattr(rows, name)
    if change == "read-only":
        part.flags.writeable = False
    elif change == "strided":
        setattr(rows, name, np.repeat(part, 2)[::2])
    elif change == "int64":
        rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    else:
        rows = scipy.sparse.vstack([x] * 200, format="csr")  # more than one call of one thread takes
        expected = np.tile(expected, (200, 1))
    np.testing.assert_array_equal(run.predict(rows), expected)


@pytest.mark.parametrize(("name", "place", "value"), [("indices", 3, FEATURES), ("indices", 3, -1), ("indptr", 5, 999)])
def test_few_rows_that_are_invalid_are_refused(name, place, value):
    run, x = trained()
    getattr(x, name)[place] = value
    with pytest.raises(formats.FormatError, match=name):
        run.predict(x)


def test_rows_of_another_length_are_refused():
    run, x = trained()
    with pytest.raises(ValueError, match=r"30|29"):
        run.predict(x[:, :29])


@pytest.mark.parametrize("intercept", [True, False])
def test_rows_without_entries_are_scored_without_compiled_code(intercept, monkeypatch):
    run, _ = trained(intercept=intercept)
    empty = scipy.sparse.csr_array((3, FEATURES), dtype=np.float32)
    monkeypatch.setattr("workbench.ops.products.multiply", lambda *arrays: pytest.fail("compiled"))
    scores = run.predict(empty)
    np.testing.assert_array_equal(scores, np.tile(run.arrays["b"] if intercept else np.zeros(scores.shape[1]), (3, 1)))
