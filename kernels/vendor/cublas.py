"""The dense products on a CUDA device, by cuBLAS in full float32 or float64.

cublas.dense_dense    out = x @ w
cublas.dense_t_dense  out = x.T @ g, without a transposed copy

Arguments  as those of blas.dense_dense and blas.dense_t_dense, CuPy arrays
Writes     out, overwritten; nothing else changes
Assumes    C order
Cost       2*R*D*N flops; bytes as of blas.dense_dense
Parallel   as cuBLAS does; the order of sums is its own
Limits     memory: R*D*value bytes for x
Source     cupy.matmul with out, whose compute type is set for the call and put back
"""

from kernels import devices
from kernels._compat.library_internals import float32_computed_as
from kernels.registry import register_competitor
from kernels.vendor.cusparse import UNAVAILABLE


def multiply(left, right, out, compute: str) -> None:
    """Compute out = left @ right on the device, overwritten; float32 is computed as `compute`, "FP32" or "TF32"."""
    with float32_computed_as(compute):
        devices.cupy().matmul(left, right, out=out)


def dense_dense(x, w, out):
    """Compute out = x @ w by cuBLAS in full float32 or float64; x [R, D], w [D, N]; out [R, N] is overwritten."""
    multiply(x, w, out, "FP32")


def dense_t_dense(x, g, out):
    """Compute out = x.T @ g by cuBLAS in full float32 or float64; x [R, D], g [R, N]; out [D, N] is overwritten."""
    multiply(x.T, g, out, "FP32")


for _gpu in (dense_dense, dense_t_dense):
    register_competitor("cublas", f"blas.{_gpu.__name__}", gpu=_gpu, unavailable=UNAVAILABLE)
