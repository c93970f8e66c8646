"""Interface of a key-value store: `Store`, and `StoreError` for every refusal."""

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Mapping
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from workbench import formats
from workbench.formats import RowSparse
from workbench.ops.products import Unsummed
from workbench.optimizers import Updater
from workbench.optimizers.saved import read

Key = int | str
VALUE, OPTIMIZER = "value:", "optimizer:"
"""Begin the names in a state: of a value, then its key in JSON; of the optimizer's arrays, then its own name."""


class StoreError(ValueError):
    """A key or value does not fit the store; the message says what was given, what is allowed and how to correct it."""


class Store(ABC):
    """Interface of a store: arrays by key. All keys are strings, or all are integers; `init` fixes format and dtype.

    Arrays are copied when they are passed in and when they are returned. Every invalid request raises StoreError.
    """

    trainer, trainers = 0, 1
    """Which of how many processes that train on the same values this one is: each takes its slices of every batch."""

    @abstractmethod
    def keys(self) -> list[Key]:
        """Return the keys in the order in which they were set."""

    @abstractmethod
    def init(self, key: Key, value: Any) -> None:
        """Set a key once, to a dense or row_sparse array, or to rows that are generated on demand (`Drawn`)."""

    @abstractmethod
    def push_all(self, values: Mapping[Key, Any]) -> None:
        """Push arrays to several keys as one step of the optimizer: for each key an array, or a list with one per
        worker.

        The arrays of a key are summed: row_sparse ones to the union of their rows, mixed ones to a dense sum. With an
        optimizer the sum is the gradient of a step; without one it replaces the whole value, and rows that were not
        pushed become zero.
        """

    @abstractmethod
    def pull(self, key: Key, out: Any = None) -> Any:
        """Return the value of a key with all its rows; with `out` write it to that array, of any format, and return
        it.
        """

    @abstractmethod
    def row_sparse_pull(self, key: Key, ids: ArrayLike) -> RowSparse:
        """Return the rows `ids` of a value as a RowSparse, sorted and unique; `ids` may have any shape and order.

        Rows that the value does not store are returned as zeros. Raises StoreError for indices out of range or
        fractions.
        """

    @abstractmethod
    def pull_into(self, out: Mapping[Key, Any], rows: Mapping[Key, np.ndarray | None]) -> None:
        """Write the rows that a training step reads to the arrays `out`, caught up if the optimizer is lazy and exact.

        `rows` has for each key row indices int64, sorted and unique, or None for all rows. A row_sparse array then
        stores exactly these rows; a dense one keeps its other rows.
        """

    @abstractmethod
    def set_optimizer(self, updater: Updater) -> None:
        """Apply a step of this optimizer at every following push."""

    @abstractmethod
    def catch_up(self, rows: Mapping[Key, np.ndarray | None] | None = None) -> None:
        """Bring rows up to date that an exact lazy optimizer has deferred: `rows` by key, None for all rows of a key.

        Values of other keys are not changed; without `rows` everything is brought up to date.
        """

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Return values and the optimizer's state as arrays by name, in their formats."""

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replace all values by those of `state_dict`. A state with an optimizer's part requires an optimizer."""

    @final
    def optimizer_state(self) -> dict[str, Any]:
        """Return the optimizer's part of the state, as `Updater.state_dict`; empty without an optimizer."""
        return read({name[len(OPTIMIZER) :]: a for name, a in self.state_dict().items() if name.startswith(OPTIMIZER)})

    @final
    def push(self, key: Key, value: Any) -> None:
        """Push to one key: an array, or a list with one per worker. See `push_all`."""
        self.push_all({key: value})

    @final
    def save(self, path: str | os.PathLike) -> None:
        """Write `state_dict` to one file, atomically."""
        formats.save(path, self.state_dict())

    @final
    def load(self, path: str | os.PathLike) -> None:
        """Continue from a file written by `save`."""
        self.load_state_dict(formats.load(path))


# Checks of what a store takes: keys, values, and what is pushed to them; anything else is refused in words.


FORMATS = ("dense", "row_sparse")


def admitted(key: Key, value: Any) -> Any:
    """Validate a value for a store: dense, row_sparse or a factored gradient. Raises StoreError for anything else."""
    if isinstance(value, Unsummed):
        value.check()
        return value
    format, value = formats.coerce(value)
    if format.name not in FORMATS:
        advice = f"formats.to_format(x, {FORMATS[1]!r})"
        raise StoreError(f"{key!r} was given a {format.name} array; a store holds {' and '.join(FORMATS)}: {advice}.")
    return formats.check(value)


def check_new_key(key: Hashable, held: Collection[Key]) -> None:
    """Raise StoreError unless `key` is a new string or integer of the same type as the keys in `held`."""
    if isinstance(key, bool) or not isinstance(key, int | str):
        raise StoreError(f"The key {key!r} is a {type(key).__name__}; keys are strings, or whole numbers.")
    if key in held:
        raise StoreError(f"The key {key!r} is set already; push changes its value.")
    if held and type(key) is not type(first := next(iter(held))):
        raise StoreError(f"The key {key!r} came and {first!r} is set; all keys are strings, or all are numbers.")


def check_pushed(key: Key, array: Any, stored: Any) -> None:
    """Raise StoreError if `array` differs in shape or dtype from `stored`, the value of the key."""
    if tuple(array.shape) != stored.shape or array.dtype != stored.dtype:
        actual, own = f"{array.dtype} {tuple(array.shape)}", f"{stored.dtype} {stored.shape}"
        raise StoreError(f"{actual} was pushed to {key!r}, which is {own}; shape and type must be the same.")
