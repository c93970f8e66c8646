"""The problem of a cell: its data at the rows, features and density asked for, and the targets of its model."""

import dataclasses
from dataclasses import dataclass

import numpy as np
import scipy.sparse

from workbench import data, formats
from workbench.data import cache
from workbench.sweep.spec import FILES, Cell

SYNTHETIC_ROWS, SYNTHETIC_FEATURES, SYNTHETIC_DENSITY, SYNTHETIC_CLASSES = 16_384, 16_384, 0.01, 10
HELD_OUT = 0.2


@dataclass(frozen=True, eq=False)
class Problem:
    """X csr [rows, D] and targets y in the cell's dtype, the width N; held-out rows where the cell trains epochs.

    `rows_total` is the number of rows before any were joined or held out.
    """

    x: scipy.sparse.csr_array
    y: np.ndarray
    width: int
    rows_total: int
    x_held_out: scipy.sparse.csr_array | None = None
    y_held_out: np.ndarray | None = None

    def held(self, cell: Cell) -> np.ndarray | scipy.sparse.csr_array:
        """X as the training holds it: dense for dense cells, else CSR, from which batches of other formats are made."""
        return formats.to_format(self.x, "dense") if cell.format == "dense" else self.x


def is_synthetic(dataset: str) -> bool:
    """Whether the data set is drawn at any density, rather than read."""
    return "density" in data.get(dataset).parameters


def make_problem(cell: Cell) -> Problem:
    """Data and targets of a cell; `data.DataError` where they cannot be had. What was made is cached on disk."""
    made = _cached(_parameters(cell))
    if made.kind == "classes" and (cell.width or 0) > 1:
        made = data.merged(made, cell.width)
    rows_total = made.facts["rows_total"]
    dtype = np.dtype(cell.dtype)
    train, rest = data.split(made, HELD_OUT, cell.seed) if cell.epochs else (made, None)
    y = data.with_labels(train, cell.model, cell.width, dtype)
    width = cell.width or (len(made.classes) if cell.model == "softmax" else y.shape[1])
    if rest is None:
        return Problem(_typed(train.x, dtype), y, width, rows_total)
    held_out = data.with_labels(rest, cell.model, width, dtype)
    return Problem(_typed(train.x, dtype), y, width, rows_total, _typed(rest.x, dtype), held_out)


def _typed(x, dtype: np.dtype):
    return x if x.dtype == dtype else x.astype(dtype)


def _parameters(cell: Cell) -> dict:
    """What the data of a cell depends on, and nothing else, so that cells share what was made."""
    shared = {name: getattr(cell, name) for name in ("dataset", "rows", "features", "density", "seed")}
    if is_synthetic(cell.dataset):
        return shared | {"model": cell.model, "width": cell.width, "path": None, "labels": None}
    return shared | {"model": None, "width": None, "path": cell.path, "labels": cell.labels}


def _cached(parameters: dict) -> data.Dataset:
    origin = data.get(parameters["dataset"])

    def fingerprint(**parameters) -> str:
        """Name, size and time of the files that the data is read from."""
        return origin.fingerprint(**_of_file(parameters)) if not is_synthetic(parameters["dataset"]) else ""

    derived = data.Source(f"{origin.name}-derived", _make, origin.origin, origin.licence, fingerprint)
    return cache.kept(derived, parameters)


def _of_file(parameters: dict) -> dict:
    """The parameters of a source that reads a file of the user's."""
    known = data.get(parameters["dataset"]).parameters
    return {name: parameters[name] for name in FILES if name in known and parameters[name] is not None}


def _make(dataset, rows, features, density, seed, model, width, path, labels) -> data.Dataset:
    if is_synthetic(dataset):
        made = _drawn(dataset, rows, features, density, seed, model, width)
        return dataclasses.replace(made, facts={**made.facts, "rows_total": made.rows})
    made = data.load(dataset, **_of_file({"dataset": dataset, "path": path, "labels": labels}))
    if rows is not None:
        made = data.keep_rows(made, rows, seed)
    rows_total = made.rows
    if features is not None:
        made = data.keep_features(made, features)
    if density is not None:
        made = data.with_density(made, density, seed)
    made = data.shuffled(made, seed)
    return dataclasses.replace(made, facts={**made.facts, "rows_total": rows_total})


def _drawn(dataset, rows, features, density, seed, model, width) -> data.Dataset:
    if model == "linear":
        labels = {"classes": None, "width": width or 1}
    else:
        labels = {"classes": 2 if model == "logistic" else (width or SYNTHETIC_CLASSES)}
    return data.load(
        dataset,
        rows=rows or SYNTHETIC_ROWS,
        features=features or SYNTHETIC_FEATURES,
        density=density or SYNTHETIC_DENSITY,
        seed=seed,
        **labels,
    )
