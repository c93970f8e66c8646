"""Shared parts of file readers: errors that name the file, labels into classes, when a cached copy is out of date."""

import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import scipy.sparse

from kernels.registry import format_count
from workbench.data.dataset.record import Dataset, RowBlocks, canonical, compressed
from workbench.data.errors import DataError
from workbench.data.files.nearest import nearest_file
from workbench.data.files.opened import NotTextError, refuse_endless
from workbench.data.files.types import other_file_error, refuse_binary, starts_with
from workbench.data.labels import Place, Wanted, format_names, read_labels
from workbench.formats.compressed import assemble
from workbench.formats.files import check_members

UNREADABLE = (
    *(OSError, EOFError, ValueError, TypeError, LookupError, ArithmeticError, RuntimeError, MemoryError),
    *(BadZipFile, zlib.error),
)
"""What readers raise at files that are damaged, packed in a way they do not know, or locked."""
LICENCE = "that of the file"


@contextmanager
def reading(path: str | os.PathLike, what: str) -> Iterator[None]:
    """Turn errors in a `with` block into DataError naming `path`; `what` says what it is read as.

    DataError passes through. Pipes and devices are refused at the start; bytes that are not text are described by what
    they look like.
    """
    try:
        refuse_endless(path)
        yield
    except NotTextError:
        refuse_binary(path, what)
        raise
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError(f"There is no file {path}; give the path of {what}.{nearest_file(path)}") from None
    except IsADirectoryError:
        raise DataError(f"{path} cannot be read as {what}: it is a folder.") from None
    except UNREADABLE as error:
        raise DataError(f"{path} cannot be read as {what}: {error}") from error


def check_features(features: int | None) -> None:
    """Raise DataError unless `features` is None or an int from 1 on."""
    if features is not None and (isinstance(features, bool) or not isinstance(features, int) or features < 1):
        raise DataError(f"features is {features!r}; it is the number of columns, a whole number from 1 on.")


def path_exists(path: str | os.PathLike) -> bool:
    """Return whether there is a file or folder; False, unlike `Path.exists`, for a name that is too long for one."""
    try:
        return Path(path).expanduser().exists()
    except (OSError, RuntimeError):  # RuntimeError: "~name" of a user that is not there
        return False


def fingerprint(*paths: str | os.PathLike | None) -> str:
    """Return full name, size and modification time of each file, one per line; "PATH missing" without one.

    None among the paths is skipped.
    """
    states = []
    for path in (Path(path) for path in paths if path is not None):
        try:
            state = path.stat()
            states.append(f"{path.resolve()} {state.st_size} {state.st_mtime_ns}")
        except OSError:
            states.append(f"{path} missing")
    return "\n".join(states)


def dataset_of(
    name: str,
    x: Any,
    labels: np.ndarray | list,
    wanted: Wanted,
    path: str | os.PathLike,
    place: Place,
    groups: np.ndarray | None = None,
    licence: str = LICENCE,
    **facts: Any,
) -> Dataset:
    """Return the data set `name` of a matrix read from `path`, with its labels as they stand in the file.

    `wanted` states what labels mean, `place(row)` gives file and line for messages. The data set's facts are `facts`
    and `duplicate_entries`, which counts entries summed into another one. Raises DataError if there are no rows or
    entries, or another number of labels than rows.
    """
    if not x.shape[0]:
        raise DataError(f"{path} holds no rows; a data set has at least one.")
    if len(labels) != x.shape[0]:
        raise DataError(
            f"{path} has {format_count(x.shape[0], 'row')} and {format_count(len(labels), 'label')}; "
            "there must be one for each row."
        )
    x = compressed(x)
    stored = x.nnz if scipy.sparse.issparse(x) else None
    x = canonical(x)
    if not x.nnz:
        raise DataError(
            f"{path} has labels without features: none of its {x.shape[0]} rows stores an entry to learn from."
        )
    meaning, y = read_labels(labels, wanted, place)
    facts = {"duplicate_entries": 0 if stored is None else stored - x.nnz} | facts
    return Dataset(name, x, y, meaning, f"the file {Path(path).name}", licence, groups, facts)


def blocks_of_file(
    name: str,
    blocks: Iterable[tuple[Any, ...]],
    path: str | os.PathLike,
    features: int | None = None,
    facts: Mapping[str, Any] | None = None,
    licence: str = LICENCE,
) -> RowBlocks:
    """Return the blocks of rows that are read from `path` as a `RowBlocks` of the data set `name`.

    `features` is the number of columns, None if only the last block tells; `facts` are those of the data set.
    """
    return RowBlocks(blocks, name, f"the file {Path(path).name}", licence, features, facts=facts or {})


# Rows of a CSR matrix whose arrays are in an HDF5 file.


@contextmanager
def reading_hdf5(path: str | os.PathLike, what: str) -> Iterator[None]:
    """Turn errors in a `with` block into DataError naming `path`, as `reading` does, also those of HDF5 libraries."""
    with reading(path, what):
        try:
            yield
        except DataError as error:
            if str(path) in str(error):
                raise
            raise DataError(f"{path}: {error}") from error
        except UNREADABLE:
            raise
        except Exception as error:
            raise DataError(f"{path} cannot be read as {what}: {error}") from error


def read_rows(indptr: Any, indices: Any, values: Any, start: int, stop: int, features: int) -> Any:
    """Return rows `start` to `stop` (exclusive) of CSR arrays in a file as a canonical CSR array.

    `values` of shape (1,) stand for all entries. Raises FormatError, DataError or ValueError if the arrays do not fit.
    """
    starts = indptr[start : stop + 1].astype(np.int64)
    columns = indices[starts[0] : starts[-1]].astype(np.int64)
    data = np.full(len(columns), values[0]) if values.shape == (1,) else values[starts[0] : starts[-1]]
    return canonical(assemble("csr", starts - starts[0], columns, data, (stop - start, features)))


# Matrices without labels in files of any kind: saved by SciPy, or Matrix Market text.

ZIP = b"PK\x03\x04"
SAVED = "a SciPy matrix"
INDICES = ("indices", "indptr", "row", "col", "coords", "offsets")
"""Members of an archive of a SciPy matrix that hold whole numbers."""
WHAT = "a matrix (.npz by scipy.sparse.save_npz, or Matrix Market .mtx)"


def read_matrix(path: str | os.PathLike) -> Any:
    """Return the matrix in a SciPy .npz or Matrix Market file as stored: duplicates and explicit zeros are kept.

    Indices are not validated. Raises DataError for other or damaged files.
    """
    from workbench.data.files.matrix_market import is_market, read_market  # late: it compiles a parser of numbers

    with reading(path, WHAT):
        if starts_with(path, ZIP):
            return read_saved(path)
        if not is_market(path):
            raise other_file_error(path, WHAT)
        made = read_market(path)
        return scipy.sparse.coo_array(made) if isinstance(made, np.ndarray) else made


def read_saved(path: str | os.PathLike) -> Any:
    """Return the matrix in an archive of `scipy.sparse.save_npz`, without pickles.

    Raises DataError or ValueError if it is not one, or indices are not integers.
    """
    with read_scipy_archive(path), open(path, "rb") as file:
        for name, header in check_members(file).items():
            if name.removesuffix(".npy") in INDICES and header.dtype.kind not in "iu":  # which SciPy would cut
                advice = "indices are whole numbers. Save the matrix again by scipy.sparse.save_npz"
                raise ValueError(f"its member {name!r} holds {header.dtype}; {advice}")
    return scipy.sparse.load_npz(path)


CONVERT_GCXS = (
    'Type python -c "import scipy.sparse, sparse; '
    "scipy.sparse.save_npz('NEW.npz', sparse.load_npz('FILE').to_scipy_sparse())\""
)


def refuse_fill_value(path: str | os.PathLike, value: Any) -> None:
    """Raise DataError if the value of all entries that a matrix in a file does not store is not 0."""
    if (np.asarray(value) != 0).any():
        raise DataError(
            f"{path} has the fill value {np.asarray(value).item()!r}, that of all entries which are not stored; "
            "expected 0.\nSubtract it before the matrix is saved, or save the matrix dense: numpy.save."
        )


@contextmanager
def read_scipy_archive(path: str | os.PathLike) -> Iterator[Any]:
    """Open an archive of `scipy.sparse.save_npz` in a `with` block, and yield it as an `NpzFile`.

    Raises DataError if it has no valid "format" member, ValueError for members that are not what they claim.
    """
    with read_npz_arrays(path) as archive:
        if "format" not in archive.files:
            held = f"it holds the arrays {format_names(archive.files)}"
            raise DataError(f"{path} cannot be read as {SAVED}: {held}. Save one by scipy.sparse.save_npz.")
        format = archive["format"]
        if format.ndim or format.dtype.kind not in "SU":
            held = f"its format is {format.dtype} {list(format.shape)}, and is the name of one"
            raise DataError(f"{path} cannot be read as {SAVED}: {held}. Save one by scipy.sparse.save_npz.")
        if "fill_value" in archive.files:  # of the package sparse
            refuse_fill_value(path, archive["fill_value"])
            if format.item() == "gcxs":
                raise DataError(
                    f"{path} holds GCXS of the package sparse; expected COO or a SciPy matrix.\n{CONVERT_GCXS}"
                )
        yield archive


@contextmanager
def read_npz_arrays(path: str | os.PathLike) -> Iterator[Any]:
    """Open an .npz archive in a `with` block, and yield it as an `NpzFile` that loads no pickles.

    Raises ValueError for members that are not what they claim.
    """
    with open(path, "rb") as file:  # which NumPy would leave open when it is no archive after all
        check_members(file)
        with np.load(file, allow_pickle=False) as archive:
            yield archive
