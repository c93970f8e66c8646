"""Compiled loss functions of a block of rows, by the name of their kernel; also used by whole-epoch kernels.

`block(scores [r, N], targets, gradient [r, N], scale)` overwrites `gradient` with the derivative of each row's loss
with respect to its scores, times `scale`, and returns the sum of the losses (float64) and the first row whose target is
out of range, or -1. Targets are as the kernel takes them; [r, N] with N = 1 may also be [r].
"""

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from kernels.contract import KernelError
from kernels.registry import get, names, unknown_name


class _Loss(NamedTuple):
    """Compiled functions of one loss and the bound of its curvature."""

    block: Callable
    curvature: float
    element: Callable | None


_blocks: dict[str, _Loss] = {}


def register_block(name: str, block: Callable, curvature: float, element: Callable | None = None) -> None:
    """Register the compiled functions of the loss `name`, replacing earlier ones.

    `block` is as in this module's docstring: (scores, targets, gradient, scale) -> (sum of losses, invalid row or -1).
    `curvature` bounds the second derivative of a row's loss with respect to its scores, in any direction. For a loss
    that is a sum over scores, `element(score, target, one)` returns the term of one score and its derivative; `one` has
    their dtype.
    """
    _blocks[name] = _Loss(block, curvature, element)


def losses() -> list[str]:
    """Return the sorted names of the losses with a block function; imports the kernel files."""
    names()  # imports the files of all losses where that was not done
    return sorted(_blocks)


def has_block(name: str) -> bool:
    """Return whether the loss `name` has a block function."""
    if name not in _blocks:
        with suppress(KernelError):
            get(name)  # imports the file of that loss, and all files only if there is none
    return name in _blocks or name in losses()


def _get(name: str) -> _Loss:
    """Return the record of the loss `name`. Raises KernelError that lists the known ones."""
    if not has_block(name):
        raise KernelError(unknown_name("loss of some rows", name, losses()))
    return _blocks[name]


def block_of(name: str) -> Callable:
    """Return the compiled function of a block of rows of the loss `name`: (scores, targets, gradient, scale).

    It overwrites gradient [r, N] and returns (sum of the losses, first row with an invalid target or -1). Raises
    KernelError, which lists the known losses, for an unknown one.
    """
    return _get(name).block


def element_of(name: str) -> Callable | None:
    """Return the compiled function of one score of the loss `name`; None if it couples the scores of a row.

    It maps (score, target, one), `one` being 1 in their dtype, to (loss, its derivative). Raises KernelError for an
    unknown loss.
    """
    return _get(name).element


def curvature_of(name: str) -> float:
    """Return the bound of the second derivative of a row's loss, for the loss `name`. Raises KernelError."""
    return _get(name).curvature


def wrong_label(row: int, label: int, width: int) -> KernelError:
    """Return, without raising it, the error for a class `label` of row `row` outside [0, width)."""
    return KernelError(
        f"softmax: labels[{row}] is {label}; scores have {width} columns, so labels are 0 to {width - 1}. "
        "Number the classes from 0, or give the model more outputs."
    )
