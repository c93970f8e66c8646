"""scikit-learn: fits, neighbours and preprocessing on CSR and on a dense array."""

from functools import partial
from typing import Any

import numpy as np

from benchmarks.libraries import Calls, Data, Operation

OPERATIONS: list[Operation] = []

NOTE = "iterations are fixed, so that both sides do the same number"


def both(fit: Any, data: Data) -> Calls:
    """Return `fit(x, data)` of both forms."""
    return lambda: fit(data.csr, data), lambda: fit(data.dense, data)


def logistic(x: Any, data: Data) -> Any:
    """Fit logistic regression by 20 iterations of lbfgs; return the weights."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=20, tol=1e-12).fit(x, data.y).coef_


def sgd(x: Any, data: Data) -> Any:
    """Fit SGDClassifier for 3 epochs without an intercept; return the weights."""
    from sklearn.linear_model import SGDClassifier

    model = SGDClassifier(loss="log_loss", max_iter=3, tol=None, random_state=0, fit_intercept=False, alpha=1e-2)
    return model.fit(x, data.y).coef_


def ridge(x: Any, data: Data) -> Any:
    """Fit Ridge by conjugate gradients; return the weights."""
    from sklearn.linear_model import Ridge

    return Ridge(solver="sparse_cg", tol=1e-6, fit_intercept=False).fit(x, data.count).coef_


def svc(x: Any, data: Data) -> Any:
    """Fit LinearSVC; return the weights."""
    from sklearn.svm import LinearSVC

    return LinearSVC(C=0.01, random_state=0, max_iter=30, tol=1e-9).fit(x, data.y).coef_


def lasso(x: Any, data: Data) -> Any:
    """Fit Lasso by 10 rounds of coordinate descent; return the weights."""
    from sklearn.linear_model import Lasso

    return Lasso(alpha=1e-3, max_iter=10, tol=1e-12, fit_intercept=False).fit(x, data.count).coef_


def kmeans(x: Any, data: Data) -> Any:
    """Run 5 iterations of KMeans from 8 given rows; return the inertia."""
    from sklearn.cluster import KMeans

    return KMeans(8, init=data.dense[:8], n_init=1, max_iter=5, tol=0).fit(x).inertia_


def neighbours(x: Any, data: Data) -> Any:
    """Find the 5 nearest of all rows for 256 rows by brute force; return distances."""
    from sklearn.neighbors import NearestNeighbors

    return NearestNeighbors(n_neighbors=5, algorithm="brute").fit(x).kneighbors(x[:256])[0][:, 1:]


def svd(x: Any, data: Data) -> Any:
    """Run TruncatedSVD with 16 components; return the singular values."""
    from sklearn.decomposition import TruncatedSVD

    return TruncatedSVD(16, n_iter=2, random_state=0).fit(x).singular_values_


def bayes(x: Any, data: Data) -> Any:
    """Fit MultinomialNB; return the log probabilities of the features."""
    from sklearn.naive_bayes import MultinomialNB

    return MultinomialNB().fit(x, data.y).feature_log_prob_


def scaler(x: Any, data: Data) -> Any:
    """Run StandardScaler without centring; return the scaled rows."""
    from sklearn.preprocessing import StandardScaler

    return StandardScaler(with_mean=False).fit_transform(x)


def normalizer(x: Any, data: Data) -> Any:
    """Return rows of length 1."""
    from sklearn.preprocessing import normalize

    return normalize(x)


def cosine(x: Any, data: Data) -> Any:
    """Return the cosines of 256 rows with all rows."""
    from sklearn.metrics.pairwise import cosine_similarity

    return np.asarray(cosine_similarity(x[:256], x, dense_output=True))


def tree(x: Any, data: Data) -> Any:
    """Fit a tree of depth 4; return the importance of the best feature."""
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(max_depth=4, random_state=0).fit(x, data.y).feature_importances_.max()


for _what, _fit, _allowed, _note in (
    ("LogisticRegression, lbfgs", logistic, 0.05, NOTE),
    ("SGDClassifier", sgd, 1e-2, NOTE + "; without an intercept, which learns slower on CSR"),
    ("Ridge, sparse_cg", ridge, 1e-2, ""),
    ("LinearSVC", svc, 1e-2, NOTE),
    ("Lasso", lasso, 1e-2, NOTE),
    ("KMeans", kmeans, 1e-3, NOTE),
    ("5 nearest neighbours", neighbours, 1e-2, ""),
    ("TruncatedSVD", svd, 1e-3, ""),
    ("MultinomialNB", bayes, 1e-3, ""),
    ("StandardScaler", scaler, 1e-3, "with_mean=False"),
    ("normalize", normalizer, 1e-3, ""),
    ("cosine_similarity", cosine, 1e-3, ""),
    ("DecisionTreeClassifier", tree, 0.2, "depth 4; equal splits may be broken otherwise"),
):
    _make = partial(both, _fit)
    _small = {"rows": 2048, "features": 256} if _fit in (tree, lasso, svc) else {}
    OPERATIONS.append(Operation("scikit-learn", _what, _make, "scikit-learn", _allowed, note=_note, **_small))
