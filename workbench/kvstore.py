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

import hashlib
import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

import kernels
from kernels import structure
from kernels.registry import unknown_name
from workbench import formats
from workbench.formats import RowSparse
from workbench.formats.row_parts import row_numbers
from workbench.json_text import parsed
from workbench.ops.products import Unsummed
from workbench.optimizers import Updater
from workbench.optimizers.updater import square_norms

# Interface of a key-value store: `Store`, and `StoreError` for every refusal.

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
        """Return the keys in the order in which they were initialised."""

    @abstractmethod
    def init(self, key: Key, value: Any) -> None:
        """Set a key once, to a copy of a dense or RowSparse array, or to generated rows (`LazyRandomRows`).

        StoreError if the key is set already, is of another type than the others, or the value is in another format.
        """

    @abstractmethod
    def push_all(self, values: Mapping[Key, Any]) -> None:
        """Push arrays to several keys as one optimizer step: for each key an array, or a list with one per worker.

        The arrays of a key are summed: row_sparse ones to the union of their rows, mixed ones to a dense sum. With an
        optimizer the sum is the gradient of a step; without one it replaces the whole value, and rows that were not
        pushed become zero. StoreError for unknown keys or other shapes or dtypes.
        """

    @abstractmethod
    def pull(self, key: Key, out: Any = None) -> Any:
        """Return a copy of a key's whole value; with `out` overwrite that array, of any format, and return it."""

    @abstractmethod
    def row_sparse_pull(self, key: Key, ids: ArrayLike) -> RowSparse:
        """Return the rows `ids` of a value as a RowSparse, sorted and unique; `ids` may have any shape and order.

        Rows that the value does not store are returned as zeros. Raises StoreError for indices out of range or
        fractions.
        """

    @abstractmethod
    def pull_into(self, out: Mapping[Key, Any], rows: Mapping[Key, np.ndarray | None]) -> None:
        """Overwrite the arrays `out` by the values, or the rows, that a training step reads, by key.

        `rows` has for each key row indices int64, sorted and unique, or None for all rows. A row_sparse array then
        stores exactly these rows; a dense one keeps its other rows. Deferred updates of these rows are applied first.
        """

    def ask_ahead(self, rows: Mapping[Key, np.ndarray | None]) -> None:  # noqa: B027 - most stores have nothing to ask
        """Announce the rows that the pull after the next push reads, as of `pull_into`; a store may begin to send them.

        `advance` is then called after forward and backward pass; nothing is done by default.
        """

    def advance(self) -> None:  # noqa: B027 - the same
        """Let what `ask_ahead` has begun go on; nothing by default."""

    def drop_ahead(self) -> None:  # noqa: B027 - the same
        """Forget what was announced; nothing by default."""

    @abstractmethod
    def set_optimizer(self, updater: Updater) -> None:
        """Apply a step of this optimizer at every following push; the store changes the optimizer's state."""

    @abstractmethod
    def catch_up(self, rows: Mapping[Key, np.ndarray | None] | None = None) -> None:
        """Apply the updates that an exact lazy optimizer has deferred to `rows` by key, None for all rows of a key.

        Values of other keys are not changed; without `rows` everything is brought up to date.
        """

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Return a copy of values and optimizer state, {name: array}, in their formats."""

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replace all values and optimizer state by those of `state_dict`; StoreError if they do not fit.

        A state with an optimizer's part requires an optimizer to be set.
        """

    @final
    def optimizer_state(self) -> dict[str, Any]:
        """Return the optimizer's part of the state, as `Updater.state_dict`; empty without an optimizer."""
        return {name[len(OPTIMIZER) :]: a for name, a in self.state_dict().items() if name.startswith(OPTIMIZER)}

    @final
    def push(self, key: Key, value: Any) -> None:
        """Push to one key: an array, or a list with one per worker. See `push_all`."""
        self.push_all({key: value})

    @final
    def save(self, path: str | os.PathLike) -> None:
        """Write `state_dict` to one file, atomically; OSError if that fails."""
        formats.save(path, self.state_dict())

    @final
    def load(self, path: str | os.PathLike) -> None:
        """Replace values and optimizer state by those of a file that `save` wrote; StoreError if they do not fit."""
        self.load_state_dict(formats.load(path))


# Checks of what a store takes: keys, values, and what is pushed to them; anything else is refused in words.


FORMATS = ("dense", "row_sparse")


def admitted(key: Key, value: Any) -> Any:
    """Return the value as a store accepts it: a dense or RowSparse array or a factored gradient.

    Other array types are converted if possible. StoreError for other formats, FormatError for invalid arrays.
    """
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


# A key-value store in the memory of this process.

# First values that are drawn row by row: each row from the seed, the name and its number alone.
#
# So a table of any height costs nothing before its rows are touched, and all who draw a row get the same bits. The
# random numbers are those of SplitMix64 (Steele, Lea, Flood 2014) at a place that the row and the column fix; differs:
# the state is not advanced but looked up. Normal ones are made of two of them (Box and Muller 1958).


KINDS = ("constant", "uniform", "normal")


@final
@dataclass(frozen=True)
class LazyRandomRows:
    """Random initial values of a row_sparse array, generated row by row from `seed` and `name`.

    `kind` with its `number`: constant (the value), uniform (bound of the interval), normal (standard deviation). A row
    is the same whichever rows are generated with it.

    >>> table = LazyRandomRows((10**9, 2), "float32", "normal", 0.1, seed=3, name="w")
    >>> bool((table.rows(np.array([7, 10**8])) == table.rows(np.array([10**8, 7]))[::-1]).all())
    True
    """

    shape: tuple[int, ...]
    dtype: str
    kind: str
    number: float
    seed: int
    name: str

    def __post_init__(self) -> None:
        """Raise ValueError for an unknown kind or dtype, a scalar shape, or a negative seed."""
        if self.kind not in KINDS or self.dtype not in ("float32", "float64") or not self.shape or self.seed < 0:
            raise ValueError(
                f"Rows are drawn as {self.kind!r} {self.dtype} {self.shape} from the seed {self.seed}; allowed are "
                f"{', '.join(KINDS)}, float32 or float64, a shape with rows, and a seed from 0."
            )

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def rows(self, numbers: np.ndarray) -> np.ndarray:
        """Return the rows `numbers` (int `[n]`) in their order, `[n, *shape[1:]]` in the table's dtype.

        O(n * width).
        """
        width = math.prod(self.shape[1:])
        places = numbers.astype(np.uint64)[:, None] * np.uint64(width) + np.arange(width, dtype=np.uint64)
        return self._values(places).astype(self.dtype).reshape(len(numbers), *self.shape[1:])

    def whole(self) -> RowSparse:
        """Return all rows as a RowSparse that stores every row. O(size)."""
        numbers = np.arange(self.shape[0])
        return RowSparse.assemble(self.rows(numbers), numbers, self.shape)

    @property
    def about(self) -> dict[str, Any]:
        """Settings as a dict for JSON; `of` is the inverse."""
        return {**self.__dict__, "shape": list(self.shape)}

    @classmethod
    def of(cls, about: Mapping[str, Any]) -> "LazyRandomRows":
        """Return the rows described by a dict of `about`."""
        return cls(**{**about, "shape": tuple(about["shape"])})

    def _values(self, places: np.ndarray) -> np.ndarray:
        """Return the float64 values of the elements at flat positions `places` (uint64, any shape), in that shape."""
        if self.kind == "constant":
            return np.full(places.shape, self.number)
        if self.kind == "uniform":
            return (2 * self._uniform(places, "first") - 1) * self.number
        radius = np.sqrt(-2 * np.log1p(-self._uniform(places, "first")))
        return radius * np.cos(2 * np.pi * self._uniform(places, "second")) * self.number

    def _uniform(self, places: np.ndarray, stream: str) -> np.ndarray:
        """Return random numbers in [0, 1), float64, one per flat position; `stream` selects independent numbers."""
        digest = hashlib.sha256(f"{self.seed} {stream} {self.name}".encode()).digest()
        state = np.uint64(int.from_bytes(digest[:8], "little")) + (places + np.uint64(1)) * structure.PLACE
        return (structure.mix_bits(state) >> np.uint64(11)) * 2.0**-53


# Sums of what several workers push, and rows written or brought up to date where they stand.


def caught_up(updater: Updater, weights: Mapping[str, Any], rows: Mapping[str, np.ndarray | None]) -> None:
    """Apply deferred updates to `rows` (int64 by name; None: all rows) of the weights, in place.

    Does nothing unless the optimizer is lazy and exact.
    """
    if updater.lazy != "exact":
        return
    updater.catch_up({name: weights[name] for name, active in rows.items() if active is None})
    some = {name: active for name, active in rows.items() if active is not None}
    updater.catch_up({name: weights[name] for name in some}, some)


def put_rows(out: np.ndarray | RowSparse, rows: RowSparse) -> None:
    """Write `rows` into `out` in place: a dense array keeps its other rows, a RowSparse stores exactly these."""
    if isinstance(out, RowSparse):
        formats.assign(out, rows)
    else:
        out[rows.indices] = rows.values


def added(arrays: Sequence[Any]) -> Any:
    """Return the sum of dense and row_sparse arrays of one shape and dtype; row_sparse if all of them are.

    The same arrays in the same order give the same bits.
    """
    arrays = [computed(array) for array in arrays]
    if all(isinstance(array, RowSparse) for array in arrays):
        if len(arrays) == 2 and arrays[0].dtype in formats.FLOATS:
            return _merged(*arrays)
        indices, values = (np.concatenate([getattr(array, part) for array in arrays]) for part in ("indices", "values"))
        return RowSparse.from_rows(indices, values, arrays[0].shape)
    total = np.zeros(arrays[0].shape, arrays[0].dtype)
    for array in arrays:
        if isinstance(array, RowSparse):
            total[array.indices] += array.values
        else:
            total += array
    return total


def _merged(one: RowSparse, two: RowSparse) -> RowSparse:
    """Return the sum of two arrays of the same shape and dtype by one pass over their sorted rows."""
    width = math.prod(one.shape[1:])
    parts = [(array.indices, np.ascontiguousarray(array.values).reshape(-1, width)) for array in (one, two)]
    indices, sums = kernels.get("add_rows").trusted(*parts[0], *parts[1])
    return RowSparse.assemble(sums.reshape(-1, *one.shape[1:]), indices, one.shape)


def computed(array: Any) -> Any:
    """Return an array unchanged; a factored gradient is multiplied out to a RowSparse or dense array."""
    return array.compute() if isinstance(array, Unsummed) else array


@final
class LocalStore(Store):
    """Store in the memory of this process."""

    def __init__(self) -> None:
        """Start without keys and without an optimizer."""
        self.values: dict[Key, Any] = {}
        self.updater: Updater | None = None

    def __repr__(self) -> str:
        """Return the keys and the optimizer as text."""
        keys = ", ".join(map(repr, self.values)) or "no keys"
        return f"<LocalStore {keys}: {self.updater or 'no optimizer'}>"

    def keys(self) -> list[Key]:
        """Return the keys in the order in which they were initialised."""
        return list(self.values)

    def init(self, key: Key, value: Any) -> None:
        """Set a key to a copy of the value, with all rows of a `LazyRandomRows`; StoreError if it is set already."""
        check_new_key(key, self.values)
        self.values[key] = value.whole() if isinstance(value, LazyRandomRows) else formats.copy(admitted(key, value))

    def push_all(self, values: Mapping[Key, Any]) -> None:
        """Sum the arrays of each key, then do one optimizer step, or without an optimizer replace the values.

        StoreError, changing nothing, if a key is unknown or shape or dtype differ.
        """
        self.take(self.summed(values))

    def summed(self, values: Mapping[Key, Any]) -> dict[Key, Any]:
        """Return the sum of what workers push, one array per key; StoreError if one does not fit. Changes nothing."""
        for key in values:
            self._stored(key)
        return {key: self._sum(key, pushed) for key, pushed in values.items()}

    def take(self, sums: Mapping[Key, Any], squares: Mapping[str, float] | None = None) -> None:
        """Do an optimizer step with the sums of `summed`, in place, or without an optimizer replace the values by them.

        `squares`, by parameter name, are sums of squares of whole gradients for clipping, as in `Updater.update`.
        """
        if self.updater is None:
            for key, summed in sums.items():
                formats.assign(self.values[key], computed(summed))
            return
        weights = {name_of(key): self.values[key] for key in sums}
        self.updater.update(weights, {name_of(key): summed for key, summed in sums.items()}, squares)

    def squares(self, sums: Mapping[Key, Any]) -> dict[str, float]:
        """Return {parameter: sum of squares} of the sums that `summed` returns."""
        return square_norms({name_of(key): computed(summed) for key, summed in sums.items()})

    def pull(self, key: Key, out: Any = None) -> Any:
        """Return a copy of the value, or `out` overwritten with it; StoreError for an unknown key."""
        stored = self._stored(key)
        return formats.copy(stored) if out is None else formats.assign(out, stored)

    def row_sparse_pull(self, key: Key, ids: ArrayLike) -> RowSparse:
        """Return a copy of rows `ids` (any shape and order, repeats once) of the key's value as a RowSparse.

        StoreError for an unknown key, ids out of range, or a value without rows.
        """
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
        """Apply deferred updates to `rows`, then overwrite the arrays `out` by these rows (None: all), by key."""
        self.catch_up(rows)
        for key, array in out.items():
            active = rows[key]
            if active is None:
                formats.assign(array, self._stored(key))
            else:
                put_rows(array, self.row_sparse_pull(key, active))

    def set_optimizer(self, updater: Updater) -> None:
        """Apply a step of this optimizer at every following push, replacing a previous one.

        StoreError if it is no Updater.
        """
        if not isinstance(updater, Updater):
            raise StoreError(f"An optimizer is an optimizers.Updater; a {type(updater).__name__} came.")
        self.updater = updater

    def catch_up(self, rows: Mapping[Key, np.ndarray | None] | None = None) -> None:
        """Apply deferred updates to the rows by key (None: all rows, or all keys), in place.

        Does nothing unless the optimizer is lazy and exact.
        """
        if self.updater is not None:
            rows = dict.fromkeys(self.values) if rows is None else rows
            weights = {name_of(key): self._stored(key) for key in rows}
            caught_up(self.updater, weights, {name_of(key): active for key, active in rows.items()})

    def state_dict(self) -> dict[str, Any]:
        """Return copies of the values as "value:KEY" (key in JSON) and the optimizer's state as "optimizer:NAME"."""
        state = {f"{VALUE}{json.dumps(key)}": formats.copy(value) for key, value in self.values.items()}
        if self.updater is not None:
            state |= {f"{OPTIMIZER}{name}": array for name, array in self.updater.state_dict().items()}
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replace values and optimizer state; StoreError, changing nothing, if something does not fit."""
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
            parameters = self.updater.read_state(parts["optimizer"])
            weights = {name_of(key): value for key, value in saved.values.items()}
            self.updater.check_fit(parameters, weights)
            self.updater.take_state(parameters)
        self.values = saved.values

    def _stored(self, key: Key) -> Any:
        """Return the stored array of a key, not copied. Raises StoreError for an unknown key."""
        if key not in self.values:
            raise StoreError(f"{unknown_name('key', key, self.values)} Call init({key!r}, value) first.")
        return self.values[key]

    def _sum(self, key: Key, pushed: Any) -> Any:
        """Return the sum of what one (an array) or several workers (a list) pushed to a key.

        StoreError if one does not fit.
        """
        arrays = list(pushed) if isinstance(pushed, list | tuple) else [pushed]
        if not arrays:
            raise StoreError(f"Nothing was pushed to {key!r}; push an array, or a list with one of each worker.")
        arrays = [admitted(key, array) for array in arrays]
        for array in arrays:
            check_pushed(key, array, self.values[key])
        return arrays[0] if len(arrays) == 1 else added(arrays)


def key_of(text: str) -> Any:
    """Return the key (a string or integer) of its JSON text in a state; StoreError if it is no JSON."""
    try:
        return parsed(text)
    except ValueError as error:
        raise StoreError(f"The state has a value under {text!r:.80}, which is no key as JSON: {error}.") from None


def name_of(key: Key) -> str:
    """Return the parameter name, a string, that the optimizer uses for the key."""
    return str(key)


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
