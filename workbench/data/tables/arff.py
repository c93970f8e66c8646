"""Tables in ARFF, the text format of Weka and OpenML: names and types of columns first, then a row a line.

A row is values between commas, or `{place value, ...}` with the nonzero values; zero is the first name in a
column of names.
"""

import csv
import itertools
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, final

from workbench.data.errors import DataError
from workbench.data.files.opened import open_text, place_at, read_head
from workbench.data.files.reading import reading
from workbench.data.tables.arrow import Texts, arrow, texts_of

HEAD = 1 << 14
VALUES_AT_ONCE = 1 << 20
WHAT = "ARFF (attributes, then a row a line)"
_ATTRIBUTE = re.compile(r"(?i)@attribute\s+('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^\s{]+)\s*(.*)")


def starts_as_arff(path: str | os.PathLike) -> bool:
    """Return whether the first line that is no comment begins as one of ARFF."""
    lines = (line.strip() for line in read_head(path, HEAD).removeprefix(b"\xef\xbb\xbf").splitlines())
    first = next((line for line in lines if line and not line.startswith(b"%")), b"")
    return first[:11].lower().startswith((b"@relation ", b"@relation\t", b"@attribute ", b"@attribute\t"))


@final
class ArffTable:
    """A file in ARFF, in UTF-8, packed or not; `names` are those of its attributes."""

    nested: frozenset[str] = frozenset()

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = path
        self._zeros: dict[str, str] = {}
        """What stands in a column where a row names no value."""
        self._first = 0
        with open_text(path) as file:
            for number, line in enumerate(file, 1):
                text = line.decode().strip()
                if text.casefold().startswith("@data"):
                    self._first = number + 1
                    break
                if found := _ATTRIBUTE.match(text):
                    self._add(found[1], found[2], number)
        self.names = tuple(self._zeros)
        if not (self.names and self._first):
            raise DataError(f"{path} has no {'@data' if self.names else '@attribute'}; it cannot be read as {WHAT}.")

    def _add(self, name: str, kind: str, line: int) -> None:
        """Take in an attribute; `DataError` for a name that comes twice."""
        name = name[1:-1] if name[0] in "'\"" else name
        if name in self._zeros:
            raise DataError(f"{self.path}:{line}: a second attribute is called {name!r}; give each a name of its own.")
        values = _fields(kind.strip()[1:].rpartition("}")[0]) if kind.startswith("{") else []
        self._zeros[name] = values[0] if values else "0"

    def blocks(self, names: Sequence[str]) -> Iterator[dict[str, Texts]]:
        """Yield the columns of those names, some rows at a time, in their order (`DataError`)."""
        pa = arrow()
        place = {name: at for at, name in enumerate(self.names)}
        with reading(self.path, WHAT):
            every = (row for _, row in self._rows())
            at_once = max(1, VALUES_AT_ONCE // len(self.names))
            while names and (rows := list(itertools.islice(every, at_once))):
                yield {name: texts_of(pa.array([row[place[name]] for row in rows], pa.string())) for name in names}

    def place(self, row: int) -> str:
        """File and line of the row, from 0."""
        return place_at(self.path, (line for line, _ in self._rows()), row)

    def layout(self) -> dict[str, Any]:
        """Nothing: ARFF says itself how it is laid out."""
        return {}

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the values of each row with the number of its line (`DataError`)."""
        zeros = list(self._zeros.values())
        with open_text(self.path) as file:
            for number, line in enumerate(file, 1):
                text = line.decode().strip()
                if number < self._first or not text or text.startswith("%"):
                    continue
                if text.startswith("{"):
                    yield number, self._of_pairs(text, zeros.copy(), number)
                    continue
                row = _fields(text)
                if len(row) != len(zeros):
                    counts = f"this row has {len(row):,} values and the file {len(zeros):,} attributes"
                    raise DataError(f"{self.path}:{number}: {counts}.")
                yield number, row

    def _of_pairs(self, text: str, row: list[str], line: int) -> list[str]:
        """Return the values of a row whose pairs of place and value stand between braces (`DataError`)."""
        for pair in _fields(text[1:].rpartition("}")[0]):
            place, _, value = pair.partition(" ")
            if not place.isdecimal() or int(place) >= len(row) or not value.strip():
                what = f"{pair[:40]!r} is no place from 0 to {len(row) - 1} with its value"
                raise DataError(f"{self.path}:{line}: {what}.")
            row[int(place)] = value.strip().strip("'\"")
        return row


def _fields(text: str) -> list[str]:
    """Return what stands between commas, quotes of either kind taken off.

    >>> _fields("1.5, 'a, b',?")
    ['1.5', 'a, b', '?']
    """
    quote = '"' if '"' in text and "'" not in text else "'"
    row = next(csv.reader([text], quotechar=quote, skipinitialspace=True, escapechar="\\"), [])
    return [value.strip() for value in row]
