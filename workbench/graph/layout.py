"""Layout of the boxes of a picture: layers from top to bottom, few crossings, no overlaps.

The way of Sugiyama, Tagawa and Toda, 1981: an edge that passes layers gets a place of its own in each of them, the
order in a layer follows the means of the neighbours, and positions are the closest to these means that keep the order
and the distances.
"""

import itertools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

SWEEPS = 12
Place = Hashable
"""A box by its name, or (name, layer) where a line from that box passes a layer."""


@dataclass(frozen=True)
class Layout:
    """The middle of every box and of every passage, and the places that each edge goes through, in order."""

    layers: Mapping[Place, int]
    middles: Mapping[Place, float]
    routes: Mapping[tuple[str, str], Sequence[Place]]
    width: float


def arrange(names: Sequence[str], edges: Sequence[tuple[str, str]], box: float, passage: float, gap: float) -> Layout:
    """Positions for boxes of width `box`, passages of width `passage`, `gap` between; `names` inputs first."""
    layers: dict[Place, int] = dict(_layers(names, edges))
    routes = {}
    for source, target in edges:
        passed = [(source, layer) for layer in range(layers[source] + 1, layers[target])]
        layers.update({place: place[1] for place in passed})
        routes[source, target] = [source, *passed, target]
    rows: list[list[Place]] = [[] for _ in range(max(layers.values(), default=0) + 1)]
    for place, layer in layers.items():
        rows[layer].append(place)
    above, below = _neighbours(routes)
    _order(rows, above, below)
    sizes = {place: passage if isinstance(place, tuple) else box for place in layers}
    middles = _positions(rows, sizes, above, below, gap)
    left = min((middles[place] - sizes[place] / 2 for place in layers), default=0)
    width = max((middles[place] + sizes[place] / 2 for place in layers), default=0) - left
    return Layout(layers, {place: middle - left for place, middle in middles.items()}, routes, width)


def _layers(names: Sequence[str], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Users below their inputs; what has no inputs just above its first user."""
    inputs: dict[str, list[str]] = {name: [] for name in names}
    for source, target in edges:
        inputs[target].append(source)
    layers: dict[str, int] = {}
    for name in names:
        layers[name] = 1 + max((layers[source] for source in inputs[name]), default=-1)
    for name in names:
        users = [layers[target] for source, target in edges if source == name]
        if not inputs[name] and users:
            layers[name] = min(users) - 1
    return layers


def _neighbours(routes: Mapping[tuple[str, str], Sequence[Place]]) -> tuple[dict, dict]:
    above: dict[Place, set[Place]] = {}
    below: dict[Place, set[Place]] = {}
    for route in routes.values():
        for upper, lower in itertools.pairwise(route):
            above.setdefault(lower, set()).add(upper)
            below.setdefault(upper, set()).add(lower)
    return above, below


def _order(rows: list[list[Place]], above: Mapping, below: Mapping) -> None:
    """Sort every layer by the mean place of its neighbours, down and up in turn."""
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        order = range(1, len(rows)) if down else range(len(rows) - 2, -1, -1)
        for layer in order:
            fixed = {place: at for at, place in enumerate(rows[layer - 1 if down else layer + 1])}
            near = above if down else below
            means = {
                place: _mean([fixed[n] for n in near.get(place, ()) if n in fixed], at)
                for at, place in enumerate(rows[layer])
            }
            rows[layer].sort(key=means.__getitem__)


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _positions(rows, sizes: Mapping[Place, float], above: Mapping, below: Mapping, gap: float) -> dict[Place, float]:
    middles: dict[Place, float] = {}
    for row in rows:
        middles |= dict(zip(row, _apart([0.0] * len(row), [sizes[place] for place in row], gap), strict=True))
    for sweep in range(SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            near = [(*above.get(place, ()), *below.get(place, ())) for place in row]
            targets = [
                _mean([middles[n] for n in around], middles[place]) for place, around in zip(row, near, strict=True)
            ]
            middles |= dict(zip(row, _apart(targets, [sizes[place] for place in row], gap), strict=True))
    return middles


def _apart(targets: Sequence[float], sizes: Sequence[float], gap: float) -> list[float]:
    """The middles closest to the targets, in least squares, in order and apart: adjacent violators pooled."""
    offsets = [0.0]
    for left, right in itertools.pairwise(sizes):
        offsets.append(offsets[-1] + (left + right) / 2 + gap)
    pools: list[tuple[float, int]] = []
    for middle, offset in zip(targets, offsets, strict=False):
        total, count = middle - offset, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            before = pools.pop()
            total, count = total + before[0], count + before[1]
        pools.append((total, count))
    starts = [total / count for total, count in pools for _ in range(count)]
    return [start + offset for start, offset in zip(starts, offsets, strict=False)]
