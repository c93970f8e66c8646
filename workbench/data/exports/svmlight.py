"""svmlight text, columns counted from 0: what `load("svmlight", path=..., zero_based=True, features=...)` reads."""

from pathlib import Path

import numpy as np

from workbench.data.dataset.record import Dataset, RowBlock
from workbench.data.errors import DataError
from workbench.data.exports.contract import Export, blocks, register


def write(dataset: Dataset, path: Path) -> None:
    """One line a row: a number, the number that a class is named by, or of other classes their place; of several
    classes the places with commas between them. Several numbers a row are refused (`DataError`)."""
    if dataset.kind == "numbers" and dataset.y.ndim == 2:
        raise DataError(
            f"{dataset.name} has {dataset.y.shape[1]} numbers a row, and a line of svmlight text one label."
        )
    values = dataset.labels.values if dataset.kind == "classes" else None
    with path.open("w", encoding="ascii") as file:
        for block in blocks(dataset):
            labels = block.labels if values is None else values[block.labels]
            file.writelines(_lines(block, [",".join(_texts(label)) for label in labels]))


def _texts(label: np.ndarray) -> list[str]:
    """Return the label of a row as text: [number], or the indices of the classes that a multilabel row has."""
    return [str(place) for place in np.flatnonzero(label)] if np.ndim(label) else [f"{label:.17g}"]


def _lines(block: RowBlock, labels: list[str]) -> list[str]:
    """Return the rows of a block as svmlight lines, each with its label and a line break."""
    x, starts = block.x, block.x.indptr.tolist()
    entries = [f" {column}:{value:.9g}" for column, value in zip(x.indices.tolist(), x.data.tolist(), strict=True)]
    return [
        f"{label}{''.join(entries[start:stop])}\n"
        for label, start, stop in zip(labels, starts[:-1], starts[1:], strict=True)
    ]


register(Export("svmlight", write, "text, a line a row: label column:value ..."))
