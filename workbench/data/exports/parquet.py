"""Parquet with a row a row: `indices` and `values` as lists, `label`, and `group` where rows have groups."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from workbench.data.dataset.record import Dataset, RowBlock
from workbench.data.exports.contract import Export, blocks, label_names, register


def write(dataset: Dataset, path: Path) -> None:
    """A row group for each block; the number of features is in the schema's metadata, under `sparse-workbench`."""
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
    """Return a pyarrow table of a block: lists of indices and values, label, and group if rows have groups."""
    import pyarrow as pa

    starts = pa.array((block.x.indptr - block.x.indptr[0]).astype(np.int64))
    columns = {
        "indices": pa.LargeListArray.from_arrays(starts, pa.array(np.ascontiguousarray(block.x.indices))),
        "values": pa.LargeListArray.from_arrays(starts, pa.array(np.ascontiguousarray(block.x.data))),
        "label": _labels(label_names(dataset, block.labels)),
    }
    if block.groups is not None:
        columns["group"] = pa.array(np.ascontiguousarray(block.groups))
    return pa.table(columns)


def _labels(labels: np.ndarray) -> Any:
    """Return labels [rows] or [rows, columns] as a pyarrow array, of fixed-size lists if 2-d."""
    import pyarrow as pa

    if labels.ndim == 1:
        return pa.array(labels)
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(labels).ravel()), labels.shape[1])


register(Export("parquet", write, "columns indices, values (lists), label, group", "pyarrow", "tables"))
