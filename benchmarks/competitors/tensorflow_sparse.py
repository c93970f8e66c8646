"""TensorFlow's sparse product on the CPU, in the fastest of its forms: the extra `peers` has it.

tensorflow.csr_dense  out = A @ x, A as a CSRSparseMatrix, which beats tf.sparse.sparse_dense_matmul

Arguments  as those of csr_dense
Writes     out, overwritten; nothing else changes
Assumes    indices in range, as ours do
Cost       2*z*N flops; bytes as of csr_dense
Parallel   as Eigen does, on `threads` threads, or as many as TensorFlow chooses
Limits     z < 2**31
Source     tf.raw_ops.SparseMatrixMatMul; the matrix and x are made TensorFlow's own before the product is timed
"""

import functools
import importlib.util
import os

import numpy as np

from benchmarks.competitors import register_competitor

INSTALL = "pip install 'sparse-workbench[peers]'"
UNAVAILABLE = "" if importlib.util.find_spec("tensorflow") else f"TensorFlow is not installed: {INSTALL}"


threads: int | None = None
"""Threads for TensorFlow, which is told when it is first used; None leaves it as it is."""


@functools.cache
def tensorflow():
    """Return the TensorFlow module, imported on first use with its thread count and log level set; cached."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # it announces its instruction sets at every start
    import tensorflow

    if threads:
        tensorflow.config.threading.set_intra_op_parallelism_threads(threads)
    return tensorflow


def matrix_of(indptr, indices, data, shape):
    """Return A [shape] as TensorFlow's CSRSparseMatrix, a copy; entries keep their order.

    A is in CSR form (indptr, indices, data).
    """
    tf = tensorflow()
    rows = np.repeat(np.arange(shape[0]), np.diff(indptr))
    places = np.stack([rows, indices], axis=1).astype(np.int64)  # [z, 2]
    return tf.raw_ops.SparseTensorToCSRSparseMatrix(indices=places, values=data, dense_shape=shape)


def prepare_csr_dense(indptr, indices, data, x, out):
    """Return a call without arguments that returns A @ x as a tensor [R, N]; A and x are converted here, once.

    A is in CSR form (indptr, indices, data); `out` gives the result's shape only.
    """
    tf = tensorflow()
    if not out.size or not data.size or not x.size:
        return lambda: np.zeros_like(out)
    matrix, dense = matrix_of(indptr, indices, data, (out.shape[0], x.shape[0])), tf.constant(x)
    return lambda: tf.raw_ops.SparseMatrixMatMul(a=matrix, b=dense)


def csr_dense(indptr, indices, data, x, out):
    """Compute out = A @ x by TensorFlow on the CPU; out [R, N] is overwritten.

    A is in CSR form (indptr, indices, data), x [D, N].
    """
    out[...] = np.asarray(prepare_csr_dense(indptr, indices, data, x, out)())


register_competitor("tensorflow", "csr_dense", csr_dense, prepare=prepare_csr_dense, unavailable=UNAVAILABLE)
