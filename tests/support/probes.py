"""What probes of libraries share: small matrices with one fault each, and outcomes by what comes back or is raised."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse


def small(seed: int = 0, rows: int = 30, columns: int = 5, dtype: Any = np.float32) -> scipy.sparse.csr_array:
    """A canonical CSR array of positive and negative numbers, four entries a row or fewer."""
    x = repeated(seed, rows, columns, dtype)
    x.sum_duplicates()
    return x


def repeated(seed: int = 0, rows: int = 30, columns: int = 5, dtype: Any = np.float32) -> scipy.sparse.csr_array:
    """The rows of `small` as four entries each, of which some have the column of another.

    SciPy's `astype` would sum them: they are made in the type that a library computes in.
    """
    generator = np.random.default_rng(seed)
    indices = generator.integers(0, columns, 4 * rows).astype(np.int32)
    values = generator.standard_normal(4 * rows).astype(np.float32).astype(dtype)
    return scipy.sparse.csr_array((values, indices, np.arange(0, 4 * rows + 1, 4, dtype=np.int32)), (rows, columns))


def unsorted(x: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """The same matrix with the entries of each row in the opposite order."""
    order = np.concatenate([np.arange(start, end)[::-1] for start, end in zip(x.indptr, x.indptr[1:], strict=False)])
    return scipy.sparse.csr_array((x.data[order], x.indices[order], x.indptr), x.shape)


def wide(x: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """The same matrix with int64 indices."""
    x = x.copy()
    x.indices, x.indptr = x.indices.astype(np.int64), x.indptr.astype(np.int64)
    return x


def labels(rows: int = 30) -> np.ndarray:
    return np.arange(rows) % 2


def right(value: Any, expected: Any, otherwise: str = "wrong") -> str:
    """Return "sparse" if both are equal up to rounding, else `otherwise`."""
    return "sparse" if np.allclose(value, expected, rtol=1e-4, atol=1e-5) else otherwise


def refusal(call: Callable[[], Any], *errors: type[Exception], text: str = "") -> str:
    """Return "refuses" if the call raises one of the errors with `text` in its message; "sparse" if it returns."""
    try:
        call()
    except errors as error:
        if text not in str(error):
            raise
        return "refuses"
    return "sparse"


def peak_bytes(call: Callable[[], Any]) -> int:
    """Return the most bytes that NumPy and Python held at once while the call ran."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
