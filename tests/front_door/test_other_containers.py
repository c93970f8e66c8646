"""Matrices that other libraries hold train as the arrays that they stand for: sparse frames, Arrow, Dask, and stand-ins
of pydata sparse and tabmat, which are not installed here."""

import dask.array
import dask.dataframe
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp

import workbench as wb
from workbench.formats import FormatError
from workbench.formats.arrays import host_array

DRAWN = np.random.default_rng(0)
DENSE = (DRAWN.random((120, 6)) < 0.3) * DRAWN.integers(1, 4, (120, 6)).astype(float)
CSR = sp.csr_array(DENSE)
Y = (DENSE[:, 0] > 0).astype(int)
PLACES = DRAWN.integers(0, 3, 120)
CITIES = pd.DataFrame({"city": np.array(["a", "b", "c"])[PLACES]})
DUMMIES = pd.get_dummies(CITIES, sparse=True)
WITH_AGE = DUMMIES.assign(age=DENSE[:, 0])
ONE_HOT = (PLACES[:, None] == np.arange(3)).astype(float)


def named_like(module, **attributes):
    """An object whose type says that it comes from `module`."""
    return type("Container", (), {"__module__": module, **attributes})()


def pydata(x, fill=0.0):
    coo = sp.coo_array(x)
    return named_like("sparse.core", fill_value=fill, ndim=2, shape=x.shape, to_scipy_sparse=lambda self: coo)


def tabmat(**calls):
    return named_like("tabmat.matrix", **calls)


def split():
    left = tabmat(tocsc=lambda self: sp.csc_matrix(CSR[:, [1, 3, 5]]))
    right = tabmat(toarray=lambda self: DENSE[:, [0, 2, 4]])
    return tabmat(matrices=[left, right], indices=[np.array([1, 3, 5]), np.array([0, 2, 4])])


CONTAINERS = {
    "dummies": (lambda: DUMMIES, ONE_HOT),
    "dummies and numbers": (lambda: WITH_AGE, np.c_[ONE_HOT, DENSE[:, 0]]),
    "fill of true": (
        lambda: pd.DataFrame({"a": pd.arrays.SparseArray(Y == 0, fill_value=True), "b": DENSE[:, 1]}),
        np.c_[Y == 0, DENSE[:, 1]],
    ),
    "fill of 1": (lambda: pd.DataFrame({"a": pd.arrays.SparseArray(DENSE[:, 0], fill_value=1.0)}), DENSE[:, :1]),
    **{
        f"sparse {name}": (lambda name=name: pd.get_dummies(CITIES, sparse=True, dtype=name), ONE_HOT)
        for name in ("uint8", "int8", "int16", "uint32", "float32")
    },
    "arrow csr": (lambda: pa.SparseCSRMatrix.from_scipy(sp.csr_matrix(CSR)), DENSE),
    "arrow csc": (lambda: pa.SparseCSCMatrix.from_scipy(sp.csc_matrix(CSR)), DENSE),
    "arrow coo": (lambda: pa.SparseCOOTensor.from_scipy(sp.coo_matrix(CSR)), DENSE),
    "arrow csf": (lambda: pa.SparseCSFTensor.from_tensor(pa.Tensor.from_numpy(DENSE)), DENSE),
    "arrow tensor": (lambda: pa.Tensor.from_numpy(DENSE), DENSE),
    "dask array": (lambda: dask.array.from_array(DENSE, chunks=(40, 6)), DENSE),
    "dask of csr": (lambda: dask.array.from_array(DENSE, chunks=(40, 6)).map_blocks(sp.csr_array, dtype=float), DENSE),
    "dask frame": (lambda: dask.dataframe.from_pandas(pd.DataFrame(DENSE, columns=list("abcdef")), 3), DENSE),
    "dask of dummies": (lambda: dask.dataframe.from_pandas(DUMMIES, npartitions=3), ONE_HOT),
    "pydata": (lambda: pydata(CSR), DENSE),
    "tabmat categories": (lambda: tabmat(tocsr=lambda self: sp.csr_matrix(ONE_HOT)), ONE_HOT),
    "tabmat split": (split, DENSE),
}


DOORS = {
    "fit": lambda x: wb.SparseClassifier(random_state=0).fit(x, Y).predict_proba(x),
    "score": lambda x: wb.SparseClassifierCV(cv=3, random_state=0).fit(x, Y).score(x, Y),
    "partial_fit": lambda x: wb.SparseClassifier(random_state=0).partial_fit(x, Y, [0, 1]).decision_function(x),
    "regressor": lambda x: wb.SparseRegressor(random_state=0).fit(x, Y.astype(float)).predict(x),
    "pairs": lambda x: wb.FactorizationMachineClassifier(random_state=0, max_iter=2).fit(x, Y).predict_proba(x),
    "load": lambda x: wb.load(x, Y).x.toarray(),
    "pair": lambda x: wb.load((x, Y)).x.toarray(),
    "profile": lambda x: wb.profile((x, Y)).density,
    "train": lambda x: wb.train(x, Y, random_state=0).predict_proba(x),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("container", CONTAINERS)
def test_containers_of_other_libraries_give_what_their_arrays_give(container, door):
    make, dense = CONTAINERS[container]
    np.testing.assert_allclose(DOORS[door](make()), DOORS[door](dense), atol=1e-5)


def test_a_score_takes_the_labels_of_another_library():
    """Of one dimension, as they are, and of two, a column."""
    flat = named_like("sparse.core", fill_value=0, ndim=1, shape=Y.shape, todense=lambda self: Y)
    for labels, estimator in ((Y, wb.SparseClassifier), (Y.astype(float), wb.SparseRegressor)):
        model = estimator(random_state=0).fit(DENSE, labels)
        expected = model.score(DENSE, labels)
        for other in (flat, pydata(Y[:, None])):
            assert model.score(DENSE, other) == expected
            assert estimator(random_state=0).fit(DENSE, other).score(DENSE, labels) == expected


@pytest.mark.parametrize("container", CONTAINERS)
def test_what_is_sparse_stays_sparse(container):
    dense = ("arrow csf", "arrow tensor", "dask array", "dask frame")
    assert sp.issparse(host_array(CONTAINERS[container][0]())) == (container not in dense)


def test_a_saved_model_takes_a_frame_with_sparse_columns(tmp_path):
    model = wb.train(WITH_AGE, Y, random_state=0)
    model.save(tmp_path / "model")
    again = wb.load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(WITH_AGE), model.predict(WITH_AGE))


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.longdouble])
def test_a_saved_model_takes_every_format_and_type_that_its_estimator_takes(dtype, tmp_path):
    model = wb.SparseClassifier(random_state=0).fit(DENSE, Y)
    model.save(tmp_path / "model")
    again = wb.load_model(tmp_path / "model")
    for name in ("bsr", "coo", "csc", "csr", "dia", "dok", "lil"):
        x = getattr(sp, f"{name}_array")(DENSE[:60].astype(dtype))  # of more rows SciPy warns of a dia array
        np.testing.assert_array_equal(again.predict(x), model.predict(x))


def test_sparse_columns_beside_text_are_encoded():
    frame = WITH_AGE.assign(plan=np.array(["x", "y"])[Y])
    made = wb.load(frame, Y)
    assert made.x.shape == (120, 3 + 1 + 3)
    assert wb.train(frame, Y, random_state=0).score(frame, Y) == 1


def test_names_of_sparse_columns_are_kept_and_compared():
    model = wb.SparseClassifier(random_state=0).fit(DUMMIES, Y)
    assert model.feature_names_in_.tolist() == ["city_a", "city_b", "city_c"]
    with pytest.raises(ValueError, match="same order"):
        model.predict(DUMMIES[DUMMIES.columns[::-1]])


@pytest.mark.parametrize(
    "make",
    [
        lambda: dask.array.from_array(Y, chunks=40),
        lambda: dask.dataframe.from_pandas(pd.Series(Y), npartitions=2),
        lambda: pd.Series(pd.arrays.SparseArray(Y)),
        lambda: pa.array(Y),
        lambda: pa.Tensor.from_numpy(Y),
        lambda: named_like("sparse.core", fill_value=0, ndim=1, todense=lambda self: Y),
    ],
)
def test_labels_of_other_libraries(make):
    expected = wb.SparseClassifier(random_state=0).fit(CSR, Y).predict_proba(CSR)
    np.testing.assert_array_equal(wb.SparseClassifier(random_state=0).fit(CSR, make()).predict_proba(CSR), expected)
    np.testing.assert_array_equal(wb.load(CSR, make()).y, Y)


@pytest.mark.parametrize("door", ["fit", "load", "train", "regressor"])
def test_a_fill_value_that_is_not_0_is_refused_by_its_value(door):
    with pytest.raises(FormatError, match=r"fill value 2\.5.*\n?.*X\.todense\(\)"):
        DOORS[door](pydata(CSR, 2.5))
