"""First values that are drawn row by row: each row from the seed, the name and its number alone.

So a table of any height costs nothing before its rows are touched, and all who draw a row get the same bits. The
random numbers are those of SplitMix64 (Steele, Lea, Flood 2014) at a place that the row and the column fix; differs:
the state is not advanced but looked up. Normal ones are made of two of them (Box and Muller 1958).
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from workbench.formats import RowSparse

KINDS = ("constant", "uniform", "normal")
GAMMA, MIX_1, MIX_2 = (np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


@final
@dataclass(frozen=True)
class Drawn:
    """The first values of a row_sparse array of `shape`, all of whose rows are drawn from `seed` and `name`.

    `kind` with its `number`: constant, uniform (evenly between -number and number), normal (its deviation).

    >>> table = Drawn((10**9, 2), "float32", "normal", 0.1, seed=3, name="w")
    >>> bool((table.rows(np.array([7, 10**8])) == table.rows(np.array([10**8, 7]))[::-1]).all())
    True
    """

    shape: tuple[int, ...]
    dtype: str
    kind: str
    number: float
    seed: int
    name: str

    def __post_init__(self) -> None:
        if self.kind not in KINDS or self.dtype not in ("float32", "float64") or not self.shape or self.seed < 0:
            raise ValueError(
                f"Rows are drawn as {self.kind!r} {self.dtype} {self.shape} from the seed {self.seed}; allowed are "
                f"{', '.join(KINDS)}, float32 or float64, a shape with rows, and a seed from 0."
            )

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def rows(self, numbers: np.ndarray) -> np.ndarray:
        """The rows of these numbers, in their order: [n, *shape[1:]]. O(n * width)."""
        width = math.prod(self.shape[1:])
        places = numbers.astype(np.uint64)[:, None] * np.uint64(width) + np.arange(width, dtype=np.uint64)
        return self._values(places).astype(self.dtype).reshape(len(numbers), *self.shape[1:])

    def whole(self) -> RowSparse:
        """All rows. O(size)."""
        numbers = np.arange(self.shape[0])
        return RowSparse.assemble(self.rows(numbers), numbers, self.shape)

    @property
    def about(self) -> dict[str, Any]:
        """All that it is, as JSON has it; `of` is the inverse."""
        return {**self.__dict__, "shape": list(self.shape)}

    @classmethod
    def of(cls, about: Mapping[str, Any]) -> "Drawn":
        """Drawn value that `about` told."""
        return cls(**{**about, "shape": tuple(about["shape"])})

    def _values(self, places: np.ndarray) -> np.ndarray:
        if self.kind == "constant":
            return np.full(places.shape, self.number)
        if self.kind == "uniform":
            return (2 * self._uniform(places, "first") - 1) * self.number
        radius = np.sqrt(-2 * np.log1p(-self._uniform(places, "first")))
        return radius * np.cos(2 * np.pi * self._uniform(places, "second")) * self.number

    def _uniform(self, places: np.ndarray, stream: str) -> np.ndarray:
        """Evenly distributed numbers from 0 to below 1, float64, one a place."""
        digest = hashlib.sha256(f"{self.seed} {stream} {self.name}".encode()).digest()
        mixed = np.uint64(int.from_bytes(digest[:8], "little")) + (places + np.uint64(1)) * GAMMA
        mixed = (mixed ^ (mixed >> np.uint64(30))) * MIX_1
        mixed = (mixed ^ (mixed >> np.uint64(27))) * MIX_2
        return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53
