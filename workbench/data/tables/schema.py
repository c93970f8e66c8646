"""Schema of a table: the kind of each column and how it becomes columns of the matrix, declared or guessed.

Kinds and their encodings, each with the columns of the matrix that come of it:

- `category`, `one-hot`: one for each of its `values`, in the order of their code points unless they are given, then one
  for values that are missing, or in a later file unknown. `hashed`: as many as `buckets`, or one for each bucket in
  `kept` (`[]` for those that occur in the file), then one for missing values. `multi-hot`: a value such as a|b|c is
  several, split at `separator`; one for each of `values`, in code point order, then one for missing values.
- `number`, `keep`: the number itself. `log`: sign(x) * log(1 + |x|). Both are divided by `divisor`, which `scaling`
  says how to find: `none`, 1, the usual one; `deviation`, the standard deviation; `largest`, the largest magnitude.
  Nothing is subtracted, so that zeros stay zeros. `binned`, usual where `bins` are given: one for each of about `bins`
  ranges that hold equally many rows, cut at `edges`. One more column is 1 where the value is missing.
- `text`, `words`: counts of words, a column for each of `values`, in code point order, then one for missing texts;
  unknown words count nothing. `hashed`: as `hashed` above, of each word. Words are runs of letters, digits and
  underscores, in lower case.
- `label`: the labels. `ignored`: not read.

With `optional` a value that is missing, or unknown, has no entry, and the last column is left out: guessed of columns
that most rows have no value of, so that absent values are not stored, and of numbers of which none is missing.

`values`, `edges` and `divisor` are found in the file where they are not given, and carried to a later one.
"""

import copy
import itertools
import math
from dataclasses import dataclass, fields
from typing import Any, final

from workbench.data.errors import DataError

ENCODINGS: dict[str, tuple[str, ...]] = {
    "category": ("one-hot", "hashed", "multi-hot"),
    "number": ("keep", "binned", "log"),
    "text": ("words", "hashed"),
    "label": (),
    "ignored": (),
}
"""Encodings that a column of each kind may have, the usual one first."""
SCALINGS = ("deviation", "largest", "none")
BUCKETS, BINS = 1 << 16, 16
"""What `buckets` and `bins` are where nothing says otherwise."""
MOST_COLUMNS = 2**31 - 1
MOST_BINS = 1 << 16
TAKEN: dict[str, tuple[str, ...]] = {
    "one-hot": ("values",),
    "hashed": ("buckets", "kept"),
    "multi-hot": ("separator", "values"),
    "words": ("values",),
    "binned": ("bins", "edges"),
    "keep": ("scaling", "divisor"),
    "log": ("scaling", "divisor"),
}
"""What may be said of each encoding."""
PARAMETERS = (
    *("encoding", "buckets", "bins", "scaling", "missing", "optional", "separator"),
    *("values", "kept", "edges", "divisor"),
)
"""Parameters of columns, in the order in which they are written."""


MOST_SHOWN = 3
"""Values of a list that are shown in the representation of a column."""


@final
@dataclass(frozen=True)
class Found:
    """Statistics of a column: `rows`, of them `missing`, and `distinct` values, at least where `is_least`."""

    rows: int = 0
    missing: int = 0
    distinct: int = 0
    is_least: bool = False

    @property
    def missing_share(self) -> float:
        """Share of the rows whose value is missing, from 0 to 1; 0 without rows."""
        return self.missing / max(self.rows, 1)


@final
@dataclass(frozen=True)
class Column:
    """One column: its `kind`, its `encoding` and what that takes; `missing` are more words for missing values.

    `found` and `why` say what a guess was made from.

    >>> Column("age", "number", encoding="log")
    Column(name='age', kind='number', encoding='log', scaling='none')
    """

    name: str
    kind: str
    encoding: str = ""
    buckets: int | None = None
    bins: int | None = None
    scaling: str | None = None
    missing: tuple[str, ...] = ()
    optional: bool = False
    separator: str | None = None
    values: tuple[str, ...] | None = None
    kept: tuple[int, ...] | None = None
    edges: tuple[float, ...] | None = None
    divisor: float | None = None
    found: Found | None = None
    why: str = ""

    def __post_init__(self) -> None:
        """Fill in default encoding and parameters, and validate all fields; raises DataError if one is invalid."""
        if self.kind not in list(ENCODINGS):  # it may be of any type
            raise DataError(f"{self._field_text('kind')}; it is one of {', '.join(ENCODINGS)}.")
        if not self.encoding and ENCODINGS[self.kind]:
            is_hashed = self.kind in ("category", "text") and self.buckets is not None
            is_binned = self.kind == "number" and (self.bins is not None or self.edges is not None)
            encoding = "hashed" if is_hashed else "binned" if is_binned else ENCODINGS[self.kind][0]
            object.__setattr__(self, "encoding", encoding)
        if self.encoding and self.encoding not in ENCODINGS[self.kind]:
            allowed = ", ".join(ENCODINGS[self.kind]) or "left out"
            raise DataError(f"{self._field_text('encoding')}; of the kind {self.kind} it is {allowed}.")
        self._refuse_untaken()
        self._complete()
        self._check()

    def __repr__(self) -> str:
        """Return a constructor call with name, kind and the parameters of the encoding; of long lists the length.

        >>> Column("site", "category", values=("a", "b", "c", "d"))
        Column(name='site', kind='category', encoding='one-hot', values=<4>)
        """
        said = {"name": self.name, "kind": self.kind, **self.said()}
        shown = {
            name: f"<{len(value):,}>" if isinstance(value, list) and len(value) > MOST_SHOWN else repr(value)
            for name, value in said.items()
        }
        return f"Column({', '.join(f'{name}={value}' for name, value in shown.items())})"

    def said(self) -> dict[str, Any]:
        """Return the encoding parameters that are set, as JSON values by name, for a column file."""
        given = {name: getattr(self, name) for name in PARAMETERS}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in given.items()
            if value not in (None, "") and not (name in ("missing", "optional") and not value)
        }

    def with_values(self, values: tuple[str, ...] | None) -> "Column":
        """Return a copy with other `values`, unchecked: distinct texts without blanks around them, or None."""
        column = copy.copy(self)
        object.__setattr__(column, "values", values)
        return column

    def _refuse_untaken(self) -> None:
        """Raise DataError for a parameter that is set although the column's encoding does not take it."""
        taken = TAKEN.get(self.encoding, ())
        for names in TAKEN.values():
            for name in names:
                if name not in taken and getattr(self, name) is not None:
                    of = f"{self.kind} {self.encoding}".strip()
                    raise DataError(f"{self._field_text(name)}; a column of {of} takes {', '.join(taken) or 'none'}.")

    def _complete(self) -> None:
        """Set `buckets`, `bins`, `scaling` and `separator`, if None and taken, to their defaults, in place."""
        defaults = {"buckets": BUCKETS, "bins": BINS, "scaling": "none", "separator": "|"}
        for name in TAKEN.get(self.encoding, ()):
            if name in defaults and getattr(self, name) is None:
                object.__setattr__(self, name, defaults[name])

    def _check(self) -> None:
        """Validate bucket and bin counts, scaling, texts, divisor and edges; texts and edges are normalised in place.

        Raises DataError for the first invalid one.
        """
        for name, most in (("buckets", MOST_COLUMNS - 1), ("bins", MOST_BINS)):
            count = getattr(self, name)
            if count is not None and not (is_whole(count) and 1 <= count <= most):
                raise DataError(f"{self._field_text(name)}; it is a whole number from 1 to {most:,}.")
        if not isinstance(self.optional, bool):
            raise DataError(f"{self._field_text('optional')}; it is true or false.")
        if self.separator is not None and not (isinstance(self.separator, str) and self.separator.strip()):
            raise DataError(f"{self._field_text('separator')}; it is a sign, such as '|'.")
        if self.kept is not None:
            object.__setattr__(self, "kept", self._buckets(self.kept))
        if self.scaling is not None and self.scaling not in SCALINGS:
            raise DataError(f"{self._field_text('scaling')}; it is one of {', '.join(SCALINGS)}.")
        for name in ("missing", "values"):
            if (texts := getattr(self, name)) is not None:
                object.__setattr__(self, name, self._texts(name, texts))
        if self.divisor is not None and not (is_finite(self.divisor) and self.divisor > 0):
            raise DataError(f"{self._field_text('divisor')}; it is a number above 0.")
        if self.edges is not None:
            object.__setattr__(self, "edges", self._numbers(self.edges))

    def _texts(self, name: str, given: Any) -> tuple[str, ...]:
        """Return `given` as a tuple of stripped texts.

        DataError, naming field `name`, unless they are distinct strings.
        """
        if not isinstance(given, list | tuple) or not all(issubclass(one, str) for one in set(map(type, given))):
            raise DataError(f"{self._field_text(name)}; it is a list of texts, numbers in quotes too.")
        texts = tuple(map(str.strip, given))
        if len(set(texts)) < len(texts):
            twice = next(text for text in texts if texts.count(text) > 1)
            raise DataError(f"{name} of column {self.name!r} holds {twice!r} twice; each stands once.")
        return texts

    def _buckets(self, given: Any) -> tuple[int, ...]:
        """Return `given` as a tuple; raise DataError unless it is of ascending numbers of buckets."""
        is_list = isinstance(given, list | tuple) and all(map(is_whole, given))
        if not is_list or any(after <= before for before, after in itertools.pairwise((-1, *given, self.buckets or 0))):
            raise DataError(f"{self._field_text('kept')}; it is a list of buckets, each above the one before.")
        return tuple(given)

    def _numbers(self, given: Any) -> tuple[float, ...]:
        """Return bin edges as floats; raise DataError unless they are finite and strictly ascending."""
        is_list = isinstance(given, list | tuple) and all(map(is_finite, given))
        if not is_list or any(after <= before for before, after in itertools.pairwise(given)):
            raise DataError(f"{self._field_text('edges')}; it is a list of numbers, each above the one before.")
        return tuple(map(float, given))

    def _field_text(self, name: str) -> str:
        """Return the start of an error message about field `name`: "NAME of column 'x' is VALUE"."""
        value = repr(getattr(self, name))
        return f"{name} of column {self.name!r} is {value if len(value) < 80 else value[:80] + '...'}"


SAYABLE = ("kind", *(field.name for field in fields(Column) if field.name not in ("name", "kind", "found", "why")))
"""Keys of a column in a file of column kinds."""


def is_whole(value: Any) -> bool:
    """Return whether `value` is an int and not a bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_finite(value: Any) -> bool:
    """Return whether `value` is a finite int or float and not a bool."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
