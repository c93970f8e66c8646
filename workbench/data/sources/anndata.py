"""Files of AnnData (.h5ad): X as the matrix, and a column of the observations, or a matrix of them, as labels."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from workbench import formats
from workbench.data.contract import Source, register
from workbench.data.dataset.record import Dataset, RowBlock, RowBlocks, canonical
from workbench.data.errors import ADVICE_LABELS, DataError, MissingLabelsError, import_optional
from workbench.data.files.reading import blocks_of_file, dataset_of, read_rows, reading_hdf5
from workbench.data.labels import GUESSED, NONE, Wanted, format_names

WHAT = "an .h5ad file"
ROWS_OF_BLOCK = 1 << 12


def make(path: str | os.PathLike, column: str = "label", wanted: Wanted = GUESSED) -> Dataset:
    """Return X of an .h5ad file, with the column of `obs`, or the matrix of `obsm`, called `column` as labels.

    `kind`, `positive`, `classes` and `unseen` say what labels mean, as for `npz`. Raises DataError for a missing or
    damaged file, if anndata is not installed, and for an unknown column, listing the known ones.
    """
    with reading_hdf5(path, WHAT):
        file = _open_file(path, backed=False)
        x = file.X if scipy.sparse.issparse(file.X) else formats.to_format(np.asarray(file.X), "csr")
        labels = np.zeros(x.shape[0]) if wanted.kind == NONE else _labels(file, column, path)
        return dataset_of("anndata", x, labels, wanted, path, lambda row: f"{path}, row {row}")


def blocks(path: str | os.PathLike, column: str = "label", wanted: Wanted = GUESSED) -> RowBlocks:
    """Return the rows of the file in blocks of 4096; `column` as for `make`, other label settings are not used here.

    Only the observations are in memory. Raises DataError when blocks are read.
    """
    return blocks_of_file("anndata", _blocks(path, column), path)


def _blocks(path: str | os.PathLike, column: str) -> Iterator[RowBlock]:
    """Yield the rows of X in blocks of `ROWS_OF_BLOCK` with their labels; DataError for a damaged file."""
    with reading_hdf5(path, WHAT):
        file = _open_file(path, backed=True)
        try:
            labels = _labels(file, column, path)
            for start in range(0, len(labels), ROWS_OF_BLOCK):
                stop = min(start + ROWS_OF_BLOCK, len(labels))
                yield RowBlock(_rows(file.file["X"], start, stop, path), labels[start:stop])
        finally:
            file.file.close()


def _rows(x: Any, start: int, stop: int, path: str | os.PathLike) -> Any:
    """Return rows `start` to `stop` (exclusive) of X in the file, dense or CSR, as a canonical CSR array.

    Raises DataError for CSC. Read by hand, as anndata's own slices fail with SciPy 1.17.
    """
    kind = x.attrs.get("encoding-type", "array")
    if kind == "array":
        return canonical(formats.to_format(x[start:stop].astype(np.float32), "csr"))
    if kind != "csr_matrix":
        raise DataError(f"{path} holds X as {kind}, which has no rows to read; load it and convert that data set.")
    return read_rows(x["indptr"], x["indices"], x["data"], start, stop, int(x.attrs["shape"][1]))


def _open_file(path: str | os.PathLike, backed: bool) -> Any:
    """Return the .h5ad file as AnnData, X left on disk if `backed`; DataError without anndata, FileNotFoundError."""
    anndata = import_optional("anndata", "exchange", "Reading .h5ad files")
    if not Path(path).exists():
        raise FileNotFoundError(path)
    return anndata.read_h5ad(path, backed="r" if backed else None)


def _labels(file: Any, column: str, path: str | os.PathLike) -> np.ndarray:
    """Return the labels in `column` of obs [rows] or obsm [rows, N].

    MissingLabelsError, listing the columns, if absent.
    """
    if column in file.obs:
        values = file.obs[column]
        return np.array(values.astype(str), np.str_) if values.dtype.kind not in "biuf" else values.to_numpy()
    if column in file.obsm:
        return np.asarray(file.obsm[column])
    there = format_names([*file.obs, *file.obsm])
    raise MissingLabelsError(f"{path} has no labels in {column!r}; there is: {there}.\n{ADVICE_LABELS}")


register(Source("anndata", make, blocks=blocks))
