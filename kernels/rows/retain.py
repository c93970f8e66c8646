"""(kept, rows): those of the stored rows whose index is wanted.

Arguments  indices int32|int64 [U], ascending; values float32|float64 [U, N]; wanted type of indices [V], in any order
Writes     nothing; returns kept, type of indices [K], ascending, and rows [K, N]
Assumes    indices ascend without repetition; a wanted row that is not stored is left out, one named twice comes once
Cost       no flops; reads (U+V)*index + K*N*value bytes, writes K*(index+N*value); at most U rows, counted as U here
Parallel   the copies, over rows in parts of equal height; the result is unique
Limits     U, V < 2**63; wanted that does not ascend is sorted first, by the sort of the batch plan
Source     Intersection of sorted lists, every step without a branch
"""

import numpy as np

from kernels import devices
from kernels.contract import Case, Cost, KernelError, Sizes, register_kernel
from kernels.gpu import indices as on_device
from kernels.gpu.source import blocks, source
from kernels.plan import sort_segments
from kernels.rows import take
from kernels.threads import compiled


def reference(indices, values, wanted):
    """Select the stored rows whose index is wanted in plain loops.

    indices int32|int64 [U], strictly ascending; values [U, N]; wanted [V] of the same index dtype, in any order.
    Returns new arrays: the kept indices [K], ascending, and their rows [K, N]; wanted rows that are not stored are
    skipped.
    """
    places = [u for u in range(indices.size) if indices[u] in wanted.tolist()]
    rows = np.empty((len(places), values.shape[1]), values.dtype)
    for k, u in enumerate(places):
        rows[k] = values[u]
    return np.array([indices[u] for u in places], indices.dtype), rows


@compiled
def _ascends(wanted):
    """Return whether the indices `wanted`, int32 or int64 [V], are strictly ascending. Compiled; O(V)."""
    ascends = True
    for v in range(wanted.size - 1):
        ascends &= wanted[v] < wanted[v + 1]
    return ascends


@compiled
def _intersect(indices, wanted, places):
    """Write the positions in `indices` [U] of those in `wanted` [V], both ascending, to `places`; return their count.

    `places` int64 is at least one longer than the shorter list.
    """
    u = v = count = np.uint64(0)
    while u < np.uint64(indices.size) and v < np.uint64(wanted.size):
        stored, sought = indices[u], wanted[v]
        places[count] = u
        count += np.uint64(stored == sought)
        u += np.uint64(stored <= sought)
        v += np.uint64(sought <= stored)
    return np.int64(count)


def wrong_row(row: int) -> KernelError:
    """Return, without raising it, the error for a negative wanted index."""
    return KernelError(f"retain_rows: a wanted row is {row}; rows count from 0.")


def cpu(indices, values, wanted):
    """Select the stored rows whose index is wanted on the CPU.

    indices int32|int64 [U], strictly ascending; values [U, N]; wanted [V] of the same index dtype, in any order.
    Returns new arrays: the kept indices [K], ascending, and their rows [K, N]; wanted rows that are not stored are
    skipped. Raises KernelError for a negative wanted index of an unsorted list.
    """
    if not _ascends(wanted):
        if (least := wanted.min()) < 0:
            raise wrong_row(least)
        wanted = sort_segments(wanted, int(wanted.max()) + 1)[0].astype(indices.dtype, copy=False)
    places = np.empty(min(indices.size, wanted.size) + 1, np.int64)  # one more, which the last step may write
    places = places[: _intersect(indices, wanted, places)]
    rows = np.empty((places.size, values.shape[1]), values.dtype)
    take.cpu(values, places, rows)
    return indices[places], rows


_CUDA = source(__file__, ["mark_wanted", "list_wanted"])


def gpu(indices, values, wanted):
    """Select the stored rows whose index is wanted on a CUDA device; waits for it.

    Operands and results as `cpu`, on the device. Raises KernelError for a negative wanted index.
    """
    device, stored, wide = devices.device_of(values), indices.size, on_device.is_wide(indices)
    _, least, _ = on_device.survey(wanted, 0)
    if least < 0:
        raise wrong_row(least)
    flags = device.zeros(stored, np.int64)  # [U]
    device.launch(_CUDA, "mark_wanted", blocks(wanted.size), indices, stored, wanted, wanted.size, wide, flags)
    ranks = on_device.scan(flags, np.int64)
    kept = int(device.read(ranks[stored:])[0])  # synchronize!
    places = device.empty(kept, np.int64)
    device.launch(_CUDA, "list_wanted", blocks(stored), ranks, stored, places)
    rows = device.empty((kept, values.shape[1]), values.dtype)
    take.gpu(values, places, rows)
    return on_device.gathered(indices, places), rows


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a call with sizes `s`, as if all U stored rows were kept and as many wanted."""
    return Cost(0, 3 * s.U * s.index + 2 * s.U * s.N * s.value, s.U * s.N * s.value)


def arguments(case: Case) -> tuple:
    """Build operands of a call from `case`: rows stored for the columns of A.

    Wanted are even row numbers, backwards, some twice.
    """
    indices = np.unique(case.indices)
    wanted = (2 * np.arange(case.R) % max(case.D, 1))[::-1].astype(indices.dtype)
    return indices, case.dense(indices.size, case.N), wanted


register_kernel(__name__, "retain_rows", "indices:i[U]<< values:f[U,N] wanted:i[V]<", writes=())
