"""loss = mean over rows of -log p[label], p = softmax(s); gradient = (p - onehot(label)) / R, its derivative by s.

Arguments  scores float32|float64 [R, N]; labels int64 [R]
Writes     gradient [R, N], overwritten; nothing else changes; returns the loss, a Python float, 0.0 when R is 0
Assumes    nothing; a label outside 0..N-1 is refused within the pass, when gradient has been written in part
Cost       18*R*N flops, exp counted as 12; reads R*N*value + R*8 bytes, writes R*N*value
Parallel   over blocks of rows that depend on N alone, summed in float64 and then in their order: same bits always
Limits     R*N < 2**63; a row should fit the cache, it is passed over four times; float32 exp is within 9e-8
Source     Cross-entropy with the largest score subtracted; differs: loss and gradient in one pass
"""

import math

import numpy as np
from numba import prange

from kernels import devices
from kernels._compat.numba_internals import flat
from kernels.contract import Case, Cost, Sizes, register_kernel
from kernels.gpu.losses import rows_of, total
from kernels.gpu.source import FLOATS, blocks, c_name, source
from kernels.loss_blocks import register_block, wrong_label
from kernels.threads import BLOCK, call_parallel, compiled, compiled_parallel, compiled_part, compiled_sums, sum_of
from kernels.vector.elementary import exp_of_negative, maximum

ROWS_A_LOG = 32
"""Rows whose sums, each from 1 to N, are multiplied before the logarithm: no overflow while N < 4e9."""


def reference(scores, labels, gradient):
    """Compute the mean cross-entropy over rows in plain loops; return it as float, 0.0 without rows.

    scores [R, N], labels int64 [R]. gradient [R, N] is overwritten by (softmax(s) - onehot(label)) / R. Raises
    KernelError for a label outside [0, N).
    """
    loss, (rows, width) = 0.0, scores.shape
    for r in range(rows):
        if not 0 <= labels[r] < width:
            raise wrong_label(r, labels[r], width)
        s = [float(scores[r, n]) for n in range(width)]
        largest = math.nan if any(map(math.isnan, s)) else max(s)
        if math.isinf(largest):
            largest = math.nan
        e = [math.exp(value - largest) for value in s]
        for n in range(width):
            gradient[r, n] = e[n] / sum(e) / rows
        gradient[r, labels[r]] = -sum([e[n] for n in range(width) if n != labels[r]]) / sum(e) / rows
        loss += (largest + math.log(sum(e)) - s[labels[r]]) / rows
    return loss


@compiled_sums
def _total(values, r):
    """Return the sum of row r of `values` [R, N] in float64; the order of the terms is up to the compiler."""
    total = 0.0
    for n in range(values.shape[1]):
        total += values[r, n]
    return total


@compiled_part
def _subtract_largest(scores, gradient, r):
    """Write row r of scores [R, N] less its largest score to gradient[r].

    Return the largest as float64, NaN if one is NaN.
    """
    largest = scores.dtype.type(-np.inf)
    for n in range(scores.shape[1]):
        largest = maximum(largest, scores[r, n])
    for n in range(scores.shape[1]):
        gradient[r, n] = scores[r, n] - largest
    return np.float64(largest)


@compiled_part
def _exp(values):
    """Replace every value of the 1-d `values`, none above 0, by its exponential, in place."""
    for k in range(values.size):
        values[k] = exp_of_negative(values[k])


@compiled_part
def _normalize(gradient, label, scale, r):
    """Turn row r of gradient [R, N] from exponentials into (softmax - onehot(label)) * scale, in place.

    Return their sum.
    """
    total = _total(gradient, r)
    factor = scale / total
    for_label = (gradient[r, label] - total) * factor  # p - 1 without the cancellation
    for n in range(gradient.shape[1]):
        gradient[r, n] *= gradient.dtype.type(factor)
    gradient[r, label] = for_label
    return total


@compiled
def block(scores, labels, gradient, scale):
    """Overwrite gradient [r, N] by (softmax - onehot) * scale.

    Return (sum of the losses, first row with invalid label or -1). The exponentials of all rows at once, since short
    rows fill no vectors: twice as fast with 16 columns.
    """
    loss, product = 0.0, 1.0
    for r in range(labels.size):
        if labels[r] < 0 or labels[r] >= scores.shape[1]:
            return loss, r
        loss += _subtract_largest(scores, gradient, r) - scores[r, labels[r]]
    _exp(flat(gradient))
    for r in range(labels.size):
        product *= _normalize(gradient, labels[r], scale, r)
        if r % ROWS_A_LOG == ROWS_A_LOG - 1:
            loss += math.log(product)
            product = 1.0
    return loss + math.log(product), -1


register_block("softmax", block, curvature=0.5)


@compiled_parallel
def _blocks(scores, labels, gradient, scale, length, sums, wrong):
    """Run `block` for blocks of `length` rows in parallel: overwrites gradient, sums [blocks] and wrong [blocks].

    scores, labels, gradient and scale are as in `block`; wrong is the first row with an invalid label in a block, or
    -1.
    """
    for number in prange(sums.size):
        first, last = number * length, min((number + 1) * length, labels.size)
        sums[number], at = block(scores[first:last], labels[first:last], gradient[first:last], scale)
        wrong[number] = at if at < 0 else first + at


def cpu(scores, labels, gradient):
    """Compute the mean cross-entropy over rows on the CPU; return it as float, 0.0 without rows.

    scores [R, N], labels int64 [R]. gradient [R, N] is overwritten by (softmax(s) - onehot(label)) / R. Raises
    KernelError for a label outside [0, N), when gradient has been written in part.
    """
    rows, width = scores.shape
    length = max(BLOCK // max(width, 1), 1)
    if rows <= length:
        loss, r = block(scores, labels, gradient, 1 / max(rows, 1))
        if r >= 0:
            raise wrong_label(r, labels[r], width)
        return loss / max(rows, 1)
    sums, wrong = np.empty(-(-rows // length)), np.empty(-(-rows // length), np.int64)
    call_parallel(_blocks, 9 * scores.size, scores, labels, gradient, 1 / max(rows, 1), length, sums, wrong)
    if wrong.max(initial=-1) >= 0:
        r = wrong[wrong >= 0][0]
        raise wrong_label(r, labels[r], width)
    return sum_of(sums) / max(rows, 1)


_SHAPES = (8, 2), (32, 1), (32, 4), (32, 16), (32, 0)
"""(lanes of a row, scores a lane keeps) on a CUDA device; the last is for rows of any width."""

_CUDA = source(__file__, [f"softmax<{value}, {g}, {k}>" for value in FLOATS for g, k in _SHAPES])


def gpu(scores, labels, gradient):
    """Compute the mean cross-entropy over rows on a CUDA device; return it as float, 0.0 without rows. Waits for it.

    scores [R, N], labels int64 [R]. gradient [R, N] is overwritten by (softmax(s) - onehot(label)) / R. Raises
    KernelError for a label outside [0, N).
    """
    device, (rows, width) = devices.device_of(gradient), scores.shape
    if rows == 0:
        return 0.0
    losses, wrong = device.empty(rows, np.float64), device.zeros(1, np.int64)  # [R]
    on_device(scores, labels, gradient, losses, wrong)
    loss = total(losses) / rows
    if first := int(device.read(wrong)[0]):  # synchronize!
        r = rows - first
        raise wrong_label(r, int(device.read(labels[r : r + 1])[0]), width)
    return loss


def on_device(scores, labels, gradient, losses, wrong, counted=None):
    """Queue the CUDA kernel: overwrites gradient [R, N], losses float64 [R] and, for an invalid label, wrong int64 [1].

    wrong, 0 before, becomes R less the first invalid row. Rows from `counted` on, int64 [1] on the device, are
    excluded; None: none.
    """
    rows, width = scores.shape
    group, kept = next((shape for shape in _SHAPES if shape[0] * shape[1] >= width), _SHAPES[-1])
    name = f"softmax<{c_name(gradient.dtype)}, {group}, {kept}>"
    operands = scores, labels, gradient, rows, width, *rows_of(counted, wrong), losses, wrong
    devices.device_of(gradient).launch(_CUDA, name, blocks(rows * group), *operands)


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a call: scores and labels are read, the gradient is written."""
    work = ("exp", s.R * s.N), ("pass", 3 * s.R * s.N)
    return Cost(18 * s.R * s.N, 2 * s.R * s.N * s.value + 8 * s.R, work=work)


def arguments(case: Case) -> tuple:
    """Build operands of a call from `case`: scores of which some underflow, labels, and a gradient to overwrite."""
    labels = np.random.default_rng(case.seed).integers(0, case.N, case.R)
    return 20 * case.dense(case.R, case.N), labels, case.garbage(case.R, case.N)


register_kernel(
    __name__,
    "softmax",
    "scores:f[R,N] labels:l[R] gradient:f[R,N]",
    writes=("gradient",),
)
