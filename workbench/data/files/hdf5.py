"""Rows of a CSR matrix whose arrays are in an HDF5 file."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from workbench.data.dataset.record import canonical
from workbench.data.errors import DataError
from workbench.data.files.reading import UNREADABLE, reading
from workbench.formats.compressed import assemble


@contextmanager
def reading_hdf5(path: str | os.PathLike, what: str) -> Iterator[None]:
    """Turn errors into `DataError` as `files.reading` does, those of types that only HDF5's libraries have, too."""
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
    """Rows `start` to `stop`, as a data set holds them; a single value stands for all of them.

    What does not fit is refused (`FormatError`, `DataError`, `ValueError`).
    """
    starts = indptr[start : stop + 1].astype(np.int64)
    columns = indices[starts[0] : starts[-1]].astype(np.int64)
    data = np.full(len(columns), values[0]) if values.shape == (1,) else values[starts[0] : starts[-1]]
    return canonical(assemble("csr", starts - starts[0], columns, data, (stop - start, features)))
