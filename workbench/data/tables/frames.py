"""Frames in memory as tables: pandas, Polars, Arrow, and whatever else gives its columns by the Arrow C interface."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from workbench.data.errors import DataError
from workbench.data.labels import NONE, Wanted, format_names
from workbench.data.tables.assembly import features_of, learn
from workbench.data.tables.blocks import Block, ColumnarTable
from workbench.data.tables.columns import Columns
from workbench.data.tables.texts import arrow, texts_of

FRAME = "The frame"
"""What a frame is called in messages, where files have a path."""


def is_frame(value: Any) -> bool:
    """Return whether a value is a table with named columns (pandas, Arrow, Polars or alike).

    >>> is_frame([[1, 2]])
    False
    """
    return hasattr(value, "columns") and any(
        hasattr(value, name) for name in ("iloc", "to_pandas", "__arrow_c_stream__")
    )


def frame_table(frame: Any) -> ColumnarTable:
    """Return a frame as a table of one block; its columns are called as their names are written.

    Raises DataError for a frame without rows or columns, columns of one name, and a column of values of several types.
    """
    is_pandas = _is_pandas(frame)
    table = None if is_pandas else _table_of(frame)
    names = [str(name) for name in frame.columns] if table is None else table.column_names
    if not names:
        raise DataError("The frame has no columns; expected one or more.\nCheck how it was made.")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        convert = "" if is_pandas else "frame = frame.to_pandas(); "
        raise DataError(
            f"The frame has the column {twice[0]!r} more than once; expected different names.\n"
            f"Type {convert}frame = frame.loc[:, ~frame.columns.map(str).duplicated()] to keep the first of each."
        )
    if table is None:
        table = arrow().table([_column(frame.iloc[:, place]) for place in range(len(names))], names=names)
    if not table.num_rows:
        raise DataError("The frame has no rows; expected one or more.\nCheck how it was made.")

    def blocks(names: Sequence[str]) -> Iterator[Block]:
        """Yield all rows as one block of the columns `names`; nothing if there are none."""
        if names:
            yield {name: texts_of(table.column(name)) for name in names}

    return ColumnarTable(FRAME, table.schema, blocks)


def in_pandas(frame: Any) -> Any:
    """Return a frame of any library as one of pandas."""
    return frame if _is_pandas(frame) else _table_of(frame).to_pandas()


def _is_pandas(frame: Any) -> bool:
    """Return whether a frame is of pandas, or of a kind that has its methods and no other way out."""
    return hasattr(frame, "iloc") and not hasattr(frame, "to_pandas")


def _table_of(frame: Any) -> Any:
    """Return a frame that is not of pandas as a pyarrow table."""
    return arrow().table(frame) if hasattr(frame, "__arrow_c_stream__") else arrow().table(frame.to_pandas())


def _column(column: Any) -> Any:
    """Return a column of a pandas frame as a pyarrow array in which missing values are null.

    Raises DataError for objects of several types.
    """
    pa = arrow()
    kind, dtype = str(column.dtype), column.dtype
    if kind.startswith("Sparse"):
        column = column.sparse.to_dense()
    elif kind.startswith(("period", "interval")):
        column = column.astype(str).where(column.notna(), None)
    elif kind == "category" and dtype.categories.inferred_type not in ("string", "integer", "floating", "boolean"):
        column = column.astype(object).map(str, na_action="ignore").astype("category")
    elif getattr(dtype, "kind", "O") == "f" and dtype.itemsize > 8:
        column = column.astype(np.float64)
    try:
        return pa.array(column, from_pandas=True)
    except (pa.ArrowException, OverflowError, TypeError):
        kinds = ", ".join(sorted({type(value).__name__ for value in column}))
        name = column.name
        raise DataError(
            f"The column {name!r} holds values of the types {kinds}; expected text or numbers.\nType frame[{name!r}] = "
            f"frame[{name!r}].map(str) for categories, or frame = frame.drop(columns=[{name!r}])."
        ) from None


def encode(frame: Any, columns: Columns) -> scipy.sparse.csr_array:
    """Return a frame as the matrix [rows, features], float32, that columns whose values are known make of it.

    Columns are found by their names; values that are not known are taken as missing. Raises DataError if it is no
    frame, or a column is absent or holds what it cannot.
    """
    if not is_frame(frame):
        what = f"a Series named {frame.name!r}" if hasattr(frame, "to_frame") else f"a {type(frame).__name__}"
        convert = "X = X.to_frame().T" if hasattr(frame, "to_frame") else "X = pandas.DataFrame(X, columns=NAMES)"
        raise DataError(
            f"X is {what}; expected a frame with the columns that the model was trained on: "
            f"{format_names([column.name for column in features_of(columns.columns)])}.\nType {convert}."
        )
    table = frame_table(frame)
    if lacking := [column.name for column in features_of(columns.columns) if column.name not in table.names]:
        raise DataError(
            f"The frame has no column {lacking[0]!r}, which the model was trained on; its columns are "
            f"{format_names(table.names)}.\nGive a frame with the same columns, in any order."
        )
    (part,) = learn(table, columns.columns, Wanted(NONE)).parts()
    return part.x
