"""MATLAB files (.mat of versions 4 and 5): the samples in one variable, sparse or dense, their labels in another."""

import dataclasses
import os
from typing import Any

import numpy as np
import scipy.sparse

from workbench import formats
from workbench.data.contract import Source, register
from workbench.data.dataset.record import Dataset
from workbench.data.errors import ADVICE_LABELS, DataError, MissingLabelsError, reader_option_advice
from workbench.data.files.labels import read_label_file
from workbench.data.files.matlab import READ, WHAT, Variable, open_matlab, values, variables
from workbench.data.files.reading import dataset_of, reading
from workbench.data.labels import GUESSED, MOST_COLUMNS, NONE, Place, Wanted, one_of_columns
from workbench.formats.compressed import with_native_order

NAME = "matlab"
LABEL_NAMES = ("y", "gnd", "label", "labels", "target", "targets", "class", "classes", "l", "t", "ytrain", "y_train")
"""What the variable of labels is called, in any case, where it is not named: the first of these that fits."""
ADVICE_VARIABLE = reader_option_advice(variable="NAME")
ADVICE_OTHER_LABELS = reader_option_advice(labels_variable="NAME")


def make(
    path: str | os.PathLike,
    variable: str | None = None,
    labels_variable: str | None = None,
    transposed: bool | None = None,
    labels: str | os.PathLike | None = None,
    wanted: Wanted = GUESSED,
) -> Dataset:
    """Return the data set of a MATLAB file of version 4 or 5: samples in `variable`, labels in `labels_variable`.

    Without a name the samples are the largest sparse matrix, else the largest matrix of numbers; labels are the
    variable called y, gnd, label, ... that has as many entries as the matrix has rows or columns, else the only vector
    that has. Guesses are stated in `source`. `transposed` says that samples are columns; None infers it from the number
    of labels, rows first. `labels` is a file of labels, .npy or text, in place of a variable. Labels are a vector of
    numbers, rows of text, or a matrix of 0 and 1: with one 1 a row its columns are classes, counted from 0. `kind`,
    `positive`, `classes` and `unseen` are those of the data set npz. Raises DataError for version 7.3, unknown names,
    variables of other classes, and shapes that do not fit. Memory is about twice the variables.
    """
    with reading(path, WHAT), open_matlab(path) as file:
        listed = variables(file)
        x = _find_named(variable, listed, path) if variable is not None else _largest(listed, path)
        if labels is not None or wanted.kind == NONE:
            return _with_other_labels(file, x, labels, transposed, wanted, path)
        y = _find_named(labels_variable, listed, path) if labels_variable is not None else _labels_of(x, listed, path)
        is_turned, labels_turned = _find_orientation(x, y, transposed, path)
        read = _values(file, {x.name, y.name}, path)
        y_read = _as_labels(read[y.name], labels_turned, wanted.kind)
        matrix = _as_matrix(read[x.name])
        rows = matrix.T if is_turned else matrix
        reread = {"variable": x.name, "labels_variable": y.name, "transposed": is_turned}
        place: Place = lambda row: f"{path}, {y.name}, row {row}"  # noqa: E731
        made = dataset_of(NAME, rows, y_read, wanted, path, place, reread=reread)
    guesses = f"{x.name}{', transposed' if is_turned else ''}, labels {y.name}"
    return dataclasses.replace(made, source=f"{made.source}: {guesses}")


def _with_other_labels(
    file: Any, x: Variable, labels: Any, transposed: bool | None, wanted: Wanted, path: str | os.PathLike
) -> Dataset:
    """Return the data set of the variable `x` with labels from the file `labels`, or all 0 if that is None.

    If `transposed` is None, columns are samples if the number of labels is that of the columns and not of the rows.
    Raises DataError if labels do not fit.
    """
    matrix = _as_matrix(_values(file, {x.name}, path)[x.name])
    y, place = (None, str) if labels is None else read_label_file(labels)
    if transposed is None:
        transposed = y is not None and len(y) == matrix.shape[1] != matrix.shape[0]
    rows = matrix.T if transposed else matrix
    y = np.zeros(rows.shape[0]) if y is None else y
    return dataset_of(NAME, rows, y, wanted, path, place, reread={"variable": x.name, "transposed": transposed})


def _values(file: Any, names: set[str], path: str | os.PathLike) -> dict[str, Any]:
    """Return {name: value} of the variables `names`; raise DataError if one is listed in the file but missing."""
    read = values(file, names)
    if missing := names - set(read):
        raise DataError(f"{path} lists the variable {missing.pop()} and does not hold it; the file is damaged.")
    return read


def _find_named(name: str, listed: list[Variable], path: str | os.PathLike) -> Variable:
    """Return the listed variable called `name`; raise DataError if it is absent or of a class that is not read."""
    found = next((one for one in listed if one.name == name), None)
    if found is None:
        raise DataError(f"{path} has no variable {name!r}; it has {_list_variables(listed)}.")
    if found.kind not in READ or len(found.shape) > 2:
        advice = _advice_of_cell(found) if found.kind == "cell" else "Save a matrix of numbers."
        raise DataError(f"{path}: the variable {found} is not read; it has {_list_variables(listed)}.\n{advice}")
    return found


def _largest(listed: list[Variable], path: str | os.PathLike) -> Variable:
    """Return the matrix to use as X: the largest, sparse ones before dense; DataError if there is none or a tie.

    Matrices named like labels are only taken if there are no others.
    """
    matrices = [one for one in listed if one.is_matrix]
    matrices = [matrix for matrix in matrices if matrix.name.casefold() not in LABEL_NAMES] or matrices
    matrices = [matrix for matrix in matrices if matrix.kind == "sparse"] or matrices
    if not matrices:
        struct = next((one.name for one in listed if one.kind == "struct"), None)
        spread = f"In MATLAB: save('file.mat', '-struct', '{struct}') writes its fields, which are read."
        raise DataError(
            f"{path} holds no matrix; it has {_list_variables(listed)}.\n{spread if struct else ADVICE_VARIABLE}"
        )
    largest = sorted(matrices, key=lambda one: one.size)
    if len(largest) > 1 and largest[-1].size == largest[-2].size:
        raise DataError(f"{path} holds several matrices: {_list_variables(matrices)}.\n{ADVICE_VARIABLE}")
    return largest[-1]


def _labels_of(x: Variable, listed: list[Variable], path: str | os.PathLike) -> Variable:
    """Return the variable to use as labels of `x`, by its name, else as the only vector of fitting length.

    Raises MissingLabelsError if none fits or several vectors do.
    """
    fitting = [one for one in listed if one.name != x.name and one.kind in READ and _sides(one) & set(x.shape)]
    for name in LABEL_NAMES:
        if found := [one for one in fitting if one.name.casefold() == name]:
            return found[0]
    vectors = [one for one in fitting if one.kind != "char" and 1 in one.shape]
    if len(vectors) == 1:
        return vectors[0]
    which = f"{_list_variables(vectors)} may be" if vectors else "none has as many entries as there are rows or columns"
    cell = next((one for one in listed if one.kind == "cell" and max(one.shape, default=0) in x.shape), None)
    advice = f"{_advice_of_cell(cell)}\n{ADVICE_LABELS}" if cell else ADVICE_LABELS
    raise MissingLabelsError(
        f"{path} does not tell its labels: {which} of {x}; it has {_list_variables(listed)}.\n{advice}"
    )


def _advice_of_cell(cell: Variable) -> str:
    """Return the MATLAB line that makes a readable text array of a cell array, as a sentence for a message."""
    return f"In MATLAB: {cell.name} = char({cell.name}); before save makes text that is read of the cell array."


def _sides(labels: Variable) -> set[int]:
    """Return the set of sample counts that a label variable could have: its length, or both sides of a matrix."""
    if labels.kind == "char":  # a row of text counts as one
        return {labels.shape[0]}
    if len(labels.shape) != 2:
        return set()
    return {max(labels.shape)} if min(labels.shape) == 1 else set(labels.shape)


def _find_orientation(x: Variable, y: Variable, transposed: bool | None, path: str | os.PathLike) -> tuple[bool, bool]:
    """Return (whether samples are the columns of `x`, whether labels run along the columns of `y`).

    `transposed` fixes the first, None tries rows first. Raises DataError if the number of labels does not fit.
    """
    for is_turned in (False, True) if transposed is None else (transposed,):
        rows = x.shape[1 if is_turned else 0]
        if rows in _sides(y):
            return is_turned, y.kind != "char" and y.shape[0] != rows
    sides = {None: "neither the rows nor the columns", False: "not the rows", True: "not the columns"}[transposed]
    advice = ADVICE_OTHER_LABELS + ("" if transposed is None else " Or leave transposed out.")
    raise DataError(f"{path}: the number of labels in {y} fits {sides} of {x}.\n{advice}")


def _as_matrix(value: Any) -> Any:
    """Return a sparse value as it is, and a real 2-d array as CSR; DataError for anything else."""
    if scipy.sparse.issparse(value):
        return value
    if value.ndim != 2 or value.dtype.kind not in "biuf":
        raise DataError(f"X is {value.dtype} {list(value.shape)}; it is a matrix of real numbers.")
    return scipy.sparse.csr_array(with_native_order(value))


def _as_labels(value: Any, turned: bool, kind: str | None) -> np.ndarray:
    """Return a variable as labels, [rows] or [rows, columns], transposed if `turned`; DataError if complex.

    One-hot columns become class indices if `kind` is None or "classes"; text is stripped.
    """
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


def _list_variables(listed: list[Variable]) -> str:
    """Return the first 20 variables as text, as "X (10 x 3 double), y (10 x 1 double)"; "none" without any."""
    return ", ".join(map(str, listed[:20])) or "none"


register(Source(NAME, make))
