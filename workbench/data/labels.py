"""What the labels of a data set mean: classes, numbers, or several classes a row; stated by the user, else guessed.

Classes keep their names and stand in the order of their labels: numbers by size, text by the alphabet. The meaning is
one for a whole data set: both parts of a split share it, and a second file is read with it (`load(..., like=train)`).
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from workbench.data.errors import DataError

KINDS = ("classes", "numbers", "multilabel")
MOST_CLASSES = 1000
"""Whole-number labels with more distinct values than this are guessed to be numbers."""
POSITIVE_WORDS = frozenset({"1", "true", "yes", "y", "t", "on", "pos", "positive"})
"""What a class is called that is the positive one of two, whatever the alphabet says."""
MOST_COLUMNS = 2**32
"""Largest rows * classes of labels with several classes a row, which are held as a byte each."""
SHOWN = 10
"""Classes that a message lists before it counts the others."""

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_BOOLEANS = {"False": 0.0, "True": 1.0}

Place = Callable[[int], str]
"""Says for the number of a row where its label stands: file and line."""


@final
@dataclass(frozen=True)
class Labels:
    """The meaning of labels: their `kind`, and for classes their names in order.

    `positive` is the class that a yes-or-no target asks for: the larger one of two (or the one called 1, true, yes),
    else None unless named. `merged` are the labels that the last class stands for. `guess` says why this kind was taken
    and is empty where the caller stated it. `span` is the smallest and the largest number of the whole set.

    >>> Labels("classes", ("no", "yes"), guess="text")
    Labels(kind='classes', classes=('no', 'yes'), positive='yes', merged=(), guess='text', span=None)
    """

    kind: str
    classes: tuple[str, ...] = ()
    positive: str | None = None
    merged: tuple[str, ...] = ()
    guess: str = ""
    span: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        check_kind(self.kind)
        if (self.kind == "numbers") == bool(self.classes):
            raise DataError(f"Labels of kind {self.kind} have {len(self.classes)} classes; numbers have none.")
        if len(set(self.classes)) < len(self.classes):
            raise DataError(f"Classes are named twice: {listed(self.classes)}; each has a name of its own.")
        if self.positive is not None and self.positive not in self.classes:
            raise DataError(f"positive is {self.positive!r}; the classes are {listed(self.classes)}.")
        if self.kind == "classes" and len(self.classes) == 2 and self.positive is None:
            object.__setattr__(self, "positive", _larger(*self.classes))

    @property
    def values(self) -> np.ndarray | None:
        """The number that each class stands for, float64; None where they are not all numbers."""
        return _values_of(self.classes)

    def __str__(self) -> str:
        """One phrase: kind, count or span, and whether it was guessed."""
        counted = f"{len(self.classes):,} classes" if self.kind != "numbers" else self._numbers()
        counted += ", several a row" if self.kind == "multilabel" else ""
        return f"{counted} (guessed: {self.guess})" if self.guess else counted

    def _numbers(self) -> str:
        return "numbers" if self.span is None else f"numbers {self.span[0]:.6g} to {self.span[1]:.6g}"


@final
@dataclass(frozen=True)
class Wanted:
    """What the caller says of the labels in a file; None where the file decides.

    `classes` are the names there may be, in order; a label that is none of them counts to the class `unseen`, and is
    refused without one.
    """

    kind: str | None = None
    positive: Any = None
    classes: Sequence[Any] | None = None
    unseen: Any = None

    def __post_init__(self) -> None:
        if self.kind is not None:
            check_kind(self.kind)
        if isinstance(self.classes, str):
            raise DataError(f"classes is {self.classes!r}; it is a list of the names of all classes.")
        if self.unseen is not None and self.classes is None:
            raise DataError(f"unseen is {self.unseen!r} without classes; give the classes of the training, or like=.")
        for name in ("positive", "classes"):
            if self.kind == "numbers" and getattr(self, name) is not None:
                raise DataError(f"{name} is given and kind is 'numbers'; numbers have no classes. Leave one out.")


def check_kind(kind: str) -> None:
    """Refuse a kind of labels that there is not (`DataError`)."""
    if kind not in KINDS:
        raise DataError(f"kind is {kind!r}; it is one of {', '.join(KINDS)}, or left out to be guessed.")


def listed(names: Iterable[str]) -> str:
    """The names with commas between them; of many the first ones, and how many more there are."""
    names = tuple(names)
    text = ", ".join(names[:SHOWN])
    return f"{text}, and {len(names) - SHOWN:,} more" if len(names) > SHOWN else text or "none"


def class_numbers(labels: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
    """`(classes, y)` of labels of any type: names in the order of the labels, and for each row the number of its class.

    >>> class_numbers(np.array(["10", "9", "10"]))
    (('9', '10'), array([1, 0, 1]))
    """
    distinct, inverse = np.unique(labels, return_inverse=True)
    names = tuple(_name(value) for value in distinct)
    inverse = inverse.reshape(-1).astype(np.int64)
    values = _values_of(names) if distinct.dtype.kind in "US" else None
    if values is None or len(set(values.tolist())) < len(names):
        return names, inverse
    order = np.argsort(values, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return tuple(names[place] for place in order), rank[inverse]


def read_labels(labels: np.ndarray | list[tuple], wanted: Wanted, place: Place) -> tuple[Labels, np.ndarray]:
    """The meaning of what stands in a file, and `y` as a data set holds it; `DataError` says where a label is wrong.

    A list holds a tuple of labels for each row.
    """
    if isinstance(labels, list):
        return _several(labels, wanted, place)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.dtype.kind == "S":
        labels = np.char.decode(labels, "utf-8", "backslashreplace")
    kind, guess = (wanted.kind, "") if wanted.kind else _guessed(labels, wanted)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        row = int(np.argmin(np.isfinite(labels).reshape(len(labels), -1).all(axis=1)))
        raise DataError(f"{place(row)}: the label {labels[row]} is no finite number.")
    if kind == "numbers":
        y = _numbers(labels, place)
        return Labels(kind, guess=guess, span=(float(y.min()), float(y.max()))), y
    if kind == "multilabel":
        return _columns(labels, wanted, guess)
    if labels.ndim != 1:
        raise DataError(f"kind is 'classes' and {labels.shape[1]} labels a row came; several a row are 'multilabel'.")
    return _classes(labels, wanted, guess, place)


def _guessed(labels: np.ndarray, wanted: Wanted) -> tuple[str, str]:
    """The kind of labels that nobody stated, and why."""
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
    if labels.dtype.kind == "f" and not (np.isfinite(labels).all() and (labels == np.round(labels)).all()):
        return "numbers", "not all of them whole"
    if len(np.unique(labels)) <= MOST_CLASSES:
        return "classes", "whole numbers, few of them"
    return "numbers", f"more than {MOST_CLASSES:,} different ones"


def _numbers(labels: np.ndarray, place: Place) -> np.ndarray:
    """Labels as float64, [rows] or [rows, N]."""
    if labels.dtype.kind not in "US":
        return labels.astype(np.float64)
    for row, texts in enumerate(labels.reshape(len(labels), -1)):
        for text in texts:
            if not _NUMBER.fullmatch(text):
                raise DataError(
                    f"{place(row)}: kind is 'numbers' and the label is {str(text)!r}; say kind = 'classes'."
                )
    return labels.astype(np.float64)


def _columns(labels: np.ndarray, wanted: Wanted, guess: str) -> tuple[Labels, np.ndarray]:
    """Columns of 0 and 1, each a class; their names are their numbers unless others are given."""
    if labels.ndim != 2 or labels.dtype.kind in "US" or not np.isin(labels, (0, 1)).all():
        raise DataError("kind is 'multilabel', which takes a column of 0 and 1 for each class; other labels came.")
    count = labels.shape[1]
    names = tuple(map(str, range(count))) if wanted.classes is None else tuple(map(_name, wanted.classes))
    if len(names) != count:
        raise DataError(f"{len(names)} classes are given and {count} columns of labels came; each needs a name.")
    positive = None if wanted.positive is None else _found(wanted.positive, names, "positive")
    return Labels("multilabel", names, positive, guess=guess), labels.astype(np.uint8)


def _several(rows: list[tuple], wanted: Wanted, place: Place) -> tuple[Labels, np.ndarray]:
    """Any number of labels a row: a column for each class."""
    row_of = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    flat = np.array([label for row in rows for label in row])
    if not len(flat):
        raise DataError(f"{place(0)}: no row has a label; give at least one.")
    meaning, numbers = _classes(flat, wanted, "", lambda at: place(int(row_of[at])))
    size = len(rows) * len(meaning.classes)
    if size > MOST_COLUMNS:
        raise DataError(f"{len(rows):,} rows x {len(meaning.classes):,} classes are {size:,} labels; give fewer rows.")
    y = np.zeros((len(rows), len(meaning.classes)), np.uint8)
    y[row_of, numbers] = 1
    guess = "" if wanted.kind else "commas between labels"
    positive = None if wanted.positive is None else meaning.positive
    return Labels("multilabel", meaning.classes, positive, guess=guess), y


def _classes(labels: np.ndarray, wanted: Wanted, guess: str, place: Place) -> tuple[Labels, np.ndarray]:
    names, y = class_numbers(labels)
    if wanted.classes is not None:
        known = tuple(_name(value) for value in wanted.classes)
        unseen = None if wanted.unseen is None else _found(wanted.unseen, known, "unseen")
        y = _as_known(names, known, unseen, y, place)
        names = known
    positive = None if wanted.positive is None else _found(wanted.positive, names, "positive")
    return Labels("classes", names, positive, guess=guess), y


def _as_known(
    names: tuple[str, ...], known: tuple[str, ...], unseen: str | None, y: np.ndarray, place: Place
) -> np.ndarray:
    """Class numbers of a file's own classes turned into those of the known ones."""
    number_of = np.empty(len(names), np.int64)
    for number, name in enumerate(names):
        same = _match(name, known) or unseen
        if same is None:
            row = int(np.argmax(y == number))
            advice = "Give unseen = one of them to count such rows to it, or take the rows out"
            raise DataError(f"{place(row)}: the label {name!r} is none of the classes {listed(known)}. {advice}.")
        number_of[number] = known.index(same)
    return number_of[y]


def _found(value: Any, classes: tuple[str, ...], what: str) -> str:
    """The class that the caller means by a name or a number."""
    if (name := _match(_name(value), classes)) is None:
        raise DataError(f"{what} is {value!r}; the classes are {listed(classes)}.")
    return name


def _match(name: str, classes: tuple[str, ...]) -> str | None:
    """The class of that name, else the only one of that number: 1, 1.0, +1 and True are one number."""
    if name in classes:
        return name
    number = _number(name)
    equal = [other for other in classes if number is not None and _number(other) == number]
    return equal[0] if len(equal) == 1 else None


def _name(value: Any) -> str:
    """A label as text: whole numbers without a point."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, float | np.floating) and value == np.round(value) and abs(value) < 2**63:
        return str(int(value))
    return str(value)


def _number(name: str) -> float | None:
    if name in _BOOLEANS:
        return _BOOLEANS[name]
    return float(name) if _NUMBER.fullmatch(name) else None


def _values_of(names: tuple[str, ...]) -> np.ndarray | None:
    numbers = [_number(name) for name in names]
    return None if None in numbers else np.array(numbers, np.float64)


def _larger(first: str, second: str) -> str:
    """The positive one of two classes: called so, else the second in their order."""
    if first.casefold() in POSITIVE_WORDS and second.casefold() not in POSITIVE_WORDS and _number(second) is None:
        return first
    return second
