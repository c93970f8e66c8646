"""Folders of shards, `X.sparse`, that `data.convert` wrote: they may be larger than memory."""

import os
from pathlib import Path

import numpy as np

from workbench.data.contract import Source, register
from workbench.data.dataset.record import Dataset
from workbench.data.shards import manifest
from workbench.data.shards.reading import ShardRows, Shards

LICENCE = "that of the data converted"


def make(path: str | os.PathLike, whole: bool = False, verify: bool = False) -> Dataset:
    """Return the data set that was converted into the folder of shards `path`.

    Its rows are read as they are trained on, by `StoredBatches`; in memory are its labels, up to 8 bytes a row. With
    `whole` all is loaded, as of any other set, and can then be thinned, held dense or given fewer features. Every file
    is compared with its hash when it is first read; with `verify` all are, before. Raises DataError for a folder that
    is incomplete or from a newer version, and files that are missing, damaged, or of another size or type than its
    manifest says.
    """
    shards = Shards(Path(path))
    if verify:
        shards.verify()
    about, rows = shards.manifest, shards.manifest.shape[0]
    stored = ShardRows(shards, 0, rows, np.dtype(about.dtype))
    return Dataset(
        name=about.name,
        x=stored.read(0, rows) if whole else stored,
        y=shards.column("y", 0, rows),
        labels=about.labels,
        source=about.source,
        licence=about.licence,
        groups=shards.column("groups", 0, rows) if about.has_groups else None,
        facts=about.facts,
    )


def _files(path: str | os.PathLike, **rest: object) -> tuple[Path]:
    """Return the path of the manifest, which has a hash of every shard and so changes with any of them."""
    return (Path(path) / manifest.NAME,)  # which has a hash of every shard


register(Source("sparse", make, "a folder of yours", LICENCE, _files, is_cached=False, takes_folder=True))
