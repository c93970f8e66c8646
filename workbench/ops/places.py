"""Positions at which a gradient is computed: the stored positions of an array, or all. `workbench.autodiff` states the
rule.

>>> import numpy as np
>>> from workbench import ops
>>> x = ops.to_format(np.float32([[0, 1, 0], [2, 0, 3]]), format="csr")
>>> ops.at_places_of(np.float32([[1, 2, 3], [4, 5, 6]]), x).data.tolist()
[2.0, 4.0, 6.0]
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from workbench import formats, ops
from workbench.ops import fallback, stored
from workbench.ops.contract import ANY, Op, OpError, Rule, Shape, Symbolic, operator
from workbench.ops.like import put, shape_of_last, type_of_first
from workbench.ops.spreading import inner_spread, reduced, spread_view

ON_STORED = "numpy on the stored values"


def _shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the common shape of (x, like); OpError if they differ. `params` is unused."""
    if tuple(shapes[0]) != tuple(shapes[1]):
        raise OpError(
            f"An array of shape {tuple(shapes[0])} cannot be read at the places of one of {tuple(shapes[1])}."
        )
    return tuple(shapes[1])


def _itself(x, like, out=None, rows=False):
    """Return a copy of x: all its positions are kept; in `out` if given and dense. `like` and `rows` are unused."""
    return put(out, formats.copy(x) if out is None else x)


def _at_places(x, like, out=None, rows=False):
    """Return x at the stored positions of `like`, in the format of `like`; `out` and `rows` are unused."""
    like = stored.canonical(like)
    if not isinstance(x, np.ndarray) and x.format == like.format and stored.same_places(x, like):
        return formats.copy(x)
    return stored.with_any(like, x, lambda values, there: there)


Node = TypeVar("Node", bound=Symbolic)


def _by_rows(shapes: Sequence[Shape], params: Mapping[str, Any]) -> bool:
    """Return the parameter `rows`: whether whole rows are kept; `shapes` is unused."""
    return bool(params["rows"])


at_places_of: Op = operator(
    "at_places_of",
    _itself,
    _shape,
    "x at the places that a csr, csc or coo `like` stores, each once, in its format, and nothing elsewhere; with "
    "`rows` in the rows that a row_sparse one stores, too. Else every place is wanted: a copy of x.",
    rules=(
        *(Rule((ANY, form), form, _at_places, ON_STORED) for form in stored.MATRICES),
        Rule((ANY, "row_sparse"), "row_sparse", _at_places, ON_STORED, _by_rows, "rows"),
        *(Rule((form, ANY), form, _itself, "a copy") for form in ("dense", *stored.SPARSE)),
    ),
    dtype=type_of_first,
    gradient=lambda head, output, inputs, params: (at_places_of(head, inputs[1], **params), None),
    unread=(1, None),
    family="layout",
)


def _spread_at(head, whole, like, out=None, axis=None, keepdims=False, mean=False):
    """Return head broadcast over the reduced `axis` of `whole`, at the stored positions of the sparse `like`.

    `mean` divides by the count of elements. If `like` has another shape than `whole`, it is summed back first, which is
    reported as densification. `keepdims` and `out` are unused.
    """
    view = spread_view(head, whole, axis, mean)
    if view.shape != tuple(like.shape):
        fallback.report("spread_at", (like.format,), (like,))
        view = ops.sum_to_shape_of(view, like)
    return stored.with_any(like, view, lambda values, there: there)


def _spread_at_dense(head, whole, like, out=None, axis=None, keepdims=False, mean=False):
    """Return head broadcast over the reduced `axis` of `whole` and summed to the shape of `like`, dense.

    `mean` divides by the count of elements; written to `out` if given. `keepdims` is unused.
    """
    return put(out, ops.sum_to_shape_of(spread_view(head, whole, axis, mean).copy(), like))


spread_at = operator(
    "spread_at",
    _spread_at_dense,
    shape_of_last,
    "`spread` over the shape of `whole`, at the places that `like` stores and nowhere else: every element there "
    "gets its sum's gradient. Where `like` was broadcast to `whole`, what is spread is summed back first.",
    rules=(
        *(Rule((ANY, ANY, form), form, _spread_at, ON_STORED) for form in stored.MATRICES),
        Rule((ANY, ANY, "dense"), "dense", _spread_at_dense),
    ),
    dtype=type_of_first,
    gradient=lambda head, output, inputs, params: (
        reduced(ops.add(ops.zeros_like(inputs[1]), at_places_of(head, inputs[2])), params),
        None,
        None,
    ),
    unread=(1, None),
    family="reductions",
)


def at_places(gradient: Node, variable: Node) -> Node:
    """Return `gradient` at the stored positions of a csr, csc or coo variable, as a symbol.

    Computed for these alone if possible, rather than selected from a whole one.
    """
    if gradient.op is ops.sampled_dot and gradient.inputs[0] is variable:
        return gradient
    spreading = inner_spread(gradient)
    if spreading is not None:
        return spread_at(*spreading.inputs, variable, **spreading.params)
    return at_places_of(gradient, variable)


def _given_places(output, held, source, out=None):
    """Return the pattern `output` itself; other inputs are unused."""
    return output


def _every_place(output, held, source, out=None):
    """Return zeros of the shape of `output` that take no memory and of which only the shape is read.

    `held` and `source` are unused.
    """
    return np.broadcast_to(np.zeros((), output.dtype), output.shape) if out is None else put(out, np.zeros(()))


places_wanted = operator(
    "places_wanted",
    _every_place,
    lambda shapes, params: tuple(shapes[0]),
    "A pattern for the gradient towards `output`: its own, unless the places of its sparse input `held` were made "
    "from the values of a `source` that stores more, or from all of a dense one: then every place. Of the three "
    "only formats and places are read.",
    rules=(
        *(
            Rule((output, form, source), "dense", _every_place, "nothing is stored")
            for output in stored.SPARSE
            for form in stored.MATRICES
            for source in ("dense", "row_sparse")
        ),
        *(Rule((output, ANY, ANY), output, _given_places, "nothing to do") for output in stored.SPARSE),
        Rule(("dense", ANY, ANY), "dense", _every_place, "nothing is stored"),
    ),
    dtype=type_of_first,
    gradient=lambda head, output, inputs, params: (ops.zeros_like(inputs[0]), None, None),
    unread=(0, None),
    family="layout",
)


def wanted_places(x: Any) -> Any:
    """Return the pattern at which the gradient of x is sampled: x itself unless its positions were made from values.

    What a conversion stores of a dense array depends on its nonzero values; the gradient must not. O(nodes of x).
    """
    if not isinstance(x, Symbolic):
        return x
    patterns: dict[Symbolic, Symbolic] = {}
    waiting = [x]
    while waiting:
        node = waiting[-1]
        missing = [entry for entry in node.inputs if entry not in patterns]
        if node not in patterns and missing:
            waiting += missing
            continue
        patterns.setdefault(waiting.pop(), _pattern_of(node, patterns))
    return patterns[x]


def _pattern_of(node: Symbolic, patterns: Mapping[Symbolic, Symbolic]) -> Symbolic:
    """Return the pattern of a node's gradient from the `patterns` of its inputs."""
    if node.op is ops.to_format:
        return patterns[node.inputs[0]]
    pattern = node
    for entry in node.inputs:
        if patterns[entry] is not entry:
            pattern = places_wanted(pattern, entry, patterns[entry])
    return pattern
