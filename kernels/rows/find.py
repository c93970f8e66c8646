"""out[i] = the place of indices[i] among the stored rows, or -1 where it is not one of them.

Arguments  indices int32|int64 [z], in any order; stored int64 [U], ascending
Writes     out int64 [z], overwritten; nothing else changes
Assumes    stored ascends without repetition
Cost       no flops; reads z*index + U*8 bytes, z*log2(U) of them each 8 bytes of stored, and writes z*8
Parallel   over indices, in parts of equal size; the result is unique
Limits     z, U < 2**63; nothing grows with the largest index
Source     Binary search, Knuth vol. 3, 6.2.1, without a branch. Differs: all indices of a block take each step
           together, so that their reads are under way at once
"""

import numpy as np
from numba import prange

from kernels import devices
from kernels.contract import Case, Cost, Sizes, register_kernel
from kernels.gpu.source import blocks, source
from kernels.threads import call_parallel, compiled, compiled_parallel

BLOCK = 256
"""Indices that are searched for together."""


def reference(indices, stored, out):
    """Find the position of each index among the stored rows in plain loops.

    indices int32|int64 [z], in any order; stored int64 [U], strictly ascending. out int64 [z] is overwritten by the
    position of indices[i] in `stored`, or -1 if it is not there.
    """
    for i in range(indices.size):
        out[i] = -1
        for u in range(stored.size):
            if stored[u] == indices[i]:
                out[i] = u


@compiled
def _search(indices, stored, out):
    """Write the position of each index in `stored` int64 [U], ascending, or -1, to out; branchless binary search.

    `stored` must not be empty.
    """
    out[:] = 0
    length = np.int64(stored.size)
    while length > 1:
        half = length // 2
        for i in range(indices.size):
            middle = out[i] + half
            out[i] = middle if stored[np.uint64(middle)] <= indices[i] else out[i]
        length -= half
    for i in range(indices.size):
        out[i] = out[i] if stored[np.uint64(out[i])] == indices[i] else -1


@compiled_parallel
def _blocks(indices, stored, out, count):
    """Write the position in `stored` [U] of each of `indices` [z], or -1, to out [z], by `count` parallel blocks."""
    for block in prange(count):
        part = slice(block * BLOCK, min((block + 1) * BLOCK, indices.size))
        _search(indices[part], stored, out[part])


def cpu(indices, stored, out):
    """Find the position of each index among the stored rows on the CPU.

    indices int32|int64 [z], in any order; stored int64 [U], strictly ascending. out int64 [z] is overwritten by the
    position of indices[i] in `stored`, or -1 if it is not there.
    """
    if not stored.size:
        out[...] = -1
        return
    steps = int(stored.size).bit_length()
    call_parallel(_blocks, indices.size * steps, indices, stored, out, -(-indices.size // BLOCK))


_CUDA = source(__file__, ["find"])


def gpu(indices, stored, out):
    """Find the position of each index among the stored rows on a CUDA device.

    indices int32|int64 [z], in any order; stored int64 [U], strictly ascending. out int64 [z] is overwritten by the
    position of indices[i] in `stored`, or -1 if it is not there.
    """
    sought = indices, indices.dtype == np.int64, indices.size
    devices.device_of(out).launch(_CUDA, "find", blocks(indices.size), *sought, stored, stored.size, out)


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a call with sizes `s`: stored rows are read once.

    The cache serves one of them for every step of every search.
    """
    return Cost(0, s.z * (s.index + 8) + 8 * s.U, 8 * s.z * max(s.U, 1).bit_length())


def arguments(case: Case) -> tuple:
    """Build operands from `case`: A's columns, sought among every other one of them and three not in A."""
    stored = np.union1d(np.unique(case.indices)[::2], case.D + np.arange(3)).astype(np.int64)
    return case.indices, stored, np.full(case.indices.size, 7, np.int64)


register_kernel(__name__, "find_rows", "indices:i[z] stored:l[U]<< out:l[z]")
