"""row_sparse: whole rows of an array of any rank, the others being zero. Gradients of sparse inputs are like that.

No library has this format, so it is a class of ours.

>>> import numpy as np
>>> x = RowSparse(np.float32([[1, 2], [3, 4]]), np.array([1, 4]), (6, 2))
>>> x
RowSparse(shape=(6, 2), stored_rows=2, dtype=float32)
  row 1: [1. 2.]
  row 4: [3. 4.]
>>> x[4], x[3:].indices, x.retain([0, 4]).indices
(array([3., 4.], dtype=float32), array([1]), array([0, 4]))
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NoReturn, Self, final

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

import kernels
from workbench.formats import arrays, compressed, moves, pictures
from workbench.formats.checks import check_finite, check_range, check_two_dimensions, check_values
from workbench.formats.compressed import index_dtype
from workbench.formats.contract import Coo, Format, FormatError, refuse, register
from workbench.formats.row_parts import (
    as_indices,
    as_values,
    check_indices,
    check_parts,
    flat,
    is_sound,
    row_number,
    row_numbers,
    row_shape,
    rows_of,
    slice_rows,
    spread,
)

# Arithmetic signs of `RowSparse`: `+ - * / ** % @ < <= > >= .T`, `abs` and unary minus, computed by `workbench.ops`.
#
# Operators are built on formats, so the arrows allow no import of them here. `workbench.ops`, when it is imported, puts
# its functions in by `fill`; until then a sign raises a `TypeError` that says so.


SIGNS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "power": "**",
    "mod": "%",
    "dot": "@",
    "negative": "unary -",
    "abs": "abs",
    "transpose": ".T",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
"""Names that `fill` knows, and the sign that each stands behind."""

_functions: dict[str, Callable] = {}


def fill(functions: Mapping[str, Callable]) -> None:
    """Have signs computed by these functions, named as in `SIGNS`; other names are refused (`FormatError`)."""
    if unknown := sorted(set(functions) - set(SIGNS)):
        raise FormatError(f"There is no sign for {', '.join(unknown)}; the names are {', '.join(SIGNS)}.")
    _functions.update(functions)


def apply(name: str, *operands: Any) -> Any:
    """Apply the function behind the sign to its operands; a `TypeError` where none was put in."""
    if name not in _functions:
        raise TypeError(f"{SIGNS[name]} of row_sparse arrays is computed by workbench.ops; write: import workbench.ops")
    return _functions[name](*operands)


class Arithmetic:
    """The signs, for a class to inherit.

    `x += y` and the like compute `x + y` and assign it to `x`, which keeps its format and type.
    """

    __slots__ = ()
    __array_ufunc__ = None  # NumPy then leaves `array + x` to `__radd__`

    def __add__(self, other: Any) -> Any:
        return apply("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return apply("add", other, self)

    def __iadd__(self, other: Any) -> Self:
        return arrays.assign(self, apply("add", self, other))

    def __sub__(self, other: Any) -> Any:
        return apply("subtract", self, other)

    def __rsub__(self, other: Any) -> Any:
        return apply("subtract", other, self)

    def __isub__(self, other: Any) -> Self:
        return arrays.assign(self, apply("subtract", self, other))

    def __mul__(self, other: Any) -> Any:
        return apply("multiply", self, other)

    def __rmul__(self, other: Any) -> Any:
        return apply("multiply", other, self)

    def __imul__(self, other: Any) -> Self:
        return arrays.assign(self, apply("multiply", self, other))

    def __truediv__(self, other: Any) -> Any:
        return apply("divide", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return apply("divide", other, self)

    def __itruediv__(self, other: Any) -> Self:
        return arrays.assign(self, apply("divide", self, other))

    def __pow__(self, other: Any) -> Any:
        return apply("power", self, other)

    def __rpow__(self, other: Any) -> Any:
        return apply("power", other, self)

    def __mod__(self, other: Any) -> Any:
        return apply("mod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return apply("mod", other, self)

    def __matmul__(self, other: Any) -> Any:
        return apply("dot", self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return apply("dot", other, self)

    def __neg__(self) -> Any:
        return apply("negative", self)

    def __abs__(self) -> Any:
        return apply("abs", self)

    @property
    def T(self) -> Any:  # noqa: N802 - as NumPy has it
        """The transpose, in the format that `ops.transpose` gives."""
        return apply("transpose", self)

    def __lt__(self, other: Any) -> Any:
        return apply("less", self, other)

    def __le__(self, other: Any) -> Any:
        return apply("less_equal", self, other)

    def __gt__(self, other: Any) -> Any:
        return apply("greater", self, other)

    def __ge__(self, other: Any) -> Any:
        return apply("greater_equal", self, other)


@final
class RowSparse(Arithmetic):
    """Rows `indices` of an array of `shape` are `values`, all other rows are zero.

    `values` [stored, *shape[1:]], of any type that formats hold; `indices` int64 [stored], sorted, unique. `shape` may
    be left out where an index says how many rows there are. Arrays given are not copied, so that they are checked again
    wherever a RowSparse is read; the fields cannot be set anew, but the values may be written to, and `x[:] = value`
    gives all of it other values. Malformed parts are refused (`FormatError`); `from_rows` takes them unsorted and
    duplicated. O(stored), independent of the width.

    `x[i]` is row i, dense; `x[a:b]` a RowSparse that shares the values, as slices of NumPy arrays do, but for steps
    other than 1 and -1; iteration gives the rows. `+ - * / ** % @ < <= > >=` are computed by `workbench.ops`, with the
    formats of its tables; `==` tells whether two are the same as a whole. There is no `len`, as with SciPy's arrays:
    NumPy and SciPy would take it for a list and make it dense, row by row.
    """

    __slots__ = ("indices", "shape", "values")
    __hash__ = None  # type: ignore[assignment]  # as Python has it for classes whose objects change
    format: Final = "row_sparse"

    indices: np.ndarray
    shape: tuple[int, ...]
    values: np.ndarray

    def __init__(self, values: ArrayLike, indices: ArrayLike, shape: tuple[int, ...] | None = None) -> None:
        values, indices = as_values(values), as_indices(indices)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "indices", indices)
        object.__setattr__(self, "shape", row_shape(shape, values, indices))
        self.check()

    @classmethod
    def assemble(cls, values: np.ndarray, indices: np.ndarray, shape: tuple[int, ...]) -> Self:
        """An array of parts that are right by construction, as kernels make them: nothing is checked. O(1)."""
        result = object.__new__(cls)
        object.__setattr__(result, "values", values)
        object.__setattr__(result, "indices", indices)
        object.__setattr__(result, "shape", shape)
        return result

    @classmethod
    def from_dense(cls, dense: np.ndarray) -> Self:
        """The rows of `dense` [rows, ...] that hold anything but zeros (NaN is not zero); a copy. O(size)."""
        dense = np.asarray(dense)
        check_values(dense, "The dense array")
        if not dense.ndim:
            raise refuse("The dense array has no dimension", "1 or more", "Call x.reshape(1)")
        indices = np.flatnonzero(dense.any(axis=tuple(range(1, dense.ndim))))
        return cls.assemble(rows_of(dense, indices), indices, dense.shape)

    @classmethod
    def from_rows(cls, indices: ArrayLike, values: ArrayLike, shape: tuple[int, ...] | None = None) -> Self:
        """Rows in any order, those with the same index summed. O(stored * (log stored + width)).

        >>> RowSparse.from_rows([4, 1, 4], np.float32([[1], [2], [3]]), (6, 1))
        RowSparse(shape=(6, 1), stored_rows=2, dtype=float32)
          row 1: [2.]
          row 4: [4.]
        """
        indices, values = as_indices(indices), as_values(values)
        shape = row_shape(shape, values, indices)
        check_parts(values, indices, shape)
        check_range(indices, shape[0], "indices", "rows")
        unique, merged = moves.get("merge_rows", values.dtype)(indices, flat(values))
        return cls.assemble(merged.reshape(len(unique), *shape[1:]), unique, shape)

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
        self.check()
        return spread(self.values, self.indices, self.shape[0])

    def to_dense(self) -> np.ndarray:
        """The dense array of `shape`, a copy, as by `toarray`, SciPy's word for it."""
        return self.toarray()

    def to_format(self, format: str) -> Any:
        """The array in the format of that name, by `formats.to_format`; itself where it is row_sparse."""
        return arrays.to_format(self, format)

    def copy(self) -> Self:
        """A copy over memory of its own."""
        return arrays.copy(self)

    def astype(self, dtype: DTypeLike, copy: bool = True) -> Self:
        """The array with values of another type and the same rows stored, by `formats.astype`."""
        return arrays.astype(self, dtype, copy)

    def retain(self, rows: ArrayLike) -> Self:
        """Exactly the rows asked for are stored: as they are here, or zeros where they are not stored here. A copy.

        `rows` [any] are taken in any order and more than once, of a floating-point type too where it holds them
        exactly; the result's indices are sorted and unique. Where no row is stored here, none is in the result. Rows
        out of range are refused (`FormatError`). O(rows log rows + width * rows).
        """
        self.check()
        numbers = row_numbers(rows, self.shape[0])
        if not len(self.indices):
            return self.copy()
        kept, values = moves.get("retain_rows", self.dtype)(self.indices, flat(self.values), numbers)
        if len(kept) < len(numbers):
            values = spread(values, np.searchsorted(numbers, kept), len(numbers))
        return type(self).assemble(values.reshape(len(numbers), *self.shape[1:]), numbers.copy(), self.shape)

    def check(self, full: bool = False) -> Self:
        """Itself, or `FormatError`: parts, range, order and uniqueness of the indices; `full` adds finite values."""
        if not is_sound(self.values, self.indices, self.shape):
            check_parts(self.values, self.indices, self.shape)
            check_indices(self.indices, self.shape[0])
        if full:
            check_finite(self.values, "values")
        return self

    def __bool__(self) -> NoReturn:
        raise ValueError("A RowSparse is neither true nor false. Ask for x.nnz, or compare with ==.")

    def __getitem__(self, key: int | slice) -> Any:
        if isinstance(key, slice):
            named = range(self.shape[0])[key]
            values, indices = slice_rows(self.values, self.indices, named)
            return type(self).assemble(values, indices, (len(named), *self.shape[1:]))
        row = row_number(key, self.shape[0])
        place = int(np.searchsorted(self.indices, row))
        if place < len(self.indices) and self.indices[place] == row:
            return self.values[place].copy()
        return np.zeros(self.shape[1:], self.dtype)[()]

    def __setitem__(self, key: slice, value: Any) -> None:
        if key is not Ellipsis and not (isinstance(key, slice) and key == slice(None)):
            raise IndexError(
                f"RowSparse[{key!r}] was assigned to. Allowed: x[:] = value, which replaces all of it. "
                "Write to x.values for stored rows, or build a new one: RowSparse(values, indices, shape)."
            )
        arrays.assign(self, value)

    def __iter__(self) -> Iterator[Any]:
        return (self[row] for row in range(self.shape[0]))

    def __eq__(self, other: object) -> bool:
        """Whether shape, type, stored rows and values are the same; a stored row of zeros is not a missing one."""
        if not isinstance(other, RowSparse):
            return NotImplemented
        same = self.shape == other.shape and self.dtype == other.dtype
        return same and np.array_equal(self.indices, other.indices) and np.array_equal(self.values, other.values)

    def __repr__(self) -> str:
        return pictures.text(self)

    def _repr_html_(self) -> str:
        return pictures.picture(self)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"RowSparse.{name} cannot be set; build a new one: RowSparse(values, indices, shape).")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"RowSparse.{name} cannot be deleted.")

    def __reduce__(self) -> tuple:  # for copy.deepcopy and processes; the default cannot restore frozen slots
        return type(self), (self.values, self.indices, self.shape)


def _to_coo(x: RowSparse) -> Coo:
    """The entries other than zero."""
    check_two_dimensions(x.shape, "row_sparse")
    indptr, col, data = moves.get("dense_to_csr", x.dtype)(x.values)
    row = x.indices[kernels.get("csr_to_coo_rows").trusted(indptr)]
    dtype = index_dtype(*x.shape, len(data))
    return Coo(row.astype(dtype, copy=False), col.astype(dtype, copy=False), data, x.shape)


def _from_coo(coo: Coo) -> RowSparse:
    """Every row that has an entry, zeros included; duplicates are summed."""
    indptr, indices, data = compressed.coo_to_csr(coo)
    stored = np.flatnonzero(indptr[1:] > indptr[:-1])
    ends = np.append(indptr[stored], indptr[-1])  # rows without entries take no room between the others
    values = np.empty((len(stored), coo.shape[1]), data.dtype)
    moves.get("csr_to_dense", data.dtype)(ends, indices, data, values)
    return RowSparse.assemble(values, stored, coo.shape)


def _zeros(shape: tuple[int, ...], dtype: np.dtype) -> RowSparse:
    shape = row_shape(shape, np.empty(0), np.empty(0))
    return RowSparse.assemble(np.empty((0, *shape[1:]), dtype), np.empty(0, np.int64), shape)


def _replace(x: RowSparse, parts: Mapping[str, np.ndarray]) -> None:
    for name, part in parts.items():
        object.__setattr__(x, name, part)


register(
    Format(
        name="row_sparse",
        is_instance=lambda x: isinstance(x, RowSparse),
        is_sound=lambda x: is_sound(x.values, x.indices, x.shape),
        check=lambda x, full, canonical: x.check(full),
        check_indices=RowSparse.check,
        to_coo=_to_coo,
        from_coo=_from_coo,
        parts=lambda x: {"values": x.values, "indices": x.indices},
        build=lambda parts, shape: RowSparse.assemble(parts["values"], parts["indices"], shape),
        replace=_replace,
        predicted_bytes=lambda rows, columns, nnz, stored, value, index: stored * (columns * value + 8),
        zeros=_zeros,
        direct={"dense": RowSparse.toarray},
    )
)
