"""Labels in a file of their own: an array by `numpy.save`, a Matrix Market matrix, or text with a label a line."""

import os
import re
from collections.abc import Sequence
from itertools import count

import numpy as np

from workbench.data.errors import DataError
from workbench.data.files.matrix_market import is_market, read_header, read_market
from workbench.data.files.opened import open_text
from workbench.data.files.reading import reading
from workbench.data.files.types import starts_with
from workbench.data.labels import MOST_COLUMNS, Place, number_named
from workbench.formats.files import check_array

# Numbers for ids that a file gives things: users, items, nodes.


_WHOLE = re.compile(r"[+-]?[0-9]+")


class Numbers(dict):
    """Numbers for keys, in order of appearance: `numbers[key]` is a new one for a key not seen before."""

    def __init__(self) -> None:
        super().__init__()
        self._next = count()

    def __missing__(self, key: bytes) -> int:
        number = self[key] = next(self._next)
        return number


def is_whole(name: str) -> bool:
    """Return whether an id is a whole number, of ASCII digits."""
    return _WHOLE.fullmatch(name) is not None


def sorted_ids(names: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """Return the ids in order, and the place of each in it, int64: by value where all are whole numbers, else by the
    alphabet.

    Ids are text: 7 and 07 are two of them, and there is no largest number.

    >>> sorted_ids(["10", "9", "07"])
    (['07', '9', '10'], array([2, 1, 0]))
    """
    numbers = [int(name) for name in names] if all(map(is_whole, names)) else [0] * len(names)
    order = sorted(range(len(names)), key=lambda place: (numbers[place], names[place]))
    place_of = np.empty(len(names), np.int64)
    place_of[order] = np.arange(len(names))
    return [names[place] for place in order], place_of


def places_of(names: Sequence[str], known: Sequence[str]) -> np.ndarray:
    """Return the position of each id in `known`, int64; -1 for unknown ids."""
    place_of = {name: place for place, name in enumerate(known)}
    return np.array([place_of.get(name, -1) for name in names], np.int64)


LONGEST = 200
"""Characters of a label, at most."""


def read_label_file(path: str | os.PathLike) -> tuple[np.ndarray, Place]:
    """Return labels [rows], or [rows, N] of an array, as they stand in the file, and where each stands.

    A Matrix Market vector may be a row or a column. Malformed files, Python objects and labels of more than `LONGEST`
    characters are refused (`DataError`).
    """
    with reading(path, "labels (.npy, .mtx, or text with a label a line)"):
        if starts_with(path, b"\x93NUMPY"):
            return read_label_array(path), lambda row: f"{path}, row {row}"
        if is_market(path):
            return _of_market(path), lambda row: f"{path}, row {row}"
        with open_text(path) as file:
            labels = [label_of(text, path, line) for line, text in enumerate(file, 1)]
    return of_text(labels), lambda row: f"{path}:{row + 1}"


def read_label_array(path: str | os.PathLike) -> np.ndarray:
    """Return the labels of a `.npy` file, numbers or text (`DataError`)."""
    with open(path, "rb") as file:
        check_array(file)
        labels = np.lib.format.read_array(file, allow_pickle=False)
    if labels.ndim not in (1, 2) or labels.dtype.kind not in "biufUS":
        raise DataError(f"{path} holds {labels.dtype} {labels.shape}; labels are numbers or strings, one for each row.")
    return labels


def _of_market(path: str | os.PathLike) -> np.ndarray:
    """Return the labels in a Matrix Market file, dense [rows] or [rows, columns]; raise DataError above 2**32
    values.
    """
    header = read_header(path)
    if header.rows * header.columns > MOST_COLUMNS:
        raise DataError(f"{path} is {header.rows} x {header.columns}; labels are dense, at most 2**32 of them.")
    labels = read_market(path)
    labels = labels if isinstance(labels, np.ndarray) else labels.toarray()
    return labels[0] if labels.shape[0] == 1 else labels


def label_of(text: bytes, path: str | os.PathLike, line: int) -> str:
    """Return the label of a line without surrounding blanks; raises DataError if it is empty or invalid."""
    label = text.strip().decode()
    if not label:
        raise DataError(f"{path}:{line}: there is no label; each row needs one.")
    if len(label) > LONGEST:
        raise DataError(f"{path}:{line}: the label has {len(label):,} characters; up to {LONGEST} are one.")
    return label


def of_text(labels: list[str]) -> np.ndarray:
    """Return labels as numbers where all of them are written as numbers, int64 where these are whole, else as text.

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
