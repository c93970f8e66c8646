"""One line on what a training is about: its target, classes with their shares, what an answer without X gets."""

import numpy as np

from workbench.data.dataset.record import Dataset
from workbench.data.dataset.targets import natural_width, targets

SHOWN = 8
"""Classes that are shown with their shares; of more, the most frequent ones."""


def summary(dataset: Dataset, target: str, width: int | None = None) -> str:
    """Describe the target, its distribution, and the quality of the best answer that ignores X.

    Refused (`DataError`): what `targets` refuses.

    >>> from workbench import data
    >>> labels = data.Labels("classes", ("no", "yes"), guess="text")
    >>> x = data.load("uniform", rows=4, features=4, density=0.5, cache=False).x
    >>> summary(Dataset("mails", x, np.array([0, 0, 1, 0]), labels, "the file mails.npz", ""), "binary")
    "target: yes is 'yes'; labels: 2 classes (guessed: text): no 75 %, yes 25 %; without X: accuracy 0.75"
    """
    y = targets(dataset, target, width, np.float64)
    asked_for, without_x = SUMMARIES[target](dataset, y)
    return f"target: {asked_for}; labels: {dataset.labels}{_shares(dataset)}; without X: {without_x}"


def _of_classes(dataset: Dataset, y: np.ndarray) -> tuple[str, str]:
    return f"one of {len(dataset.classes):,} classes", f"accuracy {np.bincount(y).max() / len(y):.3g}"


def _of_binary(dataset: Dataset, y: np.ndarray) -> tuple[str, str]:
    return f"yes is {dataset.labels.positive!r}", _commoner(y)


def _of_numbers(dataset: Dataset, y: np.ndarray) -> tuple[str, str]:
    if dataset.kind != "numbers" and natural_width(dataset, "numbers") != y.shape[1]:
        return _of_columns(dataset, y)[0], "r2 0 (the means)"
    outputs = "a number" if y.shape[1] == 1 else f"{y.shape[1]:,} numbers"
    return f"{outputs}, mean {y.mean():.4g}, standard deviation {y.std():.3g}", "r2 0 (the mean)"


def _of_pairs(dataset: Dataset, y: np.ndarray) -> tuple[str, str]:
    return f"what was seen, {len(y):,} rows", "the most frequent items"


def _of_columns(dataset: Dataset, y: np.ndarray) -> tuple[str, str]:
    return f"{y.shape[1]:,} columns of 0 and 1, {y.sum(axis=1).mean():.3g} ones a row", _commoner(y)


def _commoner(y: np.ndarray) -> str:
    """Accuracy of always giving the more frequent answer, averaged over columns."""
    ones = y.mean(axis=0)
    return f"accuracy {np.maximum(ones, 1 - ones).mean():.3g}"


def _shares(dataset: Dataset) -> str:
    """The classes with the share of rows that have them, in their order; of many the most frequent ones."""
    if not dataset.classes:
        return ""
    if dataset.kind == "multilabel":
        counts = dataset.y.sum(axis=0, dtype=np.int64)
    else:
        counts = np.bincount(dataset.y, minlength=len(dataset.classes))
    places = np.argsort(-counts, kind="stable")[:SHOWN] if len(counts) > SHOWN else np.arange(len(counts))
    shown = [f"{dataset.classes[place]} {100 * counts[place] / dataset.rows:.3g} %" for place in places]
    more = f", and {len(counts) - len(shown):,} more" if len(counts) > len(shown) else ""
    return f": {', '.join(shown)}{more}"


SUMMARIES = {
    "classes": _of_classes,
    "binary": _of_binary,
    "numbers": _of_numbers,
    "multilabel": _of_columns,
    "implicit": _of_pairs,
}
