"""The product of two CSR matrices, where its rows have few columns among very many."""

import numpy as np
import scipy.sparse

import kernels

ROWS, COLUMNS = 10_000, 10**7


def matrix(lengths: np.ndarray, columns: int, random: np.random.Generator) -> scipy.sparse.csr_array:
    """Ones in random columns, int32 and float32."""
    indptr, entries = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32), int(lengths.sum())
    found = random.integers(0, columns, entries, np.int32)
    return scipy.sparse.csr_array((np.ones(entries, np.float32), found, indptr), shape=(lengths.size, columns))


def test_few_columns_among_many_come_out_in_order():
    random = np.random.default_rng(0)
    a, b = matrix(np.arange(10), ROWS, random), matrix(np.full(ROWS, 3), COLUMNS, random)
    came = kernels.get("csr_csr").cpu(a.indptr, a.indices, a.data, b.indptr, b.indices, b.data)
    expected = a @ b
    expected.sort_indices()
    for one, other in zip(came, (expected.indptr, expected.indices, expected.data), strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.diff(expected.indptr).max() > 20
