"""PyTorch: sparse rows as tensors, modules on our kernels, our lazy optimizers, and data for its DataLoader.

Two lines of a script that has an EmbeddingBag change: the layer, and the optimizer.

    model = SparseEmbeddingBag(features, classes, mode="sum")  # torch.nn.EmbeddingBag(..., sparse=True)
    optimizer = LazyAdam(model.parameters(), lr=0.01)  # torch.optim.SparseAdam(list(model.parameters()), lr=0.01)

A script that begins with sparse data:

>>> import torch
>>> from workbench import data
>>> from workbench.bridges.pytorch import FeedDataset, LazyAdam, SparseLinear
>>> train = data.load("uniform", rows=400, features=60, density=0.1, cache=False)
>>> batches = torch.utils.data.DataLoader(FeedDataset(train, rows=50, shuffle=True), batch_size=None)
>>> model = SparseLinear(train.features, 1)
>>> optimizer = LazyAdam(model.parameters(), lr=0.1)
>>> losses = []
>>> for epoch in range(5):
...     batches.dataset.set_epoch(epoch)
...     for rows, labels in batches:
...         optimizer.zero_grad()
...         scores = model(rows)[:, 0]
...         loss = torch.nn.functional.binary_cross_entropy_with_logits(scores, labels.float())
...         loss.backward()
...         optimizer.step()
...         losses.append(loss.item())
>>> losses[-1] < losses[0]
True

`SparseLinear` and `SparseEmbeddingBag` compute on sparse rows, `SparseRows` or what `rows_of` makes them of, and give
their weight a row-sparse gradient. `LazyAdam` and its like, one for each of `workbench.optimizers`, step the rows that
a gradient holds, also those of torch.nn.EmbeddingBag(sparse=True). `to_tensor`, `from_tensor` and `to_bags` hand
matrices over to PyTorch's own operators, and check what these read without a look. `FeedDataset` and `RowDataset` give
a DataLoader batches, in this process and in workers. `check_loader` says what workers do wrong, `check_saved` whether a
module saves all that it computes with, `require_row_sparse` whether a gradient became dense.

Kernels run on `torch.get_num_threads()` threads, on the CPU.
"""

from typing import Any

from workbench.bridges.lazy_rules import class_names
from workbench.bridges.pytorch import optimizers
from workbench.bridges.pytorch.layers import SparseEmbeddingBag, SparseLinear, sparse_product, to_bags
from workbench.bridges.pytorch.optimizers import LazyOptimizer
from workbench.bridges.pytorch.rows import (
    FeedDataset,
    RowDataset,
    SparseRows,
    check_loader,
    check_saved,
    collate,
    from_tensor,
    init_worker,
    require_row_sparse,
    rows_of,
    to_tensor,
)

__all__ = [
    "FeedDataset",
    "LazyOptimizer",
    "RowDataset",
    "SparseEmbeddingBag",
    "SparseLinear",
    "SparseRows",
    "check_loader",
    "check_saved",
    "collate",
    "from_tensor",
    "init_worker",
    "require_row_sparse",
    "rows_of",
    "sparse_product",
    "to_bags",
    "to_tensor",
]


def __getattr__(name: str) -> Any:
    """Return the optimizer class of that name, such as LazyAdam."""
    if not name.startswith("Lazy"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return optimizers.class_of(name)


def __dir__() -> list[str]:
    return sorted([*__all__, *class_names()])
