"""Data in memory on its way to the measured processes: written once as X.sparse, and mapped by each of them."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from workbench import data
from workbench.analysis import formatting
from workbench.api.inputs import say
from workbench.api.loading import Loaded
from workbench.sweeps import run_folder

FOLDER = "X.sparse"
HASH_BYTES = 4


def content_hash(dataset: data.Dataset) -> str:
    """Return a short hash of the matrix and labels of a data set in memory.

    >>> from workbench.api.loading import load
    >>> content_hash(load(([[1.0], [2.0]], [0, 1]))) == content_hash(load(([[1.0], [2.0]], [0, 1])))
    True
    """
    found = hashlib.blake2b(digest_size=HASH_BYTES)
    for array in (dataset.x.indptr, dataset.x.indices, dataset.x.data, dataset.y):
        found.update(f"{array.dtype.str}{array.shape}".encode())
        found.update(np.ascontiguousarray(array).data)
    found.update("\0".join((dataset.labels.kind, *dataset.labels.classes)).encode("utf-8", "surrogatepass"))
    return found.hexdigest()


def name_of(loaded: Loaded) -> str:
    """Name a run after its data: the file, the data set, or the content of what is in memory."""
    if loaded.settings:
        stem = Path(str(loaded.settings.get("path") or loaded.settings["dataset"])).name.partition(".")[0]
        return "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in stem).strip("_") or "data"
    return f"memory-{content_hash(loaded.dataset)}"


def settings_of(loaded: Loaded, folder: Path) -> dict[str, Any]:
    """Return the settings by which a measured process reads the data, of what is in memory once it is written to
    `folder`.
    """
    if loaded.settings:
        return dict(loaded.settings)
    return {"dataset": "sparse", "path": str((folder / FOLDER).resolve()), "reading": "whole=true"}


def write_once(loaded: Loaded, folder: Path) -> None:
    """Write what is in memory to `folder`, unless it is there; the disk space is stated.

    A folder that is there holds the same data, by its name, and is used again.
    """
    if loaded.settings:
        return
    place = folder / FOLDER
    if not place.exists():
        folder.mkdir(parents=True, exist_ok=True)
        data.convert(loaded.dataset, place, shuffle=None)
        size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
        say(f"X and y were written to {place} for the measured processes: {formatting.format_bytes(size)} of disk.")
    if not loaded.is_labelled:
        say("X has no labels: random ones are used. Times and memory are those of your data, loss and quality are not.")


def run_of(loaded: Loaded, prefix: str = "") -> Path:
    """Return the run folder that data in memory, or a file, has by default."""
    return run_folder.ROOT / f"{prefix}{name_of(loaded)}"
