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

TOGETHER, MANY_ROWS = 4, 1 << 16
"""Neighbouring rows that `permutation_of_rows` keeps together, and rows from which on it does."""

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


def permutation_of_rows(random: np.random.Generator, total: int) -> np.ndarray:
    """Return a random order of `total` rows, int64, in which of many rows each `TOGETHER` neighbours stay together.

    Which rows are neighbours differs by a random offset from call to call. Of fewer than `MANY_ROWS` rows it is
    `permutation`, as is what `random` must be like. O(total).

    Notes
    -----
    It is for passes that visit single rows of a matrix in memory, as dual ascent does: the next rows are then in cache
    lines and pages that were just read. Measured in turns on one core of a Xeon (2 MB of L2, 480 MB of shared L3) that
    was busy with other programs, a pass of dual ascent took 0.8 to 0.97 of the time with 99,000 texts (82 MB), 0.66 to
    0.77 with 1.8 million clicks (128 MB), 0.55 to 0.67 with 270,000 rows of 50 values (108 MB) and 0.7 with a million
    texts (825 MB). The duality gap was as low after as many passes, but that of texts, after up to 1.12 times as many.
    With 8 rows together a pass took 0.5 to 0.8 of the time, but 33,000 rows of few columns needed 1.3 times as many
    passes, and with 4 of them 1.1, so few rows are drawn one by one. With blocks of 1 MB it is up to 3 times as many.

    Two other orders were slower. To visit each block of 1 MB twice (Yu et al. 2010) took 1.6 times the time to the same
    gap: a visit of a million texts is then 0.8 times as long, but 1.5 times as many are needed. To visit rows between
    passes again whose dual variables hold 90 % of the change of the last pass took 0.96 to 1.03 of the time to gaps of
    1e-2 to 1e-4 in the mean of 18 configurations, and 1.4 at worst; it gains a third where a decay is so weak that
    Newton's method is what takes long (of texts 0.98 of the whole training).

    Examples
    --------
    >>> order = permutation_of_rows(np.random.default_rng(0), 70_000)
    >>> len(set(order.tolist())), round(float((np.diff(order) == 1).mean()), 2)
    (70000, 0.75)
    """
    if total < MANY_ROWS:
        return permutation(random, total)
    first = permutation(random, -(-total // TOGETHER) + 1) * TOGETHER - random.integers(TOGETHER)
    order = (first[:, None] + np.arange(TOGETHER)).reshape(-1)
    return order[(order >= 0) & (order < total)]
