"""Covering arrays: of a grid of cases a small part that still holds every pair of values together.

A test with the mark `covering` runs on that part; with `--exhaustive` it runs on the whole grid.
"""

import heapq
import itertools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

Targets = Callable[[Mapping[str, Any]], Iterable[Hashable]]
"""The targets that a case reaches, from its parameters by name."""


def all_pairs(case: Mapping[str, Any]) -> set[Hashable]:
    """Every pair of values of the case; each value alone if there is one parameter."""
    values = sorted((name, _key(value)) for name, value in case.items())
    return set(itertools.combinations(values, min(2, len(values))))


def cover(cases: Sequence[Mapping[str, Any]], targets: Targets = all_pairs) -> list[int]:
    """Choose positions of cases, ascending, that together reach every target that any case reaches.

    Greedy and deterministic: the next case is the one with the most targets not yet reached, the earliest of several.
    """
    reached: set[Hashable] = set()
    of_case = [frozenset(targets(case)) for case in cases]
    # The number of missing targets of a case only falls, so the top of the queue is the best once it is up to date.
    queue = [(-len(found), position) for position, found in enumerate(of_case)]
    heapq.heapify(queue)
    chosen = []
    while queue:
        claimed, position = heapq.heappop(queue)
        missing = len(of_case[position] - reached)
        if missing and missing == -claimed:
            chosen.append(position)
            reached |= of_case[position]
        elif missing:
            heapq.heappush(queue, (-missing, position))
    return sorted(chosen)


def _key(value: object) -> str:
    """A text that tells values of one parameter apart, also those that have no hash."""
    text = getattr(value, "__qualname__", None) or repr(value)
    return f"{type(value).__qualname__} {text}"
