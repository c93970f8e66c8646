"""Meaning of the labels of a data set: classes, numbers, or several classes a row; stated by the user, else guessed."""

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from kernels.registry import format_count
from workbench.data.errors import DataError
from workbench.json_text import Fields, are_numbers, are_texts, check_fields, is_optional, is_text

# Rows to train on by class: as few labels of each as most nodes of a citation graph have.


def some_of_each_class(kind: str, y: np.ndarray, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (up to `count` rows of each class, all other rows) as int64 indices, both in random order.

    `y` are class indices, int [rows], and `kind` must be "classes". All rows of a class with fewer are taken. Raises
    DataError for another kind, `count` below 1, or if no row would be left. O(rows log rows).

    >>> train, rest = some_of_each_class("classes", np.array([0, 1, 0, 1, 1]), 1, seed=0)
    >>> len(train), len(rest)
    (2, 3)
    """
    if kind != "classes":
        raise DataError(f"per_class is {count}, and the labels are {kind}; it counts rows of classes. Leave it out.")
    if count < 1:
        raise DataError(f"per_class is {count}; it is 1 or more rows of each class.")
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    sizes = np.bincount(y)
    is_trained = np.arange(len(y)) - np.repeat(np.cumsum(sizes) - sizes, sizes) < count
    if is_trained.all():
        raise DataError(f"per_class is {count}, and no class of the {len(y)} rows has more; fewer leave some held out.")
    return generator.permutation(order[is_trained]), generator.permutation(order[~is_trained])


KINDS = ("classes", "numbers", "multilabel")
NONE = "none"
"""The kind that a caller states for data to be read without labels."""
NO_LABELS = "there are no labels"
"""What `Labels.guess` says of data that was read without labels."""
POSITIVE_WORDS = frozenset({"1", "true", "yes", "y", "t", "on", "pos", "positive"})
"""What a class is called that is the positive one of two, whatever the alphabet says."""
SHOWN = 10
"""Classes that a message lists before it counts the others."""

FIELDS: Fields = {
    "kind": (lambda value: value in KINDS, "classes, numbers or multilabel"),
    "classes": (are_texts, "a list of texts"),
    "positive": (is_optional(is_text), "a text or null"),
    "merged": (are_texts, "a list of texts"),
    "guess": (is_text, "a text"),
    "span": (is_optional(lambda value: are_numbers(value) and len(value) == 2), "two numbers or null"),
}
"""Fields of labels in JSON."""

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_BOOLEANS = {"False": 0.0, "True": 1.0}


@final
@dataclass(frozen=True)
class Labels:
    """The meaning of labels: their `kind`, and for classes their names in order.

    `positive` is the class that a yes-or-no target asks for: the larger one of two (or the one called 1, true, yes),
    else None unless named. `merged` are the labels that the last class stands for. `guess` says why this kind was taken
    and is empty if the caller stated it. `span` is the smallest and the largest number of the whole set.

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
        """Validate the fields, and choose the positive class of two if none is named.

        Raises DataError if they do not fit.
        """
        check_kind(self.kind)
        if (self.kind == "numbers") == bool(self.classes):
            raise DataError(
                f"Labels of kind {self.kind} have {format_count(len(self.classes), 'class')}; numbers have none."
            )
        if len(set(self.classes)) < len(self.classes):
            raise DataError(f"Classes are named twice: {format_names(self.classes)}; each has a name of its own.")
        if self.positive is not None and self.positive not in self.classes:
            raise DataError(f"positive is {self.positive!r}; the classes are {format_names(self.classes)}.")
        if self.kind == "classes" and len(self.classes) == 2 and self.positive is None:
            object.__setattr__(self, "positive", _positive_of_two(*self.classes))

    @classmethod
    def of_json(cls, stored: Mapping[str, Any]) -> "Labels":
        """Return labels from their fields as JSON has them, with lists for tuples; ValueError names a wrong field."""
        check_fields(stored, {"kind": FIELDS["kind"]}, "labels")
        if unknown := sorted(stored.keys() - FIELDS.keys()):
            raise ValueError(f"labels has the field {unknown[0]!r:.80}; expected {', '.join(FIELDS)}")
        check_fields(stored, {name: field for name, field in FIELDS.items() if name in stored}, "labels")
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()
        }
        return cls(**fields)

    @property
    def values(self) -> np.ndarray | None:
        """The number that each class name stands for, float64 [classes]; None if one is not a number."""
        numbers = [number_named(name) for name in self.classes]
        return None if None in numbers else np.array(numbers, np.float64)

    @property
    def are_missing(self) -> bool:
        """Whether the data was read without labels: `y` is zeros, which mean nothing."""
        return self.guess == NO_LABELS

    def __str__(self) -> str:
        """Return one phrase: kind, count or span, and whether it was guessed."""
        if self.are_missing:
            return "none"
        counted = format_count(len(self.classes), "class") if self.kind != "numbers" else self._numbers()
        counted += ", several a row" if self.kind == "multilabel" else ""
        return f"{counted} (guessed: {self.guess})" if self.guess else counted

    def _numbers(self) -> str:
        """Return the description of regression labels, such as "numbers 0 to 5"."""
        return "numbers" if self.span is None else f"numbers {self.span[0]:.6g} to {self.span[1]:.6g}"


@final
@dataclass(frozen=True)
class Wanted:
    """Meaning of the labels in a file as the caller states it; None if the file decides.

    `classes` are the names there may be, in order; a label that is none of them counts to the class `unseen`, and is
    refused without one.
    """

    kind: str | None = None
    positive: Any = None
    classes: Sequence[Any] | None = None
    unseen: Any = None

    def __post_init__(self) -> None:
        """Raise DataError for an unknown kind, classes that are not a list, or settings that exclude each other."""
        if self.kind not in (None, NONE):
            check_kind(self.kind)
        if isinstance(self.classes, str):
            raise DataError(f"classes is {self.classes!r}; it is a list of the names of all classes.")
        if self.unseen is not None and self.classes is None:
            raise DataError(f"unseen is {self.unseen!r} without classes; give the classes of the training, or like=.")
        for name in ("positive", "classes"):
            if self.kind in ("numbers", NONE) and getattr(self, name) is not None:
                raise DataError(f"{name} is given and kind is {self.kind!r}, which has no classes. Leave one out.")


def check_kind(kind: str) -> None:
    """Raise DataError, listing the known kinds, if `kind` is not one of `KINDS`."""
    if kind not in KINDS:
        known = f"{', '.join(KINDS)}, {NONE} for no labels"
        raise DataError(f"kind is {kind!r}; it is one of {known}, or left out to be guessed.")


GUESSED, AS_NUMBERS = Wanted(), Wanted("numbers")
"""Labels whose meaning the file decides, and labels that are numbers."""


def format_names(names: Iterable[str]) -> str:
    """Return the names joined by commas, as "a, b, and 5 more" beyond the first `SHOWN`; "none" if there are none."""
    names = tuple(names)
    text = ", ".join(names[:SHOWN])
    return f"{text}, and {len(names) - SHOWN:,} more" if len(names) > SHOWN else text or "none"


def name_of(label: Any) -> str:
    """Return a label of any type as the name of its class: 1.0 and 1 are "1", True is "True"."""
    if isinstance(label, bool | np.bool_):
        return str(bool(label))
    if isinstance(label, float | np.floating) and label == np.round(label) and abs(float(label)) < 2**63:
        return str(int(label))
    return str(label)


def number_named(name: str) -> float | None:
    """Return the number that a class name stands for, as "2.5", "1e3" or "True"; None if it is other text."""
    if name in _BOOLEANS:
        return _BOOLEANS[name]
    return float(name) if _NUMBER.fullmatch(name) else None


def _positive_of_two(first: str, second: str) -> str:
    """Return the positive of two class names: the first if only it means yes ("1", "true"), else the second."""
    second_is_other = second.casefold() not in POSITIVE_WORDS and number_named(second) is None
    return first if first.casefold() in POSITIVE_WORDS and second_is_other else second


# Labels as they stand in a file into what a data set holds, by what the caller says of them, else by a guess.

MOST_CLASSES = 1000
"""Whole-number labels with more distinct values than this are guessed to be numbers."""
SURELY_CLASSES, ROWS_A_CLASS = 32, 2.5
"""Whole-number labels are numbers if there are more different ones than the first, and fewer rows of each, on average,
than the second."""
MOST_COLUMNS = 2**32
"""Largest rows * classes of labels with several classes a row, which are held as a byte each."""

Place = Callable[[int], str]
"""Says for the number of a row where its label stands: file and line."""


def read_labels(labels: np.ndarray | list[tuple], wanted: Wanted, place: Place) -> tuple[Labels, np.ndarray]:
    """Return (meaning, y) of labels as they stand in a file; what is not stated in `wanted` is guessed.

    `labels` is an array [rows] or [rows, N], or a list with a tuple of labels per row; `place(row)` gives file and line
    for messages. `y` is int64 [rows] for classes, float64 [rows] or [rows, N] for numbers, uint8 [rows, classes] for
    multilabel. Raises DataError for labels that are invalid or do not fit `wanted`.
    """
    if wanted.kind == NONE:
        return Labels("numbers", guess=NO_LABELS, span=(0.0, 0.0)), np.zeros(len(labels))
    if isinstance(labels, list):
        return _read_tuples(labels, wanted, place)
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
        return _read_indicators(labels, wanted, guess)
    if labels.ndim != 1:
        raise DataError(
            f"kind is 'classes' and {format_count(labels.shape[1], 'label')} a row came; "
            "several a row are 'multilabel'."
        )
    names, y = _classes(labels, wanted, place)
    return Labels("classes", names, _positive(wanted, names), guess=guess), y


def guess_label_kind(labels: np.ndarray, wanted: Wanted) -> tuple[str, str]:
    """Return (kind, reason) inferred from the values: "classes", "numbers" or "multilabel"; the reason is "" if stated.

    `labels` is [rows] or [rows, N] of numbers or text. Given classes or a positive class imply "classes".
    """
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
    count = len(np.unique(labels))
    if count > MOST_CLASSES:
        return "numbers", f"more than {MOST_CLASSES:,} different ones"
    if count > SURELY_CLASSES and len(labels) < ROWS_A_CLASS * count:
        return "numbers", "whole numbers, most of them once or twice"
    return "classes", "whole numbers, few of them"


def one_of_columns(labels: np.ndarray) -> np.ndarray:
    """Return the column of the 1 in each row of one-hot columns, int64 [rows]; other labels are returned unchanged.

    >>> one_of_columns(np.array([[0, 1], [1, 0]])), one_of_columns(np.array([[0, 1], [1, 1]])).tolist()
    (array([1, 0]), [[0, 1], [1, 1]])
    """
    is_coded = labels.ndim == 2 and labels.shape[1] > 1 and labels.dtype.kind in "biuf"
    if is_coded and np.isin(labels, (0, 1)).all() and (labels.sum(axis=1) == 1).all():
        return labels.argmax(axis=1)
    return labels


def class_numbers(labels: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
    """Return (class names in sorted order, class index of each row, int64 [rows]) of labels of any type.

    Text that is all numbers is sorted by value.

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
        """Index the class names, and the numbers they stand for; a number that two names share finds neither."""
        self.classes = tuple(name_of(label) for label in classes)
        self.number_of = {name: number for number, name in enumerate(self.classes)}
        self.number_of_value: dict[float, int | None] = {}
        for number, name in enumerate(self.classes):
            value = number_named(name)
            if value is not None:  # a value that two names share is neither's
                self.number_of_value[value] = None if value in self.number_of_value else number

    def find(self, label: Any) -> int | None:
        """Return the index of the class that `label` names, by text or else by number; None if there is none."""
        name = name_of(label)
        if name in self.number_of:
            return self.number_of[name]
        value = number_named(name)
        return None if value is None else self.number_of_value.get(value)

    def must_find(self, label: Any, what: str) -> int:
        """Return the index of the class that `label` names.

        DataError, which calls the argument `what`, if there is none.
        """
        if (number := self.find(label)) is None:
            raise DataError(f"{what} is {label!r}; the classes are {format_names(self.classes)}.")
        return number


def _positive(wanted: Wanted, names: tuple[str, ...]) -> str | None:
    """Return the class name that the caller wants as positive, None if not stated.

    DataError if there is no such class.
    """
    return None if wanted.positive is None else names[Names(names).must_find(wanted.positive, "positive")]


def _refuse_infinite(labels: np.ndarray, place: Place) -> None:
    """Raise DataError, with `place(row)`, for the first row whose label is NaN or infinite; text is not checked."""
    if labels.dtype.kind != "f" or np.isfinite(labels).all():
        return
    row = int(np.argmin(np.isfinite(labels).reshape(len(labels), -1).all(axis=1)))
    raise DataError(f"{place(row)}: the label {str(labels[row])!r} is no finite number.")


def _refuse_unwritable(labels: np.ndarray, place: Place) -> None:
    """Raise DataError, with `place(row)`, for the first text label with a surrogate or a code point beyond Unicode."""
    if labels.dtype.kind != "U" or not labels.size or not labels.dtype.itemsize:
        return
    points = np.ascontiguousarray(labels).view(labels.dtype.str[0] + "u4").reshape(len(labels), -1)
    wrong = (points > sys.maxunicode) | ((points >= 0xD800) & (points <= 0xDFFF))
    if wrong.any():
        row = int(np.argmax(wrong.any(axis=1)))
        point = int(points[row][wrong[row]][0])
        raise DataError(f"{place(row)}: the label holds the code point {point:#x}, which is no character.")


def _numbers(labels: np.ndarray, place: Place) -> np.ndarray:
    """Return labels as float64, [rows] or [rows, N].

    DataError with the row for text that is not a number, or infinity.
    """
    if labels.dtype.kind in "US":
        for row, texts in enumerate(labels.reshape(len(labels), -1)):
            if any(number_named(str(text)) is None for text in texts):
                label = ", ".join(map(repr, map(str, texts)))
                raise DataError(f"{place(row)}: kind is 'numbers' and the label is {label}; say kind = 'classes'.")
    y = labels.astype(np.float64)
    _refuse_infinite(y, place)
    return y


def _classes(labels: np.ndarray, wanted: Wanted, place: Place) -> tuple[tuple[str, ...], np.ndarray]:
    """Return (class names, class index of each row, int64 [rows]): of the labels themselves, or of `wanted.classes`.

    A label outside the given classes counts to the class `wanted.unseen`; without one it raises DataError with the row.
    """
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


def _read_indicators(labels: np.ndarray, wanted: Wanted, guess: str) -> tuple[Labels, np.ndarray]:
    """Return (meaning, y uint8 [rows, classes]) of indicator columns; classes are "0", "1", ... unless named.

    Raises DataError if there are values other than 0 and 1, or names for another number of columns.
    """
    if labels.ndim != 2 or labels.dtype.kind in "US" or not np.isin(labels, (0, 1)).all():
        raise DataError("kind is 'multilabel', which takes a column of 0 and 1 for each class; other labels came.")
    columns = labels.shape[1]
    names = tuple(map(name_of, range(columns) if wanted.classes is None else wanted.classes))
    if len(names) != columns:
        raise DataError(
            f"{format_count(len(names), 'class')} and {format_count(columns, 'column')} of labels came; "
            "each needs a name."
        )
    return Labels("multilabel", names, _positive(wanted, names), guess=guess), labels.astype(np.uint8)


def _read_tuples(rows: list[tuple], wanted: Wanted, place: Place) -> tuple[Labels, np.ndarray]:
    """Return (meaning, y uint8 [rows, classes]) of a tuple of labels for each row, which may be empty.

    Raises DataError if no row has a label, one is invalid, or rows * classes exceed 2**32.
    """
    row_of = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    flat = np.array([label for row in rows for label in row])
    if not len(flat):
        raise DataError(f"{place(0)}: no row has a label; give at least one.")

    def place_of(number: int) -> str:
        """Return file and line of a label by its index among the labels of all rows."""
        return place(int(row_of[number]))

    _refuse_infinite(flat, place_of)
    names, numbers = _classes(flat, wanted, place_of)
    size = len(rows) * len(names)
    if size > MOST_COLUMNS:
        raise DataError(
            f"{format_count(len(rows), 'row')} x {format_count(len(names), 'class')} are {size:,} labels; "
            "at most 2**32 are held."
        )
    y = np.zeros((len(rows), len(names)), np.uint8)
    y[row_of, numbers] = 1
    guess = "" if wanted.kind else "commas between labels"
    return Labels("multilabel", names, _positive(wanted, names), guess=guess), y
