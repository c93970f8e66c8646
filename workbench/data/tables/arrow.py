"""pyarrow, which reads and splits tables: imported when a table is read, and what a column of it is turned into.

Each column of a block of rows becomes its distinct texts and, for each row, the number of its text: whatever is done to
a value is done once for each distinct one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.data.errors import DataError

MISSING_WORDS = ("", "?", "\\N", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None")
"""What stands for a missing value, blanks around it taken off."""
LARGEST_FLOAT32 = float(np.finfo(np.float32).max)

_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def arrow() -> Any:
    """The package pyarrow; `DataError` where it is not installed."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
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
    """The texts of a pyarrow array of any type that is no list or structure, as they stand; nulls are missing."""
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
    """The strings of a pyarrow array without nulls, each for itself."""
    return Texts(column, np.arange(len(column), dtype=np.int32))


def cleaned(texts: Texts, missing: Sequence[str]) -> Texts:
    """The same column without blanks around its texts; those that are one of the words `missing` are. O(rows)."""
    pa = arrow()
    distinct = pa.compute.utf8_trim_whitespace(texts.distinct)
    shortest = pa.compute.min(pa.compute.binary_length(distinct)).as_py()
    if shortest is None or shortest > max(len(word.encode()) for word in missing):
        return Texts(distinct, texts.numbers)
    absent = pa.compute.is_in(distinct, value_set=pa.array(missing, pa.string()))
    is_absent = absent.to_numpy(zero_copy_only=False)
    if not is_absent.any():
        return Texts(distinct, texts.numbers)
    number_of = np.append(np.cumsum(~is_absent, dtype=np.int32) - 1, np.int32(-1))  # the last is that of -1
    number_of[:-1][is_absent] = -1
    return Texts(distinct.filter(pa.compute.invert(absent)), number_of[texts.numbers])


def numbers_of(distinct: Any) -> np.ndarray:
    """The numbers that texts stand for, float64; NaN for a text that is none. Beyond float64 they are infinite."""
    pa = arrow()
    try:
        numbers = distinct.cast(pa.float64()).to_numpy(zero_copy_only=False)
        if np.isfinite(numbers).all():  # else there may be words such as inf
            return numbers
    except pa.ArrowInvalid:
        pass
    is_number = pa.compute.match_substring_regex(distinct, _NUMBER)
    chosen = is_number.to_numpy(zero_copy_only=False)
    numbers = np.full(len(distinct), np.nan)
    if chosen.any():
        unsigned = pa.compute.utf8_ltrim(distinct.filter(is_number), "+")
        numbers[chosen] = unsigned.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return numbers
