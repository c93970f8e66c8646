"""Probes of CatBoost: what each fact of `workbench/bridges/facts/catboost.toml` says, on the installed release."""

import catboost
import scipy.sparse

from tests.support.probes import refusal, repeated, right, small, wide

ROWS = 200


def predicted(x):
    y = (small(rows=ROWS).toarray()[:, :2].sum(axis=1) > 0).astype(int)
    options = {"iterations": 3, "depth": 2, "verbose": 0, "thread_count": 1, "allow_writing_files": False}
    return catboost.CatBoostClassifier(**options).fit(x, y).predict_proba(x)[:, 1]


def sparse_arrays():
    x = small(rows=ROWS)
    kinds = (x, x.tocsc(), x.tocoo())
    outcomes = {refusal(lambda: predicted(kind), catboost.CatBoostError, text="Invalid data type") for kind in kinds}  # noqa: B023
    return outcomes.pop() if len(outcomes) == 1 else f"differs: {outcomes}"


def sparse_matrices():
    x = small(rows=ROWS)
    return right(predicted(scipy.sparse.csr_matrix(x)), predicted(x.toarray()))


def repeats():
    x = scipy.sparse.csr_matrix(repeated(rows=ROWS))
    return refusal(lambda: predicted(x), catboost.CatBoostError, text="not increasing")


def wide_indices():
    x = scipy.sparse.csr_matrix(small(rows=ROWS))
    x.indices, x.indptr = wide(x).indices, wide(x).indptr
    return refusal(lambda: predicted(x), catboost.CatBoostError, AssertionError, text="must be int32")
