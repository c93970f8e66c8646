"""Conversion of what people hold in memory, matrices, tables and tensors, into a csr matrix and labels.

Libraries are recognised by the module of the object, so that none is imported that is not there.
"""

import inspect
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse

from kernels.registry import format_count
from workbench.data.dataset.record import canonical, compressed
from workbench.data.errors import DataError
from workbench.formats import FormatError
from workbench.formats.arrays import host_array


class InputTypeError(DataError, TypeError):
    """Input of a type that cannot be trained on; the message ends with a line to type."""


def in_notebook() -> bool:
    """Return whether this code runs in a notebook kernel, which displays HTML."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


def say(text: str) -> None:
    """Print a remark: to standard output in a notebook, else to standard error."""
    print(text, file=sys.stdout if in_notebook() else sys.stderr)


def matrix_of(x: Any, name: str = "X") -> scipy.sparse.csr_array:
    """Return a matrix as float32 csr [rows, features] without duplicates.

    Parameters
    ----------
    x : array, sparse array or matrix, nested list, or tensor
        The matrix, `[rows, features]`, of real and finite values.
    name : str
        Name of the matrix in messages.

    Returns
    -------
    scipy.sparse.csr_array
        The same values, float32, columns sorted in each row.

    Raises
    ------
    DataError
        If there is no row or feature, a value is not finite, or `x` is not two-dimensional.
    InputTypeError
        If `x` is a generator, text, or an array of objects.

    Examples
    --------
    >>> matrix_of([[1, 0], [0, 2]]).data
    array([1., 2.], dtype=float32)
    """
    x = host_array(x)
    _refuse_no_matrix(x, name)
    x = compressed(x) if scipy.sparse.issparse(x) else _dense(x, name)
    if x.ndim != 2:
        raise DataError(
            f"{name} has {x.ndim} dimension{'s' * (x.ndim != 1)}, shape {tuple(x.shape)}; expected [rows, features].\n"
            + (
                f"Type {name} = np.reshape({name}, ({x.shape[0]}, -1)) to take all values of a row as its features."
                if x.ndim > 2
                else f"Type {name} = np.reshape({name}, (-1, 1)) for one feature, "
                f"or {name} = np.reshape({name}, (1, -1)) for one row."
            )
        )
    if not x.shape[0] or not x.shape[1]:
        what = "rows" if not x.shape[0] else "features"
        raise DataError(f"{name} has no {what}: shape {tuple(x.shape)}; expected one or more.\nCheck how it was made.")
    _refuse_values(x, name)
    try:
        return canonical(x)
    except FormatError as error:
        _refuse_beyond_float32(x, name)
        raise DataError(f"{name} is damaged: {error}\nCheck how its indices and indptr were made.") from None


def _refuse_no_matrix(x: Any, name: str) -> None:
    """Raise InputTypeError, calling x `name`, if it is an open file, iterator, text, mapping, function or None."""
    if callable(getattr(x, "read", None)):
        path = getattr(x, "name", None)
        hint = f"Type wb.load({path!r})." if isinstance(path, str) else "Write it to a file, and give its path."
        raise InputTypeError(f"{name} is an open file, {type(x).__name__}; expected the path of a file.\n{hint}")
    if isinstance(x, Iterator) or inspect.isgenerator(x):
        raise InputTypeError(
            f"{name} is a {type(x).__name__}; expected a matrix [rows, features].\n"
            f"Type {name} = np.array(list({name}))."
        )
    if scipy.sparse.issparse(x):
        return
    if isinstance(x, str | bytes | Mapping) or x is None or callable(x):
        raise InputTypeError(
            f"{name} is a {type(x).__name__}; expected a matrix [rows, features].\n"
            "Give a NumPy or SciPy array, a pandas frame, or the path of a file."
        )


def _dense(x: Any, name: str) -> np.ndarray:
    """Return x as a NumPy array of numbers, not copied if it is one; errors call it `name`.

    DataError for ragged rows, InputTypeError for objects or text.
    """
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise DataError(f"{name} is not a matrix: {error}.\nGive rows of equal length.") from None
    if isinstance(x, np.ma.MaskedArray) and (count := int(np.ma.count_masked(x))):
        raise DataError(
            f"{name} is a masked array with {count:,} masked values; expected a value everywhere.\n"
            f"Type {name} = {name}.filled(0), or another value in place of 0."
        )
    if array.ndim == 1 and array.size and all(isinstance(text, str) for text in array):
        raise InputTypeError(
            f"{name} is text, such as {str(array[0])!r:.40}; expected numbers [rows, features].\n"
            "Type from sklearn.feature_extraction.text import TfidfVectorizer; "
            f"{name} = TfidfVectorizer().fit_transform({name})."
        )
    if array.dtype.kind in "OSUV":
        try:
            array.astype(np.float64)
            hint = f"Type {name} = np.asarray({name}).astype(np.float64)."
        except (TypeError, ValueError):
            hint = f"Type {name} = pandas.DataFrame({name}), whose text columns become categories."
        raise InputTypeError(f"{name} has dtype {array.dtype}; expected numbers.\n{hint}")
    return array


def _refuse_values(x: Any, name: str) -> None:
    """Raise InputTypeError for complex values, DataError for NaN or infinity; structure is not checked here."""
    values = x.data if scipy.sparse.issparse(x) else x
    if isinstance(values, np.ndarray) and values.dtype.kind == "c":
        raise InputTypeError(
            f"{name} has dtype {values.dtype}, complex; expected real numbers.\nType {name} = np.real({name})."
        )
    if isinstance(values, np.ndarray) and values.dtype.kind == "f" and not np.isfinite(values).all():
        count = int(np.count_nonzero(~np.isfinite(values)))
        many = "1 value that is" if count == 1 else f"{count:,} values that are"
        raise DataError(
            f"{name} has {many} NaN or infinite; expected finite numbers.\n"
            + (
                f"Type {name} = {name}.tocsr(); {name}.data = np.nan_to_num({name}.data, posinf=0, neginf=0)."
                if hasattr(x, "format")
                else f"Type {name} = np.nan_to_num({name}, posinf=0, neginf=0)."
            )
        )


def _refuse_beyond_float32(x: Any, name: str) -> None:
    """Raise DataError if a value of x, all of which are finite, is too large for float32; x is called `name`."""
    values = x.data if scipy.sparse.issparse(x) else x
    largest = np.abs(values).max(initial=0) if isinstance(values, np.ndarray) else 0
    if largest > np.finfo(np.float32).max:
        raise DataError(
            f"{name} has a value of the size {largest:.3g}; float32, which training uses, holds up to 3.4e38.\n"
            f"Type {name} = sklearn.preprocessing.MaxAbsScaler().fit_transform({name}) to scale it."
        )


def labels_of(y: Any, rows: int) -> np.ndarray:
    """Return labels as an array [rows] or [rows, outputs] of numbers or text.

    Raises InputTypeError for unusable types, DataError for another number than `rows`, missing or infinite labels, or a
    single class.

    >>> labels_of(["spam", "ham"], rows=2).tolist()
    ['spam', 'ham']
    """
    y = host_array(y)
    if isinstance(y, Iterator) or inspect.isgenerator(y):
        raise InputTypeError(f"y is a {type(y).__name__}; expected one label a row.\nType y = np.array(list(y)).")
    if scipy.sparse.issparse(y):
        y = y.toarray()
    labels = _as_array_of_labels(y)
    if labels.ndim == 0:
        label = y if isinstance(y, str) else "NAME"
        raise InputTypeError(
            f"y is {y!r:.60}; expected one label a row.\n"
            f'Type label="{label}" to name a column of a frame or a file, or give y as an array.'
        )
    if labels.dtype.kind == "U" and isinstance(y, list | tuple):
        labels = np.array(y, dtype=object)  # NumPy makes text of numbers next to text
    if labels.dtype.kind == "O":
        labels = _convert_object_labels(labels)
    if labels.dtype.kind not in "biufU":
        raise InputTypeError(
            f"y has dtype {labels.dtype}; expected numbers or text.\n"
            "Type y = np.array(y, dtype=str) to take each value as a class."
        )
    if len(labels) != rows:
        raise DataError(
            f"X has {format_count(rows, 'row')} and y has {format_count(len(labels), 'label')}; "
            "expected as many labels as rows.\n"
            "Check that both come from the same selection, such as X[mask] with y[mask]."
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        count = format_count(int(np.count_nonzero(~np.isfinite(labels))), "label")
        raise DataError(
            f"y has {count} NaN or infinite.\n"
            "Type keep = np.isfinite(y); X, y = X[keep], np.asarray(y)[keep] to leave these rows out."
        )
    if labels.ndim == 1 and len(labels) and (labels == labels[0]).all():
        raise DataError(
            f"y has one class, {labels[0].item()!r}: there is nothing to learn; expected 2 or more different labels.\n"
            "Check which column the labels come from."
        )
    return labels


def _as_array_of_labels(y: Any) -> np.ndarray:
    """Return labels as an array. DataError for rows of labels of different lengths, and for masked labels."""
    if isinstance(y, np.ma.MaskedArray) and (count := int(np.ma.count_masked(y))):
        raise DataError(
            f"y is a masked array with {format_count(count, 'masked label')}; expected a label for each row.\n"
            "Type keep = ~np.ma.getmaskarray(y); X, y = X[keep], y[keep] to leave these rows out."
        )
    try:
        return np.asarray(y)
    except ValueError:
        raise DataError(
            "y has rows of different lengths; expected one label a row, or a column of 0 and 1 for each class.\n"
            "Type y = sklearn.preprocessing.MultiLabelBinarizer().fit_transform(y)."
        ) from None


def _convert_object_labels(labels: np.ndarray) -> np.ndarray:
    """Return object labels as bool, float64 or str; DataError if some are missing, InputTypeError if types mix."""
    is_missing = np.array([label is None or label != label for label in labels.ravel()])
    if is_missing.any():
        raise DataError(
            f"y has {format_count(int(is_missing.sum()), 'missing label')}.\n"
            "Type keep = pandas.notna(y); X, y = X[keep], np.asarray(y)[keep] to leave these rows out."
        )
    kinds = {type(label) for label in labels.ravel()}
    if kinds <= {bool, np.bool_}:
        return labels.astype(bool)
    if all(issubclass(kind, int | float | np.number) for kind in kinds):
        return labels.astype(np.float64)
    if kinds <= {str, np.str_}:
        return labels.astype(str)
    named = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise InputTypeError(
        f"y has labels of the types {named}; expected numbers or text.\nType y = np.array(y, dtype=str)."
    )
