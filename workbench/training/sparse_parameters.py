"""Parameters that are the values of a weight matrix at a pattern, as a training on the host holds them.

As csr: the executor is bound to the matrix, whose values are the trained array, with states of as many numbers. As
masked: the trained array is the dense matrix, zero outside of the pattern, where its gradient is made zero too: every
rule leaves a weight alone that was zero ever since its states were zero. So no product needs the mask.

`PatternUpdater` moves the patterns of a training: it drops values and grows others, by a dense gradient if the setting
asks for one. That is left as the two factors of a layer's product: rows of it are computed a block at a time.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, final

import numpy as np

from kernels import aligned
from workbench import autodiff, executor, formats, ops, optimizers
from workbench.graph import Graph, Group, Symbol
from workbench.models import ModelError, Parameter
from workbench.models.patterns import NEW, Moves, Pattern, absent, largest, smallest
from workbench.training.setup import Setup

if TYPE_CHECKING:
    from workbench.training.run import Run
    from workbench.training.training import Prepared

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
            count, taken = int(np.count_nonzero(dropped)), pattern.keys[~dropped]
            if self.moves.by_gradient:
                grown = largest(rows[name], shape, taken, count)
            else:
                generator = np.random.default_rng((run.setup.seed, number, run.step))
                grown = absent(taken, shape[0] * shape[1], count, generator)
            states = [state for state in run.updater.states.get(name, []) if isinstance(state, np.ndarray)]
            held.move(*pattern.moved(dropped, grown), states)

    def _rows(self, run: "Run", batch: "Prepared", gradients: Mapping[str, Any]) -> dict[str, Rows]:
        """Return the rows of the dense gradients: those there are, else of factors of a second pass."""
        if all(one.format == "dense" for one in run.patterned.values()):
            return {name: partial(_rows_between, gradients[name]) for name in run.patterned}
        if self.dense is None:
            self.dense = DenseGradients(run.symbols[1], list(run.patterned), run.bind_like)
        return self.dense.rows({"x": batch.x, "y": batch.y, **batch.others})


def _rows_between(array: np.ndarray, low: int, high: int) -> np.ndarray:
    """Return rows `low` to `high` of an array [D, N], not a copy."""
    return array[low:high]


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


def moved_values(values: np.ndarray, origin: np.ndarray) -> np.ndarray:
    """Return the values [z] by where they stood before, zeros for what is `NEW`."""
    return np.where(origin == NEW, 0, values[origin]).astype(values.dtype, copy=False)


class SparseParameter(ABC):
    """The values [z] at a pattern of a matrix [D, N]; `array` is what optimizers step, `argument` the executor's."""

    format: str

    def __init__(self, pattern: Pattern, values: np.ndarray) -> None:
        self.pattern = pattern
        self.array: np.ndarray
        self.argument: Any

    @property
    @abstractmethod
    def values(self) -> np.ndarray:
        """The values in the order of the pattern, [z]."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes in addition to the trained array."""

    @abstractmethod
    def write(self, places: np.ndarray, values: np.ndarray) -> None:
        """Overwrite the values at some places, by their numbers."""

    @abstractmethod
    def at_places(self, gradient: Any) -> np.ndarray:
        """Return the executor's gradient at the places of the pattern, [z]."""

    @abstractmethod
    def for_update(self, gradient: Any) -> np.ndarray:
        """Return the executor's gradient as that of the trained array."""

    @abstractmethod
    def move(self, pattern: Pattern, origin: np.ndarray, states: Sequence[np.ndarray]) -> None:
        """Take another pattern of as many places, each value and state from its `origin`, zeros where that is `NEW`."""

    @final
    def start(self, pattern: Pattern, values: np.ndarray) -> None:
        """Replace the pattern and its values, with new optimizer states for all."""
        self.move(pattern, np.full(values.size, NEW), ())
        self.write(np.arange(values.size), values)


@final
class Sparse(SparseParameter):
    """Held as csr."""

    format = "csr"

    def __init__(self, pattern: Pattern, values: np.ndarray) -> None:
        super().__init__(pattern, values)
        self.array = aligned.copy(values, values.dtype)
        self.argument = pattern.matrix(self.array)

    @property
    def values(self) -> np.ndarray:
        """Values at the places of the pattern, [places]: the trained array itself, not a copy."""
        return self.array

    @property
    def nbytes(self) -> int:
        """Bytes of the index arrays of the pattern."""
        return self.pattern.nbytes

    def write(self, places: np.ndarray, values: np.ndarray) -> None:
        """Give these places of the pattern, int64 [n], the values [n]. O(n)."""
        self.array[places] = values

    def at_places(self, gradient: Any) -> np.ndarray:
        """Return the values of the gradient: it has the places of the matrix."""
        return gradient.data

    def for_update(self, gradient: Any) -> np.ndarray:
        """Return the gradient's values [places], in the order of the pattern, not copied."""
        return gradient.data

    def move(self, pattern: Pattern, origin: np.ndarray, states: Sequence[np.ndarray]) -> None:
        """Move the pattern in place: the executor goes on with the matrix that it was bound to."""
        for array in (self.array, *states):
            array[...] = moved_values(array, origin)
        self.pattern = pattern
        parts = {"indptr": pattern.indptr, "indices": pattern.indices, "data": self.array}
        formats.get("csr").replace(self.argument, parts)


@final
class Masked(SparseParameter):
    """Held dense, zeros outside of the pattern."""

    format = "dense"

    def __init__(self, pattern: Pattern, values: np.ndarray) -> None:
        super().__init__(pattern, values)
        self.argument = self.array = aligned.zeros(pattern.shape, values.dtype)
        self._take(pattern)
        self.write(np.arange(values.size), values)

    def _take(self, pattern: Pattern) -> None:
        """Set pattern, keys and mask, in place."""
        self.pattern = pattern
        self.keys = pattern.keys
        self.mask = np.zeros(pattern.shape, bool)
        self.mask.reshape(-1)[self.keys] = True

    @property
    def values(self) -> np.ndarray:
        """Values at the places of the pattern, [places], copied from the dense array."""
        return self.at_places(self.array)

    @property
    def nbytes(self) -> int:
        """Bytes of the mask, and of the pattern that it was made of."""
        return self.mask.nbytes + self.keys.nbytes + self.pattern.nbytes

    def write(self, places: np.ndarray, values: np.ndarray) -> None:
        """Write values at these places of the matrix."""
        self.array.reshape(-1)[self.keys[places]] = values

    def at_places(self, gradient: Any) -> np.ndarray:
        """Return the values of a dense gradient at the places of the pattern."""
        return gradient.reshape(-1)[self.keys]

    def for_update(self, gradient: Any) -> np.ndarray:
        """Return the gradient, made zero outside of the pattern in its own memory."""
        return np.multiply(gradient, self.mask, out=gradient)

    def move(self, pattern: Pattern, origin: np.ndarray, states: Sequence[np.ndarray]) -> None:
        """Move the values in the matrix, and in states of its shape."""
        tables = (self.array, *states)
        moved = [moved_values(self.at_places(table), origin) for table in tables]
        self._take(pattern)
        for table, values in zip(tables, moved, strict=True):
            table[...] = 0
            table.reshape(-1)[self.keys] = values


def make_parameter(parameter: Parameter, setup: Setup, pattern: Pattern, values: np.ndarray) -> SparseParameter:
    """Return the values [z] of a parameter at a pattern, as it and the setup say (`ModelError`)."""
    if not parameter.is_masked(setup.format):
        return Sparse(pattern, values)
    if optimizers.get(setup.optimizer).states_by_row:
        raise ModelError(
            f"{setup.optimizer} keeps a number a row, and rows of {parameter.name} have few weights: take weights=csr, "
            "where each weight has its own, or another optimizer."
        )
    return Masked(pattern, values)
