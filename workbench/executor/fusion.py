"""Parts of a graph that bind computes together: losses with their slopes, gradients in the format wanted."""

from collections.abc import Mapping

from workbench import formats, ops
from workbench.autodiff import AutodiffError
from workbench.graph import Facts, Graph, GraphError, Symbol, variable
from workbench.graph.inference import infer

FUSED = "fused"


def slopes_of(graph: Graph, facts: Mapping[Symbol, Facts]) -> dict[Symbol, Symbol]:
    """Slopes of losses that can write them along with their output, on dense inputs: symbols by loss."""
    slopes = {}
    for node in graph.nodes():
        joint = node.op is not None and node.op.joint is not None
        if joint and all(facts[entry].format == "dense" for entry in node.inputs):
            scores = facts[node.inputs[0]]
            slopes[node] = variable(f"{facts[node].name}:slope", shape=_free(scores.shape), dtype=scores.dtype)
    return slopes


def _free(shape: tuple[int, ...]) -> tuple[None, ...]:
    """A shape of the same rank that says nothing: it is given anew for every batch."""
    return (None,) * len(shape)


def check_wanted(wanted: Mapping[str, str], names: list[str]) -> None:
    """Refuse formats that there are not, and names that get no gradient."""
    if unknown := sorted(set(wanted) - set(names)):
        raise GraphError(f"grad_formats has {', '.join(unknown)}; the arguments with a gradient are {names}.")
    for name, format in wanted.items():
        if format not in (*formats.names(), FUSED):
            known = ", ".join((*formats.names(), FUSED))
            raise GraphError(f"grad_formats has {format!r} for {name}; there is: {known}.")


def in_format(name: str, gradient: Symbol, format: str, known: Mapping[str, Mapping]) -> Symbol:
    """The gradient in that format: asked of the operator that makes it where that has a choice, else converted.

    `known` are the shapes, dtypes and formats for the inference.
    """
    if format == FUSED:
        return _unsummed(name, gradient, known)
    if _facts(gradient, known).format == format:
        return gradient
    if (candidate := _asked(gradient, format)) is not None:
        try:
            facts = _facts(candidate, known)
        except GraphError:  # the operator has no such result
            facts = None
        if facts is not None and facts.format == format and not facts.densifies:
            return candidate
    return ops.get("to_format")(gradient, format=format)


def _asked(node: Symbol, format: str) -> Symbol | None:
    """A node like it that is asked for that format, where its operator has a parameter for it."""
    if "result" in node.params:
        choice = {"result": format}
    elif "sparse_grad" in node.params:
        choice = {"sparse_grad": format == "row_sparse"}
    else:
        return None
    return Symbol(node.given, node.op, node.inputs, {**node.params, **choice}, node.attributes)


def _facts(node: Symbol, known: Mapping[str, Mapping]) -> Facts:
    here = set(node.arguments())
    declared = {key: {name: value for name, value in values.items() if name in here} for key, values in known.items()}
    return infer(node, **declared)[node]


def _unsummed(name: str, gradient: Symbol, known: Mapping[str, Mapping]) -> Symbol:
    """The product that can be left as its factors, or why not."""
    params = gradient.params
    if gradient.kind != "dot" or not params["transpose_a"] or params["transpose_b"]:
        what = "a sum of several" if gradient.kind in ("add", "add_n") else f"made by {gradient.kind}"
        raise AutodiffError(
            f"The gradient of {name} cannot be fused: it is {what}. Only a product X.T @ slope can be left unsummed. "
            "Ask for row_sparse or dense."
        )
    product = _asked(gradient, "row_sparse")
    facts = _facts(product, known)
    if not facts.rule.plan:
        raise AutodiffError(
            f"The gradient of {name} cannot be fused: {facts.rule.kernel} reads no batch plan. X in csr or coo with a "
            "dense slope has one; else ask for row_sparse or dense."
        )
    return product
