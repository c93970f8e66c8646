"""Input of `torch.nn.EmbeddingBag` from sparse rows: it is a sparse linear layer by another name."""

from typing import Any

import numpy as np

from workbench.bridges.pytorch.library import torch
from workbench.bridges.pytorch.rows import arrays_of, require_sound, rows_of


def to_bags(x: Any) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """`(indices, offsets, per_sample_weights)` of a matrix x [R, D], a CSR tensor or `SparseRows`, over their memory.

    `offsets` has R + 1 entries: the EmbeddingBag needs `include_last_offset=True`. The weights are None where every
    value is one, which is what a bag of ids is. indices int32 or int64 [z], as x has them; checked (`ContractError`).
    O(nnz).

    >>> to_bags(scipy.sparse.csr_array(np.float32([[0, 1], [1, 1]])))
    (tensor([1, 0, 1], dtype=torch.int32), tensor([0, 1, 3], dtype=torch.int32), None)
    """
    rows = rows_of(x)
    arrays = arrays_of(rows)
    require_sound(arrays, rows.features, "rows -> EmbeddingBag")
    has_values = arrays[2] is not None and not _are_ones(arrays[2])
    return rows.indices, rows.indptr, rows.data if has_values else None


def _are_ones(values: np.ndarray) -> bool:
    """Whether every value is one; most that are not show it at once."""
    return not values.size or (values[0] == 1 and bool((values == 1).all()))
