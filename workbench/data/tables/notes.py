"""Notes on how a table is read: what was guessed that users may want otherwise, each with what to type."""

from collections.abc import Iterator

from workbench.data.errors import column_advice, reader_option_advice
from workbench.data.labels import format_names
from workbench.data.tables.blocks import Table, TextTable
from workbench.data.tables.columns import Columns
from workbench.data.tables.guessing import (
    AMOUNTS,
    COUNTS_ROWS,
    ID_BY_NAME,
    ID_BY_VALUES,
    MOST_SHOWN,
    NAME_OF_ROW,
    NUMBERS_BY_NAME,
    TIMES,
    UNITS,
    nested_of,
)
from workbench.option_text import typed

IDS = (ID_BY_NAME, ID_BY_VALUES)
MOSTLY_ONCE, LEAST_ROWS = 0.75, 1000
"""Different values of a category, by rows that have one, from which on most occur once; and rows that are needed."""
BY_REASON = (
    (IDS, "a category", "categories", ": whole numbers that look like ids. As numbers: ", "number"),
    ((NAME_OF_ROW,), "left out", "left out", f": {NAME_OF_ROW}. As categories: ", "category"),
    ((TIMES,), "left out", "left out", f": {TIMES}. As categories: ", "category"),
    ((COUNTS_ROWS, NUMBERS_BY_NAME), "left out", "left out", ": the index of the row. As categories: ", "category"),
    ((AMOUNTS,), "a number", "numbers", ", written as {example}. As a category: ", "category"),
    ((UNITS,), "a category", "categories", ": numbers with a unit, such as {example}. As numbers: ", ""),
)
"""(reasons of a guess, what one column is, what several are, why, the kind of column that is proposed instead)."""


def notes_of(table: Table, declared: Columns, guessed: Columns, learned: Columns) -> list[str]:
    """Return the notes on a table whose columns are `declared`, then `guessed`, and at last `learned`, one a line."""
    return [
        *_of_layout(table, declared),
        *_of_nested(table),
        *_of_guesses(guessed),
        *_of_rare_values(guessed),
        *_of_several(learned),
        *hashed_notes(learned),
    ]


def _of_layout(table: Table, declared: Columns) -> Iterator[str]:
    """Yield the notes on a decimal comma that was guessed, title lines that are skipped, and repeated names."""
    if table.layout().get("decimal") == "," and "separator" not in declared.layout:
        advice = reader_option_advice(decimal="point").removeprefix("Type ")
        yield f"Numbers are read with a decimal comma: 3,5 is 3.5. As text: {advice}"
    if not isinstance(table, TextTable):
        return
    titles, repeated = table.dialect.titles, table.dialect.repeated
    if titles:
        are = "The line above the header is" if len(titles) == 1 else f"{len(titles)} lines above the header are"
        yield f"{are} not read: {titles[0][:MOST_SHOWN]!r}."
    if repeated:
        yield f"Several columns are called {format_names(map(repr, repeated))}; the later ones have a number."


def _of_nested(table: Table) -> Iterator[str]:
    """Yield the note that names the columns of structures and of lists that are left out."""
    if nested := sorted(nested_of(table)):
        names = format_names(map(repr, nested))
        are = f"columns {names} hold lists and are" if len(nested) > 1 else f"column {names} holds lists and is"
        yield f"The {are} left out."


def _of_guesses(columns: Columns) -> Iterator[str]:
    """Yield the notes on the label and on columns that were guessed for a reason that may be wrong."""
    label = columns.label
    if label is not None and label.why and label.why != "named":
        yield f"The label is the column {label.name!r} ({label.why}). Another one: {typed(label='NAME')}."
    for reasons, one, several, why, other in BY_REASON:
        if found := [column for column in columns if column.why.startswith(reasons)]:
            names = format_names(column.name for column in found)
            are = f"columns {names} are {several}" if len(found) > 1 else f"column {names} is {one}"
            why = why.format(example=found[0].why.removeprefix(reasons[0]))
            advice = column_advice(found[0].name, kind=other) if other else "leave the unit out of the file"
            yield f"The {are}{why}{advice}."


def _of_rare_values(columns: Columns) -> Iterator[str]:
    """Yield the notes on categories most of whose values occur once, such as times: nothing can be learned from these.

    They are not left out: fewer rows may be too few to tell.
    """
    for column in columns:
        found = column.found
        is_several = column.encoding == "multi-hot"  # of which parts recur
        if column.kind != "category" or is_several or found is None or found.rows < LEAST_ROWS:
            continue
        if found.distinct >= MOSTLY_ONCE * (found.rows - found.missing):
            many = f"{found.distinct:,} different values in {found.rows:,} rows"
            yield (
                f"The column {column.name} is a category with {many}, so that most are seen once. To leave it out: "
                f"{column_advice(column.name, kind='ignored')}."
            )


def _of_several(columns: Columns) -> Iterator[str]:
    """Yield the notes on texts whose words are counted and on columns of several values a row."""
    for column in columns:
        count = len(column.values or ())
        if column.encoding == "words":
            yield f"The column {column.name} is text: counts of {count:,} words."
        elif column.encoding == "multi-hot":
            what = f"The column {column.name} holds several values a row, between {column.separator!r}"
            yield f"{what}: {count:,} different. As one value a row: {column_advice(column.name, kind='category')}."


def hashed_notes(columns: Columns) -> Iterator[str]:
    """Yield the notes on columns that are hashed into buckets."""
    for column in columns:
        if column.encoding == "hashed":
            what = "words" if column.kind == "text" else "values"
            into = f"{column.buckets:,} buckets"
            into += f", of which the {len(column.kept):,} that occur are columns" if column.kept else ""
            yield f"The {what} of the column {column.name} are hashed into {into}; some share one."
