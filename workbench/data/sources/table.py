"""Tables of named columns: CSV, TSV and other separated text, JSON lines, packed or not, and Parquet.

Their blocks are kept after the first pass, so that later passes do not read and split the file again.
"""

import dataclasses
import os
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, final

import numpy as np

from workbench.data.contract import Source, register
from workbench.data.dataset.record import Dataset, RowBlock, RowBlocks
from workbench.data.errors import ADVICE_LABELS, ADVICE_LABELS_FILE, DataError, MissingLabelsError
from workbench.data.files.reading import blocks_of_file, dataset_of, reading
from workbench.data.labels import GUESSED, NONE, Wanted, format_names
from workbench.data.stored.converting import blocks_of
from workbench.data.tables.arrow import MISSING_WORDS, Texts, TextStore, arrow
from workbench.data.tables.assembly import Learned, learn, missing_words
from workbench.data.tables.blocks import TABLE, Block, Table
from workbench.data.tables.columns import LAYOUT, Columns, load
from workbench.data.tables.dialect import dialect_of
from workbench.data.tables.guessing import (
    LABELS,
    amount_note,
    decimal_note,
    guessed,
    hashed_notes,
    identifier_note,
    ignored_note,
    label_note,
    labelled_rows,
    layout_notes,
    nested_note,
    opened_table,
    several_notes,
    unit_note,
)
from workbench.data.tables.schema import BINS, Column
from workbench.data.tables.sparse_fields import SparseTable
from workbench.data.text.stacking import Growing, stack_with_labels
from workbench.heap import release_heap

BYTES_VALUE = 12
"""Bytes that are kept for each value at most, on average; its entry takes 8 in the matrix."""
BLOCKS_RELEASED = 8
"""Blocks of a pass after which their memory is given back: the matrix grows meanwhile. That takes 3 ms, and as much
until new memory is there, so that it is not done for a file of fewer blocks."""
MOSTLY_DIFFERENT = 0.5
"""Share of different texts among the rows of a block, from which on numbers are kept without their texts."""


@final
class HeldTable:
    """A table that keeps the blocks of `names` when they are first read, in at most `BYTES_VALUE` a value.

    Columns are kept without words for missing values, and numbers that differ mostly without their texts, unless they
    are among `as_they_stand`. If texts are so long or so different that they take more, nothing is kept, and each pass
    reads the file.
    """

    def __init__(self, table: Table, names: Collection[str], as_they_stand: Collection[str] = ()) -> None:
        """Wrap `table` so that the columns `names` are kept after the first pass.

        Those in `as_they_stand` unchanged.
        """
        self._table, self._wanted, self._as_they_stand = table, names, as_they_stand
        self.path, self.names, self.nested = table.path, table.names, table.nested
        self._kept: list[Block] = []
        self._is_whole = False
        self._without_words, self._without_texts = set[str](), set[str]()
        self._columns: Mapping[str, Column] = {}
        self.is_last_pass = False
        """Whether the next pass is the last one, so that what it has yielded is not kept."""

    def blocks(self, names: Sequence[str]) -> Iterator[Block]:
        """Yield the rows in blocks, {name: Texts} of the columns `names`, from memory if kept, else from the file.

        On the last pass kept blocks are freed as they are yielded. Raises DataError as the wrapped table does.
        """
        if self._is_whole and self._kept and set(names) <= self._kept[0].keys() and not self._lacks(names):
            blocks, count = deque(self._kept), 0
            if self.is_last_pass:
                self._kept, self._is_whole = [], False
            while blocks:
                block, count = blocks.popleft(), count + 1
                yield {name: _widen_indices(block[name]) for name in names}
                if self.is_last_pass and count % BLOCKS_RELEASED == 0:
                    del block
                    _release_memory()
        elif names:
            yield from self._read(names)

    @property
    def rows(self) -> int | None:
        """Number of rows if the table was read and is kept, else None."""
        blocks = self._kept if self._is_whole else []
        return sum(len(next(iter(block.values())).numbers) for block in blocks) or None

    def take(self, columns: Columns) -> None:
        """Store the kinds of the columns, which decide whether what is kept of them suffices."""
        self._columns = {column.name: column for column in columns}

    def _lacks(self, names: Sequence[str]) -> bool:
        """Return whether a column must be read again: for other words for missing values, or as text."""
        for name in self._without_words.intersection(names):
            column = self._columns.get(name)
            if column is None or column.kind == "label" or missing_words(column) != MISSING_WORDS:
                return True
        return any(self._columns[name].kind != "number" for name in self._without_texts.intersection(names))

    def _read(self, names: Sequence[str]) -> Iterator[Block]:
        """Yield the blocks of a pass over the file, and keep them while they take at most `BYTES_VALUE` a value.

        If they take more, all are dropped and later passes read the file.
        """
        every = [name for name in self.names if name in self._wanted or name in names]
        taken = values = count = 0
        stores: dict[TextStore, int] = {}
        self._kept, is_kept = [], not (self._is_whole or self.is_last_pass)
        for block in self._table.blocks(every if is_kept else names):
            yield {name: block[name] for name in names}
            count += 1
            if is_kept:
                self._kept.append({name: self._held(name, texts) for name, texts in block.items()})
                taken += sum(texts.nbytes for texts in self._kept[-1].values())
                stores |= {
                    known.store: known.store.nbytes for texts in self._kept[-1].values() if (known := texts.known)
                }
                values += sum(len(texts.numbers) for texts in block.values())
                if taken + sum(stores.values()) > BYTES_VALUE * values:
                    self._kept, is_kept, stores = [], False, {}
        for store in stores:
            store.close()
        self._is_whole = True
        if count >= BLOCKS_RELEASED:
            _release_memory()  # what the blocks took while they were split

    def _held(self, name: str, texts: Texts) -> Texts:
        """Return a column of a block as it is kept: cleaned, indices narrowed, differing numbers without texts."""
        if name in self._as_they_stand:
            return _narrow_indices(texts)
        cleaned = texts.cleaned(MISSING_WORDS)
        if cleaned.numbers is not texts.numbers:
            self._without_words.add(name)
        if len(cleaned) > MOSTLY_DIFFERENT * len(texts.numbers):
            is_whole = cleaned.are_printed_whole()
            if is_whole or _are_fractions(cleaned.values):
                self._without_words.add(name)
                self._without_texts |= set() if is_whole else {name}
                return cleaned.without_texts()
        return _narrow_indices(cleaned)

    def place(self, row: int) -> str:
        """Return where a row (index from 0) stands in the file, such as "a.csv:12"."""
        return self._table.place(row)

    def layout(self) -> dict[str, Any]:
        """Return the layout parameters of the wrapped table, by name."""
        return self._table.layout()


def _release_memory() -> None:
    """Return free memory of pyarrow's allocator, and on Linux of the C library, to the system."""
    arrow().default_memory_pool().release_unused()
    release_heap()


def _narrow_indices(texts: Texts) -> Texts:
    """Return the texts, copied out of their block, with row indices as int16 if they suffice."""
    texts.settle()
    return texts.of_rows(texts.numbers.astype(np.int16 if len(texts) <= np.iinfo(np.int16).max else np.int32))


def _widen_indices(texts: Texts) -> Texts:
    """Return the texts with row indices as int32."""
    return texts.of_rows(texts.numbers.astype(np.int32, copy=False))


def _are_fractions(values: np.ndarray) -> bool:
    """Return whether all values are finite and some are not whole."""
    return bool(np.isfinite(values).all()) and bool((np.floor(values) != values).any())


def _possible_labels(table: Table, declared: Columns, label: str | None) -> set[str]:
    """Return the names of columns that are declared as the label, or may be guessed to be it."""
    possible = {name for name in table.names if name.casefold() in LABELS}
    return possible | {column.name for column in declared if column.kind == "label"} | {label or "", table.names[-1]}


HASHED = "hashed"
"""Fact of a data set: the sentences on columns that are hashed into buckets."""
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
    bins: int = BINS,
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
    guessed number. Rows without a label are refused, or left out with `unlabelled` "skip".

    A value is missing where it is empty, ?, NA, NaN, null, None or \\N; blanks around values are taken off. `kind` of
    labels is `classes`, `numbers` or `multilabel` (commas between several); None guesses: text and up to 1,000
    different whole numbers are classes. `positive` names the class that means yes. `classes` are all there may be, in
    order; a label that is none of them counts to the class `unseen`, or is refused. A file read `like` another has its
    columns, values, ranges and divisors; values that it did not have count as missing ones.

    Memory holds the matrix twice while it is put together, in addition to one block of text. Refused (`DataError`, with
    file and line): rows with fewer or more fields, text that is not UTF-8, a label that is missing, infinite numbers,
    and what is no number in a column of numbers.
    """
    with reading(path, TABLE):
        layout = dict(zip(LAYOUT, (separator, header, quotes, decimal, encoding), strict=True))
        learned, facts = _learn_encoding(path, wanted, columns, label, hashed, bins, unlabelled, is_held=True, **layout)
        entries = Growing(learned.table.rows if isinstance(learned.table, HeldTable) else None)
        x, labels = stack_with_labels(learned.parts(entries.take), path, entries)
        made = dataset_of("table", x, labels, wanted, path, learned.table.place)
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
        learned, facts = _learn_encoding(path, wanted, **parameters)
    return blocks_of_file("table", (RowBlock(*part) for part in learned.parts()), path, facts=facts)


def _learn_encoding(
    path: str | os.PathLike,
    wanted: Wanted,
    columns: str | os.PathLike | Mapping[str, Any] | Columns | None = None,
    label: str | None = None,
    hashed: int | None = None,
    bins: int = BINS,
    unlabelled: str = "refuse",
    is_held: bool = False,
    **layout: Any,
) -> tuple[Learned, dict[str, Any]]:
    """Return (the table with everything that encodes its rows, facts of the data set); parameters as for `make`.

    With `is_held` the blocks of the first pass are kept for the next ones. Raises DataError for invalid settings or
    values, MissingLabelsError if no column is the label.
    """
    if unlabelled not in UNLABELLED:
        raise DataError(f"unlabelled is {unlabelled!r}; expected one of: {', '.join(UNLABELLED)}.")
    declared = load(columns)
    table = opened_table(path, declared, layout)
    notes = [decimal_note(table, declared), *layout_notes(table)]
    if wanted.kind != NONE and declared.ignores_others and declared.label and declared.label.name not in table.names:
        raise MissingLabelsError(f"{table.path} has no column {declared.label.name!r}, the labels.\n{ADVICE_LABELS}")
    if wanted.kind == NONE and declared.label is not None and declared.label.name not in table.names:
        declared = dataclasses.replace(declared, columns=tuple(one for one in declared if one.kind != "label"))
    if is_held and not isinstance(table, SparseTable):
        unused = {column.name for column in declared if column.kind == "ignored"}
        names = set(declared.names if declared.ignores_others else table.names) - table.nested - unused
        own_words = {column.name for column in declared if missing_words(column) != MISSING_WORDS}
        table = HeldTable(table, names, own_words | _possible_labels(table, declared, label))
    found = guessed(table, declared, label, hashed, bins, guesses_label=wanted.kind != NONE, is_shown=False)
    if isinstance(table, HeldTable):
        table.take(found)
    if found.label is None and wanted.kind != NONE:
        if len(table.names) == 1:
            what = f"{table.path} has one column, {table.names[0]!r}, and no column of labels"
            raise MissingLabelsError(f"{what}.\n{ADVICE_LABELS_FILE}")
        known = f"none is called {', '.join(LABELS[:4])} or alike"
        example = f"Name it, such as label = {table.names[-1]} (in the setting reading), or in columns"
        what = f"{table.path}: which column is the label? {known}"
        if len(table.names) in (3, 4) and not table.layout().get("header", True):
            example += "; or take the data set ratings, where a row is a user, an item and a rating"
        raise MissingLabelsError(f"{what}. {example}. There are {format_names(table.names)}.\n{ADVICE_LABELS}")
    is_cut = unlabelled == "skip" and found.label is not None
    if is_cut:  # values of rows that are left out count for nothing
        given = {column.name: column.values for column in declared}
        found = dataclasses.replace(found, columns=tuple(one.with_values(given.get(one.name)) for one in found))
    learned = learn(labelled_rows(table, found.label) if is_cut and found.label else table, found.columns, wanted)
    if isinstance(table, HeldTable):
        table.is_last_pass = True
    columns_read = dataclasses.replace(found, columns=learned.columns, ignores_others=True)
    of_columns = (label_note, identifier_note, ignored_note, amount_note, unit_note)
    told = (nested_note(table), *(note(found) for note in of_columns), *several_notes(columns_read))
    hashes = hashed_notes(columns_read)
    notes = [note for note in (*notes, *told, *hashes) if note]
    facts = {"reread": {"columns": columns_read.mapping()}, "guesses": notes}
    return learned, facts | ({HASHED: " ".join(hashes)} if hashes else {})


def _files(path: str | os.PathLike, columns: Any = None, **rest: Any) -> tuple[str | os.PathLike, ...]:
    """Return the paths that a table is read from: the data, and the column file if `columns` is a path."""
    return (path, columns) if isinstance(columns, str | os.PathLike) else (path,)


def _head(path: str | os.PathLike, options: Mapping[str, Any]) -> tuple[int, bool]:
    """Return how many lines of a text table are above its rows, and whether the last of them is a header."""
    dialect = dialect_of(path, **{name: options[name] for name in LAYOUT if options.get(name) is not None})
    return dialect.comments + dialect.rows_skipped, dialect.header


register(Source("table", make, files=_files, blocks=blocks, head=_head))
