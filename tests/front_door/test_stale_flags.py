"""What SciPy remembers of a matrix's order is believed at no door: its owner may have written to its arrays since."""

import numpy as np
import pytest
import scipy.sparse

import workbench as wb
from tests.support.stale_flags import FAULTS, KINDS, stale
from workbench import formats, ops
from workbench.bridges.sklearn import (
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    SparseClassifier,
    SparseClassifierCV,
    SparseRegressor,
)

ESTIMATORS = [
    *(SparseClassifier, SparseClassifierCV, SparseRegressor),
    *(FactorizationMachineClassifier, FactorizationMachineRegressor),
]
Y = np.arange(240) % 2
HOW = {"random_state": 0, "max_iter": 2}


def copies(x):
    """Return copies of the arrays of a matrix."""
    return [part.copy() for part in ((x.data, *x.coords) if x.format == "coo" else (x.data, x.indices, x.indptr))]


@pytest.mark.filterwarnings("ignore:Training ended worse:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_estimators_read_what_the_matrix_holds(estimator, kind, fault):
    """Whole trainings, with a search if the class has one, and by parts; the matrix stays as it is."""
    (x, true), given = stale(kind, fault), {"random_state": 0}
    before, weights = copies(x), np.where(Y, 2.0, 0.0) + (np.arange(240) % 3 > 0)
    ours, same = estimator(**given).fit(x, Y, sample_weight=weights), estimator(**given).fit(true, Y, weights)
    np.testing.assert_array_equal(ours.coef_, same.coef_)
    np.testing.assert_allclose(same.predict(x), same.predict(true), rtol=1e-12)
    assert same.score(x, Y) == pytest.approx(same.score(true, Y), rel=1e-12)
    classes = {"classes": [0, 1]} if hasattr(ours, "classes_") else {}
    ours, same = (estimator(**given).partial_fit(rows, Y, **classes) for rows in (x, true))
    np.testing.assert_array_equal(ours.coef_, same.coef_)
    for part, copy in zip(copies(x), before, strict=True):
        np.testing.assert_array_equal(part, copy)


@pytest.mark.filterwarnings("ignore:Training ended worse:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", KINDS)
def test_wb_load_train_saved_models_and_ops_read_what_the_matrix_holds(kind, fault, tmp_path):
    x, true = stale(kind, fault, np.float32)
    held = wb.load(x, Y).x
    assert held.has_canonical_format
    np.testing.assert_array_equal(held.toarray(), true.toarray())
    for model in ("logistic", "factorization_machine_logistic"):
        ours, same = (wb.train(rows, Y, model=model, **HOW) for rows in (x, true))
        np.testing.assert_array_equal(ours.predict_proba(true), same.predict_proba(true))
    same.save(tmp_path / "model")
    loaded = wb.load_model(tmp_path / "model")
    np.testing.assert_allclose(loaded.predict_proba(x), loaded.predict_proba(true), rtol=1e-6)
    array = getattr(scipy.sparse, f"{x.format}_array")(x)
    if array.format != "coo":
        array.has_canonical_format = True
    np.testing.assert_allclose(ops.square(array).toarray(), true.toarray() ** 2, rtol=1e-6)
    np.testing.assert_array_equal(formats.to_format(array, "dense"), true.toarray())
