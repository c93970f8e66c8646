"""Columns of a table together: what is said of each, as a file of column kinds (TOML) to be edited, and as words."""

import json
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from kernels.registry import unknown_name
from workbench import atomic_files
from workbench.data.errors import DataError
from workbench.data.labels import format_names
from workbench.data.tables.schema import ENCODINGS, SAYABLE, Column
from workbench.option_text import typed

# Columns of a table in words, for people: what each is, and what was seen of it.


HEADINGS = ("column", "kind", "encoding", "distinct", "missing", "why")


WIDEST_NAME = 40
"""Characters of a column's name that are shown: the first line of a file without a header may be one name."""


def table_lines(columns: Iterable[Column]) -> list[str]:
    """Return the columns as an aligned text table: a heading, a line of dashes, one line per column."""
    rows = [HEADINGS, *map(_cells, columns)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(HEADINGS))]
    rows.insert(1, tuple("-" * width for width in widths))
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _cells(column: Column) -> tuple[str, ...]:
    """Return the cells of a column in the printed table: name, kind, encoding, distinct, missing, reason."""
    found = column.found
    distinct = f"{'over ' if found.is_least else ''}{found.distinct:,}" if found else ""
    missing = f"{found.missing_share:.1%}" if found else ""
    name = shown(column.name)
    name = name if len(name) <= WIDEST_NAME else f"{name[: WIDEST_NAME - 1]}…"
    return name, column.kind, encoding_text(column), distinct, missing, shown(column.why)


def encoding_text(column: Column) -> str:
    """Return the encoding of a column with its size or scale as short text; "" if it has none.

    >>> encoding_text(Column("age", "number", bins=8)), encoding_text(Column("site", "category", buckets=1024))
    ('binned, 8 bins', 'hashed, 1,024 buckets')
    """
    counts = {"buckets": column.buckets, "bins": column.bins}
    if column.encoding == "binned" and column.edges is not None:
        counts["bins"] = len(column.edges) + 1
    texts = [f"{count:,} {name}" for name, count in counts.items() if count is not None]
    texts += [f"{len(column.values):,} values"] if column.values is not None else []
    if column.divisor is not None:
        texts.append(f"divided by {column.divisor:.4g}")
    elif column.scaling not in (None, "none"):
        texts.append(f"divided by the {'standard deviation' if column.scaling == 'deviation' else 'largest magnitude'}")
    return ", ".join([column.encoding, *texts]) if column.encoding else ""


def seen_text(column: Column) -> str:
    """Return the statistics of a column as text, such as "12 distinct, 3.0% missing; text"; "" if there are none."""
    if (found := column.found) is None:
        return ""
    least = "more than " if found.is_least else ""
    why = f"; {column.why}" if column.why else ""
    return shown(f"{least}{found.distinct:,} distinct, {found.missing_share:.1%} missing{why}")


def shown(text: str) -> str:
    """Return the text with each unprintable character (line ends, terminal controls) replaced by U+FFFD."""
    return "".join(sign if sign.isprintable() else "�" for sign in text)


MOST_BYTES = 1 << 28
LAYOUT = ("separator", "header", "quotes", "decimal", "encoding")
KEYS = (*LAYOUT, "others", "columns")


@final
@dataclass(frozen=True)
class Columns:
    """Columns of a table in their order, of a file or of some of its columns.

    `layout` holds separator, header and quotes, where the file is text. `ignores_others` says whether columns that are
    not here are ignored; else they are guessed. `source` is the file that a guess was made from.
    """

    columns: tuple[Column, ...]
    layout: Mapping[str, Any] = field(default_factory=dict)
    ignores_others: bool = False
    source: str = ""

    def __iter__(self) -> Iterator[Column]:
        """Iterate over the columns in order."""
        return iter(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def label(self) -> Column | None:
        """The column of labels, None if there is none."""
        return next((column for column in self.columns if column.kind == "label"), None)

    def mapping(self) -> dict[str, Any]:
        """Return all declarations as JSON values, as in a column file: layout keys, "others", and "columns"."""
        columns = {column.name: {"kind": column.kind} | column.said() for column in self.columns}
        return {**self.layout, "others": "ignored" if self.ignores_others else "guessed", "columns": columns}

    def text(self) -> str:
        """Return the columns as a text table: kind, encoding, distinct values, share missing, and why it was guessed.

        A first line states the layout of a text file, the last line states that no column is the label.
        """
        lines = table_lines(self.columns)
        if self.layout:
            header = "a header" if self.layout.get("header", True) else "no header"
            lines.insert(0, f"{self.source or 'table'}: separated by {self.layout.get('separator')!r}, {header}")
        if self.label is None:
            lines.append(f"No column is the label. Type {typed(label='NAME')}, or give one the kind label.")
        return "\n".join(lines)

    def save(self, path: str | os.PathLike) -> None:
        """Write the columns to `path` as a TOML file, to be edited and given as `columns`.

        An existing file is overwritten. Raises DataError if it cannot be written.
        """
        try:
            atomic_files.write(path, self.toml())
        except OSError as error:
            raise DataError(f"{path} cannot be written: {error.strerror or error}") from None

    def toml(self) -> str:
        """Return the content of a column file (TOML); statistics of a column stand in a comment.

        >>> print(Columns((Column("age", "number", bins=8),), {"separator": ";"}).toml(), end="")
        # Columns of a table. kind is category, number, text, label or ignored; a key that is left out has its default.
        separator = ";"
        others = "guessed"  # columns that are not named here: guessed or ignored
        <BLANKLINE>
        [columns.age]
        kind = "number"
        encoding = "binned"
        bins = 8
        """
        kinds = f"{', '.join(list(ENCODINGS)[:-1])} or {list(ENCODINGS)[-1]}"
        name = f" {Path(self.source).name!r}" if self.source else ""
        lines = [f"# Columns of a table{name}. kind is {kinds}; a key that is left out has its default."]
        mapping = self.mapping()
        lines += [f"{key} = {_value(value)}" for key, value in self.layout.items()]
        lines += [f"others = {_value(mapping['others'])}  # columns that are not named here: guessed or ignored"]
        for column in self.columns:
            seen = f"  # {seen_text(column)}" if column.found else ""
            lines += ["", f"[columns.{_key(column.name)}]{seen}"]
            lines += [f"{key} = {_value(value)}" for key, value in mapping["columns"][column.name].items()]
        return "\n".join(lines) + "\n"


def load(given: str | os.PathLike | Mapping[str, Any] | Columns | None) -> Columns:
    """Return the declared columns: from a TOML file, a mapping as `Columns.mapping` gives, or `Columns`; none for None.

    Raises DataError if the file is missing, too large or invalid, or an entry is unknown or invalid.
    """
    if given is None:
        return Columns(())
    if isinstance(given, Columns):
        return given
    if isinstance(given, Mapping):
        return columns_of(given, "columns")
    if not isinstance(given, str | os.PathLike):
        raise DataError(f"columns is a {type(given).__name__}; it is the path of a file of column kinds (.toml).")
    path = Path(given)
    if not path.is_file():
        raise DataError(f"There is no file {path}; 'workbench data columns SOURCE --out {path.name}' writes one.")
    if path.stat().st_size > MOST_BYTES:
        raise DataError(f"{path} has more than {MOST_BYTES:,} bytes; it is no file of column kinds.")
    try:
        mapping = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path} cannot be read as a file of column kinds (TOML): {error}") from None
    return columns_of(mapping, str(path))


def columns_of(mapping: Mapping[str, Any], source: str) -> Columns:
    """Return the columns that a mapping declares, of the form that `Columns.mapping` gives.

    Raises DataError, which names `source` and the key, for unknown keys, invalid values, and a second label column.
    """
    _refuse_unknown(mapping, KEYS, source)
    layout = {name: mapping[name] for name in LAYOUT if name in mapping}
    for name in ("header", "quotes"):
        if not isinstance(layout.get(name, True), bool):
            raise DataError(f"{source}: {name} is {layout[name]!r}; it is true or false.")
    others = mapping.get("others", "guessed")
    if others not in ("guessed", "ignored"):
        raise DataError(f"{source}: others is {others!r}; columns that are not named are 'guessed' or 'ignored'.")
    given = mapping.get("columns", {})
    if not isinstance(given, Mapping):
        raise DataError(f"{source}: columns is {given!r}; it holds a table for each column: [columns.age].")
    columns = tuple(_column(name, said, source) for name, said in given.items())
    if len(labels := [column.name for column in columns if column.kind == "label"]) > 1:
        raise DataError(f"{source}: {format_names(labels)} are of kind label; one column is, others are ignored.")
    return Columns(columns, layout, others == "ignored", source)


def _column(name: str, said: Any, source: str) -> Column:
    """Return the `Column` that the table `said` of a column file declares.

    DataError, beginning with `source`, if invalid.
    """
    if not isinstance(said, Mapping):
        raise DataError(f'{source}: column {name!r} is {said!r}; it is a table: [columns.{name}], kind = "category".')
    _refuse_unknown(said, SAYABLE, f"{source}: column {name!r}")
    if "kind" not in said:
        raise DataError(f"{source}: column {name!r} has no kind; it is one of {', '.join(ENCODINGS)}.")
    try:
        return Column(name, **said)
    except DataError as error:
        raise DataError(f"{source}: {error}") from None


def _refuse_unknown(given: Mapping[str, Any], known: tuple[str, ...], source: str) -> None:
    """Raise DataError, beginning with `source`, for the first key of `given` that is not in `known`."""
    if unknown := [key for key in given if key not in known]:
        raise DataError(f"{source}: {unknown_name('key', unknown[0], known)}")


def _key(name: str) -> str:
    """Return a column name as a TOML key, quoted if it is not a bare key."""
    is_bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if is_bare else _value(name)


def _value(value: Any) -> str:
    """Return a bool, str, number or list as TOML source."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)
