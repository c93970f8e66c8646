"""Files that other programs read: `data.export(dataset, path, to="parquet")` and other kinds.

How to add a kind: a function `write_KIND(dataset, path)` and a `register(Export(...))` behind it.
"""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from kernels.registry import Registry
from workbench import atomic_files
from workbench.data import contract
from workbench.data.dataset.record import Dataset, RowBlock, StoredRows
from workbench.data.errors import DataError, import_optional
from workbench.data.stored.converting import blocks_of


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


_exports: Registry[Export] = Registry("export format", (), DataError)
register, names, get = _exports.register, _exports.names, _exports.get


def export(dataset: Dataset | str | os.PathLike, path: str | os.PathLike, to: str) -> None:
    """Write a data set, or a folder of rows, as a new file of the kind `to`, such as "svmlight", for other programs.

    Stored rows are read block by block where the kind allows. Labels that are classes are written by name where the
    file can hold text. Files are written under a temporary name and renamed at the end. Raises DataError for an unknown
    kind, a package that is not installed (with the install command), a file that exists, or a disk that is full.
    """
    kind, path = get(to), Path(path)
    if kind.package:
        import_optional(kind.package, kind.extra, f"The export to {kind.name}")
    whole = dataset if isinstance(dataset, Dataset) else contract.get("sparse").make(dataset)
    if path.exists():
        raise DataError(f"There is already {path}; remove it, or choose another name.")
    try:
        with atomic_files.temporary_folder(path) as folder:
            kind.write(whole, folder / path.name)
            for written in sorted(folder.iterdir(), reverse=True):  # the file itself last
                atomic_files.rename_new(written, path.with_name(written.name))
    except FileExistsError as error:
        raise DataError(f"There is already {error.filename}; remove it, or choose another name.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}.") from error


def blocks(dataset: Dataset) -> Iterator[RowBlock]:
    """Yield the rows of a data set in order, block by block; DataError if it has a graph."""
    for block in blocks_of(dataset).blocks:
        yield RowBlock(*block)


def in_memory(dataset: Dataset) -> Any:
    """Return the matrix of a data set as CSR in memory; stored rows are read whole."""
    return dataset.x.read(0, dataset.rows) if isinstance(dataset.x, StoredRows) else dataset.x


def label_names(dataset: Dataset, y: np.ndarray) -> np.ndarray:
    """Return the class name of each label, str [rows], if there is one class a row, else `y` itself."""
    return np.array(dataset.classes)[y] if dataset.kind == "classes" else y


# svmlight text, columns counted from 0: what `load("svmlight", path=..., zero_based=True, features=...)` reads.


def write_svmlight(dataset: Dataset, path: Path) -> None:
    """Write svmlight text to `path`, columns counted from 0, one row per line.

    The label is the number, the number that a class name stands for, or the class index; several class indices are
    joined by commas. Raises DataError for several numbers a row.
    """
    if dataset.kind == "numbers" and dataset.y.ndim == 2:
        raise DataError(
            f"{dataset.name} has {dataset.y.shape[1]} numbers a row, and a line of svmlight text one label."
        )
    values = dataset.labels.values if dataset.kind == "classes" else None
    with path.open("w", encoding="ascii") as file:
        for block in blocks(dataset):
            labels = block.labels if values is None else values[block.labels]
            texts = [  # several classes by their indices
                ",".join(map(str, np.flatnonzero(label))) if np.ndim(label) else f"{label:.17g}" for label in labels
            ]
            file.writelines(_svmlight_lines(block, texts))


def _svmlight_lines(block: RowBlock, labels: list[str]) -> list[str]:
    """Return the rows of a block as svmlight lines "label column:value ...", each with a line end."""
    x, starts = block.x, block.x.indptr.tolist()
    entries = [f" {column}:{value:.9g}" for column, value in zip(x.indices.tolist(), x.data.tolist(), strict=True)]
    return [
        f"{label}{''.join(entries[start:stop])}\n"
        for label, start, stop in zip(labels, starts[:-1], starts[1:], strict=True)
    ]


register(Export("svmlight", write_svmlight, "text, a line a row: label column:value ..."))


# A matrix saved by `scipy.sparse.save_npz` and its labels next to it by `numpy.save`: what `load("npz", ...)` reads.


def write_npz(dataset: Dataset, path: Path) -> None:
    """Write the matrix to `path` as `scipy.sparse.save_npz` does, uncompressed, and labels to `path`.labels.npy.

    Classes are written by name. Stored rows are read whole.
    """
    with path.open("wb") as file:
        scipy.sparse.save_npz(file, in_memory(dataset), compressed=False)
    _write_labels(dataset, path)


def _write_labels(dataset: Dataset, path: Path) -> None:
    """Write the labels, classes by name, next to `path`, as PATH.labels.npy."""
    with path.with_name(f"{path.name}.labels.npy").open("wb") as file:
        np.save(file, label_names(dataset, dataset.y), allow_pickle=False)


register(Export("npz", write_npz, "SciPy's archive of a matrix, and labels next to it in .labels.npy"))


# Matrix Market coordinate text, rows and columns counted from 1, and labels next to it by `numpy.save`.


def write_matrix_market(dataset: Dataset, path: Path) -> None:
    """Write the matrix to `path` as Matrix Market coordinate text, indices from 1, and labels to `path`.labels.npy.

    Classes are written by name.
    """
    before = 1
    with path.open("w", encoding="ascii") as file:
        file.write(
            f"%%MatrixMarket matrix coordinate real general\n{dataset.rows} {dataset.features} {dataset.x.nnz}\n"
        )
        for block in blocks(dataset):
            rows = np.repeat(np.arange(len(block.labels)) + before, np.diff(block.x.indptr)).tolist()
            entries = zip(rows, (block.x.indices.astype(np.int64) + 1).tolist(), block.x.data.tolist(), strict=True)
            file.writelines(f"{row} {column} {value:.9g}\n" for row, column, value in entries)
            before += len(block.labels)
    _write_labels(dataset, path)


register(Export("matrix_market", write_matrix_market, "coordinate text, and labels next to it in .labels.npy"))


# Parquet with a row a row: `indices` and `values` as lists, `label`, and `group` where rows have groups.


def write_parquet(dataset: Dataset, path: Path) -> None:
    """Write Parquet with a row per row: lists `indices` and `values`, `label`, and `group` if there are any.

    A row group is a block. Features, kind and classes are JSON in the schema metadata, under `sparse-workbench`.
    """
    import pyarrow.parquet

    about = {"features": dataset.features, "kind": dataset.kind, "classes": dataset.classes}
    writer: Any = None
    try:
        for block in blocks(dataset):
            table = _table(dataset, block).replace_schema_metadata({"sparse-workbench": json.dumps(about)})
            writer = writer or pyarrow.parquet.ParquetWriter(path, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()


def _table(dataset: Dataset, block: RowBlock) -> Any:
    """Return a pyarrow table of a block: lists of indices and values, label (by name), and group if any."""
    import pyarrow as pa

    starts = pa.array((block.x.indptr - block.x.indptr[0]).astype(np.int64))
    columns = {
        "indices": pa.LargeListArray.from_arrays(starts, pa.array(np.ascontiguousarray(block.x.indices))),
        "values": pa.LargeListArray.from_arrays(starts, pa.array(np.ascontiguousarray(block.x.data))),
        "label": _labels_of_arrow(label_names(dataset, block.labels)),
    }
    if block.groups is not None:
        columns["group"] = pa.array(np.ascontiguousarray(block.groups))
    return pa.table(columns)


def _labels_of_arrow(labels: np.ndarray) -> Any:
    """Return labels [rows] or [rows, columns] as a pyarrow array; 2-d ones as fixed-size lists."""
    import pyarrow as pa

    if labels.ndim == 1:
        return pa.array(labels)
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(labels).ravel()), labels.shape[1])


register(Export("parquet", write_parquet, "columns indices, values (lists), label, group"))


# A binsparse 0.1 matrix in HDF5: a JSON descriptor as attribute, and the arrays; labels and groups next to them.


def write_binsparse(dataset: Dataset, path: Path) -> None:
    """Write a binsparse 0.1 CSR matrix in HDF5 to `path`, block by block, with `labels` and `groups` as extra arrays.

    Needs h5py.
    """
    import h5py

    rows, nnz = dataset.rows, dataset.x.nnz
    values = str(dataset.x.dtype)
    descriptor = {
        "version": "0.1",
        "format": "CSR",
        "shape": [rows, dataset.features],
        "number_of_stored_values": nnz,
        "data_types": {"pointers_to_1": "int64", "indices_1": "int64", "values": values},
    }
    with h5py.File(path, "w") as file:
        file.attrs["binsparse"] = json.dumps({"binsparse": descriptor})
        sizes = {"pointers_to_1": (rows + 1, "int64"), "indices_1": (nnz, "int64"), "values": (nnz, values)}
        arrays = {name: file.create_dataset(name, (size,), dtype) for name, (size, dtype) in sizes.items()}
        for name, start, part in _parts(blocks(dataset)):
            arrays[name][start : start + len(part)] = part
        labels = label_names(dataset, dataset.y)
        file.create_dataset("labels", data=[str(label) for label in labels] if labels.dtype.kind == "U" else labels)
        if dataset.groups is not None:
            file.create_dataset("groups", data=dataset.groups)


def _parts(rows: Iterator[RowBlock]) -> Iterator[tuple[str, int, Any]]:
    """Yield (array name, offset in it, values) of the CSR arrays of each block, to be written to whole arrays."""
    row = entry = 0
    yield "pointers_to_1", 0, np.zeros(1, np.int64)
    for block in rows:
        x = block.x
        yield "pointers_to_1", row + 1, x.indptr[1:].astype(np.int64) - int(x.indptr[0]) + entry
        yield "indices_1", entry, x.indices
        yield "values", entry, x.data
        row, entry = row + len(block.labels), entry + x.nnz


register(Export("binsparse", write_binsparse, "HDF5 with a JSON descriptor, and labels next to it", "h5py", "exchange"))


# An .h5ad file of AnnData: X csr, labels and groups among the observations.


def write_anndata(dataset: Dataset, path: Path) -> None:
    """Write an .h5ad file: X whole, labels in obs["label"] or obsm["labels"], groups in obs["group"].

    Classes are categories by name. Needs anndata and pandas.
    """
    import anndata
    import pandas as pd

    observed = pd.DataFrame(index=_string_index(dataset.rows))
    several: dict[str, Any] = {}
    if dataset.y.ndim == 1:
        names = pd.Index(list(dataset.classes), dtype=object)
        observed["label"] = pd.Categorical.from_codes(dataset.y, names) if dataset.classes else dataset.y
    else:
        several["labels"] = dataset.y
    if dataset.groups is not None:
        observed["group"] = dataset.groups
    columns = pd.DataFrame(index=_string_index(dataset.features))
    made = anndata.AnnData(X=in_memory(dataset), obs=observed, var=columns, obsm=several)
    made.uns["labels"] = {"kind": dataset.kind, "classes": list(dataset.classes)}
    made.write_h5ad(path)


def _string_index(count: int) -> Any:
    """Return a pandas index "0", "1", ... of `count` Python strings, as AnnData requires."""
    import pandas as pd

    return pd.Index([str(number) for number in range(count)], dtype=object)


register(Export("anndata", write_anndata, "an .h5ad file, X csr, labels in obs", "anndata", "exchange"))
