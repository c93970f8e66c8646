"""(unique, sums): rows with the same index added up, in the order in which they came.

Arguments  indices int32|int64 [z], in any order; values float32|float64 [z, N]
Writes     nothing; returns unique int64 [U], sorted, and sums [U, N]
Assumes    nothing; negative indices are refused
Cost       z*N flops; reads z*(index+N*value) bytes, sorts the indices, writes U*(8+N*value)
Parallel   the sums, over the unique rows in parts of equal cost; same bits on every run and thread count
Limits     z < 2**63; time and memory do not grow with the largest index
Source     Radix sort and segmented sum; the sort is that of the batch plan
"""

import numpy as np
from numba import prange

from kernels.contract import Case, Cost, Kernel, KernelError, Sizes
from kernels.plan import sort_segments
from kernels.registry import register
from kernels.threads import compiled, compiled_parallel, equal_cost, is_serial, parts


def reference(indices, values):
    """The definition, in plain loops."""
    unique = sorted(set(indices.tolist()))
    sums = np.zeros((len(unique), values.shape[1]), values.dtype)
    for k in range(indices.size):
        for n in range(values.shape[1]):
            sums[unique.index(indices[k]), n] += values[k, n]
    return np.array(unique, np.int64), sums


@compiled
def _sum(values, order, segments, sums, first, last):
    for u in range(first, last):
        source = order[segments[u]]
        for n in range(sums.shape[1]):
            sums[u, n] = values[source, n]
        for k in range(segments[u] + 1, segments[u + 1]):
            source = order[k]
            for n in range(sums.shape[1]):
                sums[u, n] += values[source, n]


@compiled
def _sum_of_one(values, order, segments, sums, first, last):
    """`_sum` for N = 1: the sum stays in a register."""
    for u in range(first, last):
        start, end = np.uint64(segments[u]), np.uint64(segments[u + 1])
        total = values[np.uint64(order[start])]
        for k in range(start + np.uint64(1), end):
            total += values[np.uint64(order[k])]
        sums[u] = total


@compiled_parallel
def _sum_parallel(values, order, segments, sums, bounds):
    for part in prange(bounds.size - 1):
        _sum(values, order, segments, sums, bounds[part], bounds[part + 1])


@compiled_parallel
def _sum_of_one_parallel(values, order, segments, sums, bounds):
    for part in prange(bounds.size - 1):
        _sum_of_one(values, order, segments, sums, bounds[part], bounds[part + 1])


def cpu(indices, values):
    """On the cores of this machine."""
    if indices.size and (least := indices.min()) < 0:
        raise KernelError(f"merge_rows: an index is {least}; rows count from 0.")
    unique, segments, order = sort_segments(indices, int(indices.max(initial=0)) + 1)
    sums = np.empty((unique.size, values.shape[1]), values.dtype)
    serial, parallel, target = _sum, _sum_parallel, sums
    if values.shape[1] == 1:
        serial, parallel, values, target = _sum_of_one, _sum_of_one_parallel, values.reshape(-1), sums.reshape(-1)
    if is_serial(values.size):
        serial(values, order, segments, target, 0, unique.size)
    else:
        parallel(values, order, segments, target, equal_cost(segments, parts()))
    return unique, sums


gpu = None


def cost(s: Sizes) -> Cost:
    """Without the sort, whose passes depend on the largest index."""
    moved = s.z * (s.index + s.N * s.value) + s.U * (8 + s.N * s.value)
    return Cost(s.z * s.N, moved, s.z * s.N * s.value)


def arguments(case: Case) -> tuple:
    """The columns of A with a row of values each, as gradients of embeddings come."""
    return case.indices, case.dense(case.indices.size, case.N)


register(
    Kernel(
        name="merge_rows",
        operands="indices:i[z] values:f[z,N]",
        reference=reference,
        cpu=cpu,
        gpu=gpu,
        cost=cost,
        arguments=arguments,
        writes=(),
    )
)
