"""Dense products by cuBLAS, called directly: CuPy refuses cuBLAS calls while a CUDA graph is captured.

This can be removed when https://github.com/cupy/cupy/issues/6290 is fixed.
"""

import ctypes
from typing import Any

import numpy as np

from kernels import devices
from kernels.contract import KernelError

_PLAIN, _TRANSPOSED = 0, 1
_DEFAULT_ALGORITHM = -1
_TYPES = {"float32": (0, 68), "float64": (1, 70)}
"""Values of cudaDataType_t, and of cublasComputeType_t: float32 in full, not as TF32."""

_SET_STREAM = ctypes.c_void_p, ctypes.c_void_p
_SET_WORKSPACE = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t
_OPERAND = ctypes.c_void_p, ctypes.c_int, ctypes.c_int
"""Where it starts, its type, its leading dimension."""
_SIZES = (ctypes.c_int,) * 3
_GEMM = ctypes.c_void_p, ctypes.c_int, ctypes.c_int, *_SIZES, ctypes.c_void_p, *_OPERAND, *_OPERAND
_FUNCTIONS = {
    "cublasSetStream_v2": _SET_STREAM,
    "cublasSetWorkspace_v2": _SET_WORKSPACE,
    "cublasGemmEx": (*_GEMM, ctypes.c_void_p, *_OPERAND, ctypes.c_int, ctypes.c_int),
}


def bytes_workspace(capability: str) -> int:
    """Return the bytes that NVIDIA recommends for `cublasSetWorkspace` on a device of this compute capability.

    >>> bytes_workspace("90") // 2**20, bytes_workspace("86") // 2**20
    (32, 4)
    """
    return 2**25 if int(capability) >= 90 else 2**22


def load_library(version: int) -> ctypes.CDLL:
    """Return the cuBLAS library that CuPy has loaded, for a CUDA runtime version such as 12090."""
    return ctypes.CDLL(f"libcublas.so.{version // 1000}")


class DenseProducts:
    """Products on the current CUDA device, queued in CuPy's current stream, which may be captured.

    cuBLAS uses one workspace for all of them, so that it allocates nothing during a capture.
    """

    def __init__(self) -> None:
        self.cuda = devices.cupy().cuda
        self._handle()  # of this thread; CuPy loads the library for it
        library = load_library(self.cuda.runtime.runtimeGetVersion())
        self.functions = {name: getattr(library, name) for name in _FUNCTIONS}
        for name, types in _FUNCTIONS.items():
            self.functions[name].argtypes = types
        self.bytes_workspace = bytes_workspace(self.cuda.Device().compute_capability)
        self.workspace = self.cuda.Memory(self.bytes_workspace)  # not of the pool: it is the library's, not an array

    def multiply(self, x: Any, y: Any, out: Any, transposed: bool = False) -> None:
        """Compute out = x @ y or x.T @ y, all of one dtype in C order (for cuBLAS, in Fortran order: out.T = y.T @
        x).
        """
        rows, columns = out.shape
        inner = y.shape[0]
        if not (out.size and inner):
            out.fill(0)
            return
        handle, (kind, compute) = self._handle(), _TYPES[out.dtype.name]
        self._call("cublasSetStream_v2", handle, self.cuda.get_current_stream().ptr)  # takes the workspace away
        self._call("cublasSetWorkspace_v2", handle, self.workspace.ptr, self.bytes_workspace)
        one, nought = (np.array(value, out.dtype) for value in (1, 0))
        left, right = (y.data.ptr, kind, columns), (x.data.ptr, kind, x.shape[1])
        operations = _PLAIN, (_TRANSPOSED if transposed else _PLAIN)
        operands = *left, *right, nought.ctypes.data, out.data.ptr, kind, columns
        sizes = columns, rows, inner
        self._call("cublasGemmEx", handle, *operations, *sizes, one.ctypes.data, *operands, compute, _DEFAULT_ALGORITHM)

    def _handle(self) -> int:
        """Return the cuBLAS handle, set to the current stream."""
        return self.cuda.device.get_cublas_handle()

    def _call(self, name: str, *arguments: Any) -> None:
        """Call a cuBLAS function. Raises RuntimeError for a status other than 0."""
        if status := self.functions[name](*arguments):
            raise KernelError(f"{name} of cuBLAS failed with status {status}; its arguments were {arguments}.")
