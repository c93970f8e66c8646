"""The step in which the patterns of a training move: what is dropped, what is grown, and the dense gradient for that.

A dense gradient is left as the two factors that a layer's product has: rows of it are made a block at a time.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, final

import numpy as np

from workbench import autodiff, executor, formats, ops
from workbench.graph import Graph, Group, Symbol
from workbench.models.patterns import Moves, absent, largest, smallest

if TYPE_CHECKING:
    from workbench.training.prepared import Prepared
    from workbench.training.run import Run

Rows = Callable[[int, int], np.ndarray]
"""`rows(low, high)` of a dense gradient [D, N]."""


@final
class PatternUpdater:
    """Moves the patterns of a training as `moves` says; its seed and the step decide what is drawn at random."""

    def __init__(self, moves: Moves) -> None:
        self.moves = moves
        self.dense: DenseGradients | None = None

    def takes(self, step: int) -> bool:
        """Return whether the step is a move and no update."""
        return self.moves.by_gradient and self.moves.is_due(step)

    @property
    def nbytes(self) -> int:
        """Bytes of buffers for the factors of dense gradients."""
        return 0 if self.dense is None else self.dense.executor.bytes_buffers

    def move(self, run: "Run", batch: "Prepared", gradients: Mapping[str, Any]) -> None:
        """Drop and grow where it is time, on the batch of the step, whose `gradients` these are."""
        if not self.moves.is_due(run.step):
            return
        rows = self._rows(run, batch, gradients) if self.moves.by_gradient else {}
        for number, (name, held) in enumerate(run.patterned.items()):
            pattern, shape = held.pattern, held.pattern.shape
            dropped = smallest(held.values, int(self.moves.fraction_at(run.step) * pattern.nnz))
            count, taken = np.count_nonzero(dropped), pattern.keys[~dropped]
            if self.moves.by_gradient:
                grown = largest(rows[name], shape, taken, count)
            else:
                generator = np.random.default_rng((run.setup.seed, number, run.step))
                grown = absent(taken, shape[0] * shape[1], count, generator)
            held.move(*pattern.moved(dropped, grown), run.updater.states.get(name, []))

    def _rows(self, run: "Run", batch: "Prepared", gradients: Mapping[str, Any]) -> dict[str, Rows]:
        """Return the rows of the dense gradients: those there are, else of factors of a second pass."""
        if all(one.format == "dense" for one in run.patterned.values()):
            return {name: lambda low, high, of=gradients[name]: of[low:high] for name in run.patterned}
        if self.dense is None:
            self.dense = DenseGradients(run.symbols[1], list(run.patterned), run.bind_like)
        return self.dense.rows({"x": batch.x, "y": batch.y, **batch.others})


def factors(loss: Graph, names: list[str]) -> tuple[Group, list[Mapping[str, Any]]]:
    """Return (the factors of the gradient of a loss towards each csr matrix, two for each, the parameters of each
    product)."""
    found = [gradient for gradient in autodiff.gradients(loss, names).values() if _is_product(gradient)]
    if len(found) < len(names):
        raise ops.OpError(
            f"The gradient towards one of {names} is no product of two matrices; its pattern cannot move."
        )
    return Group([factor for gradient in found for factor in gradient.inputs[1:]]), [one.params for one in found]


def _is_product(gradient: Symbol) -> bool:
    """Return whether a gradient is a product sampled at the pattern."""
    return gradient.op is ops.get("sampled_dot")


@final
class DenseGradients:
    """Dense gradients towards csr matrices, at the parameters and on the batch of a step, as rows by name."""

    def __init__(self, loss: Graph, names: list[str], bind: Callable[[Graph], executor.Executor]) -> None:
        group, self.params = factors(loss, names)
        self.names, self.executor = names, bind(group)

    def rows(self, batch: Mapping[str, Any]) -> dict[str, Rows]:
        """Return one pass forward and back, but for the products towards the matrices."""
        values = self.executor.forward(**batch)
        pairs = zip(values[::2], values[1::2], self.params, strict=True)
        return {name: _product(*pair) for name, pair in zip(self.names, pairs, strict=True)}


def _product(a: Any, b: np.ndarray, params: Mapping[str, Any]) -> Rows:
    """Return a function (low, high) that computes rows of the dense gradient a @ b."""
    right = b.T if params["transpose_b"] else b
    if isinstance(a, np.ndarray):
        left = a.T if params["transpose_a"] else a
        return lambda low, high: left[low:high] @ right
    matrix = formats.to_format(a, "csr")
    turned = matrix.T.tocsr() if params["transpose_a"] else matrix
    return lambda low, high: turned[low:high] @ right
