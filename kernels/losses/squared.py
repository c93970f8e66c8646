"""loss = mean over rows of sum_n (s - t)^2 / 2; gradient = (s - t) / R, its derivative by the scores s.

Arguments  scores float32|float64 [R, N]; targets same [R, N]
Writes     gradient [R, N], overwritten; nothing else changes; returns the loss, a Python float, 0.0 when R is 0
Assumes    nothing
Cost       4*R*N flops; reads 2*R*N*value bytes, writes R*N*value
Parallel   over blocks of fixed size, summed in float64 and then in their order: same bits on every run and thread count
Limits     R*N < 2**63
Source     Least squares; differs: loss and gradient in one pass
"""

import numpy as np
from numba import prange

from kernels._compat.numba_internals import flat
from kernels.contract import Case, Cost, Sizes, register_kernel
from kernels.gpu.losses import mean_loss, names_of
from kernels.gpu.source import source
from kernels.loss_blocks import register_block
from kernels.threads import BLOCK, call_parallel, compiled, compiled_parallel, compiled_part, compiled_sums, sum_of


def reference(scores, targets, gradient):
    """Compute the mean squared loss over rows in plain loops; return it as float, 0.0 without rows.

    scores, targets [R, N]; a row's loss is the sum of (s - t)^2 / 2. gradient [R, N] is overwritten by (s - t) / R.
    """
    loss = 0.0
    for r in range(scores.shape[0]):
        for n in range(scores.shape[1]):
            gradient[r, n] = (scores[r, n] - targets[r, n]) / scores.shape[0]
            loss += 0.5 * (float(scores[r, n]) - float(targets[r, n])) ** 2 / scores.shape[0]
    return loss


@compiled_part
def _element(s, t, one):
    """Return ((s - t)^2 / 2 as float64, s - t) of one score s and target t; `one` is unused."""
    error = s - t
    return 0.5 * (np.float64(error) * error), error


@compiled_sums
def _sum(scores, targets):
    """Return half the sum of (scores - targets)^2 in float64; both 1-d.

    The order of the terms is up to the compiler.
    """
    total = 0.0
    for k in range(scores.size):
        error = scores[k] - targets[k]
        total += np.float64(error) * error
    return 0.5 * total


@compiled_part
def _block(scores, targets, gradient, scale):
    """Overwrite gradient by (scores - targets) * scale and return the sum of the losses; all arrays are 1-d."""
    total = _sum(scores, targets)
    for k in range(scores.size):
        gradient[k] = (scores[k] - targets[k]) * scale
    return total


@compiled
def block(scores, targets, gradient, scale):
    """Overwrite gradient [r, N] by (scores - targets) * scale.

    Return (sum of the losses, -1: every target is valid).
    """
    return _block(flat(scores), flat(targets), flat(gradient), scale), -1


register_block("squared", block, curvature=1.0, element=_element)


@compiled_parallel
def _blocks(scores, targets, gradient, scale, length, sums):
    """Run `_block` for blocks of `length` scores in parallel: overwrites gradient, and sums [blocks] by the losses.

    scores, targets and gradient are 1-d.
    """
    for block in prange(sums.size):
        part = slice(block * length, min((block + 1) * length, scores.size))
        sums[block] = _block(scores[part], targets[part], gradient[part], scale)


def cpu(scores, targets, gradient):
    """Compute the mean squared loss over rows on the CPU; return it as float, 0.0 without rows.

    scores, targets [R, N]; a row's loss is the sum of (s - t)^2 / 2. gradient [R, N] is overwritten by (s - t) / R.
    """
    rows = max(scores.shape[0], 1)
    if scores.size <= BLOCK:  # of few scores a region of threads takes longer than the work
        return block(scores, targets, gradient, scores.dtype.type(1 / rows))[0] / rows
    sums = np.empty(-(-scores.size // BLOCK))
    arrays = scores.reshape(-1), targets.reshape(-1), gradient.reshape(-1)
    call_parallel(_blocks, 3 * scores.size, *arrays, scores.dtype.type(1 / rows), BLOCK, sums)
    return sum_of(sums) / rows


CUDA = source(__file__, names_of("squared"))


def gpu(scores, targets, gradient):
    """Compute the mean squared loss over rows on a CUDA device; return it as float, 0.0 without rows. Waits for it.

    scores, targets [R, N]; a row's loss is the sum of (s - t)^2 / 2. gradient [R, N] is overwritten by (s - t) / R.
    """
    return mean_loss(CUDA, "squared", scores, targets, gradient)


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a call: scores and targets are read, the gradient is written."""
    return Cost(4 * s.R * s.N, 3 * s.R * s.N * s.value, work=(("pass", 2 * s.R * s.N),))


def arguments(case: Case) -> tuple:
    """Build operands of a call from `case`: scores, targets, and a gradient to overwrite."""
    return case.dense(case.R, case.N), case.dense(case.R, case.N, salt=1), case.garbage(case.R, case.N)


register_kernel(
    __name__,
    "squared",
    "scores:f[R,N] targets:f[R,N] gradient:f[R,N]",
    writes=("gradient",),
)
