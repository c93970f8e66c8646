"""Results on disk: one line of JSON a result, only ever appended; a table of columns says what a line holds.

`TRIALS` is the table of sweeps. What is named here without a table is of trials:
`store.append(path, row)` is `store.TRIALS.append(path, row)`.
"""

from workbench.store.table import (
    KINDS,
    STATUSES,
    TRIALS,
    Column,
    RowError,
    Table,
    TornLineWarning,
    is_stored,
    packed_path,
)

__all__ = [
    "KINDS",
    "STATUSES",
    "TRIALS",
    "Column",
    "RowError",
    "Table",
    "TornLineWarning",
    "is_stored",
    "packed_path",
]

SCHEMA, FILE = TRIALS.schema, TRIALS.file
new_row, append, read, frame, done_keys = TRIALS.new_row, TRIALS.append, TRIALS.read, TRIALS.frame, TRIALS.done_keys


def __getattr__(name: str) -> object:
    """Return the columns or settings of trials, read when first used; AttributeError for unknown names."""
    if name in ("COLUMNS", "SETTINGS"):
        return getattr(TRIALS, name.lower())
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
