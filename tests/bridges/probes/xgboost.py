"""Probes of XGBoost: what each fact of `workbench/bridges/facts/xgboost.toml` says, on the installed release."""

import numpy as np
import pandas as pd
import scipy.sparse
import xgboost

from tests.support.probes import repeated, right, small

ROWS = 200


def labels():
    x = small(rows=ROWS).toarray()
    return ((x[:, 0] == 0) ^ (x[:, 1] > 0)).astype(int)


def trained(x, missing=np.nan, **options):
    settings = {"max_depth": 2, "nthread": 1, "objective": "binary:logistic"} | options
    return xgboost.train(settings, xgboost.DMatrix(x, label=labels(), missing=missing), 3)


def predicted(x, like=None, missing=np.nan, **options):
    like = x if like is None else like
    return trained(x, missing, **options).predict(xgboost.DMatrix(like, missing=missing))


def frame():
    return pd.DataFrame.sparse.from_spmatrix(scipy.sparse.csr_matrix(small(rows=ROWS)), columns=list("abcde"))


def zeros_of_csr():
    x = small(rows=ROWS)
    return right(predicted(x), predicted(x.toarray()))


def sparse_frame():
    x = small(rows=ROWS)
    assert right(predicted(frame()), predicted(x.toarray())) == "sparse"
    return right(predicted(frame()), predicted(x))


def predict_of_csr():
    x = small(rows=ROWS)
    return right(predicted(x.toarray(), like=x), predicted(x.toarray()))


def missing_zero():
    x = small(rows=ROWS)
    return right(predicted(x.toarray(), missing=0.0), predicted(x))


def linear_booster():
    x, options = small(rows=ROWS), {"booster": "gblinear", "updater": "coord_descent"}
    return right(predicted(x, **options), predicted(x.toarray(), **options))


def repeats():
    return right(predicted(repeated(rows=ROWS)), predicted(small(rows=ROWS)))


def with_zeros():
    """The rows with half of their empty places stored as zeros."""
    x = small(rows=ROWS).toarray()
    row, column = np.nonzero((x != 0) | (np.random.default_rng(1).random(x.shape) < 0.5))
    return scipy.sparse.csr_array((x[row, column], (row, column)), shape=x.shape)


def stored_zeros():
    return right(predicted(with_zeros()), predicted(small(rows=ROWS)))
