"""A binsparse 0.1 matrix in HDF5: a JSON descriptor as attribute, and the arrays; labels and groups beside them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from workbench.data.dataset.record import Dataset, RowBlock
from workbench.data.exports.contract import Export, blocks, label_names, register


def write(dataset: Dataset, path: Path) -> None:
    """CSR in pointers_to_1, indices_1 and values, written block by block; `labels` and `groups` are an extension."""
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
    """Yield (name of the array, offset in it, values) for each part of each block of rows."""
    row = entry = 0
    yield "pointers_to_1", 0, np.zeros(1, np.int64)
    for block in rows:
        x = block.x
        yield "pointers_to_1", row + 1, x.indptr[1:].astype(np.int64) - int(x.indptr[0]) + entry
        yield "indices_1", entry, x.indices
        yield "values", entry, x.data
        row, entry = row + len(block.labels), entry + x.nnz


register(Export("binsparse", write, "HDF5 with a JSON descriptor, and labels next to it", "h5py", "exchange"))
