"""Meaning of the labels of a data set: classes, numbers, or several classes a row; stated by the user, else guessed.

Classes keep their names and stand in the order of their labels: numbers by size, text by the alphabet. The meaning is
one for a whole data set: both parts of a split share it, and a second file is read with it (`load(..., like=train)`).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from workbench.data.errors import DataError

# Rows to train on by class: as few labels of each as most nodes of a citation graph have.


def some_of_each_class(kind: str, y: np.ndarray, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """`count` rows of each class, and all others, both in random order, int64; of labels of this `kind`.

    Of a class of fewer rows all are taken. Refused (`DataError`): labels that are no classes, a part without rows.
    O(rows log rows).

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
        check_kind(self.kind)
        if (self.kind == "numbers") == bool(self.classes):
            raise DataError(f"Labels of kind {self.kind} have {len(self.classes)} classes; numbers have none.")
        if len(set(self.classes)) < len(self.classes):
            raise DataError(f"Classes are named twice: {format_names(self.classes)}; each has a name of its own.")
        if self.positive is not None and self.positive not in self.classes:
            raise DataError(f"positive is {self.positive!r}; the classes are {format_names(self.classes)}.")
        if self.kind == "classes" and len(self.classes) == 2 and self.positive is None:
            object.__setattr__(self, "positive", _positive_of_two(*self.classes))

    @property
    def values(self) -> np.ndarray | None:
        """The number that each class stands for, float64; None if they are not all numbers."""
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
        counted = f"{len(self.classes):,} classes" if self.kind != "numbers" else self._numbers()
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
    """Refuse a kind of labels that there is not (`DataError`)."""
    if kind not in KINDS:
        known = f"{', '.join(KINDS)}, {NONE} for no labels"
        raise DataError(f"kind is {kind!r}; it is one of {known}, or left out to be guessed.")


def format_names(names: Iterable[str]) -> str:
    """Return the names with commas between them; of many the first ones, and how many more there are."""
    names = tuple(names)
    text = ", ".join(names[:SHOWN])
    return f"{text}, and {len(names) - SHOWN:,} more" if len(names) > SHOWN else text or "none"


def name_of(label: Any) -> str:
    """Return a label as text, the name of its class: whole numbers without a point."""
    if isinstance(label, bool | np.bool_):
        return str(bool(label))
    if isinstance(label, float | np.floating) and label == np.round(label) and abs(float(label)) < 2**63:
        return str(int(label))
    return str(label)


def number_named(name: str) -> float | None:
    """Return the number that the name of a class stands for, such as 2.5 or True; None if it is text."""
    if name in _BOOLEANS:
        return _BOOLEANS[name]
    return float(name) if _NUMBER.fullmatch(name) else None


def _positive_of_two(first: str, second: str) -> str:
    """Return the positive one of two classes: called so, else the second in their order."""
    second_is_other = second.casefold() not in POSITIVE_WORDS and number_named(second) is None
    return first if first.casefold() in POSITIVE_WORDS and second_is_other else second
