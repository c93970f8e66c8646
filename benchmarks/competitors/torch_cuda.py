"""PyTorch's sparse products on a CUDA device, over the memory of CuPy's arrays: the extra `peers` has it.

torch_cuda.csr_dense         out = A @ x, A in CSR form
torch_cuda.csr_t_dense_full  out = A.T @ g, A.T made once in CSR form
torch_cuda.csr_dense_ones    out = A @ x, every stored value one, by EmbeddingBag's sum

Arguments  as those of csr_dense, csr_t_dense_full and csr_dense_ones, CuPy arrays
Writes     out, overwritten; nothing else changes
Assumes    indices in range, as ours do
Cost       2*z*N flops; bytes as of the kernel that each competes with
Parallel   as cuSPARSE and PyTorch's own kernels do, in CuPy's current stream, which is made PyTorch's as well
Limits     z < 2**31 with int32 indices
Source     torch.sparse_csr_tensor through DLPack, torch.addmm with out; torch.nn.functional.embedding_bag
"""

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator

from benchmarks.competitors import register_competitor
from benchmarks.competitors.torch_sparse import UNAVAILABLE as NO_TORCH
from benchmarks.competitors.torch_sparse import pytorch
from kernels import devices
from kernels.vendor import cusparse

UNAVAILABLE = NO_TORCH or cusparse.UNAVAILABLE


def tensors(*arrays):
    """Return PyTorch tensors over the memory of CuPy arrays, in order."""
    return [pytorch().from_dlpack(array) for array in arrays]


def _csr(indptr, indices, data, shape):
    """Return a sparse CSR tensor of this `shape` over the memory of CuPy arrays: indptr [R+1], indices and data [z]."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that its CSR tensors are in beta
        return pytorch().sparse_csr_tensor(*tensors(indptr, indices, data), size=shape)


@contextlib.contextmanager
def stream() -> Iterator[None]:
    """Make PyTorch use CuPy's current stream within the block, the default one too.

    `ExternalStream` would make another of that: https://github.com/pytorch/pytorch/issues/182960. Out-of-memory errors
    of PyTorch become MemoryError.
    """
    torch = pytorch()
    current = torch.cuda.get_stream_from_external(devices.cupy().cuda.get_current_stream().ptr)
    try:
        with torch.cuda.stream(current):
            yield
    except torch.OutOfMemoryError as error:
        raise MemoryError(str(error)) from error


def in_stream(work: Callable[[], object]) -> Callable[[], None]:
    """Return a function without arguments that calls `work()` in CuPy's stream current at that time."""

    def call() -> None:
        """Call `work()` in CuPy's current stream."""
        with stream():
            work()

    return call


def _multiply(matrix, dense, out) -> Callable[[], None]:
    """Return a call without arguments that writes matrix @ dense to `out`.

    All are PyTorch tensors on the device: `matrix` [R, D] sparse, dense [D, N], out [R, N].
    """
    torch = pytorch()
    if not out.numel() or not matrix._nnz():
        return in_stream(functools.partial(out.fill_, 0))
    return in_stream(functools.partial(torch.addmm, out, matrix, dense, beta=0, out=out))


def prepare_csr_dense(indptr, indices, data, x, out):
    """Return a call without arguments that computes out = A @ x by PyTorch; the tensors are made here, once.

    A is in CSR form (indptr, indices, data), x [D, N]; out [R, N] is overwritten by each call.
    """
    return _multiply(_csr(indptr, indices, data, (out.shape[0], x.shape[0])), *tensors(x, out))


def prepare_csr_t_dense_full(indptr, indices, data, g, out):
    """Return a call without arguments that computes out = A.T @ g by PyTorch; A.T is converted to CSR form here, once.

    A is in CSR form (indptr, indices, data), g [R, N]; out [D, N] is overwritten by each call.
    """
    matrix = _csr(indptr, indices, data, (g.shape[0], out.shape[0]))
    return _multiply(matrix.t().to_sparse_csr(), *tensors(g, out))


def prepare_csr_dense_ones(indptr, indices, x, out):
    """Return a call without arguments that computes out = A @ x, A with ones as values, by PyTorch's embedding_bag.

    That creates a new result, which is copied to out [R, N].
    """
    starts, columns, table, result = tensors(indptr, indices, x, out)
    if not columns.numel() or not out.size:
        return in_stream(functools.partial(result.fill_, 0))
    bag = functools.partial(
        pytorch().nn.functional.embedding_bag, columns, table, starts, mode="sum", include_last_offset=True
    )
    return in_stream(lambda: result.copy_(bag()))


def csr_dense(indptr, indices, data, x, out):
    """Compute out = A @ x by PyTorch on a CUDA device; out [R, N] is overwritten.

    A is in CSR form (indptr, indices, data), x [D, N].
    """
    prepare_csr_dense(indptr, indices, data, x, out)()


def csr_t_dense_full(indptr, indices, data, g, out):
    """Compute out = A.T @ g by PyTorch on a CUDA device; out [D, N] is overwritten.

    A is in CSR form (indptr, indices, data), g [R, N].
    """
    prepare_csr_t_dense_full(indptr, indices, data, g, out)()


def csr_dense_ones(indptr, indices, x, out):
    """Compute out = A @ x by PyTorch on a CUDA device, A in CSR form with ones as values; out [R, N] is overwritten."""
    prepare_csr_dense_ones(indptr, indices, x, out)()


for _gpu, _prepare in (
    (csr_dense, prepare_csr_dense),
    (csr_t_dense_full, prepare_csr_t_dense_full),
    (csr_dense_ones, prepare_csr_dense_ones),
):
    register_competitor("torch_cuda", _gpu.__name__, gpu=_gpu, prepare=_prepare, unavailable=UNAVAILABLE)
