"""pydata sparse: products, sums and elementwise functions of COO and GCXS, beside NumPy."""

import numpy as np

from benchmarks.libraries import Calls, Data, Operation

OPERATIONS: list[Operation] = []


def coo(data: Data) -> Calls:
    """Return COO @ W of 64 columns."""
    import sparse

    x = sparse.COO.from_scipy_sparse(data.csr)
    return lambda: x @ data.w, lambda: data.dense @ data.w


def gcxs(data: Data) -> Calls:
    """Return GCXS @ W of 64 columns."""
    import sparse

    x = sparse.GCXS.from_scipy_sparse(data.csr)
    return lambda: x @ data.w, lambda: data.dense @ data.w


def summed(data: Data) -> Calls:
    """Return the sum of each column."""
    import sparse

    x = sparse.COO.from_scipy_sparse(data.csr)
    return lambda: x.sum(axis=0).todense(), lambda: data.dense.sum(axis=0)


def function(data: Data) -> Calls:
    """Return the sum of sin(X) for each column."""
    import sparse

    x = sparse.COO.from_scipy_sparse(data.csr)
    return lambda: np.sin(x).sum(axis=0).todense(), lambda: np.sin(data.dense).sum(axis=0)


for _what, _make in {
    "COO @ 64 columns": coo,
    "GCXS @ 64 columns": gcxs,
    "sum of each column, COO": summed,
    "sin and sum of each column, COO": function,
}.items():
    OPERATIONS.append(Operation("pydata sparse", _what, _make, "sparse"))
