"""MATLAB files (.mat of version 5): the samples in one variable, sparse or dense, their labels in another."""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from workbench import formats
from workbench.data.contract import Source, register
from workbench.data.dataset.record import Dataset
from workbench.data.errors import ADVICE_LABELS, DataError, MissingLabelsError
from workbench.data.files.labels import read_label_file
from workbench.data.files.matlab import READ, WHAT, Variable, opened_matlab, values, variables
from workbench.data.files.reading import dataset_of, reading
from workbench.data.labels.meaning import NONE, Wanted
from workbench.data.labels.reading import MOST_COLUMNS, one_of_columns

NAME = "matlab"
LICENCE = "that of the file"
LABEL_NAMES = ("y", "gnd", "label", "labels", "target", "targets", "class", "classes", "l", "t", "ytrain", "y_train")
"""What the variable of labels is called, in any case, where it is not named: the first of these that fits."""


def make(
    path: str | os.PathLike,
    variable: str | None = None,
    labels_variable: str | None = None,
    transposed: bool | None = None,
    labels: str | os.PathLike | None = None,
    kind: str | None = None,
    positive: Any = None,
    classes: Sequence[Any] | None = None,
    unseen: Any = None,
) -> Dataset:
    """Return the samples in `variable` with the labels in `labels_variable`; what is guessed stands in `source`.

    Without a name the samples are the largest sparse matrix, else the largest matrix of numbers; labels are the
    variable that is called so (y, gnd, label, ...) and has as many entries as the matrix has rows or columns, else the
    only vector that has. `transposed` says that samples are columns, as in files of words x documents; None tells it
    from the number of labels, and takes rows where both sides fit. `labels` is a file of labels, .npy or text, in place
    of a variable. Labels are a vector of numbers, rows of text, or a matrix of 0 and 1: with one 1 a row its columns
    are classes, counted from 0. `kind`, `positive`, `classes` and `unseen` are those of the data set npz. Refused
    (`DataError`): version 7.3, names that there are not, variables of other classes, sides that do not fit. Memory
    about twice the variables, as they are unpacked.
    """
    wanted = Wanted(kind, positive, classes, unseen)
    with reading(path, WHAT), opened_matlab(path) as file:
        listed = variables(file)
        x = _named(variable, listed, path) if variable is not None else _largest(listed, path)
        if labels is not None or kind == NONE:
            return _with_other_labels(file, x, labels, transposed, wanted, path)
        y = _named(labels_variable, listed, path) if labels_variable is not None else _labels_of(x, listed, path)
        is_turned, labels_turned = _turned(x, y, transposed, path)
        read = _values(file, {x.name, y.name}, path)
        y_read = _as_labels(read[y.name], labels_turned, kind)
        matrix = _as_matrix(read[x.name])
        rows = matrix.T if is_turned else matrix
        made = dataset_of(NAME, rows, y_read, wanted, path, LICENCE, lambda row: f"{path}, {y.name}, row {row}")
    told = f"the file {Path(path).name}: {x.name}{', transposed' if is_turned else ''}, labels {y.name}"
    reread = {"variable": x.name, "labels_variable": y.name, "transposed": is_turned}
    return dataclasses.replace(made, source=told, facts={**made.facts, "reread": reread})


def _with_other_labels(
    file: Any, x: Variable, labels: Any, transposed: bool | None, wanted: Wanted, path: str | os.PathLike
) -> Dataset:
    """Return the samples with the labels of another file, or with none.

    The number of labels tells whether to transpose.
    """
    matrix = _as_matrix(_values(file, {x.name}, path)[x.name])
    y, place = (None, str) if labels is None else read_label_file(labels)
    if transposed is None:
        transposed = y is not None and len(y) == matrix.shape[1] != matrix.shape[0]
    rows = matrix.T if transposed else matrix
    y = np.zeros(rows.shape[0]) if y is None else y
    made = dataset_of(NAME, rows, y, wanted, path, LICENCE, place)
    reread = {"variable": x.name, "transposed": transposed}
    return dataclasses.replace(made, facts={**made.facts, "reread": reread})


def _values(file: Any, names: set[str], path: str | os.PathLike) -> dict[str, Any]:
    """Return the variables `names` by name; raise DataError if one is listed but missing."""
    read = values(file, names)
    if missing := names - set(read):
        raise DataError(f"{path} lists the variable {missing.pop()} and does not hold it; the file is damaged.")
    return read


def _named(name: str, listed: list[Variable], path: str | os.PathLike) -> Variable:
    """Return the variable of this name; raise DataError if it is absent or of a type that is not read."""
    found = next((one for one in listed if one.name == name), None)
    if found is None:
        raise DataError(f"{path} has no variable {name!r}; it has {_told(listed)}.")
    if found.kind not in READ or len(found.shape) > 2:
        raise DataError(f"{path}: the variable {found} is not read; save a matrix of numbers. It has {_told(listed)}.")
    return found


def _largest(listed: list[Variable], path: str | os.PathLike) -> Variable:
    """Return the matrix that is taken as X: the largest, sparse ones first; DataError if there is none or a tie."""
    matrices = [one for one in listed if one.is_matrix]
    matrices = [matrix for matrix in matrices if matrix.name.casefold() not in LABEL_NAMES] or matrices
    matrices = [matrix for matrix in matrices if matrix.kind == "sparse"] or matrices
    if not matrices:
        raise DataError(f"{path} holds no matrix; it has {_told(listed)}. Say variable = the name of one.")
    largest = sorted(matrices, key=lambda one: one.size)
    if len(largest) > 1 and largest[-1].size == largest[-2].size:
        raise DataError(f"{path} holds several matrices: {_told(matrices)}. Say variable = the name of one.")
    return largest[-1]


def _labels_of(x: Variable, listed: list[Variable], path: str | os.PathLike) -> Variable:
    """Return the variable that is taken as labels of x, by name or shape; raise an error if none fits."""
    fitting = [one for one in listed if one.name != x.name and one.kind in READ and _sides(one) & set(x.shape)]
    for name in LABEL_NAMES:
        if found := [one for one in fitting if one.name.casefold() == name]:
            return found[0]
    vectors = [one for one in fitting if one.kind != "char" and 1 in one.shape]
    if len(vectors) == 1:
        return vectors[0]
    which = f"{_told(vectors)} may be" if vectors else "none has as many entries as there are rows or columns"
    advice = f"Say labels_variable = the name of the labels of {x}"
    raise MissingLabelsError(
        f"{path} does not tell its labels: {which}. {advice}; it has {_told(listed)}.\n{ADVICE_LABELS}"
    )


def _sides(labels: Variable) -> set[int]:
    """Return the numbers of rows that the labels may be for."""
    if labels.kind == "char":  # a row of text counts as one
        return {labels.shape[0]}
    if len(labels.shape) != 2:
        return set()
    return {max(labels.shape)} if min(labels.shape) == 1 else set(labels.shape)


def _turned(x: Variable, y: Variable, transposed: bool | None, path: str | os.PathLike) -> tuple[bool, bool]:
    """Return whether the samples are the columns of `x`, and whether the labels are the columns of `y`."""
    for is_turned in (False, True) if transposed is None else (transposed,):
        rows = x.shape[1 if is_turned else 0]
        if rows in _sides(y):
            return is_turned, y.kind != "char" and y.shape[0] != rows
    sides = {None: "neither the rows nor the columns", False: "not the rows", True: "not the columns"}[transposed]
    advice = "Say labels_variable = another one" + ("" if transposed is None else ", or leave transposed out")
    raise DataError(f"{path}: the number of labels in {y} fits {sides} of {x}. {advice}.")


def _as_matrix(value: Any) -> Any:
    """Return a variable as a sparse matrix; raise DataError unless it is a real 2-d array."""
    if scipy.sparse.issparse(value):
        return value
    if value.ndim != 2 or value.dtype.kind not in "biuf":
        raise DataError(f"X is {value.dtype} {list(value.shape)}; it is a matrix of real numbers.")
    return scipy.sparse.csr_array(value.astype(np.float64))


def _as_labels(value: Any, turned: bool, kind: str | None) -> np.ndarray:
    """Return a variable as labels, [rows] or [rows, columns], transposed if `turned`; DataError if complex."""
    labels = _dense(value) if scipy.sparse.issparse(value) else value
    if labels.dtype.kind == "c":
        raise DataError("The labels are complex; they are real numbers or text.")
    if labels.dtype.kind == "U":
        return np.char.strip(labels.reshape(-1))
    labels = labels.T if turned else labels
    return one_of_columns(labels) if kind in (None, "classes") else labels


def _dense(labels: scipy.sparse.csc_array) -> np.ndarray:
    """Return sparse labels as a dense array; raise DataError above 2**32 values."""
    if (size := labels.shape[0] * labels.shape[1]) > MOST_COLUMNS:
        raise DataError(
            f"The labels are {' x '.join(map(str, labels.shape))}, {size:,} of them; at most 2**32 are held."
        )
    return formats.to_format(labels, "dense")


def _told(listed: list[Variable]) -> str:
    """Return the first 20 variables of a file as text for a message."""
    return ", ".join(map(str, listed[:20])) or "none"


register(Source(NAME, make, "a file of yours", LICENCE, lambda path, labels=None, **rest: (path, labels)))
