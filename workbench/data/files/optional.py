"""Packages that only some readers and writers need."""

import importlib
from typing import Any

from workbench.data.errors import DataError


def import_optional(package: str, extra: str, what: str) -> Any:
    """Return the package; `DataError` with the line that installs it where it is not there. `what` is what needs it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        install = f"pip install 'sparse-workbench[{extra}]'"
        raise DataError(f"{what} needs {package}, which is not installed: {install}.") from error
