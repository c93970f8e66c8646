"""A table into a matrix and labels, block by block; what a block needs of all rows is learned in a pass before."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, final

import numpy as np
import scipy.sparse

from workbench.data.errors import DataError, column_advice, reader_option_advice
from workbench.data.labels import NONE, Wanted, format_names
from workbench.data.tables.blocks import Block, Table
from workbench.data.tables.schema import BUCKETS, Column
from workbench.data.tables.sparse_fields import SparseTable
from workbench.data.tables.texts import (
    MISSING_WORDS,
    Distinct,
    Texts,
    WrongValueError,
    arrow,
    first_row,
    hashed,
    places_of,
    read_amounts,
    strings_of,
)
from workbench.formats.compressed import INT32_LIMIT, assemble, index_dtype
from workbench.option_text import typed

LARGEST_FLOAT32 = float(np.finfo(np.float32).max)
MOST_SAMPLED = 1 << 18
"""Rows of a column, at most, whose ranges are found exactly; beyond, they are those of a random sample."""


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


# Numbers into columns of the matrix: the number itself, its logarithm, or ranges of equally many rows.


@final
class Spread:
    """Largest magnitude of numbers, and the deviation from their mean, combined as of two samples (Chan et al. 1979).

    Sums are of the widest floating-point numbers, so that squares of few are infinite.
    """

    def __init__(self) -> None:
        """Start without numbers."""
        self.largest, self._count = 0.0, 0
        self._mean = self._squares = np.longdouble(0)

    def add(self, numbers: np.ndarray) -> None:
        """Add finite numbers, float64 [n]."""
        if not len(numbers):
            return
        self.largest = max(self.largest, float(np.abs(numbers).max()))
        wide = numbers.astype(np.longdouble)
        mean, total = wide.mean(), self._count + len(numbers)
        apart = mean - self._mean
        self._squares += ((wide - mean) ** 2).sum() + apart**2 * self._count * len(numbers) / total
        self._mean += apart * len(numbers) / total
        self._count = total

    def deviation(self) -> float:
        """Return the population standard deviation, 0.0 without numbers; the largest magnitude if it is infinite."""
        deviation = float(np.sqrt(self._squares / max(self._count, 1)))
        return deviation if np.isfinite(deviation) else self.largest


@final
class Sample:
    """All numbers up to `MOST_SAMPLED`, beyond these a random sample of at least half as many."""

    def __init__(self) -> None:
        """Start without numbers."""
        self._parts: list[np.ndarray] = []
        self._count, self._each = 0, 1.0
        self._random = np.random.default_rng(0)

    def add(self, numbers: np.ndarray) -> None:
        """Add numbers, float64 [n], each with the probability that those before were kept with."""
        self._parts.append(numbers if self._each == 1 else self._thinned(numbers, self._each))
        self._count += len(self._parts[-1])
        while self._count > MOST_SAMPLED:
            self._parts = [self._thinned(np.concatenate(self._parts), 0.5)]
            self._count, self._each = len(self._parts[0]), self._each / 2

    def _thinned(self, numbers: np.ndarray, share: float) -> np.ndarray:
        """Return a random `share` of the numbers."""
        return numbers[self._random.random(len(numbers)) < share]

    def cuts(self, bins: int) -> np.ndarray:
        """Return at most `bins - 1` increasing numbers that cut the sample into ranges of about equal row counts.

        Each is one of the numbers, and above the smallest, so that no range is empty. The array is empty without
        numbers.

        >>> sample = Sample()
        >>> sample.add(np.array([0.0, 0, 0, 1, 2, 3, 4]))
        >>> sample.cuts(4).tolist()
        [1.0, 3.0]
        """
        numbers = np.sort(np.concatenate(self._parts)) if self._parts else np.empty(0)
        cuts = np.unique(numbers[np.arange(1, bins) * len(numbers) // bins]) if len(numbers) else numbers
        return cuts[cuts > numbers[0]] if len(cuts) else cuts


@final
class Numbers:
    """Ranges by quantiles, or numbers by their spread, where edges or the divisor are not given."""

    def __init__(self, column: Column) -> None:
        """Set up encoding by ranges (quantile edges) or by scale.

        `is_learned` if the column already has edges or divisor.
        """
        self.column, self.is_binned = column, column.encoding == "binned"
        is_scaled = column.divisor is not None or column.scaling == "none"
        self.is_learned = column.edges is not None if self.is_binned else is_scaled
        self._sample, self._spread = Sample(), Spread()

    def learn(self, texts: Texts, row: int) -> None:
        """Add some rows to the sample (binned) or to the spread (kept or log) of the column.

        Missing values are skipped. `row` is the index of the first row in the table. Raises WrongValueError with the
        row of a text that is not a finite number.
        """
        numbers = texts.of_rows(self._numbers(texts, row), np.nan)
        numbers = numbers if texts.is_each else numbers[texts.codes >= 0]
        if self.is_binned:
            self._sample.add(numbers)
        else:
            self._spread.add(numbers)

    def learned(self) -> Column:
        """Return the column with its quantile `edges`, or its `divisor` (largest or deviation; 1.0 if 0)."""
        if self.is_binned:
            return dataclasses.replace(self.column, edges=tuple(self._sample.cuts(self.column.bins or 1).tolist()))
        divisor = self._spread.largest if self.column.scaling == "largest" else self._spread.deviation()
        return dataclasses.replace(self.column, divisor=divisor or 1.0)

    def encode(self, texts: Texts, row: int) -> Encoded:
        """Return one entry per row: the index of its range with value 1, or the scaled number in column 0.

        Missing values have an entry in the last column. A scaled 0 has no entry (index -1). Range i holds
        edges[i - 1] <= number < edges[i]. Raises WrongValueError for text or values beyond float32; `row` is the index
        of the first row.
        """
        numbers = self._numbers(texts, row)
        if not self.is_binned:
            return self._kept(numbers, texts, row)
        ranges = np.searchsorted(self.column.edges or (), numbers, side="right").astype(np.int32)
        width = len(self.column.edges or ()) + 1
        if self.column.optional:
            return Encoded(width, texts.of_rows(ranges, -1))
        return Encoded(width + 1, texts.of_rows(ranges, width))

    def _numbers(self, texts: Texts, row: int) -> np.ndarray:
        """Return the number of each value, float64 [values]; sign(x) * log(1 + |x|) if the encoding is "log".

        Raises WrongValueError with the index (from `row`) of the first row whose value is not a finite number; values
        that no row refers to are allowed.
        """
        numbers, _ = read_amounts(texts, booleans=True)
        wrong = ~np.isfinite(numbers)
        if wrong.any() and texts.of_rows(wrong, False).any():
            at, text = first_row(texts, wrong)
            raise WrongValueError(row + at, self._refusal(text))
        return np.sign(numbers) * np.log1p(np.abs(numbers)) if self.column.encoding == "log" else numbers

    def _refusal(self, text: str) -> str:
        """Return the error message for `text`, which is not a finite number as this column needs."""
        shown = repr(text if len(text) <= 40 else f"{text[:40]}...")
        taken_out = "Take the row out of the file if it is a total or a comment."
        advice = column_advice(self.column.name, kind="number", missing=[text])
        what = f"column {self.column.name!r} holds numbers, and {shown} is no finite one.\n{taken_out}"
        return f"{what} If it stands for none: {advice}."

    def _kept(self, numbers: np.ndarray, texts: Texts, row: int) -> Encoded:
        """Return the numbers divided by the column's divisor as values of column 0; missing rows have a 1 in column 1.

        `numbers` is float64 [values]. Zeros get the index -1 (no entry). Raises WrongValueError for values beyond
        float32, with the row counted from `row`.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # refused below
            values = numbers if self.column.divisor is None else numbers / self.column.divisor
        if not max(values.max(initial=0), -values.min(initial=0)) <= LARGEST_FLOAT32:
            beyond = texts.of_rows(np.abs(values) > LARGEST_FLOAT32, False)
            if beyond.any():
                at = int(np.argmax(beyond))
                advice = column_advice(self.column.name, kind="number", encoding="log")
                what = f"column {self.column.name!r} holds {values[texts.codes[at]]:g}, which float32 does not"
                raise WrongValueError(row + at, f"{what}.\nBy logarithms: {advice}.")
        is_optional = self.column.optional
        values = texts.of_rows(values.astype(np.float32), 0 if is_optional else 1)
        indices = np.zeros(len(values), np.int32) if texts.is_each else (texts.codes < 0).astype(np.int32)
        indices[values == 0] = -1  # zeros are not stored
        return Encoded(1 if is_optional else 2, indices, values)


# The column of labels into what the meaning of labels is read from: numbers, texts, or several texts a row.


LONGEST = 200
"""Characters of a label, at most."""
MOST_NAMES = 32
"""Different labels with a currency, groups of digits or a percent sign, at most, that are names of classes."""
MOSTLY = 0.9
"""Share of rows with numbers from which on other labels are taken to be mistakes."""


_WITHOUT_SUCH_ROWS = reader_option_advice("to leave such rows out", unlabelled="skip")


@final
class LabelColumn:
    """Learns of all rows whether labels are numbers, whole ones, or text, and then gives those of each block.

    A label that is missing is refused (`WrongValueError`) unless rows have several.
    """

    def __init__(self, column: Column, wanted: Wanted) -> None:
        """Start label statistics of a column; `wanted` states kind and classes as far as the user gave them."""
        self.column, self.wanted = column, wanted
        self.are_whole = True
        self.rows = self.rows_of_text = 0
        self.first_text: tuple[int, str] | None = None
        self.first_amount: tuple[int, str] | None = None
        self.rows_of_amounts, self._amounts = 0, set[str]()
        self.are_words_for_missing = True

    def learn(self, texts: Texts, row: int) -> None:
        """Update the label statistics with some rows; `row` is the index of the first. Does nothing for multilabel.

        Raises WrongValueError with the row of a label that is missing or longer than `LONGEST` characters.
        """
        if self.wanted.kind == "multilabel":
            return
        if (texts.codes < 0).any():
            missing = f"column {self.column.name!r} has no label here; each row needs one.\n{_WITHOUT_SUCH_ROWS}"
            raise WrongValueError(row + int(np.argmin(texts.codes)), missing)
        self._refuse_long(texts, row)
        numbers, is_amount = read_amounts(texts)
        if is_amount.any():
            self._note_amounts(texts, row, is_amount)
        is_text = np.isnan(numbers)
        row_is_text = texts.of_rows(is_text, False)
        if row_is_text.any():
            at, text = first_row(texts, is_text)
            self.first_text = self.first_text or (row + at, text)
            words = texts.texts.filter(arrow().array(is_text)).to_pylist()
            self.are_words_for_missing &= set(words) <= set(MISSING_WORDS)
        self.rows += len(texts.codes)
        self.rows_of_text += int(row_is_text.sum())
        self.are_whole = self.are_whole and _whole(texts.texts) is not None

    def _note_amounts(self, texts: Texts, row: int, is_amount: np.ndarray) -> None:
        """Update the first label, row count and set of texts of labels with currency, digit groups or percent sign.

        `is_amount` is bool [texts]; `row` is the index of the block's first row. At most about `MOST_NAMES` texts are
        kept.
        """
        at, text = first_row(texts, is_amount)
        self.first_amount = self.first_amount or (row + at, text)
        self.rows_of_amounts += int(texts.of_rows(is_amount, False).sum())
        if len(self._amounts) <= MOST_NAMES:
            self._amounts |= set(texts.texts.filter(arrow().array(is_amount)).to_pylist())

    @property
    def are_amounts(self) -> bool:
        """Whether labels with currency, digit groups or percent sign are regression targets rather than class names.

        That is so if the kind "numbers" was requested, or nothing was and there are more than `MOST_NAMES` such labels.
        """
        is_said = self.wanted.kind is not None or self.wanted.classes is not None
        return self.wanted.kind == "numbers" or (not is_said and len(self._amounts) > MOST_NAMES)

    def check(self) -> None:
        """Decide, after all rows, whether labels are text; raise WrongValueError for probable mistakes.

        Labels are refused if at most a tenth of the rows, or only words for missing values, are text among numbers and
        the user stated neither kind nor classes. Call it once.
        """
        if self.first_amount is not None and not self.are_amounts:
            self.first_text = min(filter(None, (self.first_text, self.first_amount)))
            self.rows_of_text += self.rows_of_amounts
        if self.first_text is None or self.rows_of_text == self.rows:
            return
        is_said = self.wanted.kind is not None or self.wanted.classes is not None
        if not is_said and (self.are_words_for_missing or self.rows_of_text <= (1 - MOSTLY) * self.rows):
            row, text = self.first_text
            advice = f"Fix it. If labels are names: {typed(kind='classes')}."
            what = f"the label in column {self.column.name!r} is {text!r}, and others are numbers"
            advice = f"{advice}\n{_WITHOUT_SUCH_ROWS}" if self.are_words_for_missing else advice
            raise WrongValueError(row, f"{what}. {advice}")

    def labels(self, texts: Texts) -> np.ndarray | list[tuple]:
        """Return the labels of some rows, [rows]: int64 if all labels of the table are whole numbers, float64, or str.

        For multilabel the result is a list of tuples of names, () for a missing value; the text is split at commas.
        Call `check` before. Raises WrongValueError, of the first row, for text among labels that held none until then.
        """
        if self.wanted.kind == "multilabel":
            names = [tuple(filter(None, map(str.strip, text.split(",")))) for text in texts.texts.to_pylist()]
            return [() if number < 0 else names[number] for number in texts.codes]
        if self.first_text is not None:
            return np.array(texts.texts.to_pylist(), str)[texts.codes]
        numbers = _whole(texts.texts) if self.are_whole else read_amounts(texts)[0]
        if numbers is None:
            what = (
                f"the labels in column {self.column.name!r} were numbers when the file was read first, and are text now"
            )
            raise WrongValueError(0, f"{what}. Read it again when it is complete.")
        return numbers[texts.codes]

    def _refuse_long(self, texts: Texts, row: int) -> None:
        """Raise WrongValueError with the row of a label longer than `LONGEST` characters.

        `row` is the block's first index.
        """
        lengths = arrow().compute.utf8_length(texts.texts).to_numpy()
        if (lengths > LONGEST).any():
            at = int(np.argmax(texts.of_rows(lengths, 0) > LONGEST))
            advice = "name the column of labels: label = ..."
            raise WrongValueError(row + at, f"the label has {lengths.max():,} characters, at most {LONGEST}; {advice}.")


def _whole(distinct: Any) -> np.ndarray | None:
    """Return a pyarrow string array as int64 [texts]; None if a text is not a plain whole number."""
    pa = arrow()
    try:
        return distinct.cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        return None


# Categories into columns of 0 and 1, one for each value, or hashed into buckets; texts into counts of hashed words.


MOST_VALUES = 1 << 20
"""Values of a column, at most, that have a column of the matrix each."""
MOST_WORDS = 100_000
"""Words of a text column, at most, that have a column of the matrix each; more are hashed."""
_BETWEEN = r"[^\p{L}\p{N}_]+"
"""What separates words: RE2 for anything but letters, digits and underscores."""


@final
class OneHot:
    """A column of the matrix for each value, in the order of code points, and a last one for values missing or unknown.

    Values that are given stand in their order, and others are unknown.
    """

    def __init__(self, column: Column) -> None:
        """Take the column's values; `is_learned` if it has any."""
        self.column, self.is_learned = column, column.values is not None
        self._distinct = Distinct()
        self._values = strings_of(column.values or ())

    def learn(self, texts: Texts, row: int) -> None:
        """Add the texts of some rows to the values. O(rows + values).

        Raises WrongValueError for more than `MOST_VALUES` values; `row` is the index of the first row.
        """
        self._distinct.add(texts.texts)
        if self._distinct.held > MOST_VALUES and len(self._distinct.array()) > MOST_VALUES:
            advice = column_advice(self.column.name, kind="category", encoding="hashed")
            at, _ = first_row(texts, places_of(texts.texts, self._distinct.array()) >= MOST_VALUES)
            raise WrongValueError(
                row + at, f"column {self.column.name!r} has more than {MOST_VALUES:,} values.\nBy hashing: {advice}."
            )

    def learned(self) -> Column:
        """Return the column with its distinct values in code point order."""
        return self.column.with_values(self._distinct.in_order())

    def encode(self, texts: Texts, row: int) -> Encoded:
        """Return one entry of value 1 per row: the index of its value; missing and unknown values have the last index.

        `row` is not used.
        """
        places, count = places_of(texts.texts, self._values), len(self._values)
        if self.column.optional:
            return Encoded(count, texts.of_rows(places, -1))
        return Encoded(count + 1, texts.of_rows(np.where(places < 0, np.int32(count), places), count))


@final
class Buckets:
    """Columns of hashed texts: one for each bucket, or if `kept` is given for each that occurs."""

    def __init__(self, column: Column) -> None:
        """Set up the buckets of a column; with `kept` of () those that occur are to be learned."""
        self.buckets, self.is_learned = column.buckets or BUCKETS, column.kept != ()
        self._occurs = np.zeros(self.buckets, np.bool_)
        self.width = self.buckets if column.kept is None else len(column.kept)
        self._place: np.ndarray | None = None
        if column.kept is not None:
            self._place = np.full(self.buckets, -1, np.int32)
            self._place[list(column.kept)] = np.arange(self.width)

    def learn(self, distinct: Any) -> None:
        """Note the buckets of the texts of a pyarrow string array."""
        self._occurs[hashed(distinct, self.buckets)] = True

    def kept(self) -> tuple[int, ...]:
        """Return the buckets that were noted, the first one if there are none."""
        return tuple(np.flatnonzero(self._occurs).tolist()) or (0,)

    def find(self, distinct: Any) -> np.ndarray:
        """Return the column of each text of a pyarrow string array, int32 [texts]; -1 for a bucket that has none."""
        found = hashed(distinct, self.buckets)
        return found if self._place is None else self._place[found]


@final
class Hashed:
    """A column of the matrix for each bucket of the hashes of values, and a last one for missing values."""

    def __init__(self, column: Column) -> None:
        """Store the column and its buckets."""
        self.column, self._buckets = column, Buckets(column)
        self.is_learned = self._buckets.is_learned

    def learn(self, texts: Texts, row: int) -> None:
        """Note the buckets that occur in some rows; `row` is not used."""
        self._buckets.learn(texts.texts)

    def learned(self) -> Column:
        """Return the column with the buckets that occur."""
        return dataclasses.replace(self.column, kept=self._buckets.kept())

    def encode(self, texts: Texts, row: int) -> Encoded:
        """Return one entry of value 1 per row; a missing value has the last index, a bucket without column no entry.

        `row` is not used. O(rows + characters of distinct texts).
        """
        width, is_optional = self._buckets.width, self.column.optional
        places = texts.of_rows(self._buckets.find(texts.texts), -1 if is_optional else width)
        return Encoded(width + (not is_optional), places)


@final
class Bag:
    """Several entries a row: counts of the words of a text, or a 1 for each part of a value such as a|b|c.

    Words and parts have a column each; more than `MOST_WORDS` words are hashed. A last column is for missing values.
    """

    def __init__(self, column: Column) -> None:
        """Set up an empty vocabulary, or that of the values of the column, or its buckets."""
        self.column = column
        self._buckets = Buckets(column)
        self._is_hashed = column.encoding == "hashed"
        self.is_learned = self._buckets.is_learned if self._is_hashed else column.values is not None
        self._distinct, self._values = Distinct(), strings_of(column.values or ())

    def learn(self, texts: Texts, row: int) -> None:
        """Add the words or parts of some rows; `row` is the index of their first.

        Raises WrongValueError for more than `MOST_VALUES` parts.
        """
        words = self._split(texts.texts)[1].dictionary
        words = words.filter(arrow().compute.not_equal(words, ""))
        if self.column.kind == "text":
            self._buckets.learn(words)
        if not self._is_hashed and (self._distinct.held <= self._most or len(self._distinct.array()) <= self._most):
            self._distinct.add(words)
        if self.column.kind != "text" and self._distinct.held > MOST_VALUES < len(self._distinct.array()):
            what = f"column {self.column.name!r} has more than {MOST_VALUES:,} values between {self.column.separator!r}"
            raise WrongValueError(row, f"{what}.\nAs text: {column_advice(self.column.name, kind='text')}.")

    @property
    def _most(self) -> int:
        """Words or parts that have a column each, at most."""
        return MOST_WORDS if self.column.kind == "text" else MOST_VALUES

    def learned(self) -> Column:
        """Return the column with its words or parts in code point order, with its buckets if there are too many."""
        if self._is_hashed or len(self._distinct.array()) > self._most:
            kept, buckets = self._buckets.kept(), self._buckets.buckets
            return dataclasses.replace(self.column, encoding="hashed", buckets=buckets, kept=kept)
        return self.column.with_values(self._distinct.in_order())

    def encode(self, texts: Texts, row: int) -> Encoded:
        """Return the entries of each row: one per distinct column, counts of words or ones, indices sorted.

        A missing value has the last index. `row` is not used. O(entries + characters of distinct texts).
        """
        width = self._buckets.width if self._is_hashed else len(self._values)
        lengths, indices, counts = self._bags(texts.texts, width)
        starts = np.cumsum(lengths) - lengths
        of_row, length = starts[texts.codes], lengths[texts.codes]
        before = np.cumsum(length) - length
        entries = np.arange(length.sum()) + np.repeat(of_row - before, length)
        width += not self.column.optional
        return Encoded(width, indices[entries], counts[entries], length.astype(np.int32))

    def _split(self, distinct: Any) -> tuple[np.ndarray, Any]:
        """Return (index of the text of each word or part, these as a pyarrow dictionary array), of a string array."""
        compute = arrow().compute
        if self.column.kind == "text":
            split = compute.split_pattern_regex(compute.utf8_lower(distinct), _BETWEEN)
            words = split.flatten()
        else:
            split = compute.split_pattern(distinct, self.column.separator)
            words = compute.utf8_trim_whitespace(split.flatten())
        return compute.list_parent_indices(split).to_numpy(), words.dictionary_encode()

    def _bags(self, distinct: Any, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (lengths, indices, values) of the words or parts of a pyarrow string array, for each text in turn.

        `lengths` [texts + 1] is the number of entries per text, `indices` int32 and `values` float32 [entries] are
        sorted by index in each text. The appended last text, one entry in column `width`, stands for a missing value.
        """
        parents, words = self._split(distinct)
        known = words.dictionary
        of_word = self._buckets.find(known) if self._is_hashed else places_of(known, self._values)
        is_word = arrow().compute.binary_length(words.dictionary).to_numpy(zero_copy_only=False) > 0
        index = np.where(is_word, of_word, -1)[words.indices.to_numpy()]
        text = parents[index >= 0].astype(np.int64)
        keys, counts = np.unique(text * width + index[index >= 0], return_counts=True)
        if self.column.kind != "text":
            counts[:] = 1
        lengths = np.append(np.bincount(keys // max(width, 1), minlength=len(distinct)), not self.column.optional)
        indices = np.append(keys % max(width, 1), width).astype(np.int32)
        return lengths, indices, np.append(counts, 1).astype(np.float32)


ENCODERS: dict[tuple[str, str], Callable[[Column], Encoder]] = {
    ("category", "one-hot"): OneHot,
    ("category", "hashed"): Hashed,
    ("category", "multi-hot"): Bag,
    ("number", "binned"): Numbers,
    ("number", "keep"): Numbers,
    ("number", "log"): Numbers,
    ("text", "words"): Bag,
    ("text", "hashed"): Bag,
}
"""What encodes a column of each kind and encoding."""


ROWS_AT_ONCE = 1 << 12
"""Rows whose entries are put in place at once."""


class Part(NamedTuple):
    """Some rows of a table: `x` csr [rows, features] float32, canonical; labels as they stand, an array or tuples."""

    x: scipy.sparse.csr_array
    labels: Any


@final
@dataclass(frozen=True)
class Learned:
    """A table of which all is known that its rows are encoded by: `columns` in order, with values, edges, divisors."""

    table: Table
    columns: tuple[Column, ...]
    labels: LabelColumn | None
    """The labels; None of a table that is read without."""
    is_of_first: bool = False
    """Whether the columns were learned of the first rows alone, so that labels have still to be checked."""

    def parts(self) -> Iterator[Part]:
        """Yield all rows in order as `Part`s: a CSR block [rows, features] and its labels (zeros if none).

        Reads the table once; memory holds one block. Raises DataError with file and line for a value that its column
        cannot hold.
        """
        encoders = {column.name: _encoder(column) for column in features_of(self.columns)}
        label = [] if self.labels is None else [self.labels.column]
        words = _words([*features_of(self.columns), *label])
        try:
            if isinstance(self.table, SparseTable):
                x, labels = _matrix_of_fields(self.table, encoders, words), np.zeros(self.table.rows)
                for block, _, _ in _blocks(self.table, _words(label)):
                    labels = self._labels(block, words, self.table.rows, 0)
                yield Part(x, labels)
                return
            for block, row, rows in _blocks(self.table, words):
                labels = self._labels(block, words, rows, row)
                encoded = [
                    encoder.encode(block.pop(name).cleaned(words[name]), row) for name, encoder in encoders.items()
                ]
                yield Part(matrix(encoded, rows), labels)
        except WrongValueError as error:
            raise DataError(f"{self.table.place(error.row)}: {error}") from None

    def _labels(self, block: Block, words: Mapping[str, tuple[str, ...]], rows: int, row: int) -> Any:
        """Return the labels of the `rows` of a block, from number `row` on; zeros if there are none."""
        if self.labels is None:
            return np.zeros(rows)
        name = self.labels.column.name
        texts = block[name].cleaned(words[name])
        if self.is_of_first:
            self.labels.learn(texts, row)
        return self.labels.labels(texts)

    def of_first(self, columns: tuple[Column, ...], table: Table) -> "Learned":
        """Return the encoding of a whole table by `columns`, where this one was learned of its first rows."""
        if self.labels is not None and self.labels.first_text is None:
            self.labels.are_whole = False  # fractions may come
        return Learned(table, columns, self.labels, True)


def learn(table: Table, columns: tuple[Column, ...], wanted: Wanted) -> Learned:
    """Read the table once and return it with everything needed to encode its rows: values, edges, divisors, label kind.

    `columns` are in the order of the features; "ignored" ones are left out, and the "label" one too if `wanted.kind` is
    "none". Nothing is read if all columns are complete and there is no label. Raises DataError with file and line for
    an invalid value, or if no column is a feature. Memory holds a block, the values of categories, and the sketches of
    numeric columns.
    """
    found = (column for column in columns if column.kind == "label" and wanted.kind != NONE)
    label = next(found, None)
    if not (features := features_of(columns)):
        ignored = [column for column in columns if column.kind == "ignored"]
        but = "" if label is None else f" but {label.name!r}"
        reasons = f": {format_names(f'{one.name} ({one.why})' for one in ignored)}" if ignored else ""
        advice = f"To learn from one: {column_advice(ignored[0].name, kind='number')}." if ignored else ""
        what = f"{table.path} has no column to learn from: all{but} are ignored{reasons}"
        raise DataError(f"{what}.\n{advice or 'Give a table with more columns.'}")
    open_ones = {column.name: encoder for column in features if not (encoder := _encoder(column)).is_learned}
    labels = None if label is None else LabelColumn(label, wanted)
    of_label = [] if label is None else [label]
    words = _words([*(column for column in features if column.name in open_ones), *of_label])
    try:
        if isinstance(table, SparseTable):
            for name, encoder in open_ones.items():
                table.apply(name, encoder.column.optional, words[name], encoder.learn)
            words = _words(of_label)
        for block, row, _ in _blocks(table, words) if words else ():
            if labels is not None:
                labels.learn(block[labels.column.name].cleaned(words[labels.column.name]), row)
            for name, encoder in open_ones.items() if not isinstance(table, SparseTable) else ():
                encoder.learn(block[name].cleaned(words[name]), row)
        if labels is not None:
            labels.check()
    except WrongValueError as error:
        raise DataError(f"{table.place(error.row)}: {error}") from None
    known = (open_ones[column.name].learned() if column.name in open_ones else column for column in columns)
    return Learned(table, tuple(known), labels)


def _matrix_of_fields(
    table: SparseTable, encoders: Mapping[str, Encoder], words: Mapping[str, tuple[str, ...]]
) -> scipy.sparse.csr_array:
    """Return the columns of a table that is held by its fields as canonical CSR, float32. O(entries + names)."""
    rows, indices, values, width = [np.empty(0, np.int32)], [np.empty(0, np.int64)], [np.empty(0, np.float32)], 0
    for name, encoder in encoders.items():
        of_row, encoded = table.apply(name, encoder.column.optional, words[name], encoder.encode)
        of_row = of_row if encoded.lengths is None else np.repeat(of_row, encoded.lengths)
        kept = encoded.indices >= 0
        rows.append(of_row[kept])
        indices.append(encoded.indices[kept] + np.int64(width))
        values.append(np.ones(len(of_row), np.float32)[kept] if encoded.values is None else encoded.values[kept])
        width += encoded.width
    if width > INT32_LIMIT:
        raise DataError(f"The columns make {width:,} features; at most 2**31 - 1 are held: hash into fewer buckets.")
    entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(indices).astype(np.int32))
    made = scipy.sparse.coo_array(entries, shape=(table.rows, width)).tocsr()
    made.sort_indices()
    dtype = index_dtype(table.rows, width, made.nnz)
    return assemble("csr", made.indptr.astype(dtype), made.indices.astype(dtype), made.data, made.shape)


def features_of(columns: tuple[Column, ...]) -> list[Column]:
    """Return the columns that become features, in order: all but labels and ignored ones."""
    return [column for column in columns if column.kind not in ("label", "ignored")]


def feature_names(columns: tuple[Column, ...]) -> list[str]:
    """Return the names of the columns of the matrix, such as age, color=red, color missing, text bucket 7."""
    names: list[str] = []
    for column in features_of(columns):
        if column.values is not None:
            names += [f"{column.name}={value}" for value in column.values]
        elif column.encoding == "hashed":
            names += [f"{column.name} bucket {bucket}" for bucket in column.kept or range(column.buckets or BUCKETS)]
        elif column.edges is not None:
            names += [f"{column.name} range {place}" for place in range(len(column.edges) + 1)]
        else:
            names.append(column.name)
        names += [] if column.optional else [f"{column.name} missing"]
    return names


def _encoder(column: Column) -> Encoder:
    """Return a new encoder for a column, chosen by its kind and encoding; KeyError for an unknown combination."""
    return ENCODERS[column.kind, column.encoding](column)


def _words(columns: list[Column]) -> dict[str, tuple[str, ...]]:
    """Return {column name: texts that mean a missing value}; for the label the empty text and those it declares."""
    return {
        column.name: ("", *column.missing) if column.kind == "label" else missing_words(column) for column in columns
    }


def _blocks(table: Table, names: Iterable[str]) -> Iterator[tuple[Block, int, int]]:
    """Yield (block, index of its first row, number of its rows) of the columns `names`, not cleaned.

    What is taken out of a block is held no more. Raises DataError as reading the table does.
    """
    row = 0
    for block in table.blocks(list(names)):
        rows = len(next(iter(block.values())).codes)
        yield block, row, rows
        row += rows


def missing_words(column: Column) -> tuple[str, ...]:
    """Return the texts that mean a missing value in a column: usual and declared ones, not its own values."""
    words = (*MISSING_WORDS, *column.missing)
    named = set(words).intersection(column.values or ())
    return tuple(word for word in words if word not in named) if named else words


def matrix(encoded: list[Encoded], rows: int) -> scipy.sparse.csr_array:
    """Return the encoded columns side by side as canonical CSR, float32 [rows, sum of widths]. O(entries).

    Raises DataError if the widths sum to 2**31 or more.
    """
    width = sum(one.width for one in encoded)
    if width > INT32_LIMIT:
        raise DataError(f"The columns make {width:,} features; at most 2**31 - 1 are held: hash into fewer buckets.")
    lengths = np.zeros(rows, np.int64)
    for one in encoded:
        lengths += one.indices >= 0 if one.lengths is None else one.lengths
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    dtype = index_dtype(rows, width, int(indptr[-1]))
    indices, data = np.empty(indptr[-1], dtype), np.empty(indptr[-1], np.float32)
    ends = [None if one.lengths is None else np.cumsum(one.lengths) for one in encoded]
    for start in range(0, rows, ROWS_AT_ONCE):  # whose entries are in the cache
        some = slice(start, start + ROWS_AT_ONCE)
        free, first = indptr[:-1][some].copy(), 0  # the next free place of each row
        for one, end in zip(encoded, ends, strict=True):
            if end is None or one.lengths is None:
                found, values = one.indices[some], None if one.values is None else one.values[some]
                is_entry = found >= 0
                places = free
                if not is_entry.all():
                    found, places = found[is_entry], free[is_entry]
                    values = None if values is None else values[is_entry]
                free = free + is_entry
            else:
                length, entries = one.lengths[some], slice(end[start] - one.lengths[start], end[some][-1])
                found, values = one.indices[entries], None if one.values is None else one.values[entries]
                before = np.cumsum(length) - length
                places = np.repeat(free - before, length) + np.arange(len(found))
                free = free + length
            indices[places] = found + dtype.type(first)
            data[places] = 1 if values is None else values
            first += one.width
    return assemble("csr", indptr.astype(dtype), indices, data, (rows, width))
