"""Columns of a block of rows as pyarrow holds them: distinct values, and for each row the index of its value.

Whatever is done to a value is done once for each distinct one.
"""

import contextlib
import functools
from collections.abc import Collection, Sequence
from typing import Any, final

import numpy as np

from workbench.data.errors import DataError

MISSING_WORDS = ("", "?", "\\N", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None")
"""What stands for a missing value, blanks around it taken off."""
BOOLEANS = {"true": 1.0, "True": 1.0, "TRUE": 1.0, "false": 0.0, "False": 0.0, "FALSE": 0.0}
"""Words that are numbers in a feature."""
SAMPLE = 256
"""Texts, at even distances, of which none is a number in a column of words."""


@functools.cache
def arrow() -> Any:
    """Import and return pyarrow with compute, csv, ipc and parquet: late, since that takes 0.2 s."""
    import pyarrow
    import pyarrow.compute
    import pyarrow.csv
    import pyarrow.ipc
    import pyarrow.parquet

    return pyarrow


@final
class Texts:
    """A column of some rows: `values`, a pyarrow array of text or numbers, and for each row the index of its value.

    `codes` are int32 [rows], -1 for a missing value. With `is_each` they count up: each row has its own value. Some
    values may have no row, and in columns whose rows differ mostly some may be equal.
    """

    def __init__(self, values: Any, codes: np.ndarray | None = None) -> None:
        """Store the values, a pyarrow array without nulls, and the codes; None if each row has its own value."""
        self.values, self.is_each = values, codes is None
        self.codes = np.arange(len(values), dtype=np.int32) if codes is None else codes
        self._cleaned: dict[tuple[str, ...], Texts] = {}
        self._clean_of: set[tuple[str, ...]] = set()

    def __len__(self) -> int:
        """Return the number of values, not of rows."""
        return len(self.values)

    @property
    def is_text(self) -> bool:
        """Whether the values are text rather than numbers."""
        return bool(arrow().types.is_string(self.values.type))

    @functools.cached_property
    def texts(self) -> Any:
        """The values as a pyarrow string array; whole numbers have no point."""
        return self.values if self.is_text else self.values.cast(arrow().string())

    def text(self, index: int) -> str:
        """Return one of the values as text."""
        return str(self.texts[index].as_py())

    @functools.cached_property
    def numbers(self) -> np.ndarray:
        """The number of each value, float64 [values], NaN if it is not a decimal number."""
        if self.is_text:
            return numbers_of(self.values)
        return self.values.cast(arrow().float64(), safe=False).to_numpy(zero_copy_only=False)

    @functools.cached_property
    def _counts(self) -> np.ndarray:
        """Number of rows of each value, int64 [values]."""
        return np.bincount(self.codes + 1, minlength=len(self) + 1)[1:]

    def rows_of(self, some: np.ndarray) -> int:
        """Return the number of rows whose value is one of `some`, bool [values]."""
        return int(np.count_nonzero(some)) if self.is_each else int(self._counts[some].sum())

    def of_rows(self, of_values: np.ndarray, of_missing: Any) -> np.ndarray:
        """Return the value of each row, [rows]: `of_values[codes]`, and `of_missing` for rows with the code -1.

        If each row has its own value, `of_values` itself is returned.
        """
        if self.is_each:
            return of_values
        return np.append(of_values, of_values.dtype.type(of_missing)).take(self.codes, mode="wrap")  # -1: the last one

    def take(self, codes: np.ndarray) -> "Texts":
        """Return the column for rows of these codes, without values that none of them has."""
        is_used = np.zeros(len(self.values) + 1, np.bool_)
        is_used[codes] = True  # the last one stands for -1
        is_used = is_used[:-1]
        if is_used.all():
            return Texts(self.values, codes)
        code_of = np.append(np.cumsum(is_used, dtype=np.int32) - np.int32(1), np.int32(-1))
        return Texts(self.values.filter(arrow().array(is_used)), code_of[codes])

    def cleaned(self, words: tuple[str, ...]) -> "Texts":
        """Return the column with texts stripped of blanks, and rows whose text is in `words` marked missing. O(rows).

        Results are cached; the column itself is returned if it needs no change.
        """
        if words in self._clean_of:
            return self  # kept apart from other columns: one that refers to itself is freed late
        if words not in self._cleaned:
            made = self if not self.is_text and set(words) <= {*MISSING_WORDS} else self._clean(words)
            made._clean_of.add(words)
            if made is self:
                return self
            self._cleaned[words] = made
        return self._cleaned[words]

    def _clean(self, words: tuple[str, ...]) -> "Texts":
        """Return the column stripped, with rows whose text is in `words` marked -1; what `cleaned` caches."""
        pa = arrow()
        texts = pa.compute.utf8_trim_whitespace(self.texts)
        is_absent = pa.compute.is_in(texts, value_set=pa.array(words, pa.string())).to_numpy(zero_copy_only=False)
        if not is_absent.any():
            is_same = not self.is_text or texts.equals(self.values)
            return self if is_same else Texts(texts, None if self.is_each else self.codes)
        code_of = np.cumsum(~is_absent, dtype=np.int32) - np.int32(1)
        code_of[is_absent] = -1
        kept = (texts if self.is_text else self.values).filter(pa.array(~is_absent))
        return Texts(kept, self.of_rows(code_of, -1))


def coded(column: Any) -> Texts:
    """Return a pyarrow array of text or numbers as `Texts` of distinct values, nulls missing."""
    pa = arrow()
    is_distinct = not pa.types.is_dictionary(column.type)
    column = column.dictionary_encode() if is_distinct else column
    codes = column.indices.fill_null(-1) if column.indices.null_count else column.indices
    codes = codes.cast(pa.int32()).to_numpy()
    return Texts(column.dictionary, codes) if is_distinct else Texts(column.dictionary, np.empty(0)).take(codes)


CATEGORY, LISTS, TIME, NESTED = "category", "lists", "time", "nested"
"""Kinds of columns that their type tells: a dictionary, lists of values, dates or times, structures or other lists."""
BETWEEN = "|"
"""Sign between the values of a list as text."""
UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""Units of durations in a second."""


def kind_of(of: Any) -> str:
    """Return the kind of a column that its pyarrow type tells, "" if its values tell: numbers, truth and text."""
    types = arrow().types
    if hasattr(of, "storage_type"):
        return kind_of(of.storage_type)
    if types.is_dictionary(of):
        return CATEGORY
    if types.is_nested(of):
        inner = of.value_type if _is_list(of) else of
        inner = inner.value_type if types.is_dictionary(inner) else inner
        flat = types.is_integer(inner) or types.is_boolean(inner) or types.is_null(inner) or _is_string(inner)
        return LISTS if flat else NESTED
    return TIME if types.is_temporal(of) and not types.is_duration(of) else ""


def is_number(of: Any) -> bool:
    """Return whether a pyarrow type is one of whole numbers, floating-point numbers or truth."""
    types = arrow().types
    return bool(types.is_integer(of) or types.is_floating(of) or types.is_boolean(of))


def _is_list(of: Any) -> bool:
    """Return whether a pyarrow type is one of lists."""
    types = arrow().types
    return bool(types.is_list(of) or types.is_large_list(of) or types.is_fixed_size_list(of))


def _is_string(of: Any) -> bool:
    """Return whether a pyarrow type is one of strings."""
    types = arrow().types
    return bool(types.is_string(of) or types.is_large_string(of) or types.is_string_view(of))


def _text_of_times(column: Any) -> Any:
    """Return dates or times as strings, without zeros behind the date or behind whole seconds."""
    texts = column.cast(arrow().string())
    for zeros, rest in ((r"\.0+$", ""), (r"(\.[0-9]*[1-9])0+$", r"\1"), (r" 00:00:00$", "")):
        texts = arrow().compute.replace_substring_regex(texts, zeros, rest)
    return texts


def _plain(column: Any) -> Any:
    """Return a pyarrow array as one of numbers or strings, or a dictionary of these.

    Truth is True and False, a duration its seconds, a list its values with `BETWEEN` between them.
    """
    pa = arrow()
    types, of = pa.types, column.type
    if hasattr(of, "storage_type"):
        return _plain(column.storage)
    if types.is_dictionary(of):
        values = _plain(column.dictionary)
        return values.take(column.indices) if values.null_count else type(column).from_arrays(column.indices, values)
    if types.is_integer(of) or types.is_string(of):
        return column
    if types.is_floating(of) or types.is_decimal(of):
        return column.cast(pa.float64(), safe=False)
    if types.is_boolean(of):
        return pa.compute.if_else(column, "True", "False")
    if types.is_duration(of):
        return pa.compute.divide(column.cast(pa.int64()).cast(pa.float64(), safe=False), float(UNITS[of.unit]))
    if _is_list(of):
        texts = _plain(column.flatten())
        texts = texts.dictionary.take(texts.indices) if types.is_dictionary(texts.type) else texts
        ends = pa.compute.cumulative_sum(pa.compute.list_value_length(column).fill_null(0).cast(pa.int32()))
        lists = pa.ListArray.from_arrays(
            pa.concat_arrays([pa.array([0], pa.int32()), ends]), texts.cast(pa.string()).fill_null("")
        )
        return pa.compute.if_else(column.is_valid(), pa.compute.binary_join(lists, BETWEEN), None)
    return _text_of_times(column) if types.is_temporal(of) else column.cast(pa.string())


def texts_of(column: Any) -> Texts:
    """Return a pyarrow array of any type but structures as `Texts`: text and numbers as they are, all else as text.

    Columns of fractions are not made distinct.
    """
    pa = arrow()
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    column = _plain(column)
    if pa.types.is_floating(column.type):
        present = pa.compute.and_(column.is_valid(), pa.compute.invert(pa.compute.is_nan(column).fill_null(True)))
        present = present.to_numpy(zero_copy_only=False)
        if present.all():
            return Texts(column)
        codes = np.cumsum(present, dtype=np.int32) - np.int32(1)
        codes[~present] = -1
        return Texts(column.filter(pa.array(present)), codes)
    if pa.types.is_dictionary(column.type) and not pa.types.is_string(column.type.value_type):
        column = column.dictionary.take(column.indices)
        return texts_of(column)
    return coded(column)


_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def numbers_of(texts: Any) -> np.ndarray:
    """Return the number of each text of a pyarrow string array, float64 [texts]: NaN if it is not a decimal number.

    Numbers beyond float64 are infinite.
    """
    pa = arrow()
    if not len(texts):
        return np.empty(0)
    with contextlib.suppress(pa.ArrowInvalid):
        values = texts.cast(pa.float64()).to_numpy()
        if np.isfinite(values).all():  # inf and nan are words
            return values
    is_number = pa.compute.match_substring_regex(texts, _NUMBER)
    found = is_number.true_count
    if not found:
        return np.full(len(texts), np.nan)
    kept = texts if found == len(texts) else texts.filter(is_number)
    values = pa.compute.utf8_ltrim(kept, "+").cast(pa.float64()).to_numpy()
    if found == len(texts):
        return values
    numbers = np.full(len(texts), np.nan)
    numbers[is_number.to_numpy(zero_copy_only=False)] = values
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


MARKS = r"[ $%'(,]|[^\x{00}-\x{7f}]"
"""Signs of which a number that matches `DRESSED` has one at least."""


def undress(texts: Any) -> Any:
    """Return a pyarrow string array of plain numbers for numbers that match `DRESSED`: "$3,123.00" is "3123.00".

    "(5)" becomes "-5".
    """
    compute = arrow().compute
    digits = compute.replace_substring_regex(texts, rf"{_CURRENCY}|[^0-9.]", "")
    minus = compute.if_else(compute.match_substring_regex(texts, r"^\(|-"), "-", "")
    return compute.binary_join_element_wise(minus, digits, "")


def read_amounts(texts: Texts, booleans: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return (numbers float64 [values], is_dressed bool [values]): NaN for texts that are not numbers.

    Numbers with a currency, digit groups or a percent sign are read too, and flagged; with `booleans` also true and
    false, as 1 and 0. The numbers may be the array that `texts` caches: do not modify.
    """
    numbers, none = texts.numbers, np.zeros(len(texts), np.bool_)
    if not texts.is_text or not np.isnan(numbers).any():
        return numbers, none
    pa = arrow()
    rest = np.flatnonzero(np.isnan(numbers))
    sample = texts.values.take(pa.array(rest[:: max(1, len(rest) // SAMPLE)]))
    if booleans and len(rest) <= len(BOOLEANS):
        words = texts.values.take(pa.array(rest)).to_pylist()
        numbers = numbers.copy()
        numbers[rest] = [BOOLEANS.get(word, np.nan) for word in words]
    if not pa.compute.match_substring_regex(sample, DRESSED).true_count:
        return numbers, none
    others = texts.values.take(pa.array(rest))
    match = pa.compute.match_substring_regex
    is_dressed = pa.compute.and_(match(others, DRESSED), match(others, MARKS))
    found = rest[is_dressed.to_numpy(zero_copy_only=False)]
    none[found] = True
    numbers = numbers.copy()
    numbers[found] = numbers_of(undress(others.filter(is_dressed)))
    return numbers, none


@final
class WrongValueError(DataError):
    """A value that its column cannot hold, in the row of that number, from 0."""

    def __init__(self, row: int, message: str) -> None:
        """Store the message and the row index, from 0, of the value."""
        super().__init__(message)
        self.row = row


def first_row(texts: Texts, wrong: Collection[bool] | np.ndarray) -> tuple[int, str]:
    """Return (index in the block, text) of the first row whose value is flagged in `wrong`, bool [values].

    At least one row must have such a value.
    """
    at = int(np.argmax(texts.of_rows(np.asarray(wrong, bool), False)))
    return at, texts.text(int(texts.codes[at]))


@final
class Distinct:
    """Distinct texts of a column whose blocks come one by one; `held` is their number, some counted twice."""

    def __init__(self) -> None:
        """Start without texts."""
        self._parts: list[Any] = []
        self.held = self._count = 0

    def add(self, texts: Any, at_once: int = 1 << 10) -> None:
        """Add a pyarrow string array; the parts are joined when they have become twice as many, and `at_once` more."""
        self._parts.append(texts)
        self.held += len(texts)
        if self.held > 2 * self._count + at_once:
            self.array()

    def array(self) -> Any:
        """Return the texts in order of their first addition as a pyarrow string array."""
        pa = arrow()
        joined = pa.concat_arrays(self._parts).unique() if self._parts else pa.array([], pa.string())
        self._parts, self.held, self._count = [joined], len(joined), len(joined)
        return joined

    def in_order(self) -> tuple[str, ...]:
        """Return the texts sorted by code points."""
        return tuple(sorted(self.array().to_pylist()))


def places_of(texts: Any, values: Any) -> np.ndarray:
    """Return the place of each text of a pyarrow string array in another one, int32 [texts], -1 if it is not there."""
    return arrow().compute.index_in(texts, value_set=values).fill_null(-1).to_numpy(zero_copy_only=False)


def hashed(texts: Any, buckets: int) -> np.ndarray:
    """Return the bucket of each text of a pyarrow string array, int32 [texts]: `pandas.util.hash_array` % `buckets`."""
    from pandas.util import hash_array

    words = np.array(texts.to_pylist(), object)
    return (hash_array(words, categorize=False) % np.uint64(buckets)).astype(np.int32)


def strings_of(texts: Sequence[str]) -> Any:
    """Return a sequence of str as a pyarrow string array."""
    return arrow().array(texts, arrow().string())
