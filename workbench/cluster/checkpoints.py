"""Checkpoints of a sharded store: one file per shard, written by the shard, and a manifest, written last.

So nothing ever holds all rows, and a folder is a checkpoint if and only if it has its manifest: `manifest.json` names
the files of the newest complete checkpoint. Another number of shards goes on from it: each reads the files that may
have its rows, with contiguous rows only neighbouring files. All processes see the folder by the same path.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from workbench import atomic_files, formats, optimizers
from workbench.cluster import partition as cluster_partition
from workbench.cluster.partition import Move, Partition
from workbench.formats import RowSparse
from workbench.json_text import Fields, check_document, is_object, is_optional, is_text, is_whole, parsed
from workbench.kvstore import OPTIMIZER, VALUE, Key, LazyRandomRows, StoreError, name_of

# The state of a store (`Store.state_dict`), cut into that of each shard's store and joined again, bit for bit.
#
# So a state that was saved of one number of shards, or of a `LocalStore`, goes on with another.


State = dict[str, Any]
ABOUT = f"{OPTIMIZER}about"
SHARED = ("step", "dtype", "format", "base", "count", "way")
"""What is said of a parameter that is the same on every shard that has rows of it."""


def cut(state: Mapping[str, Any], partitions: Mapping[Key, Partition], shards: int) -> list[State]:
    """Return the state {name: array} of each of `shards` shards, cut from a whole store's `state`.

    A shard without rows of a key has no entry for it. KeyError if a value is missing.
    """
    states: list[State] = [{} for _ in range(shards)]
    for key, partition in partitions.items():
        name = f"{VALUE}{json.dumps(key)}"
        _share(states, name, cluster_partition.cut(state[name], partition))
    if ABOUT in state:
        about = _about(state)
        for shard, own in enumerate(states):
            own[ABOUT] = _text(about | {"parameters": _local(about["parameters"], partitions, shard)})
        for key, partition in partitions.items():
            if (said := about["parameters"].get(name_of(key))) is not None:
                _cut_parameter(states, state, about["optimizer"], name_of(key), said, partition)
    return states


def joined(states: Mapping[int, State], partitions: Mapping[Key, Partition | Move]) -> State:
    """Return the whole state {name: array} from those of the shards by number; for moves, that of one new shard.

    StoreError if a value is missing or shards disagree on a parameter.
    """
    state: State = {}
    for key, partition in partitions.items():
        name = f"{VALUE}{json.dumps(key)}"
        stored = {shard: own[name] for shard, own in states.items() if name in own}
        if not stored:
            raise StoreError(f"No shard has a value of {key!r}; the files are of another store.")
        state[name] = cluster_partition.joined(stored, partition)
    abouts = {shard: _about(own) for shard, own in states.items() if ABOUT in own}
    if abouts:
        said = {}
        state[ABOUT] = np.empty(0, np.uint8)  # the first of the optimizer's arrays, as a `LocalStore` has it
        for key, partition in partitions.items():
            name = name_of(key)
            own = {shard: about["parameters"][name] for shard, about in abouts.items() if name in about["parameters"]}
            if own:
                said[name] = _join_about(name, own, partition)
                optimizer = next(iter(abouts.values()))["optimizer"]
                state |= _join_parameter({s: states[s] for s in own}, optimizer, name, own, partition)
        state[ABOUT] = _text(next(iter(abouts.values())) | {"parameters": said})
    return state


def _about(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return {"optimizer", "lazy", "parameters"} that a saved state describes; StoreError if unreadable."""
    try:
        about = parsed(state[ABOUT].tobytes())
        return {key: about[key] for key in ("optimizer", "lazy", "parameters")}
    except (ValueError, TypeError, LookupError, AttributeError):
        raise StoreError(
            "The state's optimizer cannot be read: its array 'about' is none that a store saved."
        ) from None


def _text(about: Mapping[str, Any]) -> np.ndarray:
    """Return a JSON description as an array, uint8 `[bytes]`, read-only."""
    return np.frombuffer(json.dumps(about).encode(), np.uint8)


def _shape(shape: list[int], rows: int) -> list[int]:
    """Return `shape` with its first axis replaced by `rows`; [] for a scalar."""
    return [rows, *shape[1:]] if shape else []


def _local(parameters: Mapping[str, Any], partitions: Mapping[Key, Partition], shard: int) -> dict[str, Any]:
    """Return the descriptions of the parameters that have rows on the shard, with the shape of its part."""
    counts = {name_of(key): partition.count(shard) for key, partition in partitions.items()}
    stored = {name: said for name, said in parameters.items() if counts.get(name)}
    return {name: said | {"shape": _shape(said["shape"], counts[name])} for name, said in stored.items()}


def _join_about(name: str, own: Mapping[int, Mapping[str, Any]], partition: Partition | Move) -> dict[str, Any]:
    """Return the description of the whole parameter `name` from `own`, those by shard; StoreError if they differ.

    The shape has the rows of `partition`.
    """
    first = next(iter(own.values()))
    for shard, said in own.items():
        if wrong := [key for key in SHARED if said.get(key) != first.get(key)]:
            raise StoreError(f"Shard {shard} has {name} at another {wrong[0]} than others: {said.get(wrong[0])!r}.")
    return {**first, "shape": _shape(first["shape"], partition.rows)}


# The arrays of one parameter: states by row, of row_sparse ones rows and values; the last step of each row; a record


def _cut_parameter(
    states: list[State], state: Mapping[str, Any], optimizer: str, name: str, said: Mapping, partition: Partition
) -> None:
    """Cut the optimizer states of a parameter by the partition and add them to `states`, in place.

    `said` is the parameter's description in the state; those updated lazily have steps by row ("last") and a record
    too.
    """
    prefix = f"{OPTIMIZER}{name}"
    for field in optimizers.get(optimizer).states:
        own = f"{prefix}/{field}"
        if said["format"] == "dense":
            _share(states, own, cluster_partition.cut(state[own], partition))
            continue
        values = state[f"{own}/values"]
        rows = RowSparse(values, state[f"{own}/indices"], (partition.rows, *values.shape[1:]))
        pieces = cluster_partition.cut(rows, partition)
        _share(states, f"{own}/values", [None if piece is None else piece.values for piece in pieces])
        _share(states, f"{own}/indices", [None if piece is None else piece.indices for piece in pieces])
    if said.get("way"):
        _share(states, f"{prefix}/last", cluster_partition.cut(state[f"{prefix}/last"], partition))
        for shard, own_state in enumerate(states):
            if partition.count(shard):
                own_state[f"{prefix}/record"] = state[f"{prefix}/record"]


def _join_parameter(
    states: Mapping[int, State], optimizer: str, name: str, said: Mapping[int, Mapping], partition: Partition | Move
) -> State:
    """Return {name: array} of the optimizer states of a parameter, joined from all shards.

    `said` has the descriptions by shard; the first decides format and deferred updates.
    """
    prefix, first = f"{OPTIMIZER}{name}", next(iter(said))
    whole: State = {}
    for field in optimizers.get(optimizer).states:
        own = f"{prefix}/{field}"
        if said[first]["format"] == "dense":
            whole[own] = cluster_partition.joined({shard: state[own] for shard, state in states.items()}, partition)
            continue
        pieces = {
            shard: RowSparse.assemble(values, state[f"{own}/indices"], (partition.count(shard), *values.shape[1:]))
            for shard, state in states.items()
            for values in [state[f"{own}/values"]]
        }
        rows = cluster_partition.joined(pieces, partition)
        whole |= {f"{own}/values": rows.values, f"{own}/indices": rows.indices}
    if said[first].get("way"):
        last = {shard: state[f"{prefix}/last"] for shard, state in states.items()}
        whole[f"{prefix}/last"] = cluster_partition.joined(last, partition)
        whole[f"{prefix}/record"] = states[first][f"{prefix}/record"]
    return whole


def _share(states: list[State], name: str, pieces: list[Any]) -> None:
    """Add a piece to each shard's state under `name`, in place; None is left out."""
    for state, piece in zip(states, pieces, strict=True):
        if piece is not None:
            state[name] = piece


DTYPES = ("float16", "float32", "float64", "int32", "int64", "uint8", "uint32")
MANIFEST = "manifest.json"
KIND = "sparse-workbench shards"
VERSION = 1
PREFIX = re.compile(r"step-\d+-\w+")
FIELDS: Fields = {
    "prefix": (lambda value: is_text(value) and PREFIX.fullmatch(value) is not None, "the prefix of its files"),
    "shards": (lambda value: is_whole(value, 1), "a whole number from 1"),
    "spread": (is_text, "how rows are divided"),
    "settings": (is_optional(is_object), "an object or null"),
    "about": (is_object, "an object"),
}
"""What a manifest says besides its values."""


@final
@dataclass(frozen=True)
class Manifest:
    """Contents of a checkpoint: key, shape and dtype of each value; files of the shards begin with `prefix`.

    `settings` are those of the optimizer, None without one; `about` is what the training says of itself. `drawn` has
    key and `LazyRandomRows.about` of values whose rows are drawn when first active; files hold only such rows.
    """

    prefix: str
    shards: int
    spread: str
    values: Sequence[Sequence[Any]]
    settings: Mapping[str, Any] | None
    about: Mapping[str, Any]
    drawn: Sequence[Sequence[Any]] = ()
    kind: str = KIND
    version: int = VERSION

    def partitions(self, shards: int, spread: str) -> dict[Key, Partition]:
        """Return {key: partition of its rows among `shards` shards by the method `spread`}; scalars count as a row."""
        return {key: Partition(shape[0] if shape else 1, shards, spread) for key, shape, _ in self.values}


def file_of(prefix: str | os.PathLike, shard: int) -> Path:
    """Return the path of a shard's file, PREFIX.shard-N.npz."""
    return Path(f"{prefix}.shard-{shard}.npz")


def write(folder: Path, manifest: Manifest) -> None:
    """Write the manifest atomically, which makes its files the checkpoint, and remove those of the one before.

    StoreError if a file is missing: a process that was halted and goes on after others did its work may find its files
    removed. OSError if the disk is full; the old manifest stays.
    """
    files = [file_of(folder / manifest.prefix, shard) for shard in range(manifest.shards)]
    if missing := [path for path in files if not path.exists()]:
        raise StoreError(f"{missing[0]} was written and is gone: another training saves into {folder}, too.")
    atomic_files.write(folder / MANIFEST, json.dumps(asdict(manifest), indent=1), durable=True)
    for path in folder.glob("step-*.shard-*.npz"):
        if not path.name.startswith(f"{manifest.prefix}."):
            path.unlink(missing_ok=True)


def remove(folder: Path, prefix: str) -> None:
    """Delete the shard files with this prefix, of a checkpoint that got no manifest."""
    for path in folder.glob(f"{prefix}.shard-*.npz"):
        path.unlink(missing_ok=True)


def read(folder: str | os.PathLike) -> Manifest:
    """Return the manifest of the checkpoint in a folder; StoreError if there is none, or it is damaged or invalid."""
    path = Path(folder) / MANIFEST
    try:
        said = parsed(path.read_bytes())
    except FileNotFoundError:
        raise StoreError(f"{folder} holds no checkpoint: there is no {MANIFEST}, which is written last.") from None
    except ValueError as error:
        raise StoreError(f"{path} is damaged: {error}.") from None
    try:
        manifest = Manifest(**check_document(said, KIND, VERSION, FIELDS))
        for key, shape, dtype in manifest.values:
            if dtype not in DTYPES or not isinstance(key, int | str) or not all(map(is_whole, shape)):
                raise ValueError(f"its value {key!r:.40} has the shape {shape!r:.40}, {dtype!r:.40}")
        for _, about in manifest.drawn:
            LazyRandomRows.of(about)
        manifest.partitions(manifest.shards, manifest.spread)
    except (ValueError, TypeError, LookupError) as error:
        raise StoreError(f"{path} is no manifest of the shards of a store: {error}.") from None
    return manifest


def state_of(saved: Mapping[str, Any], shard: int, shards: int) -> State:
    """Return the state of shard `shard` of `shards` from the checkpoint in the folder `saved["folder"]`.

    Reads only the files that have its rows; `saved["spread"]` is how rows are divided now. StoreError if a file is
    missing or of another store.
    """
    folder = Path(saved["folder"])
    manifest = read(folder)
    old = manifest.partitions(manifest.shards, manifest.spread)
    new = manifest.partitions(shards, saved["spread"])
    moves = {key: Move(old[key], new[key], shard) for key in old if new[key].count(shard)}
    needed = [one for one in range(manifest.shards) if any(move.needs(one) for move in moves.values())]
    loaded = {one: _load_shard(file_of(folder / manifest.prefix, one), one, manifest, old) for one in needed}
    return joined(loaded, moves)


def _load_shard(file: Path, shard: int, manifest: Manifest, partitions: Mapping[Key, Partition]) -> State:
    """Return the state {name: array} in the file of a shard; StoreError if it is missing or of another store.

    Its values must have the dtype of the manifest and the shape of the shard's part in `partitions`.
    """
    try:
        state = formats.load(file)
    except FileNotFoundError:
        raise StoreError(f"{file} is part of the checkpoint and is not there.") from None
    for key, shape, dtype in manifest.values:
        if not (count := partitions[key].count(shard)):
            continue
        stored, wanted = state.get(f"{VALUE}{json.dumps(key)}"), (count, *shape[1:]) if shape else ()
        if stored is None or (stored.shape, stored.dtype.name) != (wanted, dtype):
            found = "nothing" if stored is None else f"{stored.dtype} {stored.shape}"
            raise StoreError(
                f"{file} is of another store: of {key!r} it has {found}; {MANIFEST} says {dtype} {wanted}."
            )
    return state
