"""Parquet files that `data.export` wrote: a row a row, with lists of indices and values, a label, and a group."""

import json
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from workbench.data.contract import Source, register
from workbench.data.dataset.record import Dataset, RowBlock, RowBlocks, canonical
from workbench.data.errors import DataError, reader_option_advice
from workbench.data.files.reading import blocks_of_file, dataset_of, reading
from workbench.data.files.types import OWN_KEY
from workbench.data.labels import GUESSED, NONE, Wanted
from workbench.data.text.stacking import stack_with_labels
from workbench.formats.compressed import assemble

WHAT = "a Parquet file that was exported here"


def make(path: str | os.PathLike, wanted: Wanted = GUESSED) -> Dataset:
    """Return the data set of a Parquet file that `data.export` wrote, with its features, kind of labels and classes.

    `kind`, `positive`, `classes` and `unseen` say what labels mean, by default what the file says. Raises DataError for
    a missing or damaged file, another Parquet file, and if pyarrow is not installed.
    """
    with reading(path, WHAT):
        about, parts = _about(path), list(_blocks(path))
        x, labels = stack_with_labels(((part.x, part.labels) for part in parts), path)
        groups = np.concatenate([part.groups for part in parts]) if parts[0].groups is not None else None
        is_said = wanted.kind or wanted.classes is not None or wanted.positive is not None
        own = Wanted(kind=about["kind"], classes=about["classes"] or None)
        labels = np.zeros(x.shape[0]) if wanted.kind == NONE else labels
        return dataset_of(
            "parquet", x, labels, wanted if is_said else own, path, lambda row: f"{path}, row {row}", groups
        )


def blocks(path: str | os.PathLike, wanted: Wanted = GUESSED) -> RowBlocks:
    """Return the rows of the file in blocks, as they were written; label settings are not used here.

    Raises DataError as `make` does.
    """
    with reading(path, WHAT):
        return blocks_of_file("parquet", _blocks(path), path, _about(path)["features"])


def _about(path: str | os.PathLike) -> dict[str, Any]:
    """Return features, kind of labels and classes from the metadata of the file; DataError if it has none of them."""
    from pyarrow import parquet

    try:
        about = json.loads(parquet.read_schema(path).metadata[OWN_KEY])
        return {"features": int(about["features"]), "kind": str(about["kind"]), "classes": list(about["classes"])}
    except (KeyError, TypeError):
        raise DataError(
            f"{path} is a Parquet file that was not exported here; expected lists of indices and values.\n"
            f"{reader_option_advice(dataset='table', label='NAME')}"
        ) from None


def _blocks(path: str | os.PathLike) -> Iterator[RowBlock]:
    """Yield the rows of each row group with labels and groups; DataError if lists of a row differ in length."""
    from pyarrow import parquet

    features = _about(path)["features"]
    with reading(path, WHAT), parquet.ParquetFile(path) as file:
        for number in range(file.num_row_groups):
            table = file.read_row_group(number).combine_chunks()
            indices, values, label = (table[name].combine_chunks() for name in ("indices", "values", "label"))
            starts, ends = (np.asarray(lists.offsets, np.int64) for lists in (indices, values))
            if not np.array_equal(np.diff(starts), np.diff(ends)) or any(
                part.null_count for part in (indices, values, label)
            ):
                raise DataError(f"{path} is damaged: rows lack indices, values or labels.")
            columns, data = np.asarray(indices.flatten(), np.int64), np.asarray(values.flatten())
            x = canonical(assemble("csr", starts - starts[0], columns, data, (len(indices), features)))
            labels = np.asarray(label) if label.type.num_fields == 0 else np.stack(label.to_numpy(zero_copy_only=False))
            labels = labels.astype(np.str_) if labels.dtype == object else labels
            yield RowBlock(x, labels, np.asarray(table["group"]) if "group" in table.column_names else None)


register(Source("parquet", make, blocks=blocks))
