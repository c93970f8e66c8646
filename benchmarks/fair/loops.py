"""Epochs over dense and over CSR rows in plain Numba loops: what users write who want fast training in one call."""

import numpy as np
from numba import prange

from kernels.code_cache import njit

# Losses of a batch and their gradients by the scores in plain Numba loops, shared by loops over dense and sparse rows.
#
# Scores [rows, padded] become grad_scores in place: the gradient of the batch's mean loss by the scores. One output is
# logistic regression, several are softmax; columns from `outputs` on are padding and become 0.


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
    """Return exp(x) of a float32 x <= 0, relative error about 2e-7; x below -87 counts as -87.

    2**k times a polynomial (Taylor, |r| <= ln 2 / 2).
    """
    x = max(x, LEAST)
    k = np.floor(x * LOG2_E + HALF)
    r = x - k * LN_2_HIGH - k * LN_2_LOW
    power = np.int32((np.int32(k) + BIAS) << SHIFT).view(np.float32)
    return power * (ONE + r * (ONE + r * (C2 + r * (C3 + r * (C4 + r * (C5 + r * C6))))))


@loop
def binary(scores, labels, rows, first, stop, share):
    """Replace scores [rows, 1] by score gradients of logistic loss, times `share`, in place; return the sum of losses.

    For rows `first` to `stop` of the batch; their labels (0 or 1) are `labels[rows[i]]`. `scores` is float32, `labels`
    int64 [R], `rows` int64 the batch's row indices.
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
    """Replace scores [rows, padded] by score gradients of softmax loss, times `share`, in place.

    Returns the sum of the losses. For rows `first` to `stop` of the batch, whose labels are `labels[rows[i]]`; padding
    columns from `outputs` on become 0. `scores` is float32, `labels` int64 [R] class indices, `rows` int64 the batch's
    row indices.
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
def grad_scores(scores, labels, rows, first, stop, outputs, share):
    """Replace scores by score gradients times `share`, in place, for one or several outputs; return the sum of losses.

    For rows `first` to `stop` of the batch `rows`. `scores` is float32 [rows, padded], `labels` int64 [R], `outputs` N
    without padding.
    """
    if outputs == 1:
        return binary(scores, labels, rows, first, stop, share)
    return softmax(scores, labels, rows, first, stop, outputs, share)


# Epochs over dense rows in plain Numba loops: what a user writes who wants dense training fast, all of it in one call.
#
# `copied` gathers each batch and multiplies by BLAS. `in_place` reads the rows of X directly: the scores of all rows of
# a batch, then the update of the weights, a range of columns for each thread. `buffered` takes few rows at a time
# through scores, grad_scores and gradient, with a gradient for each thread: a batch that no cache holds is read once.
#
# Weights are [D, N] for `copied`. For `in_place` and `buffered` they are transposed [padded, D], padded to whole groups
# of `GROUP` outputs unless there is one, so that the inner loops run along the columns of X.
#
# Arguments  x float32 [R, D]; labels int64 [R]; order int64 [M]; b [padded]; losses float64 [batches], written;
#            xs float32 [batch_rows, D], memory for a batch that is copied


GROUP = 4
"""Rows that share a load of the weights, and outputs that share a load of x."""
TILE = 512
"""Columns whose weights stay in the nearest cache while a batch updates them."""
BLOCK = 16
"""Rows that `buffered` takes at a time."""


def padded(outputs: int) -> int:
    """Return the number of outputs rounded up to a multiple of 4; 1 stays 1.

    >>> padded(1), padded(3), padded(16)
    (1, 4, 16)
    """
    return 1 if outputs == 1 else -(-outputs // GROUP) * GROUP


@loop
def score_rows(x, rows, first, stop, w, b, scores):
    """Write x @ w.T + b of the batch's rows `first` to `stop` to `scores` [rows, padded].

    `x` float32 [R, D], `rows` indices into it, `w` [padded, D], `b` [padded]; two rows and four outputs at a time.
    """
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
    """Add scale * grads.T @ x of the batch's rows `begin` to `end` to w[:, first:stop], in place.

    `w` [padded, D], `grads` [rows, padded], `x` [R, D]; four rows and two outputs at a time. All are float32 but
    `rows`, int64 row indices of x.
    """
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
    """Subtract rate * buffer from `one`, in place, and set `buffer` to 0; both float32 vectors of equal length."""
    for j in range(one.size):
        one[j] -= rate * buffer[j]
        buffer[j] = ZERO


@loop
def subtract(w, gradient, rate):
    """Subtract rate * gradient from `w` in place, both [rows, outputs].

    `rate` is the learning rate; all are float32.
    """
    for i in range(w.shape[0]):
        for n in range(w.shape[1]):
            w[i, n] -= rate * gradient[i, n]


@loop
def subtract_rows(b, grads, count, rate):
    """Subtract rate * the sum of the first `count` rows of `grads` [rows, outputs] from `b` [outputs], in place.

    `rate` is the learning rate; all are float32.
    """
    for i in range(count):
        for n in range(b.size):
            b[n] -= rate * grads[i, n]


@loop
def add_to_rows(scores, b):
    """Add `b` [outputs] to each row of `scores` [rows, outputs], in place.

    Both are float32.
    """
    for i in range(scores.shape[0]):
        for n in range(b.size):
            scores[i, n] += b[n]


@loop
def mean_of(sums, count):
    """Return the sum of `sums` (one per thread) divided by `count`."""
    total = 0.0
    for sum in sums:
        total += sum
    return total / count


def _in_place(x, labels, order, batch_rows, threads, outputs, rate, w, b, losses):
    """Train an epoch on dense rows in place; each thread updates a range of columns of `w` [padded, D].

    x float32 [R, D], labels int64 [R], order int64 [M] of rows, b float32 [padded]; w, b and each batch's mean loss in
    `losses` float64 [batches] are written. `outputs` is N without padding, `rate` the learning rate.
    """
    scores, sums = np.zeros((batch_rows, w.shape[0]), np.float32), np.zeros(threads)
    for k in range(losses.size):
        rows = order[k * batch_rows : (k + 1) * batch_rows]
        share = np.float32(1 / rows.size)
        for t in prange(threads):
            first, stop = rows.size * t // threads, rows.size * (t + 1) // threads
            score_rows(x, rows, first, stop, w, b, scores)
            sums[t] = grad_scores(scores, labels, rows, first, stop, outputs, share)
        for t in prange(threads):
            first, stop = x.shape[1] * t // threads, x.shape[1] * (t + 1) // threads
            add_products(x, rows, 0, rows.size, scores, first, stop, -rate, w)
        subtract_rows(b, scores, rows.size, rate)
        losses[k] = mean_of(sums, rows.size)


def _buffered(x, labels, order, batch_rows, threads, outputs, rate, w, b, losses):
    """Train an epoch on dense rows in place; each thread sums a separate gradient of `w` [padded, D].

    x float32 [R, D], labels int64 [R], order int64 [M] of rows, b float32 [padded]; w, b and each batch's mean loss in
    `losses` float64 [batches] are written. `outputs` is N without padding, `rate` the learning rate.
    """
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
                total += grad_scores(scores, labels, rows, first, stop, outputs, share)
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
    """Train an epoch on batches copied to `xs` [batch_rows, D], by BLAS products; `w` is [D, N].

    x float32 [R, D], labels int64 [R], order int64 [M] of rows, b float32 [N]; w, b, xs and each batch's mean loss in
    `losses` float64 [batches] are written. `outputs` is N, `rate` the learning rate; `threads` share the copying and
    the update.
    """
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
        losses[k] = grad_scores(z, labels, rows, 0, rows.size, outputs, np.float32(1 / rows.size)) / rows.size
        np.dot(batch.T, z, gradient)
        for t in prange(threads):
            first, stop = w.shape[0] * t // threads, w.shape[0] * (t + 1) // threads
            subtract(w[first:stop], gradient[first:stop], rate)
        subtract_rows(b, z, rows.size, rate)


in_place, in_place_threaded = loop(_in_place), threaded(_in_place)
buffered, buffered_threaded = loop(_buffered), threaded(_buffered)
copied, copied_threaded = loop(_copied), threaded(_copied)


# Epochs over CSR rows in plain Numba loops: what users write who want fast sparse training, all of it in one call.
#
# `touched` takes the scores of all rows of a batch, then updates the weights of each entry in place: only active
# columns are written. Several threads share the rows for the scores and the columns for the update, which needs sorted
# indices.
# `accumulated` sums a dense gradient, one for each thread, and then updates all weights.
#
# Arguments  indptr [R + 1], indices, data float32: X [R, D] as CSR, indices sorted in each row; labels int64 [R];
#            order int64 [M]; w [D, N]; b [N]; losses float64 [batches], written


@loop
def score_entries(indptr, indices, data, rows, first, stop, w, b, scores):
    """Write X @ w + b of the batch's rows `first` to `stop` to `scores` [rows, N]; X csr, `w` [D, N].

    Four entries at a time unless there is one output. `indptr`, `indices` and `data` are those of X, `b` is [N]. All
    are float32 but the indices; `rows` int64 are row indices of X.
    """
    for i in range(first, stop):
        row = rows[i]
        begin, end = indptr[row], indptr[row + 1]
        columns, values = indices[begin:end], data[begin:end]
        if w.shape[1] == 1:
            total = b[0]
            for k in range(columns.size):
                total += values[k] * w[np.uint64(columns[k]), 0]
            scores[i, 0] = total
            continue
        z = scores[i]
        for n in range(z.size):
            z[n] = b[n]
        for k in range(0, columns.size // 4 * 4, 4):
            v0, v1, v2, v3 = values[k], values[k + 1], values[k + 2], values[k + 3]
            w0, w1 = w[np.uint64(columns[k])], w[np.uint64(columns[k + 1])]
            w2, w3 = w[np.uint64(columns[k + 2])], w[np.uint64(columns[k + 3])]
            for n in range(z.size):
                z[n] += v0 * w0[n] + v1 * w1[n] + v2 * w2[n] + v3 * w3[n]
        for k in range(columns.size // 4 * 4, columns.size):
            value, weights = values[k], w[np.uint64(columns[k])]
            for n in range(z.size):
                z[n] += value * weights[n]


@loop
def add_entries(indptr, indices, data, rows, begin, end, grads, first, stop, scale, w):
    """Add scale * X.T @ grads of the batch's rows `begin` to `end` to w[first:stop], in place; X csr.

    Only entries in the columns `first` to `stop` count; for a part of the columns the indices must be sorted. `grads`
    is [rows of the batch, N], `w` [D, N]; `rows` are row indices of X. `indptr`, `indices` and `data` are those of X;
    all values are float32.
    """
    whole = first == 0 and stop == w.shape[0]
    for i in range(begin, end):
        row = rows[i]
        low, high = indptr[row], indptr[row + 1]
        if not whole:
            entries = indices[low:high]
            low, high = low + np.searchsorted(entries, first), low + np.searchsorted(entries, stop)
        columns, values = indices[low:high], data[low:high]
        if w.shape[1] == 1:
            grad = scale * grads[i, 0]
            for k in range(columns.size):
                w[np.uint64(columns[k]), 0] += grad * values[k]
            continue
        for k in range(columns.size):
            value, weights, each = scale * values[k], w[np.uint64(columns[k])], grads[i]
            for n in range(each.size):
                weights[n] += value * each[n]


def _touched(indptr, indices, data, labels, order, batch_rows, threads, rate, w, b, losses):
    """Train an epoch on CSR rows in place; each thread updates a range of rows of `w` [D, N], active ones only.

    X csr: indptr [R + 1], indices, data float32; labels int64 [R], order int64 [M] of rows, b float32 [N]. w, b and
    each batch's mean loss in `losses` float64 [batches] are written. `rate` is the learning rate; indices must be
    sorted in each row for several threads.
    """
    scores, sums, outputs = np.zeros((batch_rows, b.size), np.float32), np.zeros(threads), b.size
    for k in range(losses.size):
        rows = order[k * batch_rows : (k + 1) * batch_rows]
        share = np.float32(1 / rows.size)
        for t in prange(threads):
            first, stop = rows.size * t // threads, rows.size * (t + 1) // threads
            score_entries(indptr, indices, data, rows, first, stop, w, b, scores)
            sums[t] = grad_scores(scores, labels, rows, first, stop, outputs, share)
        for t in prange(threads):
            first, stop = w.shape[0] * t // threads, w.shape[0] * (t + 1) // threads
            add_entries(indptr, indices, data, rows, 0, rows.size, scores, first, stop, -rate, w)
        subtract_rows(b, scores, rows.size, rate)
        losses[k] = mean_of(sums, rows.size)


def _accumulated(indptr, indices, data, labels, order, batch_rows, threads, rate, w, b, losses):
    """Train an epoch on CSR rows in place; each thread sums a dense gradient [D, N], then all weights are updated.

    X csr: indptr [R + 1], indices, data float32; labels int64 [R], order int64 [M] of rows, b float32 [N]. w, b and
    each batch's mean loss in `losses` float64 [batches] are written. `rate` is the learning rate.
    """
    scores, sums, outputs = np.zeros((batch_rows, b.size), np.float32), np.zeros(threads), b.size
    buffers = np.zeros((threads, w.shape[0], w.shape[1]), np.float32)
    for k in range(losses.size):
        rows = order[k * batch_rows : (k + 1) * batch_rows]
        share = np.float32(1 / rows.size)
        for t in prange(threads):
            first, stop = rows.size * t // threads, rows.size * (t + 1) // threads
            score_entries(indptr, indices, data, rows, first, stop, w, b, scores)
            sums[t] = grad_scores(scores, labels, rows, first, stop, outputs, share)
            add_entries(indptr, indices, data, rows, first, stop, scores, 0, w.shape[0], ONE, buffers[t])
        for t in prange(threads):
            first, stop = w.shape[0] * t // threads, w.shape[0] * (t + 1) // threads
            for part in range(threads):
                take(w[first:stop].reshape(-1), buffers[part, first:stop].reshape(-1), rate)
        subtract_rows(b, scores, rows.size, rate)
        losses[k] = mean_of(sums, rows.size)


@loop
def slope_of_definition(z, label, rows):
    """Replace the scores `z` [N] of one row by the gradient of the mean loss over `rows`; return the row's loss.

    `label` is 0 or 1 for one output, else the class index.
    """
    if z.size == 1:
        score = z[0]
        z[0] = (1 / (1 + np.exp(-score)) - label) / rows
        return np.log(1 + np.exp(-abs(score))) + max(score, 0.0) - score * label
    largest, total, own = z.max(), 0.0, z[label]
    for n in range(z.size):
        z[n] = np.exp(z[n] - largest)
        total += z[n]
    for n in range(z.size):
        z[n] /= total * rows
    z[label] -= 1 / rows
    return np.log(total) + largest - own


touched, touched_threaded = loop(_touched), threaded(_touched)
accumulated, accumulated_threaded = loop(_accumulated), threaded(_accumulated)
