"""TensorFlow: a compiled step on dense rows, its sparse product, and ours, whose gradient stays row-sparse."""

from abc import abstractmethod
from functools import partial
from typing import Any, final

import numpy as np

from workbench.advising.frameworks.training import LoopTrainer, Problem, State
from workbench.advising.frameworks.ways import register_way, why_no_dense


def loss_of(tf: Any, scores: Any, labels: Any) -> Any:
    """Return the mean loss of scores [R, N]: logistic for one output, softmax cross-entropy for several.

    `labels` are class indices [R], or 0 and 1; `tf` is the module.
    """
    if scores.shape[1] == 1:
        wanted = tf.cast(labels, tf.float32)
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(wanted, scores[:, 0]))
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, scores))


class TensorFlowTrainer(LoopTrainer):
    """A training loop: `step(labels, *batch)` is compiled by tf.function and returns the loss."""

    def __init__(self, problem: Problem) -> None:
        """Make zeroed variables w [D, N] and b [N], call `prepare`, and compile the step with tf.function."""
        import tensorflow as tf

        super().__init__(problem)
        self.tf = tf
        self.w = tf.Variable(tf.zeros([problem.features, problem.outputs]))
        self.b = tf.Variable(tf.zeros([problem.outputs]))
        self.prepare()
        self.step = tf.function(self._step, reduce_retracing=True)

    def prepare(self) -> None:
        """Store X in the form that this way needs; nothing by default."""

    @abstractmethod
    def batch_of(self, rows: np.ndarray) -> tuple:
        """Return the tensors of the rows with these indices, as arguments of `scores`."""

    @abstractmethod
    def scores(self, *batch: Any) -> Any:
        """Return X @ w of a batch, [R, N]."""

    def update(self, gradient: Any) -> None:
        """Subtract the learning rate times the gradient from w, in place."""
        self.w.assign_sub(self.problem.rate * gradient)

    def _step(self, labels: Any, *batch: Any) -> Any:
        """Train on one batch in place (w and b); return its mean loss. Compiled by tf.function."""
        with self.tf.GradientTape() as tape:
            loss = loss_of(self.tf, self.scores(*batch) + self.b, labels)
        of_weights, of_intercept = tape.gradient(loss, [self.w, self.b])
        self.update(of_weights)
        self.b.assign_sub(self.problem.rate * of_intercept)
        return loss

    def train(self, order: np.ndarray, losses: np.ndarray) -> None:
        """Train on the rows of `order` in batches, in place; writes each batch's loss to `losses`."""
        size, labels = self.problem.batch_rows, self.problem.labels
        for number in range(losses.size):
            rows = order[number * size : (number + 1) * size]
            losses[number] = float(self.step(self.tf.constant(labels[rows]), *self.batch_of(rows)))

    def state(self) -> State:
        """Return weights [D, N], intercept [N] and losses as NumPy arrays."""
        return State(self.w.numpy(), self.b.numpy(), self.losses)


@final
class Dense(TensorFlowTrainer):
    """A product of dense rows."""

    def prepare(self) -> None:
        """Copy the dense X of the problem into a tensor, from which the steps take rows."""
        self.x = self.tf.constant(self.problem.dense)

    def batch_of(self, rows: np.ndarray) -> tuple:
        """Return a tuple of one tensor: the row indices, by which the step gathers rows of X."""
        return (self.tf.constant(rows),)

    def scores(self, *batch: Any) -> Any:
        """Return X @ w [R, N] for a tuple of one tensor of row indices."""
        return self.tf.matmul(self.tf.gather(self.x, batch[0]), self.w)


class Sparse(TensorFlowTrainer):
    """tf.sparse.sparse_dense_matmul, whose gradient is dense."""

    def batch_of(self, rows: np.ndarray) -> tuple:
        """Return a tuple of one SparseTensor, the rows with these indices."""
        from workbench.bridges.tensorflow import to_sparse_tensor

        return (to_sparse_tensor(self.problem.csr[rows]),)

    def scores(self, *batch: Any) -> Any:
        """Return X @ w [R, N] for a tuple of one SparseTensor."""
        return self.tf.sparse.sparse_dense_matmul(batch[0], self.w)


@final
class Bridge(Sparse):
    """`sparse_product` of `workbench.bridges.tensorflow`, whose gradient has the active rows only."""

    def scores(self, *batch: Any) -> Any:
        """Return X @ w [R, N] by this project's `sparse_product`."""
        from workbench.bridges.tensorflow import sparse_product

        return sparse_product(batch[0], self.w)

    def update(self, gradient: Any) -> None:
        """Subtract the learning rate times the gradient from its active rows of w, in place."""
        self.w.scatter_sub(self.tf.IndexedSlices(self.problem.rate * gradient.values, gradient.indices))


_register = partial(register_way, "tensorflow")
_register("TensorFlow dense, tf.function", "dense", Dense, "dense", why_not=why_no_dense)
_register("TensorFlow sparse_dense_matmul", "sparse", Sparse, "sparse")
_register("sparse_product of the bridge", "sparse", Bridge, "bridge", side="project")
