"""Operands for tests of products, selection and layout: usual ones and adversarial ones, and comparisons of results."""

import itertools

import numpy as np
import scipy.sparse

import kernels
from workbench import formats, ops

RNG = np.random.default_rng(3)


def operand(rows: int, columns: int, kind: str, dtype: str) -> np.ndarray:
    """[rows, columns] with empty rows and columns, all empty, or full."""
    values = RNG.standard_normal((rows, columns)).astype(dtype)
    if kind == "full":
        return values
    if kind == "empty":
        return np.zeros_like(values)
    values[RNG.random(values.shape) < 0.5] = 0
    values[1::3] = 0
    values[:, 2::3] = 0
    return values


def adversarial(dense: np.ndarray, format: str) -> object:
    """In that format, stored badly: backwards, a value in two parts, an explicit zero, 64-bit indices, locked."""
    x = formats.to_format(dense, format)
    if format == "row_sparse":
        return locked(x)
    if format == "dense":
        roomy = np.full([2 * length for length in dense.shape], np.nan, dense.dtype)
        roomy[::2, ::2] = dense
        return roomy[::2, ::2]
    coo = x.tocoo()
    row, col, data = coo.row[::-1], coo.col[::-1], coo.data[::-1].copy()
    if row.size:
        last = dense.shape[0] - 1, dense.shape[1] - 1
        row, col = np.append(row, (row[0], last[0])), np.append(col, (col[0], last[1]))
        data = np.append(data, np.array((1.5, 0), data.dtype))
        data[0] -= 1.5
    bad = scipy.sparse.coo_array((data, (row.astype(np.int64), col.astype(np.int64))), shape=dense.shape)
    if format == "coo":
        return bad
    parts = kernels.get("coo_to_csr").cpu(*((row, col) if format == "csr" else (col, row)), data, len(x.indptr) - 1)
    kind = scipy.sparse.csr_array if format == "csr" else scipy.sparse.csc_array
    bad = kind((parts[2], parts[1].astype(np.int64), parts[0].astype(np.int64)), shape=dense.shape)
    return locked(bad)


def locked(x: object) -> object:
    """The same, its parts read-only."""
    for part in formats.get(formats.format_of(x)).parts(x).values():
        part.flags.writeable = False
    return x


def dense_of(x: object) -> np.ndarray:
    return x if isinstance(x, np.ndarray) else x.toarray()


def close(came: object, expected: np.ndarray) -> None:
    came = dense_of(came)
    assert came.shape == expected.shape
    assert came.dtype == expected.dtype
    np.testing.assert_allclose(came, expected, atol=1e-4 if expected.dtype == np.float32 else 1e-12)


def turned(x: np.ndarray, transposed: bool) -> np.ndarray:
    return np.ascontiguousarray(x.T) if transposed else x


def canonical(x: object) -> None:
    formats.check(x, full=True)


def usual(rows: int = 7, columns: int = 5, seed: int = 0, dtype: str = "float32") -> np.ndarray:
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random((rows, columns)) < 0.4, rng.standard_normal((rows, columns)), 0).astype(dtype)
    dense[1:2] = 0
    return dense


def same(came: object, expected: np.ndarray, format: str) -> None:
    assert formats.format_of(came) == format
    formats.check(came)
    if format in ("csr", "csc"):
        formats.check(came, full=bool(np.isfinite(expected).all()))
    dense = came if format == "dense" else came.toarray()
    assert dense.dtype == expected.dtype
    np.testing.assert_array_equal(dense, expected)


def strict(call, *arrays, **params):
    with ops.settings(strict=True):
        return call(*map(locked, arrays), **params)


def shares_memory(one: object, other: object) -> bool:
    parts = [[*formats.get(formats.format_of(x)).parts(x).values()] for x in (one, other)]
    return any(np.shares_memory(a, b) for a, b in itertools.product(*parts))


def explicit_zeros() -> scipy.sparse.csr_array:
    return scipy.sparse.csr_array(
        (np.float32([0, 1, 0, 2]), np.int32([1, 2, 0, 2]), np.int32([0, 2, 2, 4])), shape=(3, 4)
    )
