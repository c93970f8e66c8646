"""Order and names of the nodes of a graph, and graphs as JSON: nodes in order, the same text for the same graph."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench import formats

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


if TYPE_CHECKING:
    from workbench.graph.symbol import Graph, Symbol

VERSION = 1
KIND = "workbench graph"
LARGEST = 10_000
"""Stored numbers of a constant that is still written as text."""


def text(graph: "Graph") -> str:
    """Return the JSON text of a graph; see `Graph.to_json`."""
    nodes = ordered(graph.heads)
    names = named(nodes)
    document = {
        "kind": KIND,
        "version": VERSION,
        "nodes": [_entry(node, names) for node in nodes],
        "outputs": [names[head] for head in graph.heads],
    }
    return _indented(document)


def _indented(document: dict[str, Any]) -> str:
    """Return JSON text with one line per node."""
    lines = [json.dumps(entry, allow_nan=False) for entry in document["nodes"]]
    head = f'{{\n "kind": {json.dumps(document["kind"])},\n "version": {document["version"]},\n "nodes": [\n  '
    return head + ",\n  ".join(lines) + f'\n ],\n "outputs": {json.dumps(document["outputs"])}\n}}\n'


def _entry(node: "Symbol", names: dict["Symbol", str]) -> dict[str, Any]:
    """Return the JSON object of a node: name, kind, operator, inputs, parameters, value and attributes."""
    entry: dict[str, Any] = {"name": names[node], "node": "operator" if node.op else node.kind}
    if node.op:
        entry |= {"op": node.op.name, "inputs": [names[each] for each in node.inputs]}
        entry["params"] = {key: coded(value, f"{key} of {names[node]}") for key, value in node.params.items()}
    if node.kind == "constant":
        entry["value"] = _constant(names[node], node.value)
    if node.attributes:
        entry["attributes"] = {key: coded(value, f"{key} of {names[node]}") for key, value in node.attributes.items()}
    if node.kind != "variable":
        entry["named"] = node.given is not None
    return entry


def coded(value: Any, what: str) -> Any:
    """Return a parameter as JSON value; NaN and infinities become {"number": "nan"}. Raises GraphError for other
    objects.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [coded(entry, what) for entry in value]
    raise GraphError(
        f"{what} is a {type(value).__name__}, which JSON has no form for. Allowed: numbers, strings, None and lists "
        "of them."
    )


def _constant(name: str, value: Any) -> dict[str, Any]:
    """Return the JSON object of an array."""
    format = formats.format_of(value)
    stored = value.size if isinstance(value, np.ndarray) else value.nnz
    if stored > LARGEST:
        raise GraphError(
            f"The constant {name} holds {stored:,} numbers; up to {LARGEST:,} are written into the text. Make it a "
            "variable, and save its value with formats.save."
        )
    arrays = {part: _listed(array) for part, array in parts(value).items()}
    return {"format": format, "shape": list(value.shape), "dtype": value.dtype.name, **arrays}


def parts(value: Any) -> dict[str, np.ndarray]:
    """Return the component arrays of a dense or sparse value by name, such as data, indices and indptr."""
    format = formats.format_of(value)
    if format == "dense":
        return {"data": value}
    if format == "coo":
        return {"data": value.data, "row": value.coords[0], "col": value.coords[1]}
    if format == "row_sparse":
        return {"data": value.values, "indices": value.indices}
    return {"data": value.data, "indices": value.indices, "indptr": value.indptr}


def _listed(array: np.ndarray) -> list:
    """Return the elements of an array as a flat list."""
    return [coded(entry, "an entry") for entry in array.ravel().tolist()]
