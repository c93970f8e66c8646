"""Matrices of the binsparse specification 0.1 in HDF5: CSR, with labels next to the arrays or in a file of their
own."""

import json
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from workbench.data.contract import Source, register
from workbench.data.dataset.record import Dataset, RowBlock, RowBlocks
from workbench.data.errors import ADVICE_LABELS, DataError, MissingLabelsError, import_optional, reader_option_advice
from workbench.data.files.reading import blocks_of_file, dataset_of, read_rows, reading_hdf5, refuse_fill_value
from workbench.data.labels import GUESSED, NONE, Wanted, format_names
from workbench.data.text.stacking import stack_with_labels

WHAT = "a binsparse matrix in HDF5"
ROWS_OF_BLOCK = 1 << 12


def make(path: str | os.PathLike, group: str = "/", column: str = "labels", wanted: Wanted = GUESSED) -> Dataset:
    """Return the CSR matrix in a group of the HDF5 file, with the array `column` of that group as labels.

    `kind`, `positive`, `classes` and `unseen` say what labels mean, as for `npz`. Raises DataError for a missing or
    damaged file, another format than CSR, arrays that do not fit each other, and if h5py is not installed (with the
    install command).
    """
    x, labels = stack_with_labels(
        ((part.x, part.labels) for part in _blocks(path, group, None if wanted.kind == NONE else column)), path
    )
    return dataset_of("binsparse", x, labels, wanted, path, lambda row: f"{path}, row {row}")


def blocks(path: str | os.PathLike, group: str = "/", column: str = "labels", wanted: Wanted = GUESSED) -> RowBlocks:
    """Return the rows of the file in blocks of 4096; `group` and `column` as for `make`.

    Other label settings are not used here. Raises DataError when blocks are read.
    """
    return blocks_of_file("binsparse", _blocks(path, group, column), path)


def _blocks(path: str | os.PathLike, group: str, column: str | None) -> Iterator[RowBlock]:
    """Yield the rows in blocks of `ROWS_OF_BLOCK` with their labels, zeros if `column` is None.

    Raises MissingLabelsError if `column` is absent, DataError for other or damaged files.
    """
    with reading_hdf5(path, WHAT):
        h5py = import_optional("h5py", "exchange", "Reading binsparse files")
        with h5py.File(path, "r") as file:
            held = file[group]
            rows, features = _shape(held, path)
            if column is not None and column not in held:
                raise MissingLabelsError(
                    f"{path} has no labels in {column!r}; there is: {format_names(held)}.\n{ADVICE_LABELS}"
                )
            for start in range(0, rows, ROWS_OF_BLOCK):
                yield _block(held, column, start, min(start + ROWS_OF_BLOCK, rows), features)


def _shape(held: Any, path: str | os.PathLike) -> tuple[int, int]:
    """Return (rows, features) from the binsparse descriptor of a group.

    Raises DataError if there is none, it is not all of a CSR matrix of real numbers with zeros between, or array shapes
    do not fit.
    """
    if "binsparse" not in held.attrs:
        raise DataError(
            f"{path} has no binsparse descriptor; it is in a group of another name.\n"
            f"{reader_option_advice(group='NAME')}"
        )
    about = json.loads(held.attrs["binsparse"])
    about = about.get("binsparse", about)
    if about["format"] != "CSR":
        raise DataError(f"{path} holds {about['format']}; CSR is read. Convert it before, or save it as CSR.")
    if about.get("structure", "general") != "general":
        raise DataError(f"{path} stores a part of a matrix: structure is {about['structure']!r}; expected all of it.")
    if (values := str(about.get("data_types", {}).get("values", ""))).removeprefix("iso[").startswith("complex"):
        raise DataError(f"{path} holds values of the type {values}; expected real numbers.")
    if about.get("fill"):
        refuse_fill_value(path, held["fill_value"][()])
    rows, features = map(int, about["shape"])
    if held["pointers_to_1"].shape != (rows + 1,) or held["indices_1"].ndim != 1 or features < 0:
        raise DataError(f"{path} is damaged: its arrays do not fit the shape {rows} x {features}.")
    return rows, features


def _block(held: Any, column: str | None, start: int, stop: int, features: int) -> RowBlock:
    """Return rows `start` to `stop` (exclusive) with their labels, zeros if `column` is None."""
    x = read_rows(held["pointers_to_1"], held["indices_1"], held["values"], start, stop, features)
    if column is None:
        return RowBlock(x, np.zeros(stop - start))
    labels = held[column]
    labels = labels.asstr()[start:stop].astype(str) if labels.dtype.kind == "O" else labels[start:stop]
    return RowBlock(x, labels)


register(Source("binsparse", make, blocks=blocks))
