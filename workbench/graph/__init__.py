"""Graphs of operators on variables: built first, inferred as a whole, then bound and run by `workbench.executor`.

>>> import numpy as np
>>> from workbench import graph
>>> x = graph.variable("x", format="csr", shape=(None, 1000))
>>> w = graph.variable("w", shape=(1000, 10))
>>> scores = x @ w
>>> scores.arguments(), scores.outputs()
(['x', 'w'], ['dot0'])
>>> found = scores.infer(shapes={"x": (32, 1000)})
>>> found["dot0"].format, found["dot0"].shape, found["dot0"].bytes
('dense', (32, 10), 1280)
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn, final

import numpy as np
import scipy.sparse

from workbench import formats, ops
from workbench.graph.explanation import Explanation
from workbench.graph.inference import KIND, VERSION, Facts, GraphError, Inference, merge_nodes
from workbench.graph.symbol import Graph, Symbol, canonical, constant, scope, variable
from workbench.json_text import is_whole, parsed

# Reading graphs from JSON: every key, name and number is validated; nothing is executed.

# Several symbols as one graph.


@final
class Group(Graph):
    """Several symbols as the outputs of one graph; indexed by position or name, iterated in order.

    Parameters
    ----------
    symbols : iterable of Graph
        Symbols or groups.

    Raises
    ------
    GraphError
        If there is none, or names collide.

    Examples
    --------
    >>> Group([variable("x"), variable("y")]).outputs()
    ['x', 'y']
    """

    __slots__ = ("symbols",)

    symbols: tuple[Symbol, ...]

    def __init__(self, symbols: Iterable[Graph]) -> None:
        """Collect the heads of `symbols`; see the class. Raises GraphError."""
        parts = tuple(symbols)
        for part in parts:
            if not isinstance(part, Graph):
                raise GraphError(f"A group is of symbols; a {type(part).__name__} came.")
        heads = tuple(head for part in parts for head in part.heads)
        if not heads:
            raise GraphError("A group needs at least one symbol; none came.")
        merge_nodes(heads)
        object.__setattr__(self, "symbols", heads)

    @property
    def heads(self) -> tuple[Symbol, ...]:
        """Return the output symbols of the graph, in the order in which they were passed."""
        return self.symbols

    def __getitem__(self, which: int | str) -> Symbol:
        """Return the output at a position or called `which`.

        Raises KeyError for an unknown name, IndexError for a position.
        """
        if isinstance(which, str):
            names = self.names()
            for head in self.symbols:
                if names[head] == which:
                    return head
            raise KeyError(f"The group has no output {which!r}; its outputs are {self.outputs()}.")
        return self.symbols[which]

    def __iter__(self) -> Iterator[Symbol]:
        """Yield the output symbols in order."""
        return iter(self.symbols)

    def __len__(self) -> int:
        """Return the number of outputs."""
        return len(self.symbols)

    def __repr__(self) -> str:
        """Return the names of the outputs: "<Group dot0, add1>"."""
        return f"<Group {', '.join(self.outputs())}>"

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        """Raise AttributeError: groups cannot be changed."""
        raise AttributeError(f"Group.{name} cannot be set; build a new group.")


TOP = ("kind", "version", "nodes", "outputs")
KEYS = {
    "variable": ("name", "node", "attributes"),
    "constant": ("name", "node", "value", "named"),
    "operator": ("name", "node", "op", "inputs", "params", "attributes", "named"),
}
OPTIONAL = ("attributes", "named")
PARTS = {
    "dense": ("data",),
    "csr": ("data", "indices", "indptr"),
    "csc": ("data", "indices", "indptr"),
    "coo": ("data", "row", "col"),
    "row_sparse": ("data", "indices"),
}


def from_json(text: str) -> Graph:
    """Read the graph that `to_json` wrote.

    Parameters
    ----------
    text : str
        JSON text; may come from an untrusted source.

    Returns
    -------
    Graph
        A symbol, or a group if there are several outputs.

    Raises
    ------
    GraphError
        If the text is not a valid graph.

    Examples
    --------
    >>> from_json(variable("x").to_json()).name
    'x'
    """
    try:
        document = parsed(text)
    except (TypeError, ValueError) as error:
        raise GraphError(f"This is not JSON: {error}. Expected is what to_json wrote.") from error
    _check_keys("The document", document, TOP, ())
    if document["kind"] != KIND:
        raise GraphError(f"The document's kind is {document['kind']!r}; a graph's is {KIND!r}.")
    if document["version"] != VERSION:
        raise GraphError(f"The graph is of version {document['version']!r}; this program reads version {VERSION}.")
    nodes: dict[str, Symbol] = {}
    for entry in _list(document["nodes"], "nodes"):
        name, node = _node(entry, nodes)
        if name in nodes:
            raise GraphError(f"Two nodes are named {name!r}; each needs a name of its own.")
        nodes[name] = node
    heads = [_look_up(name, nodes, "outputs") for name in _list(document["outputs"], "outputs")]
    return heads[0] if len(heads) == 1 else Group(heads)


def _check_keys(what: str, entry: Any, known: tuple[str, ...], optional: tuple[str, ...]) -> None:
    """Raise GraphError unless `entry` is a dict with the `known` keys; only `optional` ones may be missing.

    `what` names it in the message.
    """
    if not isinstance(entry, dict):
        raise GraphError(f"{what} is a {type(entry).__name__}; an object with the keys {list(known)} is expected.")
    if unknown := sorted(set(entry) - set(known)):
        raise GraphError(f"{what} has the unknown key {', '.join(unknown)}; known are {list(known)}.")
    if missing := [key for key in known if key not in entry and key not in optional]:
        raise GraphError(f"{what} lacks the key {', '.join(missing)}.")


def _list(value: Any, what: str) -> list:
    """Return `value` if it is a list. Raises GraphError, which calls it `what`, else."""
    if not isinstance(value, list):
        raise GraphError(f"{what} is a {type(value).__name__}; a list is expected.")
    return value


def _object(value: Any, what: str) -> dict:
    """Return `value` if it is a dict. Raises GraphError, which calls it `what`, else."""
    if not isinstance(value, dict):
        raise GraphError(f"{what} is a {type(value).__name__}; an object is expected.")
    return value


def _look_up(name: Any, nodes: dict[str, Symbol], what: str) -> Symbol:
    """Return the node called `name` among those read before.

    Raises GraphError, beginning with `what`, if there is none.
    """
    if not isinstance(name, str) or name not in nodes:
        raise GraphError(f"{what} names {name!r}, which stands nowhere before; there are {list(nodes)}.")
    return nodes[name]


def _node(entry: Any, nodes: dict[str, Symbol]) -> tuple[str, Symbol]:
    """Return (name, symbol) of a JSON node whose inputs are in `nodes`. Raises GraphError if it is invalid."""
    kind = entry.get("node") if isinstance(entry, dict) else None
    if not isinstance(kind, str) or kind not in KEYS:
        raise GraphError(f"A node is of kind {kind!r}; the kinds are {list(KEYS)}.")
    what = f"The node {entry.get('name')!r}"
    _check_keys(what, entry, KEYS[kind], OPTIONAL)
    if not isinstance(entry["name"], str):
        raise GraphError(f"{what} has a name that is no string.")
    readers: dict[str, Callable[[dict, str, dict[str, Symbol]], Symbol]]
    readers = {"variable": _variable, "constant": _constant, "operator": _operator}
    return entry["name"], readers[kind](entry, what, nodes)


def _given_name(entry: dict) -> str | None:
    """Return the name of a JSON node that the user named; None for an automatic name."""
    return entry["name"] if entry.get("named", False) else None


def _variable(entry: dict, what: str, nodes: dict[str, Symbol]) -> Symbol:
    """Return the variable of the JSON node `entry`. Raises GraphError, beginning with `what`, for invalid attributes.

    `nodes` is unused.
    """
    attributes = _object(entry.get("attributes", {}), f"{what}: attributes")
    known = ("format", "shape", "dtype", "init", "rate_multiplier", "decay_multiplier")
    _check_keys(f"{what}: attributes", attributes, known, known)
    read = {key: decode(value, f"{what}: {key}") for key, value in attributes.items()}
    if not isinstance(read.get("format", ""), str):
        raise GraphError(f"{what} has the format {read['format']!r:.80}; a name is expected.")
    if read.get("dtype") is not None:
        _dtype(read["dtype"], what)
    return variable(entry["name"], **read)


def _dtype(name: Any, what: str) -> np.dtype:
    """Return the dtype called `name`. Raises GraphError, beginning with `what`, for an unknown one."""
    known = [dtype.name for dtype in formats.VALUES]
    if not isinstance(name, str) or name not in known:
        raise GraphError(f"{what} has the dtype {name!r:.80}; the types are {known}.")
    return np.dtype(name)


def _operator(entry: dict, what: str, nodes: dict[str, Symbol]) -> Symbol:
    """Return the operator node of a JSON node, whose inputs are in `nodes`. Raises GraphError or OpError if invalid."""
    op = ops.get(entry["op"]) if isinstance(entry["op"], str) else None
    if op is None:
        raise GraphError(f"{what}: op is {entry['op']!r}; a name is expected.")
    inputs = tuple(_look_up(name, nodes, what) for name in _list(entry["inputs"], f"{what}: inputs"))
    settings = {key: decode(value, what) for key, value in _object(entry["params"], f"{what}: params").items()}
    op.check_count(len(inputs))
    params = {key: canonical(value, what) for key, value in op.resolve(settings).items()}
    attributes = _object(entry.get("attributes", {}), f"{what}: attributes")
    decoded = {key: decode(value, what) for key, value in attributes.items()}
    return Symbol(_given_name(entry), op, inputs, params, decoded)


def decode(value: Any, what: str) -> Any:
    """Return a value read from JSON, the inverse of `writing.coded`: lists become tuples. Raises GraphError."""
    if isinstance(value, list):
        return tuple(decode(entry, what) for entry in value)
    if isinstance(value, dict):
        if set(value) != {"number"} or value["number"] not in ["nan", "inf", "-inf"]:
            raise GraphError(f"{what} has {value!r}; allowed are numbers, strings, null and lists.")
        return float(value["number"])
    return value


def _constant(entry: dict, what: str, nodes: dict[str, Symbol]) -> Symbol:
    """Return the constant of the JSON node `entry`. Raises GraphError, beginning with `what`, for an invalid array.

    `nodes` is unused.
    """
    value = _object(entry["value"], f"{what}: value")
    format = value.get("format")
    if not isinstance(format, str) or format not in PARTS:
        raise GraphError(f"{what} has the format {format!r}; the formats are {list(PARTS)}.")
    _check_keys(f"{what}: value", value, ("format", "shape", "dtype", *PARTS[format]), ())
    try:
        array = _array(format, value, what)
        formats.validate(array)
    except (TypeError, ValueError, OverflowError) as error:
        raise GraphError(f"{what}: {error}") from error
    return constant(array, _given_name(entry))


def _array(format: str, value: dict, what: str) -> Any:
    """Return the array of a constant in `format` from its JSON lists. Raises GraphError or ValueError."""
    shape = tuple(_whole(value["shape"], f"{what}: shape").tolist())
    if min(shape, default=0) < 0:
        raise GraphError(f"{what} has the shape {shape}; lengths from 0 are expected.")
    data = np.array(_numbers(value["data"], f"{what}: data"), _dtype(value["dtype"], what))
    if format == "dense":
        return data.reshape(shape)
    index = {part: _whole(value[part], f"{what}: {part}") for part in PARTS[format][1:]}
    if format == "row_sparse":
        return formats.RowSparse(data.reshape(len(index["indices"]), *shape[1:]), index["indices"], shape)
    if format == "coo":
        return scipy.sparse.coo_array((data, (index["row"], index["col"])), shape=shape)
    build = scipy.sparse.csr_array if format == "csr" else scipy.sparse.csc_array
    return build((data, index["indices"], index["indptr"]), shape=shape)


def _numbers(values: Any, what: str) -> list[float]:
    """Return a JSON list of numbers, NaN and infinities decoded.

    Raises GraphError for strings, which NumPy would parse.
    """
    numbers = [decode(entry, what) for entry in _list(values, what)]
    for number in numbers:
        if not isinstance(number, int | float):
            raise GraphError(f"{what} has {number!r:.80}; numbers are expected.")
    return numbers


def _whole(values: Any, what: str) -> np.ndarray:
    """Return a JSON list of integers as int64 [n]. Raises GraphError for other values."""
    for number in _list(values, what):
        if not is_whole(number, -(2**63), 2**63 - 1):
            raise GraphError(f"{what} has {number!r:.80}; whole numbers are expected.")
    return np.array(values, np.int64)


group = Group

__all__ = [
    "Explanation",
    "Facts",
    "Graph",
    "GraphError",
    "Group",
    "Inference",
    "Symbol",
    "constant",
    "from_json",
    "group",
    "scope",
    "variable",
]
