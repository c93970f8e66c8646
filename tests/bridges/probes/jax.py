"""Probes of JAX: what each fact of `workbench/bridges/facts/jax.toml` says, on the installed release."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jax.experimental import sparse

from tests.support.probes import refusal, small

DENSE = small(columns=20).toarray()


def matrix(dense=DENSE):
    return sparse.BCOO.fromdense(dense)


def square():
    return matrix(small(rows=20, columns=20).toarray())


def rows_cut_out():
    stored = int(np.count_nonzero(DENSE[:4]))
    return "costly" if matrix()[:4].nse > 3 * stored else "sparse"


def product_of_sparse_matrices():
    b = matrix(np.diag(np.arange(1.0, 21.0, dtype=np.float32)))
    return "densifies" if (b @ b).nse == 400 else "sparse"


def product_of_elements():
    a = square()
    return "costly" if (a * a).nse == a.nse**2 else "sparse"


def sum_of_two():
    a = square()
    return "costly" if (a + a).nse == 2 * a.nse else "sparse"


def columns_out_of_range():
    b = sparse.BCOO((jnp.array([1.0, 2.0]), jnp.array([[0, 1], [0, 7]])), shape=(1, 3))
    return "wrong" if float((b @ jnp.ones(3)).sum()) == float(b.todense().sum()) == 1.0 else "sparse"


def count_of_entries():
    traces = []

    @jax.jit
    def scores(b, w):
        traces.append(b.nse)
        return b @ w

    for rows in (DENSE[:4], DENSE[:4] * (np.arange(20) > 5), DENSE[:4] * (np.arange(20) > 12)):
        scores(matrix(rows), jnp.ones(20))
    return "costly" if len(traces) == 3 else "sparse"


def gradient_of_product():
    b = matrix()
    gradient = jax.grad(lambda w: (b @ w).sum())(jnp.ones((20, 2)))
    return "densifies" if isinstance(gradient, jax.Array) and gradient.shape == (20, 2) else "sparse"


def gradient_of_a_matrix():
    return refusal(lambda: jax.grad(lambda b: (b @ jnp.ones(20)).sum())(matrix()), TypeError)


def rows_of_bcsr():
    c = sparse.BCSR.fromdense(small(rows=20, columns=20).toarray())
    assert (c @ jnp.ones(20)).shape == (20,)
    calls = (lambda: c[:4], lambda: c * 2.0, lambda: c + c, lambda: c.T, lambda: c @ c, lambda: c.sum(0))
    outcomes = {refusal(call, NotImplementedError) for call in calls}
    return outcomes.pop() if len(outcomes) == 1 else f"differs: {outcomes}"


def numpy_functions():
    outcomes = {refusal(lambda: call(matrix()), TypeError) for call in (jnp.sin, jnp.sum)}  # noqa: B023
    return outcomes.pop() if len(outcomes) == 1 else f"differs: {outcomes}"


def float64_from_scipy():
    x = scipy.sparse.csr_array(np.array([[1.0, 1e-9]]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return "wrong" if sparse.BCOO.from_scipy_sparse(x).data.dtype == jnp.float32 else "sparse"


def columns_past_int32():
    x = scipy.sparse.csr_array((np.float32([1]), np.int64([2**33]), np.int64([0, 1])), shape=(1, 2**34))
    return "wrong" if int(sparse.BCOO.from_scipy_sparse(x).indices[0, 1]) != 2**33 else "sparse"
