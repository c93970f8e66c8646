"""Saving and loading of a sharded store, each shard its own rows. Methods of `ShardedStore`."""

import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.cluster import checkpoints
from workbench.cluster.channel import Content
from workbench.cluster.checkpoints import Manifest
from workbench.cluster.held import Held
from workbench.kvstore import Drawn
from workbench.optimizers import Updater

if TYPE_CHECKING:
    from workbench.cluster.sharded import ShardedStore


def save_shards(self: "ShardedStore", folder: str | os.PathLike, about: Mapping[str, Any] | None = None) -> None:
    """Let each shard write its file into a folder that all processes see, then the manifest (`checkpoints`).

    All trainers call it after the same step; trainer 0 has it done. `about`, plain values, is for `load_shards`.
    """
    if self.trainer:
        return
    folder = Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    prefix = f"step-{self.step}-{uuid.uuid4().hex[:12]}"
    self.number += 1
    self.after(self.step, "save", number=self.number, step=self.step, path=str(folder / prefix))
    values = [[key, held.shape, held.dtype.name] for key, held in self.held.items()]
    drawn = [[key, one.about] for key, one in self.drawn.items()]
    said = Manifest(prefix, self.shards, self.spread, values, self.settings, dict(about or {}), drawn)
    checkpoints.write(folder, said)


def load_shards(self: "ShardedStore", folder: str | os.PathLike, generation: int | None = None) -> dict[str, Any]:
    """Let all shards, as many as there are now, begin a generation with what was saved; `about` of it.

    All trainers call it, also those that were not there before. Without an optimizer that of the checkpoint is set.
    Where some may join after others have loaded, all name the same `generation`, which is 1 on new shards.
    """
    manifest = checkpoints.read(folder)
    if self.settings is None and manifest.settings is not None:
        self.updater = Updater.from_settings(manifest.settings)
        self.settings = self.updater.settings
    partitions = manifest.partitions(self.shards, self.spread)
    shapes = {key: (tuple(shape), np.dtype(dtype)) for key, shape, dtype in manifest.values}
    self.held = {key: Held(*shapes[key], partitions[key]) for key in partitions}
    self.drawn = {key: Drawn.of(said) for key, said in manifest.drawn}
    saved = {"folder": str(Path(folder).resolve()), "spread": self.spread}
    self.begin([Content({}, [])] * self.shards, generation, saved=saved)
    return dict(manifest.about)
