"""NVIDIA's sparse products on a CUDA device: cuSPARSE at its best.

cusparse.csr_dense         out = A @ x: row-major, descriptors and buffer made once, the fastest of its algorithms
cusparse.csr_t_dense_full  out = A.T @ g: the same, by its transposed operation

Arguments  as those of csr_dense and csr_t_dense_full, CuPy arrays
Writes     out, overwritten; nothing else changes
Assumes    indices in range, as ours do
Cost       2*z*N flops; bytes as of the kernel that each competes with
Parallel   as cuSPARSE does; some of its algorithms add in any order
Limits     z < 2**31 with int32 indices
Source     cusparseSpMM with CUSPARSE_SPMM_CSR_ALG1 to 3, without the preprocessing that CuPy does not offer
"""

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

from kernels import devices
from kernels.registry import register_competitor

UNAVAILABLE = (
    "it runs on CUDA devices alone" if importlib.util.find_spec("cupy") else f"CuPy is not installed: {devices.INSTALL}"
)

ALGORITHMS = {"ALG1": 4, "ALG2": 6, "ALG3": 12}
"""Values of cusparseSpMMAlg_t for matrices in CSR form."""

ONLY_PLAIN = ("ALG3",)
"""Algorithms that cuSPARSE refuses for A.T."""

TRIES = 5
"""Calls of each algorithm, of which the last is timed."""

_NO_TRANSPOSE, _TRANSPOSE, _ROW_MAJOR = 0, 1, 2
_CUDA_TYPES = {"float32": 0, "float64": 1}


class _Product:
    """Descriptors of out = op(A) @ x, and the buffer of each algorithm; freed with the object."""

    def __init__(self, indptr, indices, data, x, out, operation: int) -> None:
        """Create cuSPARSE descriptors of out = op(A) @ x over device arrays, which are kept alive.

        A is in CSR form (indptr, indices, data), x and out are dense; `operation` is _NO_TRANSPOSE or _TRANSPOSE.
        Buffers are allocated on first use of an algorithm.
        """
        self.matrix, self.dense = None, []
        self.cupy, self.operation, self.kept = devices.cupy(), operation, (indptr, indices, data, x, out)
        self.library = self.cupy.cuda.cusparse  # the attribute; importing the module would not look for the library
        self.kind = _CUDA_TYPES[out.dtype.name]
        index = getattr(self.library, f"CUSPARSE_INDEX_{8 * indptr.dtype.itemsize}I")
        rows, columns = (out.shape[0], x.shape[0]) if operation == _NO_TRANSPOSE else (x.shape[0], out.shape[0])
        pointers = [array.data.ptr for array in (indptr, indices, data)]
        zero = self.library.CUSPARSE_INDEX_BASE_ZERO
        self.matrix = self.library.createCsr(rows, columns, data.size, *pointers, index, index, zero, self.kind)
        for array in (x, out):
            sizes = *array.shape, array.shape[1]
            self.dense.append(self.library.createDnMat(*sizes, array.data.ptr, self.kind, _ROW_MAJOR))
        self.one, self.nought = (np.array(value, out.dtype) for value in (1, 0))
        self.buffers: dict[int, Any] = {}

    def __del__(self) -> None:
        """Destroy the descriptors that were created."""
        if self.matrix is not None:
            self.library.destroySpMat(self.matrix)
        for dense in self.dense:
            self.library.destroyDnMat(dense)

    def __call__(self, algorithm: int) -> None:
        """Queue the product by `algorithm`, a value of `ALGORITHMS`, in CuPy's current stream; overwrites out."""
        handle = self.cupy.cuda.device.get_cusparse_handle()
        one, nought = self.one.ctypes.data, self.nought.ctypes.data
        operands = one, self.matrix, self.dense[0], nought, self.dense[1]
        arguments = handle, self.operation, _NO_TRANSPOSE, *operands, self.kind, algorithm
        if algorithm not in self.buffers:
            self.buffers[algorithm] = self.cupy.empty(self.library.spMM_bufferSize(*arguments), np.int8)
        self.library.spMM(*arguments, self.buffers[algorithm].data.ptr)


def _best(product: _Product) -> int:
    """Return the value of `ALGORITHMS` that is fastest on these operands, by timing each; waits for the device."""
    cuda, seconds = devices.cupy().cuda, {}
    left_out = ONLY_PLAIN if product.operation == _TRANSPOSE else ()
    for algorithm in (number for name, number in ALGORITHMS.items() if name not in left_out):
        for _ in range(TRIES):
            start, end = cuda.Event(), cuda.Event()
            start.record()
            product(algorithm)
            end.record()
        end.synchronize()  # synchronize!
        seconds[algorithm] = cuda.get_elapsed_time(start, end)
    return min(seconds, key=seconds.__getitem__)


def _prepared(indptr, indices, data, x, out, operation: int) -> Callable[[], None]:
    """Return out = op(A) @ x as a call without arguments, by the fastest algorithm; `operation` as of `_Product`.

    A is in CSR form: indptr [R+1], indices and data [z], on the device; each call overwrites out. Runs and times the
    algorithms.
    """
    if not (out.size and data.size):
        return lambda: out.fill(0)
    product = _Product(indptr, indices, data, x, out, operation)
    algorithm = _best(product)
    return lambda: product(algorithm)


def prepare_csr_dense(indptr, indices, data, x, out):
    """Return a call without arguments that computes out = A @ x by cuSPARSE; descriptors are made here, once.

    A is in CSR form (indptr, indices, data), x [D, N]; out [R, N] is overwritten by each call. Runs and times the
    algorithms.
    """
    return _prepared(indptr, indices, data, x, out, _NO_TRANSPOSE)


def prepare_csr_t_dense_full(indptr, indices, data, g, out):
    """Return a call without arguments that computes out = A.T @ g by cuSPARSE; descriptors are made here, once.

    A is in CSR form (indptr, indices, data), g [R, N]; out [D, N] is overwritten by each call. Runs and times the
    algorithms.
    """
    return _prepared(indptr, indices, data, g, out, _TRANSPOSE)


def _sum_products(indptr, indices, data, x, out, operation: int) -> None:
    """Compute out = op(A) @ x with new descriptors, by the algorithm recommended for row-major operands.

    A is in CSR form: indptr [R+1], indices and data [z]; x and out are dense; all on the device; `operation` as of
    `_Product`. out is overwritten.
    """
    if out.size and data.size:
        _Product(indptr, indices, data, x, out, operation)(ALGORITHMS["ALG2"])
    else:
        out.fill(0)


def csr_dense(indptr, indices, data, x, out):
    """Compute out = A @ x by cuSPARSE with descriptors and buffer made for this call; out [R, N] is overwritten.

    A is in CSR form (indptr, indices, data), x [D, N], on the device.
    """
    _sum_products(indptr, indices, data, x, out, _NO_TRANSPOSE)


def csr_t_dense_full(indptr, indices, data, g, out):
    """Compute out = A.T @ g by cuSPARSE with descriptors and buffer made for this call; out [D, N] is overwritten.

    A is in CSR form (indptr, indices, data), g [R, N], on the device.
    """
    _sum_products(indptr, indices, data, g, out, _TRANSPOSE)


for _name, _gpu, _prepare in (
    ("csr_dense", csr_dense, prepare_csr_dense),
    ("csr_t_dense_full", csr_t_dense_full, prepare_csr_t_dense_full),
):
    register_competitor("cusparse", _name, gpu=_gpu, prepare=_prepare, unavailable=UNAVAILABLE)
