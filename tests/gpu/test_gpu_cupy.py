"""Wherever CuPy is installed, with a GPU or without one: it has what we take from it, under the names that we use."""

import functools
import importlib.util

import pytest

from kernels import devices, sessions
from kernels.vendor import cusparse

if importlib.util.find_spec("cupy") is None:
    pytest.skip(f"CuPy is not installed: {devices.INSTALL}", allow_module_level=True)

cupy = devices.cupy()

USED = (
    *("RawKernel", "RawModule.get_function", "asarray", "asnumpy", "ascontiguousarray", "empty", "zeros", "matmul"),
    *("ndarray.fill", "ndarray.set", "get_default_memory_pool", "cuda.MemoryHook.malloc_postprocess"),
    *("cuda.MemoryPointer.copy_from_host_async", "cuda.MemoryPointer.copy_from_device_async"),
    *("cuda.MemoryPool.used_bytes", "cuda.alloc_pinned_memory", "cuda.get_current_stream", "cuda.get_elapsed_time"),
    *("cuda.Stream.begin_capture", "cuda.Stream.end_capture", "cuda.Stream.synchronize", "cuda.Stream.wait_event"),
    *("cuda.Event.record", "cuda.Event.synchronize", "cuda.Graph.launch", "cuda.device.get_cusparse_handle"),
    *("cuda.device.get_cublas_handle", "cuda.Device", "cuda.Memory", "cuda.runtime.runtimeGetVersion"),
)
USED_OF_CUSPARSE = (
    *("createCsr", "createDnMat", "destroySpMat", "destroyDnMat", "spMM", "spMM_bufferSize"),
    *("CUSPARSE_INDEX_32I", "CUSPARSE_INDEX_64I", "CUSPARSE_INDEX_BASE_ZERO"),
)


@pytest.mark.parametrize("name", USED)
def test_a_name_that_we_use_is_there(name: str) -> None:
    assert callable(functools.reduce(getattr, name.split("."), cupy))


def test_cusparse_has_the_names_and_the_numbers_that_we_use() -> None:
    try:
        library = cupy.cuda.cusparse
    except ImportError as error:
        pytest.skip(f"cuSPARSE is not installed: {error}")
    assert [name for name in USED_OF_CUSPARSE if not hasattr(library, name)] == []
    assert library.CUSPARSE_ORDER_ROW == cusparse._ROW_MAJOR
    runtime = cupy.cuda.runtime
    assert {"float32": runtime.CUDA_R_32F, "float64": runtime.CUDA_R_64F} == cusparse._CUDA_TYPES


@pytest.mark.parametrize("limit", [0, 10**10])
def test_the_error_of_memory_that_runs_out_tells_the_bytes(limit: int) -> None:
    error = cupy.cuda.memory.OutOfMemoryError(5_000_000_000, 512, limit)
    assert isinstance(error, MemoryError)
    assert devices.bytes_asked(error) == 5_000_000_000


def test_the_hook_takes_what_cupy_tells_of_an_allocation() -> None:
    noted: list[int] = []
    hook = sessions._hook(cupy, lambda: noted.append(1))
    with hook:
        hook.malloc_preprocess(device_id=0, size=5, mem_size=512)
        hook.malloc_postprocess(device_id=0, size=5, mem_size=512, mem_ptr=4096, pmem_id=1)
        hook.free_postprocess(device_id=0, mem_size=512, mem_ptr=4096, pmem_id=1)
    assert noted == [1]


def test_full_float32_and_tf32_can_be_asked_for() -> None:
    linalg = importlib.import_module("cupy._core._routines_linalg")
    before = linalg.get_compute_type("float32")
    linalg.set_compute_type("float32", linalg.COMPUTE_TYPE_FP32)
    try:
        assert linalg.get_compute_type("float32") == linalg.COMPUTE_TYPE_FP32 != linalg.COMPUTE_TYPE_TF32
    finally:
        linalg.set_compute_type("float32", before)
