"""Labels in a file of their own: an array saved by `numpy.save`, or text with a label a line."""

import os

import numpy as np

from workbench.data.errors import DataError
from workbench.data.file_types import starts_with
from workbench.data.files import reading
from workbench.data.label_reading import Place
from workbench.data.labels import number_named
from workbench.data.opened import opened
from workbench.formats.members import check_array

LONGEST = 200
"""Characters of a label, at most."""


def read_label_file(path: str | os.PathLike) -> tuple[np.ndarray, Place]:
    """Labels [rows], or [rows, N] of an array, as they stand in the file, and where each stands.

    Malformed files, Python objects and labels of more than `LONGEST` characters are refused (`DataError`).
    """
    with reading(path, "labels (.npy, or text with a label a line)"):
        if starts_with(path, b"\x93NUMPY"):
            return read_label_array(path), lambda row: f"{path}, row {row}"
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


def label_of(text: bytes, path: str | os.PathLike, line: int) -> str:
    """A label as it stands on a line, without the blanks around it; `DataError` for none, and for one that is none."""
    label = text.strip().decode()
    if not label:
        raise DataError(f"{path}:{line}: there is no label; each row needs one.")
    if len(label) > LONGEST:
        raise DataError(f"{path}:{line}: the label has {len(label):,} characters; up to {LONGEST} are one.")
    return label


def of_text(labels: list[str]) -> np.ndarray:
    """Labels as numbers where all of them are written as numbers, else as text."""
    are_numbers = all(number_named(label) is not None and label not in ("True", "False") for label in set(labels))
    return np.array(labels, np.float64 if are_numbers else np.str_)
