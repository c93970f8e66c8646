"""pyarrow, which reads and splits tables: imported when a table is read, and what a column of it is turned into.

Each column of a block of rows becomes its distinct texts and, for each row, the number of its text: whatever is done to
a value is done once for each distinct one.
"""

import functools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import DTypeLike

from workbench.data.errors import DataError
from workbench.data.tables.compiled import (
    FIRST_PRINTED,
    MARKS,
    are_decimal,
    are_dressed,
    are_printed,
    are_words,
    buffers_of,
    hash_texts,
    spread,
)
from workbench.data.tables.schema import Column
from workbench.data.tables.splitting import Fields, are_whole

MISSING_WORDS = ("", "?", "\\N", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None")
"""What stands for a missing value, blanks around it taken off."""
LARGEST_FLOAT32 = float(np.finfo(np.float32).max)


def arrow() -> Any:
    """Import and return pyarrow with compute, csv, ipc and parquet. Raises DataError if it is not installed."""
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


# Between pyarrow and NumPy by way of memory: pyarrow's own conversions import pandas, which takes 0.2 s.


def mask_of(chosen: np.ndarray) -> Any:
    """Return a bool array [n] as a pyarrow boolean array (a packed copy)."""
    pa = arrow()
    bits = np.packbits(chosen, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(chosen), [None, pa.py_buffer(bits)])


def strings_of(texts: Sequence[str]) -> Any:
    """Return a sequence of str as a pyarrow string array (a copy in UTF-8)."""
    pa = arrow()
    offsets, letters = _lay_out(texts)
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(letters))


def values_of(column: Any, dtype: DTypeLike) -> np.ndarray:
    """Return a pyarrow numeric array without nulls as a NumPy array of `dtype`, sharing its memory.

    `dtype` must be that of the pyarrow type: the bytes are reinterpreted, not converted.
    """
    if not len(column):
        return np.empty(0, dtype)
    return np.frombuffer(column.buffers()[1], dtype)[column.offset : column.offset + len(column)]


def flags_of(column: Any) -> np.ndarray:
    """Return a pyarrow boolean array without nulls as a NumPy bool array [n] (a copy)."""
    bits = np.frombuffer(column.buffers()[1], np.uint8) if len(column) else np.empty(0, np.uint8)
    return np.unpackbits(bits, bitorder="little")[column.offset : column.offset + len(column)].astype(np.bool_)


def _lay_out(words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return (offsets int64 [words + 1], UTF-8 bytes uint8) of words laid end to end, as pyarrow stores strings."""
    joined = "".join(words)
    encoded = words if joined.isascii() else [word.encode() for word in words]
    offsets = np.zeros(len(words) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, encoded), np.int64, len(words)), out=offsets[1:])
    return offsets, np.frombuffer(joined.encode(), np.uint8)


@functools.lru_cache(64)
def _cached_texts(words: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return offsets and UTF-8 bytes of words as `_lay_out` does, cached for the last 64 tuples; do not modify."""
    return _lay_out(words)


class TextStore(Protocol):
    """Distinct texts of a column, to which blocks refer by their indices: a `Vocabulary`."""

    @property
    def nbytes(self) -> int:
        """Memory in bytes of the texts."""

    def texts(self) -> "Texts":
        """Return all texts in the order of their indices, with one row each."""

    def close(self) -> None:
        """Free what only adding texts needs."""

    def fields_of(self, indices: np.ndarray) -> Fields:
        """Return the texts of these indices, int32 [texts], where they stand."""


@final
class Known:
    """Texts of a column of a block that stand in a store: `indices` int32 [texts] in it."""

    def __init__(self, store: TextStore, indices: np.ndarray) -> None:
        """Keep the store and the indices; nothing is copied."""
        self.store, self.indices = store, indices

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.indices)


@final
class Texts:
    """A column of a block: its texts, and `numbers`, int32 [rows], which of them each row has, -1 for a missing value.

    Texts are `distinct` but for a column whose rows differ mostly. They are a pyarrow array of strings, or `Fields` or
    `Known`, of which such an array is made when it is first asked for. `known` says where they stand in a store of
    texts, None if that is not known. With `values` they may be None: they are finite numbers, of
    which the texts were not kept; if they are whole, they are printed when they are asked for.
    """

    __slots__ = ("_cleaned", "_texts", "_values", "known", "numbers")

    def __init__(self, texts: Any, numbers: np.ndarray, values: np.ndarray | None = None) -> None:
        """Store the texts, the index of each row's text (int32, -1: missing) and the number of each text.

        `texts` is a pyarrow string array, `Fields`, `Known`, or None if `values`, float64 [texts], replaces it.
        """
        self._texts, self.numbers, self._values = texts, numbers, values
        self.known: Known | None = None
        self._cleaned: tuple[tuple[str, ...], Texts | None] | None = None  # by these words; None if this is the result

    def __len__(self) -> int:
        """Return the number of stored texts (not of rows)."""
        return len(self.values if self._texts is None else self._texts)

    @property
    def fields(self) -> Fields | None:
        """The texts as positions in a text (`Fields`); None if they were copied out or dropped."""
        if isinstance(self._texts, Known):
            return self._texts.store.fields_of(self._texts.indices)
        return self._texts if isinstance(self._texts, Fields) else None

    def padded(self) -> Fields:
        """Return the texts as `Fields`, in a padded copy if they are a pyarrow array."""
        return self.fields or Fields.copied(*buffers_of(self.distinct))

    def text(self, index: int) -> str:
        """Return one of the texts."""
        fields = self.fields
        if fields is None:
            return self.distinct[index].as_py()
        return fields.text[fields.starts[index] : fields.stops[index]].tobytes().decode()

    def are_printed(self) -> bool:
        """Return whether all bytes of the texts are printable ASCII without blanks."""
        fields = self.fields
        return are_printed(*buffers_of(self.distinct)) if fields is None else not fields.has_outside(FIRST_PRINTED)

    @property
    def has_texts(self) -> bool:
        """Whether texts are stored, rather than only their numbers."""
        return self._texts is not None

    @property
    def distinct(self) -> Any:
        """The texts as a pyarrow string array; `Fields` are copied out and replaced at the first access.

        If only whole numbers are stored, they are formatted each time; AssertionError if these have fractions.
        """
        if self._texts is None:
            assert self._values is not None
            assert (np.floor(self._values) == self._values).all(), "the texts of fractions were not kept"
            pa = arrow()
            whole = pa.py_buffer(self._values.astype(np.int64))
            return pa.Array.from_buffers(pa.int64(), len(self._values), [None, whole]).cast(pa.string())
        fields = self.fields
        if fields is not None:
            self._texts = fields.gathered(arrow())
        return self._texts

    @property
    def values(self) -> np.ndarray:
        """The number of each text, float64 [texts], NaN if it is not a decimal number.

        Computed at the first access and kept.
        """
        if self._values is None:
            fields = self.fields
            self._values = numbers_of(self.distinct) if fields is None else fields.numbers()
        return self._values

    @property
    def nbytes(self) -> int:
        """Memory in bytes of texts, numbers and row indices; row indices shared between columns count 0.

        Of `Known` texts only their indices count. Copies `Fields` out.
        """
        values = 0 if self._values is None else self._values.nbytes
        numbers = 0 if is_each_number(self.numbers) else self.numbers.nbytes
        if isinstance(self._texts, Known):
            return values + numbers + self._texts.indices.nbytes
        return values + numbers + (int(self.distinct.nbytes) if self.has_texts else 0)

    def of_rows(self, numbers: np.ndarray) -> "Texts":
        """Return the same texts, shared, for other rows: `numbers` int32 [rows] are text indices, -1 missing."""
        other = Texts(self._texts, numbers, self._values)
        other.known = self.known
        other._cleaned = None if self._cleaned is None or self._cleaned[1] is not None else self._cleaned
        return other

    def cleaned(self, words: tuple[str, ...]) -> "Texts":
        """Return the column with texts stripped of blanks, and rows whose text is in `words` marked missing. O(rows).

        The result for the last `words` is cached; the column itself is returned if it needs no change.
        """
        if self._texts is None or not len(self._texts):
            return self
        if self._cleaned is None or self._cleaned[0] != words:
            result = self._clean(words)
            result._cleaned = words, None
            self._cleaned = words, result
        return self if self._cleaned[1] is None else self._cleaned[1]

    def settle(self) -> None:
        """Let go of the block of file text, so that it can be freed; drop `values` if all are NaN.

        Texts are copied out unless they are known. In place.
        """
        self._texts = self.distinct if self.known is None else self.known
        if self._values is not None and np.isnan(self._values).all():
            self._values = None

    def are_printed_whole(self) -> bool:
        """Return whether each text is a whole number in canonical form, which `values` can restore."""
        if isinstance(self._texts, Fields):
            return are_whole(self._texts.text, self._texts.starts, self._texts.stops)
        offsets, letters = buffers_of(self.distinct)
        return are_whole(letters, offsets[:-1], offsets[1:])

    def without_texts(self) -> "Texts":
        """Return a copy without texts, only their numbers, all of which must be finite."""
        return Texts(None, self.numbers, self.values)

    def _clean(self, words: tuple[str, ...]) -> "Texts":
        """Return the column stripped, with rows whose text is in `words` marked -1; what `cleaned` caches."""
        fields = self.fields
        stripped = None if fields is None else fields.stripped(_cached_texts(words))
        if stripped is not None:
            texts, is_absent = stripped
            return Texts(texts, self.numbers) if not is_absent.any() else self._without(texts, is_absent)
        pa = arrow()
        distinct = self.distinct
        offsets, letters = buffers_of(distinct)
        if not are_printed(offsets, letters):
            distinct = pa.compute.utf8_trim_whitespace(distinct)
            offsets, letters = buffers_of(distinct)
        is_absent = are_words(offsets, letters, *_cached_texts(words))
        if is_absent.any():
            return self._without(distinct, is_absent)
        return Texts(distinct, self.numbers, self._values if distinct is self._texts else None)

    def _without(self, texts: Any, is_absent: np.ndarray) -> "Texts":
        """Return `texts` without those flagged in `is_absent` (bool [texts]); their rows get the index -1."""
        number_of = np.cumsum(~is_absent, dtype=np.int32) - np.int32(1)
        number_of[is_absent] = -1
        left = texts.taken(~is_absent) if isinstance(texts, Fields) else texts.filter(mask_of(~is_absent))
        values = self._values[~is_absent] if self._values is not None and texts is self._texts else None
        return Texts(left, of_rows(number_of, -1, self.numbers), values)


@functools.lru_cache(4)
def _first_numbers(count: int) -> np.ndarray:
    """Return arange(count) as read-only int32, cached: columns share it, and its identity marks one text per row."""
    numbers = np.arange(count, dtype=np.int32)
    numbers.flags.writeable = False
    return numbers


def each_number(rows: int) -> np.ndarray:
    """Return the text indices if every row has its own text: arange(rows), int32, a view of a shared array."""
    return _first_numbers(1 << rows.bit_length())[:rows]


def is_each_number(numbers: np.ndarray) -> bool:
    """Return whether `numbers` is a view made by `each_number`, so that text i belongs to row i."""
    return numbers.base is _first_numbers(1 << len(numbers).bit_length())


def texts_of(column: Any) -> Texts:
    """Return a pyarrow array of any flat type as `Texts`: distinct values as text, nulls missing (-1)."""
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
    return Texts(distinct, values_of(numbers.cast(pa.int32()), np.int32))


def numbers_of(distinct: Any) -> np.ndarray:
    """Return the number of each text of a pyarrow string array, float64 [texts]: NaN if it is not a decimal number.

    Numbers beyond float64 are infinite.
    """
    pa = arrow()
    is_number = are_decimal(*buffers_of(distinct))
    if not is_number.any():
        return np.full(len(distinct), np.nan)
    texts = distinct if is_number.all() else distinct.filter(mask_of(is_number))
    values = values_of(pa.compute.utf8_ltrim(texts, "+").cast(pa.float64()), np.float64)
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
    """Return bool [texts]: whether a text is a number with currency, digit groups or percent, as "$3,123.00".

    `distinct` is a pyarrow string array. O(bytes); the regular expression `DRESSED` only runs on texts with such signs.
    """
    pa = arrow()
    offsets, letters = buffers_of(distinct)
    found = are_dressed(offsets, letters)
    if found.any():
        texts = distinct.filter(mask_of(found))
        found[found] = flags_of(pa.compute.match_substring_regex(texts, DRESSED))
    return found


def undress(distinct: Any) -> Any:
    """Return a pyarrow string array with plain numbers for dressed ones: "$3,123.00" is "3123.00".

    "(5)" becomes "-5". Other texts are unchanged.
    """
    pa = arrow()
    found = is_dressed(distinct)
    if not found.any():
        return distinct
    texts = distinct.filter(mask_of(found))
    digits = pa.compute.replace_substring_regex(texts, rf"{_CURRENCY}|[^0-9.]", "")
    minus = pa.compute.if_else(pa.compute.match_substring_regex(texts, r"^\(|-"), "-", "")
    plain = pa.compute.binary_join_element_wise(minus, digits, "")
    return pa.compute.replace_with_mask(distinct, mask_of(found), plain)


def read_amounts(texts: Texts) -> tuple[np.ndarray, np.ndarray]:
    """Return (numbers float64 [texts], is_dressed bool [texts]): NaN for texts that are not numbers.

    Numbers with a currency, digit groups or a percent sign are read too, and flagged. The numbers may be the array that
    `texts` caches: do not modify.
    """
    numbers = texts.values
    found = np.isnan(numbers)
    if found.any():
        fields = texts.fields
        if fields is not None and not fields.taken(found).has_outside(MARKS[-1] + 1):
            return numbers, np.zeros(len(found), np.bool_)
        distinct = texts.distinct
        found[found] = is_dressed(distinct if found.all() else distinct.filter(mask_of(found)))
        if found.any():
            numbers = numbers.copy()
            numbers[found] = numbers_of(undress(distinct.filter(mask_of(found))))
    return numbers, found


@final
class WrongValueError(DataError):
    """A value that its column cannot hold, in the row of that number, from 0."""

    def __init__(self, row: int, message: str) -> None:
        """Store the message and the row index, from 0, of the value."""
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
    column: Column

    def learn(self, texts: Texts, row: int) -> None:
        """Add some rows to the statistics; `row` is the index of their first.

        Raises WrongValueError for invalid values.
        """

    def learned(self) -> Column:
        """Return the column with its values, edges or divisor, so that rows can be encoded one by one."""

    def encode(self, texts: Texts, row: int) -> Encoded:
        """Return the matrix entries of some rows; `row` is the index of their first, used in WrongValueError."""


def hashed(distinct: Any, buckets: int) -> np.ndarray:
    """Return the bucket of each text of a pyarrow string array, int32 [texts], 0 <= bucket < `buckets`.

    It is `pandas.util.hash_array` (SipHash of the UTF-8 bytes) modulo `buckets`.
    """
    return (hash_texts(*buffers_of(distinct)) % np.uint64(buckets)).astype(np.int32)


def of_rows(of_distinct: np.ndarray, of_missing: Any, numbers: np.ndarray) -> np.ndarray:
    """Return the value of each row, [rows]: `of_distinct[numbers]`, and `of_missing` for rows with the index -1.

    `numbers` is int32 [rows], indices into `of_distinct` [texts]. If each row has its own text, `of_distinct` itself is
    returned, not a copy.
    """
    if is_each_number(numbers):
        return of_distinct
    values = np.empty(len(numbers), of_distinct.dtype)
    spread(of_distinct, of_distinct.dtype.type(of_missing), numbers, values)
    return values


def first_row(texts: Texts, wrong: Collection[bool] | np.ndarray) -> tuple[int, str]:
    """Return (index in the block, text) of the first row whose text is flagged in `wrong`, bool [texts].

    At least one row must have such a text.
    """
    at = int(np.argmax(of_rows(np.asarray(wrong, bool), False, texts.numbers)))
    return at, texts.text(int(texts.numbers[at]))


@final
class OfTexts:
    """What is computed of each text of a column: of texts in a store once for all blocks."""

    def __init__(self, compute: Callable[[Texts], np.ndarray]) -> None:
        """Keep `compute`, which returns an array [texts] for a column."""
        self._compute = compute
        self._store: TextStore | None = None
        self._values = np.empty(0)

    def __call__(self, texts: Texts) -> np.ndarray:
        """Return what `compute` gives for the texts of a column, [texts]; a store must be complete by then."""
        if texts.known is None:
            return self._compute(texts)
        if self._store is not texts.known.store:
            self._store = texts.known.store
            self._values = self._compute(self._store.texts())
        return of_rows(self._values, 0, texts.known.indices)
