"""Every GPU twin on the host emulator, on the adversarial cases of the CPU twins and on some of its own."""

import functools

import numpy as np
import pytest

import kernels
from kernels import Case, KernelError, plan
from kernels.gpu import indices, losses, updates
from kernels.gpu import indices as gpu_plan
from kernels.gpu import source as gpu_source
from kernels.gpu.source import sources
from kernels.products.dense_csr import transpose
from kernels.rules.rule import get_rule
from tests.support.cases import CASES
from tests.support.emulator import build as emulator_build
from tests.support.emulator.device import emulator
from tests.support.gpu_implementations import (
    BY_ROWS,
    DISTINCT,
    GPU_CASES,
    LONG,
    SOME,
    TILES,
    WITH,
    WITHOUT,
    assert_gpu_is_reference,
    gaps,
    not_run,
    pairs,
    run_on,
    shifted,
)
from tests.support.implementations import assert_close, copies, not_finite, run, same_bits
from tests.support.kernel_targets import CORE_CUDA, WIDTHS_CUDA, family_of, targets_of

pytestmark = pytest.mark.usefixtures("ascending")

every_twin = pytest.mark.parametrize("name", WITH)


@pytest.fixture(scope="session", autouse=True)
def built():
    emulator_build.build_all(list(sources.values()))


def test_every_kernel_has_a_gpu_twin() -> None:
    assert WITHOUT == []


@pytest.mark.covering(targets=targets_of(GPU_CASES, CORE_CUDA, WIDTHS_CUDA, family_of))
@pytest.mark.parametrize(("name", "case"), pairs(WITH).values(), ids=pairs(WITH))
def test_gpu_twin_computes_what_the_reference_defines(name: str, case: Case) -> None:
    assert_gpu_is_reference(emulator, name, case)


@pytest.mark.parametrize(
    ("name", "case_name"),
    [
        (name, case)
        for name in DISTINCT
        for case in SOME
        if name not in BY_ROWS or case not in ("many rows", "hot columns")
    ],
)
def test_same_bits_whichever_thread_and_block_comes_first(name: str, case_name: str) -> None:
    kernel, results = kernels.get(name), []
    args = kernel.arguments(GPU_CASES[case_name])
    for emulator.seed in (0, 1, 2):
        results.append(run_on(emulator, kernel.gpu, args))
    assert same_bits(results[0], results[1])
    assert same_bits(results[0], results[2])


@pytest.mark.parametrize(
    ("name", "case_name"),
    [
        (name, case_name)
        for name in DISTINCT
        for case_name in (("width 33", "long rows") if name in BY_ROWS else ("many rows", "hot columns", "width 600"))
    ],
)
def test_few_blocks_do_the_work_of_many(name: str, case_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, case = kernels.get(name), GPU_CASES[case_name]
    args = kernel.arguments(case)
    expected = run_on(emulator, kernel.gpu, args)
    monkeypatch.setattr(gpu_source, "MOST_BLOCKS", 2)
    for emulator.seed in (2, 3):
        assert same_bits(run_on(emulator, kernel.gpu, args), expected)


@pytest.mark.parametrize("shape", [(1, 1), (70, 100), (5000, 3)])
def test_few_blocks_sum_and_transpose_much(shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    x, targets = random.standard_normal(shape), random.standard_normal(shape)
    monkeypatch.setattr(gpu_source, "MOST_BLOCKS", 1)
    for emulator.seed in (2, 3, 4):
        assert same_bits([emulator.read(transpose(emulator.put(x)))], [np.ascontiguousarray(x.T)])
        gradient = emulator.empty(shape, x.dtype)
        loss = kernels.get("squared").gpu(emulator.put(x), emulator.put(targets), gradient)
        np.testing.assert_allclose(loss, np.square(x - targets).sum() / 2 / shape[0], rtol=1e-12)
        np.testing.assert_allclose(kernels.get("square_norm").gpu(emulator.put(x)), np.square(x).sum(), rtol=1e-12)
        np.testing.assert_allclose(losses.total(emulator.put(x.reshape(-1))), x.sum(), rtol=1e-12)


@every_twin
def test_nan_and_inf_go_where_the_reference_puts_them(name: str) -> None:
    kernel = kernels.get(name)
    for case in (CASES["width 5"], CASES["width 16"]):
        args = not_finite(kernel, case)
        assert_close(case, run_on(emulator, kernel.gpu, args), run(kernel.reference, args))


@every_twin
def test_arrays_with_gaps_give_the_same(name: str) -> None:
    kernel, case = kernels.get(name), CASES["width 16"]
    args = kernel.arguments(case)
    assert same_bits(run_on(emulator, kernel.gpu, args, gaps), run_on(emulator, kernel.gpu, args))


@every_twin
def test_wrong_arguments_are_refused_by_name(name: str) -> None:
    kernel = kernels.get(name)
    args = kernel.arguments(CASES["plain"])
    there = [emulator.put(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
    with pytest.raises(KernelError, match=f"^{name} takes {len(args)} arguments"):
        kernel.gpu(*there, 1)
    for place, (parameter, kind, _) in enumerate(kernel.parsed):
        if kind == "s":
            continue
        wrong = emulator.put(args[place].astype(np.int16))
        with pytest.raises(KernelError, match=rf"^{name}: {parameter} is int16"):
            kernel.gpu(*there[:place], wrong, *there[place + 1 :])
        if place:
            with pytest.raises(KernelError, match=rf"^{name}: {parameter} must be a .*Array, not ndarray"):
                kernel.gpu(*there[:place], args[place], *there[place + 1 :])
    with pytest.raises(TypeError, match="pass CuPy arrays"):
        kernel.gpu(*args)


def wrong_calls() -> dict[str, tuple]:
    """Calls whose values are wrong, for which both twins have the same message."""
    scores, gradient = np.zeros((3, 4), np.float32), np.zeros((3, 4), np.float32)
    ints, floats = np.arange(4, dtype=np.int32), np.ones(4, np.float32)
    starts, rows = np.array([0, 2, 4], np.int32), np.ones((4, 2), np.float32)
    return {
        "label too large": ("softmax", scores, np.array([3, 4, 9]), gradient),
        "label below 0": ("softmax", scores, np.array([3, 0, -1]), gradient),
        "row too large": ("coo_to_csr", ints, ints, floats, 3),
        "row below 0": ("coo_to_csr", ints - 1, ints, floats, 4),
        "column too large": ("csr_to_csc", starts, ints, floats, 2),
        "no such row": ("slice_rows", starts, ints, floats, np.array([1, 0, 2, -1])),
        "row of the end": ("slice_rows", starts, ints, floats, np.array([0, -1])),
        "merged below 0": ("merge_rows", ints - 2, rows),
        "wanted below 0": ("retain_rows", ints, rows, np.array([2, 1, -3], np.int32)),
    }


@pytest.mark.parametrize("call", wrong_calls().values(), ids=wrong_calls())
def test_wrong_values_are_refused_as_on_the_cpu(call: tuple) -> None:
    name, *args = call
    messages = []
    with pytest.raises(KernelError):  # whoever calls by name is told before the implementation is asked
        kernels.get(name).cpu(*copies(tuple(args)))
    for function in (kernels.get(name).trusted, lambda *args: run_on(emulator, kernels.get(name).gpu, args)):
        with pytest.raises(KernelError) as raised:
            function(*copies(tuple(args)))
        messages.append(str(raised.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("name", ["coo_to_csr", "csr_to_csc", "dense_to_csr", "slice_rows"])
def test_indices_become_int64_where_int32_is_too_narrow(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "INT32_LIMIT", 8)
    assert assert_gpu_is_reference(emulator, name, CASES["plain"])[0].dtype == np.int64


def assert_same_plan(case: Case) -> None:
    there = gpu_plan.build(emulator.put(case.indptr), emulator.put(case.indices), case.D, in_order_of_length=True)
    here = plan.build(case.indptr, case.indices, case.D)
    for field in ("columns", "segments", "rows", "permutation"):
        assert same_bits([emulator.read(getattr(there, field))], [getattr(here, field)])
    for field in ("shape", "longest_run", "row_length", "longest_row"):
        assert getattr(there, field) == getattr(here, field)
    values = gpu_plan.in_order(there, emulator.put(case.data))
    assert same_bits([emulator.read(values)], [here.in_order(case.data)])


@pytest.mark.parametrize("case", {**CASES, **LONG}.values(), ids={**CASES, **LONG})
def test_plan_on_the_device_is_that_of_the_cpu(case: Case) -> None:
    assert_same_plan(case)
    emulator.seed = 1
    assert_same_plan(case)


@pytest.mark.parametrize("wrong", [-1, 11])
def test_plan_on_the_device_refuses_an_index_out_of_range(wrong: int) -> None:
    indices = CASES["plain"].indices.copy()
    indices[4] = wrong
    with pytest.raises(ValueError, match=f"Entry 4 has column {wrong}; allowed are 0 to 10"):
        gpu_plan.build(emulator.put(CASES["plain"].indptr), emulator.put(indices), 11)


def test_plan_on_the_device_refuses_row_starts_of_another_batch() -> None:
    case = CASES["plain"]
    with pytest.raises(ValueError, match="indptr goes from 0 to 20, indices holds 19"):
        gpu_plan.build(emulator.put(case.indptr), emulator.put(case.indices[1:]), 11)


SUMS = ["csr_dense", "csr_dense_ones", "sddmm"]


@pytest.mark.parametrize(("case", "is_shifted"), TILES.values(), ids=TILES)
@pytest.mark.parametrize("name", SUMS)
def test_every_tile_with_arrays_aligned_and_not(name: str, case: Case, is_shifted: bool) -> None:
    kernel = kernels.get(name)
    args = kernel.arguments(case)
    came = run_on(emulator, kernel.gpu, args, shifted if is_shifted else None)
    assert_close(case, came, run(kernel.reference, args))


LIVE = ["hot columns", "width 4", "width 33", "width 128", "64 bits, odd"]
LIVE += [f"64 bits, width {width}" for width in (4, 9, 64)]


@pytest.mark.parametrize("case_name", LIVE)
@pytest.mark.parametrize(
    "name", [name for name in WITH if name.endswith("_dense") and "weights" in kernels.get(name).operands]
)
def test_settings_on_the_device_step_as_numbers_do(name: str, case_name: str) -> None:
    kernel, rule = kernels.get(name), get_rule(name.removesuffix("_dense"))
    arrays, (gradient,), settings = rule.split(tuple(kernel.arguments(GPU_CASES[case_name])))
    numbers, live = kernel.arguments(GPU_CASES[case_name])[-len(rule.numbers) :], np.array(settings, gradient.dtype)
    for put in (functools.partial(shifted, emulator), emulator.put):
        here, there = [put(array) for array in arrays], [put(array) for array in arrays]
        kernel.gpu(*here, put(gradient), *numbers)
        updates.live_dense(rule, tuple(there), put(gradient), emulator.put(live))
        assert same_bits([emulator.read(array) for array in there], [emulator.read(array) for array in here])


@pytest.mark.parametrize("length", [1, 5, 32, 33, 130])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_of_equal_scores_the_list_has_the_smallest_columns(length: int, dtype: type) -> None:
    """The lists start at -inf and take blocks of columns in rising order; -inf and NaN are never taken."""
    scores = np.random.default_rng(length).integers(-3, 4, (6, 300)).astype(dtype)
    scores[0], scores[1, 3:], scores[2, ::7], scores[3, ::5] = -np.inf, -np.inf, np.nan, np.inf
    best, places = emulator.put(np.full((6, length), -np.inf, dtype)), emulator.put(np.full((6, length), -1))
    for first in range(0, 300, 130):
        kernels.get("top_scores").gpu(emulator.put(scores[:, first : first + 130].copy()), first, best, places)
    for row, own, columns in zip(scores, emulator.read(best), emulator.read(places), strict=True):
        taken = np.flatnonzero(row > -np.inf)
        expected = taken[np.argsort(-row[taken], kind="stable")][:length]
        rest = length - expected.size
        np.testing.assert_array_equal(columns, np.append(expected, np.full(rest, -1)))
        np.testing.assert_array_equal(own, np.append(row[expected], np.full(rest, -np.inf)))


@pytest.mark.parametrize("width", [1, 2, 4, 16, 32, 40])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_copied_by_every_word(width: int, dtype: type) -> None:
    source, index = np.arange(7 * width).reshape(7, width).astype(dtype), np.array([6, 0, 3])
    for put in (functools.partial(shifted, emulator), emulator.put):
        out, back = put(np.zeros((3, width), dtype)), put(np.zeros((7, width), dtype))
        kernels.get("take_rows").gpu(put(source), emulator.put(index), out)
        kernels.get("scatter_rows").gpu(out, emulator.put(index), back)
        np.testing.assert_array_equal(emulator.read(out), source[index])
        np.testing.assert_array_equal(emulator.read(back)[index], source[index])


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("size", [0, 1, 2047, 2048, 2049, 5000])
def test_sort_scan_and_runs_over_many_tiles(size: int, dtype: type, monkeypatch) -> None:
    random, kind = np.random.default_rng(size), np.dtype(np.int32)
    if dtype == np.int64:
        monkeypatch.setattr(gpu_source, "MOST_BLOCKS", 2)
    for limit, emulator.seed in ((1, 0), (11, 1), (70_000, 2), (2**31 - 1, 3)):
        keys = random.integers(0, limit, size).astype(dtype)
        ordered, places = indices.sort(emulator.put(keys), limit, kind)
        expected = np.argsort(keys, kind="stable").astype(np.int32)
        assert same_bits([emulator.read(ordered), emulator.read(places)], [keys[expected], expected])
        unique, counts = np.unique(keys, return_counts=True)
        heads, starts = map(emulator.read, indices.runs(ordered, kind))
        assert same_bits([heads, np.diff(starts)], [unique.astype(np.int64), counts.astype(np.int32)])
        assert indices.survey(emulator.put(keys), limit) == (-1, 0, keys.max(initial=0))
        came = emulator.read(indices.scan(emulator.put(keys.astype(np.int64)), np.dtype(np.int64)))
        assert same_bits([came], [np.concatenate(([0], keys.cumsum(dtype=np.int64)))])


def test_every_variant_that_launchers_name_was_run(request: pytest.FixtureRequest) -> None:
    """Those for two bytes a value have modules of their own."""
    assert not_run(request, emulator.launches, "wide") == []
