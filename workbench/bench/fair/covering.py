"""Covering arrays: few combinations of values in which every pair of values of two axes occurs."""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

Pair = tuple[tuple[str, Any], tuple[str, Any]]


def pairs_of(combination: Mapping[str, Any]) -> list[Pair]:
    """Return the pairs of (axis, value) that a combination has.

    >>> pairs_of({"a": 1, "b": 2})
    [(('a', 1), ('b', 2))]
    """
    return list(itertools.combinations(combination.items(), 2))


def covering_array(axes: Mapping[str, Sequence[Any]], times: int = 1) -> list[dict[str, Any]]:
    """Different combinations that cover all pairs of values of any two axes so often, the same ones at every call.

    Greedy: next is the combination with the most pairs that are not covered yet; of several the one whose pairs were
    covered least, then the first. O(combinations squared). The count is near `times` times the product of the two
    longest axes, which is the least possible.

    >>> len(covering_array({"a": (1, 2), "b": (1, 2), "c": (1, 2)}))
    4
    """
    left = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    covered: Counter[Pair] = Counter()
    wanted = {pair for one in left for pair in pairs_of(one)}
    chosen: list[dict[str, Any]] = []
    while left and any(covered[pair] < times for pair in wanted):
        worth = [[covered[pair] for pair in pairs_of(one)] for one in left]
        best = min(range(len(left)), key=lambda place: (-sum(n < times for n in worth[place]), sum(worth[place])))
        covered.update(pairs_of(left[best]))
        chosen.append(left.pop(best))
    return chosen
