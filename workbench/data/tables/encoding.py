"""Shared parts of column encoders: their result, the fault they raise, hashing, and vocabularies that grow."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np

from workbench.data.errors import DataError
from workbench.data.tables.arrow import Texts, arrow
from workbench.data.tables.schema import Column


@final
class WrongValueError(DataError):
    """A value that its column cannot hold, in the row of that number, from 0."""

    def __init__(self, row: int, message: str) -> None:
        super().__init__(message)
        self.row = row


@final
@dataclass(frozen=True)
class Encoded:
    """Columns `width` of the matrix that came of some rows of one column of the table.

    `indices` int32 and `values` float32, None for ones, are the entries. With `lengths` None they are one a row, and
    none where the index is -1; else so many a row, int32 [rows], sorted in each.
    """

    width: int
    indices: np.ndarray
    values: np.ndarray | None = None
    lengths: np.ndarray | None = None


class Encoder(Protocol):
    """Encodes one column, block by block; where it is not `is_learned`, an encoder of what this one learned does."""

    is_learned: bool

    def learn(self, texts: Texts, row: int) -> None:
        """Take in the texts of some rows, the first of which has that number."""

    def learned(self) -> Column:
        """The column with all that is needed of the other rows to encode one of them."""

    def encode(self, texts: Texts, row: int) -> Encoded:
        """Encode some rows, the first of which has the number `row`."""


@final
class Vocabulary:
    """Distinct texts of a column that grow block by block, in the order in which they appear."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._pa = arrow()
        self.texts = self._pa.array(list(texts), self._pa.string())

    def __len__(self) -> int:
        return len(self.texts)

    def find(self, distinct: Any) -> np.ndarray:
        """Numbers of the texts, int32; -1 for one that is not here. O(texts here and given)."""
        found = self._pa.compute.index_in(distinct, value_set=self.texts)
        return found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32, copy=False)

    def add(self, distinct: Any) -> np.ndarray:
        """Numbers of the texts, int32, after those that were not here are taken in."""
        numbers = self.find(distinct)
        if (numbers < 0).any():
            new = distinct.filter(self._pa.array(numbers < 0)).unique()
            self.texts = self._pa.concat_arrays([self.texts, new])
            numbers = self.find(distinct)
        return numbers

    def in_order(self) -> tuple[str, ...]:
        """The texts by their code points."""
        return tuple(self.texts.take(self._pa.compute.sort_indices(self.texts)).to_pylist())


def hashed(distinct: Any, buckets: int) -> np.ndarray:
    """A bucket for each text, int32, from 0: SipHash of its UTF-8 (`pandas.util.hash_array`), modulo `buckets`."""
    from pandas.util import hash_array  # half a second to import, and only these readers need it

    if not len(distinct):
        return np.empty(0, np.int32)
    hashes = hash_array(distinct.to_numpy(zero_copy_only=False), categorize=False)
    return (hashes % np.uint64(buckets)).astype(np.int32)


def of_rows(of_distinct: np.ndarray, of_missing: Any, numbers: np.ndarray) -> np.ndarray:
    """Spread values of distinct texts over the rows [rows]; a missing text has `of_missing`."""
    return np.append(of_distinct, of_distinct.dtype.type(of_missing))[numbers]


def first_row(texts: Texts, wrong: Collection[bool] | np.ndarray) -> tuple[int, str]:
    """The first row of the block whose text is wrong, from 0, and the text."""
    at = int(np.argmax(of_rows(np.asarray(wrong, bool), False, texts.numbers)))
    return at, texts.distinct[int(texts.numbers[at])].as_py()
