"""The norm of all gradients together, for `clip_global_norm`."""

import math
from collections.abc import Mapping

import numpy as np

import kernels
from workbench.formats import RowSparse
from workbench.optimizers.contract import OptimizerError


def square_norms(gradients: Mapping[str, np.ndarray | RowSparse]) -> dict[str, float]:
    """The sum of the squares of each gradient, in float64.

    >>> square_norms({"w": np.float32([3, 4])})
    {'w': 25.0}
    """
    return {name: _square_norm(gradient) for name, gradient in gradients.items()}


def shrink(largest: float, rescale: float, squares: Mapping[str, float]) -> float:
    """Factor, at most 1, that brings the norm of all gradients together, rescaled, down to the largest allowed."""
    if wrong := [name for name, square in squares.items() if not math.isfinite(square)]:
        raise OptimizerError(f"The gradients of {wrong} have no finite norm to clip; look for NaN and overflow.")
    norm = abs(rescale) * math.sqrt(sum(squares.values()))
    return min(1.0, largest / norm) if norm > 0 else 1.0


def _square_norm(gradient: np.ndarray | RowSparse) -> float:
    values = gradient.values if isinstance(gradient, RowSparse) else gradient
    return kernels.get("square_norm").trusted(values.reshape(-1, 1))
