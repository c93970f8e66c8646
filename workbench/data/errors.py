"""The error of this package, in a file of its own, as all others raise it."""

import importlib
import json
from typing import Any

from workbench.option_text import typed, worded


class DataError(ValueError):
    """A data set cannot be had as asked; the message says what came, what is allowed and what to do."""

    def __init__(self, message: str = "") -> None:
        """Keep the message, the options that it names in the words of the present door."""
        super().__init__(worded(message))


class MissingLabelsError(DataError):
    """Data in which no labels were found, where labels are needed; it can be read with `kind="none"`."""


_OF_FILE = f"{typed(labels='FILE')} for a file of labels, or {typed(kind='none')} to go on without"
ADVICE_LABELS_FILE = f"Type {_OF_FILE}."
"""What to type when a reader without named columns found no labels: the last line of the message."""
ADVICE_LABELS = f"Type {typed(label='NAME')} for a column of it, {_OF_FILE}."
"""What to type when a reader of named columns found no labels."""


AS_WHOLE = f"Type {typed(stream=False)} to read it whole."
"""What to type for a file that is not read block by block."""


# Packages that only some readers and writers need.


def import_optional(package: str, extra: str, what: str) -> Any:
    """Import and return `package`; DataError with the install command of `extra` if it is missing.

    `what` begins the message: "`what` needs `package`".
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        install = f"pip install 'sparse-workbench[{extra}]'"
        raise DataError(f"{what} needs {package}, which is not installed: {install}.") from error


def reader_option_advice(purpose: str = "", **options: str | int) -> str:
    """Return the sentence with which options a file is to be read, and for what `purpose`; as text for `worded`.

    Options are `dataset` and parameters of its reader. A text in capitals stands for what the user fills in.

    >>> worded(reader_option_advice(dataset="ratings", duplicates="last"))
    'Type dataset="ratings", duplicates="last".'
    """
    return f"Type {typed(**options)}{f' {purpose}' if purpose else ''}."


def column_advice(name: str, **said: Any) -> str:
    """Return the options that read the column `name` of a table by other declarations, as text for `worded`.

    >>> worded(column_advice("age", kind="number"))
    'columns={"columns": {"age": {"kind": "number"}}}'
    """
    return typed(columns=json.dumps({"columns": {name: said}}, ensure_ascii=False))


def quoted(text: bytes) -> str:
    """Return the first 40 bytes of a text as a quoted str for a message."""
    return repr(text[:40].decode("utf-8", "backslashreplace"))
