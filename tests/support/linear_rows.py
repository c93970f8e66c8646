"""Sparse rows with labels that a linear model explains in part, for estimators."""

import numpy as np
import scipy.sparse

FULL = {"optimizer": "sgd", "batch_rows": 1000, "shuffle": False, "lazy": "exact"}
"""Gradient descent on all rows at once."""


def drawn(rows=80, features=12, classes=2, seed=0, dtype=np.float64):
    """Sparse X and labels that a linear model explains in part."""
    generator = np.random.default_rng(seed)
    x = scipy.sparse.random_array((rows, features), density=0.4, rng=generator, dtype=np.float64)
    scores = x @ generator.normal(size=(features, classes)) + 0.3 * generator.normal(size=(rows, classes))
    return scipy.sparse.csr_array(x.astype(dtype)), scores.argmax(axis=1)
