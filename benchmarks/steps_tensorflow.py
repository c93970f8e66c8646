"""TensorFlow's training step in three forms; the best of them is the competitor.

lookup  tf.nn.embedding_lookup_sparse on ragged tensors, its gradient as IndexedSlices; compiled by tf.function
matmul  products with CSRSparseMatrix: forward with all D columns, gradient with the active ones as IndexedSlices
dense   the gradient with all D columns and the dense update; where D * N is small, and not for Adam, which is not lazy

The latter two run eagerly, as a CSRSparseMatrix loses its shape when passed to a tf.function; that costs them 0.1 ms.
SGD is a scatter, AdaGrad TensorFlow's own sparse update, Adam the lazy one of its add-ons: gather, formula, scatter.
"""

import functools
from typing import Any

import numpy as np

from benchmarks.competitors.tensorflow_sparse import UNAVAILABLE, matrix_of, tensorflow
from benchmarks.steps import Problem, StepCandidate

# TensorFlow's updates of active rows: SGD is a scatter, AdaGrad TensorFlow's own sparse update.


def sgd(weights: Any, gradient: Any, rows: Any, rate: float) -> None:
    """Subtract `rate` times the gradient [U, N] from these distinct rows of `weights` [D, N], in place."""
    weights.scatter_sub(tensorflow().IndexedSlices(rate * gradient, rows))


def adagrad(weights: Any, history: Any, gradient: Any, rows: Any, rate: float, epsilon: float) -> None:
    """Update these distinct rows of `weights` and `history` [D, N] in place by AdaGrad with the gradient [U, N]."""
    tables = {"var": weights.handle, "accum": history.handle}
    numbers = {"lr": rate, "epsilon": epsilon}
    tensorflow().raw_ops.ResourceSparseApplyAdagradV2(**tables, grad=gradient, indices=rows, **numbers)


DENSE_SIZE = 4_000_000
"""D * N up to which the dense form is tried."""


class TensorFlow:
    """Base of the forms: variables of their own, updates of the active rows."""

    def __init__(self, problem: Problem, form: str) -> None:
        """Make zeroed variables like the problem's tables; `form` is "lookup" (compiled), "matmul" or "dense"."""
        self.tf, self.problem, self.form = tensorflow(), problem, form
        tf = self.tf
        self.tables = [tf.Variable(tf.zeros(problem.tables[0].shape)) for _ in problem.tables]
        self.t = tf.Variable(0.0)
        self.run = tf.function(self._lookup) if form == "lookup" else getattr(self, f"_{form}")

    def prepare(self, number: int) -> tuple:
        """Return the tensors of batch `number` that the form's step takes."""
        tf, batch, targets = self.tf, self.problem.batches[number], self.problem.targets[number]
        if self.form == "lookup":
            ragged = functools.partial(tf.RaggedTensor.from_row_splits, row_splits=batch.indptr, validate=False)
            return ragged(batch.indices), ragged(batch.data), tf.constant(targets)
        matrix = matrix_of(batch.indptr, batch.indices, batch.data, (batch.R, batch.D))
        if self.form == "dense":
            return matrix, tf.constant(targets)
        columns, places = tf.unique(tf.constant(batch.indices))
        local = matrix_of(batch.indptr, places.numpy(), batch.data, (batch.R, len(columns)))
        return matrix, local, columns, tf.constant(targets)

    def step(self, prepared: tuple) -> None:
        """Do one training step on a prepared batch, in place in the variables."""
        self.run(*prepared)

    def _grad_scores(self, scores, targets):
        """Return the gradient of mean squared loss by the scores, (scores - targets) / rows.

        Both are tensors [R, N].
        """
        return (scores - targets) / self.tf.cast(self.tf.shape(targets)[0], scores.dtype)

    def _lookup(self, ids, values, targets):
        """Do one step by `embedding_lookup_sparse`, in place; ids and values are ragged tensors.

        `targets` is a tensor [R, N].
        """
        tf = self.tf
        with tf.GradientTape() as tape:
            scores = tf.nn.embedding_lookup_sparse(self.tables[0], ids, values, combiner="sum")
            loss = tf.reduce_sum((scores - targets) ** 2) * (0.5 / targets.shape[0])
        gradient = tape.gradient(loss, self.tables[0])
        self._update(gradient.values, gradient.indices)

    def _matmul(self, matrix, local, columns, targets):
        """Do one step by `SparseMatrixMatMul` that updates active rows, in place.

        `local` is the batch with columns renumbered among the active ones, `columns` their indices. `matrix` is the
        batch as a CSRSparseMatrix, `targets` [R, N].
        """
        multiply = self.tf.raw_ops.SparseMatrixMatMul
        grad_scores = self._grad_scores(multiply(a=matrix, b=self.tables[0].value()), targets)
        self._update(multiply(a=local, b=grad_scores, transpose_a=True), columns)

    def _dense(self, matrix, targets):
        """Do one step by `SparseMatrixMatMul` that updates all rows, in place; for SGD and AdaGrad.

        `matrix` is the batch as a CSRSparseMatrix, `targets` [R, N].
        """
        multiply, options = self.tf.raw_ops.SparseMatrixMatMul, self.problem.options
        grad_scores = self._grad_scores(multiply(a=matrix, b=self.tables[0].value()), targets)
        gradient = multiply(a=matrix, b=grad_scores, transpose_a=True)
        if self.problem.optimizer == "sgd":
            self.tables[0].assign_sub(options["learning_rate"] * gradient)
        else:
            weights, history = (table.handle for table in self.tables)
            numbers = {"lr": options["learning_rate"], "epsilon": options["epsilon"]}
            self.tf.raw_ops.ResourceApplyAdagradV2(var=weights, accum=history, grad=gradient, **numbers)

    def _update(self, gradient, rows):
        """Apply the optimizer with the gradient [U, N] to these rows of the variables, in place."""
        options = self.problem.options
        weights, *states = self.tables
        if self.problem.optimizer == "sgd":
            sgd(weights, gradient, rows, options["learning_rate"])
        elif self.problem.optimizer == "adagrad":
            rate, epsilon = options["learning_rate"], options["epsilon"]
            adagrad(weights, states[0], gradient, rows, rate, epsilon)
        else:
            self._lazy_adam(gradient, rows)

    def _lazy_adam(self, gradient, rows):
        """Apply Adam with the gradient [U, N] to these rows only, in place; advances the step count."""
        tf, o = self.tf, self.problem.options
        weights, mean, variance = self.tables
        self.t.assign_add(1.0)
        rate = o["learning_rate"] * tf.sqrt(1 - o["beta2"] ** self.t) / (1 - o["beta1"] ** self.t)
        m = o["beta1"] * tf.gather(mean, rows) + (1 - o["beta1"]) * gradient
        v = o["beta2"] * tf.gather(variance, rows) + (1 - o["beta2"]) * gradient**2
        mean.scatter_update(tf.IndexedSlices(m, rows))
        variance.scatter_update(tf.IndexedSlices(v, rows))
        weights.scatter_sub(tf.IndexedSlices(rate * m / (tf.sqrt(v) + o["epsilon"]), rows))

    def start(self) -> None:
        """Reset the active rows to the initial weights, their states and the step count to zero."""
        tf, active = self.tf, self.problem.active
        first = [self.problem.weights, *(np.zeros_like(self.problem.weights) for _ in self.tables[1:])]
        for table, rows in zip(self.tables, first, strict=True):
            table.scatter_update(tf.IndexedSlices(tf.constant(rows), tf.constant(active)))
        self.t.assign(0.0)

    def weights(self) -> np.ndarray:
        """Return the weights of the active rows, float32 [U, N]."""
        return self.tf.gather(self.tables[0], self.problem.active).numpy()


def list_tensorflow_candidates(size: int, optimizer: str) -> list[StepCandidate]:
    """Return the TensorFlow forms worth timing; "dense" only for `size` (D * N) up to 4e6 and not for Adam."""
    forms = ["lookup", "matmul"] + (["dense"] if size <= DENSE_SIZE and optimizer != "adam" else [])
    makers = ((form, functools.partial(TensorFlow, form=form)) for form in forms)
    return [StepCandidate(f"tensorflow {form}", "competitor", make, UNAVAILABLE, shares=False) for form, make in makers]
