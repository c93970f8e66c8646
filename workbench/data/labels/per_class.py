"""Rows to train on by class: as few labels of each as most nodes of a citation graph have."""

import numpy as np

from workbench.data.errors import DataError


def some_of_each_class(kind: str, y: np.ndarray, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """`count` rows of each class, and all others, both in random order, int64; of labels of this `kind`.

    Of a class of fewer rows all are taken. Refused (`DataError`): labels that are no classes, a part without rows.
    O(rows log rows).

    >>> train, rest = some_of_each_class("classes", np.array([0, 1, 0, 1, 1]), 1, seed=0)
    >>> len(train), len(rest)
    (2, 3)
    """
    if kind != "classes":
        raise DataError(f"per_class is {count}, and the labels are {kind}; it counts rows of classes. Leave it out.")
    if count < 1:
        raise DataError(f"per_class is {count}; it is 1 or more rows of each class.")
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    sizes = np.bincount(y)
    is_trained = np.arange(len(y)) - np.repeat(np.cumsum(sizes) - sizes, sizes) < count
    if is_trained.all():
        raise DataError(f"per_class is {count}, and no class of the {len(y)} rows has more; fewer leave some held out.")
    return generator.permutation(order[is_trained]), generator.permutation(order[~is_trained])
