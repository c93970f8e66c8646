"""Products and rows with tables of two bytes a value on the emulated device."""

import functools
from collections.abc import Callable

import numpy as np
import pytest

import kernels
from kernels import KernelError
from kernels.gpu import indices as gpu_plan
from kernels.gpu import narrow
from kernels.gpu import source as gpu_source
from tests.support.cases import CASES, Case
from tests.support.emulator.device import emulator
from tests.support.gpu_implementations import GPU_CASES, TILES, aligned, gaps, not_run, run_on, shifted
from tests.support.implementations import run, same_bits
from tests.support.narrow_implementations import KINDS, NARROW, PRODUCTS, assert_product_is_right, with_tables
from tests.support.rounding_model import widened

pytestmark = pytest.mark.usefixtures("ascending")

each_kind = pytest.mark.parametrize("kind", KINDS)
each_product = pytest.mark.parametrize("name", PRODUCTS)
FLOATS = {name: given for name, given in TILES.items() if "float" in name}


@each_kind
def test_every_pattern_of_two_bytes_is_widened_exactly(kind: str) -> None:
    """Zeros of both signs, numbers below the normal ones, infinities and NaN among them."""
    table, rows = np.arange(2**16, dtype=np.uint16).reshape(2048, 32), np.arange(2049, dtype=np.int32)
    given = rows, rows[:-1].copy(), np.ones(2048, np.float32), table.view(kind), np.empty((2048, 32), np.float32)
    np.testing.assert_array_equal(run_on(emulator, narrow.csr_dense, given)[-1], widened(table.view(kind)))
    there = table.view(kind), rows[:-1].copy(), np.empty((2048, 32), np.float32)
    np.testing.assert_array_equal(run_on(emulator, narrow.take_rows, there)[-1], widened(table.view(kind)))


@each_kind
@each_product
def test_products_of_tables(name: str, kind: str) -> None:
    for case in NARROW:
        assert_product_is_right(emulator, name, case, kind)


@each_kind
@each_product
def test_nan_and_inf_of_a_table_go_where_the_reference_puts_them(name: str, kind: str) -> None:
    for case in (CASES["width 5"], CASES["width 16"]):
        assert_product_is_right(emulator, name, case, kind, special=True)


@each_kind
@each_product
def test_every_tile_with_arrays_aligned_and_not(name: str, kind: str) -> None:
    for case, is_shifted in FLOATS.values():
        put = functools.partial(shifted if is_shifted else aligned, emulator)
        assert_product_is_right(emulator, name, case, kind, put)


@each_kind
@each_product
def test_same_bits_whichever_thread_and_block_comes_first(name: str, kind: str, monkeypatch) -> None:
    function, places = PRODUCTS[name]
    for case in (GPU_CASES["hot columns"], GPU_CASES["long rows, vectors"]):
        given, _ = with_tables(kernels.get(function).arguments(case), places, kind)
        expected = run_on(emulator, getattr(narrow, function), tuple(given))
        for emulator.seed, blocks in ((1, 2**20), (2, 2)):
            monkeypatch.setattr(gpu_source, "MOST_BLOCKS", blocks)
            assert same_bits(run_on(emulator, getattr(narrow, function), tuple(given)), expected)
        monkeypatch.undo()
        emulator.seed = 0


@each_kind
@pytest.mark.parametrize("name", ["csr_dense", "csr_dense_ones", "csr_t_dense", "csr_t_dense_ones"])
def test_what_is_known_of_the_lengths_changes_no_bit(name: str, kind: str) -> None:
    for case in (GPU_CASES["long rows, vectors"], CASES["width 16"]):
        given = tuple(with_tables(kernels.get(name).arguments(case), PRODUCTS[name][1], kind)[0])
        lengths = gpu_plan.lengths_of(emulator.put(given[0]), in_order_of_length=True)
        known = functools.partial(getattr(narrow, name), lengths=lengths)
        assert same_bits(run_on(emulator, known, given), run_on(emulator, getattr(narrow, name), given))


@each_kind
@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 8, 16, 40, 64, 136])
def test_rows_are_copied_by_every_word(width: int, kind: str) -> None:
    random = np.random.default_rng(width)
    table, index = random.integers(0, 2**16, (7, width), np.uint16).view(kind), np.array([6, 0, 3], np.int32)
    for put in (functools.partial(way, emulator) for way in (shifted, aligned)):
        taken, wide = (put(np.zeros((3, width), dtype)) for dtype in (kind, np.float32))
        narrow.take_rows(put(table), put(index), taken)
        narrow.take_rows(put(table), put(index.astype(np.int64)), wide)
        assert same_bits([emulator.read(taken)], [table[index]])
        np.testing.assert_array_equal(emulator.read(wide), widened(table[index]))
        back = put(np.full((7, width), 7, table.dtype))
        narrow.scatter_rows(taken, put(index), back)
        expected = np.full((7, width), 7, table.dtype)
        expected[index] = table[index]
        assert same_bits([emulator.read(back)], [expected])


@each_kind
def test_no_rows_and_no_columns_are_copied(kind: str) -> None:
    for shape, rows in (((4, 0), 2), ((4, 3), 0), ((4, 0), 0)):
        table, index = np.zeros(shape, kind), np.zeros(rows, np.int32)
        for dtype in (kind, np.float32):
            run_on(emulator, narrow.take_rows, (table, index, np.zeros((rows, shape[1]), dtype)))
        out = run_on(emulator, narrow.scatter_rows, (np.ones((rows, shape[1]), kind), index, table))[-1]
        assert same_bits([out], [table])


@each_kind
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_rows_that_are_wanted(index: type, kind: str) -> None:
    kernel = kernels.get("retain_rows")
    for name in ("plain", "no rows", "no entries", "width 64"):
        indices, values, wanted = kernel.arguments(GPU_CASES[name])
        table = np.arange(values.size, dtype=np.uint16).reshape(values.shape).view(kind)
        given = indices.astype(index), table, wanted.astype(index)
        assert same_bits(run_on(emulator, narrow.retain_rows, given), run(kernel.reference, given))


@each_kind
@each_product
def test_arrays_with_gaps_give_the_same(name: str, kind: str) -> None:
    assert_product_is_right(emulator, name, CASES["width 16"], kind, functools.partial(gaps, emulator))


@each_kind
def test_rows_with_gaps_are_copied(kind: str) -> None:
    table, index = np.arange(21, dtype=np.uint16).reshape(7, 3).view(kind), np.array([6, 0, 3])
    given = table, index, np.zeros((3, 3), kind)
    assert same_bits(run_on(emulator, narrow.take_rows, given, gaps)[-1:], [table[index]])


def right(name: str, case: Case = CASES["plain"]) -> list:
    function, places = PRODUCTS[name]
    return with_tables(kernels.get(function).arguments(case), places, "float16")[0]


OF_FLOAT16, OF_INDICES = "allowed is float16, or uint16, which", "allowed is int32 or int64"
WRONG_CALLS = [
    ("csr_dense", 3, lambda x: x.astype(np.float32), f"x is float32; {OF_FLOAT16}"),
    ("csr_dense", 2, lambda data: data.astype(np.float64), "data is float64; allowed is float32"),
    ("csr_dense", 4, lambda out: out.astype(np.float16), "out is float16; allowed is float32"),
    ("csr_dense", 0, lambda indptr: indptr.astype(np.int64), f"indices is int32; {OF_INDICES}, the same"),
    ("csr_dense", 4, lambda out: out[1:], r"out has shape \[6, 3\], but R is 7 by the operands before it"),
    ("csr_dense", 1, lambda indices: indices[1:], r"data has shape \[20\], but z is 19"),
    ("csr_dense", 0, lambda indptr: indptr[:0], r"indptr has shape \[0\], but it is too short"),
    ("csr_dense", 3, lambda x: x[0], "x has 1 axes; it needs 2"),
    ("csr_dense_ones", 2, lambda _: np.zeros((11, 3), np.int16), "x is int16; allowed is float16"),
    ("csr_t_dense", 3, lambda _: np.zeros((7, 4), np.uint16), r"out has shape \[\d+, 3\], but N is 4"),
    ("sddmm", 3, lambda _: np.zeros((11, 3), np.uint16), "b is uint16; allowed is float16, .*; the first is float16"),
    ("sddmm", 2, lambda a: a.astype(np.float64), "a is float64; allowed is float32, or the type of the table"),
    ("take_rows", 2, lambda out: out.astype(np.uint16), "out is uint16; .*; the first is float16"),
    ("take_rows", 0, lambda source: source.astype(np.float32), "source is float32"),
    ("take_rows", 1, lambda index: index.astype(np.int16), f"index is int16; {OF_INDICES}"),
    ("scatter_rows", 2, lambda _: np.zeros((11, 3), np.uint16), "out is uint16"),
]
"""(function, place, what is put there of what is right, what the message says)."""


def right_arguments(name: str) -> list:
    """Arguments of a product, of rows that are taken or of rows that are scattered, which are refused nowhere."""
    table, index, out = np.zeros((5, 3), np.float16), np.array([0, 4]), np.zeros((2, 3), np.float32)
    rows = {"take_rows": [table, index, out], "scatter_rows": [out.astype(np.float16), index, table]}
    return rows[name] if name in rows else right(name)


@pytest.mark.parametrize(("name", "place", "wrong", "words"), WRONG_CALLS)
def test_wrong_arguments_are_refused_by_name(name: str, place: int, wrong: Callable, words: str) -> None:
    args, function = right_arguments(name), getattr(narrow, name)
    run_on(emulator, function, tuple(args))
    with pytest.raises(KernelError, match=f"^{name}: {words}"):
        run_on(emulator, function, (*args[:place], wrong(args[place]), *args[place + 1 :]))


def test_wrong_numbers_of_arguments_and_host_arrays_are_refused() -> None:
    args = right("csr_dense")
    there = list(map(emulator.put, args))
    with pytest.raises(KernelError, match=r"^csr_dense takes 5 arrays .*, not 4"):
        narrow.csr_dense(*there[:-1])
    with pytest.raises(KernelError, match=r"^csr_dense: x must be a Array, not ndarray\."):
        narrow.csr_dense(*there[:3], args[3], there[4])
    with pytest.raises(TypeError, match="pass CuPy arrays"):
        narrow.csr_dense(*args)


def test_every_variant_that_launchers_name_was_run(request: pytest.FixtureRequest) -> None:
    assert not_run(request, emulator.launches, "narrow") == []
