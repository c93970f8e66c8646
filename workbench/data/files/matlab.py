"""Variables of a MATLAB file (version 5, as `save -v7` and `-v6` write): listed first, then only those wanted are read.

What holds no numbers or text, structures, cells, objects, functions, is never read; nothing in a file is executed.
"""

import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import scipy.io
import scipy.sparse
from scipy.io.matlab import MatReadError, MatReadWarning, matfile_version

from workbench.data.errors import DataError
from workbench.data.files.types import looks_like, starts_with
from workbench.formats.members import MOST_PACKED, bytes_memory

WHAT = "a MATLAB file of version 5"
HDF5 = b"\x89HDF"
NUMBERS = frozenset(
    {"double", "single", "logical", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}
)
READ = NUMBERS | {"sparse", "char"}
"""Classes of variables that are read."""


class Variable(NamedTuple):
    """A variable as the file's list has it: name, shape, and MATLAB's class."""

    name: str
    shape: tuple[int, ...]
    kind: str

    @property
    def is_matrix(self) -> bool:
        """Whether it is sparse, or an array of numbers with rows and columns."""
        return self.kind == "sparse" or (self.kind in NUMBERS and len(self.shape) == 2 and min(self.shape) > 1)

    @property
    def size(self) -> int:
        """Rows * columns."""
        return int(np.prod(self.shape, dtype=object))

    def __str__(self) -> str:
        return f"{self.name} ({' x '.join(map(str, self.shape))} {self.kind})"


@contextmanager
def opened_matlab(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """The file, once it is known to be one of version 5; others and damaged ones are refused (`DataError`)."""
    if starts_with(path, HDF5) or starts_with(path, b"MATLAB 7.3"):
        advice = "In MATLAB: save('file.mat', '-v7') writes one that is read"
        raise DataError(f"{path} is a MATLAB file of version 7.3, which is HDF5. {advice}.")
    with open(path, "rb") as file, warnings.catch_warnings():
        warnings.simplefilter("error", MatReadWarning)
        try:
            if not starts_with(path, b"MATLAB") or matfile_version(file)[0] != 1:
                looks, advice = looks_like(path)
                raise DataError(f"{path} cannot be read as {WHAT}: it looks like {looks}. {advice}.")
            yield file
        except (MatReadError, MatReadWarning) as error:
            raise DataError(f"{path} cannot be read as {WHAT}: {error}") from None


def variables(file: BinaryIO) -> list[Variable]:
    """All variables of the file; one that claims more than the file can hold is refused (`ValueError`)."""
    found = [Variable(name, tuple(map(int, shape)), kind) for name, shape, kind in scipy.io.whosmat(file)]
    size = os.fstat(file.fileno()).st_size
    for one in found:
        if one.kind in NUMBERS | {"char"} and one.size > MOST_PACKED * size:
            raise ValueError(f"{one} is more than a file of {size:,} bytes can hold")
        if one.kind in READ - {"sparse"} and 8 * one.size > (memory := bytes_memory()):
            raise ValueError(f"{one} would take {8 * one.size:,} bytes, and this machine has {memory:,}")
    return found


def values(file: BinaryIO, names: Iterable[str]) -> dict[str, Any]:
    """Values of the variables of those names: arrays of numbers, text [rows], or csc arrays of floats."""
    file.seek(0)
    read = scipy.io.loadmat(file, variable_names=list(names), verify_compressed_data_integrity=True)
    return {name: _plain(name, value) for name, value in read.items() if not name.startswith("__")}


def _plain(name: str, value: Any) -> Any:
    if scipy.sparse.issparse(value):
        data = value.data.astype(np.float64, copy=False) if value.dtype.kind in "biuf" else value.data
        return scipy.sparse.csc_array((data, value.indices, value.indptr), shape=value.shape)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biufUc":
        raise DataError(f"The variable {name} holds {type(value).__name__}; arrays of numbers and text are read.")
    return np.asarray(value)
