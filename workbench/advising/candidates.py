"""Candidates worth a trial: ways to train that have been fastest somewhere, likeliest first, less the impossible."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from workbench import optimizers
from workbench.optimizers.deferred_updates import catch_up_strategy
from workbench.sweeps import grid
from workbench.sweeps.spec import Configuration

DENSE = {"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard"}
FUSED = {"format": "csr", "engine": "ours", "gradient": "fused", "update": "lazy"}
WHOLE = {"format": "csr", "engine": "ours", "gradient": "dense", "update": "standard"}
"""All rows of the weights are stepped, for a gradient that is dense."""

EPOCH = {**FUSED, "gradient": "row_sparse", "execution": "epoch"}
"""Nothing of Python runs between two steps, so it comes before the same steps by themselves."""
DENSE_EPOCH = {**DENSE, "execution": "epoch"}

ON_CPU = (
    EPOCH,
    DENSE_EPOCH,
    {**EPOCH, "update": "standard"},  # if a batch has entries in all columns, to step them all is to search for none
    DENSE,
    {**DENSE_EPOCH, "storage": "csr"},  # as little memory as sparse, and nearly the time of dense
    FUSED,
    WHOLE,
    {**WHOLE, "engine": "vendor"},
    {**DENSE, "storage": "csr"},
    {**FUSED, "gradient": "row_sparse"},
    {**WHOLE, "format": "csc"},
    {**FUSED, "format": "coo"},
)
ON_CUDA = (
    {**FUSED, "execution": "cuda_graph"},
    {**DENSE, "execution": "cuda_graph"},
    DENSE,
    FUSED,
    {**WHOLE, "engine": "vendor"},
    WHOLE,
)
BY_DEVICE = {"cpu": ON_CPU, "cuda": ON_CUDA}


def list_candidates(
    settings: Mapping[str, Any], devices: Iterable[str] = ("cpu",), lazy: bool = False
) -> list[dict[str, Any]]:
    """Return the settings of each candidate to try on `devices`, dense ones included, likeliest first.

    If a lazy update is not exact, so that it trains another model than dense, an exact one takes its place, and the
    lazy one comes last, only to be reported; with `lazy` it may be chosen, and there is no exact one, which is never
    faster. Impossible combinations are left out.

    >>> [one["update"] for one in list_candidates({"dataset": "uniform", "optimizer": "adam"})][:3]
    ['exact', 'standard', 'standard']
    """
    named = [{**one, "device": device} for device in devices for one in BY_DEVICE[device]]
    if not lazy and not is_lazy_exact(Configuration(**settings)):
        lazies = [one for one in named if one["update"] == "lazy"]
        named = [one | {"update": "exact"} if one["update"] == "lazy" else one for one in named] + lazies
    return [one for one in named if not grid.why_dropped(Configuration(**{**settings, **one}))]


FAR = 3.0
"""A candidate that is predicted to take so many times the least time of its side is seldom the fastest of it."""


def likely_first(
    candidates: Sequence[Mapping[str, Any]], seconds: Sequence[float | None]
) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """Return (candidates that may be the fastest of their side, the others), both in their order.

    `seconds` are predicted step times, None for unknown ones, which may be the fastest; up to `FAR` times the least is
    likely.

    >>> sparse, slow, dense = {"format": "csr"}, {"format": "coo"}, {"format": "dense"}
    >>> likely_first([sparse, slow, dense], [1e-5, 9e-5, 4e-4])
    ([{'format': 'csr'}, {'format': 'dense'}], [{'format': 'coo'}])
    """
    sides = [one["format"] == "dense" for one in candidates]
    least = {
        is_dense: min((own for own, side in zip(seconds, sides, strict=True) if own and side == is_dense), default=0.0)
        for is_dense in sides
    }
    found: tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]] = [], []
    for one, own, is_dense in zip(candidates, seconds, sides, strict=True):
        found[bool(own and own > FAR * least[is_dense])].append(one)
    return found


def is_faithful(configuration: Configuration) -> bool:
    """Return whether a configuration trains the same model as dense training, up to rounding."""
    return configuration.update != "lazy" or is_lazy_exact(configuration)


def is_lazy_exact(configuration: Configuration) -> bool:
    """Return whether a lazy update equals the dense one: rows without a gradient would not change."""
    optimizer = optimizers.get(configuration.optimizer)
    return not catch_up_strategy(optimizer.rule, optimizer.resolve(grid.setup_of(configuration).options))
