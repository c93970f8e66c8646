"""Tables whose rows have a few fields each, of many names: memory and time go with the number of fields."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, final

import numpy as np

from workbench.data.tables.texts import NESTED, Texts, WrongValueError, arrow, texts_of

FEWEST_NAMES, FULLEST = 32, 0.25
"""Names that a table has at least, and share of rows x names that have a field at most, to be held by its fields."""
FIELDS_AT_ONCE = 1 << 16


def is_sparse(rows: int, names: int, fields: int) -> bool:
    """Return whether a table of so many rows, names and fields is held by its fields."""
    return names >= FEWEST_NAMES and fields <= FULLEST * rows * names


@final
class SparseTable:
    """A table in memory as its fields: for each name the rows that have it, and their texts."""

    def __init__(self, path: str | os.PathLike, names: Sequence[str], rows: int, place: Callable[[int], str]) -> None:
        """Set up a table of `rows` rows without fields; `place` says where a row (index from 0) stands."""
        self.path, self.names, self.rows = path, tuple(names), rows
        self.kinds: Mapping[str, str] = {}
        self.place = place
        self._fields: Mapping[str, tuple[np.ndarray, Any]] = {}

    @classmethod
    def of_rows(cls, table: Any, rows: int, text_of: Callable[[Any], str | None]) -> "SparseTable":
        """Return a JSON table of `rows` rows by its fields; `text_of` gives the text of a value, None for missing."""
        made = cls(table.path, table.names, rows, table.place)
        made.kinds = table.kinds
        place = {name: number for number, name in enumerate(table.names) if table.kinds.get(name) != NESTED}
        parts = list(_columnar(table.rows(), place, text_of))
        of_name = np.concatenate([part[0] for part in parts])
        of_row = np.concatenate([part[1] for part in parts])
        order = np.argsort(of_name, kind="stable")
        texts = arrow().chunked_array([part[2] for part in parts], arrow().string()).combine_chunks().take(order)
        bounds = np.searchsorted(of_name[order], np.arange(len(table.names) + 1))
        of_row = of_row[order]
        made._fields = {
            name: (of_row[start:stop], texts.slice(start, stop - start))
            for name, start, stop in zip(table.names, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
        }
        return made

    def labelled(self, label: str, missing: tuple[str, ...]) -> "SparseTable":
        """Return the rows whose `label` is present and not in `missing`."""
        rows, texts = self.present(label)
        kept = rows[texts.cleaned(missing).codes >= 0]
        made = SparseTable(self.path, self.names, len(kept), lambda row: self.place(int(kept[row])))
        made.kinds = self.kinds
        new = np.full(self.rows, -1, np.int32)
        new[kept] = np.arange(len(kept), dtype=np.int32)
        flags = {name: new[of_row] >= 0 for name, (of_row, _) in self._fields.items()}
        made._fields = {
            name: (new[of_row[flags[name]]], column.filter(arrow().array(flags[name])))
            for name, (of_row, column) in self._fields.items()
        }
        return made

    def present(self, name: str) -> tuple[np.ndarray, Texts]:
        """Return (rows int32 [fields], their texts) of the rows that have a field of this name."""
        of_row, column = self._fields[name]
        return of_row, texts_of(column)

    def every(self, name: str) -> tuple[np.ndarray, Texts]:
        """Return (all rows, texts of a column), -1 for rows without the field."""
        of_row, texts = self.present(name)
        numbers = np.full(self.rows, -1, np.int32)
        numbers[of_row] = texts.codes
        return np.arange(self.rows, dtype=np.int32), texts.take(numbers)

    def apply(self, name: str, is_optional: bool, words: tuple[str, ...], call: Callable[[Texts, int], Any]) -> Any:
        """Return (rows, what `call` gives for their cleaned texts): of all rows, or if optional of those with a field.

        The row of a WrongValueError becomes that of the table.
        """
        of_row, texts = self.present(name) if is_optional else self.every(name)
        try:
            return of_row, call(texts.cleaned(words), 0)
        except WrongValueError as error:
            raise WrongValueError(int(of_row[error.row]), str(error)) from None

    def blocks(self, names: Sequence[str]) -> Iterator[dict[str, Texts]]:
        """Yield all rows as one block, {name: Texts} of the columns `names`; memory goes with rows x names."""
        if names:
            yield {name: self.every(name)[1] for name in names}

    def layout(self) -> dict[str, Any]:
        """Return an empty dict: JSON has no layout parameters."""
        return {}


def _columnar(
    rows: Iterable[Mapping[str, Any]], place: Mapping[str, int], text_of: Callable[[Any], str | None]
) -> Iterator[tuple[np.ndarray, np.ndarray, Any]]:
    """Yield (indices of names, indices of rows, texts) of some fields at a time; names not in `place` are left out."""
    held: list[tuple[int, int, str]] = []
    for row, fields in enumerate(rows):
        for name, value in fields.items():
            if name in place and (text := text_of(value)) is not None:
                held.append((place[name], row, text))
        if len(held) >= FIELDS_AT_ONCE:
            yield _arrays(held)
            held = []
    yield _arrays(held)


def _arrays(held: list[tuple[int, int, str]]) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return the fields (name, row, text) as int32 arrays and a pyarrow string array."""
    names, rows, texts = zip(*held, strict=True) if held else ((), (), ())
    return np.array(names, np.int32), np.array(rows, np.int32), arrow().array(texts, arrow().string())
