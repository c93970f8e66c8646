"""row_sparse: whole rows of an array of any rank, the others being zero. Gradients of sparse inputs are like that.

No library has this format, so it is a class of ours.

>>> import numpy as np
>>> x = RowSparse(np.float32([[1, 2], [3, 4]]), np.array([1, 4]), (6, 2))
>>> x
RowSparse(shape=(6, 2), stored_rows=2, dtype=float32)
  row 1: [1. 2.]
  row 4: [3. 4.]
>>> x.retain([4, 5]).indices
array([4])
"""

from typing import Any, Final, NoReturn, Self, final

import numpy as np
from numpy.typing import ArrayLike

import kernels
from workbench.formats import compressed, pictures
from workbench.formats.checks import check_finite, check_range, check_same_length, check_two_dimensions, check_values
from workbench.formats.contract import Coo, Format, refuse, register
from workbench.formats.indices import index_dtype


@final
class RowSparse:
    """Rows `indices` of an array of `shape` are `values`, all other rows are zero.

    `values` [stored, *shape[1:]] float32 or float64; `indices` int64 [stored], sorted, unique. Arrays given are not
    copied; the fields cannot be set anew, but the values may be written to. Malformed parts are refused
    (`FormatError`); `from_rows` takes them unsorted and duplicated. O(stored), independent of the width.
    """

    __slots__ = ("indices", "shape", "values")
    __hash__ = None
    format: Final = "row_sparse"

    indices: np.ndarray
    shape: tuple[int, ...]
    values: np.ndarray

    def __init__(self, values: ArrayLike, indices: ArrayLike, shape: tuple[int, ...]) -> None:
        object.__setattr__(self, "values", _as_values(values))
        object.__setattr__(self, "indices", _as_indices(indices))
        object.__setattr__(self, "shape", _as_shape(shape))
        self.check()

    @classmethod
    def assemble(cls, values: np.ndarray, indices: np.ndarray, shape: tuple[int, ...]) -> Self:
        """Of parts that are right by construction, as kernels make them: nothing is checked. O(1)."""
        made = object.__new__(cls)
        object.__setattr__(made, "values", values)
        object.__setattr__(made, "indices", indices)
        object.__setattr__(made, "shape", shape)
        return made

    @classmethod
    def from_dense(cls, dense: np.ndarray) -> Self:
        """The rows of `dense` that hold anything but zeros (NaN is not zero); a copy. O(size)."""
        dense = np.asarray(dense)
        check_values(dense, "The dense array")
        if not dense.ndim:
            raise refuse("The dense array has no dimension", "1 or more", "Call x.reshape(1)")
        indices = np.flatnonzero(dense.any(axis=tuple(range(1, dense.ndim))))
        return cls(_rows_of(dense, indices), indices, dense.shape)

    @classmethod
    def from_rows(cls, indices: ArrayLike, values: ArrayLike, shape: tuple[int, ...]) -> Self:
        """Rows in any order, those with the same index summed. O(stored * (log stored + width)).

        >>> RowSparse.from_rows([4, 1, 4], np.float32([[1], [2], [3]]), (6, 1))
        RowSparse(shape=(6, 1), stored_rows=2, dtype=float32)
          row 1: [2.]
          row 4: [4.]
        """
        indices, values, shape = _as_indices(indices), _as_values(values), _as_shape(shape)
        _check_parts(values, indices, shape)
        check_range(indices, shape[0], "indices", "rows")
        unique, merged = kernels.get("merge_rows").cpu(indices, values.reshape(len(indices), _width(shape)))
        return cls(merged.reshape(len(unique), *shape[1:]), unique, shape)

    @property
    def dtype(self) -> np.dtype:
        """Type of the values."""
        return self.values.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def nnz(self) -> int:
        """Number of stored scalars, zeros among them included."""
        return self.values.size

    @property
    def nbytes(self) -> int:
        """Bytes of values and indices."""
        return self.values.nbytes + self.indices.nbytes

    def toarray(self) -> np.ndarray:
        """The dense array of `shape`; a copy. O(size)."""
        out = np.zeros(self.shape, self.dtype)
        out[self.indices] = self.values
        return out

    def copy(self) -> Self:
        """The same over its own memory."""
        return type(self)(self.values.copy(), self.indices.copy(), self.shape)

    def retain(self, rows: ArrayLike) -> Self:
        """Only those stored rows that are among `rows`, given in any order; a copy. Rows not stored stay zero."""
        rows = _as_indices(rows)
        check_range(rows, self.shape[0], "rows", "rows")
        kept = np.flatnonzero(np.isin(self.indices, rows))
        return type(self)(_rows_of(self.values, kept), self.indices[kept], self.shape)

    def check(self, full: bool = False) -> Self:
        """Itself, or `FormatError`: parts, range, order and uniqueness of the indices; `full` adds finite values."""
        _check_parts(self.values, self.indices, self.shape)
        _check_indices(self.indices, self.shape[0])
        if full:
            check_finite(self.values, "values")
        return self

    def __eq__(self, other: object) -> bool:
        """Whether shape, type, stored rows and values are the same; a stored row of zeros is not a missing one."""
        if not isinstance(other, RowSparse):
            return NotImplemented
        same = self.shape == other.shape and self.dtype == other.dtype
        return same and np.array_equal(self.indices, other.indices) and np.array_equal(self.values, other.values)

    def __repr__(self) -> str:
        return pictures.text(self)

    def _repr_html_(self) -> str:
        return pictures.html(self)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"RowSparse.{name} cannot be set; build a new one: RowSparse(values, indices, shape).")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"RowSparse.{name} cannot be deleted.")

    def __reduce__(self) -> tuple:  # for copy.deepcopy and processes; the default cannot restore frozen slots
        return type(self), (self.values, self.indices, self.shape)


def _as_values(values: ArrayLike) -> np.ndarray:
    """Arrays as they are; lists as float32."""
    return np.asarray(values) if isinstance(values, np.ndarray) else np.asarray(values, np.float32)


def _as_indices(indices: ArrayLike) -> np.ndarray:
    indices = np.asarray(indices)
    if indices.size and indices.dtype.kind not in "iu":
        raise refuse(f"indices has dtype {indices.dtype}", "whole numbers, int64 best", "Call indices.astype(np.int64)")
    return indices.astype(np.int64, copy=False)


def _as_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    try:
        shape = tuple(int(length) for length in shape)
    except (TypeError, ValueError):
        raise refuse(f"shape is {shape!r}", "a tuple of whole numbers", "Write (rows, columns)") from None
    if not shape or min(shape) < 0:
        raise refuse(f"shape is {shape}", "1 or more lengths, none negative", "Write (rows, columns)")
    return shape


def _width(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape[1:], dtype=np.int64))


def _rows_of(source: np.ndarray, index: np.ndarray) -> np.ndarray:
    """`source[index]` along the first axis, for any rank."""
    out = np.empty((len(index), _width(source.shape)), source.dtype)
    kernels.get("take_rows").cpu(source.reshape(len(source), out.shape[1]), index, out)
    return out.reshape(len(index), *source.shape[1:])


def _check_parts(values: np.ndarray, indices: np.ndarray, shape: tuple[int, ...]) -> None:
    check_values(values, "values")
    if indices.ndim != 1:
        raise refuse(f"indices has {indices.ndim} dimensions", "1 dimension", "Call indices.ravel()")
    if values.ndim != len(shape) or values.shape[1:] != shape[1:]:
        allowed = f"({', '.join(['stored', *map(str, shape[1:])])}) for the shape {shape}"
        raise refuse(f"values has shape {values.shape}", allowed, "Correct shape, or reshape the values")
    check_same_length(values, indices, ("values", "indices"))


def _check_indices(indices: np.ndarray, rows: int) -> None:
    check_range(indices, rows, "indices", "rows")
    rising = indices[1:] > indices[:-1]
    if rising.all():
        return
    at = int(np.argmin(rising))
    before, after = indices[at], indices[at + 1]
    advice = "Call RowSparse.from_rows(indices, values, shape), which sorts and sums"
    if before == after:
        came = f"Row {after} is stored twice (indices[{at}] and indices[{at + 1}]), a duplicate"
        raise refuse(came, "each row once", advice)
    came = f"indices is unsorted: {after} (indices[{at + 1}]) comes after {before}"
    raise refuse(came, "ascending order", advice)


def _to_coo(x: RowSparse) -> Coo:
    """The entries other than zero."""
    check_two_dimensions(x.shape, "row_sparse")
    indptr, col, data = kernels.get("dense_to_csr").cpu(x.values)
    row = x.indices[kernels.get("csr_to_coo_rows").cpu(indptr)]
    dtype = index_dtype(*x.shape, len(data))
    return Coo(row.astype(dtype, copy=False), col.astype(dtype, copy=False), data, x.shape)


def _from_coo(coo: Coo) -> RowSparse:
    """Every row that has an entry, zeros included; duplicates are summed."""
    indptr, indices, data = compressed.coo_to_csr(coo)
    stored = np.flatnonzero(indptr[1:] > indptr[:-1])
    ends = np.append(indptr[stored], indptr[-1])  # rows without entries take no room between the others
    values = np.empty((len(stored), coo.shape[1]), data.dtype)
    kernels.get("csr_to_dense").cpu(ends, indices, data, values)
    return RowSparse(values, stored, coo.shape)


def _check(x: RowSparse, full: bool, canonical: bool) -> None:
    x.check(full)


register(
    Format(
        name="row_sparse",
        is_instance=lambda x: isinstance(x, RowSparse),
        check=_check,
        check_indices=RowSparse.check,
        to_coo=_to_coo,
        from_coo=_from_coo,
        nbytes=lambda x: x.nbytes,
        predicted_bytes=lambda rows, columns, nnz, stored, value, index: stored * (columns * value + 8),
        direct={"dense": RowSparse.toarray},
    )
)
