"""The state of a store (`Store.state_dict`), cut into that of each shard's store and joined again, bit for bit.

So a state that was saved of one number of shards, or of a `LocalStore`, goes on with another.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench import optimizers
from workbench.cluster import parts
from workbench.cluster.partition import Move, Partition
from workbench.formats import RowSparse
from workbench.json_text import parsed
from workbench.kvstore import OPTIMIZER, VALUE, Key, StoreError, name_of

State = dict[str, Any]
ABOUT = f"{OPTIMIZER}about"
SHARED = ("step", "dtype", "format", "base", "count", "way")
"""What is said of a parameter that is the same on every shard that has rows of it."""


def cut(state: Mapping[str, Any], partitions: Mapping[Key, Partition], shards: int) -> list[State]:
    """The state of each shard; a shard without rows of a key has nothing of it."""
    states: list[State] = [{} for _ in range(shards)]
    for key, partition in partitions.items():
        name = f"{VALUE}{json.dumps(key)}"
        _share(states, name, parts.cut(state[name], partition))
    if ABOUT in state:
        about = _about(state)
        for shard, own in enumerate(states):
            own[ABOUT] = _text(about | {"parameters": _local(about["parameters"], partitions, shard)})
        for key, partition in partitions.items():
            if (said := about["parameters"].get(name_of(key))) is not None:
                _cut_parameter(states, state, about["optimizer"], name_of(key), said, partition)
    return states


def joined(states: Mapping[int, State], partitions: Mapping[Key, Partition | Move]) -> State:
    """The state of the store whose shards have these, by number; of rows that move, that of the shard they move to."""
    state: State = {}
    for key, partition in partitions.items():
        name = f"{VALUE}{json.dumps(key)}"
        held = {shard: own[name] for shard, own in states.items() if name in own}
        if not held:
            raise StoreError(f"No shard has a value of {key!r}; the files are of another store.")
        state[name] = parts.joined(held, partition)
    abouts = {shard: _about(own) for shard, own in states.items() if ABOUT in own}
    if abouts:
        said = {}
        state[ABOUT] = np.empty(0, np.uint8)  # the first of the optimizer's arrays, as a `LocalStore` has it
        for key, partition in partitions.items():
            name = name_of(key)
            own = {shard: about["parameters"][name] for shard, about in abouts.items() if name in about["parameters"]}
            if own:
                said[name] = _joined_about(name, own, partition)
                optimizer = next(iter(abouts.values()))["optimizer"]
                state |= _joined_parameter({s: states[s] for s in own}, optimizer, name, own, partition)
        state[ABOUT] = _text(next(iter(abouts.values())) | {"parameters": said})
    return state


def _about(state: Mapping[str, Any]) -> dict[str, Any]:
    try:
        about = parsed(state[ABOUT].tobytes())
        return {key: about[key] for key in ("optimizer", "lazy", "parameters")}
    except (ValueError, TypeError, LookupError, AttributeError):
        raise StoreError(
            "The state's optimizer cannot be read: its array 'about' is none that a store saved."
        ) from None


def _text(about: Mapping[str, Any]) -> np.ndarray:
    return np.frombuffer(json.dumps(about).encode(), np.uint8)


def _shape(shape: list[int], rows: int) -> list[int]:
    """The shape of a part with so many rows."""
    return [rows, *shape[1:]] if shape else []


def _local(parameters: Mapping[str, Any], partitions: Mapping[Key, Partition], shard: int) -> dict[str, Any]:
    """Facts of the parameters that have rows on the shard."""
    counts = {name_of(key): partition.count(shard) for key, partition in partitions.items()}
    held = {name: said for name, said in parameters.items() if counts.get(name)}
    return {name: said | {"shape": _shape(said["shape"], counts[name])} for name, said in held.items()}


def _joined_about(name: str, own: Mapping[int, Mapping[str, Any]], partition: Partition | Move) -> dict[str, Any]:
    first = next(iter(own.values()))
    for shard, said in own.items():
        if wrong := [key for key in SHARED if said.get(key) != first.get(key)]:
            raise StoreError(f"Shard {shard} has {name} at another {wrong[0]} than others: {said.get(wrong[0])!r}.")
    return {**first, "shape": _shape(first["shape"], partition.rows)}


# The arrays of one parameter: states by row, of row_sparse ones rows and values; the last step of each row; a record


def _cut_parameter(
    states: list[State], state: Mapping[str, Any], optimizer: str, name: str, said: Mapping, partition: Partition
) -> None:
    prefix = f"{OPTIMIZER}{name}"
    for field in optimizers.get(optimizer).states:
        own = f"{prefix}/{field}"
        if said["format"] == "dense":
            _share(states, own, parts.cut(state[own], partition))
            continue
        values = state[f"{own}/values"]
        rows = RowSparse(values, state[f"{own}/indices"], (partition.rows, *values.shape[1:]))
        pieces = parts.cut(rows, partition)
        _share(states, f"{own}/values", [None if piece is None else piece.values for piece in pieces])
        _share(states, f"{own}/indices", [None if piece is None else piece.indices for piece in pieces])
    if said.get("way"):
        _share(states, f"{prefix}/last", parts.cut(state[f"{prefix}/last"], partition))
        for shard, own_state in enumerate(states):
            if partition.count(shard):
                own_state[f"{prefix}/record"] = state[f"{prefix}/record"]


def _joined_parameter(
    states: Mapping[int, State], optimizer: str, name: str, said: Mapping[int, Mapping], partition: Partition | Move
) -> State:
    prefix, first = f"{OPTIMIZER}{name}", next(iter(said))
    whole: State = {}
    for field in optimizers.get(optimizer).states:
        own = f"{prefix}/{field}"
        if said[first]["format"] == "dense":
            whole[own] = parts.joined({shard: state[own] for shard, state in states.items()}, partition)
            continue
        pieces = {
            shard: RowSparse.assemble(values, state[f"{own}/indices"], (partition.count(shard), *values.shape[1:]))
            for shard, state in states.items()
            for values in [state[f"{own}/values"]]
        }
        rows = parts.joined(pieces, partition)
        whole |= {f"{own}/values": rows.values, f"{own}/indices": rows.indices}
    if said[first].get("way"):
        last = {shard: state[f"{prefix}/last"] for shard, state in states.items()}
        whole[f"{prefix}/last"] = parts.joined(last, partition)
        whole[f"{prefix}/record"] = states[first][f"{prefix}/record"]
    return whole


def _share(states: list[State], name: str, pieces: list[Any]) -> None:
    for state, piece in zip(states, pieces, strict=True):
        if piece is not None:
            state[name] = piece
