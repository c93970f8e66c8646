"""Losses of some rows as compiled functions, by the name of their kernel: whole epochs are made of these as well.

`block(scores [r, N], targets, gradient [r, N], scale)` overwrites `gradient` with the derivative of each row's loss by
its scores, times `scale`, and returns the sum of the losses, float64, and the first row whose target is out of range or
-1. Targets are as the kernel takes them; where they are [r, N] and N is 1 they may also come as [r].
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from kernels.contract import KernelError
from kernels.registry import names
from kernels.threads import BLOCK


class _Loss(NamedTuple):
    block: Callable
    curvature: float
    element: Callable | None


_blocks: dict[str, _Loss] = {}


def register_block(name: str, block: Callable, curvature: float, element: Callable | None = None) -> None:
    """Give the loss of that kernel as a compiled function.

    `curvature` bounds the second derivative of a row's loss by its scores, in any direction. Of a loss that is a sum
    over scores `element(score, target, one)` gives what one of them adds and its derivative; `one` is of their type.
    """
    _blocks[name] = _Loss(block, curvature, element)


def bound_of(block: Callable, cpu: Callable, *arrays: np.ndarray) -> Callable[[], float]:
    """The mean loss of scores, targets and gradient, a sum over scores that knows no wrong target, on these arrays."""
    scores = arrays[0]
    if scores.size > BLOCK:
        return partial(cpu, *arrays)
    rows = max(scores.shape[0], 1)
    scale = scores.dtype.type(1 / rows)
    return lambda: block(*arrays, scale)[0] / rows


def losses() -> list[str]:
    """Names of the losses that have one."""
    names()  # imports the files of all losses where that was not done
    return sorted(_blocks)


def _get(name: str) -> _Loss:
    if name not in _blocks and name not in losses():
        raise KernelError(f"There is no loss {name!r} of some rows; there is: {', '.join(losses())}.")
    return _blocks[name]


def block_of(name: str) -> Callable:
    """The compiled function of that loss; an unknown one is a `KernelError` that lists those there are."""
    return _get(name).block


def element_of(name: str) -> Callable | None:
    """The compiled function of one score of that loss; None where a row's scores have a loss together."""
    return _get(name).element


def curvature_of(name: str) -> float:
    """The largest second derivative of a row's loss by its scores, in any direction."""
    return _get(name).curvature


def wrong_label(row: int, label: int, width: int) -> KernelError:
    """Error for a label of the softmax that is out of range."""
    return KernelError(
        f"softmax: labels[{row}] is {label}; scores have {width} columns, so labels are 0 to {width - 1}. "
        "Number the classes from 0, or give the model more outputs."
    )
