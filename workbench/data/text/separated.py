"""Text of a few columns a line, such as `user item rating`: every column as codes into its distinct texts.

Lines are read by pandas' reader; a line that is wrong is looked for once more, for the message. Lines that begin with
# or % before the first row are comments; what is empty is passed over.
"""

import csv
import itertools
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from workbench.data.errors import DataError
from workbench.data.files.labels import is_whole
from workbench.data.files.opened import open_text, place_at
from workbench.data.labels import Place, number_named

SIGNS = {"colons": "::", "tab": "\t", "semicolon": ";", "comma": ",", "pipe": "|", "space": " "}
"""What parts columns, by name, in the order in which they are looked for in the first line."""
QUOTED = ("comma", "semicolon")
"""Separators of files whose fields may stand in quotes."""
COMMENTS = (b"#", b"%")
TYPES = {"text": str, "whole": np.int64, "number": np.float64}
"""What pandas' reader makes of a column; its own categories would be numbers where all look so, 7 of 07."""

_TOO_MANY = re.compile(r"Expected \d+ fields in line (\d+), saw (\d+)")


@dataclass(frozen=True)
class Layout:
    """Layout of the rows of a file: name of the separator, columns of the first row, lines before it.

    `first` and `second` are the fields of the first two rows, the second empty if there is none.
    """

    separator: str
    columns: int
    skipped: int
    first: tuple[str, ...]
    second: tuple[str, ...]

    @property
    def without_header(self) -> "Layout":
        """The same layout with the first row skipped as a header."""
        return Layout(self.separator, self.columns, self.skipped + 1, self.second, ())


class Column(NamedTuple):
    """A column: for each row the place of its text in `texts`, which are distinct."""

    codes: np.ndarray
    texts: list[str]


def layout(path: str | os.PathLike, separator: str | None = None) -> Layout:
    """Return the layout of a file inferred from its first two rows; `separator` is a key of `SIGNS`, None to infer it.

    Raises DataError for another separator, or a file without rows.
    """
    if separator is not None and separator not in SIGNS:
        raise DataError(f"separator is {separator!r}; it is one of {', '.join(SIGNS)}, or left out to be told.")
    with open_text(path) as file:
        before, lines = _skip_comments(file)
        rows = [line.decode("utf-8") for line in itertools.islice(filter(bytes.strip, lines), 2)]
    if not rows:
        raise DataError(f"{path} holds no rows.")
    name = separator or next((name for name, sign in SIGNS.items() if sign in rows[0].strip()), "space")
    first, *others = (tuple(fields(row, name)) for row in rows)
    return Layout(name, len(first), before, first, others[0] if others else ())


def fields(line: str, separator: str) -> list[str]:
    """Return the stripped fields of a line; `separator` is a key of `SIGNS`."""
    if separator == "space":
        return line.split()
    if separator in QUOTED:
        return [field.strip() for field in next(csv.reader([line.strip()], delimiter=SIGNS[separator]), [])]
    return [field.strip() for field in line.rstrip("\r\n").split(SIGNS[separator])]


def lines_of(path: str | os.PathLike, layout: Layout, comments: bool = False) -> Iterator[tuple[int, bytes]]:
    """Yield (line number from 1, line) of the lines that contain rows, those before the first row skipped.

    With `comments` what follows a # is removed from each line.
    """
    with open_text(path) as file:
        for number, line in enumerate(file, 1):
            held = line.partition(b"#")[0] if comments else line
            if number > layout.skipped and held.strip():
                yield number, held


def place_of(path: str | os.PathLike, layout: Layout, comments: bool = False) -> Place:
    """Return a function from a row index to "path:line", for error messages; each call reads the file."""
    return lambda row: place_at(path, (line for line, _ in lines_of(path, layout, comments)), row)


def read_columns(
    path: str | os.PathLike,
    layout: Layout,
    kinds: Mapping[int, str],
    comments: bool = False,
    advice: Callable[[int], str] = lambda place: "",
) -> dict[int, Any]:
    """Return {column index: values} of the columns in `kinds`, read with pandas.

    Kind "text" gives a `Column`, "whole" int64 [rows], "number" float64 [rows]. With `comments`, # ends a line. Raises
    DataError, with the line, for rows of another number of columns than the first, empty fields, and values that are
    not finite or not whole; `advice(column index)` ends the message of such a value. About a second and 100 MB per
    million rows of two text columns, a third of that for numbers.
    """
    from pandas.errors import ParserError  # half a second to import, and only these readers need it

    try:
        columns = _parsed(path, layout, kinds, comments)
    except ParserError as error:
        if found := _TOO_MANY.search(str(error)):
            raise DataError(_wrong_count(f"{path}:{found[1]}", int(found[2]), layout)) from None
        raise DataError(f"{path} cannot be read as columns: {error}") from None
    except (ValueError, OverflowError):
        _refuse_first_error(path, layout, kinds, comments, advice)
        raise
    is_right = (
        "" not in column.texts if isinstance(column, Column) else np.isfinite(column).all()
        for column in columns.values()
    )
    if not all(is_right):
        _refuse_first_error(path, layout, kinds, comments, advice)
    return columns


def _refuse_first_error(
    path: str | os.PathLike,
    layout: Layout,
    kinds: Mapping[int, str],
    comments: bool,
    advice: Callable[[int], str],
) -> None:
    """Raise DataError for the first line with a wrong number of fields, an empty one, or one not of its kind.

    Returns if there is none. `advice(column index)` ends the message of a value that is not of its kind.
    """
    for number, line in lines_of(path, layout, comments):
        held = fields(line.decode("utf-8"), layout.separator)
        if len(held) != layout.columns:
            raise DataError(_wrong_count(f"{path}:{number}", len(held), layout))
        for place, kind in kinds.items():
            if not held[place]:
                raise DataError(f"{path}:{number}: a field is empty; all {layout.columns} columns hold something.")
            if kind != "text" and not IS_KIND[kind](held[place]):
                wanted = {"whole": "whole number below 2**63", "number": "finite number"}[kind]
                what = f"column {place + 1} is {held[place][:40]!r}; expected a {wanted}"
                raise DataError(f"{path}:{number}: {what}.{advice(place)}")


def is_number(text: str) -> bool:
    """Return whether text is a finite decimal number."""
    value = None if text in ("True", "False") else number_named(text)
    return value is not None and math.isfinite(value)


IS_KIND = {"whole": lambda text: is_whole(text) and len(text) < 20 and abs(int(text)) < 2**63, "number": is_number}
"""Whether text is of a kind of column."""


def _wrong_count(place: str, count: int, layout: Layout) -> str:
    """Return the error message for a line at `place` with `count` columns, another number than the first row has."""
    name = layout.separator
    return f"{place}: it has {count} columns, and the first row {layout.columns}; columns are parted by {name}."


def _parsed(path: str | os.PathLike, layout: Layout, kinds: Mapping[int, str], comments: bool) -> dict[int, Any]:
    """Return {column index: values} as pandas reads them: `Column` for kind "text", else an array.

    Raises pandas' ParserError, ValueError or OverflowError for malformed rows.
    """
    import pandas as pd

    step = 2 if layout.separator == "colons" else 1  # of two colons one parts: the columns between them are empty
    names = range(step * (layout.columns - 1) + 1)
    types = {step * place: TYPES[kind] for place, kind in kinds.items()}
    with open_text(path) as file, np.errstate(invalid="ignore"):  # what is no whole number is refused by pandas
        frame = pd.read_csv(
            file, sep={"colons": ":", "space": r"\s+"}.get(layout.separator, SIGNS[layout.separator]), header=None,
            names=names, index_col=False, dtype={name: types.get(name, str) for name in names}, na_filter=False,
            skiprows=layout.skipped, comment="#" if comments else None, skipinitialspace=True,
            quoting=csv.QUOTE_MINIMAL if layout.separator in QUOTED else csv.QUOTE_NONE,
        )  # fmt: skip
    read = {place: frame[step * place] for place in kinds}
    return {place: _column(read[place]) if kinds[place] == "text" else read[place].to_numpy() for place in kinds}


def _column(series) -> Column:
    """Return a pandas Series of str as codes, int64 [rows], into its distinct stripped texts."""
    codes, distinct = series.factorize()
    texts = [str(text) for text in distinct]
    if all(text == text.strip() for text in texts):
        return Column(codes.astype(np.int64, copy=False), texts)
    bare, place = np.unique(np.array([text.strip() for text in texts], dtype=object), return_inverse=True)
    return Column(place.astype(np.int64)[codes], bare.tolist())


def _skip_comments(file: BinaryIO) -> tuple[int, Iterator[bytes]]:
    """Return (number of comment and blank lines at the start, iterator over the lines behind them)."""
    lines, count = iter(file), 0
    for line in lines:
        if line.strip() and not line.lstrip().startswith(COMMENTS):
            return count, itertools.chain([line], lines)
        count += 1
    return count, lines
