"""The package implicit: alternating least squares, and its Bayesian personalised ranking, iteration by iteration.

Every iteration is a call of `fit` with one, which goes on from the factors it finds; so each also pays for the
transposed matrix that the library makes in a call, some hundredths of an iteration. BLAS has one thread meanwhile, as
the library asks for: its own threads do the work.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse
import threadpoolctl

from benchmarks.fit.candidates import Candidate, Rows, Scorer, Value, grid, register

INSTALL = "pip install 'sparse-workbench[rivals]'"


def interaction_matrix(rows: Rows) -> scipy.sparse.csr_matrix:
    """Return the matrix of ones of the items that users have, csr float32 [users, items].

    `rows` holds pairs of user and item.
    """
    users, items = rows.facts["fields"]
    user, item = rows.x.indices[::2], rows.x.indices[1::2] - users
    return scipy.sparse.csr_matrix((np.ones(len(user), np.float32), (user, item)), shape=(users, items))


def _course(rows: Rows, make: Callable[..., Any], **settings: float) -> Iterator[Scorer]:
    """Train a model of implicit, one iteration at a time, without end; yield a scorer after each.

    `make` is the model class, `settings` its arguments. `rows` holds pairs of user and item.
    """
    matrix = interaction_matrix(rows)
    with threadpoolctl.threadpool_limits(limits=1, user_api="blas"):
        model = make(factors=rows.width, iterations=1, num_threads=rows.threads, random_state=rows.seed, **settings)
    while True:
        with threadpoolctl.threadpool_limits(limits=1, user_api="blas"):
            model.fit(matrix, show_progress=False)
        yield scorer(model.user_factors, model.item_factors)


def scorer(p: np.ndarray, q: np.ndarray) -> Scorer:
    """Return a function of user indices to the scores of all items, from factors p [users, K] and q [items, K]."""
    return lambda users: p[users] @ q.T


def steps_als(rows: Rows, value: Value) -> Iterator[Scorer]:
    """Return the scorers of alternating least squares, one per iteration, without end.

    Confidences are 1 + alpha (Hu, Koren and Volinsky 2008). `value` has `regularization` and `confidence` (alpha).
    """
    from implicit.cpu.als import AlternatingLeastSquares

    return _course(rows, AlternatingLeastSquares, regularization=value["regularization"], alpha=value["confidence"])


def steps_bpr(rows: Rows, value: Value) -> Iterator[Scorer]:
    """Return the scorers of Bayesian personalised ranking with item biases, one per iteration (Rendle et al. 2009).

    `value` has `rate` and `regularization`.
    """
    from implicit.cpu.bpr import BayesianPersonalizedRanking

    return _course(
        rows, BayesianPersonalizedRanking, learning_rate=value["rate"], regularization=value["regularization"]
    )


_COMPETITOR: dict[str, Any] = {"side": "competitor", "models": ("bpr",), "needs": "implicit", "install": INSTALL}
_ALS = grid(regularization=(0.01, 0.1, 1.0, 10.0, 100.0), confidence=(1.0, 10.0))
_BPR = grid(rate=(0.01, 0.03, 0.1, 0.2, 0.4), regularization=(0.001, 0.03))
register(Candidate("implicit AlternatingLeastSquares", values=lambda model: _ALS, steps=steps_als, **_COMPETITOR))
register(Candidate("implicit BayesianPersonalizedRanking", values=lambda model: _BPR, steps=steps_bpr, **_COMPETITOR))
