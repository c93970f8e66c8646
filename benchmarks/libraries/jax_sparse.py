"""JAX: products by BCOO, BCSR and segment sums, and a gradient, all compiled."""

from typing import Any

import numpy as np

from benchmarks.libraries import Calls, Data, Operation

OPERATIONS: list[Operation] = []


def calls(data: Data, sparse: Any, dense: Any) -> Calls:
    """Return both compiled functions of (X, W) as calls that wait for the result."""
    import jax
    from jax.experimental.sparse import BCOO

    x, full, w = BCOO.from_scipy_sparse(data.csr), jax.numpy.asarray(data.dense), jax.numpy.asarray(data.w)
    ours, theirs = jax.jit(sparse), jax.jit(dense)
    return lambda: np.asarray(ours(x, w)), lambda: np.asarray(theirs(full, w))


def bcoo(data: Data) -> Calls:
    """Return BCOO @ W."""
    return calls(data, lambda x, w: x @ w, lambda x, w: x @ w)


def bcsr(data: Data) -> Calls:
    """Return BCSR @ W."""
    import jax
    from jax.experimental.sparse import BCSR

    x, w, multiply = BCSR.from_scipy_sparse(data.csr), jax.numpy.asarray(data.w), jax.jit(lambda x, w: x @ w)
    return lambda: np.asarray(multiply(x, w)), calls(data, multiply, multiply)[1]


def segments(data: Data) -> Calls:
    """Return X @ W by gathered rows of W and segment_sum."""
    import jax

    def product(x: Any, w: Any) -> Any:
        """Return the product of a BCOO with W."""
        rows, columns = x.indices.T
        return jax.ops.segment_sum(x.data[:, None] * w[columns], rows, num_segments=x.shape[0], indices_are_sorted=True)

    return calls(data, product, lambda x, w: x @ w)


def gradient(data: Data) -> Calls:
    """Return the gradient of W by BCOO @ W."""
    import jax

    step = jax.grad(lambda w, x: jax.numpy.sum((x @ w) ** 2))
    return calls(data, lambda x, w: step(w, x), lambda x, w: step(w, x))


for _what, _make in {
    "BCOO @ 64 columns": bcoo,
    "BCSR @ 64 columns": bcsr,
    "segment_sum of 64 columns": segments,
    "BCOO @ 64 columns and gradient": gradient,
}.items():
    OPERATIONS.append(Operation("JAX", _what, _make, "jax", note="one number of entries: it is not compiled anew"))
