"""One parameter of an optimizer: its `Updater` over the tensor's own memory, and its gradient in any of its forms.

A layer of ours asks `steps_of(weight)` for the steps of the weight that it reads: where rows have to catch up before
they are read (`lazy="exact"`), and where the gradient is left as its factors for a fused kernel (`fused=True`).
"""

import weakref
from typing import Any

import numpy as np

from kernels import structure
from workbench.bridges.pytorch.library import WeakTensorKeyDictionary, torch
from workbench.bridges.pytorch.rows import DTYPES
from workbench.formats import RowSparse
from workbench.ops.products import Unsummed
from workbench.optimizers import OptimizerError, Updater

NAME = "weight"
"""What an updater of one parameter calls it."""

_known: Any = WeakTensorKeyDictionary()
"""Weak references to the `Steps` of parameters by parameter, for the layers."""


class Steps:
    """The updater of one parameter. Its `gradient` may be dense, row-sparse, or left by a layer as factors.

    A gradient that a layer leaves stands in `.grad` as a `mark`: a sparse tensor without rows, of the right shape. So
    what sets `.grad` to None drops the factors too, and other gradients are added to them.
    """

    def __init__(self, parameter: torch.Tensor, updater: Updater, fused: bool) -> None:
        """Keep the updater; layers find it by the parameter where it is fused or exact.

        Raises OptimizerError for a parameter that kernels cannot step.
        """
        check_parameter(parameter)
        self.updater, self.fused = updater, fused and parameter.requires_grad
        self.parameter = weakref.ref(parameter)
        self.left: list[Unsummed] = []
        self.arriving: list[Unsummed] = []
        if fused or updater.lazy == "exact":
            _known[parameter] = weakref.ref(self)
        if self.fused:
            parameter.register_hook(_hook(weakref.ref(self), self.parameter))

    # What layers call

    @property
    def is_exact(self) -> bool:
        """Return whether rows have to catch up before they are read."""
        return self.updater.lazy == "exact"

    def catch_up(self, weight: torch.Tensor, rows: np.ndarray | None = None) -> None:
        """Bring `rows`, int [any], of the weight to the last step in place; None for all of them."""
        self.updater.catch_up({NAME: array_of(weight)}, None if rows is None else {NAME: rows})

    @property
    def takes_factors(self) -> bool:
        """Return whether a layer may leave its gradient as factors: no hook of others on the parameter reads it."""
        parameter = self.parameter()
        if not self.fused or parameter is None or getattr(parameter, "_post_accumulate_grad_hooks", None):
            return False
        return all(getattr(hook, "__module__", "") == __name__ for hook in (parameter._backward_hooks or {}).values())

    def leave(self, factors: Unsummed) -> torch.Tensor:
        """Keep a gradient for the next step; return the mark that stands for it in `.grad`, of its shape and dtype."""
        self.arriving.append(factors)
        return mark_of(factors.shape, torch.from_numpy(factors.grad_scores).dtype)

    def arrive(self, is_first: bool) -> None:
        """Take what the backward pass left, as it is about to reach `.grad`.

        What was left before is dropped if it is the first. `is_first` says that `.grad` was None.
        """
        self.left, self.arriving = [*([] if is_first else self.left), *self.arriving], []

    # What the optimizer calls

    def clear(self) -> None:
        """Drop the gradients that layers left and that no step has taken."""
        self.left, self.arriving = [], []

    def gradient(self, parameter: torch.Tensor) -> np.ndarray | RowSparse | Unsummed | None:
        """Return the gradient of the next step, what layers left included, which is taken; None if there is none.

        Factors stay as they are if they are all there is, else they are summed with `.grad`. Raises OptimizerError for
        a layout of `.grad` that it cannot read.
        """
        left, self.left = self.left, []
        if parameter.grad is None:
            return None
        if len(left) == 1 and parameter.grad.layout is torch.sparse_coo and not parameter.grad._nnz():  # a mark
            return left[0]
        gradient = gradient_of(parameter.grad)
        for factors in left:
            gradient = _add_gradients(gradient, factors.compute())
        return gradient

    def settle(self, parameter: torch.Tensor) -> None:
        """Put what layers left into `.grad`, summed with what is there, as a new tensor."""
        if self.left:
            gradient = self.gradient(parameter)
            if gradient is not None:
                parameter.grad = tensor_of(gradient.compute() if isinstance(gradient, Unsummed) else gradient)

    def step(self, parameter: torch.Tensor, gradient: np.ndarray | RowSparse | Unsummed) -> None:
        """Take one step of the rule on the parameter, in place; autograd sees the change.

        Raises OptimizerError for a gradient of rows that had not caught up, or that does not fit.
        """
        self._check_caught_up(gradient)
        self.updater.update({NAME: array_of(parameter)}, {NAME: gradient})
        torch.autograd.graph.increment_version(parameter)  # autograd then sees the change, as of any optimizer

    def _check_caught_up(self, gradient: np.ndarray | RowSparse | Unsummed) -> None:
        """Raise OptimizerError for a gradient that was computed from rows that had still to catch up."""
        parameter = self.updater.parameters.get(NAME)
        if parameter is None or parameter.missed is None:
            return
        last = parameter.missed.last
        if not isinstance(gradient, np.ndarray):
            last = last[gradient.indices if isinstance(gradient, RowSparse) else gradient.plan.columns]
        if (last < parameter.step).any():
            raise OptimizerError(
                'With lazy="exact" a gradient came from rows that had not caught up when they were read. SparseLinear '
                "and SparseEmbeddingBag let rows catch up, torch.compile and other layers do not: call "
                "optimizer.catch_up() before each forward pass of these, or take lazy='on'."
            )


def _hook(steps: weakref.ref, parameter: weakref.ref) -> Any:
    """Return the hook that autograd calls with a parameter's gradient, before it is added to `.grad`.

    It holds neither alive.
    """

    def hook(_: torch.Tensor) -> None:
        """Tell the optimizer's steps that a gradient arrives, and whether it is the first.

        Do nothing if they are gone.
        """
        own, tensor = steps(), parameter()
        if own is not None and tensor is not None:
            own.arrive(tensor.grad is None)

    return hook


def steps_of(parameter: torch.Tensor) -> Steps | None:
    """Return the steps of the optimizer over the parameter, where a layer has to know of it; None otherwise."""
    reference = _known.get(parameter) if len(_known) else None
    return reference() if reference is not None else None


def mark_of(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Return a coalesced sparse COO gradient of that shape and type without rows: the real one was left elsewhere."""
    places, values = torch.empty((1, 0), dtype=torch.int64), torch.empty((0, *shape[1:]), dtype=dtype)
    return torch.sparse_coo_tensor(places, values, shape, is_coalesced=True, check_invariants=False)


# Arrays of tensors


def check_parameter(parameter: torch.Tensor) -> None:
    """Raise OptimizerError unless a parameter is dense, contiguous, float32 or float64 on the CPU."""
    allowed = parameter.layout is torch.strided and parameter.dtype in DTYPES and parameter.device.type == "cpu"
    if not allowed or not parameter.is_contiguous():
        gaps = "" if parameter.is_contiguous() else ", with gaps"
        raise OptimizerError(
            f"A parameter is {parameter.dtype} {list(parameter.shape)} on {parameter.device}, layout "
            f"{parameter.layout}{gaps}. Allowed: dense float32 or float64 on the cpu, contiguous. Give others to an "
            "optimizer of PyTorch, as a second one."
        )


def array_of(parameter: torch.Tensor) -> np.ndarray:
    """Return the parameter's own memory as an array of its shape and dtype."""
    return parameter.detach().numpy()


def gradient_of(gradient: torch.Tensor) -> np.ndarray | RowSparse:
    """Return a gradient as a dense array or row-sparse, over its own memory where it can be; repeated rows are summed.

    Raises OptimizerError for a layout other than strided and sparse_coo over rows.
    """
    gradient = gradient.detach()
    if gradient.layout is torch.strided:
        return gradient.contiguous().numpy()
    if gradient.layout is not torch.sparse_coo or gradient.sparse_dim() != 1:
        raise OptimizerError(
            f"A gradient has the layout {gradient.layout} and {gradient.sparse_dim()} sparse dimensions; it is dense, "
            "or torch.sparse_coo over rows, as EmbeddingBag(sparse=True) and SparseLinear give it."
        )
    rows, values = gradient._indices()[0].numpy(), gradient._values().contiguous().numpy()
    if structure.is_rising(rows, gradient.shape[0]):  # whatever the tensor says of being coalesced
        return RowSparse.assemble(values, rows, tuple(gradient.shape))
    return RowSparse.from_rows(rows, values, tuple(gradient.shape))


def tensor_of(gradient: np.ndarray | RowSparse) -> torch.Tensor:
    """Return a gradient as a tensor over its own memory, a row-sparse one coalesced."""
    if isinstance(gradient, np.ndarray):
        return torch.from_numpy(gradient)
    rows, values = torch.from_numpy(gradient.indices)[None], torch.from_numpy(gradient.values)
    return torch.sparse_coo_tensor(rows, values, gradient.shape, is_coalesced=True, check_invariants=False)


def _add_gradients(gradient: np.ndarray | RowSparse, more: RowSparse) -> np.ndarray | RowSparse:
    """Return the sum of a gradient, dense or row-sparse, and a row-sparse one, in its form.

    The inputs are unchanged.
    """
    if isinstance(gradient, np.ndarray):
        gradient = gradient.copy()
        gradient[more.indices] += more.values
        return gradient
    rows, values = (np.concatenate(pair) for pair in ((gradient.indices, more.indices), (gradient.values, more.values)))
    return RowSparse.from_rows(rows, values, gradient.shape)
