"""Probes of implicit: what each fact of `workbench/bridges/facts/implicit.toml` says, on the installed release."""

import numpy as np
import scipy.sparse
from implicit.als import AlternatingLeastSquares

from tests.support.probes import repeated, right


def factors(x):
    model = AlternatingLeastSquares(2, iterations=2, num_threads=1, random_state=0, use_gpu=False)
    model.fit(x, show_progress=False)
    return model.user_factors


def repeats():
    x = scipy.sparse.csr_matrix(repeated())
    x.data = np.abs(x.data)
    once = x.copy()
    once.sum_duplicates()
    return right(factors(x), factors(once))


def stored_zeros():
    x = np.abs(repeated().toarray())
    row, column = np.nonzero((x != 0) | (np.random.default_rng(1).random(x.shape) < 0.5))
    with_zeros = scipy.sparse.csr_matrix((x[row, column], (row, column)), shape=x.shape)
    return right(factors(with_zeros), factors(scipy.sparse.csr_matrix(x)))
