"""Tiles, the code made for them, its portability, and that code is made once."""

import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path

import numba
import numpy as np
import pytest
import scipy.sparse

import kernels
from kernels.code_cache import files_of
from kernels.formula import clipped, sqrt
from kernels.products import csr_dense, csr_dense_ones
from kernels.rules import rule
from kernels.vector import gather, lanes, operands, tiles
from kernels.vector.gather import RowLoop
from kernels.vector.tiles import Cut, Tile, cut_elements, cut_sums, register_bytes, tile_for, widest
from tests.support.cases import from_rows, random_case
from tests.support.implementations import assert_close, get, run
from tests.support.processes import printed

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("itemsize", [4, 8])
@pytest.mark.parametrize("width", [*range(1, 70), 100, 255, 256, 257, 511, 512, 513, 1000])
def test_tiles_of_a_row_cover_each_column_once(width: int, itemsize: int) -> None:
    for cut in (cut_sums(width, itemsize), cut_elements(width, itemsize)):
        full = cut.full.width if cut.full else 0
        rest = width % full if full else width
        rest = rest or full  # a row of full tiles alone: one of them is the rest
        assert cut.rest.width - cut.rest.lanes < rest or cut.full == Tile(8 * itemsize, cut.rest.lanes, 1, False)
        assert rest <= cut.rest.width or cut.full is not None
        assert cut.rest.masked or rest == cut.rest.width
        assert cut.rest.width <= widest(8 * itemsize)


@pytest.mark.parametrize(("width", "lanes"), [(1, 1), (2, 2), (3, 4), (4, 4)])
def test_narrow_rows_have_narrow_vectors(width: int, lanes: int) -> None:
    assert tile_for(width, 32).lanes == lanes
    assert tile_for(width, 32).unroll >= 4


def test_widths_between_two_shapes_share_one() -> None:
    assert cut_sums(5, 4) == cut_sums(7, 4)
    assert cut_elements(100, 4) == cut_elements(1000, 4)


def test_cache_size_is_a_cache_size() -> None:
    assert 2**16 <= tiles.cache_bytes(2) <= tiles.cache_bytes(3) <= 2**31
    assert tiles.is_far(2**40, 64)
    assert not tiles.is_far(2**10, 256)
    assert not tiles.is_far(2**40, 32)


def forget_shapes() -> None:
    """Let calls find anew what is far."""
    tiles.shape_of.cache_clear()
    tiles.shape_of_gradient.cache_clear()
    rule.shape_of_fused.cache_clear()


@pytest.mark.parametrize("width", [16, 300])
@pytest.mark.parametrize("name", ["csr_dense", "csr_t_dense", "adagrad_fused", "group_adagrad_fused", "adam_lazy"])
def test_fetching_ahead_changes_no_bit(name: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = get(name)
    args = kernel.arguments(random_case(40, 50, 500, width))
    near = run(kernel.cpu, args)
    monkeypatch.setattr(tiles, "cache_bytes", lambda level: 0)
    forget_shapes()
    far = run(kernel.cpu, args)
    forget_shapes()
    for one, other in zip(near, far, strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


def test_operand_without_columns_is_left_alone() -> None:
    kernel = get("csr_dense")
    kernel.cpu(*kernel.arguments(random_case(4, 5, 9, 0)))


def test_a_shape_is_made_once() -> None:
    kernel = get("csr_dense")
    kernel.cpu(*kernel.arguments(random_case(4, 5, 9, 6)))
    before = len(gather.made)
    kernel.cpu(*kernel.arguments(random_case(9, 5, 19, 7)))
    assert len(gather.made) == before
    kernel.cpu(*kernel.arguments(random_case(9, 5, 19, 9)))
    assert len(gather.made) <= before + 1


def test_work_of_a_row_is_written_once_for_one_thread_and_for_many(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))  # else it is written in the first process alone
    written = []

    def row(lane, u, out):
        written.append(u)
        lane.blocks(lambda j, _: out.row(u, j).store(out.row(u, j).load()))

    loop, out = RowLoop(row, cut=cut_elements, name="written"), np.arange(90.0).reshape(10, 9)
    for parts, rows in ((1, 10), (3, 10), (16, 10), (2, 0)):
        loop[9, 8](parts, rows, 9, out)
    assert len(written) == len(gather.made[-1].signatures) == 1
    np.testing.assert_array_equal(out, np.arange(90.0).reshape(10, 9))


def _nothing(lane, u, out):
    pass


def scaled(number: float, helper: Callable) -> Callable:
    def row(lane, u, out):
        return helper(number)

    return row


def test_code_is_named_after_its_row_its_shape_and_all_that_its_row_refers_to(monkeypatch: pytest.MonkeyPatch) -> None:
    names = set()
    monkeypatch.setattr(gather, "_make", names.add)
    cuts = [Cut(None, Tile(32, 4, 1, False)), Cut(None, Tile(32, 4, 1, False), far_rows=True)]
    for cut in (*cuts, *cuts):
        RowLoop(_nothing)._function(cut)
    assert len(names) == 2
    for number, helper in ((1.0, clipped), (2.0, clipped), (1.0, sqrt), (1.0, clipped)):
        RowLoop(scaled(number, helper))._function(cuts[0])
    assert len(names) == 5


def test_files_that_vector_code_is_made_from_are_found_by_their_imports() -> None:
    found = files_of("kernels.vector.lanes")
    assert {f"kernels.vector.{name}" for name in ("lanes", "operands", "tiles")} <= found
    assert {"kernels.formula", "kernels.bounds", "kernels._compat.numba_internals", "kernels.aligned"} <= found
    assert not found & {"kernels.contract", "kernels.registry"}  # or each change of these would compile all anew


CHILD = """
import numpy as np, kernels, sys
sys.path.insert(0, ".")
from tests.support.cases import from_rows, random_case
from tests.support.implementations import assert_close, run
from kernels.vector import tiles
print(tiles.register_bytes())
for name, width in (("csr_dense", 1), ("csr_dense", 3), ("csr_dense", 100), ("adam_fused", 5), ("ftrl_lazy", 20)):
    case = random_case(30, 20, 200, width)
    kernel = kernels.get(name)
    args = kernel.arguments(case)
    assert_close(case, run(kernel.cpu, args), run(kernel.reference, args))
"""


def in_a_child(code: str, cache: Path, **environment: str) -> str:
    """What a fresh interpreter prints that compiles into `cache`."""
    known = {"PYTHONPATH": f"{ROOT}:{':'.join(filter(None, sys.path))}", "NUMBA_CACHE_DIR": str(cache)}
    return printed(code, env={"PATH": os.environ["PATH"], **known, **environment})


PROCESSORS = {
    "AVX2": ("haswell", "+sse,+sse2,+sse3,+ssse3,+sse4.1,+sse4.2,+avx,+avx2,+fma,+bmi,+bmi2", 32),
    "SSE2": ("x86-64", "+sse,+sse2", 16),
}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the processors named here are of the x86 family")
@pytest.mark.parametrize("processor", ["SSE2", pytest.param("AVX2", marks=pytest.mark.exhaustive)])
def test_same_code_runs_on_processors_with_narrower_vectors(processor: str, tmp_path: Path) -> None:
    name, features, width = PROCESSORS[processor]
    if register_bytes() < width:
        pytest.skip(f"this processor has no {processor}")
    printed = in_a_child(CHILD, tmp_path, NUMBA_CPU_NAME=name, NUMBA_CPU_FEATURES=features)
    assert printed.split() == [str(width)]


MISSES = """
import kernels, sys
sys.path.insert(0, ".")
from tests.support.cases import from_rows, random_case
from kernels.vector import gather
kernel = kernels.get("csr_dense")
args = kernel.arguments(random_case(9, 8, 60, 16))
kernel.cpu(*args)
print(sum(sum(f.stats.cache_misses.values()) for f in gather.made))
"""


def test_second_process_takes_its_code_from_disk(tmp_path: Path) -> None:
    assert [int(in_a_child(MISSES, tmp_path)) for _ in range(2)] == [1, 0]


def test_values_of_one_are_left_out() -> None:
    case = random_case(9, 8, 60, 20)
    indptr, indices, _, x, out = get("csr_dense").arguments(case)
    kernels.get("csr_dense").cpu(indptr, indices, np.ones(60, np.float32), x, out)
    without = out.copy()
    kernels.get("csr_dense_ones").cpu(indptr, indices, x, without)
    assert_close(case, [without], [out])


@pytest.mark.parametrize("name", ["csr_dense", "csr_dense_ones"])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_one_number_are_gathered_for_every_count_of_entries(name: str, index: type, dtype: type) -> None:
    lengths = np.arange(75)
    columns = np.random.default_rng(1).integers(0, 90, lengths.sum())
    case = from_rows(np.repeat(lengths, lengths), columns, lengths.size, 90, 1, dtype=dtype, index=index)
    kernel = get(name)
    args = kernel.arguments(case)
    assert_close(case, run(kernel.cpu, args), run(kernel.reference, args))


@pytest.mark.parametrize("name", ["csr_dense", "csr_dense_ones"])
@pytest.mark.parametrize(("width", "dtype"), [(2, np.float32), (3, np.float32), (8, np.float32), (4, np.float64)])
def test_rows_side_by_side_have_the_bits_of_one_entry_after_the_other(
    name: str, width: int, dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gather, "_compiled", numba.njit(nogil=True, error_model="numpy"))  # never loaded from disk
    lengths = np.arange(75)
    columns = np.random.default_rng(1).integers(0, 90, lengths.sum())
    case = from_rows(np.repeat(lengths, lengths), columns, lengths.size, 90, width, dtype=dtype)
    *arrays, _ = get(name).arguments(case)
    sums, made = [], []
    for full_lanes in (lanes.full_lanes, lambda bits: 1):
        monkeypatch.setattr(lanes, "full_lanes", full_lanes)
        side_by_side = lanes.Lane._sum_side_by_side
        monkeypatch.setattr(lanes.Lane, "_sum_side_by_side", lambda *a, f=side_by_side: made.append(f) or f(*a))
        out = np.full((lengths.size, width), 7, dtype)
        row = csr_dense._row if name == "csr_dense" else csr_dense_ones._row
        loop = RowLoop(row, starts=0, name=f"side_by_side_{len(sums)}")
        loop.run((width, out.itemsize, False), lengths.size, 0, *arrays, out)
        sums.append(out)
    np.testing.assert_array_equal(*sums)
    assert_close(case, [sums[0]], run(get(name).reference, get(name).arguments(case))[-1:])
    assert len(made) == 1


def test_vectors_that_are_gathered_by_loads_have_the_bits_of_the_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather, "_compiled", numba.njit(nogil=True, error_model="numpy"))  # never loaded from disk
    if not tiles.gathers():
        pytest.skip("This processor has no instruction that gathers.")
    case, x = random_case(20, 50, 700, 1), np.random.default_rng(2).standard_normal((50, 1)).astype(np.float32)
    sums, asked = [], []
    for by_loads in (False, True):
        monkeypatch.setattr(operands, "gathers_by_loads", lambda by_loads=by_loads: asked.append(by_loads) or by_loads)
        out = np.zeros((20, 1), np.float32)
        loop = RowLoop(csr_dense._row, starts=0, name=f"gathered_by_loads_{by_loads}")
        loop.run((1, 4, False), 20, 0, case.indptr, case.indices, case.data, x, out)
        sums.append(out)
    np.testing.assert_array_equal(*sums)
    assert set(asked) == {False, True}
    assert sums[0].any()


def test_a_processor_without_gathers_sums_an_entry_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr(gather, "_compiled", numba.njit(nogil=True, error_model="numpy"))  # never loaded from disk
    monkeypatch.setattr(lanes, "gathers", lambda: made.append("asked") or False)
    monkeypatch.setattr(lanes.Lane, "_sum_gathered", lambda *row: pytest.fail("gathered"))
    case = random_case(20, 50, 700, 1)
    loop = RowLoop(csr_dense._row, starts=0, name="without_gathers")
    out = np.zeros((20, 1), np.float32)
    x = np.random.default_rng(2).standard_normal((50, 1)).astype(np.float32)
    loop.run((1, 4, False), 20, 0, case.indptr, case.indices, case.data, x, out)
    dense = scipy.sparse.csr_array((case.data, case.indices, case.indptr), (20, 50)) @ x
    np.testing.assert_allclose(out, dense, rtol=1e-5, atol=1e-5)
    assert made
