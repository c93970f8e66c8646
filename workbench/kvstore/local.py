"""A store in the memory of this process."""

import json
from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from workbench import formats
from workbench.formats import RowSparse
from workbench.formats.row_parts import row_numbers
from workbench.json_text import parsed
from workbench.kvstore.admission import admitted, check_new_key, check_pushed
from workbench.kvstore.contract import OPTIMIZER, VALUE, Key, Store, StoreError
from workbench.kvstore.drawn import Drawn
from workbench.kvstore.sums import added, caught_up, computed, put_rows
from workbench.optimizers import Updater
from workbench.optimizers.norms import square_norms
from workbench.optimizers.saved import read, written


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
        """Set a key to a copy of the value; rows that are to be drawn are drawn now, all of them."""
        check_new_key(key, self.values)
        self.values[key] = value.whole() if isinstance(value, Drawn) else formats.copy(admitted(key, value))

    def push_all(self, values: Mapping[Key, Any]) -> None:
        """Sum what came for each key; then a step of the optimizer, or the sum in place of the value."""
        self.take(self.summed(values))

    def summed(self, values: Mapping[Key, Any]) -> dict[Key, Any]:
        """One array a key, checked, of what one or several workers push to it."""
        for key in values:
            self._stored(key)
        return {key: self._sum(key, pushed) for key, pushed in values.items()}

    def take(self, sums: Mapping[Key, Any], squares: Mapping[str, float] | None = None) -> None:
        """A step of the optimizer with what `summed` gave, or the sums in place of the values; see `Updater.update`."""
        if self.updater is None:
            for key, summed in sums.items():
                formats.assign(self.values[key], computed(summed))
            return
        weights = {name_of(key): self.values[key] for key in sums}
        self.updater.update(weights, {name_of(key): summed for key, summed in sums.items()}, squares)

    def squares(self, sums: Mapping[Key, Any]) -> dict[str, float]:
        """The sums of the squares of what `summed` gave, by the optimizer's names, as `take` has them of whole ones."""
        return square_norms({name_of(key): computed(summed) for key, summed in sums.items()})

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

    def pull_into(self, out: Mapping[Key, Any], rows: Mapping[Key, np.ndarray | None]) -> None:
        """Bring the rows up to date, then copy them."""
        self.catch_up(rows)
        for key, array in out.items():
            touched = rows[key]
            if touched is None:
                formats.assign(array, self._stored(key))
            else:
                put_rows(array, self.row_sparse_pull(key, touched))

    def set_optimizer(self, updater: Updater) -> None:
        """Let a push be a step of this optimizer from now on; a second one takes the place of the first."""
        if not isinstance(updater, Updater):
            raise StoreError(f"An optimizer is an optimizers.Updater; a {type(updater).__name__} came.")
        self.updater = updater

    def catch_up(self, rows: Mapping[Key, np.ndarray | None] | None = None) -> None:
        """Nothing to do without an optimizer, or with one that leaves nothing behind."""
        if self.updater is not None:
            rows = dict.fromkeys(self.values) if rows is None else rows
            weights = {name_of(key): self._stored(key) for key in rows}
            caught_up(self.updater, weights, {name_of(key): touched for key, touched in rows.items()})

    def state_dict(self) -> dict[str, Any]:
        """Names: `value:` or `optimizer:`, then the key in JSON or the optimizer's own name."""
        state = {f"{VALUE}{json.dumps(key)}": formats.copy(value) for key, value in self.values.items()}
        if self.updater is not None:
            state |= {f"{OPTIMIZER}{name}": array for name, array in written(self.updater.state_dict()).items()}
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
            saved.init(key_of(text), value)
        if self.updater is not None:
            parameters = self.updater.read_state(read(parts["optimizer"]))
            weights = {name_of(key): value for key, value in saved.values.items()}
            self.updater.check_fit(parameters, weights)
            self.updater.take_state(parameters)
        self.values = saved.values

    def _stored(self, key: Key) -> Any:
        if key not in self.values:
            known = ", ".join(map(repr, self.values)) or "none yet"
            raise StoreError(f"There is no key {key!r}; there is: {known}. Call init({key!r}, value) first.")
        return self.values[key]

    def _sum(self, key: Key, pushed: Any) -> Any:
        """One array, checked, of what one or several workers pushed."""
        arrays = list(pushed) if isinstance(pushed, list | tuple) else [pushed]
        if not arrays:
            raise StoreError(f"Nothing was pushed to {key!r}; push an array, or a list with one of each worker.")
        arrays = [admitted(key, array) for array in arrays]
        for array in arrays:
            check_pushed(key, array, self.values[key])
        return arrays[0] if len(arrays) == 1 else added(arrays)


def key_of(text: str) -> Any:
    """The key that a state has as JSON."""
    try:
        return parsed(text)
    except ValueError as error:
        raise StoreError(f"The state has a value under {text!r:.80}, which is no key as JSON: {error}.") from None


def name_of(key: Key) -> str:
    """Name by which the optimizer knows the key."""
    return str(key)
