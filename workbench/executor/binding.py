"""Arguments of bind, checked and completed: arrays that fit declarations, requests, and the graph with gradients."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from workbench import autodiff, formats, ops
from workbench.executor import fusion
from workbench.executor.errors import BindError
from workbench.executor.program import Training
from workbench.graph import Facts, Graph, Group, Inference, Symbol, variable

REQUESTS = ("write", "add", "null")


def complete(
    graph: Graph, args: Mapping[str, Any], given: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """`given` (shapes, dtypes, formats by name) with what the arrays of `args` say where nothing else does."""
    variables = graph.variables()
    if unknown := sorted(set(args) - set(variables)):
        raise BindError(f"args has {', '.join(unknown)}; the graph's arguments are {list(variables)}.")
    known = {key: dict(values or {}) for key, values in given.items()}
    for name, value in args.items():
        _, array = formats.enter(value)
        known["shapes"].setdefault(name, array.shape)
        if variables[name].attributes["dtype"] is None:
            known["dtypes"].setdefault(name, array.dtype)
    return known


def accepted(facts: Facts, value: Any, convert: bool, resizable: bool = False) -> Any:
    """`value` as the argument's array: of its format and dtype, converted only where that is asked for (`BindError`).

    The number of rows is free, other lengths are the argument's, but of a `resizable` one.
    """
    format, array = formats.enter(value)
    if array.ndim != len(facts.shape) or not (resizable or array.shape[1:] == facts.shape[1:]):
        raise BindError(
            f"{facts.name} has the shape {facts.shape}; {array.shape} came. Only the number of rows may change; bind "
            "anew for another shape."
        )
    if format.name == facts.format and array.dtype == facts.dtype:
        return array
    if not convert:
        raise BindError(
            f"{facts.name} is {facts.format} {facts.dtype}; {format.name} {array.dtype} came. Convert it with "
            f"formats.to_format and formats.astype, declare it so, or bind with convert=True, which converts it."
        )
    return formats.astype(formats.to_format(array, facts.format), facts.dtype, copy=False)


def resizable_of(named: Collection[str], inference: Inference) -> frozenset[str]:
    """Arguments all of whose lengths may change; `BindError` for a name that there is not."""
    if unknown := sorted(set(named) - set(inference.arguments)):
        raise BindError(f"resizable has {', '.join(unknown)}; the arguments are {', '.join(inference.arguments)}.")
    return frozenset(named)


def requests_of(grad_req: str | Mapping[str, str], inference: Inference) -> tuple[dict[str, str], bool]:
    """(request by name of the arguments that get a gradient, whether each was named).

    One word is for all arguments of a float type; of these, those that can have no gradient are left out later.
    """
    arguments = inference.arguments
    if not isinstance(grad_req, str | Mapping):
        raise BindError(f"grad_req is {grad_req!r}; a word of {REQUESTS}, or one by argument, is expected.")
    named = isinstance(grad_req, Mapping)
    requests = dict(grad_req) if named else dict.fromkeys(arguments, grad_req)
    if unknown := sorted(set(requests) - set(arguments)):
        raise BindError(f"grad_req has {', '.join(unknown)}; the arguments are {list(arguments)}.")
    for name, request in requests.items():
        if request not in REQUESTS:
            raise BindError(f"grad_req of {name} is {request!r}; it is one of {', '.join(REQUESTS)}.")
        if named and request != "null" and arguments[name].dtype.kind != "f":
            raise BindError(f"{name} is {arguments[name].dtype}; only float arguments have gradients.")
    active = {name: request for name, request in requests.items() if request != "null"}
    return {name: r for name, r in active.items() if arguments[name].dtype.kind == "f"}, named


def heads_of(graph: Graph) -> list[Symbol]:
    """Variables that stand for the head gradient of every output."""
    names = graph.outputs()
    counts = [names[:place].count(name) for place, name in enumerate(names)]
    return [variable(f"{name}:head{count or ''}") for name, count in zip(names, counts, strict=True)]


def leaf_facts(
    training_leaves: Mapping[str, Facts], known: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """`known` with the shapes, dtypes and formats of heads and slopes, which are like the nodes that they belong to."""
    shapes, dtypes, kinds = (dict(known[key]) for key in ("shapes", "dtypes", "formats"))
    for name, facts in training_leaves.items():
        shapes[name], dtypes[name], kinds[name] = facts.shape, facts.dtype, facts.format
    return {"shapes": shapes, "dtypes": dtypes, "formats": kinds}


def differentiate(
    graph: Graph,
    inference: Inference,
    known: Mapping[str, Mapping[str, Any]],
    grad_req: str | Mapping[str, str],
    grad_formats: Mapping[str, str],
) -> tuple[Training, dict[str, Symbol]]:
    """(the graph with its gradients in the formats wanted, leaves that the executor fills: the node each is like)."""
    requests, named = requests_of(grad_req, inference)
    heads = heads_of(graph)
    slopes = fusion.slopes_of(graph, inference.facts) if requests else {}
    storage = {name: facts.format for name, facts in inference.arguments.items()}
    gradients, without = autodiff.walk(graph, list(requests), heads, slopes, storage) if requests else ({}, {})
    if named and without:
        name, reason = next(iter(without.items()))
        raise BindError(f"grad_req asks for a gradient of {name}, but there is none: {reason}")
    requests = {name: request for name, request in requests.items() if name in gradients}
    fusion.check_wanted(grad_formats, list(requests))
    alike = dict(zip([head.given for head in heads], graph.heads, strict=True))
    alike |= {slope.given: loss.inputs[0] for loss, slope in slopes.items()}
    everything = leaf_facts({name: inference.facts[node] for name, node in alike.items()}, known)
    for name, format in grad_formats.items():
        gradients[name] = fusion.in_format(name, gradients[name], format, everything)
    fused = frozenset(gradients[name] for name, format in grad_formats.items() if format == fusion.FUSED)
    for name, request in requests.items():
        if gradients[name] in fused and request == "add":
            raise BindError(f"The gradient of {name} is fused, so never held, and cannot be added to. Request write.")
    return _training(graph, gradients, requests, slopes, fused), alike


def _training(graph: Graph, gradients, requests, slopes, fused) -> Training:
    whole = Group([*graph.heads, *gradients.values()])
    nodes, names = whole.nodes(), whole.names()
    keys = [*nodes, *(("plan", node) for node in nodes), *(("gradient", name) for name in gradients)]
    slots = {key: place for place, key in enumerate(keys)}
    slopes = {loss: slope for loss, slope in slopes.items() if slope in slots}
    return Training(whole, graph.heads, gradients, requests, slopes, fused, tuple(nodes), names, slots)


def refuse_densifying(inference: Inference) -> None:
    """Refuse, before it runs, what `ops.settings` forbid to make dense (`DensifyError`)."""
    with ops.settings() as chosen:
        most = 0 if chosen.strict else chosen.fallback_budget_bytes
    for facts in inference.densified:
        if chosen.strict or (most is not None and facts.bytes_densified > most):
            forbids = "strict refuses it" if chosen.strict else f"fallback_budget_bytes is {most:,}"
            raise ops.DensifyError(
                f"{facts.name} has no rule for its inputs' formats and would make {facts.bytes_densified:,} bytes "
                f"dense; {forbids}. Convert with to_format where it is meant; explain() shows the graph."
            )


def zeros(facts: Facts) -> Any:
    """An array of zeros as the facts say."""
    return formats.zeros(facts.shape, facts.format, np.dtype(facts.dtype))
