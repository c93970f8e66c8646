"""Matrix Market coordinate text, rows and columns counted from 1, and labels beside it by `numpy.save`."""

from pathlib import Path

import numpy as np

from workbench.data.dataset.record import Dataset
from workbench.data.exports.contract import Export, blocks, label_names, register


def write(dataset: Dataset, path: Path) -> None:
    """The matrix in `path`, and the labels, names of classes, in a file of that name with .labels.npy behind it."""
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
    with path.with_name(f"{path.name}.labels.npy").open("wb") as file:
        np.save(file, label_names(dataset, dataset.y), allow_pickle=False)


register(Export("matrix_market", write, "coordinate text, and labels next to it in .labels.npy"))
