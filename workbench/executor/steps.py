"""One step of a program: a call, the slots of its inputs and the slot of its result."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from workbench import formats, ops
from workbench.graph import GraphError
from workbench.ops import products
from workbench.ops.contract import Op
from workbench.ops.products import Unsummed

# The executor's own error.


class BindError(GraphError):
    """An argument does not fit the graph, or a call comes in the wrong order; the message says what to do."""


PARTS = ("plan", "forward", "loss", "backward", "store")


@dataclass(slots=True)
class Step:
    """A step: `values[output] = call(*values of inputs, out=out)`.

    `name` is the node's; `op` its operator, None for building a plan or storing a gradient; `part` one of `PARTS`
    (loss: a loss computed with the gradient of its scores). `dead` are slots whose values are not read afterwards.
    """

    name: str
    op: Op | None
    part: str
    call: Callable[..., Any]
    inputs: tuple[int, ...]
    output: int
    out: np.ndarray | None = None
    dead: tuple[int, ...] = ()
    bind: Callable[..., Callable[[], Any] | None] | None = None
    """`bind(*values of inputs, out=out)` gives a call without arguments, for arrays that many calls share."""
    take: Callable[[list[Any]], Sequence[Any]] = field(init=False, repr=False)
    """Gives the values of the inputs, of all values: in a fourth of the time of a loop over the slots."""

    def __post_init__(self) -> None:
        one = slice(self.inputs[0], self.inputs[0] + 1) if self.inputs else slice(0)
        self.take = itemgetter(*self.inputs) if len(self.inputs) > 1 else itemgetter(one)


def with_params(call: Callable[..., Any], params: Mapping[str, Any]) -> Callable[..., Any]:
    """Return the call with its parameters bound."""
    return partial(call, **params) if params else call


def with_plan(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call that takes the batch plan as its last array."""

    def planned(*arrays: Any, out: np.ndarray | None) -> Any:
        return call(*arrays[:-1], out=out, plan=arrays[-1])

    return planned


def plan_of(x: Any, plan: Any, out: None, width: float) -> Any:
    """Return the given plan, or a new one for products of `width` columns, or None if they are faster without.

    The array was validated when it was passed; its indices are validated once more.
    """
    return products.plan_for(x, width) if plan is None else plan


def joint(call: Callable[..., Any], slope: np.ndarray, params: Mapping[str, Any]) -> Callable[..., Any]:
    """Return a call of a loss that also writes the gradient of its scores into `slope`."""

    def both(*arrays: Any, out: np.ndarray) -> np.ndarray:
        out[...] = call(*arrays, slope=slope, **params)
        return out

    return both


def bound_joint(bind: Callable[..., Any], slope: np.ndarray, params: Mapping[str, Any]) -> Callable[..., Any]:
    """Return a function that binds such a loss to arrays that many calls share."""

    def bound(*arrays: Any, out: np.ndarray) -> Callable[[], Any] | None:
        call = bind(*arrays, slope=slope, **params)
        return call and partial(_put, out, call)

    return bound


def _put(out: np.ndarray, call: Callable[[], Any]) -> None:
    """Write the result of `call()` to `out`."""
    out[...] = call()


def scale_in_place(slope: np.ndarray, head: np.ndarray, out: None) -> np.ndarray:
    """Multiply the gradient of the scores by the head, in place; a head of 1 costs nothing."""
    return slope if head.size == 1 and head.item() == 1 else np.multiply(slope, head, out=slope)


def identity(value: Any, *others: Any, out: None) -> Any:
    """Return the first input itself."""
    return value


def copy_value(value: Any, out: np.ndarray | None) -> Any:
    """Return a copy of the value, in `out` if that is given."""
    if out is None:
        return formats.copy(value)
    out[...] = value
    return out


def add_values(value: Any, before: Any, out: None) -> Any:
    """Add `value` to `before`, in place if that is dense; the format stays. Raises BindError if shapes differ."""
    if value.shape != before.shape:
        raise BindError(
            f"A gradient of shape {value.shape} came to one of {before.shape}, to be added. Request write for "
            "arguments whose rows change."
        )
    if isinstance(before, np.ndarray):
        before += formats.to_format(value, "dense")
        return before
    if before.nnz == 0:
        return formats.copy(value)
    return formats.to_format(ops.get("add")(before, value), formats.format_of(before))


def factored_gradient(shape: tuple[int, ...]) -> Callable[..., Unsummed | formats.RowSparse]:
    """Return a call that keeps a product X.T @ g as its factors; it is multiplied out if there is no plan."""

    def factors(x: Any, slope: np.ndarray, plan: Any, out: None) -> Unsummed | formats.RowSparse:
        if plan is None:
            return products.rule(x.format, True, "row_sparse")(x, slope)
        return Unsummed(x, slope, plan, shape)

    return factors
