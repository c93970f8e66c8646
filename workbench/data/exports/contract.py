"""The Export record, how a data set is written for other programs, and its registry."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernels.registry import Registry
from workbench.data import contract
from workbench.data.dataset.record import Dataset, RowBlock, StoredRows
from workbench.data.errors import DataError, import_optional
from workbench.data.shards.converting import blocks_of


@dataclass(frozen=True)
class Export:
    """One entry: `write(dataset, path)` writes a new file, or several that begin with its name.

    `package` is what must be installed, with the `extra` of the project that brings it; empty if nothing must.
    """

    name: str
    write: Callable[[Dataset, Path], None]
    what: str
    package: str = ""
    extra: str = ""


_exports: Registry[Export] = Registry("export format", ("workbench.data.exports",), DataError, is_named_by_files=True)
register, names, get = _exports.register, _exports.names, _exports.get


def export(dataset: Dataset | str | os.PathLike, path: str | os.PathLike, to: str) -> None:
    """Write a data set, or a folder of shards, as the kind of file `to`, such as svmlight, for other programs.

    Stored rows are read block by block where the kind allows. Labels that are classes are written by name where the
    file can hold text. Refused (`DataError`): an unknown kind, with those there are; a package that is not installed,
    with the line that installs it; a file that exists; a disk that is full.
    """
    kind, path = get(to), Path(path)
    if kind.package:
        import_optional(kind.package, kind.extra, f"The export to {kind.name}")
    whole = dataset if isinstance(dataset, Dataset) else contract.get("sparse").make(dataset)
    if path.exists():
        raise DataError(f"There is already {path}; remove it, or choose another name.")
    beside = path.with_name(f".{path.name}")
    try:
        kind.write(whole, beside)
        for written in sorted(path.parent.glob(f"{beside.name}*")):
            written.rename(path.with_name(written.name[1:]))
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        for left in path.parent.glob(f"{beside.name}*"):
            left.unlink()


def blocks(dataset: Dataset) -> Iterator[RowBlock]:
    """Yield the rows, block by block."""
    for block in blocks_of(dataset).blocks:
        yield RowBlock(*block)


def in_memory(dataset: Dataset) -> Any:
    """Return the matrix, csr, read whole where it is stored."""
    return dataset.x.read(0, dataset.rows) if isinstance(dataset.x, StoredRows) else dataset.x


def label_names(dataset: Dataset, y: np.ndarray) -> np.ndarray:
    """Return labels as text or numbers: of one class a row its name [rows], else `y` itself."""
    return np.array(dataset.classes)[y] if dataset.kind == "classes" else y
