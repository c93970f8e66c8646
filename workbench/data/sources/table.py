"""Tables of named columns: CSV, TSV and other separated text, JSON lines, packed or not, and Parquet.

They are in memory while they are encoded, so that later passes do not read and split the file again.
"""

import dataclasses
import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, final

from workbench.data.contract import Source, register
from workbench.data.dataset.record import Dataset, RowBlock, RowBlocks, Stream, StreamedBlock
from workbench.data.errors import ADVICE_LABELS, ADVICE_LABELS_FILE, AS_WHOLE, DataError, MissingLabelsError
from workbench.data.files.lent_lines import one_ahead
from workbench.data.files.reading import blocks_of_file, dataset_of, reading
from workbench.data.labels import GUESSED, NONE, Wanted, format_names
from workbench.data.stored.converting import blocks_of
from workbench.data.tables.assembly import Learned, learn
from workbench.data.tables.blocks import TABLE, Block, Table, joined
from workbench.data.tables.columns import LAYOUT, Columns, load
from workbench.data.tables.dialect import dialect_of
from workbench.data.tables.guessing import DATE, LABELS, guessed, labelled_rows, nested_of, opened_table
from workbench.data.tables.notes import hashed_notes, notes_of
from workbench.data.tables.schema import Column
from workbench.data.tables.sparse_fields import SparseTable
from workbench.data.tables.texts import MISSING_WORDS, arrow
from workbench.data.text.stacking import stack_with_labels
from workbench.option_text import typed


@final
class HeldTable:
    """A table whose columns `names` are in memory as pyarrow holds them, as one block, for several passes."""

    def __init__(self, table: Table, names: Sequence[str]) -> None:
        """Read the columns; DataError as the table raises."""
        self._table, self._names = table, names
        self.path, self.names, self.kinds = table.path, table.names, table.kinds
        self._block: Block | None = None
        self.is_last_pass = False
        """Whether the next pass is the last one, after which nothing is held."""

    def blocks(self, names: Sequence[str]) -> Iterator[Block]:
        """Yield all rows as one block, {name: Texts} of the columns `names`; nothing for a table without rows."""
        if not names:
            return
        if self._block is None:
            self._block = joined(self._table, self._names)
        block = {name: self._block[name] for name in names}
        if self.is_last_pass:
            self._block = None
        if len(block[names[0]].codes):
            yield block

    def keep_features(self, columns: Columns) -> None:
        """Hold columns that were guessed to be features by their cleaned values alone, and those ignored no more."""
        block = {} if self._block is None else self._block
        for column in columns:
            if column.kind == "ignored":
                block.pop(column.name, None)
            elif column.kind != "label" and column.found is not None:
                block[column.name] = block[column.name].cleaned(MISSING_WORDS)
        arrow().default_memory_pool().release_unused()

    def place(self, row: int) -> str:
        """Return where a row (index from 0) stands in the file, such as "a.csv:12"."""
        return self._table.place(row)

    def layout(self) -> dict[str, Any]:
        """Return the layout parameters of the wrapped table, by name."""
        return self._table.layout()


HASHED = "hashed"
"""Fact of a data set: the sentences on columns that are hashed into buckets."""
OF_PEOPLE = re.compile(r"(?i)(^|_)(user|customer|member|reader|viewer|listener|visitor)(_?id)?$")
"""Names of columns of people, of whom a table may say what they took."""
UNLABELLED = ("refuse", "skip")
"""What is done with rows that have no label."""


def make(
    path: str | os.PathLike,
    columns: str | os.PathLike | Mapping[str, Any] | Columns | None = None,
    label: str | None = None,
    wanted: Wanted = GUESSED,
    separator: str | None = None,
    header: bool | None = None,
    quotes: bool | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    hashed: int | None = None,
    bins: int | None = None,
    unlabelled: str = "refuse",
) -> Dataset:
    """Return the table by its columns, each a category, a number, text, the label, or ignored; features in their order.

    `columns` is a file of column kinds (`workbench data columns` writes one; `data.guess_columns(path).text()` shows
    it); columns that it does not name are guessed from all rows, by the rules in `data.tables.guessing`. What becomes
    of each kind is said in `data.tables.schema`. `label` names the column of labels; None takes one declared or
    called label, target, y, click, class or alike, else the only one of two values, else the last one. `separator`
    is one sign, or comma, tab, semicolon, pipe, space; `header` says whether the first row holds names, else they
    are c0, c1, ...; `quotes` whether double quotes enclose fields. None guesses the first two. The separator blanks
    stands for any number of blanks and tabs. `decimal` is the sign before a fraction, by default a point, or a comma
    where columns stand between semicolons and numbers are written so; `encoding` is that of a text, by default UTF-8,
    or UTF-16 by its mark. `hashed` is the number of buckets for every guessed category, `bins` that of ranges of a
    guessed number, which is kept as it is by default. Rows without a label are refused, or left out with
    `unlabelled` "skip".

    A value is missing where it is empty, ?, NA, NaN, null, None or \\N; blanks around values are taken off. `kind` of
    labels is `classes`, `numbers` or `multilabel` (commas between several); None guesses: text and up to 1,000
    different whole numbers are classes. `positive` names the class that means yes. `classes` are all there may be, in
    order; a label that is none of them counts to the class `unseen`, or is refused. A file read `like` another has its
    columns, values, ranges and divisors; values that it did not have count as missing ones.

    Memory holds the table in addition to the matrix while this is put together. Refused (`DataError`, with
    file and line): rows with fewer or more fields, text that is not UTF-8, a label that is missing, infinite numbers,
    and what is no number in a column of numbers.
    """
    with reading(path, TABLE):
        declared = load(columns)
        layout = dict(zip(LAYOUT, (separator, header, quotes, decimal, encoding), strict=True))
        return encoded(opened_table(path, declared, layout), wanted, declared, label, hashed, bins, unlabelled)


def encoded(table: Table, wanted: Wanted = GUESSED, columns: Any = None, *given: Any, **named: Any) -> Dataset:
    """Return the data set of a table, parameters as for `make`; its columns are held in memory for all passes."""
    learned, facts = _learn_encoding(table, wanted, load(columns), *given, is_held=True, **named)
    parts = list(learned.parts())
    arrow().default_memory_pool().release_unused()
    x, labels = parts[0] if len(parts) == 1 else stack_with_labels(parts, table.path)
    made = dataset_of("table", x, labels, wanted, table.path, learned.table.place)
    return dataclasses.replace(made, facts=facts)


def blocks(path: str | os.PathLike, wanted: Wanted = GUESSED, **parameters: Any) -> RowBlocks:
    """Return the rows of the table as blocks, parameters as for `make`.

    Statistics of columns are gathered in passes before. Memory holds a block, the values of categories, and sketches of
    numbers. Several labels a row (`multilabel`) are read whole. Raises DataError, with file and line, for invalid
    values.
    """
    if wanted.kind == "multilabel":
        return blocks_of(make(path, wanted=wanted, **parameters))
    with reading(path, TABLE):
        declared = load(parameters.pop("columns", None))
        layout = {name: parameters.pop(name) for name in LAYOUT if name in parameters}
        learned, facts = _learn_encoding(opened_table(path, declared, layout), wanted, declared, **parameters)
    return blocks_of_file("table", (RowBlock(*part) for part in learned.parts()), path, facts=facts)


BUCKETS_OF_STREAM = 1 << 16
"""Columns of each category and text whose rows are streamed."""


@final
class FirstRows:
    """The first block of a table, as a table."""

    def __init__(self, table: Table) -> None:
        """Store the table; nothing is read."""
        self._table = table
        self.path, self.names, self.kinds = table.path, table.names, table.kinds

    def blocks(self, names: Sequence[str]) -> Iterator[Block]:
        """Yield the first block of the columns `names`."""
        yield from itertools.islice(self._table.blocks(names), 1)

    def place(self, row: int) -> str:
        """Return where a row (index from 0) stands in the file."""
        return self._table.place(row)

    def layout(self) -> dict[str, Any]:
        """Return the layout parameters of the table, by name."""
        return self._table.layout()


def stream(path: str | os.PathLike, size: int, hashed: int | None = None, **parameters: Any) -> Stream:
    """Return the rows of the table for one pass, parameters as for `make`; what columns are is guessed from the first.

    Categories and texts that are guessed are hashed into `hashed` columns each, by default 65,536; values of several
    parts that the first rows lack are left out. `size` is not used: blocks are as large as the table gives. Raises
    DataError for rows with several labels, and JSON of many fields, which is read whole.
    """
    buckets = hashed or BUCKETS_OF_STREAM
    with reading(path, TABLE):
        declared = load(parameters.pop("columns", None))
        layout = {name: parameters.pop(name) for name in LAYOUT if name in parameters}
        table = opened_table(path, declared, layout)
        if isinstance(table, SparseTable):
            raise DataError(f"{path} has other fields in each row, which are not read block by block.\n{AS_WHOLE}")
        learned, facts = _learn_encoding(FirstRows(table), GUESSED, declared, hashed=buckets, **parameters)
    if parameters.get("unlabelled") == "skip" and learned.labels is not None:
        table = labelled_rows(table, learned.labels.column)
    own = {column.name for column in declared}
    columns = tuple(one if one.name in own else _with_all_buckets(one, buckets) for one in learned.columns)
    columns_read = dataclasses.replace(declared, columns=columns, layout=table.layout(), ignores_others=True)
    whole, rows = learned.of_first(columns, table), learned.labels.rows if learned.labels else 0

    def blocks(start: int) -> Iterator[StreamedBlock]:
        """Yield the blocks from number `start` on; the next is read and encoded while one is used."""
        for number, part in enumerate(one_ahead(whole.parts()), 1):
            if number > start:
                yield StreamedBlock(part.x, part.labels, number)

    notes = [note for note in facts["guesses"] if "hashed into" not in note and "counts of" not in note]
    notes += [*hashed_notes(columns_read), f"Columns were guessed from the first {rows:,} rows."]
    facts = {"reread": {"columns": columns_read.mapping()}, "guesses": notes}
    return Stream(blocks, None, facts, table.place)


def _with_all_buckets(column: Column, buckets: int) -> Column:
    """Return a column whose values are hashed, into all buckets, also those that no value was in so far."""
    if column.kind == "text":
        return Column(column.name, "text", "hashed", buckets, missing=column.missing, optional=column.optional)
    return dataclasses.replace(column, kept=None) if column.encoding == "hashed" else column


def _learn_encoding(
    table: Table,
    wanted: Wanted,
    declared: Columns,
    label: str | None = None,
    hashed: int | None = None,
    bins: int | None = None,
    unlabelled: str = "refuse",
    *,
    is_held: bool = False,
) -> tuple[Learned, dict[str, Any]]:
    """Return (the table with everything that encodes its rows, facts of the data set); parameters as for `make`.

    With `is_held` the blocks of the first pass are kept for the next ones. Raises DataError for invalid settings or
    values, MissingLabelsError if no column is the label.
    """
    if unlabelled not in UNLABELLED:
        raise DataError(f"unlabelled is {unlabelled!r}; expected one of: {', '.join(UNLABELLED)}.")
    if wanted.kind != NONE and declared.ignores_others and declared.label and declared.label.name not in table.names:
        raise MissingLabelsError(f"{table.path} has no column {declared.label.name!r}, the labels.\n{ADVICE_LABELS}")
    if wanted.kind == NONE and declared.label is not None and declared.label.name not in table.names:
        declared = dataclasses.replace(declared, columns=tuple(one for one in declared if one.kind != "label"))
    opened = table
    if is_held and not isinstance(table, SparseTable):
        unused = {column.name for column in declared if column.kind == "ignored"}
        names = {*(declared.names if declared.ignores_others else table.names), *filter(None, [label])}
        table = HeldTable(table, [name for name in table.names if name in names - nested_of(table) - unused])
    found = guessed(table, declared, label, hashed, bins, guesses_label=wanted.kind != NONE, is_shown=False)
    if found.label is None and wanted.kind != NONE:
        if len(table.names) == 1:
            what = f"{table.path} has one column, {table.names[0]!r}, and no column of labels"
            raise MissingLabelsError(f"{what}.\n{ADVICE_LABELS_FILE}")
        known = f"none is called {', '.join(LABELS[:4])} or alike"
        recurring = [
            one for one in found if one.found and not one.found.missing and 2 * one.found.distinct < one.found.rows
        ]
        named = [one.name for one in recurring if not (one.values and re.match(DATE, one.values[0]))]
        example = f"Name it, such as {typed(label=[*table.names[-1:], *named][-1])}, or in columns"
        what = f"{table.path}: which column is the label? {known}"
        if len(table.names) in (3, 4) and not table.layout().get("header", True):
            example += "; or take the data set ratings, where a row is a user, an item and a rating"
        if any(map(OF_PEOPLE.search, table.names)):
            example += f"; or, where rows say who took what, take {typed(model='als')}, which needs no label"
        raise MissingLabelsError(f"{what}. {example}. There are {format_names(table.names)}.\n{ADVICE_LABELS}")
    if isinstance(table, HeldTable):
        table.keep_features(found)
    is_cut = unlabelled == "skip" and found.label is not None
    if is_cut:  # values of rows that are left out count for nothing
        given = {column.name: column.values for column in declared}
        found = dataclasses.replace(found, columns=tuple(one.with_values(given.get(one.name)) for one in found))
    learned = learn(labelled_rows(table, found.label) if is_cut and found.label else table, found.columns, wanted)
    if isinstance(table, HeldTable):
        table.is_last_pass = True
    columns_read = dataclasses.replace(found, columns=learned.columns, ignores_others=True)
    notes, hashes = notes_of(opened, declared, found, columns_read), [*hashed_notes(columns_read)]
    facts = {"reread": {"columns": columns_read.mapping()}, "guesses": notes}
    return learned, facts | ({HASHED: " ".join(hashes)} if hashes else {})


def _files(path: str | os.PathLike, columns: Any = None, **rest: Any) -> tuple[str | os.PathLike, ...]:
    """Return the paths that a table is read from: the data, and the column file if `columns` is a path."""
    return (path, columns) if isinstance(columns, str | os.PathLike) else (path,)


def _head(path: str | os.PathLike, options: Mapping[str, Any]) -> tuple[int, bool]:
    """Return how many lines of a text table are above its rows, and whether the last of them is a header."""
    dialect = dialect_of(path, **{name: options[name] for name in LAYOUT if options.get(name) is not None})
    return dialect.comments + dialect.rows_skipped, dialect.header


register(Source("table", make, files=_files, blocks=blocks, stream=stream, head=_head))
