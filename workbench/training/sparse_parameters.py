"""Parameters that are the values of a weight matrix at a pattern, as a training on the host holds them.

As csr: the executor is bound to the matrix, whose values are the trained array, with states of as many numbers. As
masked: the trained array is the dense matrix, zero outside of the pattern, where its gradient is made zero too: every
rule leaves a weight alone that was zero ever since its states were zero. So no product needs the mask.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from kernels import aligned
from workbench import formats, optimizers
from workbench.models import ModelError, Parameter
from workbench.models.patterns import NEW, Pattern
from workbench.training.setup import Setup


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
        """Bytes beside the trained array."""

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
        """Take another pattern and values."""
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
        """Bytes of the pattern."""
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
