"""A random permutation as NumPy's `Generator.permutation`, bit for bit, in about half of its time.

Source: Fisher and Yates, from the last position down, each swapped with one up to it: as many bits of a 32-bit number
as the position has, drawn again if they exceed it.
"""

import sys

import numpy as np

from kernels.threads import compiled

FEW = 1000
"""Numbers up to which NumPy is about as fast."""

MOST = 1 << 31
"""Numbers from which on it draws 64 bits for each."""

DRAWS, SPREAD = 1.48, 8
"""Draws for each number, of which up to 1.472 are needed in the mean, and spare ones by the root of their number."""


@compiled
def _shuffle(order, draws):
    """Shuffle `order` int64 in place by random `draws` uint32, which are overwritten; False if they were too few.

    First the accepted draws are moved to the front, without a branch that no processor predicts, then the elements are
    exchanged: an exchange for each draw as it comes waits for the one before it.
    """
    used, last, mask, size = np.uint64(0), np.uint64(order.size - 1), np.uint64(1), np.uint64(draws.size)
    while mask < last:
        mask = np.uint64(2) * mask + np.uint64(1)
    while last > np.uint64(0):
        half = mask >> np.uint64(1)
        while last > half and used < size:
            value = np.uint64(draws[used]) & mask
            used += np.uint64(1)
            draws[np.uint64(order.size - 1) - last] = value
            last -= np.uint64(value <= last)
        if last > half:
            return False
        mask = half
    end = np.uint64(order.size - 1)
    for k in range(end):
        one, other = np.uint64(draws[np.uint64(k)]), end - np.uint64(k)
        order[one], order[other] = order[other], order[one]
    return True


def permutation(random: np.random.Generator, total: int) -> np.ndarray:
    """Return the integers 0 to `total` - 1, int64, in the random order of `random.permutation(total)`. O(total).

    `random` must have drawn nothing yet, and is afterwards not in the state that its own `permutation` would leave.

    >>> one, other = (np.random.default_rng(5) for _ in range(2))
    >>> bool((permutation(one, 1000) == other.permutation(1000)).all())
    True
    """
    raw = random.bit_generator
    if not FEW <= total < MOST or type(raw) is not np.random.PCG64 or sys.byteorder != "little":
        return random.permutation(total)
    state, order = raw.state, np.arange(total)
    draws = raw.random_raw(int(DRAWS * total + SPREAD * total**0.5) // 2).view(np.uint32)
    if state["has_uint32"] or not _shuffle(order, draws):
        raw.state = state
        return random.permutation(total)
    return order
