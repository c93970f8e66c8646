"""Matrices saved by `scipy.sparse.save_npz`, with labels saved by `numpy.save`. Files that hold pickles are refused."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workbench.data.contract import Source, register
from workbench.data.dataset.record import Dataset
from workbench.data.errors import ADVICE_LABELS_FILE, DataError, MissingLabelsError
from workbench.data.files.labels import read_label_array, read_label_file
from workbench.data.files.reading import SAVED, ZIP, dataset_of, read_saved, read_scipy_archive, reading
from workbench.data.files.types import looks_like, starts_with
from workbench.data.labels.meaning import NONE, Place, Wanted
from workbench.formats.parts import Parts

LICENCE = "that of the file"
ARRAY = "NumPy labels"


def make(
    path: str | os.PathLike,
    labels: str | os.PathLike | None = None,
    kind: str | None = None,
    positive: Any = None,
    classes: Sequence[Any] | None = None,
    unseen: Any = None,
) -> Dataset:
    """Return the csr, csc or coo matrix in `path` with the labels in the file `labels` (.npy, or text with one a line).

    `kind` of labels is `classes`, `numbers` or `multilabel` (a column of 0 and 1 for each class); None guesses: text,
    true or false, and up to 1,000 different whole numbers are classes. `positive` names the class that means yes.
    `classes` are all there may be, in order; a label that is none of them counts to the class `unseen`, or is refused.
    Refused (`DataError`): missing or invalid files, other formats, Python objects.
    """
    wanted = Wanted(kind, positive, classes, unseen)
    if labels is None and kind != NONE:
        what = "npz needs the parameter 'labels', a file with a label for each row, which this data has not in itself"
        raise MissingLabelsError(f"{what}: {path}.\n{ADVICE_LABELS_FILE}")
    y, place = (None, str) if labels is None else _labels_of(labels)
    with reading(path, SAVED):
        _refuse_other(path, SAVED, ZIP, ".npz archive")
        x = read_saved(path)
        y = np.zeros(x.shape[0]) if y is None else y
        return dataset_of("npz", x, y, wanted, path, LICENCE, place)


def read_stored_arrays(
    path: str | os.PathLike, labels: str | os.PathLike | None = None
) -> tuple[Parts, np.ndarray | None]:
    """Return the arrays of the matrix in `path` as stored, unchecked, and the labels (`DataError`)."""
    y = None if labels is None else _labels(labels)
    with reading(path, SAVED):
        _refuse_other(path, SAVED, ZIP, ".npz archive")
        with read_scipy_archive(path) as archive:
            return _parts(archive), y


def _parts(archive: Any) -> Parts:
    """Return format, shape and arrays of a matrix saved by `scipy.sparse.save_npz`."""
    arrays = {name: archive[name] for name in archive.files if name not in ("format", "shape", "_is_array")}
    shape = tuple(int(length) for length in archive["shape"])
    format = archive["format"].item()
    return Parts(format.decode("ascii") if isinstance(format, bytes) else str(format), shape, arrays)


def _labels_of(labels: str | os.PathLike) -> tuple[np.ndarray, Place]:
    """Return the labels in an array file or, one a line, in a file of text, and where each stands (`DataError`)."""
    if Path(labels).is_file() and looks_like(labels)[0] == "other text":
        return read_label_file(labels)
    return _labels(labels), lambda row: f"{labels}, row {row}"


def _labels(labels: str | os.PathLike) -> np.ndarray:
    """Return the array in a file of labels (`DataError`)."""
    with reading(labels, ARRAY):
        _refuse_other(labels, ARRAY, b"\x93NUMPY", ".npy file")
        return read_label_array(labels)


def _refuse_other(path: str | os.PathLike, what: str, signature: bytes, kind: str) -> None:
    """Refuse a file that does not start as its kind does, and say what it looks like (`DataError`)."""
    if not starts_with(path, signature):
        looks, advice = looks_like(path)
        raise DataError(f"{path} cannot be read as {what}: it is no {kind} but looks like {looks}. {advice}.")


register(
    Source(
        "npz",
        make,
        "files of yours",
        LICENCE,
        lambda path, labels=None, **rest: (path, labels),
        stored=read_stored_arrays,
    )
)
