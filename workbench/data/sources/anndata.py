"""Files and folders of AnnData (.h5ad, .zarr): X or a layer, and a column or matrix of observations as labels."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from workbench.data.contract import Source, register
from workbench.data.dataset.record import Dataset, RowBlock, RowBlocks, canonical
from workbench.data.errors import ADVICE_LABELS, DataError, MissingLabelsError, import_optional, reader_option_advice
from workbench.data.files.reading import blocks_of_file, dataset_of, read_rows, reading_hdf5
from workbench.data.labels import GUESSED, NONE, Wanted, format_names

WHAT = "an .h5ad file or .zarr folder"
ROWS_OF_BLOCK = 1 << 12


def make(path: str | os.PathLike, column: str = "label", layer: str | None = None, wanted: Wanted = GUESSED) -> Dataset:
    """Return X of an .h5ad file or .zarr folder, with the column of `obs`, or the matrix of `obsm`, called `column`.

    `layer` names the layer that is read in place of X. `kind`, `positive`, `classes` and `unseen` say what labels mean,
    as for `npz`. Raises DataError for a missing or damaged file, if anndata is not installed, for rows without a label,
    and for an unknown column or layer, listing the known ones.
    """
    with reading_hdf5(path, WHAT):
        file = _open_file(path, backed=False)
        x = matrix_in(file, layer, path)
        labels = np.zeros(x.shape[0]) if wanted.kind == NONE else labels_in(file, column, path)
        return dataset_of("anndata", x, labels, wanted, path, lambda row: f"{path}, row {row}")


def blocks(
    path: str | os.PathLike, column: str = "label", layer: str | None = None, wanted: Wanted = GUESSED
) -> RowBlocks:
    """Return the rows of the file in blocks of 4096, parameters as for `make`; label settings are not used here.

    Only the observations are in memory, but all of a .zarr folder. Raises DataError when blocks are read.
    """
    if Path(path).is_dir():
        from workbench.data.stored.converting import blocks_of

        return blocks_of(make(path, column, layer, wanted))
    return blocks_of_file("anndata", _blocks(path, column, layer), path)


def _blocks(path: str | os.PathLike, column: str, layer: str | None) -> Iterator[RowBlock]:
    """Yield the rows of X or a layer in blocks of `ROWS_OF_BLOCK` with their labels; DataError for a damaged file."""
    with reading_hdf5(path, WHAT):
        file = _open_file(path, backed=True)
        try:
            labels = labels_in(file, column, path)
            matrix_in(file, layer, path)
            x = file.file["X" if layer is None else f"layers/{layer}"]
            for start in range(0, len(labels), ROWS_OF_BLOCK):
                stop = min(start + ROWS_OF_BLOCK, len(labels))
                yield RowBlock(_rows(x, start, stop, path), labels[start:stop])
        finally:
            file.file.close()


def _rows(x: Any, start: int, stop: int, path: str | os.PathLike) -> Any:
    """Return rows `start` to `stop` (exclusive) of X in the file, dense or CSR, as a canonical CSR array.

    Raises DataError for CSC. Read by hand, as anndata's own slices fail with SciPy 1.17.
    """
    kind = x.attrs.get("encoding-type", "array")
    if kind == "array":
        return canonical(x[start:stop])
    if kind != "csr_matrix":
        raise DataError(f"{path} holds X as {kind}, which has no rows to read; load it and convert that data set.")
    return read_rows(x["indptr"], x["indices"], x["data"], start, stop, int(x.attrs["shape"][1]))


def _open_file(path: str | os.PathLike, backed: bool) -> Any:
    """Return the file or folder as AnnData, X of a file left on disk if `backed`.

    Raises FileNotFoundError, and DataError without anndata or zarr.
    """
    anndata = import_optional("anndata", "exchange", "Reading .h5ad files and .zarr folders")
    if not Path(path).exists():
        raise FileNotFoundError(path)
    if Path(path).is_dir():
        import_optional("zarr", "exchange", "Reading .zarr folders")
        return anndata.read_zarr(path)
    return anndata.read_h5ad(path, backed="r" if backed else None)


def matrix_in(file: Any, layer: str | None, what: str | os.PathLike) -> Any:
    """Return X of an AnnData object, or a layer of it; DataError, naming `what`, if there is none."""
    names = [name for name in file.layers if name is not None]  # anndata 0.13 lists X under the name None
    there = format_names(names) if names else "none"
    if layer is not None and layer not in names:
        raise DataError(f"{what} has no layer {layer!r}; there is: {there}.\n{reader_option_advice(layer='NAME')}")
    x = file.X if layer is None else file.layers[layer]
    if x is None:
        raise DataError(f"{what} has no X; expected a matrix. Layers: {there}.\n{reader_option_advice(layer='NAME')}")
    return x


def labels_in(file: Any, column: str, what: str | os.PathLike) -> np.ndarray:
    """Return the labels in `column` of obs [rows] or obsm [rows, N] of an AnnData object.

    MissingLabelsError, listing the columns, if absent; DataError for rows without a label.
    """
    if column in file.obs:
        values = file.obs[column]
        if values.isna().any():
            row = int(np.argmax(values.isna()))
            raise DataError(
                f"{what}, row {row}: there is no label in {column!r}, and in {int(values.isna().sum())} rows in all.\n"
                f"Leave them out: adata[adata.obs[{column!r}].notna()]."
            )
        labels = values.to_numpy()
        return labels if labels.dtype.kind in "biuf" else np.array(values.astype(str), np.str_)
    if column in file.obsm:
        several = file.obsm[column]
        return several.toarray() if scipy.sparse.issparse(several) else np.asarray(several)
    there = format_names([*file.obs, *file.obsm]) if len(file.obs.columns) or len(file.obsm) else "none"
    raise MissingLabelsError(f"{what} has no labels in {column!r}; there is: {there}.\n{ADVICE_LABELS}")


def _files(path: str | os.PathLike, **rest: Any) -> list[str | os.PathLike]:
    """Return the file, or the folder and all files in it."""
    return [path, *sorted(file for file in Path(path).rglob("*") if file.is_file())]


register(Source("anndata", make, files=_files, blocks=blocks))
