"""row_sparse: some whole rows of an array of any rank are stored, the others are zero. Gradients of sparse inputs are
so.

No library has this format, so it is a class of this package.

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
from types import EllipsisType
from typing import Any, Final, NoReturn, Self, final

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

import kernels
from workbench.formats import arrays, compressed, contract, numpy_conversions
from workbench.formats.compressed import index_dtype
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

# Signs of `RowSparse` arrays and of symbols: `+ - * / ** % @ < <= > >= .T`, `abs` and unary minus, computed by
# `workbench.ops`.
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
    """Register the functions behind the arithmetic operators, by name as in `SIGNS`.

    Raises FormatError for other names.
    """
    if unknown := sorted(set(functions) - set(SIGNS)):
        raise contract.FormatError(f"There is no sign for {', '.join(unknown)}; the names are {', '.join(SIGNS)}.")
    _functions.update(functions)


def apply(name: str, *operands: Any) -> Any:
    """Return the result of the function registered for the operator `name`. Raises TypeError if none was registered."""
    if name not in _functions:
        raise TypeError(f"{SIGNS[name]} of row_sparse arrays is computed by workbench.ops; write: import workbench.ops")
    return _functions[name](*operands)


def _one_way(name: str) -> Callable[[Any, Any], Any]:
    """Return a method that applies the operator `name` to self and another operand."""

    def method(self: Any, other: Any) -> Any:
        """Return the operator's result on (self, other)."""
        return apply(name, self, other)

    method.__doc__ = f"Return ops.{name}(self, other)."
    return method


def _both_ways(name: str) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """Return the methods that apply the operator `name` to (self, other), and to (other, self)."""

    def reflected(self: Any, other: Any) -> Any:
        """Return the operator's result on (other, self)."""
        return apply(name, other, self)

    reflected.__doc__ = f"Return ops.{name}(other, self)."
    return _one_way(name), reflected


class Arithmetic:
    """Mixin with Python's operators on arrays, by `workbench.ops`; for `RowSparse` and for symbols of a graph.

    Comparisons return 0 and 1, element by element.
    """

    __slots__ = ()
    __array_ufunc__ = None  # NumPy then leaves `array + x` to `__radd__`

    __add__, __radd__ = _both_ways("add")
    __sub__, __rsub__ = _both_ways("subtract")
    __mul__, __rmul__ = _both_ways("multiply")
    __truediv__, __rtruediv__ = _both_ways("divide")
    __pow__, __rpow__ = _both_ways("power")
    __mod__, __rmod__ = _both_ways("mod")
    __matmul__, __rmatmul__ = _both_ways("dot")
    __lt__, __gt__ = _one_way("less"), _one_way("greater")
    __le__, __ge__ = _one_way("less_equal"), _one_way("greater_equal")

    def __neg__(self) -> Any:
        """Return -self, by `ops.negative`."""
        return apply("negative", self)

    def __abs__(self) -> Any:
        """Return the absolute values, by `ops.abs`."""
        return apply("abs", self)


ROWS_SHOWN = 6
"""Stored rows that are shown as text, of more the first and the last."""


@final
class RowSparse(Arithmetic):
    """Array of `shape` of which the rows `indices` are stored in `values`; all other rows are zero.

    Parameters
    ----------
    values : array_like, ``[stored, *shape[1:]]``
        Stored rows, of any value dtype; not copied. Lists become float32.
    indices : array_like, int64 [stored]
        Row indices, sorted and unique; not copied. Use `from_rows` for unsorted or repeated ones.
    shape : tuple of int, optional
        Shape of the whole array; ``(largest index + 1, *values.shape[1:])`` if omitted.

    Raises
    ------
    FormatError
        If a component is invalid. O(stored), independent of the width.

    Notes
    -----
    Components are checked again wherever a RowSparse is read, since they are shared with the caller. Attributes cannot
    be assigned; values may be written to, and `x[:] = value` replaces all of them. `x[i]` is row i, dense; `x[a:b]` a
    RowSparse that shares the values unless the step is other than 1 and -1; iteration yields the rows. `+ - * / ** % @`
    and comparisons are computed by `workbench.ops`; `x += y` and the like assign `x + y` to `x`, which keeps its format
    and dtype; `==` returns whether two arrays are equal as a whole. There is no `len`, as with SciPy's arrays: NumPy
    and SciPy would treat it as a list and make it dense, row by row.

    Examples
    --------
    >>> RowSparse(np.float32([[1, 2]]), [1], (3, 2)).toarray().tolist()
    [[0.0, 0.0], [1.0, 2.0], [0.0, 0.0]]
    """

    __slots__ = ("indices", "shape", "values")
    __hash__ = None  # type: ignore[assignment]  # as Python has it for classes whose objects change
    format: Final = "row_sparse"

    indices: np.ndarray
    shape: tuple[int, ...]
    values: np.ndarray

    def __init__(self, values: ArrayLike, indices: ArrayLike, shape: tuple[int, ...] | None = None) -> None:
        """Build an array over `values` and `indices`, not copied, and validate it; see the class.

        Raises FormatError.
        """
        values, indices = as_values(values), as_indices(indices)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "indices", indices)
        object.__setattr__(self, "shape", row_shape(shape, values, indices))
        self.check()

    def __iadd__(self, other: Any) -> Self:
        """Overwrite this array by self + other, in its format and dtype, and return it."""
        return arrays.assign(self, apply("add", self, other))

    def __isub__(self, other: Any) -> Self:
        """Overwrite this array by self - other, in its format and dtype, and return it."""
        return arrays.assign(self, apply("subtract", self, other))

    def __imul__(self, other: Any) -> Self:
        """Overwrite this array by self * other, in its format and dtype, and return it."""
        return arrays.assign(self, apply("multiply", self, other))

    def __itruediv__(self, other: Any) -> Self:
        """Overwrite this array by self / other, in its format and dtype, and return it."""
        return arrays.assign(self, apply("divide", self, other))

    @property
    def T(self) -> Any:  # noqa: N802 - as NumPy has it
        """Return the transpose, in the format that `ops.transpose` returns."""
        return apply("transpose", self)

    @classmethod
    def assemble(cls, values: np.ndarray, indices: np.ndarray, shape: tuple[int, ...]) -> Self:
        """Build an array from components that are known to be valid; nothing is checked or copied. O(1).

        Parameters
        ----------
        values : ndarray, [stored, *shape[1:]]
            Stored rows.
        indices : ndarray, int64 [stored]
            Row indices, sorted and unique.
        shape : tuple of int
            Shape of the whole array.

        Returns
        -------
        RowSparse
            Array over the same memory.

        Examples
        --------
        >>> RowSparse.assemble(np.ones((1, 2)), np.array([1]), (3, 2)).nnz
        2
        """
        result = object.__new__(cls)
        object.__setattr__(result, "values", values)
        object.__setattr__(result, "indices", indices)
        object.__setattr__(result, "shape", shape)
        return result

    @classmethod
    def from_dense(cls, dense: np.ndarray) -> Self:
        """Store the rows of a dense array that have a nonzero element (NaN counts as one). O(size).

        Parameters
        ----------
        dense : ndarray, [rows, ...]
            Array of one or more dimensions.

        Returns
        -------
        RowSparse
            A copy.

        Examples
        --------
        >>> RowSparse.from_dense(np.float32([[0, 0], [1, 2]])).indices
        array([1])
        """
        dense = np.asarray(dense)
        contract.check_values(dense, "The dense array")
        if not dense.ndim:
            raise contract.refuse("The dense array has no dimension", "1 or more", "Call x.reshape(1)")
        indices = np.flatnonzero(dense.any(axis=tuple(range(1, dense.ndim))))
        return cls.assemble(rows_of(dense, indices), indices, dense.shape)

    @classmethod
    def from_rows(cls, indices: ArrayLike, values: ArrayLike, shape: tuple[int, ...] | None = None) -> Self:
        """Build an array from rows in any order; rows with the same index are summed. O(stored * (log stored + width)).

        Parameters
        ----------
        indices : array_like, [stored]
            Row indices, unsorted, repetitions allowed.
        values : array_like, ``[stored, *shape[1:]]``
            The rows.
        shape : tuple of int, optional
            Shape of the whole array; ``(largest index + 1, *values.shape[1:])`` if omitted.

        Returns
        -------
        RowSparse
            A copy with sorted, unique indices.

        Raises
        ------
        FormatError
            If a component is invalid.

        Examples
        --------
        >>> RowSparse.from_rows([4, 1, 4], np.float32([[1], [2], [3]]), (6, 1))
        RowSparse(shape=(6, 1), stored_rows=2, dtype=float32)
          row 1: [2.]
          row 4: [4.]
        """
        indices, values = as_indices(indices), as_values(values)
        shape = row_shape(shape, values, indices)
        check_parts(values, indices, shape)
        contract.check_range(indices, shape[0], "indices", "rows")
        unique, merged = numpy_conversions.get("merge_rows", values.dtype)(indices, flat(values))
        return cls.assemble(merged.reshape(len(unique), *shape[1:]), unique, shape)

    @property
    def dtype(self) -> np.dtype:
        """Return the dtype of the values."""
        return self.values.dtype

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return len(self.shape)

    @property
    def nnz(self) -> int:
        """Return the number of stored scalars, explicit zeros included."""
        return self.values.size

    @property
    def nbytes(self) -> int:
        """Return the bytes of the stored rows and their indices."""
        return self.values.nbytes + self.indices.nbytes

    def toarray(self) -> np.ndarray:
        """Return the dense array of `shape`; a copy. O(size).

        Returns
        -------
        ndarray
            Array of `shape` and `dtype`.

        Examples
        --------
        >>> RowSparse(np.float32([[1]]), [1], (2, 1)).toarray().tolist()
        [[0.0], [1.0]]
        """
        self.check()
        return spread(self.values, self.indices, self.shape[0])

    def to_dense(self) -> np.ndarray:
        """Return the dense array of `shape`; a copy. The same as `toarray`, the name that SciPy uses."""
        return self.toarray()

    def to_format(self, format: str) -> Any:
        """Return the array in `format` by `formats.to_format`: itself for "row_sparse". Raises FormatError."""
        return arrays.to_format(self, format)

    def copy(self) -> Self:
        """Return a copy with its own memory for values and indices."""
        return arrays.copy(self)

    def astype(self, dtype: DTypeLike, copy: bool = True) -> Self:
        """Return the array with values cast to `dtype` and the same rows stored, by `formats.astype`.

        See there for `copy`.
        """
        return arrays.astype(self, dtype, copy)

    def retain(self, rows: ArrayLike) -> Self:
        """Select rows: return an array that stores exactly `rows`, zero where a row is not stored here.

        Parameters
        ----------
        rows : array_like of int
            Row indices in any order, repetitions allowed; floats are accepted if they are whole numbers.

        Returns
        -------
        RowSparse
            A copy with sorted, unique indices; without stored rows if this array stores none.

        Raises
        ------
        FormatError
            If a row is out of range. O(rows log rows + width * rows).

        Examples
        --------
        >>> RowSparse(np.float32([[1], [2]]), [1, 4], (6, 1)).retain([0, 4]).values.tolist()
        [[0.0], [2.0]]
        """
        self.check()
        numbers = row_numbers(rows, self.shape[0])
        if not len(self.indices):
            return self.copy()
        kept, values = numpy_conversions.get("retain_rows", self.dtype)(self.indices, flat(self.values), numbers)
        if len(kept) < len(numbers):
            values = spread(values, np.searchsorted(numbers, kept), len(numbers))
        return type(self).assemble(values.reshape(len(numbers), *self.shape[1:]), numbers.copy(), self.shape)

    def check(self, full: bool = False) -> Self:
        """Validate components, index range, order and uniqueness; with `full` also that values are finite.

        Parameters
        ----------
        full : bool, default False
            Also check that values are finite. O(size of values).

        Returns
        -------
        RowSparse
            The array itself.

        Raises
        ------
        FormatError
            If a check fails.

        Examples
        --------
        >>> RowSparse(np.float32([[1]]), [1], (2, 1)).check(full=True).nnz
        1
        """
        if not is_sound(self.values, self.indices, self.shape):
            check_parts(self.values, self.indices, self.shape)
            check_indices(self.indices, self.shape[0])
        if full:
            contract.check_finite(self.values, "values")
        return self

    def __bool__(self) -> NoReturn:
        """Raise ValueError: an array has no truth value."""
        raise ValueError("A RowSparse is neither true nor false. Ask for x.nnz, or compare with ==.")

    def __getitem__(self, key: int | slice) -> Any:
        """Return row `key` as a dense copy, or for a slice a RowSparse.

        IndexError for other keys or a row out of range.
        """
        if isinstance(key, slice):
            named = range(self.shape[0])[key]
            values, indices = slice_rows(self.values, self.indices, named)
            return type(self).assemble(values, indices, (len(named), *self.shape[1:]))
        row = row_number(key, self.shape[0])
        place = int(np.searchsorted(self.indices, row))
        if place < len(self.indices) and self.indices[place] == row:
            return self.values[place].copy()
        return np.zeros(self.shape[1:], self.dtype)[()]

    def __setitem__(self, key: slice | EllipsisType, value: Any) -> None:
        """Overwrite all of the array by `value`, for x[:] = value and x[...] = value; IndexError for other keys."""
        if key is not Ellipsis and not (isinstance(key, slice) and key == slice(None)):
            raise IndexError(
                f"RowSparse[{key!r}] was assigned to. Allowed: x[:] = value, which replaces all of it. "
                "Write to x.values for stored rows, or build a new one: RowSparse(values, indices, shape)."
            )
        arrays.assign(self, value)

    def __iter__(self) -> Iterator[Any]:
        """Yield all rows as dense arrays, rows that are not stored as zeros."""
        return (self[row] for row in range(self.shape[0]))

    def __eq__(self, other: object) -> bool:
        """Return whether shape, dtype, stored rows and values are equal; NotImplemented for other classes.

        A stored row of zeros differs from a missing one.
        """
        if not isinstance(other, RowSparse):
            return NotImplemented
        same = self.shape == other.shape and self.dtype == other.dtype
        return same and np.array_equal(self.indices, other.indices) and np.array_equal(self.values, other.values)

    def __repr__(self) -> str:
        """Return shape, dtype and the first and last stored rows as text."""
        head = f"RowSparse(shape={self.shape}, stored_rows={len(self.indices)}, dtype={self.dtype})"
        stored = len(self.indices)
        shown = list(range(stored))
        if stored > ROWS_SHOWN:
            shown = [*range(ROWS_SHOWN // 2), *range(stored - ROWS_SHOWN // 2, stored)]
        starts = [f"  row {self.indices[at]}: " for at in shown]
        lines = [
            start + np.array2string(np.asarray(self.values[at]), threshold=8, edgeitems=2, prefix=start, precision=4)
            for start, at in zip(starts, shown, strict=True)
        ]
        if stored > ROWS_SHOWN:
            lines.insert(ROWS_SHOWN // 2, f"  ... {stored - ROWS_SHOWN} more")
        return "\n".join([head, *lines])

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        """Raise AttributeError: attributes cannot be assigned."""
        raise AttributeError(f"RowSparse.{name} cannot be set; build a new one: RowSparse(values, indices, shape).")

    def __delattr__(self, name: str) -> NoReturn:
        """Raise AttributeError: attributes cannot be deleted."""
        raise AttributeError(f"RowSparse.{name} cannot be deleted.")

    def __reduce__(self) -> tuple:  # for copy.deepcopy and processes; the default cannot restore frozen slots
        """Return (class, arguments) for copying and pickling."""
        return type(self), (self.values, self.indices, self.shape)


def _to_coo(x: RowSparse) -> contract.Coo:
    """Return the nonzero elements of the stored rows as a `Coo`. Raises FormatError unless it has two dimensions."""
    contract.check_two_dimensions(x.shape, "row_sparse")
    indptr, col, data = numpy_conversions.get("dense_to_csr", x.dtype)(x.values)
    row = x.indices[kernels.get("csr_to_coo_rows").trusted(indptr)]
    dtype = index_dtype(*x.shape, len(data))
    return contract.Coo(row.astype(dtype, copy=False), col.astype(dtype, copy=False), data, x.shape)


def _from_coo(coo: contract.Coo) -> RowSparse:
    """Return COO entries as a RowSparse that stores every row with an entry, also zeros; duplicates are summed."""
    indptr, indices, data = compressed.coo_to_csr(coo)
    stored = np.flatnonzero(indptr[1:] > indptr[:-1])
    ends = np.append(indptr[stored], indptr[-1])  # rows without entries take no room between the others
    values = np.empty((len(stored), coo.shape[1]), data.dtype)
    numpy_conversions.get("csr_to_dense", data.dtype)(ends, indices, data, values)
    return RowSparse.assemble(values, stored, coo.shape)


def _zeros(shape: tuple[int, ...], dtype: np.dtype) -> RowSparse:
    """Return a RowSparse of `shape` without stored rows."""
    shape = row_shape(shape, np.empty(0), np.empty(0))
    return RowSparse.assemble(np.empty((0, *shape[1:]), dtype), np.empty(0, np.int64), shape)


def _replace(x: RowSparse, parts: Mapping[str, np.ndarray]) -> None:
    """Replace the arrays of `x` named in `parts` ("values", "indices") in place, unchecked."""
    for name, part in parts.items():
        object.__setattr__(x, name, part)


contract.register(
    contract.Format(
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
