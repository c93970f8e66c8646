"""Data sets by name: made, or read from the cache; what they are besides their arrays; and their mini-batches."""

from pathlib import Path
from typing import Any

from workbench.data import cache as _cache
from workbench.data.batches.in_memory import Batches
from workbench.data.cache import Description
from workbench.data.contract import get, merge_classes_like, parameters_like
from workbench.data.dataset.record import Dataset, StoredRows
from workbench.data.shards.batches import StoredBatches


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


def describe(name: str, **parameters: Any) -> Description:
    """Return labels and facts of the data set of that name and parameters; of one in the cache no array is read.

    It is made, and kept in the cache, where it is not there. `DataError` as `load`.
    """
    source = get(name)
    return _cache.describe(source, source.complete(parameters))


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
