"""SciPy: products, sums and selections of CSR, beside NumPy."""

import numpy as np

from benchmarks.libraries import Calls, Data, Operation

OPERATIONS: list[Operation] = []


def columns(data: Data) -> Calls:
    """Return CSR @ W of 64 columns."""
    return lambda: data.csr @ data.w, lambda: data.dense @ data.w


def vector(data: Data) -> Calls:
    """Return CSR @ v."""
    return lambda: data.csr @ data.v, lambda: data.dense @ data.v


def transposed(data: Data) -> Calls:
    """Return X.T @ g, the gradient of a linear model."""
    g = data.count
    return lambda: data.csr.T @ g, lambda: data.dense.T @ g


def gram(data: Data) -> Calls:
    """Return X.T @ X."""
    return lambda: data.csr.T @ data.csr, lambda: data.dense.T @ data.dense


def permuted(data: Data) -> Calls:
    """Return all rows in another order."""
    order = np.random.default_rng(0).permutation(len(data.y))
    return lambda: data.csr[order], lambda: data.dense[order]


def selected(data: Data) -> Calls:
    """Return every second column."""
    chosen = np.arange(0, data.dense.shape[1], 2)
    return lambda: data.csr[:, chosen], lambda: data.dense[:, chosen]


def summed(data: Data) -> Calls:
    """Return the sum of each column."""
    return lambda: np.ravel(data.csr.sum(axis=0)), lambda: data.dense.sum(axis=0)


def squared(data: Data) -> Calls:
    """Return X * X by element."""
    return lambda: data.csr.multiply(data.csr).tocsr(), lambda: data.dense * data.dense


def added(data: Data) -> Calls:
    """Return X + X."""
    return lambda: data.csr + data.csr, lambda: data.dense + data.dense


for _what, _make in {
    "CSR @ 64 columns": columns,
    "CSR @ a vector": vector,
    "CSR.T @ a vector": transposed,
    "CSR.T @ CSR": gram,
    "rows in another order": permuted,
    "every second column": selected,
    "sum of each column": summed,
    "CSR times CSR by element": squared,
    "CSR + CSR": added,
}.items():
    OPERATIONS.append(Operation("SciPy", _what, _make, "scipy"))
