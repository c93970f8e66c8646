"""Matrix Market files (.mtx, plain, .gz or .bz2): sparse or dense, with labels of their own or in a column; and UCI's
bags of words (docword.NAME.txt)."""

import os
from collections.abc import Callable

import numpy as np
import scipy.sparse

from workbench.data.contract import Source, register
from workbench.data.dataset.record import Dataset
from workbench.data.errors import ADVICE_LABELS, DataError, MissingLabelsError
from workbench.data.files.labels import read_label_file, rewrite_lines
from workbench.data.files.matrix_market import is_market, read_market
from workbench.data.files.reading import dataset_of, reading
from workbench.data.files.types import DOCWORD, looks_like, other_file_error
from workbench.data.labels import GUESSED, NONE, Wanted
from workbench.option_text import typed

NAME = "matrix_market"
WHAT = "a Matrix Market matrix"


def make(
    path: str | os.PathLike,
    labels: str | os.PathLike | None = None,
    label_column: int | str | None = None,
    wanted: Wanted = GUESSED,
) -> Dataset:
    """Return the matrix in `path`, a row of it a sample, with labels from the file `labels` or from one of its columns.

    `labels` is .npy, a Matrix Market vector, or text with one label a line. `label_column` counts from 0, or from the
    end as -1 does; it is taken out of the features, and what it does not store is 0. Real, integer and pattern files
    are read (entries of a pattern are 1), general, symmetric and skew-symmetric ones, in the forms coordinate and
    array, and bags of words as UCI has them, below a line each of documents, words and entries. Entries that come twice
    are summed, stored zeros are kept. `kind`, `positive`, `classes` and `unseen` are those of the data set npz. Refused
    (`DataError`, with the line): complex and invalid files. Memory about 40 bytes an entry.
    """
    has_no_labels = wanted.kind == NONE and labels is None and label_column is None
    if (labels is None) == (label_column is None) and not has_no_labels:
        given = "no labels" if labels is None else "both labels and label_column"
        advice = "labels are a file with one for each row; label_column is the column that holds them, from 0"
        error = MissingLabelsError if labels is None else DataError
        raise error(
            f"{path} is given {given}; {advice}.\n{ADVICE_LABELS.replace(typed(label='NAME'), typed(label='0'))}"
        )
    with reading(path, WHAT):
        if is_market(path):
            x = scipy.sparse.coo_array(read_market(path))
        elif looks_like(path) == DOCWORD:
            with rewrite_lines(path, _line_of_docword()) as copy:
                x = scipy.sparse.coo_array(read_market(copy))
        else:
            raise other_file_error(path, WHAT)
        if label_column is None:
            y, place = (np.zeros(x.shape[0]), str) if labels is None else read_label_file(labels)
            return dataset_of(NAME, x, y, wanted, path, place)
        x, y, column = _split_column(x, _index_of(label_column), path)
        place = lambda row: f"{path}, column {column} of row {row}"  # noqa: E731
        return dataset_of(NAME, x, y, wanted, path, place, reread={"label_column": column})


def _line_of_docword() -> Callable[[bytes], bytes]:
    """Return a function that makes of each line of a bag of words (UCI) the line of a Matrix Market file."""
    sizes = list[bytes]()

    def rewrite(line: bytes) -> bytes:
        """Return a line as it is, but the first three, of a size each, as banner, comment and sizes."""
        if len(sizes) == 3:
            return line
        sizes.append(line.strip())
        return (b"%%MatrixMarket matrix coordinate integer general\n", b"%\n", b" ".join(sizes) + b"\n")[len(sizes) - 1]

    return rewrite


def _index_of(column: int | str) -> int:
    """Return a column index given as int or text such as "3"; 0 for ""; DataError for other text."""
    try:
        return int(column or 0)
    except ValueError:
        raise DataError(
            f"label_column is {column!r}; expected the index of a column, from 0.\n"
            f"Type {typed(label='0')} for the first column."
        ) from None


def _split_column(
    x: scipy.sparse.coo_array, column: int, path: str | os.PathLike
) -> tuple[scipy.sparse.coo_array, np.ndarray, int]:
    """Return (matrix without the column, the column dense [rows], its index from 0).

    A negative index counts from the end. Duplicates in the column are summed. Raises DataError if there is no such
    column.
    """
    rows, columns = x.shape
    if not -columns <= column < columns:
        last = f"they are 0 to {columns - 1}, or -1 to -{columns} from the end"
        raise DataError(f"{path} has {columns} columns and no {column}; {last}.")
    column %= columns
    row_of, column_of = x.coords
    is_label = column_of == column
    y = np.bincount(row_of[is_label], x.data[is_label], minlength=rows)  # duplicates are summed here, too
    kept = column_of[~is_label]
    kept = kept - (kept > column).astype(kept.dtype)
    return scipy.sparse.coo_array((x.data[~is_label], (row_of[~is_label], kept)), shape=(rows, columns - 1)), y, column


register(Source(NAME, make))
