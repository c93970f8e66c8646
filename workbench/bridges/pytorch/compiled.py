"""The product and its gradients as operators of PyTorch, for `torch.compile`: `workbench::sparse_product` and its like.

Compiled code calls them, `fullgraph=True` as well. They do what `products` does, but for what an optimizer of ours and
a layer tell each other: a gradient is never left as factors, and rows do not catch up before they are read. In eager
code a call of them takes about 100 us longer, forward and backward, so that there they are not used.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor  # the annotations of an operator are its schema, and have to be PyTorch's own

import kernels
from kernels import aligned
from kernels.plan import BatchPlan, build
from workbench.bridges.pytorch.library import follow, torch
from workbench.bridges.pytorch.rows import SparseRows, arrays_of, require_sound
from workbench.bridges.pytorch.steps import array_of
from workbench.formats import RowSparse
from workbench.formats.compressed import assemble
from workbench.ops.products import Unsummed

# X @ W of sparse rows X [R, D] and a weight W [D, N], and its gradients, by our kernels on arrays.

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


@torch.library.custom_op("workbench::sparse_product", mutates_args=())
def sparse_product(indptr: Tensor, indices: Tensor, data: Tensor | None, weight: Tensor) -> Tensor:
    """X @ W [R, N], as `products.sparse_product`."""
    follow()
    arrays = arrays_of(SparseRows(indptr, indices, data, weight.shape[0]))
    require_sound(arrays, weight.shape[0], "rows -> product")
    return multiply(arrays, weight)


@torch.library.custom_op("workbench::sparse_product_rows", mutates_args=())
def of_weight(
    indptr: Tensor, indices: Tensor, data: Tensor | None, slope: Tensor, features: int
) -> tuple[Tensor, Tensor]:
    """Return the rows that X touches, int64 [U], and their gradient [U, N]."""
    follow()
    arrays = arrays_of(SparseRows(indptr, indices, data, features))
    factors = factors_of(arrays, slope.contiguous().numpy(), (features, slope.shape[1]))
    rows = summed(factors, data is None)
    return torch.from_numpy(rows.indices), torch.from_numpy(rows.values)


@torch.library.custom_op("workbench::sparse_product_values", mutates_args=())
def of_data(indptr: Tensor, indices: Tensor, data: Tensor, slope: Tensor, weight: Tensor) -> Tensor:
    """Return the gradient towards the values of X [z]."""
    follow()
    arrays = arrays_of(SparseRows(indptr, indices, data, weight.shape[0]))
    return gradient_of_data(arrays, slope.contiguous().numpy(), weight)


@sparse_product.register_fake
def _(indptr: Tensor, indices: Tensor, data: Tensor | None, weight: Tensor) -> Tensor:
    """Return an empty tensor of the product's shape [R, N], for `torch.compile`."""
    return weight.new_empty((indptr.shape[0] - 1, weight.shape[1]))


@of_weight.register_fake
def _(indptr: Tensor, indices: Tensor, data: Tensor | None, slope: Tensor, features: int) -> tuple[Tensor, Tensor]:
    """Return empty tensors of the weight gradient's rows [U] and values [U, N], for `torch.compile`."""
    touched = torch.library.get_ctx().new_dynamic_size()
    return slope.new_empty((touched,), dtype=torch.int64), slope.new_empty((touched, slope.shape[1]))


@of_data.register_fake
def _(indptr: Tensor, indices: Tensor, data: Tensor, slope: Tensor, weight: Tensor) -> Tensor:
    """Return an empty tensor of the shape of the gradient of `data`, for `torch.compile`."""
    return torch.empty_like(data)


def _keep(ctx: Any, inputs: tuple, output: Tensor) -> None:
    """Save what the backward pass of the product needs in `ctx`."""
    indptr, indices, data, weight = inputs
    ctx.save_for_backward(indptr, indices, data, weight if ctx.needs_input_grad[2] else None)
    ctx.features = weight.shape[0]


def _backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
    """Return the gradients of (indptr, indices, data, weight); the last as a sparse tensor, None if not needed."""
    indptr, indices, data, weight = ctx.saved_tensors
    towards_data = of_data(indptr, indices, data, slope, weight) if ctx.needs_input_grad[2] else None
    if not ctx.needs_input_grad[3]:
        return None, None, towards_data, None
    rows, values = of_weight(indptr, indices, data, slope, ctx.features)
    shape = ctx.features, slope.shape[1]
    gradient = torch.sparse_coo_tensor(rows[None], values, shape, is_coalesced=True, check_invariants=False)
    return None, None, towards_data, gradient


def _refuse(ctx: Any, *slopes: Tensor) -> None:
    """Raise NotImplementedError: the gradient has no gradient."""
    raise NotImplementedError(TWICE)


sparse_product.register_autograd(_backward, setup_context=_keep)
of_weight.register_autograd(_refuse)
of_data.register_autograd(_refuse)
