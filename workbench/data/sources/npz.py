"""Matrices saved by `scipy.sparse.save_npz`, with labels saved by `numpy.save`, or both by `numpy.savez`.

Files that hold pickles are refused.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workbench.data.contract import Source, register
from workbench.data.dataset.record import Dataset, refuse_rounded
from workbench.data.errors import ADVICE_LABELS_FILE, DataError, MissingLabelsError, reader_option_advice
from workbench.data.files.labels import read_label_array, read_label_file
from workbench.data.files.reading import (
    SAVED,
    ZIP,
    dataset_of,
    read_npz_arrays,
    read_saved,
    read_scipy_archive,
    reading,
)
from workbench.data.files.types import looks_like, other_file_error, starts_with
from workbench.data.labels import GUESSED, NONE, Place, Wanted, format_names
from workbench.formats.files import check_array
from workbench.formats.parts import Parts

ARRAY = "NumPy labels"
SAVE_BY = "scipy.sparse.save_npz, or X=matrix and y=labels by numpy.savez"
ARRAY_START = b"\x93NUMPY"


MATRIX_NAMES = ("x", "data", "features", "fea", "matrix", "train", "x_train", "xtrain", "train_x")
"""What the matrix of an archive of dense arrays is called, in any case."""
LABEL_NAMES = ("y", "labels", "label", "target", "targets", "classes", "gnd", "y_train", "ytrain", "train_y")
"""What its labels are called."""


def make(
    path: str | os.PathLike,
    labels: str | os.PathLike | None = None,
    variable: str | None = None,
    labels_variable: str | None = None,
    wanted: Wanted = GUESSED,
) -> Dataset:
    """Return the csr, csc or coo matrix in `path` with the labels in the file `labels` (.npy, or text with one a line).

    Of an archive that `numpy.savez` wrote, the dense matrix `variable` with the labels `labels_variable`; None takes
    those called X and y or alike, else the only ones of these shapes. A matrix by `numpy.save` is read, too.

    `kind` of labels is `classes`, `numbers` or `multilabel` (a column of 0 and 1 for each class); None guesses: text,
    true or false, and up to 1,000 different whole numbers are classes. `positive` names the class that means yes.
    `classes` are all there may be, in order; a label that is none of them counts to the class `unseen`, or is refused.
    Refused (`DataError`): missing or invalid files, other formats, Python objects.
    """
    given = None if labels is None else _labels_of(labels)
    with reading(path, SAVED):
        if not starts_with(path, ARRAY_START):
            _refuse_other(path, SAVED, ZIP, ".npz archive")
        arrays = _dense_arrays(path)
        name = "" if arrays is None else _matrix_name(path, arrays, variable)
        own = None
        if arrays is not None and not labels and wanted.kind != NONE:
            own = _labels_name(path, arrays, name, labels_variable)
        if given is None and own is None and wanted.kind != NONE:
            what = "npz needs labels, a file with a label for each row, which this data has not in itself"
            raise MissingLabelsError(f"{what}: {path}.\n{ADVICE_LABELS_FILE}")
        x = read_saved(path) if arrays is None else _finite(arrays[name], f"{path}: {name}")
        if arrays is not None and own is not None:
            given = arrays[own].reshape(-1), lambda row: f"{path}, {own}, row {row}"
        y, place = given or (np.zeros(x.shape[0]), str)
        return dataset_of("npz", x, y, wanted, path, place)


def _dense_arrays(path: str | os.PathLike) -> dict[str, np.ndarray] | None:
    """Return {name: array} of the numeric and text arrays in a .npy or .npz file; None for a matrix that SciPy saved.

    Raises ValueError for a damaged file.
    """
    if starts_with(path, ARRAY_START):
        with open(path, "rb") as file:
            check_array(file)
            return {"X": np.lib.format.read_array(file, allow_pickle=False)}
    with read_npz_arrays(path) as archive:
        if "format" in archive.files:
            return None
        found = {name: archive[name] for name in archive.files}
    return {name: array for name, array in found.items() if array.dtype.kind in "biufUS" and array.ndim}


def _matrix_name(path: str | os.PathLike, arrays: Mapping[str, np.ndarray], wanted: str | None) -> str:
    """Return the name of the 2-d numeric array to use as matrix: `wanted`, a usual name, or the only one.

    Raises DataError if that is not unique.
    """
    able = [name for name, array in arrays.items() if array.ndim == 2 and array.dtype.kind in "biuf"]
    wide = [name for name in able if arrays[name].shape[1] > 1 and name.casefold() not in LABEL_NAMES] or able
    return _one_of(path, "variable", wide, MATRIX_NAMES, wanted, arrays)


def _labels_name(
    path: str | os.PathLike, arrays: Mapping[str, np.ndarray], matrix: str, wanted: str | None
) -> str | None:
    """Return the name of the array to use as labels, with one entry per row of `matrix`; None if there is none.

    Raises DataError if `wanted` does not fit, or the choice is not unique.
    """
    rows = len(arrays[matrix])
    able = [name for name, array in arrays.items() if name != matrix and array.size == len(array) == rows]
    return _one_of(path, "labels_variable", able, LABEL_NAMES, wanted, arrays) if able or wanted else None


def _one_of(
    path: str | os.PathLike,
    parameter: str,
    able: Sequence[str],
    usual: Sequence[str],
    wanted: str | None,
    arrays: Mapping[str, np.ndarray],
) -> str:
    """Return the array name for `parameter`: `wanted`, else the first of `usual` in `able`, else the only able.

    Raises DataError, listing the arrays, if `wanted` is not able or there is no choice.
    """
    if wanted in able and wanted is not None:
        return wanted
    named = sorted((name for name in able if name.casefold() in usual), key=lambda name: usual.index(name.casefold()))
    if wanted is None and (named or len(able) == 1):
        return (named or list(able))[0]
    if not able and wanted is None:
        names = format_names(arrays) if arrays else "none of numbers"
        raise DataError(f"{path} cannot be read as {SAVED}: it holds the arrays {names}. Save one by {SAVE_BY}.")
    held = ", ".join(f"{name} {array.dtype} {list(array.shape)}" for name, array in arrays.items()) or "no numbers"
    what = f"{parameter} is {wanted!r}" if wanted else f"it is not clear which array is meant by {parameter}"
    raise DataError(f"{path} holds {held}: {what}.\n{reader_option_advice(**{parameter: 'NAME'})}")


def _finite(array: np.ndarray, what: str) -> np.ndarray:
    """Return the array unchanged; DataError, calling it `what`, with the first row that has NaN or infinity."""
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
        raise DataError(f"{what} has a value that is missing or infinite in row {row}; fill such values first.")
    return array


def read_stored_arrays(
    path: str | os.PathLike, labels: str | os.PathLike | None = None
) -> tuple[Parts, np.ndarray | None]:
    """Return (arrays of the matrix in `path` as stored and unvalidated, labels or None); DataError for other files."""
    y = None if labels is None else _labels(labels)
    with reading(path, SAVED):
        _refuse_other(path, SAVED, ZIP, ".npz archive")
        with read_scipy_archive(path) as archive:
            return _parts(archive), y


def _parts(archive: Any) -> Parts:
    """Return format, shape and arrays of a matrix in an opened archive of `scipy.sparse.save_npz`, unvalidated."""
    arrays = {name: archive[name] for name in archive.files if name not in ("format", "shape", "_is_array")}
    shape = tuple(int(length) for length in archive["shape"])
    if "fill_value" in arrays:  # of the package sparse, whose coordinates are one array
        arrays = {"data": arrays["data"], **dict(zip(("row", "col"), arrays["coords"], strict=True))}
    refuse_rounded(arrays.get("data"))
    format = archive["format"].item()
    return Parts(format.decode("ascii") if isinstance(format, bytes) else str(format), shape, arrays)


def _labels_of(labels: str | os.PathLike) -> tuple[np.ndarray, Place]:
    """Return (labels of a .npy or text file, function from row index to its place in the file).

    DataError if invalid.
    """
    if Path(labels).is_file() and looks_like(labels) in ("other text", "one column of numbers, as text"):
        return read_label_file(labels)
    return _labels(labels), lambda row: f"{labels}, row {row}"


def _labels(labels: str | os.PathLike) -> np.ndarray:
    """Return the labels in a .npy file, [rows] or [rows, outputs]; DataError if it is not such a file."""
    with reading(labels, ARRAY):
        _refuse_other(labels, ARRAY, ARRAY_START, ".npy file")
        return read_label_array(labels)


def _refuse_other(path: str | os.PathLike, what: str, signature: bytes, kind: str) -> None:
    """Raise DataError, with what the file looks like, unless it begins with the bytes `signature`.

    `what` and `kind` name what is expected in the message.
    """
    if not starts_with(path, signature):
        raise other_file_error(path, what, f"it is no {kind} but")


register(Source("npz", make, "files of yours", stored=read_stored_arrays))
