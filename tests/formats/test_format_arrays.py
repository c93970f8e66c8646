"""Arrays in any format are made, copied, cast and assigned as their dense meaning is."""

import dataclasses
import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import kernels
from tests.support import implementations
from tests.support.cases import CASES, random_case
from tests.support.op_arrays import dense_of
from tests.support.small_sets import coo, csc, csr
from workbench import formats
from workbench.formats import FormatError, RowSparse, numpy_conversions

NAMES = formats.names()
DTYPES = [*map(str, formats.VALUES)]
COMPRESSED = ("csr", "csc", "coo")


def parts_of(x):
    return formats.coerce(x)[0].parts(x)


def held(name, dtype):
    return np.dtype(dtype) in formats.get(name).dtypes


@st.composite
def arrays(draw, name=None, shape=None):
    """An array in some format, with explicit zeros, in csr, csc and coo with duplicates and disorder; its meaning."""
    name = name or draw(st.sampled_from(NAMES))
    dtype = np.dtype(draw(st.sampled_from([dtype for dtype in DTYPES if held(name, dtype)])))
    if shape is None:
        rank = 2 if name in COMPRESSED else draw(st.integers(1, 3))
        shape = tuple(draw(st.lists(st.integers(0, 5), min_size=rank, max_size=rank)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    if name in ("dense", "row_sparse"):
        whole = rng.integers(0, 3, shape).astype(dtype)
        if name == "dense":
            return whole, whole
        stored = np.flatnonzero(rng.integers(0, 2, shape[0]))
        meaning = np.zeros(shape, dtype)
        meaning[stored] = whole[stored]
        return RowSparse(whole[stored], stored, shape), meaning
    nnz = draw(st.integers(0, 12)) if min(shape) else 0
    index = draw(st.sampled_from([np.int32, np.int64]))
    row, col = rng.integers(0, max(shape[0], 1), nnz), rng.integers(0, max(shape[1], 1), nnz)
    x = formats.to_format(coo(row, col, rng.integers(0, 3, nnz), shape, dtype, index), name)
    return x, dense_of(x)


@pytest.mark.covering
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (4,), (0, 3), (3, 0), (3, 4), (2, 3, 4), (0, 2, 0)])
@pytest.mark.parametrize("name", NAMES)
def test_zeros_are_zeros_in_every_format_that_takes_them(name, shape, dtype):
    least, most = {"dense": (0, 9), "row_sparse": (1, 9)}.get(name, (2, 2))
    if not (least <= len(shape) <= most and held(name, dtype)):
        with pytest.raises(FormatError, match=r"shape|array of float16 was asked for"):
            formats.zeros(shape, name, dtype)
        return
    x = formats.check(formats.zeros(shape, name, dtype), full=True)
    assert (formats.format_of(x), x.shape, x.dtype) == (name, shape, dtype)
    assert not dense_of(x).any()
    if name != "dense":
        assert x.nnz == 0


def test_zeros_of_the_impossible():
    assert formats.zeros((2, 3)).dtype == np.float32
    for wrong, message in [
        (((2, -3),), r"shape is \(2, -3\). Allowed: lengths of which none is negative"),
        ((5,), r"shape is 5. Allowed: a tuple of whole numbers"),
        (((2, 3), "csx"), r"Unknown format 'csx'"),
        (
            ((2, 3), "csr", np.int8),
            r"A csr array of int8 was asked for. Allowed: float32, float64, int32, int64, uint8",
        ),
    ]:
        with pytest.raises(FormatError, match=message):
            formats.zeros(*wrong)


@pytest.mark.parametrize("name", [*COMPRESSED, "row_sparse"])
def test_a_huge_shape_of_zeros_costs_nothing_where_it_need_not(name):
    shape = {"csr": (3, 2**40), "csc": (2**40, 3)}.get(name, (2**40, 2**20))
    x = formats.zeros(shape, name)
    assert formats.nbytes(x) < 100
    assert formats.check(x, full=True).shape == shape


@settings(max_examples=80, deadline=None)
@given(arrays())
def test_a_copy_is_the_same_over_memory_of_its_own(drawn):
    x, _ = drawn
    y = formats.copy(x)
    assert formats.format_of(y) == formats.format_of(x)
    for part, same in zip(parts_of(x).values(), parts_of(y).values(), strict=True):
        assert part.dtype == same.dtype
        np.testing.assert_array_equal(part, same)
        assert not np.shares_memory(part, same)


@settings(max_examples=80, deadline=None)
@given(arrays(), st.sampled_from(DTYPES), st.booleans())
def test_a_cast_is_that_of_the_dense_array_with_the_pattern_kept(drawn, dtype, copy):
    x, meaning = drawn
    name = formats.format_of(x)
    if not held(name, dtype):
        with pytest.raises(FormatError, match=rf"A {name} array of float16 was asked for"):
            formats.astype(x, dtype, copy)
        return
    y = formats.astype(x, dtype, copy)
    np.testing.assert_array_equal(dense_of(y), meaning.astype(dtype))
    assert y.dtype == dtype
    assert (y is x) == (not copy and x.dtype == dtype)
    if copy:
        pairs = zip(parts_of(x).values(), parts_of(y).values(), strict=True)
        assert not any(np.shares_memory(part, other) for part, other in pairs)
    for part, other in list(zip(parts_of(x).values(), parts_of(y).values(), strict=True))[1:]:
        np.testing.assert_array_equal(part, other)


def test_a_value_cast_to_zero_stays_stored():
    x = RowSparse([[0.4, -0.6]], [2], (4, 2)).astype(np.int32)
    assert x.indices.tolist() == [2]
    assert x.values.tolist() == [[0, 0]]
    assert formats.astype(csr(data=(0.1, 2.9, -2.9)), np.int64).data.tolist() == [0, 2, -2]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_assignment_across_formats_and_types(data):
    destination, _ = data.draw(arrays())
    name = formats.format_of(destination)
    sources = NAMES if len(destination.shape) == 2 else ("dense", "row_sparse")
    source, meaning = data.draw(arrays(data.draw(st.sampled_from(sources)), destination.shape))
    dtype, before = destination.dtype, [part.copy() for part in parts_of(source).values()]
    if not held(name, source.dtype) and formats.format_of(source) != name:
        with pytest.raises(FormatError, match=rf"A {name} array of float16 was asked for"):
            formats.assign(destination, source)
        return
    assert formats.assign(destination, source) is destination
    assert formats.format_of(destination) == name
    assert destination.dtype == dtype
    formats.check(destination, full=True, canonical=False)
    np.testing.assert_array_equal(dense_of(destination), meaning.astype(dtype))
    for part, same in zip(parts_of(source).values(), before, strict=True):
        np.testing.assert_array_equal(part, same)
        assert not any(np.shares_memory(part, mine) for mine in parts_of(destination).values())


@pytest.mark.parametrize(("to", "of"), [*itertools.product(NAMES, repeat=2)])
def test_what_the_destination_held_is_gone(to, of):
    destination = formats.to_format(np.ones((3, 4)), to)
    source = formats.to_format(csr(), of)
    formats.assign(destination, source)
    np.testing.assert_array_equal(dense_of(destination), dense_of(source))
    if to == of != "dense":
        for part, same in zip(parts_of(destination).values(), parts_of(source).values(), strict=True):
            np.testing.assert_array_equal(part, same)


def test_scipy_reads_the_destination_as_new():
    """What SciPy remembers of the order of the old indices must not outlive them."""
    for destination in (csr(), sp.csr_matrix(csr())):
        assert destination.has_canonical_format
        formats.assign(destination, csr(columns=(1, 1, 0)))
        assert not destination.has_canonical_format
        destination.sum_duplicates()
        assert destination.toarray()[0].tolist() == [0, 3, 0, 0]
    destination = coo()
    destination.sum_duplicates()
    formats.assign(destination, coo(row=(0, 0, 0), col=(1, 1, 0)))
    destination.sum_duplicates()
    assert destination.nnz == 2


def test_matrix_classes_and_views_are_assigned_in_place():
    whole = np.zeros((6, 8), np.float32)
    formats.assign(whole[::2, ::2], csr())
    np.testing.assert_array_equal(whole[::2, ::2], csr().toarray())
    assert whole.sum() == csr().toarray().sum()
    matrix = sp.csc_matrix((3, 4), dtype=np.float64)
    assert formats.assign(matrix, csr()) is matrix
    np.testing.assert_array_equal(matrix.toarray(), csr().toarray())
    read_only = np.zeros((3, 4))
    read_only.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        formats.assign(read_only, csr())


@pytest.mark.parametrize("number", [2.5, 0, np.float64(-1), np.int64(3), True])
def test_a_number_fills_dense_and_row_sparse(number):
    for x in (np.ones((3, 2), np.float32), RowSparse(np.ones((1, 2), np.float32), [1], (3, 2))):
        assert formats.assign(x, number) is x
        np.testing.assert_array_equal(dense_of(x), np.full((3, 2), number, np.float32))
    assert x.indices.tolist() == [0, 1, 2]  # of zeros too


@pytest.mark.parametrize("name", COMPRESSED)
def test_a_number_is_refused_by_the_others(name):
    message = rf"The number 2 was assigned to a {name} array. Allowed: arrays. Assign np.full\(x.shape"
    with pytest.raises(FormatError, match=message):
        formats.assign(formats.zeros((2, 3), name), 2)


@pytest.mark.parametrize("destination", [np.zeros((3, 4)), csr(), RowSparse([[1, 2]], [0], (3, 2))])
def test_other_shapes_and_lists_are_refused_and_change_nothing(destination):
    before = formats.copy(destination)
    with pytest.raises(FormatError, match=r"An array of shape \(4, 3\) was assigned to one of shape"):
        formats.assign(destination, csc())
    with pytest.raises(FormatError, match=r"A list is none of the formats here"):
        formats.assign(destination, [[1.0] * 4] * 3)
    for part, same in zip(parts_of(destination).values(), parts_of(before).values(), strict=True):
        np.testing.assert_array_equal(part, same)


def test_assignment_to_itself_and_to_a_slice_of_itself():
    x = RowSparse([[1, 2], [3, 4]], [0, 1], (2, 2))
    x[:] = x
    assert x.values.tolist() == [[1, 2], [3, 4]]
    x[...] = x[::-1]
    assert x.values.tolist() == [[3, 4], [1, 2]]
    dense = np.arange(4.0)
    formats.assign(dense, dense[::-1])
    assert dense.tolist() == [3, 2, 1, 0]


def test_row_sparse_assignment_keeps_the_type():
    x = RowSparse(np.ones((1, 2), np.float64), [1], (3, 2))
    values = x.values
    x[:] = np.float32([[0, 0], [0, 0], [1.5, 2]])
    assert x == RowSparse(np.array([[1.5, 2.0]]), [2], (3, 2))
    assert values.tolist() == [[1, 1]]  # arrays held elsewhere are left alone
    x[:] = csr((0, 1, 1, 1), (1,), (7,), (3, 2))
    assert x == RowSparse(np.array([[0.0, 7.0]]), [0], (3, 2))


def test_nan_and_infinity_are_assigned():
    odd = np.array([[np.nan, -0.0], [np.inf, 0]])
    for name in NAMES:
        x = formats.assign(formats.zeros((2, 2), name, np.float64), odd)
        np.testing.assert_array_equal(dense_of(x), odd)


def test_a_format_registered_later_is_made_copied_and_assigned(monkeypatch):
    from workbench.formats import contract

    class Mine:
        """A format made up here: a csr array in a box."""

        def __init__(self, x):
            self.x, self.shape, self.dtype = x, x.shape, x.dtype

    base = formats.get("csr")
    monkeypatch.setattr(contract._formats, "entries", dict(contract._formats.entries))
    formats.register(
        dataclasses.replace(
            base,
            name="mine",
            is_instance=lambda x: isinstance(x, Mine),
            is_sound=lambda x: base.is_sound(x.x),
            check=lambda x, full, canonical: base.check(x.x, full, canonical),
            check_indices=lambda x: base.check_indices(x.x),
            to_coo=lambda x: base.to_coo(x.x),
            from_coo=lambda coo: Mine(base.from_coo(coo)),
            parts=lambda x: base.parts(x.x),
            build=lambda parts, shape: Mine(base.build(parts, shape)),
            replace=lambda x, parts: base.replace(x.x, parts),
            direct={},
        )
    )
    x = formats.zeros((3, 4), "mine")
    formats.assign(x, csr())
    np.testing.assert_array_equal(formats.to_format(formats.copy(x), "dense"), csr().toarray())
    assert formats.astype(x, np.int32).dtype == np.int32
    assert formats.nbytes(x) == formats.nbytes(csr())


SOME = (
    "plain",
    "no rows",
    "no columns",
    "nothing",
    "no entries",
    "duplicates",
    "explicit zeros",
    "nan and inf",
    "64 bits",
)
LARGE = {name: CASES[name] for name in SOME} | {"large": random_case(40, 30, 3000, 2, seed=2)}


@pytest.mark.parametrize("case", LARGE)
@pytest.mark.parametrize("name", numpy_conversions.PLAIN)
def test_numpy_does_what_the_kernel_does(name, case):
    kernel = kernels.get(name)
    args = kernel.arguments(LARGE[case])
    for came, wanted in zip(
        implementations.run(numpy_conversions.PLAIN[name], args), implementations.run(kernel.cpu, args), strict=True
    ):
        assert np.shape(came) == np.shape(wanted)
        np.testing.assert_allclose(came, wanted, rtol=1e-5, atol=1e-5)
        if np.asarray(wanted).dtype.kind == "f":
            assert came.dtype == wanted.dtype


@pytest.mark.parametrize("dtype", [*map(str, formats.VALUES)])
def test_kernels_are_taken_where_they_take_the_type(dtype):
    for name in numpy_conversions.PLAIN:
        taken = numpy_conversions.get(name, np.dtype(dtype))
        assert (taken is kernels.get(name).trusted) == (np.dtype(dtype) in formats.FLOATS)
        assert taken in (kernels.get(name).trusted, numpy_conversions.PLAIN[name])
