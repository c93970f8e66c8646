"""A matrix saved by `scipy.sparse.save_npz` and its labels beside it by `numpy.save`: what `load("npz", ...)` reads."""

from pathlib import Path

import numpy as np
import scipy.sparse

from workbench.data.dataset.record import Dataset
from workbench.data.exports.contract import Export, in_memory, label_names, register


def write(dataset: Dataset, path: Path) -> None:
    """The matrix in `path`, and the labels, names of classes, in a file of that name with .labels.npy behind it."""
    with path.open("wb") as file:
        scipy.sparse.save_npz(file, in_memory(dataset), compressed=False)
    with path.with_name(f"{path.name}.labels.npy").open("wb") as file:
        np.save(file, label_names(dataset, dataset.y), allow_pickle=False)


register(Export("npz", write, "SciPy's archive of a matrix, and labels next to it in .labels.npy"))
