"""PyTorch's sparse products on the CPU, through MKL: the extra `peers` has it.

torch.csr_dense         out = A @ x, A in CSR form
torch.csr_t_dense_full  out = A.T @ g, A.T made once in CSR form, which is faster than the view that `A.t()` gives
torch.sddmm             out[k] = a[row of k] . b[indices[k]]

Arguments  as those of csr_dense, csr_t_dense_full and sddmm
Writes     out, overwritten; nothing else changes
Assumes    indices in range, as ours do
Cost       2*z*N flops; bytes as of the kernel that each competes with
Parallel   as MKL does, on `threads` threads, or as many as PyTorch chooses
Limits     z < 2**31 where MKL has 32-bit indices
Source     torch.sparse_csr_tensor over the same memory, torch.addmm with out: what `A @ x` does, less a new result;
           torch.sparse.sampled_addmm
"""

import functools
import importlib.util
import warnings
from collections.abc import Callable

import numpy as np

from benchmarks.competitors import register_competitor

INSTALL = "pip install 'sparse-workbench[peers]'"
UNAVAILABLE = "" if importlib.util.find_spec("torch") else f"PyTorch is not installed: {INSTALL}"


threads: int | None = None
"""Threads for PyTorch, which is told when it is first used; None leaves it as it is."""


@functools.cache
def pytorch():
    """Return the PyTorch module, imported on first use with its thread count set; cached."""
    import torch

    torch.sparse.check_sparse_tensor_invariants.disable()  # as it is anyway; said aloud, PyTorch does not warn of it
    if threads:
        torch.set_num_threads(threads)
    return torch


def csr_tensor(indptr, indices, data, shape):
    """Return a sparse CSR tensor of this `shape` over NumPy arrays: indptr [R+1], indices and data [z]."""
    torch = pytorch()
    parts = map(torch.from_numpy, (indptr, indices, data))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that its CSR tensors are in beta
        return torch.sparse_csr_tensor(*parts, size=shape, check_invariants=False)


def _multiply(matrix, dense, out) -> Callable[[], None]:
    """Return a call without arguments that writes matrix @ dense to `out` by PyTorch.

    `matrix` [R, D] is a sparse tensor of PyTorch; dense [D, N] and out [R, N] are NumPy arrays, not copied.
    """
    torch = pytorch()
    dense, out = torch.from_numpy(dense), torch.from_numpy(out)
    if not out.numel() or not matrix._nnz():  # MKL is not asked for nothing
        return functools.partial(out.fill_, 0)
    return functools.partial(torch.addmm, out, matrix, dense, beta=0, out=out)


def prepare_csr_dense(indptr, indices, data, x, out):
    """Return a call without arguments that computes out = A @ x by PyTorch; the tensors are made here, once.

    A is in CSR form (indptr, indices, data), x [D, N]; out [R, N] is overwritten by each call.
    """
    return _multiply(csr_tensor(indptr, indices, data, (out.shape[0], x.shape[0])), x, out)


def prepare_csr_t_dense_full(indptr, indices, data, g, out):
    """Return a call without arguments that computes out = A.T @ g by PyTorch; A.T is converted to CSR form here, once.

    A is in CSR form (indptr, indices, data), g [R, N]; out [D, N] is overwritten by each call.
    """
    matrix = csr_tensor(indptr, indices, data, (g.shape[0], out.shape[0]))
    return _multiply(matrix.t().to_sparse_csr(), g, out)


def prepare_sddmm(indptr, indices, a, b, out):
    """Return a call without arguments that returns a[r] . b[indices[k]] for each entry k of row r, as a tensor [z].

    `out` gives the size only; tensors are made here, once.
    """
    torch = pytorch()
    if not out.size:
        return functools.partial(torch.zeros, 0)
    pattern = csr_tensor(indptr, indices, np.ones_like(out), (a.shape[0], b.shape[0]))
    a, b = torch.from_numpy(a), torch.from_numpy(b)
    return lambda: torch.sparse.sampled_addmm(pattern, a, b.t(), beta=0).values()


def csr_dense(indptr, indices, data, x, out):
    """Compute out = A @ x by PyTorch (MKL) on the CPU; out [R, N] is overwritten.

    A is in CSR form (indptr, indices, data), x [D, N].
    """
    prepare_csr_dense(indptr, indices, data, x, out)()


def csr_t_dense_full(indptr, indices, data, g, out):
    """Compute out = A.T @ g by PyTorch (MKL) on the CPU; out [D, N] is overwritten.

    A is in CSR form (indptr, indices, data), g [R, N].
    """
    prepare_csr_t_dense_full(indptr, indices, data, g, out)()


def sddmm(indptr, indices, a, b, out):
    """Compute out[k] = a[r] . b[indices[k]] for each entry k of row r of a CSR pattern, by PyTorch.

    Overwrites out [z].
    """
    out[...] = prepare_sddmm(indptr, indices, a, b, out)()


for _cpu, _prepare in (
    (csr_dense, prepare_csr_dense),
    (csr_t_dense_full, prepare_csr_t_dense_full),
    (sddmm, prepare_sddmm),
):
    register_competitor("torch", _cpu.__name__, _cpu, prepare=_prepare, unavailable=UNAVAILABLE)
