"""A data set that comes block by block: what a source gives whose files need not be held to be converted."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

import numpy as np

from workbench.data.labels.meaning import Labels


class RowBlock(NamedTuple):
    """Some rows: `x` csr [R, D], columns sorted and unique in each row; a label for each; groups int64 [R] or None.

    Labels are as they stand in the file, numbers or text [R] or columns of numbers [R, N], of one kind in all blocks.
    """

    x: Any
    labels: np.ndarray
    groups: np.ndarray | None = None


@final
@dataclass(frozen=True)
class RowBlocks:
    """The rows of a data set, block by block, once; `source` and `licence` say where they come from.

    A block is a `RowBlock`, or a plain pair of its x and labels. Blocks may differ in width: the set has `features`
    columns, and where that is None as many as its widest block. `labels` says what labels mean that are already as a
    data set holds them; None if they are as in a file. `facts` are those of the set; what is known only when all is
    read may be put into it while the blocks come.
    """

    blocks: Iterable[tuple[Any, ...]]
    name: str
    source: str
    licence: str
    features: int | None = None
    labels: Labels | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
