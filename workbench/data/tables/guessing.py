"""Guesses of the kind of each column of a table, from all of its rows, where nobody states it.

The rules, the first that fits: a column of structures, or without a value, or with one value in all rows, is ignored.
Lists of texts or whole numbers are several values a row; a column of the type of categories is one. One called as in
`LABELS` is the label, else the only one of two values, else the last one. Numbers (at least nine tenths of the rows
that have a value) are ignored where they are row indices by name, or count the rows; categories where they are whole
and named or shaped like ids; else kept as they are, or in ranges if `bins` asks for them. Text of four words and more
is text: a column each of up to 100,000 words, else hashed. Values such as a|b|c are several. Text that is different in
every row is ignored, as are dates and times of over `MANY_WHOLE` values. All else is a category, hashed from
`MOST_ONE_HOT` values on. A value that is no number in a column of numbers is then an error with its line. Values that
most rows lack are not stored (`Column.optional`), and a column of numbers without missing values has no column for
these. Numbers may have a currency, groups of digits or a percent sign (`texts.DRESSED`), and may be true and false.
"""

import dataclasses
import difflib
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, final

import numpy as np

from workbench.data.errors import DataError
from workbench.data.labels import format_names
from workbench.data.tables.blocks import Block, Table, table_of
from workbench.data.tables.columns import LAYOUT, Columns, load
from workbench.data.tables.schema import Column, Found
from workbench.data.tables.sparse_fields import SparseTable
from workbench.data.tables.texts import (
    CATEGORY,
    LISTS,
    MISSING_WORDS,
    NESTED,
    TIME,
    Distinct,
    Texts,
    arrow,
    read_amounts,
)
from workbench.option_text import typed

# Statistics of the columns of a table, gathered in one pass over all of it, from which their kinds are guessed.


MOST_DISTINCT = 1 << 17
MOST_BYTES = 1 << 23
"""Distinct values of a column that are counted, and bytes of them that are held: beyond, there are "more than"."""
MANY, SOME = 3, 64
"""Different fractions from which on they are not counted, unless all are asked for; values among which they are looked
for."""


@final
class Seen:
    """Statistics of one column, gathered so far.

    Without `counts_all` the different values of fractions are not counted: there are `MANY` at least.
    """

    def __init__(self, counts_all: bool = True) -> None:
        """Start empty statistics; `counts_all` False stops counting distinct values of columns that have fractions."""
        self.counts_all, self.is_counted = counts_all, True
        self.rows = self.missing = self.rows_of_numbers = self.rows_of_zero = self.words = self.texts_seen = 0
        self.are_whole = self.counts_rows = True
        self.not_number: tuple[int, str] | None = None
        """The first row with a value that is no number, and that value."""
        self.amount = ""
        """A value that is a number with a currency, groups of digits or a percent sign; "" if there is none."""
        self.texts_of_several = 0
        self.distinct = 0
        """Different values, at most `MOST_DISTINCT`, when all rows were taken in and joined."""
        self.is_least = False
        self._texts = Distinct()
        self._first: float | None = None

    @property
    def present(self) -> int:
        """Number of rows that have a value in the column."""
        return self.rows - self.missing

    @property
    def are_numbers(self) -> bool:
        """Whether at least nine tenths of the values that are present are numbers."""
        return self.rows_of_numbers >= MOSTLY * self.present

    def found(self) -> Found:
        """Return (rows, missing, distinct values, whether `distinct` is only a lower bound) as `Found`, for display."""
        return Found(self.rows, self.missing, self.distinct, self.is_least)

    def add(self, texts: Texts) -> None:
        """Update all statistics with the next rows of the column, whose texts are cleaned. O(rows + distinct values).

        Rows are counted on from those added before. Call `join` after the last rows.
        """
        numbers, are_amounts = read_amounts(texts, booleans=True)
        is_text = np.isnan(numbers)
        if is_text.any():
            self._note_text(texts, is_text)
        if not self.amount and are_amounts.any():
            self.amount = texts.text(int(np.argmax(are_amounts)))
        some = numbers[~is_text]
        self.are_whole = self.are_whole and bool((np.floor(some) == some).all())
        if len(some):
            self.rows_of_numbers += texts.rows_of(~is_text)
            self.rows_of_zero += texts.rows_of(numbers == 0)
        self.counts_rows = self.counts_rows and len(some) >= len(texts.codes) > 0 and self._count_on(texts, numbers)
        self.rows += len(texts.codes)
        self.missing += int(np.count_nonzero(texts.codes < 0))
        self.is_counted = self.is_counted and (self.counts_all or self.are_whole or len({*some[:SOME].tolist()}) < MANY)
        if not self.is_counted:
            self._texts = Distinct()
        elif not self.is_least:
            self.words += len(some)  # a number is one word
            self.texts_seen += len(texts)
            self._texts.add(texts.texts)
            if self._texts.held > MOST_DISTINCT:
                self.join()

    def add_missing(self, rows: int) -> None:
        """Add rows without a value."""
        self.rows, self.missing = self.rows + rows, self.missing + rows
        self.counts_rows = self.counts_rows and not rows

    def _note_text(self, texts: Texts, is_text: np.ndarray) -> None:
        """Record the first text that is not a number (`not_number`, as row index and text), and add to the word count.

        `is_text` is bool [texts], True for texts that are not numbers.
        """
        pa = arrow()
        if self.not_number is None and (of_rows := texts.of_rows(is_text, False)).any():
            at = int(np.argmax(of_rows))
            self.not_number = self.rows + at, texts.text(int(texts.codes[at]))
        if not self.is_least:
            several = pa.compute.match_substring_regex(texts.texts, r"[^|]\|[^|]")
            self.texts_of_several += several.true_count
            words = pa.compute.count_substring_regex(texts.texts.filter(pa.array(is_text)), r"\S+")
            self.words += int(pa.compute.sum(words).as_py() or 0)

    def _count_on(self, texts: Texts, numbers: np.ndarray) -> bool:
        """Return whether the number of each row, of float64 [values], is that of the row before plus 1."""
        of_row = texts.of_rows(numbers, np.nan)
        self._first = float(of_row[0]) if self._first is None else self._first
        return bool((of_row == self._first + np.arange(self.rows, self.rows + len(of_row))).all())

    def join(self) -> None:
        """Set `distinct` and `is_least` from the texts; drop the texts if they exceed the limits.

        The limits are `MOST_DISTINCT` values and `MOST_BYTES` bytes; `is_least` says that `distinct` is then a lower
        bound.
        """
        if not self.is_counted:
            self.distinct = max(self.distinct, MANY)
        if not len(texts := self._texts.array()):
            return
        self.distinct = min(len(texts), MOST_DISTINCT)
        self.is_least = len(texts) > MOST_DISTINCT or texts.nbytes > MOST_BYTES
        if self.is_least:
            self._texts = Distinct()

    def values(self) -> tuple[str, ...] | None:
        """Return the distinct values in code point order; None if they were dropped or not counted."""
        return self._texts.in_order() or None

    def are_several(self) -> bool:
        """Return whether values are several parts between "|", of which there are fewer than values."""
        if self.texts_of_several < MOSTLY_SEVERAL * max(self.texts_seen, 1) or not self.texts_of_several:
            return False
        if not len(texts := self._texts.array()):
            return True  # there are too many values to be held
        return len(arrow().compute.split_pattern(texts, "|").flatten().unique()) < len(texts)

    def are_all(self, pattern: str) -> bool:
        """Return whether the distinct values are held and all match the regular expression (RE2) somewhere."""
        return self.matching(pattern, 1)[0] == 1

    def matching(self, pattern: str, least: float) -> tuple[float, str]:
        """Return (share of the distinct values that match the regular expression `pattern`, an example of them).

        Returns (0.0, "") if the values are not held, or if it stops early because the share is below `least`.
        """
        values, match = self._texts.array(), arrow().compute.match_substring_regex
        if not len(values) or not match(values[: int((1 - least) * len(values)) + 2], pattern).true_count:
            return 0.0, ""
        found = values.filter(match(values, pattern))
        return len(found) / len(values), found[0].as_py() if len(found) else ""

    @property
    def words_each(self) -> float:
        """Mean number of words, split at blanks, of a distinct value."""
        return self.words / max(self.texts_seen, 1)


def survey(table: Table, names: Sequence[str], counts_all: bool = True) -> dict[str, Seen]:
    """Read the columns `names` of the table once and return their statistics, {name: Seen}. Raises DataError.

    With `counts_all` False, distinct values of columns with fractions are not counted at first; a second pass counts
    those of them that turn out to be mostly text.
    """
    seen = {name: Seen(counts_all) for name in names}
    if isinstance(table, SparseTable):
        for name, one in seen.items():
            rows, texts = table.present(name)
            one.add(texts.cleaned(MISSING_WORDS))
            if one.not_number is not None:
                one.not_number = int(rows[one.not_number[0]]), one.not_number[1]
            one.add_missing(table.rows - one.rows)
        names = ()
    for block in table.blocks(names):
        for name, texts in block.items():
            seen[name].add(texts.cleaned(MISSING_WORDS))
    for one in seen.values():
        one.join()
    again = [name for name, one in seen.items() if not one.is_counted and not one.are_numbers]
    return seen | (survey(table, again) if again else {})


LABELS = ("label", "labels", "target", "y", "click", "clicked", "is_click", "class", "outcome")
"""Names of columns that are taken for the label, in any case, the likelier one first."""
IDENTIFIERS = frozenset({"id", "index", "row", "rowid", "row_id", "uuid", "key"})
IDENTIFIER_NAME = re.compile(
    r"(?i)(^|[_\W])(user|item|movie|product|customer|session|device|ad|advertiser|zip|postcode|code)s?$|(^|[_\W])id$|[a-z]I[dD]$"
)
"""Names of columns whose whole numbers name things."""
TIME_NAME = re.compile(
    r"(?i)(^|[_\W])(time|timestamp|date|datetime|created|updated|when)(_?at)?$|[a-z](Time|Date|Timestamp)$"
)
"""Names of columns that hold a time, which is no label."""
DATE = r"^([0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}|[0-9]{1,2}[-/.][0-9]{1,2}[-/.][0-9]{4})([ T]|$)"
"""Texts that are dates, which are no labels either."""
FEW_LABELS = 100
"""Rows up to which each may have a class of its own."""
ID_BY_NAME, ID_BY_VALUES = "whole numbers, an id by its name", "whole numbers of many values, as ids are"
NAME_OF_ROW = "another value in every row, as a name of the row"
TIMES = "dates and times, most of them in few rows"
COUNTS_ROWS, NUMBERS_BY_NAME = "counts the rows", "numbers of rows, by its name"
MOSTLY_LABELLED = 0.5
"""Share of the rows, at most, in which the only column of two values may lack a value and is the label still."""
AMOUNTS, MOST_SHOWN = "numbers written as ", 40
"""Reason for a column of numbers that have a currency, groups of digits or a percent sign; letters of an example."""
MANY_WHOLE = 1000
"""Different whole numbers from which on they are taken for ids, if they recur."""
MOSTLY = 0.9
"""Share of the rows with a value that hold a number, in a column of numbers."""
FEW_WHOLE = 32
"""Different whole numbers, at most, that are numbers whatever their column is called."""
WITH_COMMA = r"^[+-]?[0-9]+,[0-9]+$"
WITH_UNIT = r"^[+-]?[0-9]+([.,][0-9]+)? ?[a-zA-Z\x{b5}\x{b0}]{1,5}$"
SEVERAL, MOSTLY_SEVERAL = "text: several values a row, as a|b|c", 0.25
"""Reason for a category whose values are several; share of its values, at least, that are."""
UNITS, FEWEST_WITH_UNIT = "text: numbers with a unit, such as ", 8
"""Reason for a category of values such as "19M"; different values that it has at least."""
WORDS_OF_TEXT = 4
MOSTLY_ZERO = 0.5
"""Share of the rows from which on whole numbers that are 0 are no ids."""
MOSTLY_MISSING = 0.5
"""Share of the rows from which on missing values are not stored."""
ROWS_OF_IDENTIFIER = 100
"""Rows from which on a column that differs in all of them is taken to name the row."""
MOST_ONE_HOT = 100_000
MOST_BUCKETS = 1 << 18
IGNORED = Column("", "ignored")


def guess_columns(
    path: str | os.PathLike,
    columns: str | os.PathLike | Mapping[str, Any] | Columns | None = None,
    label: str | None = None,
    separator: str | None = None,
    header: bool | None = None,
    hashed: int | None = None,
    bins: int | None = None,
    quotes: bool | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> Columns:
    """Return the kind of each column of the table in `path`: as `columns` declares it, else guessed from all rows.

    The parameters are those of the data set `table`. The result shows itself (`text()`), is written by `save(path)` to
    be edited, and is given as `columns` again. Where no column is the label, `Columns.label` is None. One pass over the
    file, in the memory of a block and the distinct values. Refused (`DataError`): what cannot be read as a table, and
    names that it has no column of.
    """
    declared = load(columns)
    layout = dict(zip(LAYOUT, (separator, header, quotes, decimal, encoding), strict=True))
    return guessed(opened_table(path, declared, layout), declared, label, hashed, bins)


def opened_table(path: str | os.PathLike, declared: Columns, given: Mapping[str, Any]) -> Table:
    """Open a table; layout parameters come from `given` if not None, then from the declared columns, else are guessed.

    `given` has the names of `LAYOUT` (separator, header, quotes, decimal, encoding). Raises DataError if the file
    cannot be read as a table.
    """
    stored = {"decimal": "."} if "separator" in declared.layout else {}  # which is written only if it is another one
    layout = {**stored, **declared.layout, **{name: value for name, value in given.items() if value is not None}}
    return table_of(path, [column.name for column in declared if column.optional], **layout)


def nested_of(table: Table) -> set[str]:
    """Return the names of the columns of structures, or of lists of these or of fractions, which are left out."""
    return {name for name, kind in table.kinds.items() if kind == NESTED}


def labelled_rows(table: Table, label: Column) -> Table:
    """Return the rows of a table that have a label; those without are left out."""
    missing = ("", *label.missing) if label.missing else ("", *MISSING_WORDS)
    return (
        table.labelled(label.name, missing) if isinstance(table, SparseTable) else LabelledRows(table, label, missing)
    )


@final
class LabelledRows:
    """The rows of a table that have a label; those without are left out."""

    def __init__(self, table: Table, label: Column, missing: tuple[str, ...]) -> None:
        """Wrap `table`, whose labels are missing where they are in `missing`."""
        self._table, self._label, self._missing = table, label.name, missing
        self.path, self.names, self.kinds = table.path, table.names, table.kinds

    def blocks(self, names: Sequence[str]) -> Iterator[Block]:
        """Yield the blocks of the table without rows whose label is missing: {name: Texts} of `names`.

        Blocks without any labelled row are left out. Raises DataError as the wrapped table does.
        """
        for block in self._table.blocks([*names, *({self._label} - {*names})] if names else ()):
            kept = self._are_labelled(block)
            if kept.any():
                yield {name: block[name].take(block[name].codes[kept]) for name in names}

    def _are_labelled(self, block: Block) -> np.ndarray:
        """Return bool [rows] of a block: whether the row has a label."""
        return block[self._label].cleaned(self._missing).codes >= 0

    def place(self, row: int) -> str:
        """Return where a row stands in the file, such as "a.csv:12"; `row` counts only labelled rows, from 0.

        Reads the label column again. Returns the path alone if there are fewer rows.
        """
        before = 0
        for block in self._table.blocks([self._label]):
            kept = np.flatnonzero(self._are_labelled(block))
            if row < len(kept):
                return self._table.place(before + int(kept[row]))
            row, before = row - len(kept), before + len(block[self._label].codes)
        return str(self.path)

    def layout(self) -> dict[str, Any]:
        """Return the layout parameters of the wrapped table, by name."""
        return self._table.layout()


def guessed(
    table: Table,
    declared: Columns,
    label: str | None,
    hashed: int | None,
    bins: int | None,
    guesses_label: bool = True,
    is_shown: bool = True,
) -> Columns:
    """Return a `Column` for each column of the table: declared ones as they are, others guessed or ignored.

    `label` names the label column (None: declared or, if `guesses_label`, guessed), `hashed` is the bucket count of
    guessed categories (None: chosen), `bins` the ranges of numeric ones (None: numbers are
    kept). Unless `is_shown`, guessed one-hot columns
    carry their values. Reads the whole file; raises DataError for unknown or nested columns, two label columns, or no
    rows.
    """
    by_name = {column.name: column for column in declared}
    _refuse_unknown(table, by_name, declared.source)
    _refuse_nested(table, by_name, label)
    if label is not None:
        _refuse_label(table, label, declared.label)
        by_name[label] = Column(label, "label", missing=by_name[label].missing if label in by_name else (), why="named")
    others = [name for name in table.names if name not in by_name]
    if declared.ignores_others:
        by_name |= {name: Column(name, "ignored", why="not named") for name in others}
        others = []
    seen = survey(table, [name for name in others if table.kinds.get(name) != NESTED], is_shown)
    if any(not column.rows for column in seen.values()):
        raise DataError(f"{table.path} holds {'a header and ' if table.layout().get('header') else ''}no rows.")
    has_label = not guesses_label or any(one.kind == "label" for one in by_name.values())
    by_name |= _guesses(table, others, seen, has_label, bins)
    order = table.names
    if declared.ignores_others:  # features stand in the declared order, so that another file may have another one
        order = tuple(dict.fromkeys((*declared.names, *table.names)))
    are_guessed = set(others)
    found = [_as_asked(by_name[name], name in are_guessed, hashed) for name in order]
    if not is_shown:
        found = [_with_values(column, seen.get(column.name)) for column in found]
    return Columns(tuple(found), table.layout(), declared.ignores_others, str(table.path))


def _guesses(
    table: Table, names: list[str], seen: dict[str, Seen], has_label: bool, bins: int | None
) -> dict[str, Column]:
    """Return {name: guessed Column} for `names`; one of them becomes the label unless `has_label`.

    Nested columns, which `seen` does not have, are ignored.
    """
    label, why = (None, "") if has_label else _label_of([name for name in names if name in seen], seen, table.kinds)
    guesses = {}
    for name in names:
        if table.kinds.get(name) == NESTED:
            guesses[name] = Column(name, "ignored", why="holds lists or structures")
        elif name == label:
            guesses[name] = Column(name, "label", why=why, found=seen[name].found())
        else:
            column = _guess(name, seen[name], bins, table.kinds.get(name, ""))
            most = 0 if column.kind != "number" or seen[name].missing else -1
            is_optional = column.kind != "ignored" and seen[name].missing > (most or MOSTLY_MISSING * seen[name].rows)
            guesses[name] = dataclasses.replace(column, found=seen[name].found(), optional=is_optional)
    return guesses


def _label_of(names: Sequence[str], seen: Mapping[str, Seen], kinds: Mapping[str, str]) -> tuple[str | None, str]:
    """Return (guessed label column, reason): by its name, else the only column of two values, else the last.

    `names` are those of all columns, of which lists are no candidates. Returns (None, "") for a table of a single
    column, or if the last one would be taken but lacks values, is a time by its name, type or values, or text that
    differs in most rows, as names do.
    """
    names = [name for name in names if kinds.get(name) != LISTS]
    lower = {name.casefold(): name for name in reversed(names) if seen[name].present}
    if by_name := [lower[name] for name in LABELS if name in lower]:
        others = f"; also called like one: {format_names(by_name[1:])}" if len(by_name) > 1 else ""
        return by_name[0], f"its name{others}"
    if len(names) < 2:
        return None, ""
    two = [name for name in names if seen[name].distinct == 2 and not seen[name].is_least]
    pairs = [name for name in two if not seen[name].missing]
    if len(pairs) == 1:
        return pairs[0], "the only column of two values"
    if len(two) == 1 and seen[two[0]].missing <= MOSTLY_LABELLED * seen[two[0]].rows:
        return two[0], "the only column of two values"
    last = seen[names[-1]]
    is_different = last.rows > FEW_LABELS and not last.are_numbers and 2 * last.distinct > last.rows
    is_time = TIME_NAME.search(names[-1]) or kinds.get(names[-1]) == TIME or last.are_all(DATE)
    if last.missing or is_different or is_time:
        return None, ""
    return names[-1], f"the last column; of two values are: {format_names(pairs)}" if pairs else "the last column"


def _guess(name: str, seen: Seen, bins: int | None, kind: str) -> Column:
    """Return the guessed `Column` (kind, encoding, reason) of one column from its statistics over all rows.

    `bins` is the number of ranges if it is numeric, `kind` what its type tells.
    """
    is_different = not seen.is_least and seen.distinct == seen.present >= ROWS_OF_IDENTIFIER
    if not seen.present:
        return Column(name, "ignored", why="no value")
    if seen.distinct == 1 and not seen.missing:
        return Column(name, "ignored", why="one value in all rows")
    if kind == LISTS:
        return Column(name, "category", "multi-hot", why="lists of values")
    if kind == CATEGORY:
        return _hashed_if_many(name, seen, "a category by its type")
    if seen.are_numbers:
        found = _guess_numbers(name, seen, is_different, bins)
        is_amount = seen.amount and seen.not_number is None and found.kind == "number"
        return dataclasses.replace(found, why=f"{AMOUNTS}{seen.amount[:MOST_SHOWN]!r}") if is_amount else found
    if seen.are_several():
        return Column(name, "category", "multi-hot", why=SEVERAL)
    if seen.words_each >= WORDS_OF_TEXT:
        return Column(name, "text", why=f"{seen.words_each:.1f} words a value")
    if is_different:
        return Column(name, "ignored", why=NAME_OF_ROW)
    if seen.distinct > MANY_WHOLE and seen.are_all(DATE):
        return Column(name, "ignored", why=TIMES)
    share, example = seen.matching(WITH_UNIT, MOSTLY)
    if share >= MOSTLY and seen.distinct >= FEWEST_WITH_UNIT:
        return _hashed_if_many(name, seen, f"{UNITS}{example[:MOST_SHOWN]!r}")
    if seen.is_least or seen.distinct > MOST_ONE_HOT:
        return _hashed_if_many(name, seen, "text, many values")
    why = "text: a point is read in numbers, and no comma" if seen.are_all(WITH_COMMA) else "text"
    return Column(name, "category", why=why)


def _guess_numbers(name: str, seen: Seen, is_different: bool, bins: int | None) -> Column:
    """Return the guessed `Column` for a column in which at least nine tenths of the values are numbers.

    `is_different` says that no two rows have the same value. It becomes a number in `bins` ranges, a category, or
    ignored if it numbers the rows. A column with some text stays a number, so that encoding reports the text as an
    error.
    """
    if seen.not_number is not None:
        row, text = seen.not_number
        share = seen.rows_of_numbers / seen.present
        return Column(name, "number", bins=bins, why=f"{share:.1%} numbers, but {text[:40]!r} in row {row}")
    if seen.are_whole and (is_different or seen.is_least) and name.casefold() in IDENTIFIERS:
        return Column(name, "ignored", why=NUMBERS_BY_NAME)
    if seen.counts_rows and seen.rows >= ROWS_OF_IDENTIFIER:
        return Column(name, "ignored", why=COUNTS_ROWS)
    if seen.are_whole and seen.distinct > FEW_WHOLE:
        if IDENTIFIER_NAME.search(name):
            return _hashed_if_many(name, seen, ID_BY_NAME)
        if _has_values_of_ids(seen) and not seen.amount:
            return _hashed_if_many(name, seen, ID_BY_VALUES)
    return Column(name, "number", bins=bins, why="whole numbers" if seen.are_whole else "numbers")


def _has_values_of_ids(seen: Seen) -> bool:
    """Return whether over `MANY_WHOLE` values occur, in two rows each on average, and few rows are 0."""
    return (
        seen.distinct > MANY_WHOLE and seen.present >= 2 * seen.distinct and seen.rows_of_zero < MOSTLY_ZERO * seen.rows
    )


def _hashed_if_many(name: str, seen: Seen, why: str) -> Column:
    """Return a category `Column`: one-hot up to `MOST_ONE_HOT` values, else hashed into at least twice as many buckets.

    The number of buckets is a power of two of at most `MOST_BUCKETS`; `why` is the reason that is shown.
    """
    if not seen.is_least and seen.distinct <= MOST_ONE_HOT:
        return Column(name, "category", why=why)
    buckets = min(MOST_BUCKETS, 1 << (2 * seen.distinct - 1).bit_length())
    return Column(name, "category", buckets=buckets, kept=(), why=why)


def _as_asked(column: Column, is_guess: bool, hashed: int | None) -> Column:
    """Return a guessed category hashed into `hashed` buckets; any other column, or with None, unchanged.

    Values of several parts stay so.
    """
    if hashed is None or not is_guess or column.kind != "category" or column.encoding == "multi-hot":
        return column
    return dataclasses.replace(column, encoding="hashed", buckets=hashed, separator=None, kept=None)


def _with_values(column: Column, seen: Seen | None) -> Column:
    """Return a one-hot column with its distinct values from `seen`; others, and any if `seen` is None, unchanged."""
    values = None if seen is None or column.encoding != "one-hot" else seen.values()
    return column if values is None else column.with_values(values)


def _refuse_unknown(table: Table, names: Mapping[str, Any], source: str) -> None:
    """Raise DataError if a name in `names` is not a column of the table; `source` begins the message."""
    known = set(table.names)
    if unknown := [name for name in names if name not in known]:
        which = f"column {unknown[0]!r}" if len(unknown) == 1 else f"columns {format_names(map(repr, unknown))}"
        raise DataError(f"{source}: {table.path} has no {which}; its columns are {format_names(table.names)}.")


def _refuse_nested(table: Table, by_name: Mapping[str, Column], label: str | None) -> None:
    """Raise DataError if the label contains lists, or a declared column that is not ignored structures."""
    nested = nested_of(table)
    wanted = [name for name in nested if name == label or by_name.get(name, IGNORED).kind != "ignored"]
    if wanted or (wanted := [name for name in filter(None, [label]) if table.kinds.get(name) == LISTS]):
        hint = "expected a label in each row" if wanted[0] == label else 'say kind = "ignored"'
        raise DataError(f"{table.path}: column {wanted[0]!r} holds lists or structures; {hint}.")


def refuse_label(path: str | os.PathLike, label: str, names: Collection[str]) -> None:
    """Raise DataError, which proposes the nearest name, if `label` is none of the `names` of the columns of `path`."""
    if label not in names:
        near = [*difflib.get_close_matches(label, names, 1), *reversed([*names])][0]
        what = f"{path} has no column {label!r}; expected one of: {format_names(names)}"
        raise DataError(f"{what}.\nType {typed(label=near)}.")


def _refuse_label(table: Table, label: str, declared: Column | None) -> None:
    """Raise DataError if `label` is not a column of the table, or another column is declared as the label."""
    refuse_label(table.path, label, table.names)
    if declared is not None and declared.name != label:
        raise DataError(f"label is {label!r}, and in {declared.name!r} of the columns too; keep one of the two.")
