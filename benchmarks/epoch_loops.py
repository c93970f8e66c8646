"""Epochs over CSR rows in plain Numba loops on one thread, for each update rule, and the float64 loops that check them.

Three loops for each rule: `plain`; `prefetch`, which fetches the weights of the next row while it computes one; and
`indexed`, which reads the entries of each batch by column, sorted before the clock starts (batches that repeat). One
output is logistic regression, several are softmax; the intercept takes a step of the same rule in every batch.

Arguments  indptr [R+1], indices, data float32: X [R, D] as CSR, columns of a row distinct; labels [R], float32 for one
           output, int64 for several; order int64 [M], the rows of the batches; rate float32; powers float64 [2];
           arrays: weights and states, each float32 [D * N]; intercept: the same, each [N]; room: `new_room`;
           losses float64 [batches], written
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks.fair.loops import ONE, ZERO, add_entries, loop, score_entries, slope_of_definition, softmax
from kernels.code_cache import njit
from kernels.vector.lanes import prefetch

RULES = {"sgd": 1, "adagrad": 2, "adam": 3, "ftrl": 3}
"""Arrays of each rule: the weights and its states."""

EPSILON_ADAGRAD, EPSILON_ADAM, BETA_FTRL, L1 = np.float32(1e-16), np.float32(1e-8), np.float32(1), np.float32(0)
BETA1, BETA2 = np.float32(0.9), np.float32(0.999)
TINY = np.float32(1e-37)
"""Sum of a column whose terms cancel: not 0, which means that no entry of the batch was seen."""
part = njit(nogil=True, error_model="numpy", fastmath=True, forceinline=True)
"""Decorator of parts of the loops, which become part of the code of each."""
LINE = 16
"""Float32 numbers of a cache line."""
AHEAD = 8
"""Columns by which states are fetched before their step."""


@part
def step_sgd(arrays, at, gradient, rate):
    """Update element `at` of the weights `arrays[0]` by gradient descent: w -= rate * gradient.

    arrays[0] is float32 [D * N]; `gradient` and `rate` are float32 scalars.
    """
    arrays[0][at] -= rate * gradient


@part
def step_adagrad(arrays, at, gradient, rate):
    """Update element `at` of weights `arrays[0]` and sum of squares `arrays[1]` in place by AdaGrad.

    Both are float32 [D * N]; `gradient` and `rate` are float32 scalars.
    """
    history = arrays[1][at] + gradient * gradient
    arrays[1][at] = history
    arrays[0][at] -= rate * gradient / np.sqrt(history + EPSILON_ADAGRAD)


@part
def step_adam(arrays, at, gradient, rate):
    """Update element `at` of weights, mean and variance (`arrays[0]` to `arrays[2]`) in place by Adam.

    `rate` is the learning rate already corrected for bias (`corrected_rate`). All three are float32 [D * N]; `gradient`
    is a float32 scalar.
    """
    mean = BETA1 * arrays[1][at] + (ONE - BETA1) * gradient
    variance = BETA2 * arrays[2][at] + (ONE - BETA2) * gradient * gradient
    arrays[1][at], arrays[2][at] = mean, variance
    arrays[0][at] -= rate * mean / (np.sqrt(variance) + EPSILON_ADAM)


@part
def step_ftrl(arrays, at, gradient, rate):
    """Update element `at` of weights, linear terms and squares (`arrays[0]` to `[2]`) in place by FTRL-Proximal.

    All three are float32 [D * N]; `gradient` and `rate` are float32 scalars.
    """
    before = arrays[2][at]
    squares = before + gradient * gradient
    root = np.sqrt(squares)
    linear = arrays[1][at] + gradient - (root - np.sqrt(before)) / rate * arrays[0][at]
    arrays[1][at], arrays[2][at] = linear, squares
    shrunk = max(abs(linear) - L1, ZERO)
    arrays[0][at] = (-shrunk if linear > ZERO else shrunk) * rate / (BETA_FTRL + root)


@part
def constant_rate(rate, powers):
    """Return `rate` for every step; `powers` is not used."""
    return rate


@part
def corrected_rate(rate, powers):
    """Return Adam's bias-corrected rate of the next step, float32.

    `powers` float64 [2] (beta1^t, beta2^t) are advanced.
    """
    powers[0] *= BETA1
    powers[1] *= BETA2
    return np.float32(rate * np.sqrt(1 - powers[1]) / (1 - powers[0]))


@part
def fetch_one(arrays, at):
    """Prefetch element `at` of the weights `arrays[0]` into the cache; nothing is returned."""
    prefetch(arrays[0], at)


@part
def fetch_two(arrays, at):
    """Prefetch element `at` of weights and one state (`arrays[0]`, `arrays[1]`) into the cache."""
    prefetch(arrays[0], at)
    prefetch(arrays[1], at)


@part
def fetch_three(arrays, at):
    """Prefetch element `at` of weights and two states (`arrays[0]` to `arrays[2]`) into the cache."""
    prefetch(arrays[0], at)
    prefetch(arrays[1], at)
    prefetch(arrays[2], at)


STEPS: dict[str, Any] = {"sgd": step_sgd, "adagrad": step_adagrad, "adam": step_adam, "ftrl": step_ftrl}
FETCHES: dict[int, Any] = {1: fetch_one, 2: fetch_two, 3: fetch_three}


@part
def fetch_row(fetch, arrays, indptr, indices, row, outputs):
    """Prefetch weights and states of all columns of a CSR row, `outputs` values each, a cache line at a time.

    `fetch` is the prefetch function for the number of arrays. `arrays` are float32 [D * outputs] each; `row` is the
    index of the row in `indptr`.
    """
    for e in range(indptr[row], indptr[row + 1]):
        at = np.uint64(indices[e]) * np.uint64(outputs)
        for n in range(0, outputs, LINE):
            fetch(arrays, at + np.uint64(n))


@part
def score_batch(indptr, indices, data, labels, order, first, stop, arrays, intercept, slopes, is_far, fetch):
    """Write d loss / d score of rows `order[first:stop]` to `slopes` (float32, from 0); return the sum of their losses.

    Logistic loss of one output, labels 0 or 1; `slopes` are those of the batch's mean loss. With `is_far` the weights
    of the next row are prefetched by `fetch`. X csr: indptr, indices, data float32; `arrays[0]` are the weights,
    `intercept[0]` is float32 [1]. `labels` are float32 [R], `order` int64 row indices.
    """
    w, share, total = arrays[0], ONE / np.float32(stop - first), 0.0
    for p in range(first, stop):
        row = order[p]
        if is_far and p + 1 < order.size:
            fetch_row(fetch, arrays, indptr, indices, order[p + 1], 1)
        score = intercept[0][0]
        for e in range(np.uint64(indptr[row]), np.uint64(indptr[row + 1])):
            score += data[e] * w[np.uint64(indices[e])]
        label, small = labels[row], np.exp(-abs(score))
        total += max(score, ZERO) - score * label + np.log(ONE + small)
        slopes[p - first] = ((ONE if score >= ZERO else small) / (ONE + small) - label) * share
    return total


def _narrow(step: Any, rate_of: Any, fetch: Any, is_direct: bool, is_far: bool) -> Any:
    """Return the compiled training loop for one output.

    `step` updates one element, `rate_of` gives the learning rate of a step, `fetch` prefetches (used if `is_far`). With
    `is_direct` each entry updates its weight at once, without a sum over the batch.
    """

    @loop
    def train(indptr, indices, data, labels, order, batch_rows, rate, powers, arrays, intercept, room, losses):
        """Train on all batches of `order` in place; write the mean loss of each batch to `losses`.

        X csr: indptr [R + 1], indices, data float32; labels float32 [R], order int64 [M] of rows, powers float64 [2],
        `arrays` weights and states float32 [D] each, `intercept` the same [1] each, losses float64 [batches]. arrays,
        intercept and powers are updated. `room` is what `new_room` returned.
        """
        sums, active, slopes = room
        for k in range(losses.size):
            first = k * batch_rows
            stop = min(first + batch_rows, order.size)
            total = score_batch(
                indptr, indices, data, labels, order, first, stop, arrays, intercept, slopes, is_far, fetch
            )
            losses[k] = total / (stop - first)
            now, count, all_slopes = rate_of(rate, powers), np.uint64(0), ZERO
            for p in range(first, stop):
                row, slope = order[p], slopes[p - first]
                all_slopes += slope
                begin, end = np.uint64(indptr[row]), np.uint64(indptr[row + 1])
                if is_direct or batch_rows == 1:
                    for e in range(begin, end):
                        step(arrays, np.uint64(indices[e]), data[e] * slope, now)
                    continue
                for e in range(begin, end):
                    column = np.uint64(indices[e])
                    old = sums[column]
                    active[count] = column
                    count += np.uint64(old == ZERO)
                    new = old + data[e] * slope
                    sums[column] = new if new != ZERO else TINY
            for u in range(count):
                if is_far and u + np.uint64(AHEAD) < count:
                    fetch(arrays, np.uint64(active[u + np.uint64(AHEAD)]))
                column = np.uint64(active[u])
                step(arrays, column, sums[column], now)
                sums[column] = ZERO
            step(intercept, 0, all_slopes, now)

    return train


@part
def step_columns(step, arrays, at, gradient, start, outputs, rate):
    """Update `outputs` weights from element `at` on by `step`; their gradients begin at `gradient[start]`.

    `arrays` are weights and states, float32 [D * N]; `gradient` is a flat float32 array, `rate` the learning rate.
    """
    for n in range(outputs):
        step(arrays, at + np.uint64(n), gradient[start + np.uint64(n)], rate)


@part
def step_intercept(step, intercept, scores, rows, rate):
    """Update each intercept by `step` with the sum of its column of `scores[:rows]`, gradients [rows, N].

    `intercept` holds weights and states, float32 [N] each; `rows` is the number of rows, `rate` the learning rate.
    """
    for n in range(scores.shape[1]):
        total = ZERO
        for i in range(rows):
            total += scores[i, n]
        step(intercept, n, total, rate)


@part
def score_wide(indptr, indices, data, labels, rows, arrays, weights, intercept, scores, is_far, fetch):
    """Write d loss / d score of `rows` to `scores` [batch, N] by softmax; return the sum of their losses.

    `weights` [D, N] is a view of `arrays[0]`; with `is_far` the weights of the next row are prefetched by `fetch`. X
    csr: indptr, indices, data float32; labels int64 [R] are class indices, `rows` int64 the batch's row indices.
    `intercept[0]` is float32 [N].
    """
    outputs = weights.shape[1]
    if is_far:
        for i in range(rows.size):
            if i + 1 < rows.size:
                fetch_row(fetch, arrays, indptr, indices, rows[i + 1], outputs)
            score_entries(indptr, indices, data, rows, i, i + 1, weights, intercept[0], scores)
    else:
        score_entries(indptr, indices, data, rows, 0, rows.size, weights, intercept[0], scores)
    return softmax(scores, labels, rows, 0, rows.size, outputs, ONE / np.float32(rows.size))


@part
def accumulate(indptr, indices, data, rows, scores, slots, active, sums):
    """Sum the gradient of the batch's active columns; return their number.

    Writes `active[:count]` (columns), `slots[column]` (position + 1, 0 before) and `sums`, flat [count * N]. `scores`
    [batch, N] are the gradients of the scores. X csr: indptr, indices, data float32; `rows` int64 are the batch's row
    indices. `slots` is int32 [D], `active` int64, `sums` float32.
    """
    outputs, slopes, count = scores.shape[1], scores.reshape(-1), 0
    for i in range(rows.size):
        of_row = np.uint64(i) * np.uint64(outputs)
        for e in range(np.uint64(indptr[rows[i]]), np.uint64(indptr[rows[i] + 1])):
            column, value = np.uint64(indices[e]), data[e]
            slot = np.uint64(slots[column])
            if slot == 0:
                active[count] = column
                count += 1
                slots[column] = count
                start = np.uint64(count - 1) * np.uint64(outputs)
                for n in range(np.uint64(outputs)):
                    sums[start + n] = value * slopes[of_row + n]
            else:
                start = (slot - np.uint64(1)) * np.uint64(outputs)
                for n in range(np.uint64(outputs)):
                    sums[start + n] += value * slopes[of_row + n]
    return count


def _wide(step: Any, rate_of: Any, fetch: Any, is_direct: bool, is_far: bool) -> Any:
    """Return the compiled training loop for several outputs.

    `step` updates one element, `rate_of` gives the learning rate of a step, `fetch` prefetches (used if `is_far`). With
    `is_direct` each entry updates its weights at once, without a sum over the batch.
    """

    @loop
    def train(indptr, indices, data, labels, order, batch_rows, rate, powers, arrays, intercept, room, losses):
        """Train on all batches of `order` in place; write the mean loss of each batch to `losses`.

        X csr: indptr [R + 1], indices, data float32; labels int64 [R], order int64 [M] of rows, powers float64 [2],
        `arrays` weights and states float32 [D * N] each, `intercept` the same [N] each, losses float64 [batches].
        arrays, intercept and powers are updated. `room` is what `new_room` returned.
        """
        slots, active, sums, scores = room
        outputs = scores.shape[1]
        weights = arrays[0].reshape(slots.size, outputs)
        for k in range(losses.size):
            rows = order[k * batch_rows : (k + 1) * batch_rows]
            total = score_wide(indptr, indices, data, labels, rows, arrays, weights, intercept, scores, is_far, fetch)
            losses[k] = total / rows.size
            now = rate_of(rate, powers)
            if is_direct:
                add_entries(indptr, indices, data, rows, 0, rows.size, scores, 0, slots.size, -now, weights)
            elif batch_rows == 1:
                slope = scores[0]
                for e in range(indptr[rows[0]], indptr[rows[0] + 1]):
                    at, value = np.uint64(indices[e]) * np.uint64(outputs), data[e]
                    for n in range(outputs):
                        step(arrays, at + np.uint64(n), value * slope[n], now)
            else:
                count = accumulate(indptr, indices, data, rows, scores, slots, active, sums)
                for u in range(count):
                    column = np.uint64(active[u])
                    slots[column] = 0
                    if is_far and u + AHEAD < count:
                        fetch(arrays, np.uint64(active[u + AHEAD]) * np.uint64(outputs))
                    start = np.uint64(u) * np.uint64(outputs)
                    step_columns(step, arrays, column * np.uint64(outputs), sums, start, outputs, now)
            step_intercept(step, intercept, scores, rows.size, now)

    return train


def _narrow_indexed(step: Any, rate_of: Any) -> Any:
    """Return the compiled loop for one output; batches' entries are sorted by column (`new_index`).

    `step` updates one element, `rate_of` gives the learning rate of a step.
    """

    @loop
    def train(indptr, indices, data, labels, order, batch_rows, rate, powers, arrays, intercept, room, losses):
        """Train on all batches of `order` in place; write the mean loss of each batch to `losses`.

        X csr: indptr [R + 1], indices, data float32; labels float32 [R], powers float64 [2], `arrays` weights and
        states float32 [D] each, `intercept` the same [1] each, losses float64 [batches]. arrays, intercept and powers
        are updated. `room` is what `new_index` returned, so `order` int64 [R] must be the stored order of the rows.
        """
        starts, columns, segments, places, values, scores, _ = room
        slopes = scores.reshape(-1)
        for k in range(losses.size):
            first = k * batch_rows
            stop = min(first + batch_rows, order.size)
            total = score_batch(
                indptr, indices, data, labels, order, first, stop, arrays, intercept, slopes, False, fetch_one
            )
            losses[k] = total / (stop - first)
            now, all_slopes = rate_of(rate, powers), ZERO
            for u in range(np.uint64(starts[k]), np.uint64(starts[k + 1])):
                gradient = ZERO
                for e in range(np.uint64(segments[u]), np.uint64(segments[u + np.uint64(1)])):
                    gradient += values[e] * slopes[np.uint64(places[e])]
                step(arrays, np.uint64(columns[u]), gradient, now)
            for i in range(stop - first):
                all_slopes += slopes[i]
            step(intercept, 0, all_slopes, now)

    return train


def _wide_indexed(step: Any, rate_of: Any) -> Any:
    """Return the compiled loop for several outputs; batches' entries are sorted by column (`new_index`).

    `step` updates one element, `rate_of` gives the learning rate of a step.
    """

    @loop
    def train(indptr, indices, data, labels, order, batch_rows, rate, powers, arrays, intercept, room, losses):
        """Train on all batches of `order` in place; write the mean loss of each batch to `losses`.

        X csr: indptr [R + 1], indices, data float32; labels int64 [R], powers float64 [2], `arrays` weights and states
        float32 [D * N] each, `intercept` the same [N] each, losses float64 [batches]. arrays, intercept and powers are
        updated. `room` is what `new_index` returned, so `order` int64 [R] must be the stored order of the rows.
        """
        starts, columns, segments, places, values, scores, sums = room
        outputs = scores.shape[1]
        weights = arrays[0].reshape(arrays[0].size // outputs, outputs)
        for k in range(losses.size):
            rows = order[k * batch_rows : (k + 1) * batch_rows]
            total = score_wide(
                indptr, indices, data, labels, rows, arrays, weights, intercept, scores, False, fetch_one
            )
            losses[k] = total / rows.size
            now = rate_of(rate, powers)
            for u in range(starts[k], starts[k + 1]):
                for n in range(outputs):
                    sums[n] = ZERO
                for e in range(segments[u], segments[u + 1]):
                    value, slope = values[e], scores[places[e]]
                    for n in range(outputs):
                        sums[n] += value * slope[n]
                at = np.uint64(columns[u]) * np.uint64(outputs)
                step_columns(step, arrays, at, sums, np.uint64(0), outputs, now)
            step_intercept(step, intercept, scores, rows.size, now)

    return train


@functools.cache
def loop_of(rule: str, outputs: int, how: str) -> Callable[..., None]:
    """Return the compiled loop, "plain", "prefetch" or "indexed", of optimizer `rule` for `outputs` outputs; cached."""
    rate_of = corrected_rate if rule == "adam" else constant_rate
    if how == "indexed":
        return (_narrow_indexed if outputs == 1 else _wide_indexed)(STEPS[rule], rate_of)
    make, fetch = _narrow if outputs == 1 else _wide, FETCHES[RULES[rule]]
    return make(STEPS[rule], rate_of, fetch, rule == "sgd", how == "prefetch")


def new_room(csr: scipy.sparse.csr_array, batch_rows: int, outputs: int) -> tuple[np.ndarray, ...]:
    """Return zeroed work arrays for the loops `plain` and `prefetch`, sized for the longest rows of a batch.

    One output: gradient sums [D], active columns, score gradients. Several: slots [D], active columns, sums, scores.
    All are float32 but the active columns (int64) and the slots (int32).
    """
    scores = np.zeros((batch_rows, outputs), np.float32)
    lengths = np.sort(np.diff(csr.indptr))[-batch_rows:]
    most = min(int(lengths.sum()), csr.shape[1]) + 1
    active = np.zeros(most, np.int64)
    if outputs == 1:
        return np.zeros(csr.shape[1], np.float32), active, scores.reshape(-1)
    return np.zeros(csr.shape[1], np.int32), active, np.zeros(most * outputs, np.float32), scores


def new_index(csr: scipy.sparse.csr_array, batch_rows: int, outputs: int) -> tuple[np.ndarray, ...]:
    """Return the entries of each batch of consecutive rows sorted by column, and work arrays, for the loop `indexed`.

    (starts [batches + 1], columns, segments, rows within the batch, values, scores [batch, N], sums [N]), indices
    int32.
    """
    starts, columns, segments, places, values = [0], [], [], [], []
    for first in range(0, csr.shape[0], batch_rows):
        indptr = csr.indptr[first : first + batch_rows + 1]
        begin, end = int(indptr[0]), int(indptr[-1])
        order = np.argsort(csr.indices[begin:end], kind="stable")
        of_batch, at = np.unique(csr.indices[begin:end][order], return_index=True)
        columns.append(of_batch)
        segments.append(at + begin)
        places.append(np.repeat(np.arange(indptr.size - 1), np.diff(indptr))[order])
        values.append(csr.data[begin:end][order])
        starts.append(starts[-1] + of_batch.size)
    kept = [np.concatenate(columns), np.append(np.concatenate(segments), csr.nnz), np.concatenate(places)]
    scores, sums = np.zeros((batch_rows, outputs), np.float32), np.zeros(outputs, np.float32)
    integers = [np.array(one, np.int32) for one in (starts, *kept)]
    return (*integers, np.concatenate(values).astype(np.float32), scores, sums)


@loop
def reference(indptr, indices, data, labels, order, batch_rows, rate, rate_b, rule, arrays, intercept, losses):
    """Train by the definition in float64, a batch after the other, in place: what every training is compared with.

    `rule` is the index of the optimizer in `RULES`; `arrays`, three for every rule, are [D, N], those of the intercept
    [1, N]; `rate_b` is the intercept's learning rate; each batch's mean loss is written to `losses`. X csr of float64
    or float32 values, `labels` class indices [R], `order` the rows, `rate` the learning rate.
    """
    outputs = intercept[0].shape[1]
    scores, gradient = np.zeros((batch_rows, outputs)), np.zeros(arrays[0].shape)
    total_b, seen = np.zeros((1, outputs)), np.full(len(arrays[0]), -1)
    for k in range(losses.size):
        rows = order[k * batch_rows : (k + 1) * batch_rows]
        total = 0.0
        for i in range(rows.size):
            scores[i] = intercept[0][0]
            for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
                for n in range(outputs):
                    scores[i, n] += data[e] * arrays[0][indices[e], n]
            total += slope_of_definition(scores[i], labels[rows[i]], rows.size)
        losses[k] = total / rows.size
        for i in range(rows.size):
            for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
                for n in range(outputs):
                    gradient[indices[e], n] += data[e] * scores[i, n]
        for i in range(rows.size):
            for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
                if seen[indices[e]] != k:
                    seen[indices[e]] = k
                    step_of_definition(rule, arrays, indices[e], gradient[indices[e]], rate, k + 1)
                    gradient[indices[e]] = 0.0
        total_b[0] = 0.0
        for i in range(rows.size):
            total_b[0] += scores[i]
        step_of_definition(rule, intercept, 0, total_b[0], rate_b, k + 1)


@loop
def step_of_definition(rule, arrays, j, gradient, rate, t):
    """Take step `t` (from 1) of row `j` of weights and states in place, by the optimizers' documented formulas.

    `rule` is the index of the optimizer in `RULES`, `gradient` [N] that of the row. `arrays` are weights and two
    states, float64 [D, N]; `rate` is the learning rate.
    """
    for n in range(gradient.size):
        g, w = gradient[n], arrays[0][j, n]
        if rule == 0:
            w -= rate * g
        elif rule == 1:
            arrays[1][j, n] += g**2
            w -= rate * g / np.sqrt(arrays[1][j, n] + 1e-16)
        elif rule == 2:
            arrays[1][j, n] = 0.9 * arrays[1][j, n] + 0.1 * g
            arrays[2][j, n] = 0.999 * arrays[2][j, n] + 0.001 * g**2
            corrected = rate * np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
            w -= corrected * arrays[1][j, n] / (np.sqrt(arrays[2][j, n]) + 1e-8)
        else:
            squares = arrays[2][j, n] + g**2
            arrays[1][j, n] += g - (np.sqrt(squares) - np.sqrt(arrays[2][j, n])) / rate * w
            arrays[2][j, n] = squares
            w = -arrays[1][j, n] / ((1 + np.sqrt(squares)) / rate)
        arrays[0][j, n] = w
