"""Which ways to train are worth a trial: what has been fastest somewhere, likeliest first, less what is impossible."""

from collections.abc import Iterable, Mapping
from typing import Any

from workbench import optimizers
from workbench.optimizers import missed
from workbench.sweep import grid
from workbench.sweep.spec import Cell

DENSE = {"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard"}
FUSED = {"format": "csr", "engine": "ours", "gradient": "fused", "update": "lazy"}
WHOLE = {"format": "csr", "engine": "ours", "gradient": "dense", "update": "standard"}
"""All rows of the weights are stepped, for a gradient that is dense."""

ON_CPU = (
    FUSED,
    DENSE,
    {"format": "csr", "engine": "ours", "gradient": "row_sparse", "update": "lazy", "launch": "epoch"},
    WHOLE,
    {**WHOLE, "engine": "vendor"},
    {**FUSED, "gradient": "row_sparse"},
    {**FUSED, "format": "coo"},
    {**WHOLE, "format": "csc"},
)
ON_CUDA = ({**FUSED, "launch": "graph"}, DENSE, FUSED, {**WHOLE, "engine": "vendor"}, WHOLE)
BY_DEVICE = {"cpu": ON_CPU, "cuda": ON_CUDA}


def contenders(settings: Mapping[str, Any], devices: Iterable[str] = ("cpu",)) -> list[dict[str, Any]]:
    """Settings of each contender for a training with these settings on these devices, dense ones among them.

    Where a lazy update is not exact, so that it trains another model than dense, an exact one is a contender too, and
    comes before it.

    >>> [one["update"] for one in contenders({"dataset": "uniform", "optimizer": "adam"})][:3]
    ['exact', 'lazy', 'standard']
    """
    is_same = is_lazy_exact(Cell(**settings))
    found = [
        {**named, "device": device, "update": update}
        for device in devices
        for named in BY_DEVICE[device]
        for update in (("exact", "lazy") if named["update"] == "lazy" and not is_same else (named["update"],))
    ]
    return [one for one in found if not grid.why_dropped(Cell(**{**settings, **one}))]


def is_faithful(cell: Cell) -> bool:
    """Whether the cell trains the model that a dense training does, but for rounding."""
    return cell.update != "lazy" or is_lazy_exact(cell)


def is_lazy_exact(cell: Cell) -> bool:
    """Whether a row that a batch does not touch would not have changed: a lazy update is exact then."""
    optimizer = optimizers.get(cell.optimizer)
    return not missed.way(optimizer.rule, optimizer.resolve(grid.setup_of(cell).options))
