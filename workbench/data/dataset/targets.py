"""Training targets, made from the labels of a data set by the kind of target that the model asks for."""

from collections.abc import Callable

import numpy as np
from numpy.typing import DTypeLike

from kernels.registry import format_count, unknown_name
from workbench.data.dataset.record import Dataset
from workbench.data.errors import ADVICE_LABELS_FILE, DataError, MissingLabelsError, reader_option_advice
from workbench.data.labels import format_names

OF_MODEL = {"linear": "numbers", "logistic": "binary", "softmax": "classes"}


def targets(dataset: Dataset, target: str, width: int | None = None, dtype: DTypeLike = np.float32) -> np.ndarray:
    """Return the targets of that kind at output width N; None is the natural width (`natural_width`).

    - `classes`: int64 [rows], class numbers. N is as many as classes, or more: further outputs have no examples.
    - `binary`: `dtype` [rows, 1], 1 for the positive class and 0 for every other one.
    - `numbers`: `dtype` [rows, N], the labels themselves, and the numbers that classes are named by. Classes at a width
      above 1 give a column of 0 and 1 each, as `multilabel` does.
    - `multilabel`: `dtype` [rows, N], a column of 0 and 1 for each class.
    - `implicit`: `dtype` [rows, 1], ones: whatever the label, a row is what was seen.

    Both parts of a split get the same meaning. Refused (`DataError`, with what came and what to do): labels that cannot
    give such a target, labels that are all the same, and a width below the number of classes; `merged` makes fewer.
    """
    if target not in TARGETS:
        raise DataError(unknown_name("target", target, TARGETS))
    if width is not None and width < 1:
        raise DataError(f"width is {width}; it is the number of outputs, 1 or more.")
    if target != "implicit":
        refuse_constant(dataset)
    return TARGETS[target](dataset, width, np.dtype(dtype))


def natural_width(dataset: Dataset, target: str) -> int:
    """Return the number of outputs N that the labels need: one per class or column; 1 for binary and implicit.

    `target` is a key of `TARGETS`. For the target "numbers", classes need 1 as well.
    """
    if target in ("binary", "implicit") or (target == "numbers" and dataset.kind == "classes"):
        return 1
    return len(dataset.classes) if dataset.classes else 1 if dataset.y.ndim == 1 else dataset.y.shape[1]


def with_labels(dataset: Dataset, model: str, width: int | None = None, dtype: DTypeLike = np.float32) -> np.ndarray:
    """Return the targets of a model by its name: "linear" takes numbers, "logistic" binary, "softmax" classes.

    Shapes and errors are those of `targets`; raises DataError for another model name.
    """
    if model not in OF_MODEL:
        raise DataError(f"{unknown_name('model', model, OF_MODEL)} Others take data.targets.")
    return targets(dataset, OF_MODEL[model], width, dtype)


def refuse_constant(dataset: Dataset) -> None:
    """Raise DataError if all labels of the whole data set are the same, MissingLabelsError if it was read without."""
    span, classes = dataset.labels.span, dataset.classes
    if dataset.labels.are_missing:
        raise MissingLabelsError(
            f"{_origin(dataset)} was read without labels, which training needs.\n{ADVICE_LABELS_FILE}"
        )
    if dataset.kind == "classes" and len(classes) == 1:
        same = repr(classes[0])
    elif span is not None and span[0] == span[1] and dataset.y.ndim == 1:
        same = f"{span[0]:g}"
    else:
        return
    advice = "Check the file's labels."
    if "users" in dataset.facts:
        advice = (
            "If each line is a user and an item that was taken, a model can learn the order of items.\n"
            f"{reader_option_advice(implicit=True)}"
        )
    raise DataError(f"Every label of {_origin(dataset)} is {same}: there is nothing to learn.\n{advice}")


def _class_numbers(dataset: Dataset, width: int | None, dtype: np.dtype) -> np.ndarray:
    """Return the class index of each row, int64 [rows] (the array of the data set itself); `dtype` is not used.

    Raises DataError if the labels are not one class a row, or `width` is below the number of classes.
    """
    if dataset.kind != "classes":
        raise DataError(f"{_labels_are(dataset)}; this model chooses one class a row. {_advice(dataset)}")
    _check_width(dataset, width)
    return dataset.y


def _binary(dataset: Dataset, width: int | None, dtype: np.dtype) -> np.ndarray:
    """Return 1 for rows of the positive class and 0 for others, `dtype` [rows, 1].

    Raises DataError if `width` is neither None nor 1, the labels are numbers, or no class is the positive one.
    """
    if (width or 1) != 1:
        raise DataError(f"width is {width}; a binary target has one output: leave the width out.")
    if not dataset.classes:
        raise DataError(f"{_labels_are(dataset)}; this model is a binary classifier. {_advice(dataset)}")
    positive = dataset.labels.positive
    if positive is None:
        advice = "name the positive class: positive = '...'"
        raise DataError(
            f"{_labels_are(dataset)}: {format_names(dataset.classes)}. This model is a binary classifier; {advice}."
        )
    number = dataset.classes.index(positive)
    yes = dataset.y[:, number] == 1 if dataset.kind == "multilabel" else dataset.y == number
    return yes.astype(dtype)[:, None]


def _numbers(dataset: Dataset, width: int | None, dtype: np.dtype) -> np.ndarray:
    """Return regression targets, `dtype` [rows, outputs]: the numbers, or the values that the class names stand for.

    Multilabel, and classes at a width above 1, give indicator columns. Raises DataError if class names are not numbers,
    `width` exceeds the columns, or a value does not fit `dtype`.
    """
    if dataset.kind == "multilabel" or (dataset.kind == "classes" and (width or 1) > 1):
        return _indicators(dataset, width, dtype)
    if dataset.kind == "classes":
        values = dataset.labels.values
        if values is None:
            advice = f"Take a model of classes, or a column of 0 and 1 for each: width = {len(dataset.classes)}"
            raise DataError(f"{_labels_are(dataset)}: {format_names(dataset.classes)}. They are no numbers. {advice}.")
        return _fitting(values, dtype)[dataset.y][:, None]
    y = dataset.y.reshape(dataset.rows, natural_width(dataset, "numbers"))
    if width is not None and width > y.shape[1]:
        raise DataError(f"width is {width}; it needs as many numbers a row, and {dataset.name} has {y.shape[1]}.")
    return np.ascontiguousarray(_fitting(y[:, :width], dtype))


def _indicators(dataset: Dataset, width: int | None, dtype: np.dtype) -> np.ndarray:
    """Return a column of 0 and 1 for each class, `dtype` [rows, width]; columns beyond the classes are 0.

    Raises DataError if labels are numbers, or `width` is below the number of classes (None: as many as classes).
    """
    if not dataset.classes:
        raise DataError(
            f"{_labels_are(dataset)}; this model predicts each class apart (multilabel). {_advice(dataset)}"
        )
    _check_width(dataset, width)
    width = width or len(dataset.classes)
    if dataset.kind == "classes":
        return (dataset.y[:, None] == np.arange(width)).astype(dtype)
    columns = np.zeros((dataset.rows, width), dtype)
    columns[:, : dataset.y.shape[1]] = dataset.y
    return columns


def _check_width(dataset: Dataset, width: int | None) -> None:
    """Raise DataError if `width` outputs are fewer than the classes; None is allowed."""
    classes = len(dataset.classes)
    if width is not None and width < classes:
        advice = f"Take width = {classes} or leave it out; with merge = true the rarest become one class"
        raise DataError(f"width is {width} and {dataset.name} has {format_count(classes, 'class')}. {advice}.")


def _fitting(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return `values` cast to `dtype` (a copy); raise DataError if one becomes infinite."""
    with np.errstate(over="ignore"):
        fitted = values.astype(dtype)
    if not np.isfinite(fitted).all():
        wrong = values[~np.isfinite(fitted)].flat[0]
        raise DataError(f"The label {wrong:g} is beyond {dtype}; take float64, or scale the labels.")
    return fitted


def _labels_are(dataset: Dataset) -> str:
    """Return the start of an error message: "The labels of SOURCE are DESCRIPTION"."""
    return f"The labels of {_origin(dataset)} are {dataset.labels}"


def _origin(dataset: Dataset) -> str:
    """Return "the file NAME" for a data set read from a file, else its name."""
    return dataset.source if dataset.source.startswith("the file ") else dataset.name


def _advice(dataset: Dataset) -> str:
    """Return the end of an error message: which kind of model or setting fits these labels."""
    if dataset.kind == "multilabel":
        return "Take a model of several classes a row."
    return "Take a model of numbers, or say kind = 'classes' if each different number is a class."


TARGETS: dict[str, Callable[[Dataset, int | None, np.dtype], np.ndarray]] = {
    "classes": _class_numbers,
    "binary": _binary,
    "numbers": _numbers,
    "multilabel": _indicators,
    "implicit": lambda dataset, width, dtype: np.ones((dataset.rows, 1), dtype),
}
"""Kinds of target that a model may ask for."""


# One line on what a training is about: its target, classes with their shares, what an answer without X gets.


SHOWN = 8
"""Classes that are shown with their shares; of more, the most frequent ones."""


def summary(dataset: Dataset, target: str, width: int | None = None) -> str:
    """Return one line that describes target, label shares and the quality of the best constant answer.

    Raises DataError as `targets` does.

    >>> from workbench import data
    >>> labels = data.Labels("classes", ("no", "yes"))
    >>> x = data.load("uniform", rows=4, features=4, density=0.5, cache=False).x
    >>> summary(Dataset("mails", x, np.array([0, 0, 1, 0]), labels, "the file mails.npz", ""), "binary")
    "target: positive class 'yes'; labels: 2 classes, no: 75 %, yes: 25 %; a constant gets accuracy 0.75"
    """
    y = targets(dataset, target, width, np.float64)
    asked_for, without_x = SUMMARIES[target](dataset, y)
    return f"target: {asked_for}; labels: {dataset.labels}{_shares(dataset)}; a constant gets {without_x}"


def _summarise_numbers(dataset: Dataset, y: np.ndarray) -> tuple[str, str]:
    """Return (mean and standard deviation, "r2 0") as text for regression targets y [rows, outputs]."""
    if dataset.kind != "numbers" and natural_width(dataset, "numbers") != y.shape[1]:
        return _summarise_columns(dataset, y)[0], "r2 0 (the means)"
    outputs = "a number" if y.shape[1] == 1 else f"{y.shape[1]:,} numbers"
    return f"{outputs}, mean {y.mean():.4g}, standard deviation {y.std():.3g}", "r2 0 (the mean)"


def _summarise_columns(dataset: Dataset, y: np.ndarray) -> tuple[str, str]:
    """Return (columns and ones per row, accuracy of the more frequent answer) as text for 0/1 y [rows, N].

    `dataset` is unused.
    """
    return f"{format_count(y.shape[1], 'column')} of 0 and 1, {y.sum(axis=1).mean():.3g} ones a row", _commoner(y)


def _commoner(y: np.ndarray) -> str:
    """Return "accuracy X" of always giving the more frequent answer, averaged over the 0/1 columns of y [rows, N]."""
    ones = y.mean(axis=0)
    return f"accuracy {np.maximum(ones, 1 - ones).mean():.3g}"


def _shares(dataset: Dataset) -> str:
    """Return ", NAME: 75 %, ..." with the share of rows of up to `SHOWN` classes; "" if there are no classes."""
    if not dataset.classes:
        return ""
    if dataset.kind == "multilabel":
        counts = dataset.y.sum(axis=0, dtype=np.int64)
    else:
        counts = np.bincount(dataset.y, minlength=len(dataset.classes))
    places = np.argsort(-counts, kind="stable")[:SHOWN] if len(counts) > SHOWN else np.arange(len(counts))
    shown = [f"{dataset.classes[place]}: {100 * counts[place] / dataset.rows:.3g} %" for place in places]
    more = f", and {len(counts) - len(shown):,} more" if len(counts) > len(shown) else ""
    return f", {', '.join(shown)}{more}"


SUMMARIES = {
    "classes": lambda dataset, y: (
        f"one of {format_count(len(dataset.classes), 'class')}",
        f"accuracy {np.bincount(y).max() / len(y):.3g}",
    ),
    "binary": lambda dataset, y: (f"positive class {dataset.labels.positive!r}", _commoner(y)),
    "numbers": _summarise_numbers,
    "multilabel": _summarise_columns,
    "implicit": lambda dataset, y: (
        f"what was seen, {format_count(len(y), 'row')}",
        "the most frequent items",
    ),
}


def labels_as_named(dataset: Dataset) -> np.ndarray:
    """Return the labels of a data set as its file has them: numbers, or class names, [rows].

    >>> from workbench import load
    >>> labels_as_named(load(([[1], [2]], [5, 7]))).tolist()
    [5, 7]
    """
    if dataset.kind != "classes":
        return dataset.y
    values = dataset.labels.values
    if values is None:
        return np.array(dataset.classes)[dataset.y]
    are_whole = (values == np.round(values)).all() and np.abs(values).max() < 2**53
    return (values.astype(np.int64) if are_whole else values)[dataset.y]
