"""Cells of CSV files that a spreadsheet would run as formulas: found, told, and quoted on request."""

import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.option_text import typed, worded

FORMULA = re.compile(r"(?![+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|[+-](inf|nan)$)\s*[=+\-@]\s*\S")
"""Beginning of a text that is a formula; numbers with a sign, and signs alone, are none."""


def is_formula(cell: Any) -> bool:
    """Return whether a cell is text that a spreadsheet runs.

    >>> [is_formula(cell) for cell in ("=1+1", "@SUM(A1)", "-2+3", "\\t=1", "-0.5", "+1e-3", "-inf", "+", -0.5, "a=b")]
    [True, True, True, True, False, False, False, False, False, False]
    """
    return isinstance(cell, str) and FORMULA.match(cell) is not None


def guard_columns(columns: Mapping[str, list[Any]], path: Path, quote: bool) -> dict[str, list[Any]]:
    """Return columns to be written to the CSV file `path`; with `quote`, formulas begin with an apostrophe.

    Otherwise a warning counts them.
    """
    formulas = {cell for cells in columns.values() for cell in set(filter(is_formula, cells))}
    if formulas and not quote:
        warnings.warn(
            f"{path} has cells that a spreadsheet runs as formulas, such as {min(formulas)!r:.60}.\n"
            f"Type {worded(typed(quote_formulas=True))} to write them with an apostrophe before.",
            stacklevel=3,
        )
    if not (formulas and quote):
        return dict(columns)
    changed = {cell: f"'{cell}" for cell in formulas}
    return {
        name: [changed.get(cell, cell) if isinstance(cell, str) else cell for cell in cells]
        for name, cells in columns.items()
    }
