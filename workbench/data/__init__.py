"""Data sets, their transformations, and mini-batches.

`load(name, **parameters)` gives a `Dataset`: a CSR matrix, its labels, and where it comes from. Nothing is downloaded:
`stdlib` is the source text of the running Python, `uniform` and `power_law` are drawn from a seed, others read files of
yours, and `guess` says which one reads what; `guess_columns` says what the columns of a table are. `sparse` reads a
folder that `convert` wrote and that may be larger than memory. `Batches` cuts mini-batches from arrays;
`SvmlightBatches` and `StoredBatches` read them from files when needed, and `batches_of` takes what suits X.

What labels mean, classes, numbers or several classes a row, is said by `kind` or guessed from the file, and
`str(dataset.labels)` tells the guess; `targets` makes of them what a model is trained towards, `summary` says it in a
line. A held-out or later file is read `like` the first. `profile` counts what decides whether sparse formats pay.

Packages, each described in its `__init__.py`: `labels`, `dataset`, `batches`, `files`, `tables`, `text`, `shards`,
`sources`, `exports`, `profiles`.

How to add a data set: write one file in the folder `sources` that ends in `register(Source(...))`; `npz.py` is the one
to copy.

>>> train, test = split(load("uniform", rows=100, features=50, density=0.1, cache=False), held_out=0.2)
>>> train
Dataset uniform: 80 rows x 50 features, 5 entries a row, density 0.1, 2 classes
>>> [batch.x.shape for batch in Batches(train.x, train.y, rows=50).epoch(0)]
[(50, 50), (30, 50)]
"""

from pathlib import Path
from typing import Any

from workbench import aliases
from workbench.data import cache as _cache
from workbench.data.batches.feed import Batch, Completed, Feed
from workbench.data.batches.in_memory import Batches
from workbench.data.contract import Source, get, merge_classes_like, names, parameters_like, register, unavailable
from workbench.data.dataset.density import highest_density, with_density
from workbench.data.dataset.record import Dataset, StoredRows, row_lengths
from workbench.data.dataset.row_blocks import RowBlock, RowBlocks
from workbench.data.dataset.selection import (
    keep_features,
    keep_rows,
    merge_rare_classes,
    rows_between,
    shuffle_rows,
    split,
    take,
    with_positive,
)
from workbench.data.dataset.targets import natural_width, summary, targets, with_labels
from workbench.data.errors import DataError
from workbench.data.exports.contract import export
from workbench.data.files.types import guess
from workbench.data.labels.meaning import Labels
from workbench.data.profiles.profile import Profile, profile
from workbench.data.shards.batches import StoredBatches
from workbench.data.shards.converting import Progress, convert
from workbench.data.tables import guess as guess_columns
from workbench.data.text.svmlight_batches import SvmlightBatches

__all__ = [
    "Batch",
    "Batches",
    "Completed",
    "DataError",
    "Dataset",
    "Feed",
    "Labels",
    "Profile",
    "Progress",
    "RowBlock",
    "RowBlocks",
    "Source",
    "StoredBatches",
    "StoredRows",
    "SvmlightBatches",
    "batches_of",
    "convert",
    "export",
    "get",
    "guess",
    "guess_columns",
    "highest_density",
    "is_cached",
    "keep_features",
    "keep_rows",
    "load",
    "merge_rare_classes",
    "names",
    "natural_width",
    "profile",
    "register",
    "row_lengths",
    "rows_between",
    "shuffle_rows",
    "split",
    "summary",
    "take",
    "targets",
    "unavailable",
    "with_density",
    "with_labels",
    "with_positive",
]


def load(name: str, *, like: Dataset | None = None, cache: bool | str | Path = True, **parameters: Any) -> Dataset:
    """Return the data set of that name; `get(name).parameters` lists its parameters and their defaults.

    It is made once and kept on disk, in `cache.folder()` or in the folder given as `cache`; `cache=False` makes it
    anew. A file is read `like` another set, whose later or held-out part it is: with its features, kind of labels and
    classes. Unknown names, unknown parameters and unusable files are refused (`DataError`).
    """
    source = get(name)
    if like is not None:
        parameters = parameters_like(source, like, parameters)
    complete = source.complete(parameters)
    if cache is False or not source.is_cached:
        dataset = _cache.make_data_set(source, complete)
    else:
        dataset = _cache.load_or_make(source, complete, None if cache is True else Path(cache))
    return dataset if like is None else merge_classes_like(dataset, like)


def is_cached(name: str, **parameters: Any) -> bool:
    """Return whether the data set of that name and parameters is in the cache folder, and its files unchanged.

    `DataError` for unknown names and parameters, as `load`.
    """
    source = get(name)
    return source.is_cached and _cache.is_stored(source, source.complete(parameters))


def batches_of(x: Any, y: Any = None, rows: int = 256, **options: Any) -> Batches | StoredBatches:
    """Mini-batches of X, an array in memory or stored rows, with targets y; `options` as those of either."""
    kind = StoredBatches if isinstance(x, StoredRows) else Batches
    return kind(x, y, rows, **options)


def __getattr__(name: str) -> object:
    """Return what an old name stands for (`workbench.aliases`)."""
    return aliases.find(__name__, name)
