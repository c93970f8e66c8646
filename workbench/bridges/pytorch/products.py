"""X @ W of sparse rows X [R, D] and a weight W [D, N], and its gradients, by our kernels on arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np

import kernels
from kernels import aligned
from kernels.plan import BatchPlan, build
from workbench.bridges.pytorch.library import torch
from workbench.bridges.pytorch.steps import array_of
from workbench.formats import RowSparse
from workbench.formats.compressed import assemble
from workbench.ops.products import Unsummed

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray | None]

TWICE = (
    "Gradients through sparse rows cannot be differentiated again (create_graph=True): kernels have no derivative of "
    "the row-sparse gradient. Use torch.sparse.mm and a dense weight where second derivatives are needed."
)


def multiply(arrays: Arrays, weight: torch.Tensor) -> torch.Tensor:
    """Return the product, into memory of PyTorch."""
    indptr, indices, data = arrays
    out = torch.empty((indptr.size - 1, weight.shape[1]), dtype=weight.dtype)
    operands = (indptr, indices) if data is None else (indptr, indices, data)
    _kernel("csr_dense_ones" if data is None else "csr_dense")(*operands, array_of(weight), out.numpy())
    return out


def gradient_of_data(arrays: Arrays, slope: np.ndarray, weight: torch.Tensor) -> torch.Tensor:
    """Return the slope's rows by the weight's, at the places of the entries [z], whose range is checked once more."""
    indptr, indices, _ = arrays
    out = torch.empty(indices.size, dtype=weight.dtype)
    _kernel("sddmm", checked=True)(indptr, indices, slope, array_of(weight), out.numpy())
    return out


def factors_of(arrays: Arrays, slope: np.ndarray, shape: tuple[int, int]) -> Unsummed:
    """X.T @ slope [D, N] as its factors, with the batch's plan, O(z): it checks the range of indices once more."""
    indptr, indices, data = arrays
    plan = build(indptr, indices, shape[0], data)
    values = np.ones(indices.size, slope.dtype) if data is None else data
    if data is None:
        plan.kept[:] = values, values  # ones are in any order
    return Unsummed(assemble("csr", indptr, indices, values, plan.shape), slope, plan, shape)


def summed(factors: Unsummed, are_ones: bool) -> RowSparse:
    """Return the rows that the batch touches, [U, N]."""
    plan: BatchPlan = factors.plan
    values = aligned.empty((plan.touched, factors.shape[1]), factors.slope.dtype)
    if are_ones:
        _kernel("csr_t_dense_ones")(plan.segments, plan.rows, factors.slope, values)
    else:
        entries = plan.segments, plan.rows, plan.in_order(factors.x.data)
        _kernel("csr_t_dense")(*entries, factors.slope, values)
    return RowSparse.assemble(values, plan.columns, factors.shape)


def _kernel(name: str, checked: bool = False) -> Callable[..., Any]:
    """Return the kernel without index checks for checked arrays, else the one with checks."""
    twin = kernels.get(name).cpu if checked else kernels.get(name).trusted
    assert twin is not None
    return twin
