"""Validation of index arrays in one pass: row pointers that rise from 0 to nnz, indices in range, ascending indices.

Compiled code follows any index: an index out of range ends the process or overwrites other data. The functions
only return whether an array is valid, in a few microseconds per batch; callers build the message.

>>> starts = np.array([0, 2, 3])
>>> is_compressed(starts, np.array([0, 4, 1]), 5), is_compressed(starts, np.array([0, 5, 1]), 5)
(True, False)
"""

from typing import Any

import numpy as np
from numba import prange

from kernels.threads import compiled, compiled_parallel, compiled_part, equal_count, is_serial, parts

# Arrays as compiled code sees them: C-contiguous, aligned and writable, so that it is compiled once for each type.


def plain(array: np.ndarray) -> np.ndarray:
    """Return an array for reading by compiled code: itself, an alias if it is read-only, a copy if not contiguous."""
    flags = array.flags
    if flags.carray:
        return array
    if flags.c_contiguous and flags.aligned:
        return np.asarray(_Alias(array))
    copied = np.empty(array.shape, array.dtype)
    copied[...] = array
    return copied


class _Alias:
    """The memory of a read-only array under a writable face, for compiled code that is tested never to write it."""

    def __init__(self, source: np.ndarray) -> None:
        """Describe the memory of `source` as writable by an array interface; keeps `source` alive."""
        self.source = source
        self.__array_interface__: dict[str, Any] = {**source.__array_interface__, "data": (source.ctypes.data, False)}


SERIAL_ENTRIES = 8
"""Indices that are compared in the time of a multiply-add of `threads.is_serial`, which come from memory."""

FEW = 1 << 17
"""Below so many indices, plain ones are checked with no more than one call: in the midst of a step, where nothing of
this is in a cache, every further one costs microseconds."""


PLACE, MIX_FIRST, MIX_SECOND = map(np.uint64, (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
"""Factors of `mix_bits`: 2^64 by the golden ratio, and those of SplitMix64 (Steele, Lea and Flood 2014)."""


def mix_bits(numbers: np.ndarray) -> np.ndarray:
    """Return each number with its bits mixed, uint64 of the same shape: the one-to-one last step of SplitMix64.

    Reference: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, 2014.
    """
    numbers = (numbers ^ (numbers >> np.uint64(30))) * MIX_FIRST
    numbers = (numbers ^ (numbers >> np.uint64(27))) * MIX_SECOND
    return numbers ^ (numbers >> np.uint64(31))


@compiled_part
def _in_range(indices, limit):
    """Return whether all indices [z] are in [0, limit), by minimum and maximum in their own dtype, as vector code."""
    least = most = indices.dtype.type(0)
    for k in range(indices.size):
        least = min(least, indices[k])
        most = max(most, indices[k])
    return indices.size == 0 or (least >= 0 and most < limit)


@compiled_parallel
def _in_range_parts(indices, limit, bounds):
    """Return whether all indices [z] are in [0, limit), on several threads.

    Part p does bounds[p] to bounds[p + 1] - 1.
    """
    wrong = 0
    for part in prange(bounds.size - 1):
        wrong += not _in_range(indices[bounds[part] : bounds[part + 1]], limit)
    return wrong == 0


@compiled_part
def _rises(starts, entries):
    """Return whether row pointers [R + 1] start at 0, never decrease, and end at `entries`; False if empty."""
    falls = False
    for r in range(starts.size - 1):
        falls |= starts[r + 1] < starts[r]
    return starts.size > 0 and starts[0] == 0 and not falls and starts[starts.size - 1] == entries


@compiled_part
def are_compressed(starts, indices, limit):
    """Return whether `starts` [R + 1] are valid row pointers of `indices` [z], all in [0, limit); in compiled code."""
    return _rises(starts, indices.size) and _in_range(indices, limit)


@compiled
def _are_in_range(indices, limit):
    """Return whether all indices [z] are in [0, limit); callable from Python."""
    return _in_range(indices, limit)


@compiled
def _are_pointers(starts, entries):
    """Return whether row pointers [R + 1] start at 0, never decrease, and end at `entries`; callable from Python."""
    return _rises(starts, entries)


@compiled
def _is_compressed(starts, indices, limit):
    """Return whether `starts` [R + 1] are valid row pointers of `indices` [z], all in [0, limit)."""
    return are_compressed(starts, indices, limit)


@compiled
def _is_rising(indices, limit):
    """Return whether the indices [U] are strictly ascending within [0, limit); True if empty."""
    stays = False
    for k in range(indices.size - 1):
        stays |= indices[k + 1] <= indices[k]
    return not stays and (indices.size == 0 or (indices[0] >= 0 and indices[indices.size - 1] < limit))


def in_range(indices: np.ndarray, limit: int) -> bool:
    """Return whether every index, int32 or int64 [z], is in [0, limit). O(z)."""
    indices = plain(indices)
    if is_serial(indices.size // SERIAL_ENTRIES):
        return _are_in_range(indices, limit)
    return _in_range_parts(indices, limit, equal_count(indices.size, parts()))


def rises(starts: np.ndarray, entries: int) -> bool:
    """Return whether row pointers, int32 or int64 [R + 1], begin at 0, never decrease, and end at `entries`. O(R)."""
    return _are_pointers(plain(starts), entries)


def is_compressed(starts: np.ndarray, indices: np.ndarray, limit: int) -> bool:
    """Return whether `starts` [R + 1] are row pointers of `indices` [z], of its dtype, all in [0, limit). O(R + z)."""
    if indices.size < FEW and starts.flags.carray and indices.flags.carray:
        return _is_compressed(starts, indices, limit)
    starts, indices = plain(starts), plain(indices)
    if is_serial(indices.size // SERIAL_ENTRIES):
        return _is_compressed(starts, indices, limit)
    return _are_pointers(starts, indices.size) and _in_range_parts(indices, limit, equal_count(indices.size, parts()))


def is_rising(indices: np.ndarray, limit: int) -> bool:
    """Return whether indices, int32 or int64 [U], ascend strictly within [0, limit). O(U)."""
    return _is_rising(plain(indices), limit)
