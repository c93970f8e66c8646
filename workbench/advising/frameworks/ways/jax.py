"""JAX: compiled steps on dense rows, on BCOO, and by gathered rows; each compiles once, as batches have one size."""

from abc import abstractmethod
from functools import partial
from typing import Any, final

import numpy as np

from workbench.advising.frameworks.training import LoopTrainer, Problem, State
from workbench.advising.frameworks.ways import register_way, why_no_dense


def loss_of(scores: Any, labels: Any) -> Any:
    """Return the mean loss of scores [R, N]: logistic for one output, softmax cross-entropy for several.

    `labels` int [R] are class indices, or 0 and 1.
    """
    import jax
    import jax.numpy as jnp

    if scores.shape[1] == 1:
        return jnp.mean(jnp.logaddexp(0, scores[:, 0]) - scores[:, 0] * labels)
    logs = jax.nn.log_softmax(scores)
    return -jnp.mean(jnp.take_along_axis(logs, labels[:, None], axis=1))


class JaxTrainer(LoopTrainer):
    """A training loop whose step is compiled by jax.jit, with the memory of the weights given to it.

    `traces` counts how often it was compiled: 1, as all batches have one size.
    """

    def __init__(self, problem: Problem) -> None:
        """Make zeroed weights w [D, N] and b [N], call `prepare`, and wrap the step by jax.jit."""
        import jax
        import jax.numpy as jnp

        super().__init__(problem)
        self.w, self.b = jnp.zeros((problem.features, problem.outputs)), jnp.zeros(problem.outputs)
        self.labels, self.traces = problem.labels.astype(np.int32), 0
        self.prepare()
        self.step = jax.jit(self._traced, donate_argnums=(0, 1))

    def prepare(self) -> None:
        """Store X in the form that this way needs: by default how many entries the longest rows have together."""
        lengths = np.sort(np.diff(self.problem.csr.indptr))
        self.entries = int(lengths[-self.problem.batch_rows :].sum())

    def batch_of(self, rows: np.ndarray) -> Any:
        """Return the rows with these indices as `_step` takes them, by default a BCOO of one size."""
        from workbench.bridges.jax import to_bcoo

        return to_bcoo(self.problem.csr[rows], entries=self.entries).matrix

    def _traced(self, *args: Any) -> tuple[Any, Any, Any]:
        """Count a compilation, which alone runs this as Python, and return what `_step` does."""
        self.traces += 1
        return self._step(*args)

    def _step(self, w: Any, b: Any, labels: Any, batch: Any) -> tuple[Any, Any, Any]:
        """Return (w, b, mean loss) after a step on one batch; w and b are overwritten."""
        import jax

        def loss(w: Any, b: Any) -> Any:
            """Return the mean loss of a batch."""
            return loss_of(self.scores(w, batch) + b, labels)

        value, (grad_w, grad_b) = jax.value_and_grad(loss, argnums=(0, 1))(w, b)
        return w - self.problem.rate * grad_w, b - self.problem.rate * grad_b, value

    @abstractmethod
    def scores(self, w: Any, batch: Any) -> Any:
        """Return X @ w [R, N] of what `batch_of` returned."""

    def train(self, order: np.ndarray, losses: np.ndarray) -> None:
        """Train on the rows of `order` in batches; writes each batch's loss to `losses` when all are done."""
        size, values = self.problem.batch_rows, []
        for number in range(losses.size):
            rows = order[number * size : (number + 1) * size]
            self.w, self.b, value = self.step(self.w, self.b, self.labels[rows], self.batch_of(rows))
            values.append(value)
        losses[:] = values
        self.w.block_until_ready()

    def state(self) -> State:
        """Return weights [D, N], intercept [N] and losses as NumPy arrays."""
        return State(np.asarray(self.w), np.asarray(self.b), self.losses)


@final
class Dense(JaxTrainer):
    """A product of dense rows, which the compiled step takes from an array of all rows."""

    def prepare(self) -> None:
        """Copy the dense X of the problem into an array of JAX."""
        import jax.numpy as jnp

        self.x = jnp.asarray(self.problem.dense)

    def batch_of(self, rows: np.ndarray) -> Any:
        """Return (all of X, indices of the rows)."""
        return self.x, rows.astype(np.int32)

    def scores(self, w: Any, batch: Any) -> Any:
        """Return X @ w [R, N] of the rows with these indices."""
        x, rows = batch
        return x[rows] @ w


@final
class Bcoo(JaxTrainer):
    """BCOO @ w, whose gradient is dense."""

    def scores(self, w: Any, batch: Any) -> Any:
        """Return X @ w [R, N] of a BCOO."""
        return batch @ w


@final
class Segments(JaxTrainer):
    """Gathered rows of w, multiplied and summed by segment_sum; the gradient is dense."""

    def scores(self, w: Any, batch: Any) -> Any:
        """Return X @ w [R, N] of a BCOO, by functions of JAX alone."""
        import jax

        gathered = w.at[batch.indices[:, 1]].get(mode="fill", fill_value=0)
        products = batch.data[:, None] * gathered
        rows, count = batch.indices[:, 0], batch.shape[0]
        return jax.ops.segment_sum(products, rows, num_segments=count, indices_are_sorted=True)


@final
class Bridge(JaxTrainer):
    """The bridge's gather and scatter_add: a step reads and writes the active rows of w alone."""

    def scores(self, w: Any, batch: Any) -> Any:
        """Return X @ w [R, N] by this project's `sparse_product`."""
        from workbench.bridges.jax import sparse_product

        return sparse_product(batch, w)

    def _step(self, w: Any, b: Any, labels: Any, batch: Any) -> tuple[Any, Any, Any]:
        """Return (w, b, mean loss) after a step that differentiates towards the gathered rows."""
        import jax

        from workbench.bridges.jax import combine, gather, scatter_add

        def loss(gathered: Any, b: Any) -> Any:
            """Return the mean loss of a batch."""
            return loss_of(combine(batch, gathered) + b, labels)

        value, (of_rows, grad_b) = jax.value_and_grad(loss, argnums=(0, 1))(gather(batch, w), b)
        return scatter_add(batch, w, -self.problem.rate * of_rows), b - self.problem.rate * grad_b, value


_register = partial(register_way, "jax")
_register("JAX dense, jit", "dense", Dense, "dense", why_not=why_no_dense)
_register("JAX BCOO @ W, jit", "sparse", Bcoo, "bcoo")
_register("JAX gather and segment_sum, jit", "sparse", Segments, "segments")
_register("gather and scatter_add of the bridge", "sparse", Bridge, "bridge", side="project")
