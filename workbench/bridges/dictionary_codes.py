"""Codes of categories: numbers that mean values only together with their dictionary, which tables have block by block.

pyarrow and pandas store a column of categories as codes and a dictionary. Codes that are fed as columns, or as rows of
an embedding, mean what the dictionary of that block or file says: another file numbers its values anew.
"""

import os
from collections.abc import Iterator
from typing import Any

from workbench.bridges.contracts import Violation
from workbench.bridges.validation_rules import ERROR, WARNING
from workbench.data import DataError
from workbench.data.tables.arrow import arrow

BOUNDARY = "table -> codes"
EFFECT = "a model looks up the weights of other values, without a word"
UNIFY = "Feed values, not codes; or table.unify_dictionaries(), and the dictionary of the training data for later ones"


def check_codes(table: Any, like: Any = None, *, severity: str = ERROR) -> list[Violation]:
    """Return whether codes mean the same in all blocks of a table, and as in the table `like` that a model was trained
    on.

    A table is a pyarrow Table or RecordBatch, a pandas DataFrame, or the path of a Parquet file, of which only columns
    of codes are read. A violation, of that `severity`, for each column whose codes mean other values, or that has none
    in the later table; a warning for values that `like` does not have. O(values) for each block. `DataError` for no
    table.

    >>> import pyarrow
    >>> sites = [pyarrow.table({"site": pyarrow.array(names).dictionary_encode()}) for names in (["a", "b"], ["b"])]
    >>> print(check_codes(sites[1], like=sites[0])[0].came)
    Code 0 of column site means 'b', and 'a' in the data it is like
    """
    columns = _columns(table)
    found = [breach for name, blocks in columns.items() for breach in _within(name, blocks, severity)]
    for name, blocks in _columns(like).items() if like is not None else ():
        found += _between(name, columns.get(name), blocks[0], severity)
    return found


def _columns(table: Any) -> dict[str, list[Any]]:
    """Return the dictionaries of each column of codes, one a block, as pyarrow arrays."""
    table, dictionary = _of_arrow(table), arrow().types.is_dictionary
    names = [field.name for field in table.schema if dictionary(field.type)]
    columns = {name: table.column(name) for name in names}
    return {name: _distinct([block.dictionary for block in _blocks(column)]) for name, column in columns.items()}


def _of_arrow(table: Any) -> Any:
    """Return a pyarrow table, read from a Parquet file if a path is given, with its dictionary columns."""
    pa = arrow()
    if isinstance(table, pa.Table | pa.RecordBatch):
        return table
    if isinstance(table, str | os.PathLike):
        file = pa.parquet.ParquetFile(table)
        names = [field.name for field in file.schema_arrow if pa.types.is_dictionary(field.type)]
        return file.read(columns=names)
    if type(table).__module__.partition(".")[0] == "pandas" and hasattr(table, "select_dtypes"):
        return pa.Table.from_pandas(table.select_dtypes("category"), preserve_index=False)
    what = "a pyarrow Table or RecordBatch, a pandas DataFrame, or the path of a Parquet file"
    raise DataError(f"A {type(table).__name__} came; check_codes takes {what}.")


def _blocks(column: Any) -> list[Any]:
    """Return the chunks of a column as a list of dictionary arrays."""
    return column.chunks if isinstance(column, arrow().ChunkedArray) else [column]


def _distinct(dictionaries: list[Any]) -> list[Any]:
    """Return the distinct dictionaries of a column's blocks, the first one included; [] without blocks."""
    first = dictionaries[:1] or [arrow().array([])]
    return first + [other for other in dictionaries[1:] if not other.equals(first[0])]


def _within(name: str, blocks: list[Any], severity: str) -> Iterator[Violation]:
    """Yield a violation if blocks of one column have different dictionaries."""
    for block in blocks[1:]:
        if (place := _apart(block, blocks[0])) is not None:
            values = f"{block[place].as_py()!r} in a later block, and {blocks[0][place].as_py()!r} in the first"
            came = f"Code {place} of column {name} means {values}"
            yield Violation("codes", BOUNDARY, severity, came, "one dictionary for all blocks", UNIFY, EFFECT)
            return


def _between(name: str, blocks: list[Any] | None, trained: Any, severity: str) -> Iterator[Violation]:
    """Yield a violation if a column's dictionary differs from that of the training data."""
    expected = "the dictionary of the data it is like"
    if blocks is None:
        came = f"Column {name} has codes in the data it is like, and none here"
        yield Violation("codes", BOUNDARY, severity, came, expected, UNIFY, EFFECT)
        return
    own = max(blocks, key=len)
    if (place := _apart(own, trained)) is not None:
        was = trained[place].as_py()
        came = f"Code {place} of column {name} means {own[place].as_py()!r}, and {was!r} in the data it is like"
        yield Violation("codes", BOUNDARY, severity, came, expected, UNIFY, EFFECT)
    elif len(own) > len(trained):
        came = f"Column {name} has {len(own) - len(trained):,} values that the data it is like does not have"
        yield Violation("codes", BOUNDARY, WARNING, came, expected, "Map them to a code for unknown values", EFFECT)


def _apart(one: Any, other: Any) -> int | None:
    """Return the first code that means something else in the two dictionaries; None if none does."""
    count = min(len(one), len(other))
    if one.type == other.type and one[:count].equals(other[:count]):
        return None
    pairs = zip(one[:count].to_pylist(), other[:count].to_pylist(), strict=True)
    return next((place for place, (left, right) in enumerate(pairs) if left != right), None)
