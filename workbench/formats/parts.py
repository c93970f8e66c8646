"""Component arrays of a matrix, unchecked: for validation tools, which must not follow invalid indices.

>>> import numpy as np, scipy.sparse
>>> parts = parts_of(scipy.sparse.csr_array(np.float32([[0, 2], [0, 0]])))
>>> parts.format, parts.shape, parts.values.tolist(), parts.starts.tolist()
('csr', (2, 2), [2.0], [0, 1, 1])
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from workbench.formats.contract import refuse
from workbench.formats.row_sparse import RowSparse

COMPRESSED = ("csr", "csc", "bsr")
VALUES = {"dense": "x", "row_sparse": "values"}
"""Name of the array of values where it is not `data`."""

INDICES = {"csr": ("indptr", "indices"), "csc": ("indptr", "indices"), "bsr": ("indptr", "indices")} | {
    "coo": ("row", "col"),
    "row_sparse": ("indices",),
}
"""Names of the arrays of indices; formats that are not here have none that is followed."""


class Order(NamedTuple):
    """Counts of entries that precede their predecessor within a row (unsorted) and that repeat a position (duplicates).

    `first` is the (row, column) of the first duplicated position.
    """

    falls: int
    repeats: int
    first: tuple[int, int] | None


@dataclass(frozen=True)
class Parts:
    """A matrix of `shape` in a format, as its component arrays by SciPy's names; unchecked.

    csr, csc and bsr have data, indices, indptr; coo has data, row, col; row_sparse has values, indices; dense has x.
    Raises FormatError if a component is missing or not a NumPy array.
    """

    format: str
    shape: tuple[int, ...]
    arrays: Mapping[str, np.ndarray]

    def __post_init__(self) -> None:
        """Raise FormatError if a component that the format needs is missing or not a plain NumPy array."""
        is_matrix = self.format != "coo" or len(self.shape) == 2
        for name in (self._named_values, *(INDICES.get(self.format, ()) if is_matrix else ())):
            array = self.arrays.get(name)
            if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
                problem = f"{name} of a {self.format} matrix is a {type(array).__name__}"
                raise refuse(problem, "NumPy arrays", f"Build the matrix again from its parts, with np.asarray({name})")

    @property
    def _named_values(self) -> str:
        """Return the name of the component with the values: "data", or "x" (dense), or "values" (row_sparse)."""
        return VALUES.get(self.format, "data")

    @property
    def values(self) -> np.ndarray:
        """Return the array of stored values, not copied."""
        return self.arrays[self._named_values]

    @property
    def indices(self) -> dict[str, np.ndarray]:
        """Return the index arrays of the format by name, {} for a dense array; not copied."""
        return {name: self.arrays[name] for name in INDICES.get(self.format, ()) if name in self.arrays}

    @property
    def starts(self) -> np.ndarray:
        """Return the row pointers `indptr`, or the column pointers of csc."""
        return self.arrays["indptr"]

    @property
    def block(self) -> tuple[int, int]:
        """Return the block shape of bsr; (1, 1) for other formats."""
        is_blocks = self.format == "bsr" and self.values.ndim == 3
        return (self.values.shape[1] or 1, self.values.shape[2] or 1) if is_blocks else (1, 1)

    @property
    def lengths(self) -> tuple[int, int]:
        """Return (rows, columns), counted in blocks for bsr; (columns, rows) for csc."""
        rows, columns = (length // size for length, size in zip(self.shape, self.block, strict=True))
        return (columns, rows) if self.format == "csc" else (rows, columns)

    @cached_property
    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (row, column) index [z] of each entry; (column, row) for csc. Requires valid pointers."""
        if self.format == "coo":
            return self.arrays["row"], self.arrays["col"]
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts)), self.arrays["indices"]

    @cached_property
    def order(self) -> Order:
        """Return the counts of unsorted and duplicated entries. O(z); O(z log z) for unsorted ones."""
        if self.format in COMPRESSED and self._is_rising():
            return Order(0, 0, None)
        major, minor = self.places
        falls, equal = _steps(major, minor)
        if falls:
            order = np.lexsort((minor, major))
            major, minor = major[order], minor[order]
            _, equal = _steps(major, minor)
        if not (repeats := int(np.count_nonzero(equal))):
            return Order(falls, 0, None)
        at = int(np.argmax(equal))
        first = int(major[at]), int(minor[at])
        return Order(falls, repeats, first[::-1] if self.format == "csc" else first)

    def _is_rising(self) -> bool:
        """Return whether indices of a compressed matrix rise strictly within each row; valid pointers required."""
        indices, starts = self.arrays["indices"], self.starts[1:-1]
        rising = indices[1:] > indices[:-1]
        rising[starts[(starts > 0) & (starts < len(indices))] - 1] = True  # the first of a row follows nothing
        return bool(rising.all())


def _steps(major: np.ndarray, minor: np.ndarray) -> tuple[int, np.ndarray]:
    """Return (how many entries precede their predecessor in (major, minor) order, which are equal to it [z - 1])."""
    same = major[1:] == major[:-1]
    falls = (major[1:] < major[:-1]) | (same & (minor[1:] < minor[:-1]))
    return int(np.count_nonzero(falls)), same & (minor[1:] == minor[:-1])


def parts_of(x: Any) -> Parts:
    """Return the component arrays of a NumPy array, a SciPy array or matrix of any format, a `RowSparse`, or `Parts`.

    Nothing is checked and no index is followed; lil and dok are returned as csr and coo. O(1) for other formats. Raises
    FormatError for other objects.
    """
    if isinstance(x, Parts):
        return x
    if isinstance(x, RowSparse):
        return Parts("row_sparse", x.shape, {"values": x.values, "indices": x.indices})
    if scipy.sparse.issparse(x):
        return _parts_of_scipy(x)
    if isinstance(x, np.ndarray) and not isinstance(x, np.ma.MaskedArray):
        return Parts("dense", x.shape, {"x": x})
    allowed = "NumPy arrays, SciPy's sparse arrays and matrices, RowSparse, Parts"
    raise refuse(f"A {type(x).__module__}.{type(x).__name__} came", allowed, "Call np.asarray(x, np.float32)")


def _parts_of_scipy(x: Any) -> Parts:
    """Return the Parts of a csr, csc, bsr, coo, lil or dok array or matrix; FormatError for other SciPy formats."""
    if x.format == "lil":
        return _parts_of_lil(x)
    if x.format == "dok":
        return _parts_of_dok(x)
    arrays = {name: vars(x).get(name) for name in ("data", "indices", "indptr", "offsets")}
    if x.format == "coo":
        axes = ("row", "col") if len(x.coords) == 2 else tuple(f"axis {axis}" for axis in range(len(x.coords)))
        arrays = {"data": x.data, **dict(zip(axes, x.coords, strict=True))}
    return Parts(x.format, tuple(x.shape), {name: array for name, array in arrays.items() if array is not None})


def _parts_of_lil(x: Any) -> Parts:
    """Return the `Parts` of a lil matrix as csr, over new arrays."""
    starts = np.cumsum([0, *map(len, x.rows)], dtype=np.int64)
    indices = np.fromiter(chain.from_iterable(x.rows), np.int64)
    data = np.fromiter(chain.from_iterable(x.data), x.dtype)
    return Parts("csr", x.shape, {"data": data, "indices": indices, "indptr": starts})


def _parts_of_dok(x: Any) -> Parts:
    """Return the `Parts` of a dok matrix as coo, over new arrays."""
    places = np.array(list(x.keys()), np.int64).reshape(-1, len(x.shape))
    axes = ("row", "col") if len(x.shape) == 2 else tuple(f"axis {axis}" for axis in range(len(x.shape)))
    data = np.fromiter(x.values(), x.dtype, len(places))
    return Parts("coo", x.shape, {"data": data, **dict(zip(axes, places.T, strict=True))})
