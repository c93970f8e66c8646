"""Ranking of items for users: Bayesian personalised ranking (Rendle et al. 2009).

score = <p, q>, factors of a user and an item. It is trained on pairs, an item of the user and a sampled item that the
user does not have, drawn anew for each row, with loss -log sigmoid(<p, q - q'>). The width is the number of factors.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from workbench.graph import Symbol
from workbench.metrics import ndcg_at, precision_at, recall_at
from workbench.models import Complete, Given, Model, register
from workbench.models.matrix_factorization import affinity, factors
from workbench.models.two_fields import with_items_unseen


def scores(x: Symbol, engine: str, given: Given) -> Symbol:
    """Return the symbol of the scores [R, 1]; for a row with 1 and -1 among the items, of their difference.

    `engine` is not used.
    """
    return affinity(x, given)


def sampler(given: Given, x: Any) -> Complete:
    """Return complete(batch, generator), which adds to each row an item that its user has in no row of `x`."""
    complete = with_items_unseen(x, given.facts["fields"])
    return lambda batch, generator: batch.with_x(complete(batch.x, generator))


def rank(given: Given, arrays: Mapping[str, np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """Return scores_of(users int [n]) -> [n, items] from the trained factors `arrays["v"]`."""
    p, q = np.split(arrays["v"], [given.facts["fields"][0]])
    return lambda users: p[users] @ q.T


register(
    Model(
        "bpr",
        loss="logistic",
        target="implicit",
        quality_name="recall at 20",
        quality=partial(recall_at, k=20),
        measures={"NDCG at 20": partial(ndcg_at, k=20), "precision at 20": partial(precision_at, k=20)},
        scores=scores,
        parameters=lambda given: (factors(given),),
        widths="any number of factors from 1",
        outputs=1,
        width=64,
        needs=("fields",),
        has_intercept=False,
        sampler=sampler,
        rank=rank,
        predicts="the order of items for users",
        usual_for="implicit",
    )
)
