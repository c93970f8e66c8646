"""TensorFlow: a compiled step on dense rows, its sparse product, and ours, whose gradient stays row-sparse."""

from abc import abstractmethod
from functools import partial
from typing import Any, final

import numpy as np

from workbench.bench.fair.competitors import LoopTrainer
from workbench.bench.fair.configurations import Problem, State
from workbench.bench.frameworks.ways import register_way, why_no_dense


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


LINES = """\
import numpy as np
import tensorflow as tf
{imports}
w, b = tf.Variable(tf.zeros([{features}, {outputs}])), tf.Variable(tf.zeros([{outputs}]))
{before}
@tf.function(reduce_retracing=True)
def step(labels, batch):
    with tf.GradientTape() as tape:
        scores = {scores} + b
        loss = {loss}
    of_w, of_b = tape.gradient(loss, [w, b])
    {update}
    b.assign_sub({rate:.3g} * of_b)
    return loss

for epoch in range(epochs):
    order = np.random.permutation(len(y))
    for first in range(0, len(y), {batch}):
        rows = order[first:first + {batch}]
        step(tf.constant(y[rows]), {batch_of})"""
LOSSES = {
    True: "tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(tf.cast(labels, tf.float32), scores[:, 0]))",
    False: "tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, scores))",
}
ALL = "w.assign_sub({rate:.3g} * of_w)"
TOUCHED = "w.scatter_sub(tf.IndexedSlices({rate:.3g} * of_w.values, of_w.indices))"


def _lines(imports: str, before: str, scores: str, update: str, batch_of: str, problem: Problem) -> str:
    """Return the Python code to paste for a way, the template LINES filled with these parts."""
    one = problem
    sizes = {"features": one.features, "outputs": one.outputs, "rate": one.rate, "batch": one.batch_rows}
    given = {"imports": imports, "before": before, "scores": scores, "batch_of": batch_of}
    return LINES.format(**sizes, **given, update=update.format(rate=one.rate), loss=LOSSES[one.outputs == 1])


_register = partial(register_way, "tensorflow")
OF_SPARSE = "to_sparse_tensor(x[rows])"
TO_TENSOR = "from workbench.bridges.tensorflow import to_sparse_tensor"
PRODUCT = "from workbench.bridges.tensorflow import sparse_product, to_sparse_tensor"
GATHERED = "tf.matmul(tf.gather(x, batch), w)"
_register(
    "TensorFlow dense, tf.function",
    "dense",
    Dense,
    partial(_lines, "", "x = tf.constant(x.toarray())", GATHERED, ALL, "tf.constant(rows)"),
    why_not=why_no_dense,
)
_register(
    "TensorFlow sparse_dense_matmul",
    "sparse",
    Sparse,
    partial(_lines, TO_TENSOR, "", "tf.sparse.sparse_dense_matmul(batch, w)", ALL, OF_SPARSE),
)
_register(
    "sparse_product of the bridge",
    "sparse",
    Bridge,
    partial(_lines, PRODUCT, "", "sparse_product(batch, w)", TOUCHED, OF_SPARSE),
    side="project",
)
