"""Every GPU twin on a real device, where there is one: the comparisons of `test_gpu_emulated.py` through CuPy."""

import contextlib
import functools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import kernels
from kernels import Case, KernelError, devices, plan
from kernels.gpu import indices as gpu_plan
from kernels.gpu import rounding
from kernels.gpu.rounding import Rounding
from kernels.gpu.source import sources
from kernels.sessions import CudaSession
from tests.support.cases import CASES
from tests.support.gpu_implementations import (
    COMPETITORS,
    DISTINCT,
    GPU_CASES,
    LONG,
    SOME,
    TILES,
    WITH,
    assert_gpu_is_reference,
    pairs,
    run_on,
)
from tests.support.gpu_steps import PAIRS, assert_dense_steps_are_those_of_kernels, assert_steps_are_those_of_the_cpu
from tests.support.implementations import assert_close, not_finite, run, same_bits
from tests.support.narrow_implementations import (
    CALLS,
    HOWS,
    KINDS,
    NARROW,
    PRODUCTS,
    assert_product_is_right,
    assert_update_is_right,
    cases_of,
)
from tests.support.rounding_model import boundaries, numbers_of, rounded

found = devices.probe()
if not found.present:
    pytest.skip(f"GPU twins need a CUDA device: {found.reason}", allow_module_level=True)

every_twin = pytest.mark.parametrize("name", WITH)


@pytest.fixture(scope="module")
def device() -> devices.Device:
    return devices.CupyDevice()


def test_every_kernel_compiles_and_loads() -> None:
    """Many at once, which the compiler allows once it has been loaded; the tests below find them ready."""
    first, *others = [(source, name) for source in sources.values() for name in source.names]
    assert devices.compile_kernel(*first)
    with ThreadPoolExecutor() as pool:
        assert all(pool.map(lambda pair: devices.compile_kernel(*pair), others))


@pytest.mark.parametrize(("name", "case"), pairs(WITH).values(), ids=pairs(WITH))
def test_gpu_twin_computes_what_the_reference_defines(device, name: str, case: Case) -> None:
    assert_gpu_is_reference(device, name, case)


@pytest.mark.parametrize("case_name", SOME)
@pytest.mark.parametrize("name", DISTINCT)
def test_same_bits_on_every_run(device, name: str, case_name: str) -> None:
    kernel = kernels.get(name)
    args = kernel.arguments(GPU_CASES[case_name])
    first = run_on(device, kernel.gpu, args)
    for _ in range(3):
        assert same_bits(first, run_on(device, kernel.gpu, args))


@pytest.mark.parametrize("case", [case for case, _ in TILES.values()], ids=TILES)
@pytest.mark.parametrize("name", ["csr_dense", "csr_dense_ones", "sddmm"])
def test_every_tile(device, name: str, case: Case) -> None:
    assert_gpu_is_reference(device, name, case)


@every_twin
def test_nan_and_inf_go_where_the_reference_puts_them(device, name: str) -> None:
    kernel = kernels.get(name)
    for case in (CASES["width 5"], CASES["width 16"]):
        args = not_finite(kernel, case)
        assert_close(case, run_on(device, kernel.gpu, args), run(kernel.reference, args))


@every_twin
def test_arrays_with_gaps_give_the_same(device, name: str) -> None:
    kernel, case = kernels.get(name), CASES["width 16"]
    args = kernel.arguments(case)

    def call(*there) -> object:
        gaps = [devices.cupy().repeat(one, 2, axis=-1)[..., ::2] if hasattr(one, "shape") else one for one in there]
        result = kernel.gpu(*gaps)
        for one, gap, (parameter, _, _) in zip(there, gaps, kernel.parsed, strict=True):
            if parameter in kernel.writes:
                one[...] = gap
        return result

    assert same_bits(run_on(device, call, args), run_on(device, kernel.gpu, args))


@pytest.mark.parametrize("case", {**CASES, **LONG}.values(), ids={**CASES, **LONG})
def test_plan_on_the_device_is_that_of_the_cpu(device, case: Case) -> None:
    there = gpu_plan.build(device.put(case.indptr), device.put(case.indices), case.D)
    here = plan.build(case.indptr, case.indices, case.D)
    for field in ("columns", "segments", "rows", "permutation"):
        assert same_bits([device.read(getattr(there, field))], [getattr(here, field)])
    for field in ("shape", "longest_run", "row_length", "longest_row"):
        assert getattr(there, field) == getattr(here, field)


@pytest.mark.parametrize("size", [100_000, 3_000_000])
def test_sums_of_a_large_batch(device, size: int) -> None:
    """Many blocks at once: products, gradient, plan and sort of uniform and of very uneven columns."""
    random = np.random.default_rng(size)
    R, D, N = size // 50, size // 10, 16
    columns = np.where(random.random(size) < 0.3, 7, random.integers(0, D, size)).astype(np.int32)
    indptr = np.concatenate(([0], np.sort(random.integers(0, size, R - 1)), [size])).astype(np.int32)
    case = Case(indptr, columns, random.standard_normal(size), D, N)
    for name in ("csr_dense", "csr_t_dense", "sddmm", "csr_to_csc", "csr_t_dense_full"):
        args = kernels.get(name).arguments(case)
        assert_close(case, run_on(device, kernels.get(name).gpu, args), run(kernels.get(name).cpu, args))


@pytest.mark.parametrize("width", [4, 5])
@pytest.mark.parametrize(("rule", "loss"), PAIRS)
def test_steps_in_a_graph_are_those_of_the_cpu(device, rule: str, loss: str, width: int) -> None:
    """Of two slots, of which each has a graph."""
    assert_steps_are_those_of_the_cpu(CudaSession(), rule, loss, width, contextlib.nullcontext)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", [1, 4, 5, 64])
@pytest.mark.parametrize(("rule", "loss"), PAIRS)
def test_dense_steps_in_a_graph_have_the_bits_of_their_kernels(
    device, rule: str, loss: str, width: int, dtype: str
) -> None:
    """With batches of fewer rows than there is room for."""
    assert_dense_steps_are_those_of_kernels(CudaSession(), rule, loss, width, dtype, contextlib.nullcontext)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_tables_of_two_bytes_a_value(device, name: str, kind: str) -> None:
    for case in NARROW:
        assert_product_is_right(device, name, case, kind)


@pytest.mark.parametrize("how", HOWS.values(), ids=HOWS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("rule", "call"), CALLS)
def test_updates_of_weights_of_two_bytes(device, rule: str, call: str, kind: str, how: Rounding) -> None:
    for case in cases_of(rule):
        assert_update_is_right(device, call, rule, case, kind, how)


@pytest.mark.parametrize("kind", KINDS)
def test_instructions_round_as_the_model_does(device, kind: str) -> None:
    values = boundaries(kind)
    numbers = {"nearest": None, "random": numbers_of(values.shape, HOWS["random"].seed, HOWS["random"].step)}
    for name, how in HOWS.items():
        function = functools.partial(rounding.rounded, rounding=how)
        out = run_on(device, function, (values, np.empty(values.shape, kind)))[-1]
        assert same_bits([out], [rounded(values, kind, numbers[name])])


def test_host_arrays_are_refused(device) -> None:
    args = kernels.get("csr_dense").arguments(CASES["plain"])
    with pytest.raises(TypeError, match="pass CuPy arrays"):
        kernels.get("csr_dense").gpu(*args)
    with pytest.raises(KernelError, match=r"^csr_dense: x must be a cupy\.ndarray, not ndarray"):
        kernels.get("csr_dense").gpu(*map(device.put, args[:3]), *args[3:])


@pytest.mark.parametrize("case_name", ["plain", "no entries", "width 16", "width 33", "many rows", "full column"])
@pytest.mark.parametrize("competitor", COMPETITORS, ids=lambda competitor: competitor.name)
def test_a_competitor_computes_what_it_is_compared_for(device, competitor: kernels.Kernel, case_name: str) -> None:
    name = competitor.name
    if name.startswith("torch"):
        pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'sparse-workbench[peers]'")
    case = CASES[case_name]
    args = competitor.arguments(case)
    expected = run(competitor.reference, args)
    tolerance = 1e-2 if "tf32" in name else 0
    for function in filter(
        None, (competitor.gpu, competitor.prepare and (lambda *there: competitor.prepare(*there)()))
    ):
        came = run_on(device, function, args)
        if tolerance:
            np.testing.assert_allclose(came[-1], expected[-1], rtol=tolerance, atol=tolerance)
        else:
            assert_close(case, came, expected)
