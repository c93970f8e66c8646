"""Gradients on their way to an optimizer of PyTorch: still row-sparse, and each row once."""

from collections.abc import Iterable

from workbench.bridges.contracts import Breach, ContractError
from workbench.bridges.gradients import Framework, became_dense, row_breaches
from workbench.bridges.pytorch.library import torch

PYTORCH = Framework(
    "a torch.sparse_coo tensor",
    "Leave is_coalesced unset, or call gradient.coalesce()",
    "Adagrad and SparseAdam of PyTorch step wrongly where it is marked as coalesced, without a word",
    "memory beside the weight is written to",
)


def require_row_sparse(gradients: Iterable[torch.Tensor | None], names: Iterable[str]) -> None:
    """`ContractError` for gradients that are dense, that repeat a row and say they do not, or name one outside.

    An L2 term in the loss, for one, makes the gradient of a weight strided: optimizers that are lazy then step every
    row, or refuse it. None passes, as do repeated rows of a tensor that is not marked as coalesced. O(U log U).

    >>> require_row_sparse([torch.ones(3, 2)], ["weight"])
    Traceback (most recent call last):
        ...
    workbench.bridges.contracts.ContractError: error, gradient -> optimizer, sparse: The gradient of weight is dense. \
Expected: a torch.sparse_coo tensor, the touched rows. Take regularizers and dense terms off this weight. Otherwise \
every row is stepped, or the optimizer is not lazy, without a word.
    """
    found: list[Breach] = []
    for gradient, name in zip(gradients, names, strict=True):
        if gradient is None:
            continue
        if gradient.layout is not torch.sparse_coo or gradient.sparse_dim() != 1:
            found.append(became_dense(name, PYTORCH))
            continue
        summed = gradient if gradient.is_coalesced() else gradient.coalesce()
        found += row_breaches(name, summed._indices()[0].numpy(), gradient.shape[0], PYTORCH)
    if found:
        raise ContractError(found)
