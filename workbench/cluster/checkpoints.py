"""Checkpoints of a sharded store: a file a shard, which it writes itself, and a manifest, which is written last.

So nothing ever holds all rows, and a folder is a checkpoint if and only if it has its manifest: `manifest.json` names
the files of the newest one that is whole. Another number of shards goes on from it: each reads the files that may have
rows of its own, with one spread those next to it alone. All processes see the folder by the same path.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

from workbench import formats
from workbench.cluster import states
from workbench.cluster.messages import DTYPES
from workbench.cluster.partition import Move, Partition
from workbench.json_text import is_whole, parsed
from workbench.kvstore import VALUE, Drawn, Key, StoreError

MANIFEST = "manifest.json"
KIND = "sparse-workbench shards"
VERSION = 1
PREFIX = re.compile(r"step-\d+-\w+")


@final
@dataclass(frozen=True)
class Manifest:
    """Content of a checkpoint: `values` are key, shape and dtype of each; files of the shards begin with `prefix`.

    `settings` are those of the optimizer, None without one; `about` is what the training says of itself. `drawn` has
    key and `Drawn.about` of values whose rows are drawn when first touched; files hold those that were.
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
        """Partitions of its values among so many shards."""
        return {key: Partition(shape[0] if shape else 1, shards, spread) for key, shape, _ in self.values}


def file_of(prefix: str | os.PathLike, shard: int) -> Path:
    """The file of one shard."""
    return Path(f"{prefix}.shard-{shard}.npz")


def write(folder: Path, manifest: Manifest) -> None:
    """Make the files that the manifest names the checkpoint, and remove those of the one before.

    A process that was halted and goes on after others did its work may find its files removed: it changes nothing.
    """
    files = [file_of(folder / manifest.prefix, shard) for shard in range(manifest.shards)]
    if missing := [path for path in files if not path.exists()]:
        raise StoreError(f"{missing[0]} was written and is gone: another training saves into {folder}, too.")
    beside = folder / f".{MANIFEST}.{os.getpid()}"
    try:
        with open(beside, "w", encoding="utf-8") as file:
            json.dump(asdict(manifest), file, indent=1)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    os.replace(beside, folder / MANIFEST)
    for path in folder.glob("step-*.shard-*.npz"):
        if not path.name.startswith(f"{manifest.prefix}."):
            path.unlink(missing_ok=True)


def remove(folder: Path, prefix: str) -> None:
    """Remove the files of shards of a checkpoint that got no manifest."""
    for path in folder.glob(f"{prefix}.shard-*.npz"):
        path.unlink(missing_ok=True)


def read(folder: str | os.PathLike) -> Manifest:
    """The manifest of a checkpoint; `StoreError` where there is none, or it says what none says."""
    path = Path(folder) / MANIFEST
    try:
        said = parsed(path.read_bytes())
    except FileNotFoundError:
        raise StoreError(f"{folder} holds no checkpoint: there is no {MANIFEST}, which is written last.") from None
    except ValueError as error:
        raise StoreError(f"{path} is damaged: {error}.") from None
    if not isinstance(said, dict) or (said.get("kind"), said.get("version")) != (KIND, VERSION):
        raise StoreError(f"{path} is no manifest of version {VERSION} of the shards of a store.")
    try:
        manifest = Manifest(**said)
    except TypeError as error:
        raise StoreError(f"{path} is no manifest: {error}.") from None
    if not (is_whole(manifest.shards, 1) and isinstance(manifest.prefix, str) and PREFIX.fullmatch(manifest.prefix)):
        raise StoreError(f"{path} names {manifest.shards!r:.40} shards, files {manifest.prefix!r:.40}; there are none.")
    _check_values(path, manifest)
    return manifest


def _check_values(path: Path, manifest: Manifest) -> None:
    try:
        for key, shape, dtype in manifest.values:
            if dtype not in DTYPES or not isinstance(key, int | str) or not all(map(is_whole, shape)):
                raise ValueError(f"{key!r:.40} of shape {shape!r:.40}, {dtype!r:.40}")
        for _, about in manifest.drawn:
            Drawn.of(about)
        manifest.partitions(manifest.shards, manifest.spread)
    except (ValueError, TypeError, LookupError) as error:
        raise StoreError(f"{path} lists values that are none: {error}.") from None


def state_of(saved: Mapping[str, Any], shard: int, shards: int) -> states.State:
    """The state of one of so many shards, of the checkpoint in `saved["folder"]`, rows as `saved["spread"]` says."""
    folder = Path(saved["folder"])
    manifest = read(folder)
    old = manifest.partitions(manifest.shards, manifest.spread)
    new = manifest.partitions(shards, saved["spread"])
    moves = {key: Move(old[key], new[key], shard) for key in old if new[key].count(shard)}
    needed = [one for one in range(manifest.shards) if any(move.needs(one) for move in moves.values())]
    loaded = {one: _loaded(file_of(folder / manifest.prefix, one), one, manifest, old) for one in needed}
    return states.joined(loaded, moves)


def _loaded(file: Path, shard: int, manifest: Manifest, partitions: Mapping[Key, Partition]) -> states.State:
    """The state in the file of a shard; `StoreError` where it is missing, damaged, or of another store."""
    try:
        state = formats.load(file)
    except FileNotFoundError:
        raise StoreError(f"{file} is part of the checkpoint and is not there.") from None
    for key, shape, dtype in manifest.values:
        if not (count := partitions[key].count(shard)):
            continue
        held, wanted = state.get(f"{VALUE}{json.dumps(key)}"), (count, *shape[1:]) if shape else ()
        if held is None or (held.shape, held.dtype.name) != (wanted, dtype):
            found = "nothing" if held is None else f"{held.dtype} {held.shape}"
            raise StoreError(
                f"{file} is of another store: of {key!r} it has {found}; {MANIFEST} says {dtype} {wanted}."
            )
    return state
