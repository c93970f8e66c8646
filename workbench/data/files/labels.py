"""Labels in a file of their own: an array by `numpy.save`, a Matrix Market matrix, or text with a label a line."""

import os

import numpy as np

from workbench.data.errors import DataError
from workbench.data.files.ids import is_whole
from workbench.data.files.matrix_market import is_market, read_header, read_market
from workbench.data.files.opened import opened
from workbench.data.files.reading import reading
from workbench.data.files.types import starts_with
from workbench.data.labels.meaning import number_named
from workbench.data.labels.reading import MOST_COLUMNS, Place
from workbench.formats.members import check_array

LONGEST = 200
"""Characters of a label, at most."""


def read_label_file(path: str | os.PathLike) -> tuple[np.ndarray, Place]:
    """Labels [rows], or [rows, N] of an array, as they stand in the file, and where each stands.

    A Matrix Market vector may be a row or a column. Malformed files, Python objects and labels of more than `LONGEST`
    characters are refused (`DataError`).
    """
    with reading(path, "labels (.npy, .mtx, or text with a label a line)"):
        if starts_with(path, b"\x93NUMPY"):
            return read_label_array(path), lambda row: f"{path}, row {row}"
        if is_market(path):
            return _of_market(path), lambda row: f"{path}, row {row}"
        with opened(path) as file:
            labels = [label_of(text, path, line) for line, text in enumerate(file, 1)]
    return of_text(labels), lambda row: f"{path}:{row + 1}"


def read_label_array(path: str | os.PathLike) -> np.ndarray:
    """Labels of a `.npy` file, numbers or text (`DataError`)."""
    with open(path, "rb") as file:
        check_array(file)
        labels = np.lib.format.read_array(file, allow_pickle=False)
    if labels.ndim not in (1, 2) or labels.dtype.kind not in "biufUS":
        raise DataError(f"{path} holds {labels.dtype} {labels.shape}; labels are numbers or strings, one for each row.")
    return labels


def _of_market(path: str | os.PathLike) -> np.ndarray:
    header = read_header(path)
    if header.rows * header.columns > MOST_COLUMNS:
        raise DataError(f"{path} is {header.rows} x {header.columns}; labels are dense, at most 2**32 of them.")
    labels = read_market(path)
    labels = labels if isinstance(labels, np.ndarray) else labels.toarray()
    return labels[0] if labels.shape[0] == 1 else labels


def label_of(text: bytes, path: str | os.PathLike, line: int) -> str:
    """A label as it stands on a line, without the blanks around it; `DataError` for none, and for one that is none."""
    label = text.strip().decode()
    if not label:
        raise DataError(f"{path}:{line}: there is no label; each row needs one.")
    if len(label) > LONGEST:
        raise DataError(f"{path}:{line}: the label has {len(label):,} characters; up to {LONGEST} are one.")
    return label


def of_text(labels: list[str]) -> np.ndarray:
    """Labels as numbers where all of them are written as numbers, int64 where these are whole, else as text.

    >>> of_text(["2", "-1"]), of_text(["2", "0.5"]), of_text(["2", "b"])
    (array([ 2, -1]), array([2. , 0.5]), array(['2', 'b'], dtype='<U1'))
    """
    distinct = set(labels)
    if not all(number_named(label) is not None and label not in ("True", "False") for label in distinct):
        return np.array(labels, np.str_)
    if not all(map(is_whole, distinct)):
        return np.array(labels, np.float64)
    is_held = all(len(label) < 20 and abs(int(label)) < 2**63 for label in distinct)
    return np.array(labels, np.int64 if is_held else np.str_)
