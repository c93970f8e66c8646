"""Parameters that are the values of a weight matrix at a pattern, as a training on the host holds them.

As csr: the executor is bound to the matrix, whose values are the trained array, with states of as many numbers. As
masked: the trained array is the dense matrix, zero outside of the pattern, where its gradient is made zero too: every
rule leaves a weight alone that was zero ever since its states were zero. So no product needs the mask.

`move_patterns` moves the patterns of a training: it drops values and grows others at random.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np

from kernels import aligned
from workbench import formats, optimizers
from workbench.models import ModelError, Parameter
from workbench.models.patterns import NEW, Moves, Pattern, absent, smallest
from workbench.training.setup import Setup

if TYPE_CHECKING:
    from workbench.training.run import Run


def move_patterns(run: "Run", moves: Moves) -> None:
    """Drop small values and grow as many new ones in each pattern, in place, if due at the run's step.

    Positions are random by seed and step. Optimizer states move along.
    """
    if not moves.is_due(run.step):
        return
    for number, (name, held) in enumerate(run.patterned.items()):
        pattern, shape = held.pattern, held.pattern.shape
        dropped = smallest(held.values, int(moves.fraction * pattern.nnz))
        generator = np.random.default_rng((run.setup.seed, number, run.step))
        grown = absent(pattern.keys[~dropped], shape[0] * shape[1], int(np.count_nonzero(dropped)), generator)
        states = [state for state in run.updater.states.get(name, []) if isinstance(state, np.ndarray)]
        held.move(*pattern.moved(dropped, grown), states)


def moved_values(values: np.ndarray, origin: np.ndarray) -> np.ndarray:
    """Return values[origin], [z], with 0 where `origin` is `NEW`; same dtype."""
    return np.where(origin == NEW, 0, values[origin]).astype(values.dtype, copy=False)


class SparseParameter(ABC):
    """The values [z] at a pattern of a matrix [D, N]; `array` is what optimizers step, `argument` the executor's."""

    format: str

    def __init__(self, pattern: Pattern, values: np.ndarray) -> None:
        """Store the pattern.

        Subclasses create `array`, which optimizers update, and the executor's `argument` of `values` [z].
        """
        self.pattern = pattern
        self.array: np.ndarray
        self.argument: Any

    @property
    @abstractmethod
    def values(self) -> np.ndarray:
        """The values at the pattern's positions, [z], in its order."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes in addition to the trained array."""

    @abstractmethod
    def write(self, places: np.ndarray, values: np.ndarray) -> None:
        """Overwrite the values at these indices into the pattern."""

    @abstractmethod
    def at_places(self, gradient: Any) -> np.ndarray:
        """Return the executor's gradient at the positions of the pattern, [z]."""

    @abstractmethod
    def for_update(self, gradient: Any) -> np.ndarray:
        """Return the executor's gradient in the shape of the trained array."""

    @abstractmethod
    def move(self, pattern: Pattern, origin: np.ndarray, states: Sequence[np.ndarray]) -> None:
        """Change to a pattern of equal size, in place: values and states come from index `origin`, 0 if `NEW`."""

    @final
    def start(self, pattern: Pattern, values: np.ndarray) -> None:
        """Replace the pattern and its values, in place; optimizer states are not touched."""
        self.move(pattern, np.full(values.size, NEW), ())
        self.write(np.arange(values.size), values)


@final
class Sparse(SparseParameter):
    """Held as csr."""

    format = "csr"

    def __init__(self, pattern: Pattern, values: np.ndarray) -> None:
        """Copy the values [z], aligned, and build the CSR argument that shares them."""
        super().__init__(pattern, values)
        self.array = aligned.copy(values, values.dtype)
        self.argument = pattern.matrix(self.array)

    @property
    def values(self) -> np.ndarray:
        """The values at the pattern's positions, [z]: the trained array itself, not a copy."""
        return self.array

    @property
    def nbytes(self) -> int:
        """Bytes of the index arrays of the pattern."""
        return self.pattern.nbytes

    def write(self, places: np.ndarray, values: np.ndarray) -> None:
        """Set the values at these indices into the pattern, int64 [n], to `values` [n]. O(n)."""
        self.array[places] = values

    def at_places(self, gradient: Any) -> np.ndarray:
        """Return the values of the CSR gradient, [z], which has the same pattern."""
        return gradient.data

    def for_update(self, gradient: Any) -> np.ndarray:
        """Return the values of the CSR gradient, [z], in the order of the pattern, not copied."""
        return gradient.data

    def move(self, pattern: Pattern, origin: np.ndarray, states: Sequence[np.ndarray]) -> None:
        """Change pattern, values and `states` in place; the executor's bound matrix gets the new index arrays."""
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
        """Create the dense array [D, N], zero outside of the pattern, and its mask, and write the values [z]."""
        super().__init__(pattern, values)
        self.argument = self.array = aligned.zeros(pattern.shape, values.dtype)
        self._take(pattern)
        self.write(np.arange(values.size), values)

    def _take(self, pattern: Pattern) -> None:
        """Set pattern, flat keys int64 [z] and bool mask [D, N], in place."""
        self.pattern = pattern
        self.keys = pattern.keys
        self.mask = np.zeros(pattern.shape, bool)
        self.mask.reshape(-1)[self.keys] = True

    @property
    def values(self) -> np.ndarray:
        """The values at the pattern's positions, [z], copied from the dense array."""
        return self.at_places(self.array)

    @property
    def nbytes(self) -> int:
        """Bytes of the mask, the keys and the pattern."""
        return self.mask.nbytes + self.keys.nbytes + self.pattern.nbytes

    def write(self, places: np.ndarray, values: np.ndarray) -> None:
        """Set the values at these indices into the pattern, in the dense array."""
        self.array.reshape(-1)[self.keys[places]] = values

    def at_places(self, gradient: Any) -> np.ndarray:
        """Return a dense gradient [D, N] at the positions of the pattern, [z], a copy."""
        return gradient.reshape(-1)[self.keys]

    def for_update(self, gradient: Any) -> np.ndarray:
        """Return the dense gradient, zeroed outside of the pattern in place."""
        return np.multiply(gradient, self.mask, out=gradient)

    def move(self, pattern: Pattern, origin: np.ndarray, states: Sequence[np.ndarray]) -> None:
        """Take the pattern [z] and move the values and `states` [D, N] to its positions, in place.

        Position i has the value of position origin[i] of the old pattern, 0 if that is `NEW`; all else becomes 0.
        """
        tables = (self.array, *states)
        moved = [moved_values(self.at_places(table), origin) for table in tables]
        self._take(pattern)
        for table, values in zip(tables, moved, strict=True):
            table[...] = 0
            table.reshape(-1)[self.keys] = values


def make_parameter(parameter: Parameter, setup: Setup, pattern: Pattern, values: np.ndarray) -> SparseParameter:
    """Return the trained form of a parameter with values [z] at a pattern: CSR, or dense and masked.

    Raises ModelError for a masked one with an optimizer that has a state per row.
    """
    if not parameter.is_masked(setup.format):
        return Sparse(pattern, values)
    if optimizers.get(setup.optimizer).states_by_row:
        raise ModelError(
            f"{setup.optimizer} keeps a number a row, and rows of {parameter.name} have few weights: take weights=csr, "
            "where each weight has its own, or another optimizer."
        )
    return Masked(pattern, values)
