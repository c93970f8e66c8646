"""The error of this package, in a file of its own, as all others raise it."""

import importlib
import json
from typing import Any


class DataError(ValueError):
    """A data set cannot be had as asked; the message says what came, what is allowed and what to do."""


class MissingLabelsError(DataError):
    """Data in which no labels were found, where labels are needed; it can be read with `kind="none"`."""


_OF_FILE = "--labels FILE for a file of labels, or --kind none to go on without"
_IN_PYTHON = 'labels="FILE" or kind="none"'
ADVICE_LABELS_FILE = f"Type {_OF_FILE} (in Python {_IN_PYTHON})."
"""What to type when a reader without named columns found no labels: the last line of the message."""
ADVICE_LABELS = f'Type --label NAME for a column of it, {_OF_FILE} (in Python label="NAME", {_IN_PYTHON}).'
"""What to type when a reader of named columns found no labels."""


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


def reader_option_advice(dataset: str = "", **options: str | int) -> str:
    """Return what to type to read a file with these parameters of its reader, on the command line and in Python.

    Parameters
    ----------
    dataset : str, default ""
        Data set that is to read the file; "" to keep its present reader.
    **options : str, bool or int
        Parameters of that reader. A text in capitals, such as "NAME", stands for what the user fills in.

    Returns
    -------
    str
        One sentence, which begins with "Type" and ends with a full stop.

    Examples
    --------
    >>> reader_option_advice(implicit=True)
    'Type --reading implicit=true (in Python implicit=True).'
    >>> reader_option_advice("ratings", duplicates="last")
    'Type --dataset ratings --reading duplicates=last (in Python dataset="ratings", duplicates="last").'
    """
    words = ",".join(f"{name}={str(value).lower() if value is True else value}" for name, value in options.items())
    named = ({"dataset": dataset} if dataset else {}) | options
    python = ", ".join(
        f'{name}="{value}"' if isinstance(value, str) else f"{name}={value}" for name, value in named.items()
    )
    return f"Type {f'--dataset {dataset} ' if dataset else ''}--reading {words} (in Python {python})."


def column_advice(name: str, **said: Any) -> str:
    """Return the commands and the Python argument that read the column `name` of a table by other declarations.

    >>> column_advice("age", kind="number").partition("(in Python ")[2]
    'columns={"columns": {"age": {"kind": "number"}}})'
    """
    python = json.dumps({"columns": {name: said}}, ensure_ascii=False)
    return (
        "workbench data columns FILE --out columns.toml, edit it, then --columns columns.toml "
        f"(in Python columns={python})"
    )


def quoted(text: bytes) -> str:
    """Return the first 40 bytes of a text as a quoted str for a message."""
    return repr(text[:40].decode("utf-8", "backslashreplace"))
