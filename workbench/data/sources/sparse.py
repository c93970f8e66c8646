"""Folders of stored rows, `X.sparse`, that `data.convert` wrote: they may be larger than memory."""

import os
from pathlib import Path

from workbench.data.contract import Source, register
from workbench.data.dataset.record import Dataset
from workbench.data.stored.folder import Folder
from workbench.data.stored.meta import META

LICENCE = "that of the data converted"


def make(path: str | os.PathLike, whole: bool = False, verify: bool = False) -> Dataset:
    """Return the data set that was converted into the folder `path`.

    Its rows are read as they are trained on, by `StoredBatches`; in memory are its labels, up to 8 bytes a row. With
    `whole` all is loaded, as of any other set, and can then be thinned, held dense or given fewer features. Each part
    of a file is compared with its checksum when it is first read; with `verify` all are, before. Raises DataError for a
    folder that is incomplete or damaged, or of another version.
    """
    folder = Folder(Path(path))
    if verify:
        for array in folder.arrays.values():
            array.check()
    about, rows, stored = folder.meta, folder.meta.shape[0], folder.rows()
    return Dataset(
        name=about.name,
        x=stored.read(0, rows) if whole else stored,
        y=folder.arrays["y"].read(0, rows),
        labels=about.labels,
        source=about.source,
        licence=about.licence,
        groups=folder.arrays["groups"].read(0, rows) if "groups" in folder.arrays else None,
        facts=about.facts,
    )


def _files(path: str | os.PathLike, **rest: object) -> tuple[Path]:
    """Return the path of `meta.json`, whose checksums change with any file of the folder."""
    return (Path(path) / META,)


register(Source("sparse", make, "a folder of yours", LICENCE, _files, is_cached=False, takes_folder=True))
