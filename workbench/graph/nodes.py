"""Order and names of the nodes of a graph."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.graph.symbol import Symbol


class GraphError(ValueError):
    """A graph is inconsistent or does not fit its arguments; the message names the node, what is allowed and what to
    do.
    """


def ordered(heads: Iterable["Symbol"]) -> list["Symbol"]:
    """Return all nodes that the heads need, inputs before their users, depth first in order of first use. O(nodes)."""
    seen: set[Symbol] = set()
    order: list[Symbol] = []
    for head in heads:
        stack = [] if head in seen else [(head, iter(head.inputs))]
        seen.add(head)
        while stack:
            node, rest = stack[-1]
            following = next((entry for entry in rest if entry not in seen), None)
            if following is None:
                order.append(node)
                stack.pop()
            else:
                seen.add(following)
                stack.append((following, iter(following.inputs)))
    return order


def named(nodes: Sequence["Symbol"]) -> dict["Symbol", str]:
    """Return the name of every node: the given one, else its operator's with a counter that skips names in use."""
    reserved = {node.given for node in nodes if node.given}
    counts: Counter[str] = Counter()
    names = {}
    for node in nodes:
        name = node.given
        while name is None:
            candidate = f"{node.kind}{counts[node.kind]}"
            counts[node.kind] += 1
            name = None if candidate in reserved else candidate
        names[node] = name
    return names


def merged(parts: Iterable["Symbol"]) -> dict[str, "Symbol"]:
    """Return the named nodes of all parts by name. Raises GraphError if two different nodes have the same name."""
    by_name: dict[str, Symbol] = {}
    for part in parts:
        if not by_name:
            by_name = part.taken
            continue
        if part.taken is by_name:
            continue
        for name, node in part.taken.items():
            if (other := by_name.get(name, node)) is not node:
                raise GraphError(
                    f"Two different nodes are named {name!r}: {other.described} and {node.described}. In one graph a "
                    "name stands for one node: use the same symbol in both places, or give one another name."
                )
        by_name = by_name | part.taken
    return by_name
