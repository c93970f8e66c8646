"""loss = mean over rows of sum_n log(1 + e^s) - s*t; gradient = (sigmoid(s) - t) / R, its derivative by the scores s.

Arguments  scores float32|float64 [R, N]; targets same [R, N], 0 to 1
Writes     gradient [R, N], overwritten; nothing else changes; returns the loss, a Python float, 0.0 when R is 0
Assumes    targets in 0..1; with e = exp(-|s|) nothing overflows: log(1 + e^s) = max(s, 0) + log(1 + e)
Cost       30*R*N flops, exp and log counted as 12 and 10; reads 2*R*N*value bytes, writes R*N*value
Parallel   over blocks of fixed size, summed in float64 and then in their order: same bits on every run and thread count
Limits     R*N < 2**63; float32 exp and log are within 2e-7
Source     Logistic regression; differs: loss and gradient in one pass
"""

import math

import numpy as np
from numba import prange

from kernels._compat.numba_internals import flat
from kernels.contract import Case, Cost, Sizes, register_kernel
from kernels.gpu.losses import mean_loss, names_of
from kernels.gpu.source import source
from kernels.loss_blocks import register_block
from kernels.threads import (
    BLOCK,
    call_parallel,
    compiled,
    compiled_parallel,
    compiled_part,
    compiled_sums,
    compiled_with_arrays,
    sum_of,
)
from kernels.vector.elementary import exp_of_negative, log1p_of_unit, maximum


def reference(scores, targets, gradient):
    """Compute the mean logistic loss over rows in plain loops; return it as float, 0.0 without rows.

    scores, targets [R, N], targets in 0 to 1. gradient [R, N] is overwritten by (sigmoid(s) - t) / R.
    """
    loss = 0.0
    for r in range(scores.shape[0]):
        for n in range(scores.shape[1]):
            s, t = float(scores[r, n]), float(targets[r, n])
            e = math.exp(-abs(s))
            sigmoid = (1 if s >= 0 else e) / (1 + e)
            gradient[r, n] = (sigmoid - t) / scores.shape[0]
            loss += (max(s, 0.0) - s * t + math.log1p(e)) / scores.shape[0]
    return loss


@compiled_part
def _element(s, t, one):
    """Return (log(1 + e^s) - s * t, sigmoid(s) - t) of one score s and target t; `one` is 1 of their dtype."""
    e = exp_of_negative(-abs(s))
    larger = one / (one + e)
    loss = (maximum(s, one - one) - s * t) + log1p_of_unit(e)
    return loss, (larger if s >= 0 else e * larger) - t


@compiled_sums
def _sum(losses):
    """Return the sum of `losses` [n] in float64; the order of the terms is up to the compiler."""
    total = 0.0
    for k in range(losses.size):
        total += losses[k]
    return total


@compiled_with_arrays
def _block(scores, targets, gradient, scale):
    """Overwrite gradient by (sigmoid(s) - t) * scale for scores s, targets t, and return the sum of the losses.

    All arrays are 1-d of equal length and dtype.
    """
    losses, one = np.empty(scores.size, scores.dtype), scores.dtype.type(1)
    for k in range(scores.size):
        losses[k], slope = _element(scores[k], targets[k], one)
        gradient[k] = slope * scale
    return _sum(losses)


@compiled
def block(scores, targets, gradient, scale):
    """Overwrite gradient [r, N] by (sigmoid(s) - t) * scale; return (sum of the losses, -1: every target is valid)."""
    return _block(flat(scores), flat(targets), flat(gradient), scale), -1


@compiled
def write_probabilities(scores, both):
    """Overwrite both [R, 2] by 1 - p and p, the sigmoid of the scores [R, 1] of the same dtype; both are contiguous."""
    one, single, pairs = scores.dtype.type(1), flat(scores), flat(both)  # one loop over flat arrays has vector code
    for r in range(single.size):
        s = single[r]
        e = exp_of_negative(-abs(s))
        larger = one / (one + e)
        p = e * larger if s < 0 else larger
        pairs[2 * r] = one - p
        pairs[2 * r + 1] = p


register_block("logistic", block, curvature=0.25, element=_element)


@compiled_parallel
def _blocks(scores, targets, gradient, scale, length, sums):
    """Run `_block` for blocks of `length` scores in parallel: overwrites gradient, and sums [blocks] by the losses.

    scores, targets and gradient are 1-d.
    """
    for block in prange(sums.size):
        part = slice(block * length, min((block + 1) * length, scores.size))
        sums[block] = _block(scores[part], targets[part], gradient[part], scale)


def cpu(scores, targets, gradient):
    """Compute the mean logistic loss over rows on the CPU; return it as float, 0.0 without rows.

    scores, targets [R, N], targets in 0 to 1. gradient [R, N] is overwritten by (sigmoid(s) - t) / R.
    """
    rows = max(scores.shape[0], 1)
    if scores.size <= BLOCK:  # of few scores a region of threads takes longer than the work
        return block(scores, targets, gradient, scores.dtype.type(1 / rows))[0] / rows
    sums = np.empty(-(-scores.size // BLOCK))
    arrays = scores.reshape(-1), targets.reshape(-1), gradient.reshape(-1)
    call_parallel(_blocks, 9 * scores.size, *arrays, scores.dtype.type(1 / rows), BLOCK, sums)
    return sum_of(sums) / rows


CUDA = source(__file__, names_of("logistic"))


def gpu(scores, targets, gradient):
    """Compute the mean logistic loss over rows on a CUDA device; return it as float, 0.0 without rows. Waits for it.

    scores, targets [R, N], targets in 0 to 1. gradient [R, N] is overwritten by (sigmoid(s) - t) / R.
    """
    return mean_loss(CUDA, "logistic", scores, targets, gradient)


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a call: scores and targets are read, the gradient is written."""
    return Cost(30 * s.R * s.N, 3 * s.R * s.N * s.value, work=(("exp", s.R * s.N), ("log", s.R * s.N)))


def arguments(case: Case) -> tuple:
    """Build operands from `case`: scores that also saturate, targets 0, 1 or between, and a gradient to fill."""
    targets = case.dense(case.R, case.N, salt=1).clip(0, 1)
    return 20 * case.dense(case.R, case.N), targets, case.garbage(case.R, case.N)


register_kernel(
    __name__,
    "logistic",
    "scores:f[R,N] targets:f[R,N] gradient:f[R,N]",
    writes=("gradient",),
)
