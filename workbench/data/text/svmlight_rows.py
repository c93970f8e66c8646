"""Compiled reading of svmlight text: a block of lines into the arrays of its rows, in one pass over the bytes."""

from collections.abc import Iterable
from typing import NamedTuple, final

import numpy as np

from workbench.data.files.decimal_numbers import (
    BAD,
    COLON,
    COMMA,
    HARD,
    MINUS,
    NEWLINE,
    NINE,
    PLUS,
    ZERO,
    compiled,
    marked,
    read_number,
    settle,
)
from workbench.data.files.line_blocks import codes_of

HASH, LOWER_Q, LOWER_I, LOWER_D = 35, 113, 105, 100
LARGEST_COLUMN = 2**31 - 1
MOST_QUERY_DIGITS = 19
NO_QUERY = -1


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


@compiled
def _counts(text):
    """Return (lines, colons, commas) of a text."""
    lines = colons = commas = 0
    for at in range(text.size):
        code = text[at]
        lines += code == NEWLINE
        colons += code == COLON
        commas += code == COMMA
    return lines, colons, commas


@compiled
def _behind_blanks(text, at):
    """Return the position of the first byte that is no blank within the line."""
    while text[at] == 32 or text[at] == 9 or 11 <= text[at] <= 13:
        at += 1
    return at


@compiled
def _ends_word(code):
    """Return whether a byte ends a word: a blank, a line end, or the beginning of a comment."""
    return code == 32 or 9 <= code <= 13 or code == HASH


@compiled
def _read_column(text, at):
    """Return (column, position behind the colon), the column -1 if it is no whole number from 0 to `LARGEST_COLUMN`."""
    is_negative = text[at] == MINUS
    if is_negative or text[at] == PLUS:
        at += 1
    start, column = at, 0
    while ZERO <= text[at] <= NINE:
        column = min(column * 10 + np.int64(text[at] - ZERO), LARGEST_COLUMN + 1)
        at += 1
    if at == start or text[at] != COLON or column > LARGEST_COLUMN or (is_negative and column):
        return -1, at
    return column, at + 1


@compiled
def _read_query(text, at):
    """Return (query, position behind it) of `qid:number`, the query -1 if it is none that int64 holds."""
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


@compiled
def _read_labels(text, at, several, labels, count):
    """Return (labels so far, position behind those of the row, whether one is wrong, whether one is hard).

    `count` labels came before. With `several` they have commas between them, and a row may have none.
    """
    start, before, has_hard = at, count, False
    if several and text[at] == LOWER_Q:  # no label before the query
        return before, start, False, False
    while True:
        first = at
        value, at, state = read_number(text, at)
        if several and text[at] == COLON:
            return before, start, False, False
        if state == BAD:
            return count, at, True, False
        labels[count] = marked(first) if state == HARD else value
        has_hard |= state == HARD
        count += 1
        if not (several and text[at] == COMMA):
            return count, at, not _ends_word(text[at]), has_hard
        at += 1


@compiled
def _read_rows(text, several, labels, label_counts, queries, starts, columns, values):
    """Return (rows, labels, entries, whether a number is hard) of the text; rows is -1 if some line is wrong."""
    at = row = entry = label = 0
    has_hard = False
    starts[0] = 0
    while at < text.size:
        at = _behind_blanks(text, at)
        if text[at] != NEWLINE and text[at] != HASH:
            before = label
            label, at, is_wrong, is_hard = _read_labels(text, at, several, labels, label)
            has_hard |= is_hard
            if is_wrong:
                return -1, label, entry, has_hard
            label_counts[row], queries[row] = label - before, NO_QUERY
            at = _behind_blanks(text, at)
            if text[at] == LOWER_Q and text[at + 1] == LOWER_I and text[at + 2] == LOWER_D:
                queries[row], at = _read_query(text, at)
                if queries[row] == NO_QUERY:
                    return -1, label, entry, has_hard
                at = _behind_blanks(text, at)
            last = np.int64(-1)
            while text[at] != NEWLINE and text[at] != HASH:
                column, at = _read_column(text, at)
                if column <= last:
                    return -1, label, entry, has_hard
                last, first = column, at
                value, at, state = read_number(text, at)
                if state == BAD or not _ends_word(text[at]):
                    return -1, label, entry, has_hard
                if state == HARD:
                    value, has_hard = marked(first), True
                columns[entry], values[entry] = column, value
                entry += 1
                at = _behind_blanks(text, at)
            row += 1
            starts[row] = entry
        while text[at] != NEWLINE:
            at += 1
        at += 1
    return row, label, entry, has_hard


def read_rows(text: bytes, several: bool = False) -> TextRows:
    """Read the rows of a block of lines, which ends with a line end; `InvalidLineError` if a line is wrong.

    With `several` a row has any number of labels with commas between them, else one. Columns of a row increase;
    numbers equal those of Python's `float`. Infinite values and labels are refused.
    """
    codes = codes_of(text)
    lines, colons, commas = _counts(codes)
    labels = np.empty(lines + (commas if several else 0))
    label_counts, queries, starts = np.empty(lines, np.int64), np.empty(lines, np.int64), np.empty(lines + 1, np.int64)
    columns, values = np.empty(colons, np.int32), np.empty(colons)
    rows, count, entries, has_hard = _read_rows(codes, several, labels, label_counts, queries, starts, columns, values)
    if rows < 0:
        raise InvalidLineError("a line is no svmlight text")
    labels, values = labels[:count], values[:entries]
    if has_hard:
        for numbers in (labels, values):
            settle(numbers, text)
            if not np.isfinite(numbers).all():
                raise InvalidLineError("a number is infinite")
    return TextRows(labels, label_counts[:rows], queries[:rows], starts[: rows + 1], columns[:entries], values)


def joined(parts: Iterable[TextRows]) -> TextRows:
    """Return the rows of all parts, one after the other, made field by field so that no field is held twice but one."""
    fields = dict(zip(TextRows._fields, map(list, zip(*parts, strict=True)), strict=False))
    if not fields:
        return read_rows(b"")
    steps = [part[-1] for part in fields["starts"]]
    before = np.cumsum([0, *steps[:-1]])
    fields["starts"] = [part[1:] + more for part, more in zip(fields["starts"], before, strict=True)]
    fields["starts"].insert(0, np.zeros(1, np.int64))
    return TextRows(**{name: np.concatenate(fields.pop(name)) for name in TextRows._fields})
