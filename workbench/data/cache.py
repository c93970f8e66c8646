"""Made data sets on disk: plain `.npy` files and one small JSON file, so that loading one takes milliseconds.

An entry is a folder, named after the data set and a hash of its parameters, of the code that makes data sets, of the
content of the files that are read, and of the fingerprint of its source. It is written next to its place and then moved
there, so that it is whole or not there.
"""

import contextlib
import dataclasses
import functools
import hashlib
import json
import shutil
import warnings
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kernels import threads
from workbench import atomic_files
from workbench.data import content
from workbench.data.content import VARIABLE as VARIABLE
from workbench.data.content import cache_folder
from workbench.data.contract import Source, get, merge_classes_like, parameters_like
from workbench.data.dataset.record import Dataset
from workbench.data.errors import DataError
from workbench.data.labels import Labels
from workbench.formats.compressed import assemble
from workbench.heap import release_heap

META = "meta.json"
GRAPH_PARTS = ("indptr", "indices", "data")
PARTS = "parts"
"""Subfolder of the cache folder for first parts of files that were too large to be read whole."""


class Description(NamedTuple):
    """What a data set is besides its arrays, for whoever chooses a model: labels, facts, and whether it has a graph."""

    labels: Labels
    facts: Mapping[str, Any]
    has_graph: bool

    @property
    def task(self) -> str:
        """Task for which there is a usual model: "graph", "implicit", "fields", "binary", or the kind of the labels."""
        if self.has_graph:
            return "graph"
        for fact in ("implicit", "fields"):
            if self.facts.get(fact):
                return fact
        return "binary" if len(self.labels.classes) == 2 and self.labels.kind == "classes" else self.labels.kind


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
        dataset = make_data_set(source, complete)
    else:
        dataset = load_or_make(source, complete, None if cache is True else Path(cache))
    return dataset if like is None else merge_classes_like(dataset, like)


def describe(name: str, **parameters: Any) -> Description:
    """Return labels and facts of the data set `name` with these parameters; if it is cached, no array is read.

    Otherwise it is made, and cached if its source allows. Raises DataError as `load` does.
    """
    source = get(name)
    parameters = source.complete(parameters)
    if source.is_cached and (entry := _find_entry(source, parameters)) is not None:
        try:
            meta = json.loads((entry / META).read_text(encoding="utf-8"))
            return Description(Labels.of_json(meta["labels"]), meta["facts"], f"graph_{GRAPH_PARTS[0]}" in meta["sums"])
        except (OSError, ValueError, KeyError, TypeError):  # none, or damaged: `load_or_make` makes it again
            pass
    read = load_or_make(source, parameters) if source.is_cached else make_data_set(source, parameters)
    return Description(read.labels, read.facts, read.graph is not None)


def load_or_make(source: Source, parameters: dict[str, Any], where: Path | None = None) -> Dataset:
    """Return the data set from the cache folder `where` (None: the usual one), else make and store it.

    A damaged entry is replaced, with a warning; a folder that cannot be written gives a warning. Nothing is stored if a
    file has changed meanwhile. Raises DataError as the source does.
    """
    states = content.states_of(source.files(**parameters))
    entry = _entry(source, parameters, content.hash_of(states, where) if states else "", where)
    if entry.is_dir():
        try:
            return _read(entry)
        except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
            warnings.warn(f"The cached data set {entry} is damaged ({error}); it is made again.", stacklevel=3)
            shutil.rmtree(entry, ignore_errors=True)
    dataset = make_data_set(source, parameters)
    release_heap()  # of text, parts and compiling, before rows are split and trained on
    if content.first_changed_file(states, content.states_of(source.files(**parameters))):
        return dataset
    try:
        _write(entry, dataset)
    except OSError as error:
        warnings.warn(f"The data set could not be cached in {entry.parent} ({error}).", stacklevel=3)
    return dataset


def is_cached(name: str, **parameters: Any) -> bool:
    """Return whether the data set `name` with these parameters is in the cache, and its files are unchanged.

    Raises DataError for unknown names and parameters.
    """
    source = get(name)
    entry = _find_entry(source, source.complete(parameters)) if source.is_cached else None
    return entry is not None and entry.is_dir()


def make_data_set(source: Source, parameters: dict[str, Any]) -> Dataset:
    """Return the data set that the source makes with complete `parameters`.

    Raises DataError as the source does; one caused by a file that changed meanwhile says so.
    """
    states = content.states_of(source.files(**parameters))
    try:
        return source.make(**parameters)
    except DataError as error:
        if name := content.first_changed_file(states, content.states_of(source.files(**parameters))):
            raise DataError(f"{name} has changed while it was read; read it again when it is complete.") from error
        raise


def _find_entry(source: Source, parameters: dict[str, Any]) -> Path | None:
    """Return the cache folder of a data set, existing or not; None if the content hash of its files is unknown."""
    states = content.states_of(source.files(**parameters))
    stored = content.stored_hash(states) if states else ""
    return None if stored is None else _entry(source, parameters, stored, None)


def _entry(source: Source, parameters: dict[str, Any], stored: str, where: Path | None) -> Path:
    """Return the cache folder of a data set, existing or not; `stored` is the content hash of its files."""
    return cache_folder(where) / f"{source.name}-{_key(source, parameters, stored)}"


def clear(where: str | Path | None = None) -> int:
    """Delete all cached data sets, file parts and content hashes in the cache folder, nothing else.

    Return the bytes freed.
    """
    freed = 0
    for meta in cache_folder(where).glob(f"*/{META}"):
        freed += sum(file.stat().st_size for file in meta.parent.iterdir())
        shutil.rmtree(meta.parent)
    for part in (cache_folder(where) / PARTS).glob("*/*"):
        freed += part.stat().st_size if part.is_file() else 0
    shutil.rmtree(cache_folder(where) / PARTS, ignore_errors=True)
    for note in (cache_folder(where) / content.NOTES).glob("*.json"):
        freed += note.stat().st_size
        note.unlink()
    return freed


def _key(source: Source, parameters: dict[str, Any], stored: str) -> str:
    """Return 16 hexadecimal digits that identify source, parameters, file contents, code and NumPy version."""
    settings = json.dumps(parameters, sort_keys=True, default=str)
    parts = (source.name, settings, stored, source.fingerprint(**parameters), _code(), np.__version__)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


@functools.cache
def _code() -> str:
    """Return the SHA-256 of all Python files of this package, since a change may change what is made; cached."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _arrays(dataset: Dataset) -> dict[str, np.ndarray]:
    """Return the arrays of a data set by the names under which they are stored."""
    x = dataset.x
    arrays = {"indptr": x.indptr, "indices": x.indices, "data": x.data, "y": dataset.y}
    if dataset.groups is not None:
        arrays["groups"] = dataset.groups
    if dataset.graph is not None:
        arrays |= {f"graph_{name}": getattr(dataset.graph, name) for name in GRAPH_PARTS}
    return arrays


def _write(entry: Path, dataset: Dataset) -> None:
    """Write a data set to the cache folder `entry`, atomically: to a temporary folder that is renamed.

    An entry that another process wrote first is kept. Raises OSError if it cannot be written.
    """
    with contextlib.suppress(FileExistsError), atomic_files.replacing_folder(entry) as folder:
        arrays = _arrays(dataset)
        for name, array in arrays.items():
            np.save(folder / f"{name}.npy", array, allow_pickle=False)
        meta = {name: getattr(dataset, name) for name in ("name", "source", "licence", "facts")}
        meta |= {
            "labels": dataclasses.asdict(dataset.labels),
            "shape": dataset.x.shape,
            "sums": {name: _sum(array) for name, array in arrays.items()},
        }
        (folder / META).write_text(json.dumps(meta, default=dict), encoding="utf-8")
        folder.chmod(0o700)  # it has copies of what the user reads


def _read(entry: Path) -> Dataset:
    """Load a data set from a cache folder, arrays memory-mapped copy-on-write; ValueError if a checksum differs.

    OSError, KeyError or TypeError are raised for missing or damaged files.
    """
    meta = json.loads((entry / META).read_text(encoding="utf-8"))
    written: dict[str, int] = meta.pop("sums")
    arrays: dict[str, Any] = {
        name: np.asarray(np.load(entry / f"{name}.npy", mmap_mode="c" if written_sum else None))
        for name, written_sum in written.items()
    }
    for name, found in zip(arrays, _sums(list(arrays.values())), strict=True):
        if found != written[name]:
            raise ValueError(f"{name}.npy does not have the sum it was written with")
    shape = tuple(meta.pop("shape"))
    x = assemble("csr", arrays.pop("indptr"), arrays.pop("indices"), arrays.pop("data"), shape)
    indptr, indices, weights = (arrays.pop(f"graph_{name}", None) for name in GRAPH_PARTS)
    if indptr is not None:
        arrays["graph"] = assemble("csr", indptr, indices, weights, (shape[0], shape[0]))
    return Dataset(x=x, labels=Labels.of_json(meta.pop("labels")), **arrays, **meta)


BYTES_ON_THREADS = 1 << 24
"""Bytes of arrays from which on their checksums are made on several threads."""


def _sums(arrays: list[np.ndarray]) -> list[int]:
    """Return the checksum of each array, of large ones on several threads if this thread may use them."""
    count = min(threads.available_threads(), len(arrays))
    if count < 2 or sum(array.nbytes for array in arrays) < BYTES_ON_THREADS:
        return list(map(_sum, arrays))
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(_sum, arrays))


def _sum(array: np.ndarray) -> int:
    """Return the CRC-32 checksum of an array's bytes in C order; 0 if it is empty."""
    return zlib.crc32(np.ascontiguousarray(array).data.cast("B") if array.size else b"")
