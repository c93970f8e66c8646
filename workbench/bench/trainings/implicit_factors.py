"""Factors of users and items by the library implicit: alternating least squares, and Bayesian personalised ranking.

Every epoch is a call of `fit` with one iteration, which goes on from the factors it finds; so each also pays for the
transposed matrix that the library makes in a call, some hundredths of an iteration. BLAS has one thread meanwhile, as
the library asks for: its own threads do the work.
"""

import importlib.util
from collections.abc import Iterator
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from workbench.bench.fit.contenders.implicit_factors import INSTALL, taken
from workbench.bench.fit.contract import Scorer
from workbench.bench.trainings import rows_of
from workbench.sweep.problem import Problem

UNAVAILABLE = "" if importlib.util.find_spec("implicit") else f"implicit is not installed: {INSTALL}"


def als(
    problem: Problem, factors: int, regularization: float, alpha: float, threads: int = 0, seed: int = 0
) -> Iterator[Scorer]:
    """Alternating least squares on confidences of 1 + alpha (Hu, Koren, Volinsky 2008); after each iteration a scorer.

    `threads` 0 are all. ModuleNotFoundError where the library is not installed.
    """
    from implicit.cpu.als import AlternatingLeastSquares

    settings = {"regularization": regularization, "alpha": alpha}
    return _course(AlternatingLeastSquares, problem, factors, threads, seed, settings)


def bpr(
    problem: Problem, factors: int, learning_rate: float, regularization: float, threads: int = 0, seed: int = 0
) -> Iterator[Scorer]:
    """Bayesian personalised ranking with item biases (Rendle et al. 2009) by SGD row by row; after each epoch a scorer.

    `threads` 0 are all. ModuleNotFoundError where the library is not installed.
    """
    from implicit.cpu.bpr import BayesianPersonalizedRanking

    settings = {"learning_rate": learning_rate, "regularization": regularization}
    return _course(BayesianPersonalizedRanking, problem, factors, threads, seed, settings)


def _course(
    make: Any, problem: Problem, factors: int, threads: int, seed: int, settings: dict[str, float]
) -> Iterator[Scorer]:
    with threadpool_limits(1, "blas"):
        model = make(factors=factors, iterations=1, num_threads=threads, random_state=seed, **settings)
    matrix = taken(rows_of(problem, "bpr", factors))
    while True:
        with threadpool_limits(1, "blas"):
            model.fit(matrix, show_progress=False)
        yield scorer(model.user_factors, model.item_factors)


def scorer(p: np.ndarray, q: np.ndarray) -> Scorer:
    """Scores of all items for users by factors p [users, K] and q [items, K]."""
    return lambda users: p[users] @ q.T
