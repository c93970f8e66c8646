"""Gradients of a graph as a graph: reverse traversal from the outputs, applying each operator's gradient rule.

**Which positions a gradient stores** follows from formats and stored positions, never from values:

- with respect to a dense array: every position;
- with respect to csr, csc and coo: exactly the positions that the array stores, once each, in its format. The others
are
  no parameters: they have no gradient, and are zero if the gradient is made dense;
- with respect to row_sparse: every position of the whole array, including rows that it does not store. The gradient is
  row_sparse if the operators show that all other rows are zero whatever the values (of a product: rows that the other
  operand reads; of `square`: stored rows), else dense.

At these positions it is the derivative of the operators' dense meaning. Values that cancel to zero stay stored, in
results too. `to_format` from dense to sparse stores nonzero values; the gradient through it has every position of the
array all the same.

>>> from workbench import autodiff, graph
>>> x, w = graph.variable("x", shape=(3, 2)), graph.variable("w", shape=(2, 1))
>>> head = graph.variable("head", shape=(3, 1))
>>> slopes = autodiff.gradients(x @ w, ["w"], heads=[head])
>>> slopes["w"].kind, slopes["w"].infer()["dot0"].shape
('dot', (2, 1))
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from workbench import ops
from workbench.graph import Graph, GraphError, Symbol, scope, variable
from workbench.ops.places import at_places
from workbench.ops.stored import MATRICES

FLAT = ("stop_gradient",)
"""Operators whose gradient is zero on purpose: what they cut off is not missing."""


class AutodiffError(GraphError):
    """A gradient does not exist; the message names the node and what to do."""


def gradients(
    outputs: Graph, wrt: Sequence[str | Symbol], heads: Sequence[Symbol | None] | None = None
) -> dict[str, Symbol]:
    """Return the gradients of the sum of `outputs * heads` with respect to variables, as symbols.

    Parameters
    ----------
    outputs : Graph
        The graph.
    wrt : sequence of str or Symbol
        Variables.
    heads : sequence of Symbol or None, optional
        Head gradient of each output, of its shape and format. None stands for ones and is allowed for losses, outputs
        known
        to have one element, and output layers, which ignore it.

    Returns
    -------
    dict of str to Symbol
        Gradients by variable; zeros for a variable that reaches the outputs through `stop_gradient` only.

    Raises
    ------
    AutodiffError
        If an operator has no gradient or a head is missing.

    Examples
    --------
    >>> x = variable("x", shape=())
    >>> gradients(x * x, ["x"])["x"].arguments()
    ['x']
    """
    symbols = outputs.heads
    entries = [None] * len(symbols) if heads is None else list(heads)
    if len(entries) != len(symbols):
        raise AutodiffError(f"There are {len(symbols)} outputs, {outputs.outputs()}; {len(entries)} heads came.")
    by_name, without = walk(outputs, wrt, [_head(*pair) for pair in zip(symbols, entries, strict=True)])
    for name, reason in without.items():
        raise AutodiffError(f"There is no gradient towards {name}: {reason}")
    _refuse_missing_heads(outputs, by_name)
    return by_name


def _head(output: Symbol, head: Symbol | None) -> Symbol:
    """Return the head of an output: the given one, ones if that is allowed, else a placeholder variable."""
    if head is not None:
        return head
    if output.op is not None and (output.op.joint is not None or _holds_one(output)):
        return ops.get("ones_like")(output)
    return variable(MISSING.format(output.name))


MISSING = "(head of {})"


def _holds_one(output: Symbol) -> bool:
    """Return whether the output's shape is known and has one element."""
    facts = output.infer(partial=True)[output]
    return facts.known and all(length == 1 for length in facts.complete.shape)


def _refuse_missing_heads(outputs: Graph, gradients: Mapping[str, Symbol]) -> None:
    """Raise AutodiffError if a gradient depends on the placeholder of a missing head."""
    missing = {MISSING.format(head.name): head.name for head in outputs.heads}
    for gradient in gradients.values():
        for name in gradient.arguments():
            if name in missing:
                raise AutodiffError(
                    f"The output {missing[name]} is no loss and not known to hold one number, so it needs the "
                    "gradient that comes from outside: give heads=[...], a symbol for each output."
                )


@dataclass
class Walk:
    """State of the reverse traversal: the gradients that each node was given, and why some have none."""

    wanted: set[Symbol]
    """Nodes between the variables that are asked for and the outputs."""
    slopes: Mapping[Symbol, Symbol]
    patterned: set[Symbol]
    """Variables in csr, csc and coo: their gradients have their places."""
    parts: dict[Symbol, list[Symbol]] = field(default_factory=dict)
    blocked: dict[Symbol, str] = field(default_factory=dict)

    def total(self, node: Symbol) -> Symbol | None:
        """Return the symbol of the sum of the gradients collected for a node so far; None if there are none.

        Of a variable in csr, csc or coo the gradients are first restricted to its stored positions.
        """
        parts = self.parts.get(node, [])
        if node in self.patterned:
            parts = [at_places(part, node) for part in parts]
        if len(parts) < 2:
            return parts[0] if parts else None
        return ops.get("add")(*parts) if len(parts) == 2 else ops.get("add_n")(*parts)

    def block(self, nodes: Sequence[Symbol], reason: str) -> None:
        """Record that the wanted nodes among `nodes` have no gradient, with the reason."""
        for node in nodes:
            if node in self.wanted:
                self.blocked.setdefault(node, reason)

    def pass_on(self, node: Symbol, name: str) -> None:
        """Add to every input of the node its gradient by the operator's rule; block inputs if there is none.

        `name` is the node's name, for messages.
        """
        head = self.total(node)
        if node in self.blocked:
            self.block(node.inputs, self.blocked[node])
        elif head is None:
            pass
        elif node.operator.gradient is None:
            advice = node.operator.no_gradient or "Cut it with stop_gradient."
            self.block(node.inputs, f"{name} on the way is {node.operator.name}, which has none. {advice}")
        else:
            self._give(node, name, self._towards_inputs(node, head))

    def _towards_inputs(self, node: Symbol, head: Symbol) -> Sequence[Symbol | None]:
        """Return the gradient of each input of the node, given `head`, that of its result; None for an input without.

        AutodiffError if the operator has no gradient.
        """
        rule = node.operator.gradient
        if rule is None:
            raise AutodiffError(f"{node.operator.name} has no gradient.")
        if node not in self.slopes:
            return rule(head, node, node.inputs, node.params)
        first = ops.get("multiply")(self.slopes[node], head)
        if not any(entry in self.wanted for entry in node.inputs[1:]):
            return first, *(None for _ in node.inputs[1:])
        return first, *rule(head, node, node.inputs, node.params)[1:]

    def _give(self, node: Symbol, name: str, parts: Sequence[Symbol | None]) -> None:
        """Add `parts`, a gradient or None for each input of the node, to the gradients of these inputs.

        An input without one is blocked with a reason. `name` is the node's name, for messages.
        """
        op = node.operator
        for place, (entry, part) in enumerate(zip(node.inputs, parts, strict=True)):
            if entry not in self.wanted or not op.reads(place, len(node.inputs)):
                continue
            if part is not None:
                self.parts.setdefault(entry, []).append(part)
            elif op.name not in FLAT:
                advice = op.no_gradient or "Use stop_gradient."
                self.block([entry], f"{op.name} ({name}) has none towards its input {place}. {advice}")


def walk(
    outputs: Graph,
    wrt: Sequence[str | Symbol],
    heads: Sequence[Symbol],
    slopes: Mapping[Symbol, Symbol] | None = None,
    formats: Mapping[str, str] | None = None,
) -> tuple[dict[str, Symbol], dict[str, str]]:
    """Return (gradient symbol by variable name, reason by variable name for those without a gradient).

    `wrt` are the variables, `heads` the gradients of the graph's outputs. `slopes` maps a loss to the symbol of the
    gradient of its scores (for a head of 1) if that is computed with the loss. `formats` overrides the declared formats
    of variables.
    """
    nodes, names = outputs.nodes(), outputs.names()
    variables = _variables(outputs, wrt)
    storage = {name: node.attributes["format"] for name, node in variables.items()} | dict(formats or {})
    patterned = {node for name, node in variables.items() if storage[name] in MATRICES}
    state = Walk(_nodes_between(nodes, set(variables.values())), slopes or {}, patterned)
    for output, head in zip(outputs.heads, heads, strict=True):
        state.parts.setdefault(output, []).append(head)
    for node in reversed(nodes):
        if node in state.wanted and node.op is not None:
            with scope(backward_of=names[node]):
                state.pass_on(node, names[node])
    with scope(backward_of="sum"):
        for node in variables.values():
            if node not in state.parts:
                state.parts[node] = [ops.get("zeros_like")(node)]
        totals = {name: state.total(node) for name, node in variables.items() if node not in state.blocked}
        by_name = {name: total for name, total in totals.items() if total is not None}
    without = {name: state.blocked[node] for name, node in variables.items() if node in state.blocked}
    return by_name, without


def _variables(outputs: Graph, wrt: Sequence[str | Symbol]) -> dict[str, Symbol]:
    """Return {name: symbol} of the variables in `wrt` (names or symbols); AutodiffError if the graph lacks one."""
    known = outputs.variables()
    if isinstance(wrt, str | Symbol):
        raise AutodiffError(f"wrt is {wrt!r}; a list of variables or of their names is expected.")
    names = [entry.name if isinstance(entry, Symbol) else entry for entry in wrt]
    if unknown := [name for name in names if name not in known]:
        raise AutodiffError(f"The graph has no variable {', '.join(map(str, unknown))}; its variables are {[*known]}.")
    return {name: known[name] for name in names}


def _nodes_between(nodes: Sequence[Symbol], variables: set[Symbol]) -> set[Symbol]:
    """Return the nodes, out of `nodes` in topological order, that depend on one of the variables, these included."""
    between = set(variables)
    for node in nodes:
        if any(entry in between for entry in node.inputs):
            between.add(node)
    return between
