"""Checks of what an updater is given; what does not fit is refused in words."""

from typing import Any

import numpy as np

from workbench.formats import FLOATS, RowSparse
from workbench.ops.products import Unsummed
from workbench.optimizers.contract import OptimizerError
from workbench.optimizers.parameter import Parameter

WEIGHTS = (np.ndarray, RowSparse)
GRADIENTS = (np.ndarray, RowSparse, Unsummed)


def check_weights(name: str, weights: Any) -> None:
    """Refuse weights of another kind or type, with gaps, or read-only; indices are not looked at."""
    if not isinstance(weights, WEIGHTS) or weights.dtype not in FLOATS:
        kind = f"{type(weights).__name__} of {getattr(weights, 'dtype', 'no type')}"
        raise OptimizerError(f"The weights {name} are a {kind}; they are dense or row_sparse, float32 or float64.")
    if weights.ndim > 2 and not (isinstance(weights, RowSparse) or weights.flags.c_contiguous):
        raise OptimizerError(f"The weights {name} have {weights.ndim} axes and gaps; take np.ascontiguousarray of it.")
    if not (weights if isinstance(weights, np.ndarray) else weights.values).flags.writeable:
        raise OptimizerError(f"The weights {name} are read-only; give a copy that can be written to.")


def format_of(weights: np.ndarray | RowSparse) -> str:
    """The format that weights are held in."""
    return "dense" if isinstance(weights, np.ndarray) else "row_sparse"


def check_held(name: str, parameter: Parameter, weights: np.ndarray | RowSparse) -> None:
    """Refuse weights of another shape, type or format than those of the steps before."""
    expected = parameter.shape, parameter.dtype, parameter.format
    actual = tuple(weights.shape), weights.dtype, format_of(weights)
    if actual != expected:
        raise OptimizerError(f"The weights {name} were {_words(*expected)} before and are {_words(*actual)} now.")


def _words(shape: tuple[int, ...], dtype: np.dtype, format: str) -> str:
    return f"{format} {dtype} {shape}"


def check_gradient(name: str, weights: np.ndarray | RowSparse, gradient: Any) -> None:
    """Refuse a gradient of another kind, shape or type than the weights, or with malformed indices."""
    if not isinstance(gradient, GRADIENTS):
        kind = type(gradient).__name__
        raise OptimizerError(
            f"The gradient of {name} is a {kind}; it is dense, row_sparse or Unsummed. Call formats.to_format."
        )
    if gradient.shape != weights.shape or gradient.dtype != weights.dtype:
        raise OptimizerError(
            f"The gradient of {name} has shape {tuple(gradient.shape)} and type {gradient.dtype}; the weights have "
            f"{tuple(weights.shape)} and {weights.dtype}."
        )
    if not isinstance(gradient, np.ndarray):
        _check_structure(f"The gradient of {name}", gradient)


def _check_structure(what: str, array: RowSparse | Unsummed) -> None:
    """Refuse what kernels could not follow: whoever made it may have written to its indices since."""
    try:
        array.check()
    except ValueError as error:
        raise OptimizerError(f"{what}: {error}") from None


def checked_rows(name: str, rows: Any, length: int) -> np.ndarray:
    """Row numbers int64 below `length`, of any form."""
    rows = np.asarray(rows).reshape(-1)
    if rows.dtype.kind not in "iu" or (rows.size and not 0 <= rows.min() <= rows.max() < length):
        raise OptimizerError(f"The rows of {name} to catch up are whole numbers from 0 to {length - 1}; {rows} came.")
    return rows.astype(np.int64, copy=False)
