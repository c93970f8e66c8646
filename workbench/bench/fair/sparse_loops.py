"""Epochs over CSR rows in plain Numba loops: what a user writes who wants sparse training fast, all of it in one call.

`touched` takes the scores of all rows of a batch, then updates the weights of each entry in place: only active columns
are written. Several threads share the rows for the scores and the columns for the update, which needs sorted indices.
`accumulated` sums a dense gradient, one for each thread, and then updates all weights.

Arguments  indptr [R + 1], indices, data float32: X [R, D] as CSR, indices sorted in each row; labels int64 [R];
           order int64 [M]; w [D, N]; b [N]; losses float64 [batches], written
"""

import numpy as np
from numba import prange

from workbench.bench.fair.dense_loops import mean_of, subtract_rows, take
from workbench.bench.fair.slopes import ONE, loop, slopes, threaded


@loop
def score_entries(indptr, indices, data, rows, first, stop, w, b, scores):
    """Scores of the batch's rows `first` to `stop`, four entries at a time unless there is one output."""
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
    """w[first:stop] += scale * X.T @ grads of the batch's rows `begin` to `end`: the entries in these columns."""
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
    """Train an epoch on CSR rows; each thread owns a range of w's features. Writes w, b and the loss of each batch."""
    scores, sums, outputs = np.zeros((batch_rows, b.size), np.float32), np.zeros(threads), b.size
    for k in range(losses.size):
        rows = order[k * batch_rows : (k + 1) * batch_rows]
        share = np.float32(1 / rows.size)
        for t in prange(threads):
            first, stop = rows.size * t // threads, rows.size * (t + 1) // threads
            score_entries(indptr, indices, data, rows, first, stop, w, b, scores)
            sums[t] = slopes(scores, labels, rows, first, stop, outputs, share)
        for t in prange(threads):
            first, stop = w.shape[0] * t // threads, w.shape[0] * (t + 1) // threads
            add_entries(indptr, indices, data, rows, 0, rows.size, scores, first, stop, -rate, w)
        subtract_rows(b, scores, rows.size, rate)
        losses[k] = mean_of(sums, rows.size)


def _accumulated(indptr, indices, data, labels, order, batch_rows, threads, rate, w, b, losses):
    """Train an epoch on CSR rows; each thread sums a dense gradient. Writes w, b and the loss of each batch."""
    scores, sums, outputs = np.zeros((batch_rows, b.size), np.float32), np.zeros(threads), b.size
    buffers = np.zeros((threads, w.shape[0], w.shape[1]), np.float32)
    for k in range(losses.size):
        rows = order[k * batch_rows : (k + 1) * batch_rows]
        share = np.float32(1 / rows.size)
        for t in prange(threads):
            first, stop = rows.size * t // threads, rows.size * (t + 1) // threads
            score_entries(indptr, indices, data, rows, first, stop, w, b, scores)
            sums[t] = slopes(scores, labels, rows, first, stop, outputs, share)
            add_entries(indptr, indices, data, rows, first, stop, scores, 0, w.shape[0], ONE, buffers[t])
        for t in prange(threads):
            first, stop = w.shape[0] * t // threads, w.shape[0] * (t + 1) // threads
            for part in range(threads):
                take(w[first:stop].reshape(-1), buffers[part, first:stop].reshape(-1), rate)
        subtract_rows(b, scores, rows.size, rate)
        losses[k] = mean_of(sums, rows.size)


@loop
def reference(indptr, indices, data, labels, order, batch_rows, rate, rate_intercept, w, b, losses):
    """Train by the definition, in the type of w, a row after the other: what every training is compared with."""
    scores = np.zeros((batch_rows, b.size), w.dtype)
    for k in range(losses.size):
        rows = order[k * batch_rows : (k + 1) * batch_rows]
        total = 0.0
        for i in range(rows.size):
            z, row = scores[i], rows[i]
            z[:] = b
            for e in range(indptr[row], indptr[row + 1]):
                value, weights = data[e], w[np.uint64(indices[e])]
                for n in range(b.size):
                    z[n] += value * weights[n]
            total += slope_of_definition(z, labels[row], rows.size)
        for i in range(rows.size):
            row, grads = rows[i], scores[i]
            for e in range(indptr[row], indptr[row + 1]):
                value, weights = rate * data[e], w[np.uint64(indices[e])]
                for n in range(b.size):
                    weights[n] -= value * grads[n]
            for n in range(b.size):
                b[n] -= rate_intercept * grads[n]
        losses[k] = total / rows.size


@loop
def slope_of_definition(z, label, rows):
    """Replace the scores of a row by the slope of the mean loss: the row's loss."""
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
