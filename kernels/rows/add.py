"""(indices, sums): two sets of stored rows added, a row that only one of them has as it is.

Arguments  left_indices int32|int64 [U], ascending; left_values float32|float64 [U, N]; right_indices, type of the other
           [V], ascending; right_values [V, N]
Writes     nothing; returns indices, type of left_indices [W], ascending, and sums [W, N]
Assumes    the indices of each side ascend without repetition
Cost       U*N flops; reads (U+V)*(index+N*value) bytes, writes W*(index+N*value); counted here with V and W as U
Parallel   the sums, over rows in parts of equal height; left + right, so the result is unique
Limits     U + V < 2**63; nothing grows with the largest index
Source     Merge of sorted lists, Knuth vol. 3, 5.2.4, every step without a branch
"""

import numpy as np
from numba import prange

from kernels import devices
from kernels.contract import Case, Cost, Sizes, register_kernel
from kernels.gpu import indices as on_device
from kernels.gpu.source import FLOATS, blocks, c_name, source
from kernels.threads import compiled, compiled_parallel, equal_count, is_serial, parts


def reference(left_indices, left_values, right_indices, right_values):
    """Add two sets of stored rows in plain loops.

    left_indices [U], right_indices [V] int32|int64, strictly ascending; values [U, N], [V, N] float32|float64. Returns
    new arrays: the union of the indices [W], ascending, and the sums [W, N]; a row of one side only is copied.
    """
    union = sorted(set(left_indices.tolist()) | set(right_indices.tolist()))
    sums = np.zeros((len(union), left_values.shape[1]), left_values.dtype)
    for indices, values in ((left_indices, left_values), (right_indices, right_values)):
        for u in range(indices.size):
            for n in range(sums.shape[1]):
                sums[union.index(indices[u]), n] += values[u, n]
    return np.array(union, left_indices.dtype), sums


@compiled
def _merge(left, right, union, from_left, from_right):
    """Write the union of two ascending index lists, and the position of each in either list (-1: absent).

    Return its size. left [U], right [V]; `union`, from_left and from_right [U + V] are overwritten up to that size.
    """
    u, v, count, one = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(1)
    while u < np.uint64(left.size) and v < np.uint64(right.size):
        a, b = left[u], right[v]
        takes_a, takes_b = np.uint64(a <= b), np.uint64(b <= a)
        union[count] = min(a, b)
        from_left[count] = np.int64(u + one) * np.int64(takes_a) - 1
        from_right[count] = np.int64(v + one) * np.int64(takes_b) - 1
        u += takes_a
        v += takes_b
        count += one
    for k in range(u, np.uint64(left.size)):
        union[count], from_left[count], from_right[count] = left[k], k, -1
        count += one
    for k in range(v, np.uint64(right.size)):
        union[count], from_left[count], from_right[count] = right[k], -1, k
        count += one
    return np.int64(count)


@compiled
def _add(left, right, from_left, from_right, sums, first, last):
    """Write sums[w] = left[from_left[w]] + right[from_right[w]], for first <= w < last.

    Position -1 is an absent row.
    """
    for w in range(first, last):
        a, b = from_left[w], from_right[w]
        if b < 0:
            for n in range(sums.shape[1]):
                sums[w, n] = left[np.uint64(a), n]
        elif a < 0:
            for n in range(sums.shape[1]):
                sums[w, n] = right[np.uint64(b), n]
        else:
            for n in range(sums.shape[1]):
                sums[w, n] = left[np.uint64(a), n] + right[np.uint64(b), n]


@compiled_parallel
def _add_parts(left, right, from_left, from_right, sums, bounds):
    """Write all rows of sums [W, N] on several threads, as `_add`; part p does rows bounds[p] to bounds[p + 1] - 1.

    left [U, N] and right [V, N] are the values, from_left and from_right [W] the positions in them, -1 for an absent
    row.
    """
    for part in prange(bounds.size - 1):
        _add(left, right, from_left, from_right, sums, bounds[part], bounds[part + 1])


def cpu(left_indices, left_values, right_indices, right_values):
    """Add two sets of stored rows on the CPU.

    left_indices [U], right_indices [V] int32|int64, strictly ascending; values [U, N], [V, N] float32|float64. Returns
    new arrays: the union of the indices [W], ascending, and the sums [W, N]; a row of one side only is copied.
    """
    most = left_indices.size + right_indices.size
    union, from_left, from_right = (
        np.empty(most, left_indices.dtype),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
    )
    size = _merge(left_indices, right_indices, union, from_left, from_right)
    sums = np.empty((size, left_values.shape[1]), left_values.dtype)
    if is_serial(sums.size):
        _add(left_values, right_values, from_left, from_right, sums, 0, size)
    else:
        _add_parts(left_values, right_values, from_left, from_right, sums, equal_count(size, parts()))
    return union[:size].copy(), sums


_CUDA = source(__file__, ["mark_new", "unite", *[f"add_rows<{value}>" for value in FLOATS]])


def gpu(left_indices, left_values, right_indices, right_values):
    """Add two sets of stored rows on a CUDA device.

    left_indices [U], right_indices [V] int32|int64, strictly ascending; values [U, N], [V, N] float32|float64. Returns
    new arrays: the union of the indices [W], ascending, and the sums [W, N]; a row of one side only is copied.
    """
    device, width = devices.device_of(left_values), left_values.shape[1]
    sides = left_indices, left_indices.size, right_indices, right_indices.size, on_device.is_wide(left_indices)
    flags = device.empty(right_indices.size, np.int64)  # [V]
    device.launch(_CUDA, "mark_new", blocks(flags.size), *sides, flags)
    ranks = on_device.scan(flags, np.int64)
    size = left_indices.size + int(device.read(ranks[flags.size :])[0])  # synchronize!
    union, from_left, from_right = (device.empty(size, kind) for kind in (left_indices.dtype, np.int64, np.int64))
    most = left_indices.size + right_indices.size
    device.launch(_CUDA, "unite", blocks(most), *sides, ranks, union, from_left, from_right)
    sums = device.empty((size, width), left_values.dtype)
    values = left_values, right_values, from_left, from_right, sums, size, width
    device.launch(_CUDA, f"add_rows<{c_name(sums.dtype)}>", blocks(32 * size), *values)
    return union, sums


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a call with sizes `s`, as if both operands had the same U rows of N values."""
    return Cost(s.U * s.N, 3 * s.U * (s.index + s.N * s.value))


def arguments(case: Case) -> tuple:
    """Build operands of a call from `case`: the distinct columns of A, those halved, and random values of both."""
    left, right = np.unique(case.indices), np.unique(case.indices // 2)
    return left, case.dense(left.size, case.N), right, case.dense(right.size, case.N, salt=1)


register_kernel(
    __name__,
    "add_rows",
    "left_indices:i[U]<< left_values:f[U,N] right_indices:i[V]<< right_values:f[V,N]",
    writes=(),
)
