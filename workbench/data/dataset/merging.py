"""Other classes: the rarest of them as one, for a model with fewer outputs, and another one as the positive one."""

import dataclasses

import numpy as np

from workbench.data.dataset.record import Dataset
from workbench.data.errors import DataError


def merged(dataset: Dataset, width: int) -> Dataset:
    """The data set with at most `width` classes: the most frequent keep name and order, the others become the last one.

    The last class is called after how many it stands for, and `labels.merged` names them. Do this before `split`, so
    that both parts have the same classes; `load(..., like=merged_set)` reads a second file so. The positive class is
    kept. A set that has no more classes than that is given back. Refused (`DataError`): a width below 2, and labels
    that are not one class a row.
    """
    if dataset.kind != "classes":
        raise DataError(f"{dataset.name} has {dataset.labels}; only classes, one a row, can be merged.")
    if width < 2:
        raise DataError(f"width is {width}; merging leaves two classes or more.")
    classes = dataset.classes
    if width >= len(classes):
        return dataset
    counts = np.bincount(dataset.y, minlength=len(classes)).astype(np.float64)
    if dataset.labels.positive is not None:
        counts[classes.index(dataset.labels.positive)] = np.inf
    kept = np.sort(np.argsort(-counts, kind="stable")[: width - 1])
    number_of = np.full(len(classes), width - 1)
    number_of[kept] = np.arange(width - 1)
    return _renumbered(dataset, kept, number_of)


def with_positive(dataset: Dataset, positive: str) -> Dataset:
    """The data set with another class as the one that means yes; `DataError` where there is no such class."""
    return dataclasses.replace(dataset, labels=dataclasses.replace(dataset.labels, positive=positive))


def _renumbered(dataset: Dataset, kept: np.ndarray, number_of: np.ndarray) -> Dataset:
    labels = dataset.labels
    names = tuple(labels.classes[number] for number in kept)
    rare = tuple(name for name, number in zip(labels.classes, number_of, strict=True) if number == len(kept))
    if labels.merged and labels.classes[-1] in rare:  # merged before: its last class stands for others already
        rare = (*(name for name in rare if name != labels.classes[-1]), *labels.merged)
    positive = labels.positive or (names[0] if len(names) == 1 else None)
    last = f"other ({len(rare)} classes)"
    fewer = dataclasses.replace(labels, classes=(*names, last), positive=positive, merged=rare)
    return dataclasses.replace(dataset, y=number_of[dataset.y], labels=fewer)
