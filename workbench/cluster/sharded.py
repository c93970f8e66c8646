"""`ShardedStore`: what a module asks of a store, asked of shards, each of which owns some rows of every key.

Every trainer has one, and calls the same methods in the same order; `init`, `set_optimizer` and `load_state_dict` are
sent by trainer 0 and only noted by the others. Gradients of all trainers are summed, not averaged.

>>> from workbench.cluster import LocalTransport, Shard
>>> store = ShardedStore(LocalTransport([Shard(0, 2), Shard(1, 2)]))
>>> store.init("w", formats.zeros((4, 1), "row_sparse"))
>>> store.push("w", RowSparse(np.float32([[1], [7]]), [0, 2], (4, 1)))
>>> store.row_sparse_pull("w", [2, 1, 2])
RowSparse(shape=(4, 1), stored_rows=2, dtype=float32)
  row 1: [0.]
  row 2: [7.]
"""

import os
import uuid
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from kernels.registry import unknown_name
from workbench import formats
from workbench.cluster import checkpoints, partition
from workbench.cluster.checkpoints import Manifest
from workbench.cluster.messages import Message, narrow_indices, pack_values, unpack_values
from workbench.cluster.partition import Cut, Held, Partition
from workbench.cluster.transport import Channel, Content, GoneError, RolledBackError, TimedOutError, Transport
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


WITHOUT_ANSWER = (TimedOutError, RolledBackError, GoneError)
"""Errors of a shard that is gone: what a training begins again after."""


@final
class ShardedStore(Store):
    """The store of one trainer over shards; an answer that takes more than `seconds` raises StoreError.

    `spread` says which rows are whose (`workbench.cluster.partition`), the same for all trainers. `staleness` counts,
    for each pull, how many pushed steps of this trainer were not yet applied; `traffic` has the bytes of all messages.
    """

    def __init__(
        self, transport: Transport, trainer: int = 0, *, spread: str = "contiguous", seconds: float = 60.0
    ) -> None:
        """Connect as trainer number `trainer` to the shards of `transport`, and read how many trainers there are.

        `spread` ("contiguous" or "hashed") divides rows. StoreError if a shard does not answer in `seconds`, is another
        one, or has no such trainer.
        """
        self.channel, self.spread = Channel(transport, trainer, seconds), spread
        self.shards = transport.shards
        self.traffic, self.staleness = self.channel.traffic, Counter[int]()
        self.held: dict[Key, Held] = {}
        self.drawn: dict[Key, LazyRandomRows] = {}
        self.updater: Updater | None = None
        self.settings: dict[str, Any] | None = None
        self.step = self.number = self.settled = 0
        self._greet()

    def __repr__(self) -> str:
        """Return keys, number of shards and trainer as text."""
        keys = ", ".join(map(repr, self.held)) or "no keys"
        return f"<ShardedStore {keys}: {self.shards} shards, trainer {self.trainer} of {self.trainers}>"

    def _greet(self) -> None:
        """Ask every shard who it is, and set trainers, lag and generation; StoreError if one is another shard."""
        for shard, reply in self.channel.ask("hello").items():
            about = reply.about
            if (about["number"], about["shards"]) != (shard, self.shards):
                raise StoreError(f"Shard {shard} of {self.shards} says that it is another: {about}.")
        self.trainer, self.trainers, self.lag = self.channel.trainer, about["trainers"], about["staleness"]
        self.channel.generation = about["generation"]
        if not 0 <= self.trainer < self.trainers:
            raise StoreError(f"There is no trainer {self.trainer}; the shards are for {self.trainers}, from 0.")

    # Values

    def keys(self) -> list[Key]:
        """Return the keys in the order in which they were initialised."""
        return list(self.held)

    def init(self, key: Key, value: Any) -> None:
        """Give the key its first value (an array, RowSparse or LazyRandomRows), each shard its rows.

        Trainer 0 sends it, others only note shape and dtype. StoreError if the key exists or there are no rows.
        """
        check_new_key(key, self.held)
        if isinstance(value, LazyRandomRows):
            self._init_drawn(key, value)
            return
        value = computed(admitted(key, value))
        self._hold(key, value)
        pieces = partition.cut(value, self.held[key].partition)
        self._do_once("init", [_content_with_shapes({} if piece is None else {key: piece}) for piece in pieces])

    def _init_drawn(self, key: Key, drawn: LazyRandomRows) -> None:
        """Register the value `drawn` of a key, whose rows each shard generates when they are first used.

        StoreError if the update is not lazy.
        """
        partition.check_lazy(self.updater, [key])
        self._hold(key, drawn)
        self.drawn[key] = drawn
        listed = {"drawn": [[key, drawn.about]], "spread": self.spread, "names": [], "shapes": []}
        self._do_once("init", [Content(listed, [])] * self.shards)

    def push_all(self, values: Mapping[Key, Any]) -> None:
        """Send each shard its rows of the gradients by key; a step is complete when all trainers have pushed.

        A value may be a list with an array of each worker, which are summed. Every shard gets a message, even without
        rows. Raises StoreError for unknown keys, shapes that differ, or if optimizer options changed since
        `set_optimizer`.
        """
        if self.updater is not None and self.updater.settings != self.settings:
            raise StoreError("The optimizer's options have changed, which the shards do not know; call set_optimizer.")
        pieces: list[dict[Key, Any]] = [{} for _ in range(self.shards)]
        for key, pushed in values.items():
            for own, piece in zip(
                pieces, partition.cut(self._sum_pushed(key, pushed), self._layout(key).partition), strict=True
            ):
                if piece is not None:
                    own[key] = piece
        contents = [Content({"names": names}, arrays) for names, arrays in map(pack_values, pieces)]
        self.after(self.step - self.lag, "push", contents, step=self.step + 1)
        self.step += 1

    def pull(self, key: Key, out: Any = None) -> Any:
        """Return the whole value of the key from all shards; with `out`, overwrite that array and return it."""
        value = self._pull_values({key: None}, current=False)[key]
        return value if out is None else formats.assign(out, value)

    def row_sparse_pull(self, key: Key, ids: ArrayLike) -> RowSparse:
        """Return the rows `ids` (integers, any order, repeats count once) of the key's value.

        StoreError for an unknown key, ids out of range, or a value without rows.
        """
        if not (shape := self._layout(key).shape):
            raise StoreError(f"The value of {key!r} has no rows; call pull({key!r}).")
        try:
            numbers = row_numbers(np.asarray(ids).reshape(-1), shape[0]).copy()
        except formats.FormatError as error:
            raise StoreError(f"row_sparse_pull of {key!r}: {error}") from None
        return self._pull_values({key: numbers}, current=False)[key]

    def pull_into(self, out: Mapping[Key, Any], rows: Rows) -> None:
        """Overwrite each `out[key]` by the current value, or its rows `rows[key]` (int64, sorted; None for all).

        One message to each shard for all keys; deferred updates of these rows are applied first.
        """
        for key, value in self._pull_values(rows, current=True).items():
            if rows[key] is None:
                formats.assign(out[key], value)
            else:
                put_rows(out[key], value)

    # The optimizer and the state

    def set_optimizer(self, updater: Updater) -> None:
        """Let each shard make a new optimizer with the settings of `updater`, at step 0; `updater` is not changed.

        StoreError if it is no Updater, or if lazily generated values forbid it.
        """
        if not isinstance(updater, Updater):
            raise StoreError(f"An optimizer is an optimizers.Updater; a {type(updater).__name__} came.")
        partition.check_lazy(updater, self.drawn)
        self.updater, self.settings = updater, updater.settings
        self._do_once("optimizer", settings=self.settings)

    def catch_up(self, rows: Rows | None = None) -> None:
        """Apply deferred updates of the rows by key (int64; None for all rows, or of all keys) on their shards."""
        everything = [Content({"names": None}, [])] * self.shards
        contents = everything if rows is None else self._request_contents(rows, self._cuts(rows))
        self.number += 1
        self.after(self.step, "catch_up", contents, number=self.number, step=self.step)

    def state_dict(self) -> dict[str, Any]:
        """Return the state {name: array} that a `LocalStore` would have after the same steps, with all rows."""
        replies = self.after(self.step, "state", step=self.step)
        return checkpoints.joined({shard: _with_shapes(reply) for shard, reply in replies.items()}, self._partitions)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replace the values and optimizer states of all shards by `state`, as `state_dict` gives it; a new generation.

        All trainers call it. StoreError if it does not fit the optimizer.
        """
        checked = LocalStore()
        if self.settings is not None:
            checked.set_optimizer(Updater.from_settings(self.settings))
        checked.load_state_dict(state)
        self.held, self.drawn = {}, {}
        for name in (name for name in state if name.startswith(VALUE)):
            self._hold(key_of(name[len(VALUE) :]), state[name])
        self.begin([_content_with_shapes(own) for own in checkpoints.cut(state, self._partitions, self.shards)])

    def save_shards(self, folder: str | os.PathLike, about: Mapping[str, Any] | None = None) -> None:
        """Let each shard write its file into a folder that all processes see, then write the manifest.

        All trainers call it after the same step; only trainer 0 acts. `about`, plain JSON values, is what `load_shards`
        returns. StoreError if a file cannot be written, as on a full disk; the checkpoint before stands then.
        """
        if self.trainer:
            return
        folder = Path(folder).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        prefix = f"step-{self.step}-{uuid.uuid4().hex[:12]}"
        self.number += 1
        drawn = [[key, one.about] for key, one in self.drawn.items()]
        said = Manifest(prefix, self.shards, self.spread, _values_of(self), self.settings, dict(about or {}), drawn)
        try:
            self.after(self.step, "save", number=self.number, step=self.step, path=str(folder / prefix))
            checkpoints.write(folder, said)
        except (StoreError, OSError) as error:
            checkpoints.remove(folder, prefix)
            if isinstance(error, WITHOUT_ANSWER):
                raise
            stands = "The one before stands" if (folder / checkpoints.MANIFEST).exists() else "There is none before it"
            raise StoreError(f"Step {self.step} could not be saved in {folder}: {error}. {stands}.") from None

    def load_shards(self, folder: str | os.PathLike, generation: int | None = None) -> dict[str, Any]:
        """Restore all shards from a checkpoint as a new generation; return its `about`.

        All trainers call it, new ones included. Without an optimizer that of the checkpoint is set. If some may join
        after others have loaded, all name the same `generation`, which is 1 on new shards. A checkpoint of other values
        than the store has, or of another optimizer, is a StoreError.
        """
        manifest = checkpoints.read(folder)
        _check_same(self, folder, manifest)
        before = self.updater, self.settings
        if self.settings is None and manifest.settings is not None:
            self.updater = Updater.from_settings(manifest.settings)
            self.settings = self.updater.settings
        saved = {"folder": str(Path(folder).resolve()), "spread": self.spread}
        try:
            self.begin([Content({}, [])] * self.shards, generation, saved=saved)
        except StoreError:
            self.updater, self.settings = before
            raise
        partitions = manifest.partitions(self.shards, self.spread)
        shapes = {key: (tuple(shape), np.dtype(dtype)) for key, shape, dtype in manifest.values}
        self.held = {key: Held(*shapes[key], partitions[key]) for key in partitions}
        self.drawn = {key: LazyRandomRows.of(said) for key, said in manifest.drawn}
        return dict(manifest.about)

    def begin(self, contents: list[Content], generation: int | None = None, **about: Any) -> None:
        """Begin a generation, by default the next one, at step 0; trainer 0 sends the shards their `contents`."""
        self.step, self.settled = 0, 0
        self.channel.generation = self.channel.generation + 1 if generation is None else generation
        if not self.trainer:
            self.channel.ask("load", contents, settings=self.settings, **about)

    # What is sent

    @property
    def _partitions(self) -> dict[Key, Partition]:
        """Partition of the rows of each key, a new dict."""
        return {key: held.partition for key, held in self.held.items()}

    def _hold(self, key: Key, value: Any) -> None:
        """Record shape, dtype and partition of a key's value; StoreError if its first axis is empty."""
        rows = value.shape[0] if value.ndim else 1
        if not rows:
            raise StoreError(f"The value of {key!r} has the shape {value.shape}; shards share 1 row or more.")
        self.held[key] = Held(tuple(value.shape), np.dtype(value.dtype), Partition(rows, self.shards, self.spread))

    def _layout(self, key: Key) -> Held:
        """Return the shape, dtype and partition of a key; StoreError, with the nearest key, if it is unknown."""
        if key not in self.held:
            raise StoreError(f"{unknown_name('key', key, self.held)} Call init({key!r}, value) first.")
        return self.held[key]

    def _do_once(self, kind: str, contents: list[Content] | None = None, **about: Any) -> None:
        """Send each shard the message `kind` with its `contents`; only trainer 0 does, others return at once.

        The message has a new number, so that it is executed once if it is sent again.
        """
        if not self.trainer:
            self.number += 1
            self.channel.ask(kind, contents, number=self.number, **about)

    def _sum_pushed(self, key: Key, pushed: Any) -> Any:
        """Return the sum of the arrays pushed to a key: one array, or a list with one of each worker.

        StoreError if there are none, or shape or dtype do not fit the value.
        """
        held, arrays = self._layout(key), list(pushed) if isinstance(pushed, list | tuple) else [pushed]
        if not arrays:
            raise StoreError(f"Nothing was pushed to {key!r}; push an array, or a list with one of each worker.")
        arrays = [computed(admitted(key, array)) for array in arrays]
        for array in arrays:
            check_pushed(key, array, held)
        return arrays[0] if len(arrays) == 1 else added(arrays)

    def after(self, done: int, kind: str, contents: list[Content] | None = None, **about: Any) -> dict[int, Message]:
        """Send a message `kind` that shards answer when step `done` is done; return the replies by shard.

        `contents` are the shards' own parts, in order. If the norm of all gradients is clipped, that step needs the
        sums of squares of all shards, which are sent along once; `settled` is the largest `done` so far.
        """
        clips = self.updater is not None and self.updater.clip_global_norm is not None
        if clips and done > self.settled:
            about["total"] = {"step": done, "squares": self._squares(done)}
        replies = self.channel.ask(kind, contents, **about)
        self.settled = max(self.settled, done)
        return replies

    def _squares(self, step: int) -> dict[str, float]:
        """Return {parameter: sum of squares of its gradient} of a step over all shards, added in their order.

        The order is fixed so that all trainers get the same bits.
        """
        replies = self.channel.ask("squares", step=step).values()
        own = [reply.about["squares"] for reply in replies]
        names = [name for name in map(name_of, self.held) if any(name in squares for squares in own)]
        return {name: sum(squares[name] for squares in own if name in squares) for name in names}

    def _cuts(self, rows: Rows) -> dict[Key, list[Cut]]:
        """Return {key: the requested row indices by shard}; keys whose rows are None (all) are left out."""
        return {key: self._layout(key).partition.cut(numbers) for key, numbers in rows.items() if numbers is not None}

    def _request_contents(self, rows: Rows, cuts: Mapping[Key, list[Cut]]) -> list[Content]:
        """Return the contents of the messages that request `rows`, one for each shard, from their `cuts`.

        A shard is asked for all its rows of a key, or for local indices; keys of which it has no row are left out.
        """
        contents = [Content({"names": []}, []) for _ in range(self.shards)]
        for key in rows:
            for shard, (about, arrays) in enumerate(contents):
                if count := self._layout(key).partition.count(shard):
                    about["names"].append([key, "rows" if key in cuts else "all"])
                    arrays += [narrow_indices(cuts[key][shard].rows, count)] if key in cuts else []
        return contents

    def _pull_values(self, rows: Rows, current: bool) -> dict[Key, Any]:
        """Return {key: value} from the shards: an array for rows None, else a RowSparse of the rows (int64, sorted).

        `current` applies deferred updates first. Counts the staleness of the reply.
        """
        cuts = self._cuts(rows)
        wanted = self._request_contents(rows, cuts)
        replies = self.after(self.step - self.lag, "pull", wanted, step=self.step, current=current)
        self.staleness[self.step - min(reply.about["step"] for reply in replies.values())] += 1
        came = {shard: self._unpack_reply(shard, reply) for shard, reply in replies.items()}
        return {
            key: partition.joined(
                {shard: own[key] for shard, own in came.items() if key in own}, self.held[key].partition
            )
            if numbers is None
            else self._put(key, numbers, cuts[key], came)
            for key, numbers in rows.items()
        }

    def _unpack_reply(self, shard: int, reply: Message) -> dict[Key, Any]:
        """Return {key: values} of a shard's reply to a pull, with the shapes of its part."""
        shapes = {key: self.held[key].part_shape(shard) for key, _ in reply.about["names"]}
        return unpack_values(reply.about["names"], reply.arrays, shapes)

    def _put(self, key: Key, numbers: np.ndarray, cuts: list[Cut], came: Mapping[int, Mapping[Key, Any]]) -> RowSparse:
        """Return the RowSparse of rows `numbers` (int64, sorted), assembled from the values that each shard sent.

        `cuts` has the positions of each shard's rows among them; `came` the values by shard and key.
        """
        held = self.held[key]
        values = np.empty((len(numbers), *held.shape[1:]), held.dtype)
        for shard, own in came.items():
            if key in own:
                values[cuts[shard].at] = own[key]
        return RowSparse.assemble(values, numbers, held.shape)


def _content_with_shapes(values: Mapping[Any, Any]) -> Content:
    """Return the content of a message with values by key and their shapes, for a side that does not know these."""
    names, arrays = pack_values(values)
    return Content({"names": names, "shapes": [list(value.shape) for value in values.values()]}, arrays)


def _with_shapes(message: Message) -> dict[Any, Any]:
    """Return {name: array} of a message that carries the shapes of its values."""
    names = message.about["names"]
    shapes = {key: tuple(shape) for (key, _), shape in zip(names, message.about["shapes"], strict=True)}
    return unpack_values(names, message.arrays, shapes)


def _values_of(store: ShardedStore) -> list[list[Any]]:
    """Return [key, shape, dtype name] of each value of the store, as a manifest lists them."""
    return [[key, list(held.shape), held.dtype.name] for key, held in store.held.items()]


def _check_same(store: ShardedStore, folder: str | os.PathLike, manifest: Manifest) -> None:
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
