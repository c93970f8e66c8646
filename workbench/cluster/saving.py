"""Saving and loading of a sharded store, each shard its own rows. Methods of `ShardedStore`."""

import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.cluster import checkpoints
from workbench.cluster.channel import Content, GoneError, RolledBackError, TimedOutError
from workbench.cluster.checkpoints import Manifest
from workbench.cluster.partition import Held
from workbench.kvstore import LazyRandomRows, StoreError
from workbench.optimizers import Updater

if TYPE_CHECKING:
    from workbench.cluster.sharded import ShardedStore

WITHOUT_ANSWER = (TimedOutError, RolledBackError, GoneError)
"""Errors of a shard that is gone: what a training begins again after."""


def save_shards(self: "ShardedStore", folder: str | os.PathLike, about: Mapping[str, Any] | None = None) -> None:
    """Let each shard write its file into a folder that all processes see, then the manifest (`checkpoints`).

    All trainers call it after the same step; trainer 0 has it done. `about`, plain values, is for `load_shards`. Where
    a file cannot be written, as on a full disk, it is a `StoreError`, and the checkpoint before stands.
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


def _values_of(self: "ShardedStore") -> list[list[Any]]:
    """Key, shape and type of each value, as a manifest lists them."""
    return [[key, list(held.shape), held.dtype.name] for key, held in self.held.items()]


def load_shards(self: "ShardedStore", folder: str | os.PathLike, generation: int | None = None) -> dict[str, Any]:
    """Restore all shards from a checkpoint as a new generation; return its `about`.

    All trainers call it, new ones included. Without an optimizer that of the checkpoint is set.
    Where some may join after others have loaded, all name the same `generation`, which is 1 on new shards. A checkpoint
    of other values than the store has, or of another optimizer, is a `StoreError`.
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


def _check_same(self: "ShardedStore", folder: str | os.PathLike, manifest: Manifest) -> None:
    """Refuse a checkpoint of another model, or of another optimizer; a store without values takes any."""
    advice = "Go on with what was saved, or name another folder."
    own, saved = ({str(key): rest for key, *rest in values} for values in (_values_of(self), manifest.values))
    if own and (differing := [key for key in {**own, **saved} if own.get(key) != saved.get(key)]):
        key = differing[0]
        said = f"{key!r} is {_told(saved.get(key))} there and {_told(own.get(key))} here"
        raise StoreError(f"The checkpoint in {folder} is of another model: {said}. {advice}")
    if self.settings is not None and manifest.settings is not None:
        there, here = (settings.get("name") for settings in (manifest.settings, self.settings))
        if there != here:
            raise StoreError(f"The checkpoint in {folder} is of the optimizer {there}; this one is {here}. {advice}")


def _told(value: list[Any] | None) -> str:
    """Return shape and dtype of a value as text, "not" for None."""
    return "not" if value is None else f"{value[1]} {tuple(value[0])}"
