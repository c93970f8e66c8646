"""`MpiStore`: the store of a training by the ranks of an MPI job, each of which owns some rows of every key.

Every rank is a trainer and a shard. A step pulls the rows that its batch reads and pushes row-sparse gradients, each
to the rank that owns the row; gradients of all ranks are summed, not averaged, in the order of the ranks, so that bits
do not depend on timing. All methods are collective: every rank calls the same ones, in the same order, with values of
the same keys.

>>> from workbench.cluster import MpiStore, OneRank
>>> store = MpiStore(OneRank())                                  # MpiStore() in an MPI job
>>> store.init("w", formats.zeros((4, 1), "row_sparse"))
>>> store.push("w", RowSparse(np.float32([[1], [7]]), [0, 2], (4, 1)))
>>> store.row_sparse_pull("w", [2, 1, 2])
RowSparse(shape=(4, 1), stored_rows=2, dtype=float32)
  row 1: [0.]
  row 2: [7.]
"""

import itertools
import os
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

import kernels
from kernels.registry import unknown_name
from workbench import formats
from workbench.cluster import checkpoints, partition
from workbench.cluster.ahead import Ahead, Asked
from workbench.cluster.checkpoints import Manifest
from workbench.cluster.exchange import Exchange
from workbench.cluster.partition import Held, Partition, Source
from workbench.formats import RowSparse
from workbench.formats.row_parts import row_numbers
from workbench.kvstore import (
    VALUE,
    Key,
    LazyRandomRows,
    LocalStore,
    Store,
    StoreError,
    added,
    admitted,
    check_new_key,
    check_pushed,
    computed,
    key_of,
    name_of,
    put_rows,
)
from workbench.optimizers import Updater

Rows = Mapping[Key, np.ndarray | None]
DENSE = -1
"""Count of rows that stands for all rows of the part."""


class OneRank:
    """Communicator of a job of one rank, for trying a store without MPI."""

    rank, size = 0, 1

    def Alltoall(self, sent: np.ndarray, received: np.ndarray) -> None:  # noqa: N802 - as in mpi4py
        """Copy `sent` to `received`."""
        received[...] = sent

    def Alltoallv(self, sent: Sequence[Any], received: Sequence[Any]) -> None:  # noqa: N802 - as in mpi4py
        """Copy the array of `sent`, [array, counts], to that of `received`."""
        received[0][...] = sent[0]

    def Ialltoall(self, sent: np.ndarray, received: np.ndarray) -> "OneRank":  # noqa: N802 - as in mpi4py
        """Copy `sent` to `received`; return a request, which is done."""
        self.Alltoall(sent, received)
        return self

    def Ialltoallv(self, sent: Sequence[Any], received: Sequence[Any]) -> "OneRank":  # noqa: N802 - as in mpi4py
        """Copy the array of `sent` to that of `received`; return a request, which is done."""
        self.Alltoallv(sent, received)
        return self

    def Wait(self) -> None:  # noqa: N802 - as in mpi4py
        """Wait for nothing."""

    def Allgatherv(self, sent: np.ndarray, received: Sequence[Any]) -> None:  # noqa: N802 - as in mpi4py
        """Copy `sent` to the array of `received`, [array, counts]."""
        received[0][...] = sent

    def allgather(self, value: Any) -> list[Any]:
        """Return [value]."""
        return [value]


@final
class MpiStore(Store):
    """The store of one rank; `spread` says which rows are whose (`workbench.cluster.partition`).

    `exchange.bytes_moved` has the bytes to and from other ranks.
    """

    def __init__(self, communicator: Any = None, *, spread: str = "contiguous") -> None:
        """Make a store without values on the ranks of an mpi4py communicator, by default all of the job."""
        self.exchange, self.spread = Exchange(communicator), spread
        self.trainer, self.trainers = self.exchange.rank, self.exchange.ranks
        self.part = LocalStore()
        self.held: dict[Key, Held] = {}
        self.drawn: dict[Key, LazyRandomRows] = {}
        self.sources: dict[Key, Source] = {}
        self.updater: Updater | None = None
        self.settings: dict[str, Any] | None = None
        self.step = 0
        self.ahead: Ahead | None = None
        self.last_wanted: dict[Key, np.ndarray] = {}
        """Rows of this rank that ranks asked for in the last pull, by key."""
        self.last_pulled: dict[Key, np.ndarray] = {}
        """Rows that this rank has pulled last, by key; pushes have no others while the next ones are on their way."""
        self.pushed_sparse: set[Key] = set()
        """Keys to which all ranks have pushed rows alone in the last step."""

    def __repr__(self) -> str:
        """Return keys, rank and number of ranks as text."""
        keys = ", ".join(map(repr, self.held)) or "no keys"
        return f"<MpiStore {keys}: rank {self.trainer} of {self.trainers}>"

    # Values

    def keys(self) -> list[Key]:
        """Return the keys in the order in which they were initialised."""
        return list(self.held)

    def init(self, key: Key, value: Any) -> None:
        """Set a key to an array, RowSparse or LazyRandomRows, the same on all ranks; each keeps its rows.

        StoreError if the key is set already or there are no rows, or if generated rows need another optimizer.
        """
        check_new_key(key, self.held)
        if isinstance(value, LazyRandomRows):
            partition.check_lazy(self.updater, [key])
            self._hold(key, value)
            self.drawn[key] = value
            own = partition.sources([[key, value.about]], self.spread, self.trainer, self.trainers)
            self.sources |= own
            piece = own[key].nothing if own else None
        else:
            value = computed(admitted(key, value))
            self._hold(key, value)
            piece = partition.cut(value, self.held[key].partition)[self.trainer]
        if piece is not None:
            self.part.init(key, piece)

    def push_all(self, values: Mapping[Key, Any]) -> None:
        """Do one optimizer step with the gradients of all ranks by key, or without an optimizer replace the values.

        A value may be a list with an array of each worker, which are summed. Raises StoreError for unknown keys, shapes
        that differ, or if optimizer options changed since `set_optimizer`.
        """
        if self.updater is not None and self.updater.settings != self.settings:
            raise StoreError("The optimizer's options have changed, which other ranks do not know; call set_optimizer.")
        pushed = {key: self._sum_pushed(key, values[key]) for key in values}
        orders = {key: self._order(key, one.indices) for key, one in pushed.items() if isinstance(one, RowSparse)}
        counts = np.array([orders[key][1] if key in orders else [DENSE] * self.trainers for key in pushed], np.int64)
        came = self.exchange.counts(f"push_all of {list(pushed)}", counts.reshape(len(pushed), self.trainers))
        self._check_pushed_rows(pushed)
        self.pushed_sparse = {key for key, sources in zip(pushed, came.tolist(), strict=True) if DENSE not in sources}
        parts: dict[Key, list[Any]] = {}
        for (key, value), sources in zip(pushed.items(), came.tolist(), strict=True):
            own = self._push(key, value, orders.get(key), sources)
            if key in self.part.values:
                parts[key] = own
        sums = self.part.summed(parts)
        squares = None
        if self.updater is not None and self.updater.clip_global_norm is not None:
            all_ranks = self.exchange.gather(self.part.squares(sums))
            names = [name for name in map(name_of, self.held) if any(name in own for own in all_ranks)]
            squares = {name: sum(own[name] for own in all_ranks if name in own) for name in names}
        self._draw({key: one.indices if isinstance(one, RowSparse) else None for key, one in sums.items()})
        self.part.take(sums, squares)
        self.step += 1

    def _push(self, key: Key, value: Any, order: tuple | None, sources: list[int]) -> list[Any]:
        """Send each rank its rows of `value`; return what came for this one, an array or RowSparse of each rank."""
        held, ranks = self.held[key], range(self.trainers)
        shape = held.part_shape(self.trainer)
        width = held.shape[1:]
        count = held.partition.count(self.trainer)
        indices, values = np.empty(0, held.index_dtype), value
        if order is None:
            permutation = held.partition.order if self._is_hashed else None
            counts = [held.partition.count(rank) for rank in ranks]
            values = value.reshape(held.partition.rows, *width) if value.ndim else value.reshape(1)
        else:
            permutation, counts, indices = order
            values = value.values
        if permutation is not None:
            values = np.take(values, permutation, axis=0)
        numbers = [max(one, 0) for one in sources]
        rows = self.exchange.rows(f"{key} indices", indices, counts if order else [0] * self.trainers, numbers)
        received = [count if one == DENSE else one for one in sources]
        came = self.exchange.rows(f"{key} gradients", np.ascontiguousarray(values), counts, received)
        if key not in self.part.values:
            return []
        ends, places = np.cumsum([0, *received]), np.cumsum([0, *numbers])
        return [
            came[ends[rank] : ends[rank + 1]].reshape(shape)
            if sources[rank] == DENSE
            else RowSparse.assemble(
                came[ends[rank] : ends[rank + 1]], rows[places[rank] : places[rank + 1]].astype(np.int64), shape
            )
            for rank in ranks
        ]

    def pull(self, key: Key, out: Any = None) -> Any:
        """Return the whole value of a key, or `out` overwritten with it; StoreError for an unknown key."""
        self._layout(key)
        value = self._whole(key)
        return value if out is None else formats.assign(out, value)

    def row_sparse_pull(self, key: Key, ids: ArrayLike) -> RowSparse:
        """Return the rows `ids` (any shape and order, also repeated) of a key's value as a RowSparse, all stored.

        StoreError for an unknown key, ids out of range, or a value without rows.
        """
        held = self._layout(key)
        if not held.shape:
            raise StoreError(f"The value of {key!r} has no rows; call pull({key!r}).")
        try:
            numbers = row_numbers(np.asarray(ids).reshape(-1), held.shape[0])
        except formats.FormatError as error:
            raise StoreError(f"row_sparse_pull of {key!r}: {error}") from None
        asked = self._ask({key: numbers})[key]
        assert asked is not None
        return RowSparse.assemble(self._answer(key, asked).copy(), numbers.copy(), held.shape)

    def pull_into(self, out: Mapping[Key, Any], rows: Rows) -> None:
        """Overwrite each `out[key]` by the current value, or its rows `rows[key]` (int64, sorted; None for all).

        Deferred updates of these rows are applied first.
        """
        ahead = self._take_ahead(rows)
        asked = self._ask(rows) if ahead is None else {key: ahead.asked.get(key) for key in rows}
        self.last_wanted = {key: own.wanted.copy() for key, own in asked.items() if own is not None}
        self.last_pulled = {key: numbers for key, numbers in rows.items() if numbers is not None}
        self._catch_up(asked)
        for key, array in out.items():
            own, numbers = asked[key], rows[key]
            if own is None or numbers is None:
                formats.assign(array, self._whole(key))
                continue
            values = ahead.answer(key) if ahead is not None and key in ahead.early else self._answer(key, own)
            put_rows(array, RowSparse.assemble(values, numbers, self.held[key].shape))

    def ask_ahead(self, rows: Rows) -> None:
        """Ask for the rows (int64, sorted; no key for all rows) that the pull after the next push reads.

        They travel while the ranks compute (`workbench.cluster.ahead`): call `advance` after the forward pass and after
        the backward pass. That pull is to name the same arrays, else what was asked for is dropped.
        """
        self.drop_ahead()
        known = {key: numbers for key, numbers in rows.items() if numbers is not None}
        if known and self.trainers > 1:
            self.ahead = Ahead(self, known)

    def advance(self) -> None:
        """Let what `ask_ahead` has begun go on, if something was."""
        if self.ahead is not None:
            self.ahead.advance()

    def drop_ahead(self) -> None:
        """Wait for what `ask_ahead` has begun, and forget it."""
        if self.ahead is not None:
            self.ahead.drop()
            self.ahead = None

    def _take_ahead(self, rows: Rows) -> Ahead | None:
        """Return what was asked for ahead if it is what `rows` names; else drop it and return None."""
        ahead = self.ahead
        known = {key: numbers for key, numbers in rows.items() if numbers is not None}
        if (
            ahead is None
            or ahead.rows.keys() != known.keys()
            or any(ahead.rows[key] is not known[key] for key in known)
        ):
            self.drop_ahead()
            return None
        self.ahead = None
        ahead.finish()
        return ahead

    def keeps_rows(self, key: Key) -> bool:
        """Return whether an update changes only rows that ranks push, which they have pulled before."""
        is_lazy = self.updater is not None and self.updater.lazy == "on"
        return is_lazy and key in self.pushed_sparse and key in self.last_wanted

    def _check_pushed_rows(self, pushed: Mapping[Key, Any]) -> None:
        """Raise StoreError if rows are pushed that were not pulled, while rows of the next batch are on their way."""
        for key in self.ahead.early if self.ahead is not None else ():
            value = pushed.get(key)
            is_of_pull = isinstance(value, RowSparse) and np.isin(value.indices, self.last_pulled[key]).all()
            if value is not None and not is_of_pull:
                raise StoreError(
                    f"Rows of {key!r} are pushed after ask_ahead which the last pull did not read; call drop_ahead."
                )

    def catch_up(self, rows: Rows | None = None) -> None:
        """Apply deferred updates of the rows by key (int64; None for all rows, or of all keys) on their ranks."""
        self._catch_up(self._ask(dict.fromkeys(self.held) if rows is None else rows))

    # The optimizer and the state

    def set_optimizer(self, updater: Updater) -> None:
        """Let each rank make an optimizer with the settings of `updater`, at step 0; `updater` is not changed.

        StoreError if it is no Updater, or if lazily generated values forbid it.
        """
        if not isinstance(updater, Updater):
            raise StoreError(f"An optimizer is an optimizers.Updater; a {type(updater).__name__} came.")
        partition.check_lazy(updater, self.drawn)
        self.updater, self.settings = updater, updater.settings
        self.part.set_optimizer(Updater.from_settings(self.settings))

    def state_dict(self) -> dict[str, Any]:
        """Return the state {name: array} that a `LocalStore` would have after the same steps, with all rows."""
        return checkpoints.joined(dict(enumerate(self.exchange.gather(self.part.state_dict()))), self._partitions)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replace values and optimizer states by `state`, as `state_dict` gives it, the same on all ranks.

        StoreError if it does not fit the optimizer.
        """
        self.drop_ahead()
        checked = self._empty_store()
        checked.load_state_dict(state)
        self.held, self.drawn, self.sources = {}, {}, {}
        for name in (name for name in state if name.startswith(VALUE)):
            self._hold(key_of(name[len(VALUE) :]), state[name])
        part = self._empty_store()
        part.load_state_dict(checkpoints.cut(state, self._partitions, self.trainers)[self.trainer])
        self.part = part

    def save_shards(self, folder: str | os.PathLike, about: Mapping[str, Any] | None = None) -> None:
        """Write a checkpoint into a folder that all ranks see: a file of each rank, then the manifest.

        `about`, plain JSON values, is what `load_shards` returns. StoreError if a file cannot be written, as on a full
        disk; the checkpoint before stands then.
        """
        folder = Path(folder).resolve()
        prefix = self.exchange.gather(f"step-{self.step}-{uuid.uuid4().hex[:12]}")[0]
        drawn = [[key, one.about] for key, one in self.drawn.items()]
        known = Manifest(prefix, self.trainers, self.spread, _values_of(self), self.settings, dict(about or {}), drawn)

        def write_part() -> None:
            """Write the file of this rank."""
            folder.mkdir(parents=True, exist_ok=True)
            formats.save(checkpoints.file_of(folder / prefix, self.trainer), self.part.state_dict())

        def write_manifest() -> None:
            """Write the manifest, on the first rank."""
            if not self.trainer:
                checkpoints.write(folder, known)

        try:
            for write in (write_part, write_manifest):
                failure: Exception | None = None
                try:
                    write()
                except (StoreError, OSError) as error:
                    failure = error
                self.exchange.agree(failure)
        except StoreError as error:
            if not self.trainer:
                checkpoints.remove(folder, prefix)
            stands = "The one before stands" if (folder / checkpoints.MANIFEST).exists() else "There is none before it"
            raise StoreError(f"Step {self.step} could not be saved in {folder}: {error}. {stands}.") from None

    def load_shards(self, folder: str | os.PathLike) -> dict[str, Any]:
        """Restore a checkpoint that any number of ranks wrote; return its `about`.

        Without an optimizer that of the checkpoint is set. A checkpoint of other values than the store has, or of
        another optimizer, is a StoreError.
        """
        self.drop_ahead()
        failure: Exception | None = None
        try:
            manifest = checkpoints.read(folder)
            _check_same(self, folder, manifest)
            settings = manifest.settings if self.settings is None else self.settings
            part = LocalStore()
            if settings is not None:
                part.set_optimizer(Updater.from_settings(settings))
            saved = {"folder": str(Path(folder).resolve()), "spread": self.spread}
            part.load_state_dict(checkpoints.state_of(saved, self.trainer, self.trainers))
        except (StoreError, OSError) as error:
            failure = error
        self.exchange.agree(failure)
        if self.settings is None and settings is not None:
            self.updater = Updater.from_settings(settings)
            self.settings = self.updater.settings
        partitions = manifest.partitions(self.trainers, self.spread)
        own = {key for key, value in part.values.items() if isinstance(value, RowSparse)}
        sparse = set().union(*self.exchange.gather(own))
        self.held = {
            key: Held(tuple(shape), np.dtype(dtype), partitions[key], key not in sparse)
            for key, shape, dtype in manifest.values
        }
        self.drawn = {key: LazyRandomRows.of(known) for key, known in manifest.drawn}
        self.sources = partition.sources(manifest.drawn, self.spread, self.trainer, self.trainers)
        self.part = part
        return dict(manifest.about)

    # What is sent

    @property
    def _is_hashed(self) -> bool:
        """Whether ranks own rows in another order than that of their indices."""
        return self.spread != "contiguous"

    @property
    def _partitions(self) -> dict[Key, Partition]:
        """Partition of the rows of each key, a new dict."""
        return {key: held.partition for key, held in self.held.items()}

    def _empty_store(self) -> LocalStore:
        """Return a store without values, with a new optimizer of the same settings if there is one."""
        store = LocalStore()
        if self.settings is not None:
            store.set_optimizer(Updater.from_settings(self.settings))
        return store

    def _hold(self, key: Key, value: Any) -> None:
        """Record shape, dtype and partition of a key's value; StoreError if its first axis is empty."""
        rows = value.shape[0] if value.ndim else 1
        if not rows:
            raise StoreError(f"The value of {key!r} has the shape {value.shape}; ranks share 1 row or more.")
        own = Partition(rows, self.trainers, self.spread)
        self.held[key] = Held(tuple(value.shape), np.dtype(value.dtype), own, isinstance(value, np.ndarray))

    def _layout(self, key: Key) -> Held:
        """Return the shape, dtype and partition of a key; StoreError, with the nearest key, if it is unknown."""
        if key not in self.held:
            raise StoreError(f"{unknown_name('key', key, self.held)} Call init({key!r}, value) first.")
        return self.held[key]

    def _sum_pushed(self, key: Key, pushed: Any) -> Any:
        """Return the sum of the arrays pushed to a key on this rank: one array, or a list with one of each worker.

        StoreError if there are none, or shape or dtype do not fit the value.
        """
        held, arrays = self._layout(key), list(pushed) if isinstance(pushed, list | tuple) else [pushed]
        if not arrays:
            raise StoreError(f"Nothing was pushed to {key!r}; push an array, or a list with one of each worker.")
        arrays = [computed(admitted(key, array)) for array in arrays]
        for array in arrays:
            check_pushed(key, array, held)
        return arrays[0] if len(arrays) == 1 else added(arrays)

    def _order(self, key: Key, numbers: np.ndarray, use: str = "") -> tuple[np.ndarray | None, list[int], np.ndarray]:
        """Return how sorted row indices are sent: (their permutation or None, rows to each rank, local indices).

        The last are in a buffer of this `use`.
        """
        held = self.held[key]
        places, permutation = held.partition.places(numbers), None
        if self._is_hashed:
            permutation = np.argsort(places)
            places = places[permutation]
        borders = held.partition.borders
        ends = np.searchsorted(places, borders)
        counts = np.diff(ends).tolist()
        local = self.exchange.buffer(f"{key} local {use}", (places.size,), held.index_dtype)
        for (start, stop), border in zip(itertools.pairwise(ends.tolist()), borders.tolist(), strict=False):
            np.subtract(places[start:stop], border, out=local[start:stop], casting="unsafe")
        return permutation, counts, local

    def _ask(self, rows: Rows) -> dict[Key, Asked | None]:
        """Tell each rank which of its rows this one asks for; return what is asked by key, None for all rows."""
        orders = {key: self._order(key, numbers) for key, numbers in rows.items() if numbers is not None}
        for key in rows:
            self._layout(key)
        counts = np.array([orders[key][1] if key in orders else [DENSE] * self.trainers for key in rows], np.int64)
        came = self.exchange.counts(f"a pull of {list(rows)}", counts.reshape(len(rows), self.trainers))
        asked: dict[Key, Asked | None] = dict.fromkeys(rows)
        for key, received in zip(rows, came.tolist(), strict=True):
            if key in orders:
                permutation, own, local = orders[key]
                wanted = self.exchange.rows(f"{key} wanted", local, own, received)
                asked[key] = Asked(permutation, own, wanted, received)
        return asked

    def _catch_up(self, asked: Mapping[Key, Asked | None]) -> None:
        """Apply deferred updates of the rows that ranks ask for, on this one."""
        if self.part.updater is not None and self.part.updater.lazy == "exact":
            self.part.catch_up(
                {
                    key: None if own is None else np.unique(own.wanted).astype(np.int64)
                    for key, own in asked.items()
                    if key in self.part.values
                }
            )

    def _draw(self, rows: Rows) -> None:
        """Generate the given rows (local indices, None for all) of lazily generated values that are still missing."""
        for key in rows.keys() & self.sources.keys():
            self.sources[key].draw(self.part.values[key], rows[key])

    def _answer(self, key: Key, asked: Asked) -> np.ndarray:
        """Send each rank the rows that it asked for; return those that came, in the order of the row indices.

        The result is a buffer of the exchange.
        """
        sent = self.take(key, asked.wanted, "sent")
        came = self.exchange.rows(f"{key} values", sent, asked.received, asked.counts)
        if asked.order is None:
            return came
        values = self.exchange.buffer(f"{key} ordered", came.shape, came.dtype)
        values[asked.order] = came
        return values

    def take(self, key: Key, rows: np.ndarray, use: str) -> np.ndarray:
        """Return a copy of rows (local indices) of this rank's part, in a buffer of this `use`; draw missing ones."""
        held = self.held[key]
        taken = self.exchange.buffer(f"{key} taken, {use}", (len(rows), *held.shape[1:]), held.dtype)
        if len(rows):
            if key in self.sources:
                self._draw({key: np.unique(rows).astype(np.int64)})
            _take_rows(self.part.values[key], rows, taken)
        return taken

    def _whole(self, key: Key) -> Any:
        """Return the whole value of a key, gathered from all ranks, after generating rows that are missing."""
        held = self.held[key]
        self._draw({key: None})
        part = self.part.values.get(key)
        if held.is_dense:
            counts = [held.partition.count(rank) for rank in range(self.trainers)]
            own = np.empty((0, *held.shape[1:]), held.dtype) if part is None else np.atleast_1d(part)
            came = self.exchange.all_rows(f"{key} whole", np.ascontiguousarray(own), counts)
            whole = np.empty_like(came)
            whole[held.partition.order if self._is_hashed else slice(None)] = came
            return whole.reshape(held.shape)
        pieces = {rank: piece for rank, piece in enumerate(self.exchange.gather(part)) if piece is not None}
        return partition.joined(pieces, held.partition)


def _take_rows(stored: Any, rows: np.ndarray, out: np.ndarray) -> None:
    """Copy rows (indices `[n]`, any order) of an array or RowSparse to `out` `[n, ...]`; zeros if not stored."""
    values = stored if isinstance(stored, np.ndarray) else stored.values
    if len(values) == stored.shape[0]:
        if values.ndim == 2 and values.flags.c_contiguous and values.dtype in formats.FLOATS:
            kernels.get("take_rows").trusted(values, rows, out)
        else:
            np.take(values, rows, axis=0, out=out, mode="clip")
    else:
        places = np.searchsorted(stored.indices, rows)
        places[places == len(stored.indices)] = 0
        is_there = stored.indices[places] == rows if len(stored.indices) else np.zeros(len(rows), bool)
        out[...] = 0
        out[is_there] = stored.values[places[is_there]]


def _values_of(store: MpiStore) -> list[list[Any]]:
    """Return [key, shape, dtype name] of each value of the store, as a manifest lists them."""
    return [[key, list(held.shape), held.dtype.name] for key, held in store.held.items()]


def _check_same(store: MpiStore, folder: str | os.PathLike, manifest: Manifest) -> None:
    """Raise StoreError if the checkpoint (`manifest`) has other values or another optimizer than the store.

    A store without values or optimizer accepts any; `folder` is named in the message.
    """
    advice = "Go on with what was saved, or name another folder."
    own, saved = ({str(key): rest for key, *rest in values} for values in (_values_of(store), manifest.values))
    if own and (differing := [key for key in {**own, **saved} if own.get(key) != saved.get(key)]):
        key = differing[0]
        said = f"{key!r} is {_describe_value(saved.get(key))} there and {_describe_value(own.get(key))} here"
        raise StoreError(f"The checkpoint in {folder} is of another model: {said}. {advice}")
    if store.settings is not None and manifest.settings is not None:
        there, here = (settings.get("name") for settings in (manifest.settings, store.settings))
        if there != here:
            raise StoreError(f"The checkpoint in {folder} is of the optimizer {there}; this one is {here}. {advice}")


def _describe_value(value: list[Any] | None) -> str:
    """Return "float32 (4, 1)" for [key, shape, dtype]; "not" for None."""
    return "not" if value is None else f"{value[1]} {tuple(value[0])}"
