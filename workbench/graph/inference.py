"""Inference of shape, dtype, format and rule of every node from those of the variables, before anything runs."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, final

import numpy as np
from numpy.typing import DTypeLike

from workbench import formats
from workbench import formats as known_formats
from workbench.ops.contract import Rule

# Order and names of the nodes of a graph, and graphs as JSON: nodes in order, the same text for the same graph.


if TYPE_CHECKING:
    from workbench.graph.symbol import Symbol


class GraphError(ValueError):
    """A graph is inconsistent or does not fit its arguments; the message names the node, what is allowed and what to
    do.
    """


def order_nodes(heads: Iterable["Symbol"]) -> list["Symbol"]:
    """Return all nodes that the heads need, inputs before users, depth first in order of first use. O(nodes)."""
    seen: set[Symbol] = set()
    order: list[Symbol] = []
    for head in heads:
        stack = [] if head in seen else [(head, iter(head.inputs))]
        seen.add(head)
        while stack:
            node, rest = stack[-1]
            for following in rest:
                if following not in seen:
                    seen.add(following)
                    stack.append((following, iter(following.inputs)))
                    break
            else:
                order.append(node)
                stack.pop()
    return order


def name_nodes(nodes: Sequence["Symbol"]) -> dict["Symbol", str]:
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


def merge_nodes(parts: Iterable["Symbol"]) -> dict[str, "Symbol"]:
    """Return {name: node} of the named nodes of all `parts`; GraphError if two different nodes have the same name."""
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
    nodes = order_nodes(graph.heads)
    names = name_nodes(nodes)
    document = {
        "kind": KIND,
        "version": VERSION,
        "nodes": [_entry(node, names) for node in nodes],
        "outputs": [names[head] for head in graph.heads],
    }
    return _indent(document)


def _indent(document: dict[str, Any]) -> str:
    """Return a graph's document as JSON text with one line per node."""
    lines = [json.dumps(entry, allow_nan=False) for entry in document["nodes"]]
    head = f'{{\n "kind": {json.dumps(document["kind"])},\n "version": {document["version"]},\n "nodes": [\n  '
    return head + ",\n  ".join(lines) + f'\n ],\n "outputs": {json.dumps(document["outputs"])}\n}}\n'


def _entry(node: "Symbol", names: dict["Symbol", str]) -> dict[str, Any]:
    """Return the JSON object of a node: name, kind, operator, inputs, parameters, value and attributes."""
    entry: dict[str, Any] = {"name": names[node], "node": "operator" if node.op else node.kind}
    if node.op:
        entry |= {"op": node.op.name, "inputs": [names[each] for each in node.inputs]}
        entry["params"] = {key: encode(value, f"{key} of {names[node]}") for key, value in node.params.items()}
    if node.kind == "constant":
        entry["value"] = _constant(names[node], node.value)
    if node.attributes:
        entry["attributes"] = {key: encode(value, f"{key} of {names[node]}") for key, value in node.attributes.items()}
    if node.kind != "variable":
        entry["named"] = node.given is not None
    return entry


def encode(value: Any, what: str) -> Any:
    """Return a parameter as JSON value: lists for tuples, {"number": "nan"} for NaN, and the same for infinities.

    Raises GraphError, which calls it `what`, for other objects.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [encode(entry, what) for entry in value]
    raise GraphError(
        f"{what} is a {type(value).__name__}, which JSON has no form for. Allowed: numbers, strings, None and lists "
        "of them."
    )


def _constant(name: str, value: Any) -> dict[str, Any]:
    """Return the JSON object of an array: format, shape, dtype and components. GraphError if it is too large."""
    format = formats.format_of(value)
    stored = value.size if isinstance(value, np.ndarray) else value.nnz
    if stored > LARGEST:
        raise GraphError(
            f"The constant {name} holds {stored:,} numbers; up to {LARGEST:,} are written into the text. Make it a "
            "variable, and save its value with formats.save."
        )
    arrays = {
        part: [encode(entry, "an entry") for entry in array.ravel().tolist()] for part, array in parts(value).items()
    }
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


# Bytes of values that do not exist yet: exact for dense ones, from a density or an upper bound for sparse ones.


class Size(NamedTuple):
    """Bytes of a value, their certainty (`kind`: exact, estimated, at most, unknown), and the density assumed."""

    bytes: int | None
    kind: str
    density: float | None = None


UNKNOWN = Size(None, "unknown")


def dense_bytes(shape: Sequence[int], dtype: np.dtype) -> int:
    """Return the bytes of a dense array of this shape and dtype."""
    return math.prod(shape) * dtype.itemsize


def of_value(value: Any) -> Size:
    """Return the exact bytes and the density (stored / all elements) of an existing array, as a `Size`."""
    stored = getattr(value, "nnz", value.size if isinstance(value, np.ndarray) else 0)
    return Size(formats.nbytes(value), "exact", stored / max(math.prod(value.shape), 1))


def of_array(format: str, shape: Sequence[int | None] | None, dtype: np.dtype, density: float | None) -> Size:
    """Return the size of an array of this format, shape, dtype and density.

    An upper bound if the density is None; `UNKNOWN` if the shape or a length is None. Raises ValueError for a density
    outside [0, 1].
    """
    if shape is None or None in shape:
        return UNKNOWN
    lengths: Any = shape
    if format == "dense":
        return Size(math.prod(lengths) * dtype.itemsize, "exact")
    if density is not None and not 0 <= density <= 1:
        raise ValueError(f"density is {density}. Allowed: from 0 to 1.")
    used = 1.0 if density is None else density
    rows, width = lengths[0], math.prod(lengths[1:])
    stored_rows = math.ceil(used * rows)
    nnz = stored_rows * width if format == "row_sparse" else math.ceil(used * rows * width)
    bytes_all = formats.predicted_bytes(format, rows, width, nnz, dtype, np.int32, stored_rows=stored_rows)
    return Size(bytes_all, "at most" if density is None else "estimated", density)


def of_result(
    format: str, shape: Sequence[int], dtype: np.dtype, inputs: Sequence[tuple[str, Sequence[int], Size]]
) -> Size:
    """Return the size of an operator's result: estimated with the density of an input, else an upper bound.

    The density is that of the only one of `inputs` (format, shape, size) with the result's format and shape.
    """
    alike, shape = list[Size](), tuple(shape)
    for form, of, size in inputs:
        if form == format and tuple(of) == shape:
            alike.append(size)
    only = len(alike) == 1 and alike[0].density is not None
    return of_array(format, shape, dtype, alike[0].density if only else None)


if TYPE_CHECKING:
    from workbench.graph.symbol import Graph, Symbol

DTYPE = np.dtype(np.float32)
"""The type of variables that say nothing."""


class Declared(TypedDict):
    """Shapes, dtypes and formats of variables by name, as `Graph.infer` takes them."""

    shapes: Mapping[str, tuple[int | None, ...]]
    dtypes: Mapping[str, DTypeLike]
    formats: Mapping[str, str]


class Complete(NamedTuple):
    """Format, shape and dtype of a node of which all of them are known."""

    format: str
    shape: tuple[int, ...]
    dtype: np.dtype


@final
@dataclass(frozen=True)
class Facts:
    """Facts known of a node before it runs; None for unknown parts. `rule` is None for variables and constants.

    `bytes` is the size of its value; `bytes_are` its certainty.

    Examples
    --------
    >>> from workbench import graph
    >>> x = graph.variable("x", shape=(2, 3))
    >>> (x + x).infer()["add0"].complete.shape
    (2, 3)
    """

    name: str
    shape: tuple[int | None, ...] | None
    dtype: np.dtype | None
    format: str | None
    rule: Rule | None = None
    size: Size = UNKNOWN
    bytes_densified: int = 0
    """Bytes of the dense copies that the node makes of its inputs, where it has no rule for their formats."""

    @property
    def bytes(self) -> int | None:
        """Return the bytes of the value; None if unknown."""
        return self.size.bytes

    @property
    def bytes_are(self) -> str:
        """Return the certainty of `bytes`: "exact", "estimated", "at most" or "unknown"."""
        return self.size.kind

    @property
    def chosen_rule(self) -> Rule:
        """Return the rule that computes the node. Raises GraphError for variables, constants and incomplete facts."""
        if self.rule is None:
            raise GraphError(f"{self} has no rule; expected a node of an operator with inputs that are all known.")
        return self.rule

    @property
    def densifies(self) -> bool:
        """Return whether the node makes its inputs dense, having no rule for their formats."""
        return self.rule is not None and self.rule.densifies

    @cached_property
    def known(self) -> bool:
        """Return whether shape, dtype and format are all known."""
        shape, dtype = self.shape, self.dtype  # by identity: NumPy holds float64 equal to None
        return shape is not None and None not in shape and dtype is not None and self.format is not None

    @cached_property
    def complete(self) -> Complete:
        """Return format, shape and dtype. Raises GraphError if one of them or a length is not known."""
        shape: Any = self.shape
        if shape is None or self.dtype is None or self.format is None or None in shape:
            raise GraphError(f"{self} is not known completely; expected shape, dtype and format of every input.")
        return Complete(self.format, shape, self.dtype)

    def __str__(self) -> str:
        """Return name, format, dtype and shape as text, such as "x csr float32 [?, 10]"; "?" for unknown parts."""
        shape = "?" if self.shape is None else "[" + ", ".join("?" if n is None else str(n) for n in self.shape) + "]"
        return f"{self.name} {self.format or '?'} {self.dtype or '?'} {shape}"


@final
@dataclass(frozen=True)
class Inference:
    """Facts of every node of a graph: indexed by node or name, iterated in order."""

    graph: "Graph"
    facts: Mapping["Symbol", Facts]
    _by_name: dict[str, Facts] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Index the facts by node name."""
        self._by_name.update({facts.name: facts for facts in self.facts.values()})

    def __repr__(self) -> str:
        """Return the facts of all nodes as text, one line each."""
        return "\n".join(map(str, self))

    def __getitem__(self, node: "Symbol | str") -> Facts:
        """Return the facts of a node or of the node called so. Raises KeyError for an unknown one."""
        if not isinstance(node, str):
            return self.facts[node]
        if node not in self._by_name:
            raise KeyError(f"The graph has no node {node!r}; its nodes are {list(self._by_name)}.")
        return self._by_name[node]

    def __iter__(self) -> Iterator[Facts]:
        """Yield the facts of all nodes, inputs first."""
        return iter(self.facts.values())

    @property
    def arguments(self) -> dict[str, Facts]:
        """Return the facts of the variables by name."""
        return {facts.name: facts for node, facts in self.facts.items() if node.kind == "variable"}

    @property
    def outputs(self) -> list[Facts]:
        """Return the facts of each output of the graph, in order."""
        return [self.facts[head] for head in self.graph.heads]

    @property
    def densified(self) -> list[Facts]:
        """Return the facts of the nodes that make their inputs dense."""
        return [facts for facts in self if facts.densifies]


def infer(
    graph: "Graph",
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    dtypes: Mapping[str, DTypeLike] | None = None,
    formats: Mapping[str, str] | None = None,
    *,
    densities: Mapping[str, float] | None = None,
    partial: bool = False,
) -> Inference:
    """Infer shape, dtype, format, rule and size of every node; see `Graph.infer` for the parameters. O(nodes).

    Raises GraphError for contradictions and, unless `partial`, for missing shapes.
    """
    declared = {"shapes": shapes or {}, "dtypes": dtypes or {}, "formats": formats or {}, "densities": densities or {}}
    nodes = order_nodes(graph.heads)
    names = name_nodes(nodes)
    _refuse_unknown(declared, [names[node] for node in nodes if node.kind == "variable"])
    facts: dict[Symbol, Facts] = {}
    for node in nodes:
        if node.op is None:
            result = _leaf(node, names[node], declared)
        else:
            result = _result(node, names[node], [facts[entry] for entry in node.inputs])
        facts[node] = result
    if not partial:
        _refuse_missing([facts[node] for node in nodes if node.kind == "variable"])
    return Inference(graph, facts)


def infer_result(node: "Symbol", facts: Mapping["Symbol", Facts]) -> Facts:
    """Infer the facts of an operator node from those of its inputs in `facts`; GraphError if these do not fit."""
    return _result(node, node.name, [facts[entry] for entry in node.inputs])


def _refuse_unknown(declared: Mapping[str, Mapping[str, Any]], known: list[str]) -> None:
    """Raise GraphError if `declared` ({"shapes": {name: ...}, ...}) names a variable that is not in `known`."""
    for what, values in declared.items():
        if unknown := sorted(set(values) - set(known)):
            raise GraphError(f"{what} are given for {', '.join(unknown)}; the graph's variables are {known}.")


def _refuse_missing(variables: list[Facts]) -> None:
    """Raise GraphError, with the names, if shape, dtype or format of a variable are not known completely."""
    if missing := [facts for facts in variables if not facts.known]:
        said = ", ".join(f"{facts.name} (known is {facts.shape})" if facts.shape else facts.name for facts in missing)
        raise GraphError(
            f"The shape is missing of: {said}. Give it where the variable is made, or shapes={{{missing[0].name!r}: "
            "...}; partial=True leaves None where it is not known."
        )


def _leaf(node: "Symbol", name: str, declared: Mapping[str, Mapping[str, Any]]) -> Facts:
    """Return the facts of the variable or constant `node`, called `name`, from its attributes and `declared`.

    `declared` is {"shapes", "dtypes", "formats", "densities"} by name. Raises GraphError if they contradict each other.
    """
    density = declared["densities"].get(name) if node.kind == "variable" else None
    if node.kind == "constant":
        kind, value = known_formats.coerce(node.value)
        return Facts(name, value.shape, value.dtype, kind.name, size=of_value(value))
    format = known_formats.get(declared["formats"].get(name, node.attributes["format"])).name
    dtype = np.dtype(declared["dtypes"].get(name, node.attributes["dtype"]) or DTYPE)
    shape = _join_shapes(name, node.attributes["shape"], declared["shapes"].get(name))
    if shape is not None and format in ("csr", "csc", "coo") and len(shape) != 2:
        raise GraphError(f"{name} is {format}, which has 2 dimensions; its shape is {shape}. Use row_sparse or dense.")
    if shape == () and format != "dense":
        raise GraphError(f"{name} is {format}, which has at least 1 dimension; its shape is (). Use dense.")
    return Facts(name, shape, dtype, format, size=of_array(format, shape, dtype, density))


def _join_shapes(name: str, declared: Sequence | None, given: Sequence | None) -> tuple[int | None, ...] | None:
    """Return the combination of the declared and the given shape of variable `name`; a length None takes the other's.

    None if both are None. Raises GraphError if they differ.
    """
    if declared is None or given is None:
        shape = given if declared is None else declared
        return None if shape is None else tuple(shape)
    pairs = list(zip(declared, given, strict=False))
    if len(declared) != len(given) or any(None not in pair and pair[0] != pair[1] for pair in pairs):
        raise GraphError(f"{name} has the declared shape {tuple(declared)}; {tuple(given)} was given.")
    return tuple(b if a is None else a for a, b in pairs)


def _result(node: "Symbol", name: str, inputs: list[Facts]) -> Facts:
    """Return the facts of the operator node called `name` from those of its inputs.

    Raises GraphError if these do not fit.
    """
    op, dtypes, are_known = node.operator, list[np.dtype](), True
    for facts in inputs:
        are_known &= facts.known
        if facts.dtype is not None:
            dtypes.append(facts.dtype)
    held, shapes, sizes = list[str](), list[tuple[int, ...]](), list[tuple[str, tuple[int, ...], Size]]()
    try:
        dtype = op.dtype_of(dtypes, node.params) if len(dtypes) == len(inputs) else None
        if dtype is None or not are_known:
            return Facts(name, None, dtype, None)
        for facts in inputs:
            known = facts.complete
            held.append(known.format)
            shapes.append(known.shape)
            sizes.append((known.format, known.shape, facts.size))
        shape = tuple(op.shape(shapes, node.params))
        rule = op.choose(held, shapes, node.params)
    except ValueError as error:
        arguments = ", ".join(str(facts) for facts in inputs)
        raise GraphError(f"{name} = {op.name}({arguments}): {error}") from error
    size, densified = of_result(rule.result, shape, dtype, sizes), 0
    if rule.densifies:
        densified = sum(
            dense_bytes(facts.complete.shape, facts.complete.dtype) for facts in inputs if facts.format != "dense"
        )
    return Facts(name, shape, dtype, rule.result, rule, size, densified)
