"""Probes of SciPy: what each fact of `workbench/bridges/facts/scipy.toml` says, on the installed release."""

import warnings

import numpy as np
import scipy.sparse

from tests.support.probes import peak_bytes, refusal, repeated, right, small

COLUMNS = 1_000_000


def wide_rows():
    entries = (np.float32([1, 2, 3, 4]), (np.int32([0, 0, 1, 1]), np.int32([1, COLUMNS - 1, 2, 3])))
    return scipy.sparse.csr_array(entries, shape=(2, COLUMNS))


def cost(call, needed=100_000):
    return "costly" if peak_bytes(call) > needed else "sparse"


def mean_over_columns():
    x = wide_rows()
    return cost(lambda: x.mean(axis=1))


def sum_over_columns():
    x = wide_rows()
    return cost(lambda: x.sum(axis=1))


def list_of_columns():
    x = wide_rows()
    return cost(lambda: x[:, [5]])


def slice_of_columns():
    x = wide_rows()
    return cost(lambda: x[:, 5:6])


def float32_times_float64():
    x, v = small(rows=5000), np.ones(5)
    return cost(lambda: x @ v, needed=x.data.nbytes + 8 * x.shape[0])


def division_by_a_number():
    return "costly" if (small() / 2).dtype == (small() / np.float32(2)).dtype == np.float64 else "sparse"


def product_with_a_number():
    return "sparse" if (small() * 0.5).dtype == np.float32 else "costly"


def bool_twice():
    first = scipy.sparse.csr_array((np.array([True, True]), np.array([1, 1]), np.array([0, 2])), shape=(1, 3))
    second = first.copy()
    second.sum_duplicates()
    return right(first.astype(np.int32).toarray(), second.astype(np.int32).toarray())


def whole_numbers_of_repeats():
    x = scipy.sparse.csr_array((np.float32([0.6, 0.6]), np.array([0, 0]), np.array([0, 2])), shape=(1, 1))
    return right(x.astype(np.int32).toarray(), x.toarray().astype(np.int32))


def sum_with_a_dense_array():
    return "densifies" if isinstance(small() + np.ones(small().shape), np.ndarray) else "sparse"


def quotient_of_sparse_arrays():
    with np.errstate(invalid="ignore", divide="ignore"):
        return "densifies" if isinstance(small() / small(), np.ndarray) else "sparse"


def star_of_matrix_and_array():
    x, v = repeated(rows=5), np.arange(5.0)
    as_array, as_matrix = scipy.sparse.csr_array(x) * v, scipy.sparse.csr_matrix(x) * v
    return "wrong" if as_array.shape != as_matrix.shape else "sparse"


def equality():
    x = scipy.sparse.csr_array((np.float32([1, 2]), (np.int32([0, 1]), np.int32([1, 9]))), shape=(2, 1000))
    assert (x != x).nnz == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.sparse.SparseEfficiencyWarning)
        return "densifies" if (x == x.copy()).nnz == 2000 and (x < 1).nnz == 1998 else "sparse"


def array_of_sparse():
    made = np.asarray(small())
    return "wrong" if made.shape == () and made.dtype == object else "densifies"


def sum_with_a_number():
    return refusal(lambda: small() + 1, NotImplementedError)


def shape_of_sums():
    shapes = [kind(small()).sum(axis=0).shape for kind in (scipy.sparse.csr_matrix, scipy.sparse.csr_array)]
    return "wrong" if shapes == [(1, 5), (5,)] else "sparse"
