"""Operators on arrays and symbols: one file per family; the format rules of each operator are rows of a table.

Every registered operator is an attribute of this package. It computes on arrays, and adds a node on symbols.

>>> import numpy as np
>>> from workbench import formats, ops
>>> x = formats.RowSparse(np.float32([[1, -2]]), [1], (3, 2))
>>> ops.abs(x)
RowSparse(shape=(3, 2), stored_rows=1, dtype=float32)
  row 1: [1. 2.]
>>> ops.get("abs").choose(["csr"], [(3, 2)], {}).result
'csr'
"""

import contextlib
import functools
import pkgutil
from typing import Any

from workbench import formats
from workbench.ops.contract import (
    ANY,
    REQUIRED,
    Op,
    OpError,
    OpMemoryError,
    Rule,
    Symbolic,
    broadcast_shape,
    get,
    names,
    register,
    same_shape,
    unavailable,
)
from workbench.ops.fallback import Densified, DensifyError, DensifyWarning, recording, settings

__all__ = [
    "ANY",
    "REQUIRED",
    "Densified",
    "DensifyError",
    "DensifyWarning",
    "Op",
    "OpError",
    "OpMemoryError",
    "Rule",
    "Symbolic",
    "broadcast_shape",
    "get",
    "names",
    "recording",
    "register",
    "same_shape",
    "settings",
    "unavailable",
]


_MODULES = frozenset(module.name for module in pkgutil.iter_modules(__path__))


def __getattr__(name: str) -> Op:
    """Return the operator called `name`, imported on first use. Raises AttributeError for an unknown one."""
    if name in _MODULES:  # on its way in: looking for operators now would import others that need it whole
        raise AttributeError(f"{__name__}.{name} is not imported yet.")
    if not name.startswith("_"):
        with contextlib.suppress(OpError):
            return get(name)
    raise AttributeError(f"{__name__} has no attribute {name!r}; the operators are: {', '.join(names())}.")


def __dir__() -> list[str]:
    """Return the names of this module and of all operators; imports all files of operators."""
    return sorted({*__all__, *names()})


def _call(name: str, *operands: Any) -> Any:
    """Return the result of the operator `name` on operands; the function behind RowSparse's arithmetic."""
    return get(name)(*operands)


formats.row_sparse.fill({name: functools.partial(_call, name) for name in formats.row_sparse.SIGNS})
