"""Probes of scikit-learn: what each fact of `workbench/bridges/facts/sklearn.toml` says, on the installed release."""

import io
import warnings

import numpy as np
import scipy.sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_svmlight_file
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.linear_model import (
    BayesianRidge,
    Lars,
    Lasso,
    LassoLars,
    LogisticRegression,
    OrthogonalMatchingPursuit,
    Ridge,
)
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, Normalizer, OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, LinearSVC, OneClassSVM
from sklearn.tree import DecisionTreeClassifier

from tests.support.probes import labels, refusal, repeated, right, small, unsorted, wide

warnings.filterwarnings("ignore", category=ConvergenceWarning)


def dense(x):
    return x.toarray() if scipy.sparse.issparse(x) else x


def transformed(transformer, x, expected=None):
    """Whether a transformer makes the same of `x` and of its canonical form."""
    expected = small() if expected is None else expected
    made = [dense(clone(transformer).fit_transform(each.copy())) for each in (x, expected)]
    return right(*made)


def predicted(model, x):
    """Whether a model that is fitted on `x` predicts as one that is fitted on its canonical form."""
    made = []
    for each in (x, small(dtype=x.dtype)):
        fitted = clone(model).fit(each.copy(), labels())
        predict = getattr(fitted, "decision_function", getattr(fitted, "predict_proba", fitted.predict))
        made.append(predict(small(dtype=x.dtype)))
    return right(*made)


def twice():
    return repeated(dtype=np.float64)


def scaler_of_repeats():
    kinds = (StandardScaler(with_mean=False), Normalizer(), Binarizer(threshold=0.8), PolynomialFeatures(2))
    outcomes = {transformed(kind, repeated()) for kind in kinds}
    return outcomes.pop() if len(outcomes) == 1 else f"differs: {outcomes}"


def normalizer_of_repeats():
    return transformed(Normalizer(), repeated())


def tfidf_of_repeats():
    return transformed(TfidfTransformer(), abs_of(repeated()), abs_canonical())


def abs_of(x):
    x.data = np.abs(x.data)
    return x


def abs_canonical():
    x = abs_of(repeated())
    x.sum_duplicates()
    return x


def support_vectors_of_repeats():
    kinds = (SVC(), OneClassSVM(), LogisticRegression(solver="saga", random_state=0, max_iter=50), BernoulliNB())
    outcomes = {predicted(kind, twice()) for kind in kinds}
    return outcomes.pop() if len(outcomes) == 1 else f"differs: {outcomes}"


def support_vectors_of_float32_repeats():
    return predicted(SVC(), repeated())


def lasso_of_repeats():
    x = small(dtype=np.float64)
    halves = np.repeat(x.data / 2, 2), np.repeat(x.indices, 2), 2 * x.indptr
    return predicted(Lasso(alpha=0.01), scipy.sparse.csr_array(halves, x.shape))


def distances_of_repeats():
    both = twice(), small(dtype=np.float64)
    inertia = [KMeans(3, random_state=0, n_init=1).fit(each).inertia_ for each in both]
    near = [KNeighborsClassifier(3).fit(each, labels()).kneighbors(each)[0] for each in both]
    outcomes = {right(*inertia), right(*near)}
    return outcomes.pop() if len(outcomes) == 1 else f"differs: {outcomes}"


def logistic_regression_of_repeats():
    kinds = [LogisticRegression(solver=solver, random_state=0) for solver in ("lbfgs", "newton-cg", "liblinear")]
    outcomes = {predicted(kind, twice()) for kind in kinds}
    return outcomes.pop() if len(outcomes) == 1 else f"differs: {outcomes}"


def ridge_of_repeats():
    return predicted(Ridge(), twice())


def products_of_unsorted_columns():
    return transformed(PolynomialFeatures(2), unsorted(small()))


def dict_vectorizer_and_linear_svc():
    rows = [{"a": 1.5, "c": 2}, {"b": 1}] * 4
    pipeline = make_pipeline(DictVectorizer(), LinearSVC())
    return refusal(lambda: pipeline.fit(rows, labels(8)), ValueError, text="int64")


def wide_indices_in_estimators():
    x, y = load_svmlight_file(io.BytesIO(b"1 1:1\n0 2:1\n1 1:2\n0 2:3\n"))
    outcomes = {refusal(lambda: LinearSVC().fit(x, y), ValueError, text="int64")}
    for model in (SVC(), Lasso(), DecisionTreeClassifier(), KMeans(2), LogisticRegression(solver="saga")):
        outcomes.add(refusal(lambda: model.fit(wide(small()), labels()), ValueError, text="int64"))  # noqa: B023
    return outcomes.pop() if len(outcomes) == 1 else f"differs: {outcomes}"


def centering():
    return refusal(lambda: StandardScaler().fit(small()), ValueError, text="with_mean=False")


def histogram_boosting():
    return refusal(lambda: HistGradientBoostingClassifier().fit(small(), labels()), TypeError, text="Sparse data")


def float32_in_liblinear():
    fitted = [LinearSVC(), LogisticRegression(solver="lbfgs")]
    types = [model.fit(small(), labels()).coef_.dtype for model in fitted]
    return "costly" if types == [np.float64, np.float32] else "sparse"


def numbers_of_encoders():
    text = ["ab cd", "ab"]
    made = (
        OneHotEncoder().fit_transform([[1], [2]]),
        TfidfVectorizer().fit_transform(text),
        CountVectorizer().fit_transform(text),
    )
    assert TfidfVectorizer(dtype=np.float32).fit_transform(text).dtype == np.float32
    return "costly" if [x.dtype for x in made] == [np.float64, np.float64, np.int64] else "sparse"


def dense_estimators():
    kinds = (GaussianNB(), CategoricalNB(), Lars(), LassoLars(), LinearDiscriminantAnalysis(), BayesianRidge())
    kinds += (OrthogonalMatchingPursuit(),)
    outcomes = {refusal(lambda: kind.fit(small(), labels()), TypeError, text="Sparse data") for kind in kinds}  # noqa: B023
    return outcomes.pop() if len(outcomes) == 1 else f"differs: {outcomes}"
