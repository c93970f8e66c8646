"""The contract of a store: `Store`, which a module asks, and `StoreError`, which every refusal is."""

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
    """A key or a value does not fit the store; the message says what came, what is allowed and what to do."""


class Store(ABC):
    """Values by key: all keys are strings, or all are whole numbers. `init` fixes the format and type of a value.

    Values that come in are copied, and so are those given out. Nothing is passed over in silence: what cannot be done
    is a `StoreError`.
    """

    trainer, trainers = 0, 1
    """Which of how many processes that train on the same values this one is: each takes its slices of every batch."""

    @abstractmethod
    def keys(self) -> list[Key]:
        """Keys in the order in which they were set."""

    @abstractmethod
    def init(self, key: Key, value: Any) -> None:
        """Set a key for the first and only time, to a dense or row_sparse array, or to rows that are `Drawn`."""

    @abstractmethod
    def push_all(self, values: Mapping[Key, Any]) -> None:
        """Push to several keys as one step of the optimizer: for each an array, or a list of them, one of each worker.

        The arrays of a key are summed: row_sparse ones to the union of their rows, mixed ones to a dense sum. With an
        optimizer the sum is the gradient of a step; without one it takes the place of the value, all of it: rows that
        were not pushed are zero then.
        """

    @abstractmethod
    def pull(self, key: Key, out: Any = None) -> Any:
        """The value with all its rows; with `out` written to that array, of any format, which is returned."""

    @abstractmethod
    def row_sparse_pull(self, key: Key, ids: ArrayLike) -> RowSparse:
        """Exactly the rows of these numbers, given in any shape and order, sorted and each once.

        Rows that the value does not store come as rows of zeros, also where it stores none at all. A dense value gives
        its rows. Numbers out of range, and fractions, are refused.
        """

    @abstractmethod
    def pull_into(self, out: Mapping[Key, Any], rows: Mapping[Key, np.ndarray | None]) -> None:
        """Write what a training step reads to arrays of one's own, up to date where the optimizer is lazy and exact.

        Of each key all rows (None), or those of these numbers, sorted and unique, int64: a row_sparse array then holds
        them and no others, a dense one keeps its other rows.
        """

    @abstractmethod
    def set_optimizer(self, updater: Updater) -> None:
        """Let a push change values by a step of this optimizer from now on."""

    @abstractmethod
    def catch_up(self, rows: Mapping[Key, np.ndarray | None] | None = None) -> None:
        """Bring values up to date that an exact lazy optimizer left behind: these rows of these keys, None for all.

        Values of keys that are not named stay behind; without `rows` everything is brought up to date.
        """

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Values and the optimizer's state, as arrays by name, formats kept."""

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there, in place of all values held. A state with an optimizer's part needs the optimizer set."""

    @final
    def optimizer_state(self) -> dict[str, Any]:
        """The optimizer's part of the state, as `Updater.state_dict` has it; none without an optimizer."""
        return read({name[len(OPTIMIZER) :]: a for name, a in self.state_dict().items() if name.startswith(OPTIMIZER)})

    @final
    def push(self, key: Key, value: Any) -> None:
        """`push_all` of one key: an array, or a list of them, one of each worker."""
        self.push_all({key: value})

    @final
    def save(self, path: str | os.PathLike) -> None:
        """Write `state_dict` to one file, which appears whole or not at all."""
        formats.save(path, self.state_dict())

    @final
    def load(self, path: str | os.PathLike) -> None:
        """Go on from a file that `save` wrote."""
        self.load_state_dict(formats.load(path))


# Checks of what a store takes: keys, values, and what is pushed to them; anything else is refused in words.


FORMATS = ("dense", "row_sparse")


def admitted(key: Key, value: Any) -> Any:
    """The value as a store takes it, dense, row_sparse or left as its factors; anything else is a `StoreError`."""
    if isinstance(value, Unsummed):
        value.check()
        return value
    format, value = formats.admit(value)
    if format.name not in FORMATS:
        advice = f"formats.to_format(x, {FORMATS[1]!r})"
        raise StoreError(f"{key!r} was given a {format.name} array; a store holds {' and '.join(FORMATS)}: {advice}.")
    return formats.check(value)


def check_new_key(key: Hashable, held: Collection[Key]) -> None:
    """Refuse a key that is no string or whole number, is set already, or is of another kind than those that are."""
    if isinstance(key, bool) or not isinstance(key, int | str):
        raise StoreError(f"The key {key!r} is a {type(key).__name__}; keys are strings, or whole numbers.")
    if key in held:
        raise StoreError(f"The key {key!r} is set already; push changes its value.")
    if held and type(key) is not type(first := next(iter(held))):
        raise StoreError(f"The key {key!r} came and {first!r} is set; all keys are strings, or all are numbers.")


def check_pushed(key: Key, array: Any, stored: Any) -> None:
    """Refuse an array of another shape or type than `stored`, the value of the key or what stands for it."""
    if tuple(array.shape) != stored.shape or array.dtype != stored.dtype:
        actual, own = f"{array.dtype} {tuple(array.shape)}", f"{stored.dtype} {stored.shape}"
        raise StoreError(f"{actual} was pushed to {key!r}, which is {own}; shape and type must be the same.")
