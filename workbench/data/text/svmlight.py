"""Lines of svmlight text, `label column:value column:value ... # comment`, into rows; or what is wrong, and where.

Lines are read by compiled code (`svmlight_rows`), which is fast and does not say where an error is; a block that it
refuses is read once more line by line for the message.
"""

import os
import re
from collections.abc import Iterable
from typing import NamedTuple, final

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike

from workbench.data.errors import DataError, quoted
from workbench.data.files.decimal_numbers import (
    BAD,
    COLON,
    COMMA,
    INEXACT,
    MINUS,
    MOST_DIGITS,
    NEWLINE,
    NINE,
    PLUS,
    SPACE,
    ZERO,
    behind_blanks,
    byte_at,
    compiled,
    compiled_part,
    parse_placeholders,
    placeholder,
    read_digits,
    read_number,
)
from workbench.data.files.lent_lines import LentText, is_clean, parse_lent, refuse_unclean
from workbench.data.files.opened import codes_of, open_text
from workbench.formats.compressed import assemble, index_dtype

# Compiled reading of svmlight text: a block of lines into the arrays of its rows, in one pass over the bytes.

HASH, LOWER_Q, LOWER_I, LOWER_D = 35, 113, 105, 100
LARGEST_COLUMN = 2**31 - 1
MOST_QUERY_DIGITS = 19
NO_QUERY = -1
BYTES_OF_ENTRY = 4
"""Bytes of an entry, such as " 1:1", at least."""


class InvalidLineError(ValueError):
    """Some line of a block is no svmlight text."""


@final
class TextRows(NamedTuple):
    """Rows of a block: `labels` float64 [labels], `label_counts` int64 [rows], `queries` int64 [rows], -1 without one,
    `starts` int64 [rows + 1], `columns` int32 [entries] as numbered in the text, `values` float64 [entries]."""

    labels: np.ndarray
    label_counts: np.ndarray
    queries: np.ndarray
    starts: np.ndarray
    columns: np.ndarray
    values: np.ndarray


@compiled_part
def _ends_word(code):
    """Return whether a byte code ends a word: a blank, a line end, or #, the beginning of a comment."""
    return code == 32 or 9 <= code <= 13 or code == HASH


@compiled_part
def _column_of_many_digits(text, start, stop):
    """Return the number that the digits text[start:stop] stand for, at most `LARGEST_COLUMN` + 1."""
    column = np.int64(0)
    for at in range(start, stop):
        column = min(column * 10 + np.int64(text[at] - ZERO), LARGEST_COLUMN + 1)
    return column


@compiled_part
def _read_column(text, at):
    """Return (column, index behind the colon) of "column:" at text[at:]; the column is -1 if it is invalid.

    Valid are integers from 0 to `LARGEST_COLUMN`.
    """
    sign = byte_at(text, at)
    is_negative = sign == MINUS
    if is_negative or sign == PLUS:
        at += 1
    start = at
    digits, at = read_digits(text, at, np.uint64(0))
    column = np.int64(min(digits, np.uint64(LARGEST_COLUMN + 1)))
    if at - start > MOST_DIGITS:  # of which the sum above is no more than the last bits
        column = _column_of_many_digits(text, start, at)
    if at == start or byte_at(text, at) != COLON or column > LARGEST_COLUMN or (is_negative and column):
        return -1, at
    return column, at + 1


@compiled_part
def _read_query(text, at):
    """Return (query, index behind it) of "qid:number" at text[at:].

    The query is -1 if it is not an integer up to 2**63 - 1.
    """
    if text[at + 3] != COLON:
        return np.int64(NO_QUERY), at
    at += 4
    start, query = at, np.uint64(0)
    while ZERO <= text[at] <= NINE:
        query = query * np.uint64(10) + np.uint64(text[at] - ZERO)
        at += 1
    if (
        at == start
        or at - start > MOST_QUERY_DIGITS
        or query >= np.uint64(1) << np.uint64(63)
        or not _ends_word(text[at])
    ):
        return np.int64(NO_QUERY), at
    return np.int64(query), at


@compiled_part
def _read_labels(text, at, several, labels, count):
    """Parse the labels of a row at text[at:] into `labels` from index `count` on.

    With `several` there may be any number of them, with commas between. Returns (labels so far, index behind them,
    whether one is invalid, whether one needs exact arithmetic and is a `placeholder`).
    """
    start, before, is_inexact = at, count, False
    if several and text[at] == LOWER_Q:  # no label before the query
        return before, start, False, False
    while True:
        first = at
        value, at, state = read_number(text, at)
        if several and text[at] == COLON:
            return before, start, False, False
        if state == BAD:
            return count, at, True, False
        labels[count] = placeholder(first) if state == INEXACT else value
        is_inexact |= state == INEXACT
        count += 1
        if not (several and text[at] == COMMA):
            return count, at, not _ends_word(text[at]), is_inexact
        at += 1


@compiled
def _read_rows(text, several, labels, label_counts, queries, starts, columns, values):
    """Parse svmlight lines into arrays; return (rows, labels, entries, whether one is inexact), rows -1 if invalid.

    `text` is uint8 of whole lines. Written: `labels` float64, `label_counts` and `queries` int64 [rows], `starts` int64
    [rows + 1], `columns` int32 and `values` float64 [entries]. Inexact numbers are a `placeholder`.
    """
    at = row = entry = label = np.int64(0)  # a literal 0 would have functions compiled once more
    is_inexact = False
    starts[0] = 0
    while at < text.size:
        at = behind_blanks(text, at)
        if text[at] != NEWLINE and text[at] != HASH:
            before = label
            label, at, is_wrong, is_label_inexact = _read_labels(text, at, several, labels, label)
            is_inexact |= is_label_inexact
            if is_wrong:
                return -1, label, entry, is_inexact
            label_counts[row], queries[row] = label - before, NO_QUERY
            at = behind_blanks(text, at)
            if text[at] == LOWER_Q and text[at + 1] == LOWER_I and text[at + 2] == LOWER_D:
                queries[row], at = _read_query(text, at)
                if queries[row] == NO_QUERY:
                    return -1, label, entry, is_inexact
                at = behind_blanks(text, at)
            last = np.int64(-1)
            while byte_at(text, at) != NEWLINE and byte_at(text, at) != HASH:
                column, at = _read_column(text, at)
                if column <= last:
                    return -1, label, entry, is_inexact
                last, first = column, at
                digit = byte_at(text, at)
                if ZERO <= digit <= NINE and byte_at(text, at + 1) == SPACE:  # as most counts are, and ones
                    columns[np.uint64(entry)], values[np.uint64(entry)] = column, digit - ZERO
                    entry += 1
                    at = behind_blanks(text, at + 2)
                    continue
                value, at, state = read_number(text, at)
                if state == BAD or not _ends_word(text[at]):
                    return -1, label, entry, is_inexact
                if state == INEXACT:
                    value, is_inexact = placeholder(first), True
                columns[entry], values[entry] = column, value
                entry += 1
                at = behind_blanks(text, at)
            row += 1
            starts[row] = entry
        while text[at] != NEWLINE:
            at += 1
        at += 1
    return row, label, entry, is_inexact


def read_rows(text: bytes, several: bool = False) -> TextRows:
    """Parse a block of whole lines into its rows; raise InvalidLineError if a line is invalid or a number infinite.

    With `several` a row has any number of labels with commas between them, else one. Columns must increase within a
    row. Numbers equal those of Python's `float`.
    """
    codes, lines, most = codes_of(text), text.count(b"\n"), len(text) // BYTES_OF_ENTRY
    labels = np.empty(lines + (text.count(b",") if several else 0))
    label_counts, queries, starts = np.empty(lines, np.int64), np.empty(lines, np.int64), np.empty(lines + 1, np.int64)
    columns, values = np.empty(most, np.int32), np.empty(most)  # the system gives memory for what is written alone
    rows, count, entries, is_inexact = _read_rows(
        codes, several, labels, label_counts, queries, starts, columns, values
    )
    if rows < 0:
        raise InvalidLineError("a line is no svmlight text")
    labels, values = labels[:count], values[:entries]
    if is_inexact:
        for numbers in (labels, values):
            parse_placeholders(numbers, text)
            if not np.isfinite(numbers).all():
                raise InvalidLineError("a number is infinite")
    return TextRows(labels, label_counts[:rows], queries[:rows], starts[: rows + 1], columns[:entries], values)


@final
class LentRows:
    """Arrays that rows of a block are parsed into by `read_lent`, used again for the next one."""

    def __init__(self) -> None:
        """Start with no memory; it grows with the largest block."""
        self.arrays: tuple[np.ndarray, ...] = ()
        self.lines = self.most = -1

    def of(self, lines: int, most: int) -> tuple[np.ndarray, ...]:
        """Return arrays for so many lines and entries, as `_read_rows` takes them, values as float32."""
        if lines > self.lines or most > self.most:
            self.lines, self.most = max(lines, self.lines), max(most, self.most)
            of_lines = (np.empty(self.lines, dtype) for dtype in (np.float64, np.int64, np.int64))
            starts = np.empty(self.lines + 1, np.int32)
            self.arrays = (*of_lines, starts, np.empty(self.most, np.int32), np.empty(self.most, np.float32))
        return self.arrays


def read_lent(text: bytearray, size: int, lent: LentRows) -> TextRows:
    """Parse text[:size], whole lines, as `read_rows` does, into arrays that `lent` keeps; values are float32.

    Raises InvalidLineError for invalid lines and for values beyond float32.
    """
    codes = codes_of(text)[:size]
    arrays = lent.of(text.count(b"\n", 0, size), size // BYTES_OF_ENTRY)
    rows, count, entries, is_inexact = _read_rows(codes, False, *arrays)
    if rows < 0:
        raise InvalidLineError("a line is no svmlight text")
    if is_inexact:  # which float32 has no placeholders for
        read = read_rows(bytes(memoryview(text)[:size]))
        return read._replace(starts=read.starts.astype(np.int32), values=narrowed(read.values, np.float32))
    labels, label_counts, queries, starts, columns, values = arrays
    values = values[:entries]
    if entries and not np.isfinite((values.min(), values.max())).all():
        raise InvalidLineError("a value is beyond float32")
    return TextRows(labels[:count], label_counts[:rows], queries[:rows], starts[: rows + 1], columns[:entries], values)


@final
class _Growing:
    """An array that grows by appending parts; its memory is moved by the system, not copied."""

    def __init__(self, dtype: DTypeLike, expected: int) -> None:
        """Ask for memory of `expected` elements, which costs nothing before it is written to."""
        self.array, self.size = np.empty(expected, dtype), 0

    def append(self, part: np.ndarray) -> None:
        """Append a copy of the part."""
        stop = self.size + len(part)
        if stop > len(self.array):
            self.array.resize(stop + stop // 4, refcheck=False)  # nothing else refers to it
        self.array[self.size : stop] = part
        self.size = stop

    def finished(self) -> np.ndarray:
        """Return all elements; the memory behind them is given back."""
        self.array.resize(self.size, refcheck=False)
        return self.array


SLACK = 1.05
"""How many more entries than those of the first block suggest memory is asked for."""


def read_file(path: str | os.PathLike, size: int = 1 << 20) -> TextRows:
    """Return all rows of a file as `read_lent` gives those of a block, each array in one piece of memory.

    Raises InvalidLineError for invalid lines or values beyond float32, and DataError for bytes that are no text.
    """

    def parse(block: LentText) -> TextRows | None:
        """Return the rows of a block in lent memory; None if it is no text."""
        block.others = block.others or LentRows()
        return read_lent(block.text, block.size, block.others) if is_clean(block) else None

    arrays: list[_Growing] = []
    for rows, position in parse_lent(path, parse, size):
        if rows is None:
            refuse_unclean(path)
            raise InvalidLineError("it is not UTF-8")
        fields = (
            rows.labels,
            rows.label_counts,
            rows.queries,
            rows.starts[1:].astype(np.int64),
            rows.columns,
            rows.values,
        )
        if not arrays:
            more = SLACK * max(os.stat(path).st_size / position, 1)
            arrays = [_Growing(field.dtype, int(len(field) * more) + 1) for field in fields]
            arrays[3].append(np.zeros(1, np.int64))
        before = arrays[4].size
        for array, field in zip(arrays, fields, strict=True):
            array.append(field + before if array is arrays[3] else field)
    return TextRows(*(array.finished() for array in arrays)) if arrays else read_rows(b"")


def joined(parts: Iterable[TextRows]) -> TextRows:
    """Return the rows of all parts one after the other, concatenated field by field to save memory."""
    fields = dict(zip(TextRows._fields, map(list, zip(*parts, strict=True)), strict=False))
    if not fields:
        return read_rows(b"")
    steps = [part[-1] for part in fields["starts"]]
    before = np.cumsum([0, *steps[:-1]])
    fields["starts"] = [part[1:] + more for part, more in zip(fields["starts"], before, strict=True)]
    fields["starts"].insert(0, np.zeros(1, np.int64))
    return TextRows(**{name: np.concatenate(fields.pop(name)) for name in TextRows._fields})


_QUERY = b"qid:"
_INTEGER = re.compile(rb"[+-]?[0-9]+")
_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def content(text: bytes) -> bytes:
    """Return a line without its comment, which begins with #."""
    return text.split(b"#", 1)[0]


def holds_row(text: bytes) -> bool:
    """Return whether a line contains more than blanks and a comment."""
    return bool(content(text).strip())


def has_several_labels(path: str | os.PathLike) -> bool:
    """Return whether some line of the file has a comma in its label and an entry behind it."""
    with open_text(path) as file:
        for text in file:
            label, *tokens = content(text).split() or [b""]
            if b"," in label and tokens and b":" in tokens[0]:
                return True
    return False


def refuse_missing_query(path: str | os.PathLike) -> None:
    """Raise DataError, with the line, for the first row without a query (`qid:number`)."""
    with open_text(path) as file:
        for line, text in enumerate(file, 1):
            tokens = content(text).split(None, 2)[:2]
            if tokens and not any(token.startswith(_QUERY) for token in tokens):
                raise DataError(f"{path}:{line}: the row has no query (qid:number) and others do; give each one.")


def _query_error(token: bytes) -> str:
    """Return what is wrong with `qid:number`, "" if it is an integer from 0 to 2**63 - 1."""
    digits = token.removeprefix(_QUERY)
    if not digits.isdigit() or len(digits) > 19 or int(digits) >= 2**63:
        return f"{quoted(token)} is not qid: and a whole number from 0 to 2**63 - 1."
    return ""


def csr_of(
    rows: TextRows, features: int | None, zero_based: bool, dtype: DTypeLike = np.float32, is_own: bool = False
) -> scipy.sparse.csr_array:
    """Return rows read from text as CSR [rows, features] of `dtype`, columns counted from 0.

    None takes the highest column. `zero_based` says whether columns count from 0 or 1 in the text. Raises
    InvalidLineError for columns out of range and values beyond `dtype`. If the rows `is_own`, their arrays, which have
    the types of CSR and valid values, are overwritten.
    """
    base, columns, values = (
        0 if zero_based else 1,
        rows.columns,
        rows.values if is_own else narrowed(rows.values, dtype),
    )
    width = features if features is not None else int(columns.max(initial=base - 1)) + 1 - base
    if len(columns) and not base <= columns.min() <= columns.max() < width + base:
        raise InvalidLineError(f"columns are {columns.min()} to {columns.max()}, with {width} features from {base} on")
    count = len(rows.starts) - 1
    index_type = index_dtype(count, width, len(columns))
    columns = columns.astype(index_type, copy=False)
    if base:
        columns = np.subtract(columns, base, out=columns if is_own else None)
    return assemble("csr", rows.starts.astype(index_type, copy=not is_own), columns, values, (count, width))


def narrowed(values: np.ndarray, dtype: DTypeLike) -> np.ndarray:
    """Return finite values cast to `dtype`; InvalidLineError if one is beyond it."""
    with np.errstate(over="ignore"):  # what does not fit is infinite, and refused below
        values = values.astype(dtype, copy=False)
    if not np.isfinite(values).all():
        raise InvalidLineError(f"a value is beyond {np.dtype(dtype)}")
    return values


def first_error(path: str | os.PathLike, features: int | None, zero_based: bool, several: bool = False) -> str:
    """Return the first error in the file as "path:line: what is wrong"; "" if there is none.

    With `several` labels may have commas between them.
    """
    with open_text(path) as file:
        return error_of_lines(path, enumerate(file, 1), features, zero_based, several)


def error_of_lines(
    path: str | os.PathLike,
    lines: Iterable[tuple[int, bytes]],
    features: int | None,
    zero_based: bool,
    several: bool = False,
) -> str:
    """Return the first error in (line number, line) of a file, as `first_error` does."""
    for number, text in lines:
        if holds_row(text) and (problem := _line_error(text, features, zero_based, np.dtype(np.float32), several)):
            return f"{path}:{number}: {problem}"
    return ""


def _line_error(text: bytes, features: int | None, zero_based: bool, dtype: np.dtype, several: bool = False) -> str:
    """Return what is wrong with a line, as text; "" if it is valid. With `several` labels may have commas between."""
    label, *tokens = content(text).split()
    labels = label.split(b",") if several else [label]
    if several and b":" in label:  # a row without any
        labels, tokens = [], [label, *tokens]
    if not all(_is_number(label, np.dtype(np.float64)) for label in labels):
        advice = "\nType sed 's/, */,/g' FILE > NEW, and give NEW." if label.endswith(b",") else ""
        return f"the label {quoted(label)} is no finite number; a line is: label column:value column:value ...{advice}"
    if tokens and tokens[0].startswith(_QUERY):
        if problem := _query_error(tokens[0]):
            return problem
        tokens = tokens[1:]
    before = None
    for token in tokens:
        column, colon, value = token.partition(b":")
        if not (colon and _INTEGER.fullmatch(column)):
            return f"{quoted(token)} is not column:value with a whole number for the column."
        if not _is_number(value, dtype):
            return f"the value in {quoted(token)} is no finite number that {dtype} holds."
        if problem := _column_error(int(column), before, features, zero_based):
            return problem
        before = int(column)
    return ""


SORTED = (
    "Sort the columns of each row; type "
    """perl -ne 's/#.*//; ($y, @x) = split or next; print join(" ", $y, sort {$a <=> $b} @x), "\\n"' FILE > NEW, """
    "and give NEW."
)
HASHED = (
    "Type sed 's/#.*//; s/[[:blank:]]/ | /' FILE > NEW.vw, and give NEW.vw: Vowpal Wabbit's text, of which columns "
    "are hashed."
)
SUMMED = "Delete one of them, or, if their sum is meant, read the file as Vowpal Wabbit's text. " + HASHED
"""What to type where the columns of a row are not those of svmlight text."""


def _column_error(column: int, before: int | None, features: int | None, zero_based: bool) -> str:
    """Return what is wrong with a column index: too small, too large, or not above the one `before`; "" if valid."""
    base = 0 if zero_based else 1
    if column < base:
        advice = "" if column < 0 else " Pass zero_based=True if they count from 0."
        return f"column {column} is below {base}, the first one with zero_based={zero_based}.{advice}"
    if features is not None and column >= features + base:
        return f"column {column} is out of range; with features={features} they are {base} to {features + base - 1}."
    if column > 2**31 - 1:
        return f"column {column} is above 2**31 - 1; hash the columns to fewer.\n{HASHED}"
    if before is not None and column == before:
        return f"column {column} comes twice; columns of a row should be sorted and unique.\n{SUMMED}"
    if before is not None and column < before:
        return f"column {column} comes after {before}; columns of a row should be sorted and unique.\n{SORTED}"
    return ""


def _is_number(text: bytes, dtype: np.dtype) -> bool:
    """Return whether a text is a decimal number that is finite in `dtype`."""
    if not _NUMBER.fullmatch(text):
        return False
    with np.errstate(over="ignore"):
        return bool(np.isfinite(np.float64(text).astype(dtype)))
