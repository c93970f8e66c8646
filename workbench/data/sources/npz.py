"""Matrices saved by `scipy.sparse.save_npz`, with labels saved by `numpy.save`. Files that hold pickles are refused."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.data.contract import Source, register
from workbench.data.dataset.record import Dataset
from workbench.data.errors import DataError
from workbench.data.files.labels import read_label_array
from workbench.data.files.matrices import SAVED, ZIP, read_saved, saved
from workbench.data.files.reading import dataset_of, reading
from workbench.data.files.types import looks_like, starts_with
from workbench.data.labels.meaning import Wanted
from workbench.formats.parts import Parts

LICENCE = "that of the file"
ARRAY = "NumPy labels"


def make(
    path: str | os.PathLike,
    labels: str | os.PathLike,
    kind: str | None = None,
    positive: Any = None,
    classes: Sequence[Any] | None = None,
    unseen: Any = None,
) -> Dataset:
    """The csr, csc or coo matrix in `path` with the labels in `labels` (.npy, one a row).

    `kind` of labels is `classes`, `numbers` or `multilabel` (a column of 0 and 1 for each class); None guesses: text,
    true or false, and up to 1,000 different whole numbers are classes. `positive` names the class that means yes.
    `classes` are all there may be, in order; a label that is none of them counts to the class `unseen`, or is refused.
    Refused (`DataError`): missing or malformed files, other formats, Python objects.
    """
    wanted = Wanted(kind, positive, classes, unseen)
    y = _labels(labels)
    with reading(path, SAVED):
        _refuse_other(path, SAVED, ZIP, ".npz archive")
        return dataset_of("npz", read_saved(path), y, wanted, path, LICENCE, lambda row: f"{labels}, row {row}")


def stored(path: str | os.PathLike, labels: str | os.PathLike | None = None) -> tuple[Parts, np.ndarray | None]:
    """The arrays of the matrix in `path` as stored, unchecked, and the labels (`DataError`)."""
    y = None if labels is None else _labels(labels)
    with reading(path, SAVED):
        _refuse_other(path, SAVED, ZIP, ".npz archive")
        with saved(path) as archive:
            return _parts(archive), y


def _parts(archive: Any) -> Parts:
    arrays = {name: archive[name] for name in archive.files if name not in ("format", "shape", "_is_array")}
    shape = tuple(int(length) for length in archive["shape"])
    format = archive["format"].item()
    return Parts(format.decode("ascii") if isinstance(format, bytes) else str(format), shape, arrays)


def _labels(labels: str | os.PathLike) -> np.ndarray:
    """The array in a file of labels (`DataError`)."""
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
        lambda path, labels, **rest: (path, labels),
        stored=stored,
    )
)
