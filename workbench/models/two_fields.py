"""Rows that name a user and an item: the pairs, and sampled items that a user does not have, for pairwise training."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from workbench import formats
from workbench.formats.compressed import assemble
from workbench.models.nodes import ModelError

TRIES = 16
"""How often an item is drawn anew that the user has; the next one is taken after that."""


def pairs_of(x: Any, fields: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return user and item of each row of X [R, users + items], int64 [R] each.

    Raises ModelError for rows without exactly one entry in each field.
    """
    users, items = fields
    x = formats.to_format(x, "csr")
    columns = np.sort(x.indices.astype(np.int64).reshape(-1, 2), axis=1) if x.nnz == 2 * x.shape[0] else None
    if (
        columns is None
        or (np.diff(x.indptr) != 2).any()
        or not ((columns[:, 0] < users) & (columns[:, 1] >= users)).all()
    ):
        raise ModelError(f"A row has one user and one item, 1 of {users:,} and 1 of {items:,} columns; another came.")
    return columns[:, 0], columns[:, 1] - users


def with_items_unseen(x: Any, fields: Sequence[int]) -> Callable[[Any, np.random.Generator], Any]:
    """Return complete(x batch, generator), which adds to each row a -1 for an item that its user lacks in X.

    The item is drawn uniformly (Rendle et al. 2009), up to `TRIES` times; the batch keeps its format, csr or dense. O(R
    log of the pairs). Raises ModelError for fewer than two items, and rows that are not pairs.
    """
    users, items = fields
    if items < 2:
        raise ModelError(f"There are {items} items; to set one above another takes two.")
    user, item = pairs_of(x, fields)
    known = np.unique(user * items + item)

    def complete(batch: Any, generator: np.random.Generator) -> Any:
        """Return the batch's rows with a random unseen item each, as a new array of its format."""
        user, item = pairs_of(batch, fields)
        other = generator.integers(0, items, len(user))
        for _ in range(TRIES):
            keys = user * items + other
            again = np.flatnonzero(known[np.minimum(np.searchsorted(known, keys), len(known) - 1)] == keys)
            if not again.size:
                break
            other[again] = generator.integers(0, items, again.size)
        other[other == item] = (other[other == item] + 1) % items
        return _rows(user, item, other, users, batch)

    return complete


def _rows(user: np.ndarray, item: np.ndarray, other: np.ndarray, users: int, like: Any) -> Any:
    """Return rows with 1 for user and item and -1 for the other item, in the format and dtype of `like`.

    All three are int [R]; items are columns behind the `users` first ones.
    """
    low, high = np.minimum(item, other), np.maximum(item, other)
    columns = np.column_stack([user, users + low, users + high])
    sign = np.where(item < other, 1, -1)
    values = np.column_stack([np.ones_like(sign), sign, -sign]).astype(like.dtype)
    if isinstance(like, np.ndarray):
        rows = np.zeros(like.shape, like.dtype)
        np.put_along_axis(rows, columns, values, axis=1)
        return rows
    indptr = 3 * np.arange(len(user) + 1, dtype=like.indptr.dtype)
    return assemble("csr", indptr, columns.astype(like.indices.dtype).reshape(-1), values.reshape(-1), like.shape)
