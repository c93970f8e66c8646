"""Validation and completion of the arguments of `bind`, and the graph with its gradients."""

import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench import autodiff, formats, ops
from workbench.autodiff import AutodiffError
from workbench.executor.program import BindError, Training, identity, scale_in_place
from workbench.graph import Facts, Graph, GraphError, Group, Inference, Symbol, variable
from workbench.graph.explanation import Explanation
from workbench.graph.inference import Declared, infer, infer_result

# Parts of a graph that bind computes together: losses with their slopes, gradients in the format wanted.


FUSED = "fused"


def slopes_of(graph: Graph, facts: Mapping[Symbol, Facts]) -> dict[Symbol, Symbol]:
    """Return {loss node: new variable for the gradient of its scores} for losses that compute both in one call.

    These are losses with a joint function whose inputs are all dense.
    """
    slopes = {}
    for node in graph.nodes():
        joint = node.op is not None and node.op.joint is not None
        if joint and all(facts[entry].format == "dense" for entry in node.inputs):
            scores = facts[node.inputs[0]]
            slopes[node] = variable(
                f"{facts[node].name}:grad_scores", shape=_free(scores.complete.shape), dtype=scores.dtype
            )
    return slopes


def _free(shape: tuple[int, ...]) -> tuple[None, ...]:
    """Return (None,) * rank: a shape whose lengths are given for every batch."""
    return (None,) * len(shape)


def check_wanted(wanted: Mapping[str, str], names: list[str]) -> None:
    """Raise GraphError for unknown formats in `wanted` {argument: format}, or arguments not in `names`."""
    if unknown := sorted(set(wanted) - set(names)):
        raise GraphError(f"grad_formats has {', '.join(unknown)}; the arguments with a gradient are {names}.")
    for name, format in wanted.items():
        if format not in (*formats.names(), FUSED):
            known = ", ".join((*formats.names(), FUSED))
            raise GraphError(f"grad_formats has {format!r} for {name}; there is: {known}.")


def in_format(name: str, gradient: Symbol, format: str, known: Mapping[Symbol, Facts]) -> Symbol:
    """Return the gradient of argument `name` as a node in `format`: by its operator if that can, else converted.

    `known` are the facts of its inputs and, unless the format is "fused", its own. Raises AutodiffError if a gradient
    cannot be "fused".
    """
    if format == FUSED:
        return _factored(name, gradient, known)
    if known[gradient].format == format:
        return gradient
    if (candidate := _with_format(gradient, format)) is not None:
        try:
            facts = infer_result(candidate, known)
        except GraphError:  # the operator has no such result
            facts = None
        if facts is not None and facts.format == format and not facts.densifies:
            return candidate
    return ops.get("to_format")(gradient, format=format)


def _with_format(node: Symbol, format: str) -> Symbol | None:
    """Return a copy of the node that gives its result in `format`; None if its operator has no such parameter.

    That parameter is `result`, or `sparse_grad`, which is set to whether `format` is "row_sparse".
    """
    choice: dict[str, Any]
    if "result" in node.params:
        choice = {"result": format}
    elif "sparse_grad" in node.params:
        choice = {"sparse_grad": format == "row_sparse"}
    else:
        return None
    return Symbol(node.given, node.op, node.inputs, {**node.params, **choice}, node.attributes)


def _facts(nodes: list[Symbol], known: Declared) -> Mapping[Symbol, Facts]:
    """Return the inferred facts of these nodes and of all that they depend on, from declarations of the variables.

    Empty without nodes. Raises GraphError.
    """
    if not nodes:
        return {}
    graph = Group(nodes)
    here = set(graph.arguments())
    declared: Declared = {
        "shapes": {name: shape for name, shape in known["shapes"].items() if name in here},
        "dtypes": {name: dtype for name, dtype in known["dtypes"].items() if name in here},
        "formats": {name: format for name, format in known["formats"].items() if name in here},
    }
    return infer(graph, **declared).facts


def _factored(name: str, gradient: Symbol, known: Mapping[Symbol, Facts]) -> Symbol:
    """Return the gradient of `name` as a product X.T @ g that can be kept as its factors.

    AutodiffError if it is none.
    """
    params = gradient.params
    if gradient.kind != "dot" or not params["transpose_a"] or params["transpose_b"]:
        what = "a sum of several" if gradient.kind in ("add", "add_n") else f"made by {gradient.kind}"
        raise AutodiffError(
            f"The gradient of {name} cannot be fused: it is {what}. Only X.T @ grad_scores can be left as factors. "
            "Ask for row_sparse or dense."
        )
    product = _with_format(gradient, "row_sparse")
    if product is None:
        raise AutodiffError(f"The gradient of {name} cannot be fused: {gradient.kind} has no row_sparse result.")
    rule = infer_result(product, known).chosen_rule
    if not rule.plan:
        raise AutodiffError(
            f"The gradient of {name} cannot be fused: {rule.kernel} reads no batch plan. X in csr or coo with a "
            "dense gradient of the scores has one; else ask for row_sparse or dense."
        )
    return product


REQUESTS = ("write", "add", "null")


def complete_facts(graph: Graph, args: Mapping[str, Any], given: Mapping[str, Mapping[str, Any]]) -> Declared:
    """Return {"shapes", "dtypes", "formats"} by argument: `given`, completed from the arrays in `args`.

    Raises BindError for unknown arguments and FormatError for invalid arrays.
    """
    variables = graph.variables()
    if unknown := sorted(set(args) - set(variables)):
        raise BindError(f"args has {', '.join(unknown)}; the graph's arguments are {list(variables)}.")
    shapes, dtypes = dict(given["shapes"] or {}), dict(given["dtypes"] or {})
    for name, value in args.items():
        _, array = formats.validate(value)
        shapes.setdefault(name, array.shape)
        if variables[name].attributes["dtype"] is None:
            dtypes.setdefault(name, array.dtype)
    return {"shapes": shapes, "dtypes": dtypes, "formats": dict(given["formats"] or {})}


def coerce_argument(facts: Facts, value: Any, convert: bool, resizable: bool = False, is_sound: bool = False) -> Any:
    """Return `value` as the validated array of the argument described by `facts`; not copied if it fits.

    With `convert` its format and dtype are converted. The number of rows may differ; other lengths must match unless
    `resizable`. The contents are not validated if it `is_sound`. Raises BindError or FormatError.
    """
    (format, array), expected = (formats.coerce if is_sound else formats.validate)(value), facts.complete
    if array.ndim != len(expected.shape) or not (resizable or array.shape[1:] == expected.shape[1:]):
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
    return formats.astype(formats.to_format(array, expected.format), expected.dtype, copy=False)


def resizable_of(named: Collection[str], inference: Inference) -> frozenset[str]:
    """Return the argument names `named` as a frozenset. Raises BindError for a name that is no argument."""
    if unknown := sorted(set(named) - set(inference.arguments)):
        raise BindError(f"resizable has {', '.join(unknown)}; the arguments are {', '.join(inference.arguments)}.")
    return frozenset(named)


def requests_of(grad_req: str | Mapping[str, str], inference: Inference) -> tuple[dict[str, str], bool]:
    """Return the request ("write" or "add") of each argument with a gradient, and whether requests were given by name.

    One word applies to all float arguments. Raises BindError for unknown names or requests.
    """
    arguments = inference.arguments
    if not isinstance(grad_req, str | Mapping):
        raise BindError(f"grad_req is {grad_req!r}; a word of {REQUESTS}, or one by argument, is expected.")
    named = isinstance(grad_req, Mapping)
    requests = dict(grad_req) if isinstance(grad_req, Mapping) else dict.fromkeys(arguments, grad_req)
    if unknown := sorted(set(requests) - set(arguments)):
        raise BindError(f"grad_req has {', '.join(unknown)}; the arguments are {list(arguments)}.")
    for name, request in requests.items():
        if request not in REQUESTS:
            raise BindError(f"grad_req of {name} is {request!r}; it is one of {', '.join(REQUESTS)}.")
        if named and request != "null" and arguments[name].complete.dtype.kind != "f":
            raise BindError(f"{name} is {arguments[name].dtype}; only float arguments have gradients.")
    active = {name: request for name, request in requests.items() if request != "null"}
    return {name: r for name, r in active.items() if arguments[name].complete.dtype.kind == "f"}, named


def heads_of(graph: Graph) -> list[Symbol]:
    """Return a new variable for the head gradient of every output, called "<output>:head"."""
    names = graph.outputs()
    counts = [names[:place].count(name) for place, name in enumerate(names)]
    return [variable(f"{name}:head{count or ''}") for name, count in zip(names, counts, strict=True)]


def leaf_facts(training_leaves: Mapping[str, Facts], known: Declared) -> Declared:
    """Return the declarations `known` extended by the complete facts of the leaves that the executor fills.

    A new dict.
    """
    shapes, dtypes, kinds = dict(known["shapes"]), dict(known["dtypes"]), dict(known["formats"])
    for name, facts in training_leaves.items():
        kinds[name], shapes[name], dtypes[name] = facts.complete
    return {"shapes": shapes, "dtypes": dtypes, "formats": kinds}


def differentiate(
    graph: Graph,
    inference: Inference,
    known: Declared,
    grad_req: str | Mapping[str, str],
    grad_formats: Mapping[str, str],
) -> tuple[Training, dict[str, Symbol]]:
    """Return (the graph with its gradients, {name of a leaf that the executor fills: node whose shape it has}).

    `grad_req` says for which arguments, as in `bind`; gradients are in the formats `grad_formats`; leaves are head
    gradients and gradients of scores of losses. `inference` are the facts of the graph, `known` its declarations.
    Raises BindError or AutodiffError.
    """
    requests, named = requests_of(grad_req, inference)
    heads = heads_of(graph)
    slopes = slopes_of(graph, inference.facts) if requests else {}
    storage = {name: facts.complete.format for name, facts in inference.arguments.items()}
    gradients, without = autodiff.walk(graph, list(requests), heads, slopes, storage) if requests else ({}, {})
    if named and without:
        name, reason = next(iter(without.items()))
        raise BindError(f"grad_req asks for a gradient of {name}, but there is none: {reason}")
    requests = {name: request for name, request in requests.items() if name in gradients}
    check_wanted(grad_formats, list(requests))
    alike = dict(zip([head.name for head in heads], graph.heads, strict=True))
    alike |= {slope.name: loss.inputs[0] for loss, slope in slopes.items()}
    everything = leaf_facts({name: inference.facts[node] for name, node in alike.items()}, known)
    heads_asked = [
        node
        for name, format in grad_formats.items()
        for node in (gradients[name].inputs if format == FUSED else (gradients[name],))
    ]
    facts = _facts(heads_asked, everything)
    for name, format in grad_formats.items():
        gradients[name] = in_format(name, gradients[name], format, facts)
    fused = frozenset(gradients[name] for name, format in grad_formats.items() if format == FUSED)
    for name, request in requests.items():
        if gradients[name] in fused and request == "add":
            raise BindError(f"The gradient of {name} is fused, so never held, and cannot be added to. Request write.")
    return _training(graph, gradients, requests, slopes, fused), alike


def _training(
    graph: Graph,
    gradients: Mapping[str, Symbol],
    requests: Mapping[str, str],
    slopes: Mapping[Symbol, Symbol],
    fused: frozenset[Symbol],
) -> Training:
    """Return the record of outputs, gradients and slots by node, ("plan", node) and ("gradient", name).

    `gradients` are {argument: node}, `requests` "write" or "add" by argument, `slopes` as of `slopes_of`, `fused` the
    gradients that stay factored.
    """
    whole = Group([*graph.heads, *gradients.values()])
    nodes, names = whole.nodes(), whole.names()
    keys = [*nodes, *(("plan", node) for node in nodes), *(("gradient", name) for name in gradients)]
    slots = {key: place for place, key in enumerate(keys)}
    slopes = {loss: slope for loss, slope in slopes.items() if slope in slots}
    return Training(whole, graph.heads, gradients, requests, slopes, fused, tuple(nodes), names, slots)


def require_no_densifying(inference: Inference) -> None:
    """Raise DensifyError if the graph densifies arrays that `ops.settings` forbids, by `strict` or by budget."""
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
    """Return an array of zeros with the shape, dtype and format of complete facts."""
    format, shape, dtype = facts.complete
    return formats.zeros(shape, format, dtype)


# Head gradients as passed by the caller.


def list_heads(heads: Any, names: list[str]) -> list[Any]:
    """Return one head or None for each output name. Raises BindError if the counts differ."""
    if heads is None:
        return [None] * len(names)
    entries = list(heads) if isinstance(heads, list | tuple) else [heads]
    if len(entries) != len(names):
        raise BindError(f"{len(entries)} heads came for {len(names)} outputs, {names}; give one for each.")
    return entries


def head_array(name: str, facts: Facts, value: Any) -> Any:
    """Return the head `value` of output `name` in its format, dtype and shape; None becomes ones if it has one element.

    A Python number is accepted for an output of one element. Raises BindError else.
    """
    expected = facts.complete
    if value is None:
        if any(length != 1 for length in expected.shape):
            raise BindError(
                f"The output {name} has the shape {facts.shape}, so backward needs the gradient that comes to it: "
                "backward(heads=[...]), an array of that shape for each output. Losses need none; neither do "
                f"outputs that are only read: ops.stop_gradient({name})."
            )
        value = 1
    if isinstance(value, int | float | np.number):
        value = np.full(expected.shape if math.prod(expected.shape) == 1 else (), value, expected.dtype)
    _, value = formats.validate(value)
    if value.shape != facts.shape:
        raise BindError(f"The head of {name} has the shape {value.shape}; the output's is {facts.shape}.")
    return formats.astype(formats.to_format(value, expected.format), expected.dtype, copy=False)


# Notes on what an executor does beyond the rules of the operators, in words, for `explain`.


if TYPE_CHECKING:
    from workbench.executor.run import Executor


def explain(executor: "Executor") -> Explanation:
    """Explain the graph with its gradients, for the sizes of the last call and densities of the held arrays."""
    leaves = {facts.name: facts for facts in executor.inference if facts.name in executor.alike}
    declared, shapes = executor.declared, dict(zip(executor.slots, executor.held_shapes, strict=True))
    current: Declared = {"shapes": shapes, "dtypes": declared["dtypes"], "formats": declared["formats"]}
    known = leaf_facts(leaves, current)
    inference = infer(executor.training.graph, **known, densities=_densities(executor))
    notes = _notes(executor)
    slopes = {slope.name: executor.training.names[loss] for loss, slope in executor.training.slopes.items()}
    made_by = {facts.name: slopes[facts.name] for facts in inference if facts.name in slopes}
    kinds = dict.fromkeys(_heads(executor), "head gradient") | dict.fromkeys(made_by, "gradient of the scores")
    return Explanation(inference, notes | dict.fromkeys(made_by, "written by the loss"), made_by, kinds)


def _heads(executor: "Executor") -> list[str]:
    """Return the names of the variables for head gradients, in the order of the outputs."""
    return [*executor.alike][: len(executor.output_names)]


def _densities(executor: "Executor") -> dict[str, float]:
    """Return {name: density} of each sparse argument whose array is not released."""
    gone = executor.released.names.values()
    kept = {name: array for name, array in executor.args.items() if name not in gone}
    sparse = {name: array for name, array in kept.items() if not isinstance(array, np.ndarray)}
    return {name: array.nnz / max(math.prod(array.shape), 1) for name, array in sparse.items()}


def _notes(executor: "Executor") -> dict[str, str]:
    """Return remarks by node name on what the executor does beyond the rules, such as "handed on, no copy"."""
    program = executor.program
    notes = dict.fromkeys(_heads(executor), "from outside, or ones")
    notes |= {step.name: "with grad_scores, one pass" for step in program.training if step.part == "loss"}
    for step in (*program.forward, *program.backward):
        if step.call is scale_in_place:
            notes[step.name] = "in place of grad_scores"
        elif step.call is identity:
            notes[step.name] = "handed on, no copy"
        elif getattr(step.call, "__name__", "") == "factors":
            notes[step.name] = "left as factors, for the update"
    return notes
