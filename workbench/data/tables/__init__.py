"""Tables of named columns (CSV, TSV, Parquet): what each column is, and how it becomes columns of a sparse matrix."""

from workbench.data.tables.columns import Columns
from workbench.data.tables.guessing import guess_columns
from workbench.data.tables.schema import Column

__all__ = ["Column", "Columns", "guess"]

guess = guess_columns
"""The same function by its name in this package."""
