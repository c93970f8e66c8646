"""What a model is trained towards, made from the labels of a data set."""

import numpy as np
from numpy.typing import DTypeLike

from workbench.data.dataset import DataError, Dataset

MODELS = ("linear", "logistic", "softmax")


def with_labels(dataset: Dataset, model: str, width: int | None = None, dtype: DTypeLike = np.float32) -> np.ndarray:
    """The targets of `model` at output width N, in the type its loss takes; None is the natural width.

    - `softmax`: int64 [rows], class numbers. Natural width: as many as classes. Narrower keeps the N-1 most frequent
      classes and merges all others into the last; wider leaves the outputs beyond the last class without examples.
    - `logistic`: `dtype` [rows, N] of 0 and 1: column j is class j, the j-th most frequent, against all others. Columns
      beyond the last class are 0. Natural width 1. Float targets: whether they are above 0.
    - `linear`: `dtype` [rows, N]. Float targets: their first N columns, naturally all. Classes: at width 1, which is
      natural, the class number with mean 0 and deviation 1 over the classes; at other widths one-hot, merged as above.

    Depends on the class numbers alone, so both parts of a split get the same meaning. Errors: `DataError`.
    """
    if model not in MODELS:
        raise DataError(f"There is no model {model!r}; there are {', '.join(MODELS)}.")
    if width is not None and width < 1:
        raise DataError(f"width is {width}; it is the number of outputs, 1 or more.")
    if not dataset.classes:
        return _of_targets(dataset, model, width, np.dtype(dtype))
    classes = len(dataset.classes)
    if model == "softmax":
        return _merged(dataset.y, _softmax_width(width or classes))
    if model == "logistic":
        return _one_hot(dataset.y, width or 1, dtype)
    if (width or 1) > 1:
        return _one_hot(_merged(dataset.y, width), width, dtype)
    deviation = np.sqrt(max((classes**2 - 1) / 12, 1 / 12))  # of 0, 1, ..., classes - 1; one class is all zeros
    return ((dataset.y - (classes - 1) / 2) / deviation).astype(dtype)[:, None]


def _softmax_width(width: int) -> int:
    if width < 2:
        raise DataError(f"softmax at width {width} has nothing to choose between; its width is 2 or more.")
    return width


def _merged(y: np.ndarray, width: int) -> np.ndarray:
    return np.minimum(y, width - 1)


def _one_hot(y: np.ndarray, width: int, dtype: DTypeLike) -> np.ndarray:
    return (y[:, None] == np.arange(width)).astype(dtype)  # [rows, width]


def _of_targets(dataset: Dataset, model: str, width: int | None, dtype: np.dtype) -> np.ndarray:
    if model == "softmax":
        raise DataError(f"softmax needs classes and {dataset.name} has float targets; use linear or logistic.")
    y = dataset.y.reshape(dataset.rows, -1) if dataset.rows else dataset.y.reshape(0, 1)
    width = width or (y.shape[1] if model == "linear" else 1)
    if width > y.shape[1]:
        raise DataError(f"{model} at width {width} needs as many targets; {dataset.name} has {y.shape[1]}.")
    y = y[:, :width]
    return np.ascontiguousarray(y > 0 if model == "logistic" else y, dtype)
