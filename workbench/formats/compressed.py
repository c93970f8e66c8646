"""Code shared by csr and csc: building an array from its components, and calls of the conversion kernels."""

import copy
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse

import kernels
from workbench.formats import contract, numpy_conversions

# The type of indices: int32 as long as it suffices, int64 from there on.


INT32_LIMIT = 2**31 - 1
"""Largest shape or nnz that int32 indices are used for. Tests lower it to reach the 64-bit side with small matrices."""


def index_dtype(*largest: int) -> np.dtype:
    """Return int32, or int64 if one of `largest` (lengths of axes, nnz) exceeds `INT32_LIMIT`."""
    return np.dtype(np.int64 if max(largest) > INT32_LIMIT else np.int32)


def kept_or_widened(dtype: np.dtype, *largest: int) -> np.dtype:
    """Return `dtype`, or int64 if one of `largest` (lengths of axes, nnz) exceeds `INT32_LIMIT`."""
    return np.promote_types(dtype, index_dtype(*largest))


def with_native_order(x: Any) -> Any:
    """Return a matrix whose components have the byte order of this machine: `x` itself, or a new one. O(stored).

    Files written on other machines give arrays of the other order, which no kernel reads. `x` is a NumPy array or a
    SciPy sparse array or matrix, and is not changed; other objects are returned as they are.

    >>> with_native_order(np.ones(1, ">f4")).dtype.isnative
    True
    """
    if isinstance(x, np.ndarray):
        return x if x.dtype.isnative else x.astype(x.dtype.newbyteorder("="))
    if not scipy.sparse.issparse(x):
        return x
    parts = {name: getattr(x, name, None) for name in ("data", "indices", "indptr")}
    foreign = {name: part for name, part in parts.items() if isinstance(part, np.ndarray) and not part.dtype.isnative}
    coords = tuple(map(with_native_order, x.coords)) if x.format == "coo" else ()
    if not foreign and all(one is other for one, other in zip(coords, getattr(x, "coords", ()), strict=False)):
        return x
    made = copy.copy(x)
    for name, part in foreign.items():
        setattr(made, name, with_native_order(part))
    if coords:
        made.coords = coords
    return made


def assemble(
    format: str, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, shape: tuple[int, ...]
) -> scipy.sparse.csr_array | scipy.sparse.csc_array:
    """Build a csr or csc array of `shape` over indptr, indices and data, which are neither copied nor checked.

    SciPy's constructor copies `indices` and `data` if they are views of less than half of a larger array, as in a
    mini-batch, and takes 39 us, as long as a small training step. Here the attributes of an empty array are copied and
    the components put in place, in 2 us; a test compares the result with SciPy's.

    >>> part = np.arange(100, dtype=np.float32)[:4]
    >>> x = assemble("csr", np.array([0, 4]), np.arange(4), part, (1, 4))
    >>> np.shares_memory(x.data, part)
    True
    """
    kind, attributes = _empty(format)
    x: Any = object.__new__(kind)
    shape = (int(shape[0]), int(shape[1]))
    vars(x).update(attributes, _shape=shape, indptr=indptr, indices=indices, data=data)
    return x


@functools.cache
def _empty(format: str) -> tuple[type, dict[str, Any]]:
    """Return (csr_array or csc_array, the attributes of an empty [0, 0] instance of it); cached."""
    kind = getattr(scipy.sparse, f"{format}_array")
    return kind, dict(vars(kind((0, 0))))


def coo_to_csr(coo: contract.Coo) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (indptr [rows + 1], indices [nnz], data [nnz]) of COO entries; order in a row and duplicates are kept."""
    dtype = kept_or_widened(coo.row.dtype, *coo.shape, len(coo.data))
    row, col = coo.row.astype(dtype, copy=False), coo.col.astype(dtype, copy=False)
    return numpy_conversions.get("coo_to_csr", coo.data.dtype)(row, col, coo.data, coo.shape[0])


def csr_to_coo(x: Any) -> contract.Coo:
    """Return the entries of a csr array as a `Coo`, in its order; indices and data are not copied if int32 suffices."""
    dtype = kept_or_widened(x.indices.dtype, *x.shape, x.nnz)
    row = kernels.get("csr_to_coo_rows").trusted(x.indptr.astype(dtype, copy=False))
    return contract.Coo(row, x.indices.astype(dtype, copy=False), x.data, x.shape)


def transposed(x: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (indptr, indices, data) of a csr array compressed by columns, or of a csc one by rows.

    Indices are sorted, duplicates kept.
    """
    minor = x.shape[1] if x.format == "csr" else x.shape[0]
    dtype = kept_or_widened(x.indices.dtype, *x.shape, x.nnz)
    indptr, indices = x.indptr.astype(dtype, copy=False), x.indices.astype(dtype, copy=False)
    return numpy_conversions.get("csr_to_csc", x.dtype)(indptr, indices, x.data, minor)


def parts(x: Any) -> dict[str, np.ndarray]:
    """Return {"data", "indices", "indptr"} of a csr or csc array, not copied."""
    return {"data": x.data, "indices": x.indices, "indptr": x.indptr}


def build(format: str, parts: Mapping[str, np.ndarray], shape: tuple[int, int]) -> Any:
    """Return a csr or csc array over `parts` ("data", "indices", "indptr"), unchecked and not copied.

    Raises FormatError unless `shape` has two dimensions.
    """
    contract.check_two_dimensions(shape, format)
    return assemble(format, parts["indptr"], parts["indices"], parts["data"], shape)


def replace(x: Any, parts: Mapping[str, np.ndarray]) -> None:
    """Replace the arrays of a csr or csc array or matrix in place by `parts`.

    SciPy's cached flags about order are reset.
    """
    vars(x).update(parts)
    for remembered in ("_has_sorted_indices", "_has_canonical_format"):
        vars(x).pop(remembered, None)


def compressed_format(name: str, **differing: Any) -> contract.Format:
    """Return the entry of the compressed format `name`, "csr" or "csc", with the fields that differ between the two."""
    kind = getattr(scipy.sparse, f"{name}_array")
    return contract.Format(
        name,
        is_instance=lambda x: isinstance(x, kind),
        is_sound=contract.is_sound_compressed,
        check=contract.check_compressed,
        check_indices=contract.check_compressed_indices,
        parts=parts,
        build=functools.partial(build, name),
        replace=replace,
        dtypes=contract.SCIPY_VALUES,
        **differing,
    )


def stack_csr(blocks: list[Any]) -> Any:
    """Return CSR arrays one below the other, as wide as the widest; a single one is returned unchanged.

    Raises ValueError for an empty list.
    """
    if len(blocks) == 1:
        return blocks[0]
    nnz = sum(block.nnz for block in blocks)
    rows, width = sum(block.shape[0] for block in blocks), max(block.shape[1] for block in blocks)
    dtype = index_dtype(rows, width, nnz)
    before = np.cumsum([0, *(block.nnz for block in blocks[:-1])])
    starts = [block.indptr[1:].astype(dtype) + dtype.type(at) for block, at in zip(blocks, before, strict=True)]
    indptr = np.concatenate([np.zeros(1, dtype), *starts])
    indices = np.concatenate([block.indices for block in blocks], dtype=dtype, casting="same_kind")
    return assemble("csr", indptr, indices, np.concatenate([block.data for block in blocks]), (rows, width))
