"""TensorFlow: the scores X @ W by `tf.nn.embedding_lookup_sparse`, updates of the active rows, by tf.function.

The gradient of a lookup comes as IndexedSlices, each row once. Batches go in as ragged tensors of the row starts, so
that one compiled function takes all of them.
"""

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks import steps_tensorflow
from benchmarks.competitors.tensorflow_sparse import INSTALL, tensorflow
from benchmarks.fit.candidates import Candidate, Rows, Scorer, Value, register, settings_by_rate

EPSILON = 1e-7
LOSSES = {"linear": "squared", "softmax": "softmax"}
"""The loss of a model where it is not the logistic one."""


class Lookup:
    """A table W [D, N] and b [N], which change by steps of an optimizer; made and compiled once in a process."""

    def __init__(self, shape: tuple[int, int], loss: str, optimizer: str, has_intercept: bool) -> None:
        """Make zeroed variables W of `shape` [D, N], b [N] and AdaGrad histories, and compile step and scores."""
        self.tf, self.loss, self.has_intercept = tensorflow(), loss, has_intercept
        tf, width = self.tf, shape[1]
        self.w, self.b = tf.Variable(tf.zeros(shape)), tf.Variable(tf.zeros(width))
        self.history = [tf.Variable(tf.zeros(one.shape)) for one in (self.w, self.b)] if optimizer == "adagrad" else []
        flat = [tf.TensorSpec([None], kind) for kind in (tf.int32, tf.float32, tf.int32)]
        y = tf.TensorSpec([None], tf.int64) if loss == "softmax" else tf.TensorSpec([None, width], tf.float32)
        self.step = tf.function(self._step, input_signature=[*flat, y, tf.TensorSpec([], tf.float32)], autograph=False)
        self.found = tf.function(self._scores, input_signature=flat, autograph=False)

    def start(self) -> None:
        """Reset weights, intercept and optimizer state to zero."""
        for one in (self.w, self.b, *self.history):
            one.assign(self.tf.zeros(one.shape))

    def _scores(self, ids: Any, values: Any, starts: Any) -> Any:
        """Return the scores [R, N] of a batch from its column indices and values [z] and row starts [R + 1]."""
        tf = self.tf
        ragged = [tf.RaggedTensor.from_row_splits(one, starts, validate=False) for one in (ids, values)]
        found = tf.nn.embedding_lookup_sparse(self.w, *ragged, combiner="sum")
        empty = tf.shape(starts)[0] - 1 - tf.shape(found)[0]  # rows at the end without entries, which it leaves out
        found = tf.pad(found, [[0, empty], [0, 0]])
        return found + self.b if self.has_intercept else found

    def _step(self, ids: Any, values: Any, starts: Any, y: Any, rate: Any) -> None:
        """Take one optimizer step on a batch; updates active rows of W, b and the histories in place.

        `ids` and `values` are [z], `starts` [R + 1], `y` the targets, `rate` the learning rate.
        """
        tf = self.tf
        with tf.GradientTape() as tape:
            loss = self._loss(self._scores(ids, values, starts), y)
        if self.has_intercept:
            of_w, of_b = tape.gradient(loss, [self.w, self.b])
        else:
            of_w, of_b = tape.gradient(loss, self.w), None
        if not self.history:
            steps_tensorflow.sgd(self.w, of_w.values, of_w.indices, rate)
            self.b.assign_sub(rate * of_b) if of_b is not None else None
            return
        steps_tensorflow.adagrad(self.w, self.history[0], of_w.values, of_w.indices, rate, EPSILON)
        if of_b is not None:
            squares = self.history[1].assign_add(of_b**2)
            self.b.assign_sub(rate * of_b / (tf.sqrt(squares) + EPSILON))

    def _loss(self, scores: Any, y: Any) -> Any:
        """Return the mean loss of scores [R, N] against targets `y`: softmax, squared or logistic."""
        tf = self.tf
        if self.loss == "softmax":
            return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, scores))
        if self.loss == "squared":
            return tf.reduce_mean((scores - y) ** 2)
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(y, scores))

    def batch(self, x: Any, start: int, stop: int) -> list[Any]:
        """Return [column indices int32, values, row starts int32] of rows `start` to `stop` of X csr."""
        first, last = x.indptr[start], x.indptr[stop]
        starts = x.indptr[start : stop + 1] - first
        return [x.indices[first:last].astype(np.int32), x.data[first:last], starts.astype(np.int32)]

    def scores(self, x: Any) -> np.ndarray:
        """Return the scores of X csr as a NumPy array [R, N], 4,096 rows at once."""
        count = x.shape[0]
        cuts = [(start, min(start + 4096, count)) for start in range(0, count, 4096)]
        return np.concatenate([self.found(*self.batch(x, *cut)).numpy() for cut in cuts])


made = functools.cache(Lookup)


def steps(rows: Rows, value: Value) -> Iterator[Scorer]:
    """Train on shuffled batches without end; yield a scorer after every `rows_point` rows.

    `value` has `optimizer` ("sgd" or "adagrad"), `rate` and `batch_rows`.
    """
    shape, loss = (rows.x.shape[1], rows.width), LOSSES.get(rows.model, "logistic")
    lookup = made(shape, loss, value["optimizer"], rows.has_intercept)
    lookup.start()
    generator, rate = np.random.default_rng(rows.seed), np.float32(value["rate"])
    count, size, done = rows.x.shape[0], value["batch_rows"], 0
    while True:
        order = generator.permutation(count)
        x, y = rows.x[order], rows.y[order].astype(np.int64 if loss == "softmax" else np.float32, copy=False)
        for start in range(0, count, size):
            stop = min(start + size, count)
            lookup.step(*lookup.batch(x, start, stop), y[start:stop], rate)
            done += stop - start
            if done >= rows.rows_point:
                done = 0
                yield lookup.scores


register(
    Candidate(
        "TensorFlow embedding_lookup_sparse",
        "competitor",
        ("linear", "logistic", "softmax", "multilabel"),
        settings_by_rate,
        steps,
        needs="tensorflow",
        install=INSTALL,
    )
)
