"""(unique, sums): rows with the same index added up.

Arguments  indices int32|int64 [z], in any order; values float32|float64 [z, N]
Writes     nothing; returns unique int64 [U], sorted, and sums [U, N]
Assumes    nothing; negative indices are refused
Cost       z*N flops; reads z*(index+N*value) bytes, sorts the indices, writes U*(8+N*value)
Parallel   the sums, over the unique rows in parts of equal cost; terms are added in one order: same bits always
Limits     z < 2**63; time and memory do not grow with the largest index
Source     Radix sort and segmented sum: the sort is that of the batch plan, the sum the product with a matrix of ones
"""

import numpy as np

from kernels import devices
from kernels.contract import Case, Cost, KernelError, Sizes, register_kernel
from kernels.gpu import indices as on_device
from kernels.plan import index_type, sort_segments
from kernels.products import csr_dense_ones


def reference(indices, values):
    """Sum rows with the same index in plain loops.

    indices int32|int64 [z], in any order; values float32|float64 [z, N]. Returns new arrays: unique int64 [U],
    ascending, and sums [U, N].
    """
    unique = sorted(set(indices.tolist()))
    sums = np.zeros((len(unique), values.shape[1]), values.dtype)
    for k in range(indices.size):
        for n in range(values.shape[1]):
            sums[unique.index(indices[k]), n] += values[k, n]
    return np.array(unique, np.int64), sums


def wrong_index(index: int) -> KernelError:
    """Return, without raising it, the error for a negative index."""
    return KernelError(f"merge_rows: an index is {index}; rows count from 0.")


def cpu(indices, values):
    """Sum rows with the same index on the CPU.

    indices int32|int64 [z], in any order; values float32|float64 [z, N]. Returns new arrays: unique int64 [U],
    ascending, and sums [U, N]. Raises KernelError for a negative index.
    """
    if indices.size and (least := indices.min()) < 0:
        raise wrong_index(least)
    unique, segments, order = sort_segments(indices, int(indices.max(initial=0)) + 1)
    sums = np.empty((unique.size, values.shape[1]), values.dtype)
    csr_dense_ones.cpu(segments, order, values, sums)
    return unique, sums


def gpu(indices, values):
    """Sum rows with the same index on a CUDA device.

    indices int32|int64 [z], in any order; values float32|float64 [z, N]. Returns new arrays: unique int64 [U],
    ascending, and sums [U, N]. Raises KernelError for a negative index.
    """
    _, least, largest = on_device.survey(indices, 0)
    if least < 0:
        raise wrong_index(least)
    kind = index_type(indices.size)
    ordered, order = on_device.sort(indices, largest + 1, kind)
    unique, segments = on_device.runs(ordered, kind)
    sums = devices.device_of(values).empty((unique.size, values.shape[1]), values.dtype)
    csr_dense_ones.gpu(segments, order, values, sums)
    return unique, sums


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a call with sizes `s` without the sort, whose passes depend on the largest index."""
    moved = s.z * (s.index + s.N * s.value) + s.U * (8 + s.N * s.value)
    return Cost(s.z * s.N, moved, s.z * s.N * s.value)


def arguments(case: Case) -> tuple:
    """Build operands from `case`: A's columns with a random row of values for each, as embedding gradients."""
    return case.indices, case.dense(case.indices.size, case.N)


register_kernel(__name__, "merge_rows", "indices:i[z]< values:f[z,N]", writes=())
