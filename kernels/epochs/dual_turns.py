"""Steps of the dual variables of one row from its scores, compiled for a loss and a width."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from kernels.code_cache import inlined
from kernels.loss_blocks import block_of, element_of

TURNS, MOVED = 3, 0.1
"""How often a row has its step at most, and how far one must move a score for another to follow."""


class Numbers(NamedTuple):
    """Numbers of the weights' type: 1, 1 / (decay * T), the square of an intercept's value, the loss's curvature."""

    one: Any
    scale: Any
    square: Any
    curvature: Any


class Scratch(NamedTuple):
    """Memory of one row: its target, and scores, slopes and the change of its dual variables [1, N]."""

    target: np.ndarray
    scores: np.ndarray
    slope: np.ndarray
    change: np.ndarray


def make_turns(loss: str, width: int) -> Callable:
    """Return a compiled function: dual steps of a row; it fills `change`, returns (loss before, invalid target or
    -1).
    """
    element = element_of(loss)
    return make_turns_of_one(element) if width == 1 and element else make_turns_of_block(block_of(loss))


def make_turns_of_one(element: Callable) -> Callable:
    """Return `make_turns` for one score, with all values in registers."""

    def turns(dual, row, count, factor, numbers, scratch):
        one, score, target, own = numbers.one, scratch.scores[0, 0], scratch.target[0], dual[row, 0]
        rate = one / (one + factor * count * numbers.curvature)
        before, slope = element(score, target, one)
        step = -(count * slope + own) * rate
        change = step
        for _ in range(1, TURNS):
            moved = factor * step
            if not abs(moved) > MOVED:
                break
            score += moved
            _, slope = element(score, target, one)
            step = -(count * slope + own + change) * rate
            change += step
        scratch.change[0, 0] = change
        return np.float64(before), -1

    return inlined(turns)


def make_turns_of_block(block: Callable) -> Callable:
    """Return `make_turns` for several scores, or for a loss of all scores of a row."""

    def turns(dual, row, count, factor, numbers, scratch):
        target, scores, slope, change = scratch
        rate = numbers.one / (numbers.one + factor * count * numbers.curvature)
        before, wrong = 0.0, -1
        for n in range(change.shape[1]):
            change[0, n] = 0
        for turn in range(TURNS):
            loss_row, wrong = block(scores, target, slope, count)
            if turn == 0:
                before = loss_row
            moves = False
            for n in range(change.shape[1]):
                step = -(slope[0, n] + dual[row, n] + change[0, n]) * rate
                change[0, n] += step
                scores[0, n] += factor * step
                moves |= abs(factor * step) > MOVED
            if not moves or wrong >= 0:
                break
        return before, wrong

    return inlined(turns)
