"""Weights by key, shared by several workers: gradients are pushed and summed, values or some of their rows pulled.

`Store` is what a module asks of a store; `LocalStore` keeps it on this machine, and one over a network implements the
same. Rows that a worker reads of a row_sparse weight are pulled by number, so that nothing grows with the rows that no
one touched.

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

from workbench.kvstore.contract import OPTIMIZER, VALUE, Key, Store, StoreError, admitted, check_new_key, check_pushed
from workbench.kvstore.local import Drawn, LocalStore, added, caught_up, computed, key_of, name_of, put_rows

__all__ = [
    "OPTIMIZER",
    "VALUE",
    "Drawn",
    "Key",
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
