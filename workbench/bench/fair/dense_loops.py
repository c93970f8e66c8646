"""Epochs over dense rows in plain Numba loops: what a user writes who wants dense training fast, all of it in one call.

`copied` gathers each batch and multiplies by BLAS. `in_place` reads rows where they stand: the scores of all rows of a
batch, then the update of the weights, a range of columns for each thread. `buffered` takes few rows at a time through
scores, slopes and gradient, with a gradient for each thread, so that a batch that no cache holds is read once.

Weights are [D, N] for `copied`. For `in_place` and `buffered` they are transposed [padded, D], padded to whole groups
of `GROUP` outputs unless there is one, so that the inner loops run along the columns of X.

Arguments  x float32 [R, D]; labels int64 [R]; order int64 [M]; b [padded]; losses float64 [batches], written;
           xs float32 [batch_rows, D], memory for a batch that is copied
"""

import numpy as np
from numba import prange

from workbench.bench.fair.slopes import ZERO, loop, slopes, threaded

GROUP = 4
"""Rows that share a load of the weights, and outputs that share a load of x."""
TILE = 512
"""Columns whose weights stay in the nearest cache while a batch updates them."""
BLOCK = 16
"""Rows that `buffered` takes at a time."""


def padded(outputs: int) -> int:
    """Return the outputs with padding to whole groups; one output has none.

    >>> padded(1), padded(3), padded(16)
    (1, 4, 16)
    """
    return 1 if outputs == 1 else -(-outputs // GROUP) * GROUP


@loop
def score_rows(x, rows, first, stop, w, b, scores):
    """Scores of the batch's rows `first` to `stop`, two rows and four outputs at a time, or four rows of one output."""
    features = x.shape[1]
    if w.shape[0] == 1:
        for i in range(first, stop, 4):
            r0, r1 = x[rows[i]], x[rows[min(i + 1, stop - 1)]]
            r2, r3 = x[rows[min(i + 2, stop - 1)]], x[rows[min(i + 3, stop - 1)]]
            weights, s0, s1, s2, s3 = w[0], b[0], b[0], b[0], b[0]
            for j in range(features):
                s0 += r0[j] * weights[j]
                s1 += r1[j] * weights[j]
                s2 += r2[j] * weights[j]
                s3 += r3[j] * weights[j]
            scores[i, 0], scores[min(i + 1, stop - 1), 0] = s0, s1 if i + 1 < stop else s0
            if i + 2 < stop:
                scores[i + 2, 0] = s2
            if i + 3 < stop:
                scores[i + 3, 0] = s3
        return
    for i in range(first, stop, 2):
        k = min(i + 1, stop - 1)
        r0, r1 = x[rows[i]], x[rows[k]]
        for n in range(0, w.shape[0], 4):
            w0, w1, w2, w3 = w[n], w[n + 1], w[n + 2], w[n + 3]
            a0, a1, a2, a3 = ZERO, ZERO, ZERO, ZERO
            c0, c1, c2, c3 = ZERO, ZERO, ZERO, ZERO
            for j in range(features):
                a0 += r0[j] * w0[j]
                a1 += r0[j] * w1[j]
                a2 += r0[j] * w2[j]
                a3 += r0[j] * w3[j]
                c0 += r1[j] * w0[j]
                c1 += r1[j] * w1[j]
                c2 += r1[j] * w2[j]
                c3 += r1[j] * w3[j]
            scores[i, n], scores[i, n + 1], scores[i, n + 2], scores[i, n + 3] = a0, a1, a2, a3
            scores[k, n], scores[k, n + 1], scores[k, n + 2], scores[k, n + 3] = c0, c1, c2, c3
        add_to_rows(scores[i : k + 1], b)


@loop
def add_products(x, rows, begin, end, grads, first, stop, scale, w):
    """w[:, first:stop] += scale * grads.T @ x of the batch's rows `begin` to `end`, four rows and two outputs each."""
    for left in range(first, stop, TILE):
        right = min(left + TILE, stop)
        for i in range(begin, end, 4):
            i1, i2, i3 = min(i + 1, end - 1), min(i + 2, end - 1), min(i + 3, end - 1)
            r0, r1 = x[rows[i], left:right], x[rows[i1], left:right]
            r2, r3 = x[rows[i2], left:right], x[rows[i3], left:right]
            f1, f2, f3 = scale * (i + 1 < end), scale * (i + 2 < end), scale * (i + 3 < end)
            if w.shape[0] == 1:
                g0, g1, g2, g3 = scale * grads[i, 0], f1 * grads[i1, 0], f2 * grads[i2, 0], f3 * grads[i3, 0]
                one = w[0, left:right]
                for j in range(one.size):
                    one[j] += g0 * r0[j] + g1 * r1[j] + g2 * r2[j] + g3 * r3[j]
                continue
            for n in range(0, w.shape[0], 2):
                g0, g1, g2, g3 = scale * grads[i, n], f1 * grads[i1, n], f2 * grads[i2, n], f3 * grads[i3, n]
                m = n + 1
                h0, h1, h2, h3 = scale * grads[i, m], f1 * grads[i1, m], f2 * grads[i2, m], f3 * grads[i3, m]
                one, other = w[n, left:right], w[m, left:right]
                for j in range(one.size):
                    one[j] += g0 * r0[j] + g1 * r1[j] + g2 * r2[j] + g3 * r3[j]
                    other[j] += h0 * r0[j] + h1 * r1[j] + h2 * r2[j] + h3 * r3[j]


@loop
def take(one, buffer, rate):
    """one -= rate * buffer, which becomes 0."""
    for j in range(one.size):
        one[j] -= rate * buffer[j]
        buffer[j] = ZERO


@loop
def subtract(w, gradient, rate):
    """w -= rate * gradient, both [rows, outputs]."""
    for i in range(w.shape[0]):
        for n in range(w.shape[1]):
            w[i, n] -= rate * gradient[i, n]


@loop
def subtract_rows(b, grads, count, rate):
    """b -= rate * the sum of the first `count` rows of grads."""
    for i in range(count):
        for n in range(b.size):
            b[n] -= rate * grads[i, n]


@loop
def add_to_rows(scores, b):
    """scores += b, row by row."""
    for i in range(scores.shape[0]):
        for n in range(b.size):
            scores[i, n] += b[n]


@loop
def mean_of(sums, count):
    """Sum of the threads' sums over the count of rows."""
    total = 0.0
    for sum in sums:
        total += sum
    return total / count


def _in_place(x, labels, order, batch_rows, threads, outputs, rate, w, b, losses):
    """Train an epoch on dense rows; each thread owns a range of columns of w. Writes w, b and the loss of each
    batch.
    """
    scores, sums = np.zeros((batch_rows, w.shape[0]), np.float32), np.zeros(threads)
    for k in range(losses.size):
        rows = order[k * batch_rows : (k + 1) * batch_rows]
        share = np.float32(1 / rows.size)
        for t in prange(threads):
            first, stop = rows.size * t // threads, rows.size * (t + 1) // threads
            score_rows(x, rows, first, stop, w, b, scores)
            sums[t] = slopes(scores, labels, rows, first, stop, outputs, share)
        for t in prange(threads):
            first, stop = x.shape[1] * t // threads, x.shape[1] * (t + 1) // threads
            add_products(x, rows, 0, rows.size, scores, first, stop, -rate, w)
        subtract_rows(b, scores, rows.size, rate)
        losses[k] = mean_of(sums, rows.size)


def _buffered(x, labels, order, batch_rows, threads, outputs, rate, w, b, losses):
    """Train an epoch on dense rows; each thread sums a gradient of its own. Writes w, b and the loss of each batch."""
    scores, sums = np.zeros((batch_rows, w.shape[0]), np.float32), np.zeros(threads)
    buffers = np.zeros((threads, w.shape[0], w.shape[1]), np.float32)
    for k in range(losses.size):
        rows = order[k * batch_rows : (k + 1) * batch_rows]
        share = np.float32(1 / rows.size)
        for t in prange(threads):
            total, last = 0.0, rows.size * (t + 1) // threads
            for first in range(rows.size * t // threads, last, BLOCK):
                stop = min(first + BLOCK, last)
                score_rows(x, rows, first, stop, w, b, scores)
                total += slopes(scores, labels, rows, first, stop, outputs, share)
                add_products(x, rows, first, stop, scores, 0, x.shape[1], np.float32(1), buffers[t])
            sums[t] = total
        for t in prange(threads):
            first, stop = x.shape[1] * t // threads, x.shape[1] * (t + 1) // threads
            for part in range(threads):
                for n in range(w.shape[0]):
                    take(w[n, first:stop], buffers[part, n, first:stop], rate)
        subtract_rows(b, scores, rows.size, rate)
        losses[k] = mean_of(sums, rows.size)


def _copied(x, labels, order, batch_rows, threads, outputs, rate, w, b, losses, xs):
    """Train an epoch on batches copied to `xs`, by BLAS products. Writes w, b and the loss of each batch."""
    scores = np.empty((batch_rows, outputs), np.float32)
    gradient = np.empty((x.shape[1], outputs), np.float32)
    for k in range(losses.size):
        rows = order[k * batch_rows : (k + 1) * batch_rows]
        batch, z = xs[: rows.size], scores[: rows.size]
        for t in prange(threads):
            for i in range(rows.size * t // threads, rows.size * (t + 1) // threads):
                batch[i] = x[rows[i]]
        np.dot(batch, w, z)
        add_to_rows(z, b)
        losses[k] = slopes(z, labels, rows, 0, rows.size, outputs, np.float32(1 / rows.size)) / rows.size
        np.dot(batch.T, z, gradient)
        for t in prange(threads):
            first, stop = w.shape[0] * t // threads, w.shape[0] * (t + 1) // threads
            subtract(w[first:stop], gradient[first:stop], rate)
        subtract_rows(b, z, rows.size, rate)


in_place, in_place_threaded = loop(_in_place), threaded(_in_place)
buffered, buffered_threaded = loop(_buffered), threaded(_buffered)
copied, copied_threaded = loop(_copied), threaded(_copied)
