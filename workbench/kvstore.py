"""Weights by key, shared by several workers: gradients are pushed and summed, values or some of their rows pulled.

`Store` is what a module asks of a store; `LocalStore` keeps it on this machine, and one over a network implements the
same. Rows that a worker reads of a row_sparse weight are pulled by number, so that nothing grows with the rows that no
one touched.

>>> import numpy as np
>>> store = LocalStore()
>>> store.init("w", formats.zeros((4, 1), "row_sparse"))
>>> one, two = RowSparse(np.float32([[1], [2]]), [0, 2], (4, 1)), RowSparse(np.float32([[5]]), [2], (4, 1))
>>> store.push("w", [one, two])
>>> store.row_sparse_pull("w", [2, 1, 2])
RowSparse(shape=(4, 1), stored_rows=2, dtype=float32)
  row 1: [0.]
  row 2: [7.]
"""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from workbench import formats
from workbench.formats import RowSparse
from workbench.formats.row_parts import row_numbers
from workbench.json_text import parsed
from workbench.ops.products import Unsummed
from workbench.optimizers import Updater
from workbench.optimizers.saved import read, written

Key = int | str
FORMATS = ("dense", "row_sparse")


class StoreError(ValueError):
    """A key or a value does not fit the store; the message says what came, what is allowed and what to do."""


class Store(ABC):
    """Values by key: all keys are strings, or all are whole numbers. `init` fixes the format and type of a value.

    Values that come in are copied, and so are those given out. Nothing is passed over in silence: what cannot be done
    is a `StoreError`.
    """

    @abstractmethod
    def keys(self) -> list[Key]:
        """Keys in the order in which they were set."""

    @abstractmethod
    def init(self, key: Key, value: Any) -> None:
        """Set a key for the first and only time, to a dense or row_sparse array."""

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
    def set_optimizer(self, updater: Updater) -> None:
        """From now on a push changes values by a step of this optimizer."""

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


@final
class LocalStore(Store):
    """A store in the memory of this process."""

    def __init__(self) -> None:
        self.values: dict[Key, Any] = {}
        self.updater: Updater | None = None

    def __repr__(self) -> str:
        keys = ", ".join(map(repr, self.values)) or "no keys"
        return f"<LocalStore {keys}: {self.updater or 'no optimizer'}>"

    def keys(self) -> list[Key]:
        """Keys in the order in which they were set."""
        return list(self.values)

    def init(self, key: Key, value: Any) -> None:
        """Set a key to a copy of the value."""
        self._check_new(key)
        self.values[key] = formats.copy(_admitted(key, value))

    def push_all(self, values: Mapping[Key, Any]) -> None:
        """Sum what came for each key; then a step of the optimizer, or the sum in place of the value."""
        for key in values:
            self._stored(key)
        sums = {key: self._sum(key, pushed) for key, pushed in values.items()}
        if self.updater is None:
            for key, summed in sums.items():
                formats.assign(self.values[key], _computed(summed))
            return
        weights = {_name(key): self.values[key] for key in sums}
        self.updater.update(weights, {_name(key): summed for key, summed in sums.items()})

    def pull(self, key: Key, out: Any = None) -> Any:
        """A copy of the value, or `out` with its values."""
        stored = self._stored(key)
        return formats.copy(stored) if out is None else formats.assign(out, stored)

    def row_sparse_pull(self, key: Key, ids: ArrayLike) -> RowSparse:
        """A copy of these rows."""
        stored = self._stored(key)
        if not stored.ndim:
            raise StoreError(f"The value of {key!r} has no rows; call pull({key!r}).")
        try:
            rows = row_numbers(np.asarray(ids).reshape(-1), stored.shape[0])
        except formats.FormatError as error:
            raise StoreError(f"row_sparse_pull of {key!r}: {error}") from None
        if isinstance(stored, np.ndarray):
            return RowSparse.assemble(stored[rows], rows.copy(), stored.shape)
        if not len(stored.indices):
            values = np.zeros((len(rows), *stored.shape[1:]), stored.dtype)
            return RowSparse.assemble(values, rows.copy(), stored.shape)
        return stored.retain(rows)

    def set_optimizer(self, updater: Updater) -> None:
        """From now on a push is a step of this optimizer; a second one takes the place of the first."""
        if not isinstance(updater, Updater):
            raise StoreError(f"An optimizer is an optimizers.Updater; a {type(updater).__name__} came.")
        self.updater = updater

    def catch_up(self, rows: Mapping[Key, np.ndarray | None] | None = None) -> None:
        """Nothing to do without an optimizer, or with one that leaves nothing behind."""
        if self.updater is not None:
            rows = dict.fromkeys(self.values) if rows is None else rows
            weights = {_name(key): self._stored(key) for key in rows}
            caught_up(self.updater, weights, {_name(key): touched for key, touched in rows.items()})

    def state_dict(self) -> dict[str, Any]:
        """Names: `value:` or `optimizer:`, then the key in JSON or the optimizer's own name."""
        state = {f"value:{json.dumps(key)}": formats.copy(value) for key, value in self.values.items()}
        if self.updater is not None:
            state |= {f"optimizer:{name}": array for name, array in written(self.updater.state_dict()).items()}
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """All values and the optimizer's state, or nothing where something does not fit."""
        parts: dict[str, dict[str, Any]] = {"value": {}, "optimizer": {}}
        for name, array in state.items():
            kind, colon, rest = name.partition(":")
            if not colon or kind not in parts:
                raise StoreError(f"The state has {name!r}; its names begin with 'value:' or 'optimizer:'.")
            parts[kind][rest] = array
        if parts["optimizer"] and self.updater is None:
            raise StoreError("The state is of a store with an optimizer; call set_optimizer(updater) first.")
        saved = LocalStore()
        for text, value in parts["value"].items():
            saved.init(_key(text), value)
        if self.updater is not None:
            parameters = self.updater.read_state(read(parts["optimizer"]))
            weights = {_name(key): value for key, value in saved.values.items()}
            self.updater.check_fit(parameters, weights)
            self.updater.take_state(parameters)
        self.values = saved.values

    def _stored(self, key: Key) -> Any:
        if key not in self.values:
            known = ", ".join(map(repr, self.values)) or "none yet"
            raise StoreError(f"There is no key {key!r}; there is: {known}. Call init({key!r}, value) first.")
        return self.values[key]

    def _check_new(self, key: Hashable) -> None:
        if isinstance(key, bool) or not isinstance(key, int | str):
            raise StoreError(f"The key {key!r} is a {type(key).__name__}; keys are strings, or whole numbers.")
        if key in self.values:
            raise StoreError(f"The key {key!r} is set already; push changes its value.")
        if self.values and type(key) is not type(first := next(iter(self.values))):
            raise StoreError(f"The key {key!r} came and {first!r} is set; all keys are strings, or all are numbers.")

    def _sum(self, key: Key, pushed: Any) -> Any:
        """One array, checked, of what one or several workers pushed."""
        arrays = list(pushed) if isinstance(pushed, list | tuple) else [pushed]
        if not arrays:
            raise StoreError(f"Nothing was pushed to {key!r}; push an array, or a list with one of each worker.")
        arrays = [_admitted(key, array) for array in arrays]
        stored = self.values[key]
        for array in arrays:
            if tuple(array.shape) != stored.shape or array.dtype != stored.dtype:
                actual, own = f"{array.dtype} {tuple(array.shape)}", f"{stored.dtype} {stored.shape}"
                raise StoreError(f"{actual} was pushed to {key!r}, which is {own}; shape and type must be the same.")
        return arrays[0] if len(arrays) == 1 else added(arrays)


def caught_up(updater: Updater, weights: Mapping[str, Any], rows: Mapping[str, np.ndarray | None]) -> None:
    """Bring these rows of the weights up to date, None for all rows, where the optimizer is lazy and exact."""
    if updater.lazy != "exact":
        return
    updater.catch_up({name: weights[name] for name, touched in rows.items() if touched is None})
    some = {name: touched for name, touched in rows.items() if touched is not None}
    updater.catch_up({name: weights[name] for name in some}, some)


def added(arrays: Sequence[Any]) -> Any:
    """The sum of dense and row_sparse arrays of one shape and type, in their order; row_sparse where all of them are.

    The same arrays in the same order give the same bits.
    """
    arrays = [_computed(array) for array in arrays]
    if all(isinstance(array, RowSparse) for array in arrays):
        indices, values = (np.concatenate([getattr(array, part) for array in arrays]) for part in ("indices", "values"))
        return RowSparse.from_rows(indices, values, arrays[0].shape)
    total = np.zeros(arrays[0].shape, arrays[0].dtype)
    for array in arrays:
        if isinstance(array, RowSparse):
            total[array.indices] += array.values
        else:
            total += array
    return total


def _key(text: str) -> Any:
    """The key that a state has as JSON."""
    try:
        return parsed(text)
    except ValueError as error:
        raise StoreError(f"The state has a value under {text!r:.80}, which is no key as JSON: {error}.") from None


def _computed(array: Any) -> Any:
    return array.compute() if isinstance(array, Unsummed) else array


def _admitted(key: Key, value: Any) -> Any:
    if isinstance(value, Unsummed):
        value.check()
        return value
    format, value = formats.admit(value)
    if format.name not in FORMATS:
        advice = f"formats.to_format(x, {FORMATS[1]!r})"
        raise StoreError(f"{key!r} was given a {format.name} array; a store holds {' and '.join(FORMATS)}: {advice}.")
    return formats.check(value)


def _name(key: Key) -> str:
    """What the optimizer knows the key by."""
    return str(key)
