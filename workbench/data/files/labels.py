"""Labels in a file of their own: an array by `numpy.save`, a Matrix Market matrix, or text with a label a line."""

import dataclasses
import itertools
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import numpy as np

from workbench.data.dataset.record import Dataset
from workbench.data.errors import ADVICE_LABELS_FILE, DataError, MissingLabelsError
from workbench.data.files.opened import open_text
from workbench.data.files.reading import reading
from workbench.data.files.types import starts_with
from workbench.data.labels import MOST_COLUMNS, NONE, Place, Wanted, number_named, read_labels
from workbench.formats.files import check_array

# Numbers for ids that a file gives things: users, items, nodes.

_WHOLE = re.compile(r"[+-]?[0-9]+")


class Numbers(dict):
    """Numbers for keys, in order of appearance: `numbers[key]` is a new one for a key not seen before."""

    def __init__(self) -> None:
        """Start empty; the first new key gets 0."""
        super().__init__()
        self._next = count()

    def __missing__(self, key: bytes) -> int:
        """Assign the next integer to a key not seen before, and return it."""
        number = self[key] = next(self._next)
        return number


def is_whole(name: str) -> bool:
    """Return whether a text is an optionally signed integer of ASCII digits."""
    return _WHOLE.fullmatch(name) is not None


def sort_ids(names: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """Return (ids sorted, position of each given id among them, int64): by value if all are integers, else as text.

    Ids are text: "7" and "07" are different, and integers may be of any size.

    >>> sort_ids(["10", "9", "07"])
    (['07', '9', '10'], array([2, 1, 0]))
    """
    numbers = [int(name) for name in names] if all(map(is_whole, names)) else [0] * len(names)
    order = sorted(range(len(names)), key=lambda place: (numbers[place], names[place]))
    place_of = np.empty(len(names), np.int64)
    place_of[order] = np.arange(len(names))
    return [names[place] for place in order], place_of


def places_of(names: Sequence[str], known: Sequence[str]) -> np.ndarray:
    """Return the index of each name in `known`, int64 [names]; -1 for unknown ones."""
    place_of = {name: place for place, name in enumerate(known)}
    return np.array([place_of.get(name, -1) for name in names], np.int64)


LONGEST = 200
"""Characters of a label, at most."""


def read_label_file(path: str | os.PathLike) -> tuple[np.ndarray, Place]:
    """Return (labels [rows], or [rows, N] of an array, function from row index to its place in the file).

    The file is .npy, Matrix Market (a vector may be a row or a column), or text with one label per line. Raises
    DataError for malformed files, Python objects, and labels of more than `LONGEST` characters.
    """
    from workbench.data.files.matrix_market import is_market  # late: most files have their labels in their rows

    with reading(path, "labels (.npy, .mtx, or text with a label a line)"):
        if starts_with(path, b"\x93NUMPY"):
            return read_label_array(path), lambda row: f"{path}, row {row}"
        if is_market(path):
            return _read_market_labels(path), lambda row: f"{path}, row {row}"
        with open_text(path) as file:
            labels = [label_of(text, path, line) for line, text in enumerate(file, 1)]
    return of_text(labels), lambda row: f"{path}:{row + 1}"


def read_label_array(path: str | os.PathLike) -> np.ndarray:
    """Return the labels of a .npy file, numbers or text, [rows] or [rows, N]; DataError for other shapes or dtypes.

    Malformed files raise ValueError; pickled objects are refused.
    """
    with open(path, "rb") as file:
        check_array(file)
        labels = np.lib.format.read_array(file, allow_pickle=False)
    if labels.ndim not in (1, 2) or labels.dtype.kind not in "biufUS":
        raise DataError(f"{path} holds {labels.dtype} {labels.shape}; labels are numbers or strings, one for each row.")
    return labels


def _read_market_labels(path: str | os.PathLike) -> np.ndarray:
    """Return the labels in a Matrix Market file, dense, [columns] if it has a single row, else [rows, columns].

    Raises DataError above 2**32 values.
    """
    from workbench.data.files.matrix_market import read_header, read_market

    header = read_header(path)
    if header.rows * header.columns > MOST_COLUMNS:
        raise DataError(f"{path} is {header.rows} x {header.columns}; labels are dense, at most 2**32 of them.")
    labels = read_market(path)
    labels = labels if isinstance(labels, np.ndarray) else labels.toarray()
    return labels[0] if labels.shape[0] == 1 else labels


def label_of(text: bytes, path: str | os.PathLike, line: int) -> str:
    """Return the stripped label in `text`; DataError, with `path` and `line`, if it is empty or too long."""
    label = text.strip().decode()
    if not label:
        raise DataError(f"{path}:{line}: there is no label; each row needs one.")
    if len(label) > LONGEST:
        raise DataError(f"{path}:{line}: the label has {len(label):,} characters; up to {LONGEST} are one.")
    return label


def of_text(labels: list[str]) -> np.ndarray:
    """Return labels as int64 if all are integers, float64 if all are numbers, else as str, [labels].

    Integers beyond int64 stay text.

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


# Text of rows without labels: noticed by its first rows, and read from a copy in which each row has the label 0.

ROWS_SEEN = 20
_SVMLIGHT = re.compile(rb"\s*[0-9]+:\S")
_BAR = re.compile(rb"\s*(\||'?\S+\|)")


def lacks_svmlight_label(line: bytes) -> bool:
    """Return whether a line of svmlight text begins with an entry "column:value" instead of a label."""
    return _SVMLIGHT.match(line) is not None


def lacks_vw_label(line: bytes) -> bool:
    """Return whether a Vowpal Wabbit line has nothing, or only a tag, before its first bar."""
    return _BAR.match(line) is not None


def require_labels(path: str | os.PathLike, lacks_label: Callable[[bytes], bool]) -> None:
    """Raise MissingLabelsError if none of the file's first rows has a label; `lacks_label(line)` decides for a line."""
    if are_unlabelled(path, lacks_label):
        raise MissingLabelsError(f"{path} has no labels: its rows begin with features.\n{ADVICE_LABELS_FILE}")


def are_unlabelled(path: str | os.PathLike, lacks_label: Callable[[bytes], bool]) -> bool:
    """Return whether the file has rows, and `lacks_label(line)` is true for all of the first ones."""
    with open_text(path) as file:
        rows = list(itertools.islice((line for line in file if line.strip() and line[:1] != b"#"), ROWS_SEEN))
    return bool(rows) and all(map(lacks_label, rows))


@contextmanager
def rewrite_lines(path: str | os.PathLike, rewrite: Callable[[bytes], bytes]) -> Iterator[Path]:
    """Write a temporary copy of a text file, decompressed, in which each line is `rewrite(line)`; yield its path.

    It is deleted at the end of the `with` block. A ValueError raised there names the file itself in place of the copy.
    """
    with tempfile.TemporaryDirectory(prefix="workbench-") as folder:
        copy = Path(folder) / Path(path).name
        with open_text(path) as file, copy.open("wb") as out:
            out.writelines(map(rewrite, file))
        try:
            yield copy
        except ValueError as error:
            raise type(error)(str(error).replace(str(copy), str(path))) from None


def read_unlabelled(
    path: str | os.PathLike, lacks_label: Callable[[bytes], bool], read: Callable[[Path], Dataset]
) -> Dataset:
    """Return `read(copy)` without labels, of a copy of the file in which rows without a label have the label 0."""

    def label(line: bytes) -> bytes:
        """Return a line with the label 0 before it if it is a row that lacks one."""
        is_row = line.strip() and line[:1] != b"#"
        return b"0 " + line if is_row and lacks_label(line) else line

    with rewrite_lines(path, label) as copy:
        made = read(copy)
    labels, y = read_labels(made.y, Wanted(NONE), str)
    return dataclasses.replace(made, labels=labels, y=y)
