"""Labels as they stand in a file into what a data set holds, by what the caller says of them, else by a guess."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from workbench.data.errors import DataError
from workbench.data.labels.meaning import NO_LABELS, NONE, Labels, Wanted, format_names, name_of, number_named

MOST_CLASSES = 1000
"""Whole-number labels with more distinct values than this are guessed to be numbers."""
MOST_COLUMNS = 2**32
"""Largest rows * classes of labels with several classes a row, which are held as a byte each."""

Place = Callable[[int], str]
"""Says for the number of a row where its label stands: file and line."""


def read_labels(labels: np.ndarray | list[tuple], wanted: Wanted, place: Place) -> tuple[Labels, np.ndarray]:
    """Return the meaning of what stands in a file, and `y` as a data set holds it; `DataError` says where a label is
    wrong.

    A list holds a tuple of labels for each row.
    """
    if wanted.kind == NONE:
        return Labels("numbers", guess=NO_LABELS, span=(0.0, 0.0)), np.zeros(len(labels))
    if isinstance(labels, list):
        return _of_tuples(labels, wanted, place)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.dtype.kind == "S":
        labels = np.char.decode(labels, "utf-8", "backslashreplace")
    _refuse_unwritable(labels, place)
    _refuse_infinite(labels, place)
    kind, guess = (wanted.kind, "") if wanted.kind else guess_label_kind(labels, wanted)
    if kind == "numbers":
        y = _numbers(labels, place)
        return Labels(kind, guess=guess, span=(float(y.min()), float(y.max()))), y
    if kind == "multilabel":
        return _of_columns(labels, wanted, guess)
    if labels.ndim != 1:
        raise DataError(f"kind is 'classes' and {labels.shape[1]} labels a row came; several a row are 'multilabel'.")
    names, y = _classes(labels, wanted, place)
    return Labels("classes", names, _positive(wanted, names), guess=guess), y


def guess_label_kind(labels: np.ndarray, wanted: Wanted) -> tuple[str, str]:
    """Return the kind of labels that nobody stated, and why."""
    if labels.ndim == 1 and (wanted.classes is not None or wanted.positive is not None):
        return "classes", ""
    if labels.ndim == 2:
        if labels.dtype.kind not in "US" and np.isin(labels, (0, 1)).all():
            return "multilabel", "columns of 0 and 1"
        return "numbers", "columns of numbers"
    if labels.dtype.kind in "US":
        return "classes", "text"
    if labels.dtype.kind == "b":
        return "classes", "true or false"
    if labels.dtype.kind == "f" and not (labels == np.round(labels)).all():
        return "numbers", "not all of them whole"
    if len(np.unique(labels)) <= MOST_CLASSES:
        return "classes", "whole numbers, few of them"
    return "numbers", f"more than {MOST_CLASSES:,} different ones"


def one_of_columns(labels: np.ndarray) -> np.ndarray:
    """Turn one-hot columns [rows, N] into the number of the column, int64 [rows]; give other labels back unchanged.

    >>> one_of_columns(np.array([[0, 1], [1, 0]])), one_of_columns(np.array([[0, 1], [1, 1]])).tolist()
    (array([1, 0]), [[0, 1], [1, 1]])
    """
    is_coded = labels.ndim == 2 and labels.shape[1] > 1 and labels.dtype.kind in "biuf"
    if is_coded and np.isin(labels, (0, 1)).all() and (labels.sum(axis=1) == 1).all():
        return labels.argmax(axis=1)
    return labels


def class_numbers(labels: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
    """`(classes, y)` of labels of any type: names in the order of the labels, and for each row the number of its class.

    >>> class_numbers(np.array(["10", "9", "10"]))
    (('9', '10'), array([1, 0, 1]))
    """
    distinct, inverse = np.unique(labels, return_inverse=True)
    names = tuple(name_of(label) for label in distinct)
    y = inverse.reshape(-1).astype(np.int64)
    named = [number_named(name) for name in names] if distinct.dtype.kind in "US" else []
    numbers = [number for number in named if number is not None]
    if len(set(numbers)) < len(names):  # sorted as they are, text, or two names of one number
        return names, y
    order = np.argsort(numbers, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return tuple(names[number] for number in order), rank[y]


class Names:
    """Classes that labels are looked up in: by name, else by number, so that 1, 1.0, +1 and True are one label."""

    def __init__(self, classes: Sequence[Any]) -> None:
        self.classes = tuple(name_of(label) for label in classes)
        self.number_of = {name: number for number, name in enumerate(self.classes)}
        self.number_of_value: dict[float, int | None] = {}
        for number, name in enumerate(self.classes):
            value = number_named(name)
            if value is not None:  # a value that two names share is neither's
                self.number_of_value[value] = None if value in self.number_of_value else number

    def find(self, label: Any) -> int | None:
        """Return the number of the class that the label is; None if it is none of them."""
        name = name_of(label)
        if name in self.number_of:
            return self.number_of[name]
        value = number_named(name)
        return None if value is None else self.number_of_value.get(value)

    def must_find(self, label: Any, what: str) -> int:
        """Return the number of the class that an argument called `what` names; `DataError` lists the classes."""
        if (number := self.find(label)) is None:
            raise DataError(f"{what} is {label!r}; the classes are {format_names(self.classes)}.")
        return number


def _positive(wanted: Wanted, names: tuple[str, ...]) -> str | None:
    """Return the class name that the caller wants as positive class, or None; raise DataError if there is no such
    class.
    """
    return None if wanted.positive is None else names[Names(names).must_find(wanted.positive, "positive")]


def _refuse_infinite(labels: np.ndarray, place: Place) -> None:
    """Raise DataError with the place of the first label that is NaN or infinite."""
    if labels.dtype.kind != "f" or np.isfinite(labels).all():
        return
    row = int(np.argmin(np.isfinite(labels).reshape(len(labels), -1).all(axis=1)))
    raise DataError(f"{place(row)}: the label {str(labels[row])!r} is no finite number.")


def _refuse_unwritable(labels: np.ndarray, place: Place) -> None:
    """Refuse text of code points that no text has: Python fails at some, and files cannot be written with others."""
    if labels.dtype.kind != "U" or not labels.size or not labels.dtype.itemsize:
        return
    points = np.ascontiguousarray(labels).view(labels.dtype.str[0] + "u4").reshape(len(labels), -1)
    wrong = (points > sys.maxunicode) | ((points >= 0xD800) & (points <= 0xDFFF))
    if wrong.any():
        row = int(np.argmax(wrong.any(axis=1)))
        point = int(points[row][wrong[row]][0])
        raise DataError(f"{place(row)}: the label holds the code point {point:#x}, which is no character.")


def _numbers(labels: np.ndarray, place: Place) -> np.ndarray:
    """Return labels as float64, [rows] or [rows, N]."""
    if labels.dtype.kind in "US":
        for row, texts in enumerate(labels.reshape(len(labels), -1)):
            if any(number_named(str(text)) is None for text in texts):
                label = ", ".join(map(repr, map(str, texts)))
                raise DataError(f"{place(row)}: kind is 'numbers' and the label is {label}; say kind = 'classes'.")
    y = labels.astype(np.float64)
    _refuse_infinite(y, place)
    return y


def _classes(labels: np.ndarray, wanted: Wanted, place: Place) -> tuple[tuple[str, ...], np.ndarray]:
    """Return names and indices of the classes in the file, or of the given `classes`."""
    own, y = class_numbers(labels)
    if wanted.classes is None:
        return own, y
    known = Names(wanted.classes)
    unseen = None if wanted.unseen is None else known.must_find(wanted.unseen, "unseen")
    number_of = np.empty(len(own), np.int64)
    for number, name in enumerate(own):
        known_number = known.find(name)
        if known_number is None:
            known_number = unseen
        if known_number is None:
            advice = "Give unseen = one of them to count such rows to it, or take the rows out"
            unknown = f"the label {name!r} is none of the classes {format_names(known.classes)}"
            raise DataError(f"{place(int(np.argmax(y == number)))}: {unknown}. {advice}.")
        number_of[number] = known_number
    return known.classes, number_of[y]


def _of_columns(labels: np.ndarray, wanted: Wanted, guess: str) -> tuple[Labels, np.ndarray]:
    """Return the columns of 0 and 1, each a class; their names are their numbers unless others are given."""
    if labels.ndim != 2 or labels.dtype.kind in "US" or not np.isin(labels, (0, 1)).all():
        raise DataError("kind is 'multilabel', which takes a column of 0 and 1 for each class; other labels came.")
    columns = labels.shape[1]
    names = tuple(map(name_of, range(columns) if wanted.classes is None else wanted.classes))
    if len(names) != columns:
        raise DataError(f"{len(names)} classes are given and {columns} columns of labels came; each needs a name.")
    return Labels("multilabel", names, _positive(wanted, names), guess=guess), labels.astype(np.uint8)


def _of_tuples(rows: list[tuple], wanted: Wanted, place: Place) -> tuple[Labels, np.ndarray]:
    """Return any number of labels a row: a column of 0 and 1 for each class."""
    row_of = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    flat = np.array([label for row in rows for label in row])
    if not len(flat):
        raise DataError(f"{place(0)}: no row has a label; give at least one.")

    def place_of(number: int) -> str:
        return place(int(row_of[number]))

    _refuse_infinite(flat, place_of)
    names, numbers = _classes(flat, wanted, place_of)
    size = len(rows) * len(names)
    if size > MOST_COLUMNS:
        raise DataError(f"{len(rows):,} rows x {len(names):,} classes are {size:,} labels; at most 2**32 are held.")
    y = np.zeros((len(rows), len(names)), np.uint8)
    y[row_of, numbers] = 1
    guess = "" if wanted.kind else "commas between labels"
    return Labels("multilabel", names, _positive(wanted, names), guess=guess), y
