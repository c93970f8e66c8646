"""Each fault of a matrix has its own message: what came where, what is allowed, what to do."""

import numpy as np
import pytest
import scipy.sparse as sp

from tests.support.small_sets import coo, csc, csr
from workbench import formats, ops
from workbench.formats import FormatError
from workbench.formats.compressed import assemble

CHEAP = {
    "csr of 8-bit": (csr(dtype=np.int8), "data has dtype int8. Allowed: float32, float64, int32, int64 and uint8"),
    "dense of bool": (np.zeros((2, 2), bool), "The dense array has dtype bool. Allowed: float32, float64, int"),
    "other byte order": (np.zeros((2, 2), ">f4"), "The dense array has dtype >f4. Allowed: float32"),
    "coo of complex": (coo(dtype=np.complex64), "data has dtype complex64. Allowed: float32, float64, int32"),
    "16-bit indices": (csr(index=np.int16), "indptr has dtype int16. Allowed: int32 and int64. Call indptr.astype"),
    "two index types": (
        assemble("csr", np.array([0, 1]), np.array([0], np.int32), np.float32([1]), (1, 1)),
        "The index types differ: indptr int64 and indices int32. Allowed: one type",
    ),
    "lengths of csr": (csr(data=(1, 2)), "data has 2 entries and indices has 3. Allowed: the same number in both"),
    "lengths of coo": (coo(row=(0, 1)), "row has 2 entries and col has 3. Allowed: the same number in both"),
    "short indptr": (csr(indptr=(0, 2, 3)), "indptr has 3 entries for 3 rows. Allowed: 4, one more than rows"),
    "csc indptr": (csc(shape=(4, 5)), "indptr has 4 entries for 5 columns. Allowed: 6, one more than columns"),
    "indptr end": (csr(indptr=(0, 2, 2, 2)), "indptr goes from 0 to 2. Allowed: 0 to 3, the number of stored"),
    "indptr start": (csr(indptr=(1, 2, 2, 3)), "indptr goes from 1 to 3. Allowed: 0 to 3, the number of stored"),
    "indptr falls": (csr(indptr=(0, 3, 2, 3)), "indptr falls from 3 to 2 at row 1. Allowed: numbers that never fall"),
    "one dimension": (sp.coo_array(np.ones(3)), "The coo matrix has shape (3,). Allowed: two dimensions"),
    "indices 2-D": (
        assemble("csr", np.array([0, 1]), np.array([[0]]), np.float32([[1]]), (1, 1)),
        "indices has 2 dimensions. Allowed: 1 dimension",
    ),
}
FULL = {
    "csr out of range": (csr(columns=(1, 4, 0)), "indices[1] is 4, out of range. Allowed: 0 to 3, as there are 4 col"),
    "csc out of range": (csc(columns=(1, 4, 0)), "indices[1] is 4, out of range. Allowed: 0 to 3, as there are 4 rows"),
    "coo out of range": (coo(row=(0, 9, 0)), "row[1] is 9, out of range. Allowed: 0 to 2, as there are 3 rows"),
    "no columns": (csr(shape=(3, 0)), "indices[0] is 1, out of range. Allowed: none, as there are no columns"),
    "csr negative": (csr(columns=(1, -3, 0)), "indices[1] is -3, a negative index. Allowed: 0 to 3"),
    "coo negative": (coo(col=(1, 0, -1)), "col[2] is -1, a negative index. Allowed: 0 to 3"),
    "csr unsorted": (csr(columns=(3, 1, 0)), "Row 0 is unsorted: column 1 (indices[1]) comes after column 3."),
    "csc unsorted": (csc(columns=(3, 1, 0)), "Column 0 is unsorted: row 1 (indices[1]) comes after row 3."),
    "csr duplicate": (csr(columns=(1, 1, 0)), "Column 1 is stored twice in row 0 (indices[0] and indices[1]), a dup"),
    "csr NaN": (csr(data=(1, np.nan, 3)), "data[1] is nan. Allowed: finite values. Call np.nan_to_num on data"),
    "coo infinite": (coo(data=(1, 2, -np.inf)), "data[2] is -inf. Allowed: finite values"),
    "dense NaN": (np.array([[1, 2], [np.nan, 4]]), "x[1, 0] is nan. Allowed: finite values"),
}


@pytest.mark.parametrize("fault", CHEAP)
def test_a_cheap_fault_is_always_refused(fault):
    x, message = CHEAP[fault]
    for full in (False, True):
        with pytest.raises(FormatError) as error:
            formats.check(x, full=full)
        assert message in str(error.value)


@pytest.mark.parametrize("dtype", [*map(str, formats.VALUES)])
def test_types_of_values_that_are_held_pass_and_may_be_narrowed(dtype):
    held = [formats.zeros((3, 4), name, dtype) for name in formats.names() if dtype in formats.get(name).dtypes]
    for x in held:
        assert formats.check(x, full=True) is x
        if np.dtype(dtype) in formats.FLOATS:
            assert formats.check(x, dtypes=formats.FLOATS) is x
        else:
            with pytest.raises(FormatError, match=rf"x has dtype {dtype}. Allowed: float32 and float64. Call x.astype"):
                formats.check(x, dtypes=formats.FLOATS)
    assert len(held) == (2 if dtype == "float16" else 5)


@pytest.mark.parametrize("fault", FULL)
def test_a_costly_fault_is_refused_by_the_full_check_only(fault):
    x, message = FULL[fault]
    assert formats.check(x) is x
    with pytest.raises(FormatError) as error:
        formats.check(x, full=True)
    assert message in str(error.value)


def test_each_kind_of_fault_is_told_in_its_own_words():
    words = ("unsorted", "a duplicate", "out of range", "a negative index", "finite values", "dtype", "same number in")
    result = set()
    for x, _ in (*CHEAP.values(), *FULL.values()):
        with pytest.raises(FormatError) as error:
            formats.check(x, full=True)
        said = [word for word in words if word in str(error.value)]
        assert len(said) <= 1
        result.update(said)
    assert result == set(words)


def test_the_advice_mends_the_fault():
    x, y = csr(columns=(3, 1, 0)), csr(columns=(1, 1, 0))
    x.sort_indices()
    y.sum_duplicates()
    assert formats.check(x, full=True) is x
    assert formats.check(y, full=True) is y


@pytest.mark.parametrize("x", [csr(columns=(3, 1, 0)), csr(columns=(1, 1, 0)), csc(columns=(3, 3, 0))])
def test_unsorted_and_duplicated_may_be_allowed(x):
    assert formats.check(x, full=True, canonical=False) is x


@pytest.mark.parametrize(
    "x",
    [
        csr(),
        csr(data=(0, 0, 0)),
        csr(indptr=(0, 0, 0, 0), columns=(), data=()),
        csr(indptr=(0,), columns=(), data=(), shape=(0, 4)),
        csr(indptr=(0, 0), columns=(), data=(), shape=(1, 0)),
        csr(indptr=(0, 0, 1, 3), columns=(2, 1, 3)),
        coo(row=(2, 0, 2), col=(1, 0, 1)),
        np.empty((0, 3)),
        csr(dtype=np.float64, index=np.int64),
    ],
)
def test_sound_matrices_pass_the_full_check(x):
    assert formats.check(x, full=True) is x


@pytest.mark.parametrize("name", ["csr", "csc", "coo", "row_sparse"])
def test_maps_of_files_are_taken_for_what_they_hold(tmp_path, name):
    x = formats.to_format(np.float32([[0, 1, 2], [3, 0, 0]]), name)
    parts = {}
    for part, array in formats.get(name).parts(x).items():
        array.tofile(tmp_path / part)
        parts[part] = np.memmap(tmp_path / part, array.dtype, "r", shape=array.shape)
    mapped = formats.get(name).build(parts, x.shape)
    checked = formats.check(mapped, full=True)
    assert {type(part) for part in formats.get(name).parts(checked).values()} == {np.ndarray}
    np.testing.assert_array_equal(formats.to_format(mapped, "dense"), [[0, 1, 2], [3, 0, 0]])
    weights = np.float32([[1], [10], [100]])
    np.testing.assert_array_equal(formats.to_format(ops.dot(mapped, weights), "dense"), [[210], [3]])
