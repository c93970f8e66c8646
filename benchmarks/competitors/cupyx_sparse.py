"""Other ways to NVIDIA's products on a CUDA device: cuSPARSE anew for every batch, CuPy's matrices, cuBLAS in TF32.

cusparse_anew.csr_dense    cusparse.csr_dense with descriptors and buffer made for every call: batches that come once
cupyx.csr_dense            A @ x as users of cupyx.scipy.sparse write it
cupyx.csr_t_dense_full     A.T @ g as they write it
cublas_tf32.dense_dense    out = x @ w by cuBLAS, float32 rounded to TF32
cublas_tf32.dense_t_dense  out = x.T @ g by cuBLAS, float32 rounded to TF32

Arguments  as those of csr_dense, csr_t_dense_full, blas.dense_dense and blas.dense_t_dense, CuPy arrays
Writes     out, overwritten; nothing else changes
Assumes    indices in range, as ours do; cupyx sorts and adds duplicates on its own
Cost       as of the kernel that each competes with
Parallel   as cuSPARSE and cuBLAS do; some of their algorithms add in any order
Limits     z < 2**31 with int32 indices
Source     cupyx.scipy.sparse.csr_matrix, cupy.matmul
"""

import importlib

from benchmarks.competitors import register_competitor
from kernels.vendor.cublas import multiply
from kernels.vendor.cusparse import UNAVAILABLE, csr_dense


def _matrix(indptr, indices, data, shape):
    """Return a csr_matrix of CuPy of this `shape` over the device arrays indptr [R+1], indices [z] and data [z]."""
    return importlib.import_module("cupyx.scipy.sparse").csr_matrix((data, indices, indptr), shape=shape)


def cupyx_csr_dense(indptr, indices, data, x, out):
    """Compute out = A @ x by CuPy's csr_matrix on a CUDA device; out [R, N] is overwritten.

    A is in CSR form (indptr, indices, data), x [D, N].
    """
    out[...] = _matrix(indptr, indices, data, (out.shape[0], x.shape[0])) @ x


def cupyx_csr_t_dense_full(indptr, indices, data, g, out):
    """Compute out = A.T @ g by CuPy's csr_matrix on a CUDA device; out [D, N] is overwritten.

    A is in CSR form (indptr, indices, data), g [R, N].
    """
    out[...] = _matrix(indptr, indices, data, (g.shape[0], out.shape[0])).T @ g


def dense_dense(x, w, out):
    """Compute out = x @ w by cuBLAS, float32 rounded to TF32; x [R, D], w [D, N]; out [R, N] is overwritten."""
    multiply(x, w, out, "TF32")


def dense_t_dense(x, g, out):
    """Compute out = x.T @ g by cuBLAS, float32 rounded to TF32; x [R, D], g [R, N]; out [D, N] is overwritten."""
    multiply(x.T, g, out, "TF32")


for _library, _name, _gpu in (
    ("cusparse_anew", "csr_dense", csr_dense),
    ("cupyx", "csr_dense", cupyx_csr_dense),
    ("cupyx", "csr_t_dense_full", cupyx_csr_t_dense_full),
    ("cublas_tf32", "blas.dense_dense", dense_dense),
    ("cublas_tf32", "blas.dense_t_dense", dense_t_dense),
):
    register_competitor(_library, _name, gpu=_gpu, unavailable=UNAVAILABLE)
