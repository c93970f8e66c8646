"""The package implicit: alternating least squares, and its Bayesian personalised ranking. Each point is a fit."""

from typing import Any

import numpy as np
import scipy.sparse
import threadpoolctl

from workbench.bench.fit.contract import Contender, Rows, Scorer, Value, grid, register

INSTALL = "pip install 'sparse-workbench[rivals]'"


def taken(rows: Rows) -> scipy.sparse.csr_matrix:
    """Which user took which item: ones, csr [users, items], in the class that implicit takes."""
    users, items = rows.facts["fields"]
    user, item = rows.x.indices[::2], rows.x.indices[1::2] - users
    return scipy.sparse.csr_matrix((np.ones(len(user), np.float32), (user, item)), shape=(users, items))


def _fitted(model: Any, rows: Rows) -> tuple[Scorer, bool]:
    with threadpoolctl.threadpool_limits(limits=1, user_api="blas"):  # as implicit asks: it has threads of its own
        model.fit(taken(rows), show_progress=False)
    return lambda users: model.user_factors[users] @ model.item_factors.T, False


def refit_als(rows: Rows, value: Value, iterations: int) -> tuple[Scorer, bool]:
    """Alternating least squares with that many iterations."""
    from implicit.cpu.als import AlternatingLeastSquares

    with threadpoolctl.threadpool_limits(limits=1, user_api="blas"):
        model = AlternatingLeastSquares(
            factors=rows.width,
            regularization=value["regularization"],
            alpha=value["confidence"],
            iterations=iterations,
            num_threads=rows.threads,
            random_state=rows.seed,
        )
    return _fitted(model, rows)


def refit_bpr(rows: Rows, value: Value, iterations: int) -> tuple[Scorer, bool]:
    """Bayesian personalised ranking with that many iterations."""
    from implicit.cpu.bpr import BayesianPersonalizedRanking

    model = BayesianPersonalizedRanking(
        factors=rows.width,
        learning_rate=value["rate"],
        regularization=value["regularization"],
        iterations=iterations,
        num_threads=rows.threads,
        random_state=rows.seed,
    )
    return _fitted(model, rows)


_RIVAL = {"side": "rival", "models": ("bpr",), "needs": "implicit", "install": INSTALL}
_ALS = grid(regularization=(0.01, 0.1, 1.0, 10.0, 100.0), confidence=(1.0, 10.0))
_BPR = grid(rate=(0.01, 0.03, 0.1, 0.2, 0.4), regularization=(0.001, 0.03))
register(Contender("implicit AlternatingLeastSquares", values=lambda model: _ALS, refit=refit_als, **_RIVAL))
register(Contender("implicit BayesianPersonalizedRanking", values=lambda model: _BPR, refit=refit_bpr, **_RIVAL))
