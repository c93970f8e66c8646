"""loss = mean over rows of -log p[label], p = softmax(s); gradient = (p - onehot(label)) / R, its derivative by s.

Arguments  scores float32|float64 [R, N]; labels int64 [R]
Writes     gradient [R, N], overwritten; nothing else changes; returns the loss, a Python float, 0.0 when R is 0
Assumes    nothing; a label outside 0..N-1 is refused within the pass, when gradient has been written in part
Cost       18*R*N flops, exp counted as 12; reads R*N*value + R*8 bytes, writes R*N*value
Parallel   over blocks of rows that depend on N alone, summed in float64 and then in their order: same bits always
Limits     R*N < 2**63; a row should fit the cache, it is passed over three times; float32 sums, exp within 9e-8
Source     Cross-entropy with the largest score subtracted; differs: loss and gradient in one pass
"""

import functools
import math
import operator

import numpy as np
from numba import prange
from numba.extending import overload

from kernels import devices
from kernels.code_cache import digest_of_files
from kernels.contract import Case, Cost, Kernel, Sizes
from kernels.formula import choose
from kernels.gpu.losses import rows_of, total
from kernels.gpu.source import FLOATS, blocks, c_name, source
from kernels.loss_blocks import register_block, wrong_label
from kernels.registry import register
from kernels.threads import BLOCK, call_parallel, compiled, compiled_parallel, compiled_with_arrays, sum_of
from kernels.vector import across
from kernels.vector.gather import RowLoop
from kernels.vector.lanes import emit_row

ROWS_A_LOG = 32
"""Rows whose sums, each from 1 to N, are multiplied before the logarithm: no overflow while N < 4e9."""


def reference(scores, labels, gradient):
    """The definition, in plain loops."""
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
        gradient[r, labels[r]] = -sum(e[n] for n in range(width) if n != labels[r]) / sum(e) / rows
        loss += (largest + math.log(sum(e)) - s[labels[r]]) / rows
    return loss


def _row(lane, u, scores, labels, gradient, sums, scale):
    """A row of the gradient; its sum of exponentials, and the label's score less the largest, into `sums`."""
    label, kept = labels[u], []
    own = u * scores.columns + label

    def find(j, tops):
        return [across.larger(across.filled(lane, scores.row(u, j).load()[0], -math.inf), tops[0])]

    top = across.fold(lane, lane.blocks(find, [across.every(lane, -math.inf)])[0], across.larger)

    def add(j, totals):
        powers = across.exp_of_negative(lane, scores.row(u, j).load()[0] - top)
        gradient.row(u, j).store([powers])
        kept[:] = [powers]
        others = choose(across.is_column(lane, j, label), across.every(lane, 0.0), powers)
        return [totals[0] + across.filled(lane, others, 0.0)]

    others = across.fold(lane, lane.blocks(add, [across.every(lane, 0.0)])[0], operator.add)
    total = others + gradient[own]
    factor = scale / total

    def normalize(j, _):
        place = gradient.row(u, j)
        place.store([(place.load() if lane.cut.full else kept)[0] * factor])

    lane.blocks(normalize)
    gradient[own] = (0.0 - others) * factor  # p - 1 without the cancellation
    sums[u + u] = total
    sums[u + u + 1] = scores[own] - top


_DIGEST = digest_of_files(across.__name__)
"""What the code of `_each_row` is made of beside this file."""


@functools.cache
def _codes(bits: int) -> tuple[str, str, int]:
    """Names of the code for narrow rows and for wide ones, and the widest of the narrow."""
    narrow, wide = across.cut_narrow(bits), across.cut_wide(bits)
    return *(RowLoop(_row, name="softmax").code(cut) for cut in (narrow, wide)), narrow.rest.width


def _each_row(scores, labels, gradient, sums, scale):
    """`_row` of every row; compiled functions alone have it."""
    raise NotImplementedError(f"softmax of {_DIGEST}")


@overload(_each_row, jit_options={"error_model": "numpy"})
def _typed_each_row(scores, labels, gradient, sums, scale):
    narrow, wide, most = _codes(scores.dtype.bitwidth)

    def each_row(scores, labels, gradient, sums, scale):
        width, operands = scores.shape[1], (scores, labels, gradient, sums, scale)
        if width <= most:
            for r in range(labels.size):
                emit_row(narrow, r, width, operands)
        else:
            for r in range(labels.size):
                emit_row(wide, r, width, operands)

    return each_row


@compiled_with_arrays
def _block(scores, labels, gradient, scale):
    sums = np.empty(2 * labels.size, scores.dtype)  # [rows, 2]
    _each_row(scores, labels, gradient, sums, scores.dtype.type(scale))
    loss, product = 0.0, 1.0
    for r in range(labels.size):
        loss -= sums[2 * r + 1]
        product *= sums[2 * r]
        if r % ROWS_A_LOG == ROWS_A_LOG - 1:
            loss += math.log(product)
            product = 1.0
    return loss + math.log(product)


@compiled
def block(scores, labels, gradient, scale):
    """(sum of the losses of some rows, the first of them whose label is out of range or -1)."""
    for r in range(labels.size):
        if labels[r] < 0 or labels[r] >= scores.shape[1]:
            return 0.0, r
    return _block(scores, labels, gradient, scale), -1


register_block("softmax", block, curvature=0.5)


@compiled_parallel
def _blocks(scores, labels, gradient, scale, length, sums, wrong):
    for number in prange(sums.size):
        first, last = number * length, min((number + 1) * length, labels.size)
        sums[number], at = block(scores[first:last], labels[first:last], gradient[first:last], scale)
        wrong[number] = at if at < 0 else first + at


def cpu(scores, labels, gradient):
    """On the cores of this machine."""
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
    """On a CUDA device."""
    device, (rows, width) = devices.of(gradient), scores.shape
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
    """Launch the kernel: fills gradient, losses float64 [R], and wrong int64 [1] as `softmax.cu` says.

    Rows from `counted` on, int64 [1] on the device, have no part; by default all have.
    """
    rows, width = scores.shape
    group, kept = next((shape for shape in _SHAPES if shape[0] * shape[1] >= width), _SHAPES[-1])
    name = f"softmax<{c_name(gradient.dtype)}, {group}, {kept}>"
    operands = scores, labels, gradient, rows, width, *rows_of(counted, wrong), losses, wrong
    devices.of(gradient).launch(_CUDA, name, blocks(rows * group), *operands)


def cost(s: Sizes) -> Cost:
    """Scores and labels in, gradient out."""
    work = ("exp", s.R * s.N), ("pass", 3 * s.R * s.N)
    return Cost(18 * s.R * s.N, 2 * s.R * s.N * s.value + 8 * s.R, work=work)


def arguments(case: Case) -> tuple:
    """Scores of which some underflow, labels, and a gradient to overwrite."""
    labels = np.random.default_rng(case.seed).integers(0, case.N, case.R)
    return 20 * case.dense(case.R, case.N), labels, case.garbage(case.R, case.N)


register(
    Kernel(
        name="softmax",
        operands="scores:f[R,N] labels:l[R] gradient:f[R,N]",
        reference=reference,
        cpu=cpu,
        gpu=gpu,
        cost=cost,
        arguments=arguments,
        why_below="rows are short: their largest, their sum, its division and its logarithm are single numbers, and "
        "each waits for the one before",
        writes=("gradient",),
    )
)
