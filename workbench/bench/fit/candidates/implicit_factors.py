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

from workbench.bench.fit.candidates import Candidate, Rows, Scorer, Value, grid, register

INSTALL = "pip install 'sparse-workbench[competitors]'"


def taken(rows: Rows) -> scipy.sparse.csr_matrix:
    """Matrix of the items that users took: ones, csr [users, items], in the class that implicit takes."""
    users, items = rows.facts["fields"]
    user, item = rows.x.indices[::2], rows.x.indices[1::2] - users
    return scipy.sparse.csr_matrix((np.ones(len(user), np.float32), (user, item)), shape=(users, items))


def _course(rows: Rows, make: Callable[..., Any], **settings: float) -> Iterator[Scorer]:
    """Yield a scorer after each iteration of the package implicit, without end."""
    matrix = taken(rows)
    with threadpoolctl.threadpool_limits(limits=1, user_api="blas"):
        model = make(factors=rows.width, iterations=1, num_threads=rows.threads, random_state=rows.seed, **settings)
    while True:
        with threadpoolctl.threadpool_limits(limits=1, user_api="blas"):
            model.fit(matrix, show_progress=False)
        yield scorer(model.user_factors, model.item_factors)


def scorer(p: np.ndarray, q: np.ndarray) -> Scorer:
    """Return the scores of all items for users by factors p [users, K] and q [items, K]."""
    return lambda users: p[users] @ q.T


def steps_als(rows: Rows, value: Value) -> Iterator[Scorer]:
    """Alternating least squares on confidences of 1 + alpha (Hu, Koren and Volinsky 2008)."""
    from implicit.cpu.als import AlternatingLeastSquares

    return _course(rows, AlternatingLeastSquares, regularization=value["regularization"], alpha=value["confidence"])


def steps_bpr(rows: Rows, value: Value) -> Iterator[Scorer]:
    """Bayesian personalised ranking with biases of items (Rendle et al. 2009), by SGD row by row."""
    from implicit.cpu.bpr import BayesianPersonalizedRanking

    return _course(
        rows, BayesianPersonalizedRanking, learning_rate=value["rate"], regularization=value["regularization"]
    )


_RIVAL: dict[str, Any] = {"side": "rival", "models": ("bpr",), "needs": "implicit", "install": INSTALL}
_ALS = grid(regularization=(0.01, 0.1, 1.0, 10.0, 100.0), confidence=(1.0, 10.0))
_BPR = grid(rate=(0.01, 0.03, 0.1, 0.2, 0.4), regularization=(0.001, 0.03))
register(Candidate("implicit AlternatingLeastSquares", values=lambda model: _ALS, steps=steps_als, **_RIVAL))
register(Candidate("implicit BayesianPersonalizedRanking", values=lambda model: _BPR, steps=steps_bpr, **_RIVAL))
