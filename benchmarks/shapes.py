"""Shapes of batches: laws that real data obeys, drawn from a seed.

Columns of a power law are numbered in no order, as hashed features and vocabularies are; `values` is normal or ones.
"""

from dataclasses import dataclass, replace

import numpy as np

from kernels import aligned
from kernels.registry import unknown_name
from workbench.data.synthetic import Popularity, distinct_columns, row_lengths


class BenchError(ValueError):
    """A suite, shape or option of a benchmark that is not known; the message lists what is."""


@dataclass(frozen=True)
class Shape:
    """R `rows` of `features` columns with `length` entries a row in the mean.

    `sigma` spreads the lengths (lognormal); a column's popularity falls as (rank + shift)**-slope, slope 0 is uniform.
    """

    name: str
    rows: int
    features: int
    length: float
    sigma: float = 0.0
    slope: float = 0.0
    shift: float = 1.0
    values: str = "normal"


@dataclass(frozen=True, eq=False)
class Batch:
    """A CSR batch [R, D]: the face of `kernels.Case`, with dense arrays that are made at the speed of a copy.

    They begin at a cache line for all candidates, as the tables of this project, of PyTorch and of TensorFlow do.
    """

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    D: int
    N: int
    seed: int = 0

    @property
    def R(self) -> int:  # noqa: N802
        """Number of rows R."""
        return len(self.indptr) - 1

    @property
    def dtype(self) -> np.dtype:
        """Data type of the stored values."""
        return self.data.dtype

    def wide(self, N: int) -> "Batch":
        """Return the same batch with the dense width `N`; arrays are shared."""
        return replace(self, N=N)

    def dense(self, *shape: int, salt: int = 0) -> np.ndarray:
        """Return a new cache-line-aligned array of normal values, the same for the same seed and `salt`.

        The values repeat after 2**18 + 1 of them, which no kernel can notice.
        """
        size, block = int(np.prod(shape)), _normal(self.seed + salt, self.dtype.str)
        out = aligned.empty((size,), self.dtype)
        for start in range(0, size, block.size):
            part = out[start : start + block.size]
            part[...] = block[: part.size]
        return out.reshape(shape)

    def garbage(self, *shape: int) -> np.ndarray:
        """Return a new aligned array filled with 7.25, to be overwritten by an output."""
        return aligned.copy(np.broadcast_to(7.25, shape), self.dtype)


def _normal(seed: int, dtype: str) -> np.ndarray:
    """Return 2**18 + 1 standard normal values of a seed, as `dtype`."""
    return np.random.default_rng(seed).standard_normal(2**18 + 1, np.float32).astype(dtype)


def draw_batch(shape: Shape, seed: int = 0, N: int = 1) -> Batch:
    """Return a random CSR batch of a shape, columns of a row sorted and distinct; the same for the same seed.

    O(nnz + features). `N` is its dense width; values are float32, indptr and indices int32.
    """
    rng = np.random.default_rng(seed)
    lengths = row_lengths(shape.rows, shape.features, shape.length / shape.features, shape.sigma, rng)
    keys = distinct_columns(lengths, Popularity(shape.features, shape.slope, shape.shift), rng)
    rows, ranks = np.divmod(keys, shape.features)
    columns = np.random.default_rng(20260101).permutation(shape.features)[ranks] if shape.slope else ranks
    order = np.argsort(rows * shape.features + columns)
    indptr = np.searchsorted(keys, np.arange(shape.rows + 1) * shape.features)
    data = np.ones(len(keys)) if shape.values == "ones" else rng.standard_normal(len(keys))
    return Batch(indptr.astype("int32"), columns[order].astype("int32"), data.astype("float32"), shape.features, N)


_TWINS = (
    Shape("reuters text", 4096, 47_236, 78, sigma=0.68, slope=0.71, shift=2.0),
    Shape("farm ads text", 4096, 54_877, 197, sigma=0.8, slope=0.78, shift=6.0),
    Shape("criteo clicks", 4096, 1_000_000, 39, slope=1.07, values="ones"),
    Shape("avazu clicks", 4096, 1_000_000, 22, slope=1.55, values="ones"),
    Shape("gowalla check-ins", 4096, 40_981, 27, sigma=1.0, slope=0.54, values="ones"),
)
SHAPES: dict[str, Shape] = {
    shape.name: shape
    for shape in (
        Shape("uniform 100k", 4096, 100_000, 50),
        Shape("power law 1M", 4096, 1_000_000, 32, sigma=0.2, slope=1.2),
        Shape("square 8192, 1 %", 8192, 8192, 82),
        Shape("power law 200k", 65_536, 200_000, 21, sigma=0.2, slope=1.2),
        *_TWINS,
    )
}


def shape_of(name: str, rows: int | None = None) -> Shape:
    """Return the named shape, with another number of rows if given; BenchError for an unknown name."""
    if name not in SHAPES:
        raise BenchError(unknown_name("shape", name, SHAPES))
    return replace(SHAPES[name], rows=rows or SHAPES[name].rows)
