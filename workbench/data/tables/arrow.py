"""pyarrow, which reads and splits tables: imported when a table is read, and what a column of it is turned into.

Each column of a block of rows becomes its distinct texts and, for each row, the number of its text: whatever is done to
a value is done once for each distinct one.
"""

import functools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np

from workbench.data.errors import DataError
from workbench.data.tables.compiled import are_decimal, are_dressed, are_printed, are_words, buffers_of, hash_texts
from workbench.data.tables.schema import Column

MISSING_WORDS = ("", "?", "\\N", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None")
"""What stands for a missing value, blanks around it taken off."""
LARGEST_FLOAT32 = float(np.finfo(np.float32).max)


def arrow() -> Any:
    """Return the package pyarrow; `DataError` if it is not installed."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError:
        install = "pip install 'sparse-workbench[tables]'"
        raise DataError(f"Tables are read by pyarrow, which is not installed: {install}.") from None
    return pyarrow


@dataclass(frozen=True)
class Texts:
    """A column of a block: its texts, a pyarrow array of strings, and the number of each row's, int32 [rows].

    A row whose value is missing has the number -1. Texts are `distinct` but for a column whose rows differ mostly.
    """

    distinct: Any
    numbers: np.ndarray


def texts_of(column: Any) -> Texts:
    """Return the texts of a pyarrow array of any type that is no list or structure, as they stand.

    Nulls are missing.
    """
    pa = arrow()
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    distinct = column.dictionary
    if not pa.types.is_string(distinct.type):
        if pa.types.is_float16(distinct.type):
            distinct = distinct.cast(pa.float32())
        distinct = distinct.cast(pa.string())
    numbers = column.indices
    if numbers.null_count:
        numbers = numbers.fill_null(-1)
    return Texts(distinct, numbers.to_numpy(zero_copy_only=False).astype(np.int32, copy=False))


def each_of(column: Any) -> Texts:
    """Return the strings of a pyarrow array without nulls, each for itself."""
    return Texts(column, np.arange(len(column), dtype=np.int32))


def cleaned(texts: Texts, missing: Sequence[str]) -> Texts:
    """Return the column with blanks stripped from its texts; texts in `missing` become null. O(rows)."""
    pa = arrow()
    distinct = texts.distinct
    if not len(distinct):
        return texts
    offsets, letters = buffers_of(distinct)
    if not are_printed(offsets, letters):
        distinct = pa.compute.utf8_trim_whitespace(distinct)
        offsets, letters = buffers_of(distinct)
    is_absent = are_words(offsets, letters, *_in_memory(tuple(missing)))
    if not is_absent.any():
        return Texts(distinct, texts.numbers)
    number_of = np.append(np.cumsum(~is_absent, dtype=np.int32) - 1, np.int32(-1))  # the last is that of -1
    number_of[:-1][is_absent] = -1
    return Texts(distinct.filter(pa.array(~is_absent)), number_of[texts.numbers])


@functools.lru_cache(64)
def _in_memory(words: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return offsets int64 [words + 1] and letters uint8 of some words."""
    encoded = [word.encode() for word in words]
    offsets = np.cumsum([0, *map(len, encoded)])
    return offsets, np.frombuffer(b"".join(encoded), np.uint8)


def numbers_of(distinct: Any) -> np.ndarray:
    """Return the numbers that texts stand for, float64; NaN for a text that is none.

    Beyond float64 they are infinite.
    """
    pa = arrow()
    is_number = are_decimal(*buffers_of(distinct))
    if not is_number.any():
        return np.full(len(distinct), np.nan)
    texts = distinct if is_number.all() else distinct.filter(pa.array(is_number))
    values = pa.compute.utf8_ltrim(texts, "+").cast(pa.float64()).to_numpy(zero_copy_only=False)
    if texts is distinct:
        return values
    numbers = np.full(len(distinct), np.nan)
    numbers[is_number] = values
    return numbers


_CURRENCY_NAMES = "USD EUR GBP JPY CNY INR CHF CAD AUD NZD BRL MXN SEK NOK DKK PLN CZK HUF TRY ZAR KRW"
_CURRENCY = rf"(?:\p{{Sc}}|[A-Z]{{1,2}}\$|{_CURRENCY_NAMES.replace(' ', '|')}|Rs\.?|kr\.?|z\x{{142}})"
_GROUPS = r"[0-9]{1,3}(?:,[0-9]{2,3})*,[0-9]{3}|[0-9]{1,3}(?:'[0-9]{3})+|[0-9]{1,3}(?:[ \x{a0}\x{202f}][0-9]{3})+"
"""Digits in groups of three, before the last one also of two, as in India."""
_BLANK = r"[ \x{a0}\x{202f}]?"
_AMOUNT = rf"(?:{_GROUPS}|[0-9]+)(?:\.[0-9]*)?|\.[0-9]+"
DRESSED = (
    rf"^(?:[+-]?{_BLANK}{_CURRENCY}?{_BLANK}[+-]?(?:{_AMOUNT}){_BLANK}(?:{_CURRENCY}|[%+])?"
    rf"|\({_CURRENCY}?{_BLANK}(?:{_AMOUNT}){_BLANK}{_CURRENCY}?\))$"
)
"""A number with a currency, groups of digits or a percent sign; in parentheses, as in books of accounts, below 0."""


def is_dressed(distinct: Any) -> np.ndarray:
    """Return for each text whether it is a number with a currency, groups of digits or a percent sign (`DRESSED`).

    O(letters), and slow only for texts that have such signs and digits.
    """
    pa = arrow()
    offsets, letters = buffers_of(distinct)
    found = are_dressed(offsets, letters)
    if found.any():
        texts = distinct.filter(pa.array(found))
        found[found] = pa.compute.match_substring_regex(texts, DRESSED).to_numpy(zero_copy_only=False)
    return found


def undressed(distinct: Any) -> Any:
    """Return the texts with the plain number in place of each that `is_dressed`: "$3,123.00" is 3123.00, "5 %" is 5."""
    pa = arrow()
    found = is_dressed(distinct)
    if not found.any():
        return distinct
    texts = distinct.filter(pa.array(found))
    digits = pa.compute.replace_substring_regex(texts, rf"{_CURRENCY}|[^0-9.]", "")
    minus = pa.compute.if_else(pa.compute.match_substring_regex(texts, r"^\(|-"), "-", "")
    plain = pa.compute.binary_join_element_wise(minus, digits, "")
    return pa.compute.replace_with_mask(distinct, pa.array(found), plain)


def read_amounts(distinct: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers that texts stand for as `numbers_of` does, and which of them were dressed.

    Those with a currency, groups of digits or a percent sign are numbers too.
    """
    numbers = numbers_of(distinct)
    found = np.isnan(numbers)
    if found.any():
        texts = distinct.filter(arrow().array(found))
        found[found] = is_dressed(texts)
        if found.any():
            numbers[found] = numbers_of(undressed(distinct.filter(arrow().array(found))))
    return numbers, found


def amounts_of(distinct: Any) -> np.ndarray:
    """Return the numbers of `read_amounts`."""
    return read_amounts(distinct)[0]


# Shared parts of column encoders: their result, the fault they raise, hashing, and vocabularies that grow.


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
    none if the index is -1; else so many a row, int32 [rows], sorted in each.
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
        """Return the column with all that is needed of the other rows to encode one of them."""

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
        """Return the index of each text, int32; -1 for unknown texts. O(known and given texts)."""
        found = self._pa.compute.index_in(distinct, value_set=self.texts)
        return found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32, copy=False)

    def add(self, distinct: Any) -> np.ndarray:
        """Add unknown texts; return the index of each text, int32."""
        numbers = self.find(distinct)
        if (numbers < 0).any():
            new = distinct.filter(self._pa.array(numbers < 0)).unique()
            self.texts = self._pa.concat_arrays([self.texts, new])
            numbers = self.find(distinct)
        return numbers

    def in_order(self) -> tuple[str, ...]:
        """Return the texts by their code points."""
        return tuple(self.texts.take(self._pa.compute.sort_indices(self.texts)).to_pylist())


def hashed(distinct: Any, buckets: int) -> np.ndarray:
    """Return a bucket for each text, int32, from 0.

    SipHash of its UTF-8, as `pandas.util.hash_array` gives it, modulo `buckets`.
    """
    return (hash_texts(*buffers_of(distinct)) % np.uint64(buckets)).astype(np.int32)


def of_rows(of_distinct: np.ndarray, of_missing: Any, numbers: np.ndarray) -> np.ndarray:
    """Spread values of distinct texts over the rows [rows]; a missing text has `of_missing`."""
    return np.append(of_distinct, of_distinct.dtype.type(of_missing))[numbers]


def first_row(texts: Texts, wrong: Collection[bool] | np.ndarray) -> tuple[int, str]:
    """Return the first row of the block whose text is wrong, from 0, and the text."""
    at = int(np.argmax(of_rows(np.asarray(wrong, bool), False, texts.numbers)))
    return at, texts.distinct[int(texts.numbers[at])].as_py()
