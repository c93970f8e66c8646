"""Head gradients as passed by the caller."""

import math
from typing import Any

import numpy as np

from workbench import formats
from workbench.executor.steps import BindError
from workbench.graph import Facts


def listed(heads: Any, names: list[str]) -> list[Any]:
    """Return one head or None for each output. Raises BindError if the counts differ."""
    if heads is None:
        return [None] * len(names)
    entries = list(heads) if isinstance(heads, list | tuple) else [heads]
    if len(entries) != len(names):
        raise BindError(f"{len(entries)} heads came for {len(names)} outputs, {names}; give one for each.")
    return entries


def array(name: str, facts: Facts, value: Any) -> Any:
    """Return the head in the format, dtype and shape of its output; ones if None was passed for an output of one
    element.

    A Python number is accepted for an output of one element. Raises BindError otherwise.
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
