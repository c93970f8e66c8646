"""Losses and slopes of a batch in plain Numba loops, shared by the loops over dense and over sparse rows.

Scores [rows, padded] become slopes in place: the gradient of the batch's mean loss by the scores. One output is
logistic regression, several are softmax; columns from `outputs` on are padding and become 0.
"""

import numpy as np

from kernels.code_cache import njit

loop = njit(nogil=True, error_model="numpy", fastmath=True)
"""Decorator of serial loops: sums may be reordered, as a user's loops allow."""
threaded = njit(nogil=True, error_model="numpy", fastmath=True, parallel=True)
"""Decorator of the same loops with `prange` on all threads allowed."""

LEAST = np.float32(-87.0)
LOG2_E, LN_2_HIGH, LN_2_LOW = np.float32(1.44269504), np.float32(0.693359375), np.float32(-2.12194440e-4)
C2, C3, C4, C5, C6 = (np.float32(1 / factor) for factor in (2, 6, 24, 120, 720))
ZERO, ONE, HALF = np.float32(0), np.float32(1), np.float32(0.5)
BIAS, SHIFT = np.int32(127), np.int32(23)


@loop
def exponential(x):
    """exp of a float32 that is at most 0, to about 2e-7: 2**k times a polynomial (Taylor, |r| <= ln 2 / 2)."""
    x = max(x, LEAST)
    k = np.floor(x * LOG2_E + HALF)
    r = x - k * LN_2_HIGH - k * LN_2_LOW
    power = np.int32((np.int32(k) + BIAS) << SHIFT).view(np.float32)
    return power * (ONE + r * (ONE + r * (C2 + r * (C3 + r * (C4 + r * (C5 + r * C6))))))


@loop
def binary(scores, labels, rows, first, stop, share):
    """Return the slopes of logistic regression of the batch's rows `first` to `stop`, times `share`.

    The sum of their losses.
    """
    total = 0.0
    for i in range(first, stop):
        score, label = scores[i, 0], np.float32(labels[rows[i]])
        small = np.exp(-abs(score))
        total += max(score, ZERO) - score * label + np.log1p(small)
        scores[i, 0] = ((ONE if score >= ZERO else small) / (ONE + small) - label) * share
    return total


@loop
def softmax(scores, labels, rows, first, stop, outputs, share):
    """Return the slopes of softmax regression of the batch's rows `first` to `stop`, times `share`.

    The sum of their losses.
    """
    total = 0.0
    for i in range(first, stop):
        row, label = scores[i], labels[rows[i]]
        largest = row[0]
        for n in range(outputs):
            largest = max(largest, row[n])
        own, parts = row[label], ZERO
        for n in range(outputs):
            row[n] = exponential(row[n] - largest)
            parts += row[n]
        total += np.log(parts) + largest - own
        factor = share / parts
        for n in range(outputs):
            row[n] *= factor
        for n in range(outputs, row.size):
            row[n] = ZERO
        row[label] -= share
    return total


@loop
def slopes(scores, labels, rows, first, stop, outputs, share):
    """Turn the scores of the batch's rows `first` to `stop` into slopes: the sum of their losses."""
    if outputs == 1:
        return binary(scores, labels, rows, first, stop, share)
    return softmax(scores, labels, rows, first, stop, outputs, share)
