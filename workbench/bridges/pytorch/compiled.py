"""The product and its gradients as operators of PyTorch, for `torch.compile`: `workbench::sparse_product` and its like.

Compiled code calls them, `fullgraph=True` as well. They do what `products` does, but for what an optimizer of ours and
a layer tell each other: a gradient is never left as factors, and rows do not catch up before they are read. In eager
code a call of them takes about 100 us longer, forward and backward, so that there they are not used.
"""

from typing import Any

from torch import Tensor  # the annotations of an operator are its schema, and have to be PyTorch's own

from workbench.bridges.pytorch.follow import follow
from workbench.bridges.pytorch.library import torch
from workbench.bridges.pytorch.products import TWICE, factors_of, gradient_of_data, multiply, summed
from workbench.bridges.pytorch.rows import SparseRows, arrays_of, require_sound


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
