"""Head gradients as they come from outside."""

import math
from typing import Any

import numpy as np

from workbench import formats
from workbench.executor.steps import BindError
from workbench.graph import Facts


def listed(heads: Any, names: list[str]) -> list[Any]:
    """One head or None for each output (`BindError`)."""
    if heads is None:
        return [None] * len(names)
    entries = list(heads) if isinstance(heads, list | tuple) else [heads]
    if len(entries) != len(names):
        raise BindError(f"{len(entries)} heads came for {len(names)} outputs, {names}; give one for each.")
    return entries


def array(name: str, facts: Facts, value: Any) -> Any:
    """The head in the format and of the type of its output; ones where None came for an output of one number.

    A number will do for an output of one number.
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
    _, value = formats.enter(value)
    if value.shape != facts.shape:
        raise BindError(f"The head of {name} has the shape {value.shape}; the output's is {facts.shape}.")
    return formats.astype(formats.to_format(value, expected.format), expected.dtype, copy=False)
