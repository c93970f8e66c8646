"""Training by dual ascent: what is kept of the rows between calls, and the intercept, which has no decay.

Minimized is mean of the rows' losses + decay / 2 * |W|^2, as by `sgd` with an exact update. W is the sum of x.T @ dual
over the rows, divided by decay and their number, and W alone: the intercept is what it is after any step. It is trained
as a feature of one value whose weight decays towards the intercept that the last epoch ended with, which is as if the
dual variables were forced to sum to zero (the method of multipliers, Hestenes 1969).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, final

import numpy as np

from kernels import Kernel, aligned
from kernels.epochs import dual, dual_dense
from workbench.training.setup import SetupError

if TYPE_CHECKING:
    from workbench.training.run import Run

SHARE = 1 / 16
"""The square of an intercept's value, by the mean sum of squares of a row: much less slows rows without it little."""


@final
class DualSteps:
    """Dual ascent on the rows of a training, from dual variables of zero when it takes others.

    `dual` [T, N] are the variables, `squares` [T] the sums of squares of the rows `x`.
    """

    def __init__(self, run: "Run") -> None:
        self.run = run
        self.decay = float(run.setup.options["decay"])
        self.x: Any = None

    @property
    def nbytes(self) -> int:
        """Bytes of the dual variables, and of the sums of squares of rows."""
        return 0 if self.x is None else self.dual.nbytes + self.squares.nbytes

    def hold(self, x: Any) -> None:
        """Make dual variables of zero for the rows of x where these are others than before.

        Weights that there are stay: they are then what the decay is towards.
        """
        if x is self.x:
            return
        self.x = x
        self.dual = aligned.zeros((x.shape[0], self.run.width), self.run.dtype)
        self.squares = np.full(x.shape[0], -1, self.run.dtype)  # not known before a row comes
        values, axes = (x, "ij") if isinstance(x, np.ndarray) else (x.data, "k")
        self.square = SHARE * float(np.einsum(f"{axes},{axes}->", values, values)) / max(x.shape[0], 1) or 1.0

    def kernel_of(self, x: Any) -> tuple[Kernel, *tuple[np.ndarray, ...]]:
        """Give the kernel for the rows of x, csr or dense, and the arrays of them that it takes."""
        loss = self.run.model.loss
        if isinstance(x, np.ndarray):
            return dual_dense.get(loss), x
        return dual.get(loss), x.indptr, x.indices, x.data

    def begin(self, x: Any) -> None:
        """Let the weight of the intercept decay towards where it is."""
        self.hold(x)
        if self.run.setup.has_intercept and x.shape[0]:
            self.run.arrays["b"] += column_sums(self.dual) * (self.square / (self.decay * x.shape[0]))

    def do(self, x: Any, y: np.ndarray, counts: np.ndarray, order: np.ndarray, batch_rows: int) -> np.ndarray:
        """Call the kernel on weights, dual variables and intercept; the mean losses of so many rows each."""
        self.hold(x)
        b = self.run.arrays["b"] if self.run.setup.has_intercept else np.zeros(0, self.run.dtype)
        kernel, *rows = self.kernel_of(x)
        of_rows = y, counts, self.squares, order
        losses = kernel.trusted(*rows, *of_rows, self.run.arrays["w"], self.dual, b, self.square, self.decay)
        sums = np.add.reduceat(losses, np.arange(0, order.size, batch_rows))
        sums[:-1] /= batch_rows
        sums[-1] /= order.size - (sums.size - 1) * batch_rows
        return sums

    # What a saved training has of it

    def state(self) -> dict[str, np.ndarray]:
        """Return the dual variables of the rows that are trained on."""
        self.hold(self.run.batches.x)
        return {"dual": self.dual.copy()}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Go on from what `state` gave of the same rows (`SetupError` for what does not fit them)."""
        self.hold(self.run.batches.x)
        saved = arrays["dual"]
        if not isinstance(saved, np.ndarray) or (saved.shape, saved.dtype) != (self.dual.shape, self.dual.dtype):
            raise SetupError(
                f"The state has dual variables {saved!r:.80}; those of this training are {self.dual.dtype} "
                f"{self.dual.shape}, a row for each that is trained on."
            )
        self.dual[...] = saved


TOGETHER = 64
"""Rows that are added as one long row."""


def column_sums(array: np.ndarray) -> np.ndarray:
    """Return the sum of each column of an array [T, N] in C order, N small: NumPy's own sum has a call for each row."""
    rows, columns = array.shape
    whole = rows // TOGETHER * TOGETHER
    sums = array[:whole].reshape(-1, TOGETHER * columns).sum(axis=0).reshape(TOGETHER, columns).sum(axis=0)
    return sums + array[whole:].sum(axis=0)
