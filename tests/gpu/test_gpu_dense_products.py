"""What cuBLAS is asked for, by a library in its place: compiled from C++, with NVIDIA's signatures, on the host."""

import ctypes
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from kernels import KernelError, devices, sessions
from kernels.sessions import CudaSession, DenseProducts

if shutil.which("g++") is None:
    pytest.skip("g++, which compiles the library in the place of cuBLAS, is not installed", allow_module_level=True)


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> ctypes.CDLL:
    made = tmp_path_factory.mktemp("library") / "libcublas.so"
    source = Path(__file__).with_name("cublas.cpp")
    subprocess.run(["g++", "-shared", "-fPIC", "-O1", "-o", made, source], check=True, timeout=60)
    return ctypes.CDLL(str(made))


class HostArray:
    """As much of a CuPy array as products touch, on the host."""

    def __init__(self, host: np.ndarray) -> None:
        assert host.flags.c_contiguous
        self.host, self.shape, self.dtype, self.size = host, host.shape, host.dtype, host.size
        self.data = SimpleNamespace(ptr=host.ctypes.data)

    def fill(self, value: float) -> None:
        self.host.fill(value)


class FakeCuda:
    """As much of `cupy.cuda` as products touch."""

    def __init__(self) -> None:
        self.handles, self.stream, self.capability, self.made = 0, 5, "90", []
        self.runtime = SimpleNamespace(runtimeGetVersion=lambda: 12090)
        self.device = SimpleNamespace(get_cublas_handle=self.handle)

    def handle(self) -> int:
        self.handles += 1
        return 77

    def Device(self) -> SimpleNamespace:  # noqa: N802 - CuPy's name
        return SimpleNamespace(compute_capability=self.capability)

    def Memory(self, size: int) -> SimpleNamespace:  # noqa: N802 - CuPy's name
        self.made.append(size)
        return SimpleNamespace(ptr=4096)

    def get_current_stream(self) -> SimpleNamespace:
        return SimpleNamespace(ptr=self.stream)


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch, library: ctypes.CDLL) -> FakeCuda:
    made = FakeCuda()
    monkeypatch.setattr(devices, "cupy", lambda: SimpleNamespace(cuda=made))
    monkeypatch.setattr(sessions, "load_library", lambda version: library)
    notes_of(library)
    return made


def notes_of(library: ctypes.CDLL) -> list[int]:
    """What the library was asked for since the last time."""
    notes = np.zeros(64, np.int64)
    count = library.take(ctypes.c_void_p(notes.ctypes.data))
    return notes[:count].tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sizes", [(5, 7, 3), (1, 7, 3), (5, 1, 3), (5, 7, 1), (1, 1, 1), (16, 30, 64)])
def test_products_are_those_of_numpy(cuda: FakeCuda, sizes: tuple[int, int, int], dtype: str) -> None:
    random, (rows, features, width) = np.random.default_rng(0), sizes
    x, w, g = (
        random.standard_normal(shape).astype(dtype) for shape in ((rows, features), (features, width), (rows, width))
    )
    products, rtol = DenseProducts(), 1e-12 if dtype == "float64" else 1e-4
    for left, right, transposed, expected in ((x, w, False, x @ w), (x, g, True, x.T @ g)):
        out = np.full(expected.shape, np.nan, dtype)
        products.multiply(HostArray(left), HostArray(right), HostArray(out), transposed)
        np.testing.assert_allclose(out, expected, rtol=rtol, atol=rtol)


def test_without_rows_a_gradient_is_zero_and_cublas_is_not_asked(cuda: FakeCuda, library) -> None:
    x, g, out = np.empty((0, 7)), np.empty((0, 3)), np.full((7, 3), np.nan)
    DenseProducts().multiply(HostArray(x), HostArray(g), HostArray(out), transposed=True)
    assert not out.any()
    DenseProducts().multiply(HostArray(x), HostArray(out), HostArray(np.empty((0, 3))))
    assert notes_of(library) == []


@pytest.mark.parametrize(("capability", "megabytes"), [("75", 4), ("86", 4), ("90", 32), ("120", 32)])
def test_the_workspace_is_made_once_and_set_after_the_stream_before_each_product(
    cuda: FakeCuda, library, capability: str, megabytes: int
) -> None:
    cuda.capability = capability
    products, x = DenseProducts(), HostArray(np.ones((2, 2), np.float32))
    for stream in (5, 6):
        cuda.stream = stream
        products.multiply(x, x, HostArray(np.empty((2, 2), np.float32)))
        size = megabytes * 2**20
        assert notes_of(library) == [1, 77, stream, 2, 4096, size, 3, 77, 68, -1]
    assert cuda.made == [size]


def test_a_failure_of_cublas_is_told_with_its_status(cuda: FakeCuda) -> None:
    cuda.stream, x = 13, HostArray(np.ones((2, 2)))
    with pytest.raises(KernelError, match="cublasSetStream_v2 of cuBLAS failed with status 3"):
        DenseProducts().multiply(x, x, x)


def test_a_session_loads_cublas_when_it_first_multiplies(monkeypatch: pytest.MonkeyPatch, cuda: FakeCuda) -> None:
    fake = SimpleNamespace(cuda=cuda, get_default_memory_pool=lambda: None)
    cuda.Stream = lambda non_blocking: None
    monkeypatch.setattr(devices, "cupy", lambda: fake)
    session, out = CudaSession(), np.empty((3, 3))
    assert cuda.handles == 0
    for _ in range(2):
        session.matmul(HostArray(np.eye(3)), HostArray(np.eye(3)), HostArray(out), transposed=True)
        np.testing.assert_array_equal(out, np.eye(3))
    assert cuda.made == [2**25]
