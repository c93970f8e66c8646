"""Key-value store of weights shared by several workers: gradients are pushed and summed, values or rows are pulled.

`Store` is the interface; `LocalStore` keeps values in this process, and stores over a network implement the same
interface. Rows of a row_sparse weight are pulled by index, so that cost does not grow with unused rows.

>>> import numpy as np
>>> from workbench import formats
>>> from workbench.formats import RowSparse
>>> store = LocalStore()
>>> store.init("w", formats.zeros((4, 1), "row_sparse"))
>>> one, two = RowSparse(np.float32([[1], [2]]), [0, 2], (4, 1)), RowSparse(np.float32([[5]]), [2], (4, 1))
>>> store.push("w", [one, two])
>>> store.row_sparse_pull("w", [2, 1, 2])
RowSparse(shape=(4, 1), stored_rows=2, dtype=float32)
  row 1: [0.]
  row 2: [7.]
"""

from workbench import aliases
from workbench.kvstore.contract import (
    OPTIMIZER,
    VALUE,
    Key,
    LazyRandomRows,
    LocalStore,
    Store,
    StoreError,
    added,
    admitted,
    caught_up,
    check_new_key,
    check_pushed,
    computed,
    key_of,
    name_of,
    put_rows,
)

__all__ = [
    "OPTIMIZER",
    "VALUE",
    "Key",
    "LazyRandomRows",
    "LocalStore",
    "Store",
    "StoreError",
    "added",
    "admitted",
    "caught_up",
    "check_new_key",
    "check_pushed",
    "computed",
    "key_of",
    "name_of",
    "put_rows",
]


def __getattr__(name: str) -> object:
    """Return what an old name stands for (`workbench.aliases`)."""
    return aliases.find(__name__, name)
