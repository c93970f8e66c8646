"""`sparse_product`: X @ W of sparse rows X [R, D] and a weight W [D, N] as a function that autograd knows.

The gradient of W holds the rows that X touches and no others: a sparse_coo tensor, its rows sorted, each once, or
factors that are left to an optimizer with `fused=True`. That of the values of X, where they ask for one, has a number
for each entry.
"""

from typing import Any

from workbench.bridges.pytorch import compiled
from workbench.bridges.pytorch.compiled import TWICE, Arrays, factors_of, gradient_of_data, multiply, summed
from workbench.bridges.pytorch.library import follow, torch
from workbench.bridges.pytorch.rows import SparseRows, arrays_of, require_sound
from workbench.bridges.pytorch.steps import Steps, steps_of, tensor_of


def sparse_product(rows: SparseRows, weight: torch.Tensor) -> torch.Tensor:
    """X @ W [R, N], float32 or float64 as W [D, N] is, on the CPU; duplicates are summed, columns may be unsorted.

    Kernels run on `torch.get_num_threads()` threads. Values of another type, other lengths and other widths are
    refused (TypeError, ValueError); indices out of range, and row starts that fall, too (`ContractError`): nothing is
    read outside of the weight. 2 z N flops, O(R + z) for the checks.
    """
    _check(rows, weight)
    if torch.compiler.is_compiling():
        return compiled.sparse_product(rows.indptr, rows.indices, rows.data, weight)
    return _Product.apply(rows.indptr, rows.indices, rows.data, weight)


def _check(rows: SparseRows, weight: torch.Tensor) -> None:
    """Raise ValueError or TypeError unless rows and weight fit in shape, dtype and device."""
    if weight.ndim != 2 or rows.features != weight.shape[0]:
        raise ValueError(
            f"Sparse rows of {rows.features} columns meet a weight of shape {list(weight.shape)}; it is [features, N]. "
            "Read the data like the training data, or make a weight of that size."
        )
    if rows.data is not None and rows.data.dtype != weight.dtype:
        raise TypeError(
            f"The values of sparse rows are {rows.data.dtype}, the weight is {weight.dtype}; they need the same type. "
            "Convert one of them with .to(...)."
        )
    if not (rows.indptr.is_cpu and rows.indices.is_cpu and weight.is_cpu):
        raise TypeError(f"The weight is on {weight.device}, the rows on {rows.indices.device}; kernels run on the cpu.")


class _Product(torch.autograd.Function):
    """The product, with its gradients towards values and weight."""

    @staticmethod
    def forward(ctx: Any, indptr: Any, indices: Any, data: Any, weight: Any) -> torch.Tensor:
        """X @ W, after the rows that it reads have caught up where they have to."""
        follow()
        arrays = arrays_of(SparseRows(indptr, indices, data, weight.shape[0]))
        require_sound(arrays, weight.shape[0], "rows -> product")
        steps = steps_of(weight)
        if steps is not None and steps.is_exact:
            steps.catch_up(weight, arrays[1])
        ctx.save_for_backward(indptr, indices, data, weight if ctx.needs_input_grad[2] else None)
        ctx.steps, ctx.shape, ctx.arrays = steps, tuple(weight.shape), arrays
        return multiply(arrays, weight)

    @staticmethod
    def backward(ctx: Any, slope: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Return the gradients."""
        _, _, data, weight = ctx.saved_tensors  # all of them, so that autograd sees what was written to since
        arguments = slope, ctx.arrays, data, weight, ctx.shape, ctx.steps, ctx.needs_input_grad[3]
        both = _Gradients.apply(*arguments) if torch.is_grad_enabled() else gradients(*arguments)
        return None, None, *both


class _Gradients(torch.autograd.Function):
    """The gradients where autograd would differentiate them again, which is refused then and not before."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[torch.Tensor | None, ...]:
        """Return the gradients."""
        return gradients(*arguments)

    @staticmethod
    def backward(ctx: Any, *slopes: torch.Tensor) -> None:
        """Refuse (`NotImplementedError`)."""
        raise NotImplementedError(TWICE)


def gradients(
    slope: torch.Tensor,
    arrays: Arrays,
    data: torch.Tensor | None,
    weight: torch.Tensor | None,
    shape: tuple[int, int],
    steps: Steps | None,
    of_weight: bool,
) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """Return (towards data [z], where the weight is given; towards the weight of `shape`) from the slope [R, N]; or
    None.

    `data` is here for autograd, which is to know that gradients depend on it.
    """
    follow()
    slope_rn = slope.detach().contiguous().numpy()
    towards_data = None if weight is None else gradient_of_data(arrays, slope_rn, weight)
    if not of_weight:
        return towards_data, None
    factors = factors_of(arrays, slope_rn, shape)
    if steps is not None and steps.fused:
        return towards_data, steps.leave(factors)
    return towards_data, tensor_of(summed(factors, arrays[2] is None))
